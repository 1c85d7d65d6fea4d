"""Options and name scopes as context managers: on this thread, until the block ends."""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar

from ..core.config import config, overridden, override, state, within
from ..core.surface.boundary import filtered, reraise_for_user
from .signatures import name_of, wraps

_P = ParamSpec("_P")
_R = TypeVar("_R")


class OptionContext:
    """What sets an option on this thread, as a function; `.value` is what the option is."""
    __name__: str
    __qualname__: str

    def __init__(self, name: str, context: Callable[..., AbstractContextManager[None]]) -> None:
        self._name, self.__wrapped__ = name, context
        functools.update_wrapper(self, context)

    @property
    def value(self) -> Any:
        """The option on this thread."""
        return config.read(self._name)

    def __call__(self, *args: Any, **kwargs: Any) -> AbstractContextManager[None]:
        try:
            return self.__wrapped__(*args, **kwargs)
        except Exception as error:
            reraise_for_user(error, self.__name__, args, kwargs)
            raise

    def __bool__(self) -> bool:
        raise TypeError(f"bool() not supported for the option {self._name}: its value is "
                        f"{self.__name__}.value")

    def __repr__(self) -> str:
        return f"<option {self._name}: {self.value!r}>"

    def __reduce__(self) -> str:
        return self.__qualname__        # pickled by name, as functions are


class _Again(contextlib.ContextDecorator):
    """A block with an option set, which may be entered again, also inside of itself."""

    def __init__(self, name: str, value: Any) -> None:
        self._option: tuple[str, Any] = name, value
        self._entered: list[AbstractContextManager[None]] = []

    def __enter__(self) -> None:
        block = override(*self._option)
        block.__enter__()
        self._entered.append(block)

    def __exit__(self, *error: Any) -> None:
        self._entered.pop().__exit__(*error)


def option_context(name: str, default: Any, doc: str) -> OptionContext:
    """An OptionContext for option `name`; `default` ... means that a value must be given."""
    if default is ...:
        def context(new_val: Any) -> AbstractContextManager[None]:
            return _Again(name, config._check(name, new_val))      # checked where it is written
    else:
        def context(new_val: Any = default) -> AbstractContextManager[None]:     # type: ignore[misc]
            return _Again(name, config._check(name, new_val))
    context.__name__ = context.__qualname__ = name.removeprefix("jax_")
    context.__doc__ = f"Context manager that sets the option `{name}` on this thread.\n{doc}"
    return OptionContext(name, context)


enable_x64 = option_context("jax_enable_x64", True, """
    Whether 64-bit dtypes stay what they are; without it they become 32-bit ones.

    >>> with jax.enable_x64():
    ...     jnp.arange(2.).dtype, jnp.array(1).dtype
    (dtype('float64'), dtype('int64'))
    """)
debug_nans = option_context("jax_debug_nans", True, """
    FloatingPointError where an operation gives a NaN.

    >>> with jax.debug_nans():
    ...     jnp.log(jnp.array([1., -1.]))
    Traceback (most recent call last):
        ...
    FloatingPointError: jnp.log(float32[2]): invalid value (nan) encountered in log. ...
    """)
debug_infs = option_context("jax_debug_infs", True, """
    FloatingPointError where an operation gives an infinity.

    >>> with jax.debug_infs():
    ...     jnp.array([1., 2.]) / 0
    Traceback (most recent call last):
        ...
    FloatingPointError: (float32[2]) / (0): invalid value (inf) encountered in div. ...
    """)
log_compiles = option_context("jax_log_compiles", True, """
    Warnings, by the logger `hlotrace`, of what is traced, lowered and compiled, and for how long.

    >>> import logging, sys
    >>> handler = logging.StreamHandler(sys.stdout)
    >>> logging.getLogger("hlotrace").addHandler(handler)
    >>> with jax.log_compiles():
    ...     _ = jax.jit(lambda x: x + 1)(1)
    Finished tracing <lambda> for jit in ... sec
    ...
    >>> logging.getLogger("hlotrace").removeHandler(handler)
    """)
explain_cache_misses = option_context("jax_explain_cache_misses", True, """
    Whether the logger `hlotrace` reports why a function is traced again; None: from the third time on.

    >>> import logging, sys
    >>> handler = logging.StreamHandler(sys.stdout)
    >>> logging.getLogger("hlotrace").addHandler(handler)
    >>> f = jax.jit(lambda x: x + 1)
    >>> with jax.explain_cache_misses():
    ...     _ = f(1), f(2.)
    <lambda>: retrace 1: x: weak i32[] -> weak f32[], called at ...
    >>> logging.getLogger("hlotrace").removeHandler(handler)
    """)
