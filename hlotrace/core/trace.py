"""The current trace, and what its values are: the base of all transformations, and eager evaluation.

There is one current trace on each thread (`state.trace`).  `primitive.bind` hands the call to it; a rule runs
with the trace's parent as the current one.  At the bottom `EvalTrace` evaluates.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from . import errors
from .array import Array
from .avals import ShapedArray
from .config import inside, state, sync
from .debug_info import located
from .jaxpr import Jaxpr, eval_jaxpr
from .primitive import Primitive
from .surface.boundary import boundaries
from .symbolic.dimension import surely

R = TypeVar("R")


class Trace:
    """Base of the interpreters.  `parent` is the trace that was current when this one was made.

    Users write theirs with a rule `process_primitive(primitive, args, params)`, which is called under
    evaluation; what is beneath it, `take_current_trace` of `extend.core` gives.
    """
    __slots__ = ("parent", "alive", "staging", "made", "fun", "__weakref__")
    parent: Any         # a Trace; None for that at the bottom
    what = "a transformation"

    def __init__(self, *parent: Trace | None) -> None:
        self.parent, = parent or [state.trace]
        self.alive = True
        self.fun: Any = None        # what is traced
        # {id: (value, its tangent)} of values of HiTypes that belong to it: hitypes.py
        self.made: dict[int, tuple[Any, Any]] | None = None
        # is what is bound written into a program?
        self.staging: bool = self.parent is not None and self.parent.staging

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        params = params if primitive.also is None else primitive.also(params)
        if not hasattr(self, "process_primitive"):
            raise NotImplementedError(f"{type(self).__name__} has no rule process_primitive(self, primitive, "
                                      f"args, params), which is to say what it does with {primitive}")
        with entering(EVAL):
            return self.process_primitive(primitive, args, params)

    @property
    def parent_trace(self) -> Any:
        """The parent, by JAX's name."""
        return self.parent

    @parent_trace.setter
    def parent_trace(self, parent: Any) -> None:
        self.parent = parent

    def enclosing(self) -> Iterator[Any]:
        """The traces that were going on when this one was made, from the inside."""
        trace = self.parent
        while trace is not None:
            yield trace
            trace = trace.parent

    def full_raise(self, x: Any) -> Any:
        """A value as the traces of users see it: itself."""
        return x

    def words(self) -> str:
        """What is tracing, as in "vmap of loss"."""
        origin = getattr(self.fun, "origin", None)
        return self.what if origin is None else f"{origin.what} of {origin.name}"

    def run(self, function: Callable[..., R], *args: Any, scope: str = "") -> R:
        """`function(*args)` with this as the current trace, which is dead afterwards, in one more scope.

        The trace and the scopes outside of it are current again before anything that a Ctrl-C could
        interrupt, as it could a `with`: where nothing encloses this, they would stay.
        """
        self.fun = function if self.fun is None else self.fun
        saved, scopes = state.trace, state.name_stack
        within = inside(scope) if scope else scopes
        state.trace, state.name_stack = self, within
        try:
            return function(*args)
        finally:
            state.trace, state.name_stack = saved, scopes
            self.alive = False
            if saved is EVAL:
                sync()

    def outside(self, function: Callable[..., R], *args: Any) -> R:
        """`function(*args)` with the parent as the current trace."""
        saved, state.trace = state.trace, self.parent
        try:
            return function(*args)
        finally:
            state.trace = saved

    def splice(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        """Do what a program without constvars does, in this trace, which must be the current one.

        The equations take the line of the caller.

        Returns:
            The list of outputs.
        """
        return eval_jaxpr(jaxpr, (), *args, propagate_source_info=False)


class entering:
    """`with entering(trace):` makes `trace` the current one."""
    __slots__ = ("trace", "saved")
    saved: Trace

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __enter__(self) -> Trace:
        self.saved = state.trace
        state.trace = self.trace
        return self.trace

    def __exit__(self, *_: object) -> None:
        state.trace = self.saved
        if self.saved is EVAL:
            sync()


def _no_runtime(*_: Any) -> NoReturn:
    raise RuntimeError("no runtime is installed: import hlotrace, not hlotrace.core")


class EvalTrace(Trace):
    """The bottom: operands are concrete arrays and a primitive is run at once."""
    __slots__ = ()
    what = "eager evaluation"
    process: Any = staticmethod(_no_runtime)


def set_evaluator(function: Callable[[Primitive, Sequence[Any], dict[str, Any]], Any]) -> None:
    """The runtime gives `function(primitive, args, params)`, which compiles and runs one primitive."""
    EvalTrace.process = staticmethod(function)


EVAL = EvalTrace(None)
type(state).trace = EVAL


class CompileTimeTrace(Trace):
    """Evaluates at once what has concrete operands alone; else the innermost trace of the tracers does it."""
    __slots__ = ()
    what = "ensure_compile_time_eval"

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.staging = False

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        traces = {a._trace for a in args if isinstance(a, Tracer)}
        trace = self.parent if traces else EVAL
        while trace is not EVAL and trace not in traces:
            trace = trace.parent
        with entering(trace):
            return trace.process(primitive, args, params)


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Context manager in which operations on concrete values are done at once, also while tracing.

    Those on tracers are traced as they are outside of it.

    >>> @jax.jit
    ... def f(x):
    ...     with jax.ensure_compile_time_eval():
    ...         size = int(jnp.log2(jnp.float32(8)))     # a number, not a tracer
    ...     return jnp.full(size, x)
    >>> f(5)
    Array([5, 5, 5], dtype=int32, weak_type=True)
    """
    with entering(EVAL if state.trace is EVAL else CompileTimeTrace(state.trace)):
        yield


@boundaries(called="Array", but="concrete inner under origin")
class Tracer(Array):
    """What represents an array while a transformation runs a function."""
    __slots__ = ("_trace", "aval")
    __array_priority__ = 1000       # in the operators of NumPy's arrays, before all others
    _trace: Any
    aval: ShapedArray

    def __init__(self, trace: Trace, aval: ShapedArray | None = None) -> None:
        self._trace = trace
        if aval is not None:        # else the class has it as a property
            self.aval = aval

    def concrete(self) -> Any:
        """The concrete array behind this tracer, or None: grad and jvp run on real values, jit does not."""
        return None

    def inner(self) -> Any:
        """What it is a value of an outer trace with something beside; None for one of a program."""
        return None

    def under(self) -> str:
        """What is tracing, in words."""
        inner = self.inner()
        return inner.under() if isinstance(inner, Tracer) else self._trace.words()

    def origin(self) -> str:
        """"was computed at <line>" or "is argument <path> of <function>", or an empty string."""
        inner = self.inner()
        return inner.origin() if isinstance(inner, Tracer) else ""

    def depends_on(self) -> list[str]:
        """The arguments, by their paths, of the function traced that decide about the value."""
        inner = self.inner()
        return inner.depends_on() if isinstance(inner, Tracer) else []

    def traced_for(self) -> str:
        """"<function> at <line> traced for <transformation>", or an empty string."""
        inner, origin = self.inner(), getattr(self._trace.fun, "origin", None)
        if isinstance(inner, Tracer):
            return inner.traced_for()
        return "" if origin is None else f"{located(origin.name, origin.code)} traced for {origin.what}"

    def _known(self, error: Callable[..., Exception], *args: Any) -> Any:
        value = self.concrete()
        if value is None:
            raise error(self, *args) if self._trace.alive else errors.leaked_tracer(self)
        return value

    def __bool__(self) -> bool:
        if self.aval.ndim and self._trace.alive and surely(self.aval.size, low=2):
            raise ValueError("The truth value of an array with more than one element is ambiguous. Use "
                             "a.any() or a.all()")
        return bool(self._known(errors.bool_conversion))

    def __int__(self) -> int:
        return int(self._known(errors.scalar_conversion, "int"))

    def __float__(self) -> float:
        return float(self._known(errors.scalar_conversion, "float"))

    def __complex__(self) -> complex:
        return complex(self._known(errors.scalar_conversion, "complex"))

    def __index__(self) -> int:
        return self._known(errors.integer_conversion).__index__()

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise errors.array_conversion(self)

    def item(self, *args: int) -> Any:
        return self._known(errors.scalar_conversion, "item").item(*args)

    def tolist(self) -> Any:
        return self._known(errors.scalar_conversion, "tolist").tolist()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self

    def __copy__(self) -> Tracer:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        raise errors.scalar_conversion(self, "pickle")

    def block_until_ready(self) -> Tracer:
        return self

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: bool | None = None) -> NoReturn:
        raise errors.concrete_needed(self, "__dlpack__: concrete arrays alone have it", _BEFORE)

    def __jax_array__(self) -> Tracer:
        return self

    def __format__(self, spec: str) -> str:
        value = self.concrete()
        if value is None and spec and self._trace.alive:
            raise errors.format_conversion(self, spec)
        return format(value, spec) if spec and value is not None else repr(self)


_BEFORE = "Ask for it before the array is an argument of what is traced"
CONCRETE_METHODS = ("addressable_data delete devices is_deleted on_device_size_in_bytes tobytes "
                    "unsafe_buffer_pointer").split()
CONCRETE_PROPERTIES = ("addressable_shards committed global_shards is_fully_addressable is_fully_replicated "
                       "traceback").split()


def _needs_concrete(name: str) -> Callable[..., Any]:
    def refuse(self: Tracer, *_args: Any, **_named: Any) -> NoReturn:
        raise errors.concrete_needed(self, f"{name}: concrete arrays alone have it", _BEFORE)
    refuse.__name__, refuse.__qualname__ = name, f"Tracer.{name}"
    return refuse


for _name in CONCRETE_METHODS:
    setattr(Tracer, _name, _needs_concrete(_name))
for _name in CONCRETE_PROPERTIES:
    setattr(Tracer, _name, property(_needs_concrete(_name)))


def is_concrete(value: Any) -> bool:
    """False for tracers whose value is unknown; grad's tracers of real values count as concrete."""
    return not isinstance(value, Tracer) or value.concrete() is not None


def concrete_or_error(value: Any, what: str = "") -> Any:
    """The concrete array or NumPy value behind `value`.  ConcretizationTypeError where there is none."""
    if isinstance(value, Tracer):
        known = value.concrete()
        if known is None:
            raise errors.concrete_needed(value, what) if value._trace.alive else errors.leaked_tracer(value)
        return known
    return value
