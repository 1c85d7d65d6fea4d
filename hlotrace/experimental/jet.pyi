# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Callable
from typing import Any

__all__ = ['jet']

def jet(fun: Callable[..., Any], primals: Any, series: Any, factorial_scaled: bool = True) -> Any: ...
