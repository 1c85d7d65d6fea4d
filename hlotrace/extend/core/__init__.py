"""JAX's `extend.core`: Primitive, the types of programs, and what core says of them under JAX's names."""
from ...core.surface.jax_core_names import *
from ...core.surface.jax_core_names import __all__ as _names
from ...core.surface.public import install_getattr as _explain
from ..call_primitives import create_call_primitive, eval_jaxpr_transpose, register_call_primitive_rules
from . import primitives

__all__ = [*_names, "create_call_primitive", "eval_jaxpr_transpose", "primitives",
           "register_call_primitive_rules"]

_explain(globals())
