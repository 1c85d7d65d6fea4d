"""JAX's `extend.lowering`: contexts of MLIR, and the context that lowering rules get."""
from ..core.surface.public import install_getattr as _explain
from ..runtime.mlir.bindings import JaxIrContext, upstream_dialects
from ..runtime.mlir.lowering_rules import LoweringRuleContext

__all__ = ["JaxIrContext", "LoweringRuleContext", "upstream_dialects"]

_explain(globals())
