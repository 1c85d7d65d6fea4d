"""Library functions made of several primitives: one compiled program when called eagerly, inlined under a trace."""
import functools

from ..core.config import state
from ..core.trace import EVAL
from .jit import JitFunction


def composite(fun=None, *, static=()):
    """Decorator.  `static` names the parameters that are Python values rather than arrays."""
    if fun is None:
        return functools.partial(composite, static=static)
    compiled = None

    @functools.wraps(fun)
    def call(*args, **kwargs):
        nonlocal compiled
        if state.trace is not EVAL or state.disable_jit:
            return fun(*args, **kwargs)
        if compiled is None:
            compiled = JitFunction(fun, None, static, None, None, True, False, None)
            compiled.explained = False
        return compiled(*args, **kwargs)
    return call
