"""JAX's `extend.lowering`: contexts of MLIR, and what lowering rules are told."""
from ..core.public import explain as _explain
from ..runtime.mlir import JaxIrContext, upstream_dialects
from ..runtime.mlir_objects import LoweringRuleContext

__all__ = ["JaxIrContext", "LoweringRuleContext", "upstream_dialects"]

_explain(globals())
