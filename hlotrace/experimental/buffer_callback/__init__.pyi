# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
import enum
from collections.abc import Callable
from hlotrace.typing import DTypeLike
from typing import Any

__all__ = ['Buffer', 'ExecutionContext', 'ExecutionStage', 'buffer_callback']

class Buffer:
    def __init__(self, value: Any, writeable: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def ndim(self) -> Any: ...
    @property
    def shape(self) -> Any: ...
    @property
    def writeable(self) -> Any: ...
    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Any: ...
    def __dlpack__(self, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> Any: ...

class ExecutionContext:
    @property
    def stage(self) -> Any: ...
    @property
    def stream(self) -> Any: ...

class ExecutionStage(enum.Enum):
    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3

def buffer_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *, has_side_effect: bool = False, vmap_method: Any = None,
    input_output_aliases: Any = None, command_buffer_compatible: bool = False,
) -> Any: ...
