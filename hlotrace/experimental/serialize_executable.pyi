# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from typing import Any

__all__ = ['deserialize_and_load', 'serialize']

def deserialize_and_load(
    serialized: Any, in_tree: Any, out_tree: Any, backend: str | None = None, execution_devices: Any = None,
) -> Any: ...
def serialize(compiled: Any) -> Any: ...
