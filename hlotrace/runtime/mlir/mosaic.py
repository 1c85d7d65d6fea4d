"""Kernels for TPUs as libtpu reads them: the dialects of a text in a form that outlives their versions."""
from __future__ import annotations

import io
from typing import Any

from ..processes.interrupts import held
from .bindings import ir, passmanager, upstream_dialects

with held():        # as in bindings.py
    from jaxlib.mlir._mlir_libs import _tpu_ext

_SERIALIZE = "builtin.module(mosaic-serde{serialize=true})"


def parsed(text: str) -> Any:
    """jaxlib's MLIR module, verified, for the text of a kernel.  Raises MLIRError for what is none."""
    context = ir.Context()
    context.append_dialect_registry(upstream_dialects)
    context.load_all_available_dialects()
    _tpu_ext.register_dialect(context)
    context.allow_unregistered_dialects = True      # those of the form that is written
    return ir.Module.parse(text, context)


def serialized(text: str) -> bytes:
    """The bytes for `tpu_custom_call` of the text of a kernel."""
    module, written = parsed(text), io.BytesIO()
    with module.context:
        passmanager.PassManager.parse(_SERIALIZE).run(module.operation)
    module.operation.write_bytecode(written, desired_version=0)
    return written.getvalue()