checking_leaks = option_context("jax_check_tracer_leaks", True, """
    An exception where a tracer outlives the function that was traced.

    >>> kept = []
    >>> with jax.checking_leaks():
    ...     jax.jit(kept.append)(1.)
    Traceback (most recent call last):
        ...
    hlotrace.errors.UnexpectedTracerError: Leaked trace of jit of append: when it ended, these values were ...
    """)
check_tracer_leaks = checking_leaks     # its newer name, that of the option
default_device = option_context("jax_default_device", ..., """
    Where values are placed that nothing else places: a Device, or the name of a platform.

    >>> with jax.default_device(jax.devices()[-1]):
    ...     jnp.ones(2).devices() == {jax.devices()[-1]}
    True
    """)
default_matmul_precision = option_context("jax_default_matmul_precision", ..., """
    What matrix products without a `precision` compute in: "bfloat16", "tensorfloat32", "float32", ...

    >>> with jax.default_matmul_precision("float32"):
    ...     "HIGHEST" in jax.jit(jnp.dot).lower(jnp.ones(2), jnp.ones(2)).as_text()
    True
    """)
numpy_dtype_promotion = option_context("jax_numpy_dtype_promotion", ..., """
    "strict": dtypes that differ are a TypePromotionError; "standard": they are promoted.

    >>> with jax.numpy_dtype_promotion("strict"):
    ...     jnp.ones(2) + jnp.arange(2)
    Traceback (most recent call last):
        ...
    hlotrace.errors.TypePromotionError: (float32[2]) + (int32[2]): Input dtypes ('float32', 'int32') have ...
    """)
numpy_rank_promotion = option_context("jax_numpy_rank_promotion", ..., """
    What broadcasting to more axes is: "allow", "warn" or "raise".

    >>> with jax.numpy_rank_promotion("raise"):
    ...     jnp.ones((2, 3)) + jnp.ones(3)
    Traceback (most recent call last):
        ...
    ValueError: (float32[2,3]) + (float32[3]): Operands could not be broadcast together for add on shapes ...
    """)
debug_key_reuse = option_context("jax_debug_key_reuse", True, """
    KeyReuseError where a typed PRNG key is used twice; see `experimental.key_reuse`.

    >>> key = jax.random.key(0)
    >>> with jax.debug_key_reuse():
    ...     jax.random.normal(key) + jax.random.uniform(key)
    Traceback (most recent call last):
        ...
    hlotrace.errors.KeyReuseError: random.uniform(key: key<fry>[]): Previously-consumed key passed to ...
    """)
default_prng_impl = option_context("jax_default_prng_impl", ..., """
    The generator of new keys: "threefry2x32", "rbg" or "unsafe_rbg".

    >>> with jax.default_prng_impl("rbg"):
    ...     jax.random.key(0).dtype
    key<rbg>
    """)
enable_custom_prng = option_context("jax_enable_custom_prng", True, """
    Whether `random.PRNGKey` makes typed keys, as `random.key` does.

    >>> with jax.enable_custom_prng():
    ...     jax.random.PRNGKey(0).dtype
    key<fry>
    """)
legacy_prng_key = option_context("jax_legacy_prng_key", ..., """
    What it is to use a key that is an array of uint32: "allow", "warn" or "error".

    >>> with jax.legacy_prng_key("error"):
    ...     jax.random.normal(jax.random.PRNGKey(0))
    Traceback (most recent call last):
        ...
    ValueError: random.normal(uint32[2]): a key of the old kind, an array of uint32, was given to a ...
    """)
softmax_custom_jvp = option_context("jax_softmax_custom_jvp", True, """
    Whether `nn.softmax` and `nn.log_softmax` have derivatives of their own, which are quicker and exacter.

    >>> with jax.softmax_custom_jvp(False):
    ...     jax.nn.softmax(jnp.zeros(2))
    Array([0.5, 0.5], dtype=float32)
    """)
threefry_partitionable = option_context("jax_threefry_partitionable", True, """
    Whether a device can make its part of random numbers alone; the numbers differ.

    >>> with jax.threefry_partitionable(False):
    ...     jax.random.uniform(jax.random.key(1))
    Array(0.11815023, dtype=float32)
    >>> jax.random.uniform(jax.random.key(1))
    Array(0.4386325, dtype=float32)
    """)
