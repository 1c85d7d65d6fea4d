"""The MLIR bindings that jaxlib ships.  They take 12 ms to import, so this file is imported where a text is parsed."""
import functools

from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo

__all__ = ["context", "ir", "parse_module", "passmanager", "sdy"]


def parse_module(text):
    """jaxlib's MLIR module for a text.  Raises MLIRError for one that does not parse."""
    return ir.Module.parse(text, context())


@functools.cache
def context():
    """The MLIR context of this process, with the dialects that programs use."""
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    chlo.register_dialect(context)
    sdy.register_dialect(context)
    return context
