"""jit: trace a function once for each type of its arguments, compile it, call the compiled program.

A call of arrays, numbers and static values is found by their types (`fast_path.py`); another flattens its
arguments and looks up their structure, types and static values.  While another transformation is tracing, the
call is written down as one `jit` equation.  What is no array goes in and out by its adapter (`adapters.py`);
`placement/jit_placement.py` says where it runs.
"""
from __future__ import annotations

import enum
import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..core import dtypes, source_info
from ..core.avals import aval_of
from ..core.caches import types
from ..core.config import config, named_axes, state
from ..core.errors import check_callable
from ..core.jaxpr import eval_jaxpr
from ..core.pytrees import pytree
from ..core.refs import accesses
from ..core.surface.boundary import filtered
from ..core.trace import EVAL
from ..placement.jit_placement import Placement, maps_devices
from ..primitives.programs.calls import jit_p
from ..runtime import evaluate
from ..runtime.array_impl import ArrayImpl
from ..runtime.devices import placement
from ..runtime.executables.progress import stage
from . import adapters, refs, stages  # noqa: F401 - refs registers the adapter of Refs
from .compiled_calls import CACHES, WRONG_DEVICE, StatefulCall, call_of
from .donation_warnings import warn_unusable
from .fast_path import FastPath, keep
from .flat import FlatFunction, StatefulFunction, TracedProgram, abstract, forget
from .shape_dtype_struct import ShapeDtypeStruct
from .signatures import (
    donation_vector, name_of, numbers_and_names, rebase_donate_argnums, split_statics, static_key,
    static_values, take_names, wraps)

F = TypeVar("F", bound=Callable[..., Any])
NOT_GIVEN: Any = object()


class Given(NamedTuple):
    """The arguments of a call, flattened."""
    leaves: list
    in_tree: Any
    avals: tuple
    statics: tuple = ()
    taken: list | tuple = ()        # what can change among them, adapters.Taken

    @property
    def key(self) -> tuple[Any, ...]:
        """Under which traces and Calls are found."""
        return self.in_tree, self.avals, self.statics


