"""jit: trace a function once for each type of its arguments, compile it, call the compiled program.

A call of arrays, numbers and static values is found by their types; another flattens its arguments and looks up their
structure, types and static values.  While another transformation is tracing, the call is written down as one `jit` equation.
"""
import enum
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ..core import hitypes
from ..core.avals import aval_of, aval_or_none, is_arraylike, not_an_array
from ..core.caches import ContextCache, LRUCache, WeakCache, types
from ..core.config import config, named_axes, state
from ..core.errors import not_callable
from ..core.jaxpr import eval_jaxpr, sub_jaxprs
from ..core.primitive import fact_of
from ..core.pytrees import pytree
from ..core.refs import Ref, accesses
from ..core.source_info import is_package, user_frame
from ..core.surface.boundary import filtered, reraise_for_user
from ..core.trace import EVAL
from ..lowering.module import put_in_memory
from ..primitives.programs.calls import jit_p
from ..runtime import evaluate
from ..runtime.array_impl import ArrayImpl, as_array, own
from ..runtime.binding import JaxRuntimeError
from ..runtime.devices import placement, transfer
from ..runtime.executables.progress import stage
from . import hijax, refs, stages
from .compiled_calls import WRONG_DEVICE, StatefulCall, call_of
from .donation_warnings import warn_unusable
from .flat import FlatFunction, flatten, forget, hold, mend
from .signatures import EQUAL_BUT_NOT_ALIKE, name_of, numbers_and_names, split_statics, static_key, static_values, take_names

F = TypeVar("F", bound=Callable[..., Any])


def _avals(leaves):
    """The types of what may be arrays.  LookupError where one is not: a container, most often."""
    avals = [x.aval if type(x) is ArrayImpl else aval_or_none(x) for x in leaves]
    if None in avals:
        raise LookupError
    return avals


_PLAIN = frozenset({int, str, bool, type(None)})      # types of static values that are alike if equal


def _static_part(x):
    """What stands in a key for a static value: equal only for values that are `alike`."""
    kind = type(x)
    return (kind, x) if kind in _PLAIN or not isinstance(x, EQUAL_BUT_NOT_ALIKE) else (kind, x, repr(x))


def _maps_devices(jaxpr):
    """Does the program hold a shard_map, which needs all devices of its mesh?"""
    return any(eqn.primitive.spans_devices or any(map(_maps_devices, sub_jaxprs(eqn.params)))
               for eqn in jaxpr.eqns)


class FunctionCaches:
    """What is kept of a function, shared by all `jit(fun)` with the same options."""
    __slots__ = ("traces", "calls", "fast_path", "history")

    def __init__(self):
        self.traces = ContextCache(4096)      # (structure, avals, statics) -> Traced
        self.calls = ContextCache(4096)       # the same -> the Call to try first; that and where it runs -> Call
        self.fast_path = LRUCache(4096)      # types as `JitFunction.__call__` sees them first -> a simple Call
        self.history = LRUCache()        # of traces, under None; see `retraces`

    def clear(self):
        for table in (self.traces, self.calls, self.fast_path, self.history):
            table.clear()


_known = WeakCache(FunctionCaches)
_traced_codes = LRUCache(1024)     # code object -> how often it was traced first for which types; see `retraces`


