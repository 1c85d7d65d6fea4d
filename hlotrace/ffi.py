"""hlotrace.ffi: kernels that were compiled before, for example in C++, in programs."""
from .api.external.ffi import abstract_token, ffi_call
from .core.surface.public import export_names as _offer
from .runtime.executables.kernels import (
    include_dir, pycapsule, register_ffi_target, register_ffi_target_as_batch_partitionable,
    register_ffi_type, register_ffi_type_id)
from .runtime.mlir.lowering_rules import build_ffi_lowering_function, ffi_lowering

_offer(globals(), "abstract_token")
