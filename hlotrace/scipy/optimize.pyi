# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ['OptimizeResults', 'minimize']

class OptimizeResults(NamedTuple):
    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any

def minimize(
    fun: Callable[..., Any], x0: Any, args: Any = ..., *, method: Any, tol: Any = None, options: Any = None,
) -> Any: ...
