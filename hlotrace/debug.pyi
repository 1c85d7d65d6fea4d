# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Callable
from hlotrace._types import Place, ShapeLike
from hlotrace.typing import ArrayLike
from typing import Any

__all__ = [
    'DebugEffect', 'OrderedDebugEffect', 'breakpoint', 'callback', 'inspect_array_sharding', 'log', 'print',
    'visualize_array_sharding', 'visualize_sharding',
]

class DebugEffect:
    def __init__(self, ordered: bool = False, at_run_time: bool = True) -> None: ...
    @property
    def at_run_time(self) -> Any: ...
    @property
    def batchable(self) -> Any: ...
    @property
    def ordered(self) -> Any: ...

class OrderedDebugEffect:
    def __init__(self) -> None: ...
    @property
    def at_run_time(self) -> Any: ...
    @property
    def batchable(self) -> Any: ...
    @property
    def ordered(self) -> Any: ...

def breakpoint(
    *, backend: str | None = None, filter_frames: bool = True, num_frames: Any = None, ordered: bool = False,
    token: Any = None, **kwargs: Any,
) -> Any: ...
def callback(
    callback: Callable[..., Any] | None = None, *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any,
) -> None: ...
def inspect_array_sharding(value: Any, *, callback: Callable[..., Any]) -> None: ...
def log(
    fmt: str | None = None, *args: Any, ordered: bool = False, partitioned: bool = False, skip_format_check: bool = False,
    **kwargs: Any,
) -> Any: ...
def print(
    fmt: str | None = None, *args: Any, ordered: bool = False, partitioned: bool = False, skip_format_check: bool = False,
    **kwargs: Any,
) -> None: ...
def visualize_array_sharding(arr: ArrayLike, **options: Any) -> Any: ...
def visualize_sharding(
    shape: ShapeLike, sharding: Place, *, use_color: bool = True, scale: ArrayLike = 1.0, min_width: int = 9,
    max_width: int = 80, as_svg: bool | None = None,
) -> Any: ...
