# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.typing import ArrayLike
from typing import Any

__all__ = ['bicgstab', 'cg', 'gmres']

def bicgstab(
    A: Any, b: ArrayLike, x0: Any = None, *, tol: Any = 1e-05, atol: ArrayLike = 0.0, maxiter: Any = None,
    M: int | None = None,
) -> Any: ...
def cg(
    A: Any, b: ArrayLike, x0: Any = None, *, tol: Any = 1e-05, atol: ArrayLike = 0.0, maxiter: Any = None,
    M: int | None = None,
) -> Any: ...
def gmres(
    A: Any, b: ArrayLike, x0: Any = None, *, tol: Any = 1e-05, atol: ArrayLike = 0.0, restart: Any = 20, maxiter: Any = None,
    M: int | None = None, solve_method: str = 'batched',
) -> Any: ...
