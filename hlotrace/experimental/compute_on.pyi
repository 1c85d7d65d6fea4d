# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Mapping
from typing import Any

__all__ = ['compute_on', 'compute_on2']

def compute_on(
    f: Any = None, *, compute_type: Any = None, out_memory_spaces: Any = None,
    compiler_options: Mapping[str, Any] | None = None,
) -> Any: ...
compute_on2 = compute_on
