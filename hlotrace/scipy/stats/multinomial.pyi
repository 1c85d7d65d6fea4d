# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace import Array
from hlotrace.typing import ArrayLike

__all__ = ['logpmf', 'pmf']

def logpmf(x: ArrayLike, n: int, p: ArrayLike) -> Array: ...
def pmf(x: ArrayLike, n: int, p: ArrayLike) -> Array: ...
