# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace._types import Place
from typing import Any

__all__ = ['control_dep', 'schedule']

def control_dep(src: Place, dst: Any) -> Any: ...
def schedule(ops: Any) -> Any: ...
