"""hlotrace's own primitives by name: `primitives.sin_p`."""
from importlib import import_module as _import
from pkgutil import walk_packages as _modules

from ... import primitives as _families
from ...core.primitive import (
    ALIASES as _ALIASES, PRIMITIVES as _PRIMITIVES, primitive_named as _primitive_named)
from ...core.surface.public import install_getattr as _explain
from ...random import gamma as _gamma  # noqa: F401 - a primitive that is registered with its distribution
from ..call_primitives import (  # noqa: F401
    call_p, closed_call_p, create_call_primitive, eval_jaxpr_transpose, register_call_primitive_rules)

# most are imported when first used
for _module in _modules(_families.__path__, f"{_families.__name__}."):
    _import(_module.name)

def __getattr__(name):
    found = _primitive_named(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def __dir__():
    return sorted(f"{name}_p" for name in (*_PRIMITIVES, *_ALIASES, "call", "closed_call"))


_explain(globals())