class JitFunction(FastPath):
    """A compiled function; see `jit`."""

    explained = True     # False for functions of the library: their retraces are not the user's mistakes

    def __init__(self, fun: Callable[..., Any], static_argnums: Any = None, static_argnames: Any = None,
                 donate_argnums: Any = None, donate_argnames: Any = None, inline: bool = False,
                 keep_unused: bool = False, compiler_options: dict[str, Any] | None = None,
                 in_shardings: Any = None, out_shardings: Any = None, place: Any = None) -> None:
        check_callable(fun)
        self._fun = fun
        self._name = name_of(fun)
        self._static_numbers, self._static_names = numbers_and_names(fun, static_argnums, static_argnames,
                                                                     "static")
        self._donate_numbers, self._donate_names = numbers_and_names(fun, donate_argnums, donate_argnames,
                                                                     "donate")
        both = set(self._static_numbers) & set(self._donate_numbers)
        if both:
            names = pytree.arg_names(fun, max(both) + 1)[0]
            raise ValueError("static_argnames and donate_argnames cannot intersect. Argument names "
                             f"{ {names[i] for i in both} } of {self._name} appear in both static_argnames "
                             "and donate_argnames")
        self._inline = inline
        self._keep_unused = keep_unused
        self._compiler_options = compiler_options
        options = (self._static_numbers, self._static_names, self._donate_numbers, self._donate_names, inline,
                   keep_unused, tuple(sorted(compiler_options.items())) if compiler_options else ())
        shown = self._name.lstrip("_") if inline else self._name
        self._placement = Placement(shown, in_shardings, out_shardings, place)
        options = (*options, *self._placement.options)
        self._options = options
        self._known = CACHES.of(fun, options)
        self._quick = self._known.fast_path.entries
        self._has_statics = bool(self._static_numbers or self._static_names)
        self._first_static = min(self._static_numbers, default=sys.maxsize)
        take_names(self, fun)

    def __deepcopy__(self, memo: Any) -> JitFunction:
        return self

    def call_any(self, args: tuple[Any, ...], kwargs: dict[str, Any],
                 fast_key: tuple[Any, ...] | None) -> Any:
        """Any call.  Where its arguments and program are simple, it is found under `fast_key` next time."""
        given = self._given(args, kwargs)
        if state.disable_jit:
            return self._fun(*args, **kwargs)
        if not given.taken:
            return self._call(given, fast_key)
        with adapters.lending(given.taken):
            result, changes = self._call(given, None)
        adapters.write_back(given.taken, changes)
        return result

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given:
        """The arguments of a call as Given.  TypeError for one that is no array."""
        whole, statics = (args, kwargs), ()
        if self._has_statics:
            args, kwargs, statics = self._split_statics(args, kwargs)
        leaves, in_tree = pytree.tree_flatten((args, kwargs))
        try:
            avals = tuple([x.aval if type(x) is ArrayImpl else aval_of(x) for x in leaves])
            return Given(leaves, in_tree, avals, statics)
        except (TypeError, OverflowError):
            if not adapters.any_adapted(leaves):
                if self._inline:
                    self._fun(*whole[0], **whole[1])      # a function of the library words it better
                if any([type(x) is ShapeDtypeStruct for x in leaves]):
                    return self._given_types(leaves, in_tree, statics)
                self.flat(leaves, in_tree, statics, False).avals()      # which names the argument
                raise
        return self.given_values(args, kwargs, statics, aval_of)

    def _given_types(self, leaves: list[Any], in_tree: pytree.PyTreeDef, statics: Any) -> Given:
        """As Given, of arguments of which some are ShapeDtypeStructs: the function may read types alone.
        TypeError for one whose value is used."""
        flat = self.flat(leaves, in_tree, statics, False)
        given = Given(leaves, in_tree, tuple(flat.avals(abstract)), statics)
        used = self.trace_given(given).pruned()[2]
        for i, x in enumerate(leaves):
            if type(x) is ShapeDtypeStruct:
                dtype: Any = x.dtype
                if i in used or dtypes.is_extended(dtype):
                    flat.aval(i)        # which raises
                leaves[i] = np.broadcast_to(np.zeros((), dtype), x.shape)       # nothing reads it
        return given

    def given_values(self, args: tuple[Any, ...], kwargs: dict[str, Any], statics: Any,
                     aval: Callable[[Any], Any]) -> Given:
        """As Given, of arguments among which there is what has adapters; `aval` gives the type of a leaf."""
        leaves, in_tree, taken = adapters.flatten_by_value((args, kwargs))
        flat = self.flat(leaves, in_tree, statics, bool(taken))
        given = Given(leaves, in_tree, tuple(flat.avals(aval)), statics, taken)
        adapters.refuse_twice(flat, taken)
        return given

    def flat(self, leaves: Sequence[Any], in_tree: pytree.PyTreeDef, statics: Any,
             stateful: bool) -> FlatFunction:
        """The function as one of leaves."""
        kind = StatefulFunction if stateful else FlatFunction
        return kind(self._fun, leaves, in_tree, "jit", static_values(statics))

    def _call(self, given: Given, fast_key: tuple[Any, ...] | None) -> Any:
        """A call with arguments that are arrays, or were taken by their arrays."""
        if state.trace is not EVAL:
            return self._write_down(given)
        passed = given.leaves
        call = self._known.calls.get(given.key)
        if call is None:
            given = self._moved(given)
            call = self._compile(given)
        leaves = given.leaves
        if given.taken:
            leaves = adapters.own_memory(given.taken, leaves, self.trace_given(given).donated)
        keys_passed = self._keys_used(given, leaves) if config.jax_debug_key_reuse else None
        if keys_passed or state.check_floats:
            fast_key = None
        keep(self._known.fast_path, fast_key, call, passed)
        results = call(leaves)
        if results is WRONG_DEVICE:
            given = self._moved(given._replace(leaves=leaves))
            call = self._compile(given)
            keep(self._known.fast_path, fast_key, call, passed)
            results = call(given.leaves)
            if results is WRONG_DEVICE:
                raise RuntimeError(f"internal error: {self._name}, compiled for its arguments, refuses them")
        if keys_passed:
            keys_passed(pytree.tree_leaves(results))
        return results

    def _moved(self, given: Given) -> Given:
        return given._replace(leaves=[*self._placement.moved(given.leaves, given.in_tree)])

    def _keys_used(self, given: Given, leaves: Sequence[Any]) -> Callable[[Sequence[Any]], None]:
        """Mark the random keys among the leaves that the program uses; the function returned is to be called
        with its results.  KeyReuseError for one that is used."""
        from ..transforms.key_reuse import use
        traced = self.trace_given(given)
        return use(traced.closed, [*traced.consts, *leaves], f"`{self._name.lstrip('_')}`",
                   num_consts=len(traced.consts))

    def _compile(self, given: Given) -> Any:
        traced = self.trace_given(given)
        if accesses(traced.closed.effects):
            self._placement.refuse_closure()
            return self._known.calls.keep(given.key, StatefulCall(traced))
        where, requested = self.device_assignment(traced, given.leaves)
        if getattr(where, "without_devices", False) and not maps_devices(traced.closed) and not (
                any(where.ins) or any(where.outs or ())):
            # a constraint over an AbstractMesh: no devices are given
            where = evaluate.client.default_device()

        def compiled() -> Any:
            program, _, _, donated = traced.pruned()
            executable = evaluate.compile_program(program, where, donated, self._compiler_options,
                                                  self.explained)
            if donated:
                flat = self.flat(given.leaves, given.in_tree, given.statics, bool(given.taken))
                warn_unusable(executable, flat, traced)
            return executable
        return self._call_for(given.key, traced, where, requested, compiled)

    def _call_for(self, key: tuple[Any, ...], traced: TracedProgram, where: Any, requested: Any,
                  compiled: Callable[[], Any]) -> Any:
        """The Call for the arguments of `key` that is kept for where it runs, else one of what `compiled()`
        gives."""
        calls = self._known.calls
        call = calls.get((key, where))
        if call is None:
            call = calls.keep((key, where), call_of(compiled(), where, requested, traced,
                                                    self._placement.commits))
        placed = isinstance(where, tuple) or self._placement.place is not None
        if placed or where == evaluate.client.default_device():
            calls.keep(key, call)       # to be tried first
        return call

    def device_assignment(self, traced: TracedProgram, leaves: Sequence[Any]) -> tuple[Any, Any]:
        """(device or Partition, the shardings requested for the inputs or None) for these arguments."""
        def paths() -> list[str]:
            return self.flat(leaves, traced.in_tree, (), False).paths()
        return self._placement.of(traced, leaves, paths)

    def trace_given(self, given: Given, requested: bool = False) -> TracedProgram:
        """The `flat.TracedProgram` for arguments of these types; `requested` if the user asked for it."""
        traced = self._known.traces.get(given.key)
        if traced is None:
            avals = given.avals
            flat = self.flat(avals, given.in_tree, given.statics, bool(given.taken))
            names = flat.paths() if not given.statics else None
            with stage("traced", self._name):
                # by eval_shape, or with other options
                traced = flat.kept(self._fun, "jit", avals, self._name, names)
            traced = traced.donating(self._donated(given.in_tree), self._references(traced, given),
                                     self._keep_unused)
            if traced.cacheable:
                self._known.traces.keep(given.key, traced)
            if self.explained:
                self._known.note(self, types(*given.key), requested)
        return traced

    @staticmethod
    def _references(traced: TracedProgram, given: Given) -> list[int]:
        """Positions of the leaves that are values of Refs which the program writes to: it may reuse their
        memory."""
        return [x.start + i for x, changed in zip(given.taken, traced.changed or ()) if x.adapter.owns_memory
                for i in changed]

    def _donated(self, in_tree: pytree.PyTreeDef) -> tuple[int, ...]:
        """Positions of donated leaves."""
        if not self._donate_numbers and not self._donate_names:
            return ()
        numbers = rebase_donate_argnums(self._donate_numbers, self._static_numbers)
        donated = donation_vector(numbers, self._donate_names, in_tree)
        return tuple(i for i, mark in enumerate(donated) if mark)

    def _split_statics(self, args: tuple[Any, ...],
                       kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any], Any]:
        args, kwargs, statics = split_statics(args, kwargs, self._static_numbers, self._static_names)
        return args, kwargs, static_key(statics, self._name)

    def _write_down(self, given: Given) -> Any:
        """A call while something else is traced: shardings of arguments and results are constraints there."""
        traced = self.trace_given(given)
        leaves, outs = self._placement.constrained(traced, given.leaves)
        if self._placement.asks and (avals := tuple(map(aval_of, leaves))) != given.avals:
            # resharded over Explicit axes: the program is that of the types they have now
            traced = self.trace_given(given._replace(avals=avals))
        operands = [*traced.consts, *leaves]
        if self._inline and not self._placement.asks:
            results = eval_jaxpr(traced.closed, (), *operands)
        else:
            results = jit_p.bind(*operands, jaxpr=traced.closed, donated=traced.given)
        return traced.out_tree.unflatten(outs(results))

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., Any]:
        return self if instance is None else functools.partial(self, instance)

    @filtered
    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """Trace for arguments given as arrays or ShapeDtypeStructs; returns a `stages.Traced`."""
        args, kwargs, statics = self._split_statics(args, kwargs)
        return stages.trace(self, args, kwargs, statics)

    @filtered
    def lower(self, *args: Any, **kwargs: Any) -> stages.Lowered:
        """Trace and lower; returns a `stages.Lowered`."""
        return self.trace(*args, **kwargs).lower()

    @filtered
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the result, as ShapeDtypeStructs."""
        return self.trace(*args, **kwargs).out_info

    def why_retraced(self) -> Any:
        """The first trace of this function, then what made each later one necessary: a list of str.

        The last 64 retraces are kept.  `jax_explain_cache_misses` says which are also logged when they
        happen.
        """
        from ..inspection import retraces
        return retraces.story(self, self._known.history.get(None))

    def tiers(self, wait: bool = False) -> list[str]:
        """"quick" or "full" for each program compiled for this function, oldest first: the form that runs.

        See `hlotrace_tiered_compile`.  `wait` for the full forms that are being compiled.
        """
        executables = [call.executable for call in self._calls() if call.executable is not None]
        for executable in executables if wait else ():
            executable.wait()
        return [executable.tier for executable in executables]

    def clear_cache(self) -> None:
        """Forget all compiled programs of this function, and why they were traced."""
        self._known.clear()
        forget(self._fun, "jit")

    def _cache_size(self) -> int:
        return len(self._calls())

    def _calls(self) -> list[Any]:
        return list(dict.fromkeys(self._known.calls.values()))

    def __repr__(self) -> str:
        return f"<PjitFunction of {self._fun!r}>"

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._fun)


# as jaxlib's: libraries know by it what is compiled
JitFunction.__name__ = JitFunction.__qualname__ = "PjitFunction"


class Inline(enum.Enum):
    """Where a function that jit compiles becomes a part of its caller: in the program, or in the compiler."""
    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


def jit(fun: F = NOT_GIVEN, /, *, static_argnums: Any = None, static_argnames: Any = None,
        donate_argnums: Any = None, donate_argnames: Any = None, keep_unused: bool = False,
        device: Any = None, backend: str | None = None, inline: bool | Inline = False,
        in_shardings: Any = None, out_shardings: Any = None,
        compiler_options: dict[str, Any] | None = None) -> Any:
    """Compile `fun` with XLA on first call for each combination of argument shapes, dtypes and static values.

    Args:
        fun: a pure function of pytrees of arrays.  Without it, returns a decorator.
        static_argnums: positions of arguments that are part of the program; hashable.
        donate_argnums: positions of arguments whose memory the program may reuse; they cannot be used again.
        keep_unused: let the program take arguments that it does not use.
        device: the device to run on, or the name of a platform, as `backend`.  Arguments are moved there, and
            the results are committed to it.  Within another program it is that program that says where it
            runs.
        backend: the platform whose first device is the one to run on.
        inline: while tracing, write the function's equations into the caller instead of a call; or an
            `Inline`, of which JAX_EARLY and JAX_LATE do that, and the others leave it to XLA.
        in_shardings: the shardings of the arguments: a Sharding, a PartitionSpec of the current mesh, None
            where the arguments decide; or a pytree of them that is a prefix of the positional arguments.  An
            argument that other devices hold, divided in the same way, is brought there.
        out_shardings: the same for the result; None where the compiler decides.
        compiler_options: dict of XLA option names to values.
    Returns:
        A function with the signature of `fun`, and with `.trace`, `.lower`, `.eval_shape`, `.why_retraced`,
        `.clear_cache`.
    Raises:
        TypeError: for arguments that are not arrays.
        ValueError: for unhashable static ones, and for options that contradict each other.

    >>> @jax.jit
    ... def step(x):
    ...     print("traced for", x)
    ...     return x * 2
    >>> step(jnp.ones(2)), step(jnp.zeros(2))
    traced for JitTracer(float32[2])
    (Array([2., 2.], dtype=float32), Array([0., 0.], dtype=float32))
    >>> power = jax.jit(lambda x, n: x**n, static_argnums=1)
    >>> power(3., 4)
    Array(81., dtype=float32, weak_type=True)
    >>> jax.jit(lambda x: x if x > 0 else -x)(1.)
    Traceback (most recent call last):
        ...
    hlotrace.errors.TracerBoolConversionError: bool(bool[]): Attempted boolean conversion of traced array with
    ...
    """
    place = None
    if device is not None or backend is not None:
        if in_shardings is not None or out_shardings is not None:
            raise ValueError("jit: device and backend say in another way what in_shardings and out_shardings "
                             "say; give one")
        if device is not None and backend is not None:
            raise ValueError(f"can't specify both a device and a backend for jit, got {device=} and "
                             f"{backend=}")
        if isinstance(device, str):     # the name of a platform
            device, backend = None, device
        if device is not None and not hasattr(device, "device_kind"):
            raise TypeError(f"jit: device is one of hlotrace.devices(), got {device!r}")
        try:
            place = placement.on_device(device or evaluate.client.local_devices(backend=backend)[0])
        except RuntimeError as error:
            fun = fun if fun is NOT_GIVEN else _without_platform(fun, error)
        if fun is not NOT_GIVEN:
            warnings.warn("backend and device argument on jit is deprecated: put the arguments where it is "
                          "to run, with jax.device_put(x, device)", DeprecationWarning,
                          stacklevel=source_info.user_stacklevel())
    if isinstance(inline, Inline):
        inline = inline in (Inline.JAX_EARLY, Inline.JAX_LATE)
    elif type(inline) is not bool:
        raise ValueError(f"jit: inline is True, False or one of {', '.join(map(str, Inline))}, got "
                         f"{inline!r}")
    options = dict(static_argnums=static_argnums, static_argnames=static_argnames,
                   donate_argnums=donate_argnums, donate_argnames=donate_argnames, inline=inline,
                   keep_unused=keep_unused, compiler_options=compiler_options, in_shardings=in_shardings,
                   out_shardings=out_shardings)
    if fun is NOT_GIVEN:
        return functools.partial(jit, device=device, backend=backend, **options)
    return JitFunction(fun, place=place, **options)


def _without_platform(fun: Callable[..., Any], error: RuntimeError) -> Any:
    """`fun` for a platform that is not there, which matters only to who calls it."""
    @wraps(fun)
    def unavailable(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"jit of {name_of(fun)}: {error}") from None
    return unavailable


def make_jaxpr(fun: Callable[..., Any], static_argnums: Any = (),
               axis_env: Iterable[tuple[Any, int]] | None = None,
               return_shape: bool = False) -> Callable[..., Any]:
    """A function that gives the program of `fun` for its arguments (arrays or ShapeDtypeStructs).

    Args:
        static_argnums: as for `jit`.
        axis_env: (name, size) pairs of named axes.
        return_shape: give (program, types of the result).

    >>> jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(jnp.ones(3))
    { lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b 2.0:f32[] in (c,) }
    """
    jitted = JitFunction(fun, static_argnums)

    @filtered
    @wraps(fun)
    def traced_program(*args: Any, **kwargs: Any) -> Any:
        with named_axes(*[(*entry, "vmap") for entry in axis_env or ()]):
            stage = jitted.trace(*args, **kwargs)
        return (stage.jaxpr, stage.out_info) if return_shape else stage.jaxpr
    traced_program.__name__ = f"make_jaxpr({name_of(fun)})"
    return traced_program


def _run_call(*args: Any, jaxpr: Any, donated: Any) -> list[Any]:
    """Run the program of a call that an eager transformation made."""
    if not config.jax_debug_key_reuse:
        return evaluate.run_program(jaxpr, args, donated)
    from ..transforms.key_reuse import use
    keys_passed = use(jaxpr, args, f"`{jaxpr.name.lstrip('_')}`")
    results: list[Any] = evaluate.run_program(jaxpr, args, donated)
    keys_passed(results)
    return results


jit_p.impl_rule = _run_call
