# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Callable
from hlotrace import checkpoint, checkpoint as remat, checkpoint_policies as checkpoint_policies
from hlotrace._types import Place, _T
from typing import Any

__all__ = [
    'Offloadable', 'Recompute', 'Saveable', 'checkpoint', 'checkpoint_name', 'checkpoint_name_fwd', 'checkpoint_policies',
    'name_p', 'print_saved_residuals', 'remat', 'saved_residuals',
]

class Offloadable:
    def __init__(self, src: Place, dst: Any) -> None: ...
    @property
    def dst(self) -> Any: ...
    @property
    def src(self) -> Any: ...

Recompute: Any
Saveable: Any
def checkpoint_name(x: _T, name: str) -> _T: ...
name_p: Any
def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None: ...
def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]: ...
checkpoint_name_fwd = checkpoint_name
