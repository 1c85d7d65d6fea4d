# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.api_util import safe_map as map
from typing import Any

__all__ = ['fused', 'fused_p', 'map', 'zip']

def fused(*, out_spaces: Any) -> Any: ...
fused_p: Any
def zip(*args: Any) -> Any: ...
