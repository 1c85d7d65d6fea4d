"""The MLIR bindings that jaxlib ships.  They take 12 ms to import: import this where a text is parsed."""
from __future__ import annotations

import threading
from typing import Any

from ..processes.interrupts import held

with held():        # jaxlib cannot import its dialects a second time
    from jaxlib.mlir import ir, passmanager
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

__all__ = ["JaxIrContext", "context", "ir", "module_to_compile", "parse_module", "passmanager", "sdy",
           "stablehlo", "upstream_dialects"]


def parse_module(text: str) -> Any:
    """jaxlib's MLIR module for a text.  Raises MLIRError for one that does not parse."""
    return ir.Module.parse(text, context())


_of_thread = threading.local()
_READ = 1 << 22     # characters that one context parses for the compiler: it keeps all types and constants


def module_to_compile(text: str) -> Any:
    """As `parse_module`, in a context that nothing else is in, and that is made anew now and then."""
    place, read = getattr(_of_thread, "compiled", (None, _READ))
    read += len(text)
    if read > _READ:
        place, read = JaxIrContext(), len(text)
    _of_thread.compiled = place, read
    return ir.Module.parse(text, place)


upstream_dialects = ir.DialectRegistry()        # those of MLIR itself that programs use
_jax_mlir_ext.register_dialects(upstream_dialects)


class JaxIrContext(ir.Context):
    """An MLIR context with the dialects that programs use."""

    def __init__(self) -> None:
        super().__init__()
        self.append_dialect_registry(upstream_dialects)
        self.load_all_available_dialects()
        for dialect in (stablehlo, chlo, sdy):
            dialect.register_dialect(self)


def context() -> Any:
    """The MLIR context of this thread, with the dialects that programs use.

    jaxlib compiles a module without Python's lock: a text that another thread parses into the same context
    meanwhile would end the process (seen on jaxlib 0.10.2).
    """
    if not hasattr(_of_thread, "context"):
        _of_thread.context = JaxIrContext()
    return _of_thread.context
