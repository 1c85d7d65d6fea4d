# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace import Array
from hlotrace.typing import ArrayLike
from typing import Any

__all__ = ['logpmf', 'pmf']

def logpmf(k: int, n: int, a: ArrayLike, b: ArrayLike, loc: Any = 0) -> Array: ...
def pmf(k: int, n: int, a: ArrayLike, b: ArrayLike, loc: Any = 0) -> Array: ...
