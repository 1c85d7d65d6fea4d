# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace import Array
from hlotrace.typing import ArrayLike
from typing import Any

__all__ = ['logpdf', 'pdf']

def logpdf(x: ArrayLike, df: Any, loc: Any = 0, scale: ArrayLike = 1) -> Array: ...
def pdf(x: ArrayLike, df: Any, loc: Any = 0, scale: ArrayLike = 1) -> Array: ...
