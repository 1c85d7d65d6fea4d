# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace import Array
from hlotrace.typing import ArrayLike
from typing import Any

__all__ = ['logpdf', 'pdf']

def logpdf(x: ArrayLike, mean: ArrayLike, cov: Any, allow_singular: Any = None) -> Array: ...
def pdf(x: ArrayLike, mean: ArrayLike, cov: Any) -> Array: ...
