# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Callable
from hlotrace.typing import ArrayLike
from typing import Any

__all__ = ['odeint']

def odeint(
    func: Callable[..., Any], y0: Any, t: Any, *args: Any, rtol: ArrayLike = 1.4e-08, atol: ArrayLike = 1.4e-08,
    mxstep: Any = ..., hmax: Any = ...,
) -> Any: ...
