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


# What `context` and `module_to_compile` have, by number of the thread.  It is not local to threads: where
# those of jaxlib call Python that ends with each call, and a context that is freed then crashes the process.
_contexts: dict[int, Any] = {}
_compiled_in: dict[int, tuple[Any, int]] = {}
_READ = 1 << 22     # characters that one context parses for the compiler: it keeps all types and constants


def module_to_compile(text: str) -> Any:
    """As `parse_module`, in a context that nothing else is in, and that is made anew now and then."""
    thread = threading.get_ident()
    place, read = _compiled_in.get(thread, (None, _READ))
    read += len(text)
    if read > _READ:
        place, read = JaxIrContext(), len(text)
    _compiled_in[thread] = place, read
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
    thread = threading.get_ident()
    if thread not in _contexts:
        _contexts[thread] = JaxIrContext()
    return _contexts[thread]
