"""`jax._src.deprecations`: what goes away is told by a warning, and by an error once it is accelerated."""
import functools
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

_accelerated: dict[Any, bool] = {}


def _known(deprecation_id: Any) -> Any:
    if deprecation_id not in _accelerated:
        raise ValueError(f"{deprecation_id=} not registered.")
    return deprecation_id


def register(deprecation_id: Any) -> None:
    """Make an id known, again if need be: it is not accelerated."""
    _accelerated[deprecation_id] = False


def unregister(deprecation_id: Any) -> None:
    """Forget an id."""
    del _accelerated[_known(deprecation_id)]


def accelerate(deprecation_id: Any) -> None:
    """From now on, what warned raises."""
    _accelerated[_known(deprecation_id)] = True


def is_accelerated(deprecation_id: Any) -> bool:
    """Does what is deprecated raise?"""
    return _accelerated[_known(deprecation_id)]


def warn(deprecation_id: Any, message: str, stacklevel: int, *,
         error_class: type[Exception] = ValueError) -> None:
    """A DeprecationWarning, or an error where that is accelerated."""
    if is_accelerated(deprecation_id):
        raise error_class(message)
    warnings.warn(message, category=DeprecationWarning, stacklevel=stacklevel + 1)


def deprecation_getattr(module: str, deprecations: Mapping[str, tuple[str, Any]]) -> Callable[[str], Any]:
    """A module's `__getattr__`: name -> (message, value) warns, or raises where the value is None."""
    for name in deprecations:
        register((module, name))

    def read(name: str) -> Any:
        if name not in deprecations:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        message, value = deprecations[name]
        if value is None:
            raise AttributeError(message)
        warn((module, name), message, stacklevel=2, error_class=functools.partial(  # type: ignore[arg-type]
            AttributeError, name=name))
        return value
    return read


def _attribute(module: ModuleType, name: str) -> tuple[str, str]:
    if name not in module._deprecations:
        raise ValueError(f"{name!r} is no deprecated attribute of the module {module.__name__!r}")
    return module.__name__, name


def accelerate_getattr_deprecation(module: ModuleType, name: str) -> None:
    """From now on, reading a deprecated attribute of a module, which has `_deprecations`, raises."""
    accelerate(_attribute(module, name))


def is_accelerated_attribute(module: ModuleType, name: str) -> bool:
    """Does reading a deprecated attribute of a module raise?"""
    return is_accelerated(_attribute(module, name))
