# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.experimental.sparse import ad as ad
from hlotrace.typing import ArrayLike
from typing import Any

__all__ = ['ad', 'lobpcg_standard', 'spsolve']

def lobpcg_standard(A: Any, X: Any, m: ArrayLike = 100, tol: Any = None) -> Any: ...
def spsolve(data: ArrayLike, indices: ArrayLike, indptr: Any, b: ArrayLike, tol: Any = 1e-06, reorder: Any = 1) -> Any: ...
