# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.typing import ArrayLike
from typing import Any

__all__ = ['check_grads', 'check_jvp', 'check_vjp']

def check_grads(
    f: Any, args: Any, order: str, modes: Any = ..., atol: ArrayLike | None = None, rtol: ArrayLike | None = None,
    eps: Any = None,
) -> Any: ...
def check_jvp(
    f: Any, f_jvp: Any, args: Any, atol: ArrayLike | None = None, rtol: ArrayLike | None = None, eps: Any = 0.0001,
    err_msg: str = '',
) -> Any: ...
def check_vjp(
    f: Any, f_vjp: Any, args: Any, atol: ArrayLike | None = None, rtol: ArrayLike | None = None, eps: Any = 0.0001,
    err_msg: str = '',
) -> Any: ...
