"""JAX's `interpreters.xla`: running one primitive."""
from ..core.public import explain as _explain
from ..runtime.binding import Client as Backend
from ..runtime.evaluate import evaluate_compiled

__all__ = ["Backend", "apply_primitive"]


def apply_primitive(primitive, *args, **params):
    """Compile the lowering of a primitive for these concrete operands and run it.

    It is what eager evaluation does without `def_impl`; `p.def_impl(partial(apply_primitive, p))` says the same.
    """
    return evaluate_compiled(primitive, args, params)

_explain(globals())
