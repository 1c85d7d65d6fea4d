"""hlotrace's own primitives by name: `primitives.sin_p`."""
from ... import lax, random  # noqa: F401  with these and the next, all families of primitives are there
from ...core.primitive import PRIMITIVES as _PRIMITIVES
from ...primitives import sharding  # noqa: F401

# JAX's names where they are others.
_NAMES = {"add_jaxvals_p": "add", "remat_p": "checkpoint"}


def __getattr__(name):
    found = _PRIMITIVES.get(_NAMES.get(name) or name.removesuffix("_p")) if name.endswith("_p") else None
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def __dir__():
    return sorted([f"{name}_p" for name in _PRIMITIVES] + [*_NAMES])
