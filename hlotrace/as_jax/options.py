"""The options as `jax._src.config` names them: each has a `.value` and gives a context manager; and new ones.
"""
import contextlib
import enum
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..api import contexts
from ..api.contexts import OptionContext
from ..core.config import checks, config, state

update = config.update
_CONTEXTS = {name: x for name, x in vars(contexts).items() if isinstance(x, OptionContext)}
_FUNCTIONS = {"transfer_guard"}      # of JAX's module too
_UPGRADE = " It will be on for all, and then be gone."
_WORDS = {"y": True, "yes": True, "t": True, "true": True, "on": True, "1": True,
          "n": False, "no": False, "f": False, "false": False, "off": False, "0": False}


def bool_env(varname: str, default: bool) -> bool:
    """A boolean of the environment."""
    text = os.environ.get(varname, str(default)).lower()
    if text not in _WORDS:
        raise ValueError(f"invalid truth value {text!r} for environment {varname!r}")
    return _WORDS[text]


def int_env(varname: str, default: int) -> int:
    """An integer of the environment."""
    return int(os.environ.get(varname, default))


def _number(kind: type, *kinds: type) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if isinstance(value, str):          # from the environment, or wrong
            with contextlib.suppress(ValueError):
                return kind(value)
        if value is not None and not isinstance(value, (kind, *kinds)):
            raise ValueError(f"new {kind.__name__} config value must be None or of type {kind.__name__}, "
                             f"got {value} of type {type(value)}")
        return value
    return parse


def _truth(value: Any) -> bool:
    if isinstance(value, str) and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    if not isinstance(value, (bool, int)):
        raise ValueError(f"new bool config value must be of type bool, got {value} of type {type(value)}")
    return bool(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"new string config value must be of type str, got {value} of type {type(value)}.")
    return value


def _one_of(values: Sequence[str], none: bool = False) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if value not in values and not (none and value is None):
            raise ValueError(f"new enum value must be {'None or ' * none}in {[*values]}, got {value} of type "
                             f"{type(value)}.")
        return value
    return parse


def _state(name: str, default: Any, help: str, parse: Callable[[Any], Any], *, on: Any = ...,
           update_global_hook: Callable[[Any], None] | None = None,
           update_thread_local_hook: Callable[[Any], None] | None = None, include_in_jit_key: bool = False,
           include_in_trace_context: bool = False, validator: Callable[[Any], None] | None = None,
           upgrade: bool = False, extra_description: str = "") -> OptionContext:
    def checked(value: Any) -> Any:
        value = parse(value)
        if validator is not None:
            validator(value)
        return value
    config.define(name, default, checked, include_in_jit_key or include_in_trace_context)
    if update_global_hook is not None:
        update_global_hook(config.read(name))
        checks[name] = update_global_hook
    option = contexts.option_context(name, on, f"{help}{extra_description}{_UPGRADE * upgrade}")
    if update_thread_local_hook is not None:
        tell, block = update_thread_local_hook, option.__wrapped__

        @contextlib.contextmanager
        def telling(inside: contextlib.AbstractContextManager[None]) -> Iterator[None]:
            with inside:
                tell(config.read(name))
                yield
            tell((state.overrides or {}).get(name))
        option.__wrapped__ = lambda *value: telling(block(*value))
    return option


def bool_state(name: str, default: bool, help: str, **options: Any) -> OptionContext:
    """A new option that is True or False."""
    if not isinstance(default, bool):
        raise TypeError(f"Default value must be of type bool, got {default} of type {type(default).__name__}")
    return _state(name, default, help, _truth, on=True, **options)


def _maker(parse: Callable[[Any], Any], what: str) -> Callable[..., OptionContext]:
    def state(name: str, default: Any, help: str, **options: Any) -> OptionContext:
        return _state(name, default, help, parse, **options)
    state.__doc__ = f"A new option that is {what}."
    return state


int_state = _maker(_number(int), "an integer")
float_state = _maker(_number(float, int), "a number")
string_state = _maker(_text, "a text")
optional_string_state = _maker(lambda value: value if value is None else _text(value), "a text or None")
string_or_object_state = _maker(lambda value: value, "of any value")


def enum_state(name: str, enum_values: Sequence[str], default: str, help: str, *,
               extra_validator: Callable[[str], None] | None = None, **options: Any) -> OptionContext:
    """A new option that is one of several texts."""
    if default not in enum_values:
        raise ValueError(f'Invalid value "{default}" for JAX flag {name}')
    return _state(name, default, help, _one_of(enum_values), validator=extra_validator, **options)


def optional_enum_state(name: str, enum_values: Sequence[str], default: str | None, help: str,
                        **options: Any) -> OptionContext:
    """A new option that is one of several texts, or None."""
    return _state(name, default, help, _one_of(enum_values, True), **options)


def enum_class_state(name: str, enum_class: type[enum.Enum], default: enum.Enum, help: str, *,
                     extra_validator: Callable[[Any], None] | None = None, **options: Any) -> OptionContext:
    """A new option that is a member of an enum, or its name."""
    def parse(value: Any) -> enum.Enum:
        if isinstance(value, enum_class):
            return value
        return enum_class[_one_of([*enum_class.__members__])(value)]
    return _state(name, default, help, parse, validator=extra_validator, **options)


bool_flag, int_flag, float_flag, string_flag = bool_state, int_state, float_state, optional_string_state


def enum_flag(name: str, default: str, enum_values: Sequence[str], help: str) -> OptionContext:
    """As `enum_state`."""
    return enum_state(name, enum_values, default, help)


def __dir__() -> list[str]:
    names = {*config.values, *[name.removeprefix("jax_") for name in config.values]}
    made = {name for name in globals() if name.endswith(("_env", "_flag", "_state"))}
    return ["update", *(made | names - _FUNCTIONS)]


def __getattr__(name: str) -> Any:
    option = name if name in config.values else f"jax_{name}"
    if option not in config.values:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    if name in _CONTEXTS:
        return _CONTEXTS[name]
    return contexts.option_context(option, True if isinstance(config.read(option), bool) else ..., "")
