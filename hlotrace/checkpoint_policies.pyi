# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from typing import Any

__all__ = ['everything_saveable', 'nothing_saveable']

def everything_saveable(*_: Any) -> Any: ...
def nothing_saveable(*_: Any) -> Any: ...
