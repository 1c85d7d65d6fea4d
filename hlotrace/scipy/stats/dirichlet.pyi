# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace import Array
from hlotrace.typing import ArrayLike

__all__ = ['logpdf', 'pdf']

def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array: ...
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array: ...
