# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from typing import Any

__all__ = ['vq']

def vq(obs: Any, code_book: Any, check_finite: bool = True) -> Any: ...
