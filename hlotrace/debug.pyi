# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Callable
from hlotrace._types import Place, ShapeLike
from hlotrace.typing import ArrayLike
from typing import Any

__all__ = ['callback', 'inspect_array_sharding', 'print', 'visualize_array_sharding', 'visualize_sharding']

def callback(
    callback: Callable[..., Any], *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any,
) -> None: ...
def inspect_array_sharding(value: Any, *, callback: Callable[..., Any]) -> None: ...
def print(
    fmt: str, *args: Any, ordered: bool = False, partitioned: bool = False, skip_format_check: bool = False, **kwargs: Any,
) -> None: ...
def visualize_array_sharding(arr: ArrayLike, **options: Any) -> Any: ...
def visualize_sharding(
    shape: ShapeLike, sharding: Place, *, use_color: bool = True, scale: ArrayLike = 1.0, min_width: int = 9,
    max_width: int = 80, as_svg: bool | None = None,
) -> Any: ...
