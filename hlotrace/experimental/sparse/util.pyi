# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Callable
from hlotrace import numpy as jnp
from hlotrace._types import AxisName
from hlotrace.experimental.sparse import CuSparseEfficiencyWarning, SparseEfficiencyError, SparseEfficiencyWarning
from hlotrace.experimental.sparse.transform import NamedTuple
from typing import Any, NamedTuple

__all__ = [
    'CuSparseEfficiencyWarning', 'NamedTuple', 'SparseEfficiencyError', 'SparseEfficiencyWarning', 'SparseInfo',
    'broadcasting_vmap', 'jnp', 'nfold_vmap', 'vmap',
]

class SparseInfo(NamedTuple):
    shape: tuple[Any, ...]
    indices_sorted: bool = ...
    unique_indices: bool = ...

def broadcasting_vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Any: ...
def nfold_vmap(fun: Callable[..., Any], N: int, *, broadcasted: bool = True, in_axes: Any = 0) -> Any: ...
def vmap(
    fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_name: AxisName | None = None,
    axis_size: int | None = None, spmd_axis_name: Any = None, sum_match: bool = False,
) -> Any: ...
