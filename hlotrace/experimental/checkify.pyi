# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.typing import ArrayLike
from typing import Any, TypeAlias

__all__ = [
    'Error', 'ErrorCategory', 'JaxRuntimeError', 'all_checks', 'automatic_checks', 'check', 'check_error', 'checkify',
    'debug_check', 'div_checks', 'float_checks', 'index_checks', 'init_error', 'nan_checks', 'user_checks',
]

class Error:
    def __init__(self, values: ArrayLike = ..., failures: Any = None) -> None: ...
    def get(self) -> Any: ...
    def get_exception(self) -> Any: ...
    def throw(self) -> Any: ...

ErrorCategory: TypeAlias = Any

class JaxRuntimeError(ValueError): ...
all_checks: Any
automatic_checks: Any
def check(pred: ArrayLike, msg: Any, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> Any: ...
def check_error(error: Any) -> Any: ...
def checkify(f: Any, errors: Any = ...) -> Any: ...
def debug_check(pred: ArrayLike, msg: Any, *fmt_args: Any, **fmt_kwargs: Any) -> Any: ...
div_checks: Any
float_checks: Any
index_checks: Any
init_error: Any
nan_checks: Any
user_checks: Any