allow_f16_reductions = option_context("jax_allow_f16_reductions", True, """
    Off: ValueError where float16 or bfloat16 are summed in their own dtype, as lax.reduce_sum does; jnp.sum
    sums in float32.

    >>> with jax.allow_f16_reductions(False):
    ...     jnp.ones(3, 'bfloat16').sum()
    Array(3, dtype=bfloat16)
    """)
auto_pcast = option_context("jax_auto_pcast", True, """
    In shard_map, values that differ between devices meet others; off, ValueError unless lax.pcast says so.

    >>> with jax.auto_pcast(True):
    ...     y = jnp.ones(3) + 1
    """)
enable_checks = option_context("jax_enable_checks", True, """
    Each traced program is checked: its variables are bound, its types are those of its operations' rules.

    >>> with jax.enable_checks():
    ...     y = jax.jit(lambda x: x + 5)(1.)
    """)
jax2tf_associative_scan_reductions = option_context("jax2tf_associative_scan_reductions", True, """
    Nothing: there is no jax2tf.

    >>> with jax.jax2tf_associative_scan_reductions(True):
    ...     y = jnp.cumsum(jnp.ones(3))
    """)
no_execution = option_context("jax_no_execution", True, """
    RuntimeError where a program would run.  Tracing, lowering and compiling go on.

    >>> with jax.no_execution():
    ...     jax.eval_shape(jnp.sin, 1.).dtype
    dtype('float32')
    """)
no_tracing = option_context("jax_no_tracing", True, """
    RuntimeError where a function would be traced, or an operation compiled, for types that are new to it.

    >>> f = jax.jit(lambda x: x + 6)
    >>> y = f(1.)
    >>> with jax.no_tracing():
    ...     float(f(2.))
    8.0
    """)
remove_size_one_mesh_axis_from_type = option_context("jax_remove_size_one_mesh_axis_from_type", True, """
    NotImplementedError but for False: types name all axes along which a value varies.

    >>> with jax.remove_size_one_mesh_axis_from_type(False):
    ...     y = jnp.ones(3)
    """)


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Context manager in which jit, scan, cond and loops run as plain Python.

    To step through a function with a debugger, or to print values.

    >>> @jax.jit
    ... def f(x):
    ...     print("x is", x)
    ...     return x + 1
    >>> with jax.disable_jit():
    ...     f(jnp.array([1, 2]))
    x is [1 2]
    Array([2, 3], dtype=int32)
    """
    return override("jax_disable_jit", disable)


class _UserContext:
    """A user's value that traced functions may depend on: `with context(value):` sets it, `.value` reads."""
    __slots__ = ("default",)

    def __init__(self, default: Any) -> None:
        self.default = default

    @property
    def value(self) -> Any:
        return (state.overrides or {}).get(self, self.default)

    def __call__(self, value: Any) -> AbstractContextManager[None]:
        hash(value)     # or a TypeError
        return overridden(self, value)


def make_user_context(default_value: Any = None) -> _UserContext:
    """A value that functions read while they are traced: where it is another, they are traced again.

    `with context(value):` sets it on this thread until the block ends, to something hashable; `context.value`
    is what is set, or `default_value`.

    >>> scale = jax.make_user_context(1)
    >>> f = jax.jit(lambda x: x * scale.value)
    >>> float(f(2.))
    2.0
    >>> with scale(10):
    ...     float(f(2.))
    20.0
    """
    return _UserContext(default_value)


def named_scope(name: str) -> AbstractContextManager[None]:
    """Operations traced in this block carry `name` in their location, profiles and dumps.

    A context manager, or a decorator.

    >>> def f(x):
    ...     with jax.named_scope("attention"):
    ...         return jnp.exp(x)
    >>> "attention/exp" in jax.jit(f).lower(1.).as_text(debug_info=True)
    True
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope name argument must be a string, got {name!r}.")
    return _within(name)


@contextlib.contextmanager
def _within(name: str) -> Iterator[None]:
    with within(name):      # in the scopes of where it is entered, not where a decorator is written
        yield


def named_call(fun: Callable[_P, _R], *, name: str | None = None) -> Callable[_P, _R]:
    """`fun` run in a named scope, under its own name unless `name` is given.

    >>> f = jax.named_call(lambda x: jnp.exp(x), name="softly")
    >>> "softly" in jax.jit(f).lower(1.).as_text(debug_info=True)
    True
    """
    @filtered
    @wraps(fun)
    def named(*args: Any, **kwargs: Any) -> Any:
        with named_scope(name or name_of(fun)):
            return fun(*args, **kwargs)
    return named