class JitFunction:
    """A compiled function; see `jit`."""

    explained = True     # False for functions of the library: their retraces are not the user's mistakes

    def __init__(self, fun, static_argnums=None, static_argnames=None, donate_argnums=None,
                 donate_argnames=None, inline=False, keep_unused=False, compiler_options=None,
                 in_shardings=None, out_shardings=None, place=None):
        if not callable(fun):
            raise not_callable(fun)
        self._fun = fun
        self._name = name_of(fun)
        self._static_numbers, self._static_names = numbers_and_names(fun, static_argnums, static_argnames,
                                                                     "static")
        self._donate_numbers, self._donate_names = numbers_and_names(fun, donate_argnums, donate_argnames,
                                                                     "donate")
        both = set(self._static_numbers) & set(self._donate_numbers)
        if both:
            raise ValueError(f"static_argnums and donate_argnums of {self._name} overlap: arguments "
                             f"{sorted(both)} cannot be both static and donated")
        self._inline = inline
        self._keep_unused = keep_unused
        self._compiler_options = compiler_options
        options = (self._static_numbers, self._static_names, self._donate_numbers, self._donate_names, inline,
                   keep_unused, tuple(sorted(compiler_options.items())) if compiler_options else ())
        self._place = place      # a SingleDeviceSharding: everything goes there, wherever it lay
        if place is not None:
            in_shardings = out_shardings = place
            options = (*options, place)
        self._in_shardings, self._out_shardings = in_shardings, out_shardings
        if in_shardings is not None or out_shardings is not None:
            leaves, structure = pytree.tree_flatten((in_shardings, out_shardings), lambda x: x is None)
            from ..placement.shardings import check_kind
            for x in leaves:
                check_kind(x, f"jit of {self._name}, in_shardings and out_shardings")
            options = (*options, tuple(leaves), structure)
        self._options = options
        self._known = _known.of(fun, options)
        self._quick = self._known.fast_path.entries
        self._never_quick = bool(donate_argnums or donate_argnames or in_shardings or out_shardings)
        self._has_statics = bool(self._static_numbers or self._static_names)
        take_names(self, fun)

    def __call__(self, *args, **kwargs):
        """Arrays, numbers and static values alone need not be flattened: such a call is tried first, by their
        types."""
        try:
            if state.trace is not EVAL or self._never_quick:
                return self._call(args, kwargs, None)
            key = None
            try:
                if kwargs or self._has_statics:
                    leaves, key = self._flat_key(args, kwargs)
                else:
                    leaves = args
                    try:
                        # as a ContextCache would have it, in fewer steps
                        key = (*[x.aval for x in leaves], state.trace_key)
                    except AttributeError:      # NumPy values, Python numbers
                        key = (*_avals(leaves), state.trace_key)
                        if key in self._quick:
                            leaves = [as_array(x) for x in leaves]
                call = self._quick[key]
                buffers = [x._buf for x in leaves if not x._committed]
                if len(buffers) != len(leaves):
                    return self._call(args, kwargs, None)
                found = call.executable.execute(buffers).consume_with_handlers(call.executable.handlers)
            except (LookupError, AttributeError, TypeError, ValueError, OverflowError, JaxRuntimeError):
                call = None
            if call is None:
                return self._call(args, kwargs, key)      # which says what is wrong, if something is
        except Exception as error:
            reraise_for_user(error)
            raise
        avals = call.executable.out_avals
        if call.single:
            return ArrayImpl(avals[0], found[0])
        return call.out_tree.unflatten([ArrayImpl(a, b) for a, b in zip(avals, found)])

    def _flat_key(self, args, kwargs):
        """(the leaves, the key) of a call of arrays and static values.

        LookupError for others, and for keyword arguments whose order is not that of the program.
        """
        leaves, key = [], [state.trace_key]
        numbers, names = self._static_numbers, self._static_names
        for i, x in enumerate(args):
            if i in numbers:
                key += _static_part(x)
            else:
                leaves.append(x)
        last = ""
        for name, x in kwargs.items():
            key.append(name)
            if name in names:
                key += _static_part(x)
            elif name < last:
                raise LookupError(name)
            else:
                last = name
                leaves.append(x)
        key = (len(args), *key, *_avals(leaves))
        return [as_array(x) for x in leaves] if key in self._quick else leaves, key

    def _call(self, args, kwargs, quick):
        """Any call.  Where its arguments and its program are simple it is found under the key `quick` next
        time."""
        given = args, kwargs
        if self._has_statics:
            args, kwargs, statics = self._split_statics(args, kwargs)
        else:
            statics = ()
        leaves, in_tree = pytree.tree_flatten((args, kwargs))
        try:
            avals = tuple([x.aval if type(x) is ArrayImpl else aval_of(x) for x in leaves])
        except TypeError:
            if Ref in map(type, leaves):
                return self._call_with_refs(args, kwargs, leaves, in_tree, statics)
            if hitypes.any_hitype(leaves):
                return hijax.call_jitted(self._of_arrays, *given)
            if self._inline:
                self._fun(*given[0], **given[1])      # a function of the library words it better
            self._raise_bad_argument(args, kwargs, leaves)
            raise
        if state.trace is not EVAL or state.disable_jit:
            return self._traced_call(leaves, in_tree, avals, statics)
        key = (in_tree, avals, statics)
        passed = None
        if config.jax_debug_key_reuse:
            from ..transforms import key_reuse
            traced, quick = self._trace(args, kwargs, in_tree, avals, statics), None
            passed = key_reuse.use(traced.closed, [*traced.consts, *leaves], f"`{self._name.lstrip('_')}`")
        if self._place is not None:
            leaves = [transfer.move(own(x), self._place) for x in leaves]
        call = self._known.calls.get(key)
        if call is None:
            call = self._compile(key, args, kwargs, in_tree, avals, statics)
        if quick is not None and call.simple and self._known.calls.get(key) is call and not state.check_floats:
            self._known.fast_path.keep(quick, call)
        results = call(leaves)
        if results is WRONG_DEVICE:
            results = self._compile(key, args, kwargs, in_tree, avals, statics)(leaves)
        if passed is not None:
            passed(pytree.tree_leaves(results))
        return results if self._place is None else pytree.tree_map(lambda x: transfer.move(x, self._place), results)

    def _call_with_refs(self, args, kwargs, leaves, in_tree, statics):
        if state.trace is EVAL and not state.disable_jit:
            return refs.call_jitted(self, leaves, in_tree, statics)
        leaves, in_tree = flatten((args, kwargs))
        return self._traced_call(leaves, in_tree, tuple([aval_of(x) for x in leaves]), statics)

    @functools.cached_property
    def _of_arrays(self):
        """The same of what `hitypes.lower` gives."""
        outs = None if self._out_shardings is None else (self._out_shardings, None)
        return JitFunction(hijax.of_arrays(self._fun), self._static_numbers, self._static_names,
                           self._donate_numbers, self._donate_names, self._inline, self._keep_unused,
                           self._compiler_options, self._in_shardings, outs, self._place)

    def _compile(self, key, args, kwargs, in_tree, avals, statics):
        traced = self._trace(args, kwargs, in_tree, avals, statics)
        if accesses(traced.closed.effects):
            if pytree.tree_leaves((self._in_shardings, self._out_shardings)):
                raise NotImplementedError(f"jit of {self._name}: in_shardings, out_shardings and device do "
                                          "not go with a Ref that the function closes over")
            return self._known.calls.keep(key, StatefulCall(traced))
        where, asked = self.device_assignment(traced, args, kwargs)
        if isinstance(where, tuple) and where.without_devices and not _maps_devices(traced.closed):
            # a constraint over an AbstractMesh: nobody says where it is
            where = evaluate.client.default_device()

        def compiled():
            program, _, _, donated = traced.pruned()
            executable = evaluate.compile_program(program, where, donated, self._compiler_options,
                                                  self.explained)
            if donated:
                leaves = pytree.tree_leaves((args, kwargs))
                warn_unusable(executable, FlatFunction(self._fun, leaves, in_tree, "jit",
                                                       static_values(statics)), traced)
            return executable
        return self._call_for(key, traced, where, asked, compiled)

    def _call_for(self, key, traced, where, asked, compiled):
        """The Call for the arguments of `key` that is kept for where it runs, else one of what `compiled()`
        gives."""
        calls = self._known.calls
        call = calls.get((key, where))
        if call is None:
            call = calls.keep((key, where), call_of(compiled(), where, asked, traced))
        if isinstance(where, tuple) or where == evaluate.client.default_device() or self._place is not None:
            calls.keep(key, call)       # to be tried first
        return call

    def device_assignment(self, traced, args, kwargs):
        """(device or Partition, the shardings asked for the program's inputs or None) for these arguments."""
        program, consts, kept, _ = traced.pruned()
        leaves = pytree.tree_leaves((args, kwargs))
        found = fact_of(program, "meshes")
        if self._place is not None:
            where, _ = evaluate.device_assignment(consts, None, (self._place,), found,
                                       f"a constant of {self._name}".format)
            return where, None
        if state.mesh_to_run_on and not any(map(evaluate.committed_sharding, leaves)):
            if not any(hasattr(m, "devices") for m in found):
                found = (state.mesh_to_run_on, *found)
        elif found and not any(hasattr(m, "devices") for m in found) and not any(evaluate.committed_sharding(leaves[i]) for i in kept):
            # an AbstractMesh has no devices: those of arguments that the program does not use
            found = (*dict.fromkeys(s.mesh for s in map(evaluate.committed_sharding, leaves) if hasattr(s, "mesh")), *found)
        if self._in_shardings is None and self._out_shardings is None:
            asked = outs = None
        else:
            asked, outs = self._requested(kwargs, traced)
            asked = asked and [*[None] * len(consts), *[asked[i] for i in kept]]
        if put := put_in_memory(program):
            outs = tuple([s or put.get(v) for s, v in zip(outs or [None] * len(program.outvars),
                                                          program.outvars)])

        def name(i):
            if i < len(consts):
                return f"a constant of {self._name}"
            of = self._name.lstrip("_") if self._inline else self._name
            return f"argument {pytree.arg_paths(self._fun, args, kwargs)[kept[i - len(consts)]]} of {of}"
        where, _ = evaluate.device_assignment([*consts, *[leaves[i] for i in kept]], asked, outs, found, name)
        return where, asked

    def _requested(self, kwargs, traced):
        """The shardings asked for the leaves of the arguments and of the results, lists or None."""
        from ..placement.shardings import flat_shardings
        asked = outs = None
        if self._in_shardings is not None:
            alone = isinstance(self._in_shardings, placement.SingleDeviceSharding)
            if kwargs and not alone:
                raise ValueError(f"jit of {self._name}: in_shardings does not say how keyword arguments "
                                 f"({', '.join(kwargs)}) lie; pass them by position")
            given = tuple(self._in_shardings) if type(self._in_shardings) is list else self._in_shardings
            asked = flat_shardings(f"jit in_shardings of {self._name}", traced.in_tree,
                                   (given, given if alone else None))
        if self._out_shardings is not None:
            outs = flat_shardings(f"jit out_shardings of {self._name}", traced.out_tree, self._out_shardings)
            for i, (s, a) in enumerate(zip(outs, traced.closed.out_avals)):
                if s is not None:
                    placement.check_divides(s, a, f"result {i} of {self._name}, of type {a.str_short()}")
        return asked, outs and tuple(outs)

    def _trace(self, args, kwargs, in_tree, avals, statics, asked=False):
        key = (in_tree, avals, statics)
        traced = self._known.traces.get(key)
        if traced is None:
            names = pytree.arg_paths(self._fun, *hold((args, kwargs))) if not statics else None
            flat = FlatFunction(self._fun, avals, in_tree, "jit", static_values(statics))
            with stage("traced", self._name):
                # by eval_shape, or with other options
                traced = flat.kept(self._fun, "jit", avals, self._name, names)
            traced = traced.donating(self._donated(args, kwargs), self._keep_unused)
            if traced.cacheable:
                self._known.traces.keep(key, traced)
            if self.explained:
                self._note_trace(types(*key), asked)
        return traced

    def _note_trace(self, types, asked):
        """Keep what `why_retraced` tells and say what is worth saying; `asked` if the user asked for a trace.
        """
        where, history = user_frame(), self._known.history.get(None)
        code = getattr(inspect.unwrap(getattr(self._fun, "func", self._fun)), "__code__", None)
        if code is not None and is_package(code.co_filename):
            return      # of a library that asked not to be taken for the user
        if history is not None:
            from ..inspection import retraces
            self._known.history.keep(None, retraces.retraced(self, history, types, where, asked))
            return
        self._known.history.keep(None, (types, where))
        if code is not None and state.trace is EVAL and not asked:
            number = hash((getattr(self._fun, "__code__", None), self._options, types))
            counts = _traced_codes.get(code) or _traced_codes.keep(code, {})
            if counts:
                from ..inspection import retraces
                retraces.another_function(self, counts, number, types, where)
            else:
                counts[number] = 1

    def _donated(self, args, kwargs):
        """Positions of donated leaves."""
        if not self._donate_numbers and not self._donate_names:
            return ()
        removed = sorted(self._static_numbers)
        numbers = {n - sum(s < n for s in removed) for n in self._donate_numbers}
        flags = ([i in numbers for i in range(len(args))],
                 {k: k in self._donate_names for k in kwargs})
        marks = [f for f, sub in [*zip(flags[0], args), *((flags[1][k], kwargs[k]) for k in sorted(kwargs))]
                 for _ in pytree.tree_leaves(sub)]
        return tuple(i for i, m in enumerate(marks) if m)

    def _split_statics(self, args, kwargs):
        args, kwargs, statics = split_statics(args, kwargs, self._static_numbers, self._static_names)
        return args, kwargs, static_key(statics, self._name)

    def _traced_call(self, leaves, in_tree, avals, statics):
        if state.disable_jit:
            args, kwargs = FlatFunction(self._fun, leaves, in_tree, "jit",
                                        static_values(statics)).arguments(leaves)
            return self._fun(*args, **kwargs)
        args, kwargs = in_tree.unflatten(leaves)
        traced = self._trace(args, kwargs, in_tree, avals, statics)
        if self._in_shardings is not None or self._out_shardings is not None:
            return self._constrained_call(traced, leaves, kwargs)
        operands = [*traced.consts, *leaves]
        if self._inline:
            results = eval_jaxpr(traced.closed, (), *operands)
        else:
            results = jit_p.bind(*operands, jaxpr=traced.closed, donated=traced.donated)
        return traced.out_tree.unflatten(results)

    def _constrained_call(self, traced, leaves, kwargs):
        """A call inside another program: what was asked for arguments and results are constraints there."""
        from ..placement.shardings import constrained
        asked, outs = self._requested(kwargs, traced)
        operands = [*traced.consts, *constrained(leaves, asked, self._name)]
        results = jit_p.bind(*operands, jaxpr=traced.closed, donated=traced.donated)
        return traced.out_tree.unflatten(constrained(results, outs, self._name))

    def _raise_bad_argument(self, args, kwargs, leaves):
        for leaf, path in zip(leaves, pytree.arg_paths(self._fun, args, kwargs)):
            if not is_arraylike(leaf):
                raise TypeError(f"jit of {self._name}: {not_an_array(leaf, path, mend(path))}") from None

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    @filtered
    def trace(self, *args, **kwargs):
        """Trace for arguments given as arrays or ShapeDtypeStructs; returns a `stages.Traced`."""
        args, kwargs, statics = self._split_statics(args, kwargs)
        return stages.trace(self, args, kwargs, statics)

    @filtered
    def lower(self, *args, **kwargs):
        """Trace and lower; returns a `stages.Lowered`."""
        return self.trace(*args, **kwargs).lower()

    @filtered
    def eval_shape(self, *args, **kwargs):
        """The shapes and dtypes of the result, as ShapeDtypeStructs."""
        return self.trace(*args, **kwargs).out_info

    def why_retraced(self):
        """The first trace of this function, then what made each later one necessary: a list of str that
        prints well.

        The last 64 retraces are kept.  `jax_explain_cache_misses` says which are also logged when they
        happen.
        """
        from ..inspection import retraces
        return retraces.story(self, self._known.history.get(None))

    def tiers(self, wait=False):
        """"quick" or "full" for each program compiled for this function, oldest first: which form of it now
        runs.

        See `hlotrace_tiered_compile`.  `wait` for the full forms that are being compiled.
        """
        executables = [call.executable for call in self._calls() if call.executable is not None]
        for executable in executables if wait else ():
            executable.wait()
        return [executable.tier for executable in executables]

    def clear_cache(self):
        """Forget all compiled programs of this function, and why they were traced."""
        self._known.clear()
        forget(self._fun, "jit")

    def _cache_size(self):
        return len(self._calls())

    def _calls(self):
        return list(dict.fromkeys(self._known.calls.values()))

    def __repr__(self):
        return f"<compiled function {self._name} of {self._fun!r}>"

    @property
    def __signature__(self):
        return inspect.signature(self._fun)


