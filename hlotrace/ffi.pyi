# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Callable
from typing import Any

__all__ = [
    'abstract_token', 'build_ffi_lowering_function', 'ffi_call', 'ffi_lowering', 'include_dir', 'pycapsule',
    'register_ffi_target', 'register_ffi_target_as_batch_partitionable', 'register_ffi_type', 'register_ffi_type_id',
]

abstract_token: Any
def build_ffi_lowering_function(
    call_target_name: Any, *, operand_layouts: Any = None, result_layouts: Any = None, backend_config: Any = None,
    skip_ffi_layout_processing: bool = False, **lowering_args: Any,
) -> Any: ...
def ffi_call(
    target_name: Any, result_shape_dtypes: Any, *, has_side_effect: bool = False, vmap_method: Any = None,
    input_layouts: Any = None, output_layouts: Any = None, input_output_aliases: Any = None,
    custom_call_api_version: Any = 4, legacy_backend_config: Any = None,
) -> Any: ...
def ffi_lowering(
    call_target_name: Any, *, operand_layouts: Any = None, result_layouts: Any = None, backend_config: Any = None,
    skip_ffi_layout_processing: bool = False, **lowering_args: Any,
) -> Any: ...
def include_dir() -> Any: ...
def pycapsule(funcptr: Any) -> Any: ...
def register_ffi_target(
    name: str, fn: Callable[..., Any], platform: str = 'cpu', api_version: Any = 1, *, traits: Any = 0,
) -> Any: ...
def register_ffi_target_as_batch_partitionable(name: str) -> Any: ...
def register_ffi_type(name: str, type_registration: Any, platform: str = 'cpu') -> Any: ...
def register_ffi_type_id(name: str, obj: Any, platform: str = 'cpu') -> Any: ...
