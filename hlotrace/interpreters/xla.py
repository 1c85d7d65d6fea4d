"""JAX's `interpreters.xla`: running one primitive."""
import numpy as np

from ..core.surface.public import install_getattr as _explain
from ..numpy import asarray
from ..runtime.binding import Client as Backend
from ..runtime.evaluate import evaluate_compiled

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers"]


class _Canonical(dict):
    """By class, what makes an array of a value.

    For classes derived from np.ndarray or with `__array__` it is that of np.ndarray.  Other classes are
    arrays once `core.pytype_aval_mappings` has them too.
    """

    def __setitem__(self, kind, handler):
        if not (hasattr(kind, "__array__") and handler in self.values()):
            raise NotImplementedError(f"xla.canonicalize_dtype_handlers[{kind.__name__}] = ...: only for "
                                      "classes with __array__, and the handler of np.ndarray; or register a "
                                      "pytree")
        super().__setitem__(kind, handler)


canonicalize_dtype_handlers = _Canonical({np.ndarray: asarray})


def apply_primitive(primitive, *args, **params):
    """Compile the lowering of a primitive for these concrete operands and run it.

    It is what eager evaluation does without `def_impl`; `p.def_impl(partial(apply_primitive, p))` says the
    same.
    """
    return evaluate_compiled(primitive, args, params)

_explain(globals())