# as jaxlib's: libraries know by it what is compiled
JitFunction.__name__ = JitFunction.__qualname__ = "PjitFunction"


class Inline(enum.Enum):
    """Where a function that jit compiles becomes a part of its caller: in the traced program, or as the
    compiler has it."""
    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


def jit(fun: F | None = None, /, *, static_argnums=None, static_argnames=None, donate_argnums=None,
        donate_argnames=None, keep_unused=False, device=None, backend=None, inline=False, in_shardings=None,
        out_shardings=None, compiler_options=None) -> F:
    """Compile `fun` with XLA on first call for each combination of argument shapes, dtypes and static values.

    Args:
      fun: a pure function of pytrees of arrays.  Without it, returns a decorator.
      static_argnums, static_argnames: arguments that are part of the program; hashable.
      donate_argnums, donate_argnames: arguments whose memory the program may reuse; they cannot be used
      again.
      in_shardings, out_shardings: how arguments and results lie over devices: a Sharding, a PartitionSpec of
      the current
        mesh, None where the arguments, or the compiler, decide; or a pytree of them that is a prefix of the
        positional arguments, or of the result.
      device, backend: the device to run on, or the platform whose first device it is.  Arguments are moved
      there, and the
        results are committed to it.  Within another program it is that program that says where it runs.
      inline: while tracing, write the function's equations into the caller instead of a call; or an `Inline`,
      of which
        JAX_EARLY and JAX_LATE do that, and the others leave it to XLA.
      compiler_options: dict of XLA option names to values.
    Returns: a function with the signature of `fun`, and with `.trace`, `.lower`, `.eval_shape`,
    `.why_retraced`,
      `.clear_cache`.
    Raises: TypeError for arguments that are not arrays, ValueError for unhashable static ones.

    >>> @jax.jit
    ... def step(x):
    ...     print("traced for", x)
    ...     return x * 2
    >>> step(jnp.ones(2)), step(jnp.zeros(2))
    traced for JaxprTracer<f32[2]>
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
            raise ValueError(f"jit: device={device!r} and backend={backend!r} both say where to run; give one")
        if device is not None and not hasattr(device, "device_kind"):
            raise TypeError(f"jit: device is one of hlotrace.devices(), got {device!r}")
        place = placement.on_device(device or evaluate.client.local_devices(backend=backend)[0])
    if isinstance(inline, Inline):
        inline = inline in (Inline.JAX_EARLY, Inline.JAX_LATE)
    elif type(inline) is not bool:
        raise ValueError(f"jit: inline is True, False or one of {', '.join(map(str, Inline))}, got {inline!r}")
    options = dict(static_argnums=static_argnums, static_argnames=static_argnames,
                   donate_argnums=donate_argnums, donate_argnames=donate_argnames, inline=inline,
                   keep_unused=keep_unused, compiler_options=compiler_options, in_shardings=in_shardings,
                   out_shardings=out_shardings)
    if fun is None:
        return functools.partial(jit, device=device, backend=backend, **options)
    return JitFunction(fun, place=place, **options)


def make_jaxpr(fun, static_argnums=(), axis_env=None, return_shape=False):
    """A function that gives the program of `fun` for its arguments (arrays or ShapeDtypeStructs).

    static_argnums: as for `jit`.  axis_env: (name, size) pairs of named axes.  return_shape: give (program,
    result's types).

    >>> jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(jnp.ones(3))
    { lambda ; a:f32[3]. let
        b:f32[3] = sin a
        c:f32[3] = mul b 2.0:f32[]*
      in (c,) }
    """
    jitted = JitFunction(fun, static_argnums)

    @filtered
    def traced_program(*args, **kwargs):
        with named_axes(*[(*entry, "vmap") for entry in axis_env or ()]):
            stage = jitted.trace(*args, **kwargs)
        return (stage.jaxpr, stage.out_info) if return_shape else stage.jaxpr
    traced_program.__name__ = f"make_jaxpr({name_of(fun)})"
    return traced_program


jit_p.impl_rule = lambda *args, jaxpr, donated: evaluate.run_program(jaxpr, args, donated)
