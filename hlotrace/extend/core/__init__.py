"""JAX's `extend.core`: Primitive, the types of programs, and what core says of them under JAX's names."""
from ...core.public import explain as _explain
from ...core.surface import *
from ...core.surface import __all__ as _names
from . import primitives

__all__ = [*_names, "primitives"]

_explain(globals())
