"""JAX's `extend.core`: Primitive, the types of programs, and what core says of them under JAX's names."""
from ...core.public import explain as _explain
from ...core.surface import *
from ...core.surface import __all__ as _names
from ..call_primitives import create_call_primitive, eval_jaxpr_transpose, register_call_primitive_rules
from . import primitives

__all__ = [*_names, "create_call_primitive", "eval_jaxpr_transpose", "primitives", "register_call_primitive_rules"]

_explain(globals())
