"""The MLIR bindings that jaxlib ships.  They take 12 ms to import, so this file is imported where a text is parsed."""
import threading

from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo

__all__ = ["context", "ir", "parse_module", "passmanager", "sdy"]


def parse_module(text):
    """jaxlib's MLIR module for a text.  Raises MLIRError for one that does not parse."""
    return ir.Module.parse(text, context())


_of_thread = threading.local()


def context():
    """The MLIR context of this thread, with the dialects that programs use.

    jaxlib compiles a module without Python's lock: a text that another thread parses into the same context meanwhile would
    end the process (seen on jaxlib 0.10.2).
    """
    if not hasattr(_of_thread, "context"):
        registry = ir.DialectRegistry()
        _jax_mlir_ext.register_dialects(registry)
        context = _of_thread.context = ir.Context()
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
        stablehlo.register_dialect(context)
        chlo.register_dialect(context)
        sdy.register_dialect(context)
    return _of_thread.context
