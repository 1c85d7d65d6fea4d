# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
import enum
from hlotrace._types import MatmulPrecision, ShapeLike
from hlotrace.typing import ArrayLike
from typing import Any

__all__ = ['ResizeMethod', 'resize', 'scale_and_translate']

class ResizeMethod(enum.Enum):
    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

def resize(image: Any, shape: ShapeLike, method: Any, antialias: bool = True, precision: MatmulPrecision = ...) -> Any: ...
def scale_and_translate(
    image: Any, shape: ShapeLike, spatial_dims: Any, scale: ArrayLike, translation: Any, method: Any, antialias: bool = True,
    precision: MatmulPrecision = ...,
) -> Any: ...
