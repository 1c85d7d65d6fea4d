"""JAX's `interpreters.xla`: running one primitive."""
import numpy as np

from ..core.public import explain as _explain
from ..numpy import asarray
from ..runtime.binding import Client as Backend
from ..runtime.evaluate import evaluate_compiled

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers"]


class _Canonical(dict):
    """By class, what makes an array of a value: for classes derived from one that is here, the same."""

    def __setitem__(self, kind, handler):
        if not (issubclass(kind, tuple(self)) and handler in self.values()):
            raise NotImplementedError(f"xla.canonicalize_dtype_handlers[{kind.__name__}] = ...: only for classes derived "
                                      "from np.ndarray, with its handler; give others __array__, or register a pytree")
        super().__setitem__(kind, handler)


canonicalize_dtype_handlers = _Canonical({np.ndarray: asarray})


def apply_primitive(primitive, *args, **params):
    """Compile the lowering of a primitive for these concrete operands and run it.

    It is what eager evaluation does without `def_impl`; `p.def_impl(partial(apply_primitive, p))` says the same.
    """
    return evaluate_compiled(primitive, args, params)

_explain(globals())
