# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Callable
from hlotrace.experimental.sparse import CuSparseEfficiencyWarning, SparseEfficiencyError, SparseEfficiencyWarning
from typing import Any, NamedTuple

__all__ = [
    'CuSparseEfficiencyWarning', 'SparseEfficiencyError', 'SparseEfficiencyWarning', 'SparseInfo', 'broadcasting_vmap',
    'nfold_vmap',
]

class SparseInfo(NamedTuple):
    shape: tuple[Any, ...]
    indices_sorted: bool = ...
    unique_indices: bool = ...

def broadcasting_vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Any: ...
def nfold_vmap(fun: Callable[..., Any], N: int, *, broadcasted: bool = True, in_axes: Any = 0) -> Any: ...
