"""Ahead of time: trace, lower, compile, each step open to look into."""
from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..core.avals import ShapedArray
from ..core.caches import LRUCache
from ..core.config import config, override, state
from ..core.jaxpr import Jaxpr, eval_jaxpr
from ..core.platforms import platform_named
from ..core.pytrees import pytree
from ..core.surface.boundary import boundaries
from ..primitives.programs.exported import lower_for_platforms
from ..runtime import evaluate
from ..runtime.array_impl import ArrayImpl
from ..runtime.binding import JaxRuntimeError
from ..runtime.devices import client
from ..runtime.executables import introspect, runtime_checks
from ..sharding.partition import over_devices
from . import adapters
from .compiled_calls import WRONG_DEVICE, call_of
from .donation_warnings import warn_unusable
from .fast_path import FastPath, keep
from .flat import FlatFunction, TracedProgram, abstract
from .frontend_attributes import attributes_of_block, with_attributes
from .shape_dtype_struct import struct_of, structs

if TYPE_CHECKING:
    from ..inspection.pages.view import View

CompilerOptions = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class ArgInfo:
    """What is known of an argument: its type, and whether its memory is given away."""
    _aval: ShapedArray
    donated: bool
    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)


class _Stage:
    """What is known at each stage, from `_arg_tree`, `in_avals` and the places of donated leaves."""
    __slots__ = ()
    in_avals: Any
    _arg_tree: Any
    _donated_leaves: Any
    donate_argnums = property(lambda self: tuple(sorted(self._donated_leaves)))

    @property
    def args_info(self) -> Any:
        """An ArgInfo for each argument, (positional, keyword)."""
        leaves = pytree.tree_leaves(self.in_avals)
        return adapters.raised(self._arg_tree.unflatten([
            ArgInfo(a, i in self._donated_leaves) for i, a in enumerate(leaves)]))

    @property
    def in_tree(self) -> pytree.PyTreeDef:
        """The structure of (positional, keyword) arguments."""
        return adapters.plain_structure(self._arg_tree)


@boundaries
class Traced(_Stage):
    """A function traced for types of arguments: `jaxpr` is the program, `out_info` the types of its results.

    >>> traced = jax.jit(lambda x: x + 1).trace(1.)
    >>> traced.jaxpr
    { lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }
    >>> traced.out_info
    ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
    """

    __slots__ = ("__dict__", "__weakref__", "fun_name")

    def __init__(self, traced: TracedProgram, jitted: Any, flat: FlatFunction, key: tuple[Any, ...]) -> None:
        # under which what is made of it is found by calls
        self._key, self._trace_key, self._attributes = key, state.trace_key, attributes_of_block()
        self._traced = traced
        self._jitted = jitted
        self._flat = flat
        self.fun_name = jitted._name
        self._compiler_options = jitted._compiler_options

    @property
    def jaxpr(self) -> Jaxpr:
        return self._traced.jaxpr

    @property
    def out_info(self) -> Any:
        _, requested = self._jitted._placement.requested(self._traced)
        return structs(self._traced, requested)

    _arg_tree = property(lambda self: self._traced.in_tree)

    @property
    def out_tree(self) -> pytree.PyTreeDef:
        return self._traced.result_tree

    @property
    def out_avals(self) -> Any:
        return self.out_tree.unflatten(self._traced.closed.out_avals[:self.out_tree.num_leaves])

    in_avals = property(lambda self: adapters.raised(self._arg_tree.unflatten(self._traced.jaxpr.in_avals)))
    _donated_leaves = property(lambda self: self._traced.donated)
    effects = property(lambda self: self._traced.jaxpr.effects)

    @property
    def lojax(self) -> Traced:
        """The program over arrays alone: this one, as there are no other types here."""
        return self

    def with_consts_as_arg(self) -> tuple[list[Any], Traced]:
        """(the values that the program has taken from around it, the same traced with a list of them as first
        argument)."""
        consts, jaxpr = list(self._traced.consts), self._traced.closed

        def fun(consts: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            leaves = pytree.tree_leaves((args, kwargs))
            return self._traced.out_tree.unflatten(eval_jaxpr(jaxpr, (), *consts, *leaves))
        fun.__name__ = self.fun_name
        args, kwargs = self.in_tree.unflatten([struct_of(a) for a in pytree.tree_leaves(self.in_avals)])
        return consts, type(self._jitted)(fun).trace([struct_of(abstract(c)) for c in consts], *args,
                                                     **kwargs)

    def closure_convert(self) -> tuple[list[Any], Callable[..., Any]]:
        """(the values that the program has taken from around it, a function of a list of them and of the
        arguments)."""
        consts, traced = self.with_consts_as_arg()
        return consts, traced._jitted._fun

    def lower(self, *, lowering_platforms: Sequence[str] | None = None,
              platform: str | None = None) -> Lowered:
        """StableHLO for the devices that arguments and shardings name (otherwise the default one), or for
        platforms: for several, its first argument is the position of the one it runs on among them."""
        names = lowering_platforms or ((platform,) if platform else ())
        return Lowered(self, tuple(dict.fromkeys(map(platform_named, names))))


@boundaries
class Lowered(_Stage):
    """A program as StableHLO.

    >>> lowered = jax.jit(lambda x: x + 1).lower(1.)
    >>> "stablehlo.add" in lowered.as_text()
    True
    """

    def __init__(self, traced: Traced, platforms: Sequence[str] = ()) -> None:
        self._stage = traced
        self._traced = with_attributes(traced._traced, traced._attributes)
        self._runs, self._references = self._traced.with_references()
        self._program, self._consts, self._kept, self._donated = self._runs.pruned()
        leaves = [*[ref.value() for ref, _ in self._references], *traced._flat.leaves]
        self._where, self._requested = traced._jitted.device_assignment(self._runs, leaves)
        self._commits = traced._jitted._placement.commits
        self._platforms, self._platform = platforms, platforms[0] if platforms else None
        self._texts: dict[bool, Any] = {}

    _arg_tree = property(lambda self: self._traced.in_tree)
    out_tree = property(lambda self: self._traced.result_tree)

    @property
    def out_info(self) -> Any:
        """The types of the results: none is weak from here on, and meshes have devices."""
        def settled(s: Any) -> Any:
            sharding, = over_devices([s.sharding], self._mesh)
            return s.update(weak_type=False, **{} if sharding is s.sharding else {"sharding": sharding})
        return pytree.tree_map(settled, self._stage.out_info)

    in_avals = property(lambda self: self._stage.in_avals)
    _donated_leaves = property(lambda self: self._stage._donated_leaves)
    fun_name = property(lambda self: self._stage.fun_name)

    @property
    def _mesh(self) -> Any:
        """The mesh that it is divided over, or None."""
        return getattr(self._where, "mesh", None)       # a device has none

    def _lowered(self, debug_info: bool) -> Any:
        if debug_info not in self._texts:
            names = ["result" + p for p in pytree.leaf_paths(self._runs.out_tree)]

            def lower(program: Jaxpr, where: Any, platform: str | None) -> Any:
                more = len(program.invars) - len(self._program.invars)      # one, of several platforms
                return evaluate.lower_for(
                    program, where, platform=platform, donated=[i + more for i in self._donated],
                    debug_info=debug_info, result_names=names)[0]
            self._texts[debug_info] = lower_for_platforms(self._program, self._where,
                                                          self._platforms or (None,), lower)
        return self._texts[debug_info]

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text: "stablehlo" (default) or "hlo"; with names and places if `debug_info`."""
        if _is_stablehlo(dialect):
            return self._lowered(debug_info).text
        return introspect.hlo_text(self._lowered(True).text, debug_info)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """jaxlib's object for the program: an MLIR module ("stablehlo") or an XlaComputation ("hlo")."""
        of = introspect.mlir_module if _is_stablehlo(dialect) else introspect.xla_computation
        return of(self._lowered(False).text)

    def view(self, path: str | os.PathLike[str] | None = None) -> View:
        """The program as a page to look at, its stages side by side.

        They are the jaxpr, StableHLO, and over a mesh what Shardy's propagation makes of it.

        Args:
            path: a file to save the page in.
        Returns:
            A View: notebooks show it, `save(path)` writes it, `html` is its text.

        >>> jax.jit(lambda x: x + 1).lower(1.).view()
        View(<lambda>: 3 rows of jaxpr, 5 rows of StableHLO)
        """
        return _view(self.fun_name, path, **self._forms())

    def _forms(self) -> dict[str, Any]:
        """What a page shows of it."""
        return {"jaxpr": self._traced.jaxpr, "stablehlo": self.as_text(debug_info=True), "mesh": self._mesh}

    def cost_analysis(self) -> Any:
        """XLA's estimate for the program before optimization: a dict with "flops", "bytes accessed", ..."""
        return introspect.cost_of_text(self._lowered(False).text, client.client())

    def estimate(self, *, quick: bool = False) -> Any:
        """What a run needs of each device, and how fast it can be: an `Estimate` of `inspection/planning`.

        Printed, it is a table: memory and what is alive at the peak, operations, bytes to memory and bytes
        sent, and the time of each part of the chip at its peak rate.  Nothing is run.

        Args:
            quick: do not compile; look into the program as it was lowered.

        >>> lowered = jax.jit(lambda x: x @ x).lower(jax.ShapeDtypeStruct((64, 64), "float32"))
        >>> sum(lowered.estimate().flops.values()) == 2 * 64**3
        True
        """
        from ..inspection.planning import lowered_estimates  # few ask
        return lowered_estimates.of_lowered(self, self._where, self._stage._compiler_options, quick)

    def compile(self, compiler_options: CompilerOptions | None = None,
                device_assignment: Iterable[Any] | None = None) -> Compiled:
        """Compile for the devices that the program was lowered for; calls of the function use it too.

        The devices of a topology (`topologies.get_topology_desc`) are not here: what is compiled for them can
        be looked into, and not called.

        Args:
            compiler_options: XLA's, a dict, in place of those of the function.
            device_assignment: the devices in their order, which must be those that it was lowered for.
        """
        if len(self._platforms) > 1:
            raise ValueError(f"{self.fun_name} was lowered for {', '.join(self._platforms)}: to compile it, "
                             "lower it for one of them")
        partitioned = isinstance(self._where, tuple)
        device = self._where.devices[0] if partitioned else self._where
        own = tuple(self._where.devices) if partitioned else (device,)
        if device_assignment is not None and (given := tuple(device_assignment)) != own:
            raise NotImplementedError(f"compile: device_assignment={given} is not supported, as "
                                      f"{self.fun_name} was lowered for {own}: put its arguments there")
        if not hasattr(device, "platform"):
            raise ValueError(f"{self.fun_name} was lowered for an AbstractMesh, which has no devices: to "
                             "compile it, pass arguments or shardings over a Mesh")
        here = not self._platform or client.platform_of(device) == self._platform
        if not here:
            if partitioned:
                raise ValueError(f"{self.fun_name} was lowered for {self._platform} and is placed on "
                                 f"{device.platform} devices")
            device = client.client(self._platform).local_devices()[0]
        stage, traced = self._stage, self._runs

        def compiled() -> Any:
            executable = runtime_checks.compile_lowered(self._lowered(True), device,
                                                        compiler_options or stage._compiler_options)
            warn_unusable(executable, stage._flat, traced)
            return executable

        def with_own_lines() -> Any:
            with override("jax_compilation_cache_include_metadata_in_key", True):
                return compiled()
        shared = (here and not self._references and traced.cacheable and not compiler_options
                  and state.trace_key is stage._trace_key and config.hlotrace_tiered_compile == "off")
        try:
            return Compiled(self, stage._jitted._call_for(stage._key, traced, self._where, self._requested,
                                                          compiled).executable if shared else compiled(),
                            with_own_lines)
        except JaxRuntimeError as error:
            from ..inspection.planning import lowered_estimates  # few programs are too large
            raise lowered_estimates.refused(self, self._where, error) from None


@boundaries
class Compiled(FastPath, _Stage):
    """A compiled program: call it with arguments of exactly the types it was compiled for.

    >>> compiled = jax.jit(lambda x: x @ x).lower(jnp.ones((8, 8))).compile()
    >>> compiled(jnp.ones((8, 8)))[0, 0], compiled.cost_analysis()["flops"] >= 8**3
    (Array(8., dtype=float32), True)
    >>> compiled(jnp.ones((4, 4)))
    Traceback (most recent call last):
        ...
    TypeError: Compiled(float32[4,4]): Argument types differ from the types for which this computation was ...
    """

    def __init__(self, lowered: Lowered, executable: Any, with_own_lines: Callable[[], Any]) -> None:
        self._lowered = lowered
        self._executable = executable
        self._with_own_lines = with_own_lines
        self._call = call_of(executable, lowered._where, lowered._requested, lowered._runs, lowered._commits,
                             fixed=False)
        self._avals = tuple(lowered._traced.jaxpr.in_avals)
        self._fast = LRUCache(256)
        self._quick = self._fast.entries

    _has_statics, _called = False, "Compiled"
    _arg_tree = property(lambda self: self._lowered._arg_tree)
    out_tree = property(lambda self: self._lowered.out_tree)
    out_avals = property(lambda self: self._lowered._traced.closed.out_avals)
    in_avals = property(lambda self: self._lowered.in_avals)
    _donated_leaves = property(lambda self: self._lowered._donated_leaves)
    fun_name = property(lambda self: self._lowered.fun_name)

    @property
    def input_shardings(self) -> Any:
        """The shardings of the arguments, (positional, keyword); None for one that the program ignores."""
        return self._arguments(self._executable.in_shardings)

    def _arguments(self, found: Sequence[Any]) -> Any:
        """Of what is known of each input of the program that of the function's arguments: constants and the
        values of Refs are before them."""
        known: list[Any] = [None] * self._arg_tree.num_leaves
        shift = len(self._lowered._references)
        for i, value in zip(self._lowered._kept, found[len(self._lowered._consts):]):
            if i >= shift:
                known[i - shift] = value
        return adapters.raised(self._arg_tree.unflatten(known))

    @property
    def out_info(self) -> Any:
        """The types of the results, with their shardings and layouts."""
        return adapters.raised(self.out_tree.unflatten([
            struct_of(a.update(weak_type=False), f.sharding.in_layout(f.layout))
            for a, f in zip(self.out_avals, self.out_tree.flatten_up_to(self.output_formats))]))

    @property
    def output_shardings(self) -> Any:
        """The shardings of the results."""
        return self._results(self._executable.out_shardings)

    def _results(self, found: Sequence[Any]) -> Any:
        """Of what is known of each output of the program that of the function's results: the values of Refs
        are before them."""
        first = sum([written for _, written in self._lowered._references])
        return self.out_tree.unflatten(found[first:first + self.out_tree.num_leaves])

    @property
    def input_formats(self) -> Any:
        """The Formats of the arguments, (positional, keyword): as `input_shardings`, with layouts."""
        from ..runtime.devices import layouts  # few ask
        return self._arguments(layouts.of_executable(self._executable)[0])

    @property
    def output_formats(self) -> Any:
        """The Formats of the results."""
        from ..runtime.devices import layouts  # few ask
        return self._results(layouts.of_executable(self._executable)[1])

    def as_text(self) -> str:
        """The optimized HLO.

        A program from disk that was first compiled when its lines were elsewhere is compiled again for it.
        """
        if introspect.at_other_lines(self._executable):
            return introspect.optimized_text(self._with_own_lines())
        return introspect.optimized_text(self._executable)

    def cost_analysis(self) -> Any:
        """XLA's cost estimate of the optimized program: a dict with "flops", "bytes accessed", ...

        For GPUs that are not here it is that of the CPU for their HLO, with a formula for each call of a
        library.
        """
        def of_gpu(piece: Any) -> Any:
            from ..inspection.planning import library_calls  # few programs need it
            return library_calls.cost_of_gpu(introspect.cost_of_hlo(piece, client.client("cpu")),
                                             introspect.optimized_text(piece))
        return introspect.cost(self._executable, of_gpu)

    def view(self, path: str | os.PathLike[str] | None = None, *, profile: Any = None) -> View:
        """As `Lowered.view`, with the optimized HLO, its collectives, and the memory that it needs.

        Args:
            path: a file to save the page in.
            profile: a Profile of it, for the time that operations, lines and modules take.

        >>> page = jax.jit(lambda x: x + 1).lower(1.).compile().view()
        >>> [stage.name for stage in page.document.stages]
        ['jaxpr', 'StableHLO', 'optimized']
        """
        stats = self.memory_analysis()
        names = [n for n in dir(stats) if n.endswith("_size_in_bytes") and not n.startswith("host_")]
        totals = {n.removesuffix("_size_in_bytes").replace("_", " "): getattr(stats, n) for n in names}
        return _view(self.fun_name, path, **self._forms(), optimized=self.as_text(), totals=totals,
                     profile=profile)

    def _forms(self) -> dict[str, Any]:
        return self._lowered._forms()

    def memory_analysis(self) -> Any:
        """Bytes of arguments, outputs, temporaries and code."""
        return self._executable.memory()

    def runtime_executable(self) -> Any:
        """jaxlib's LoadedExecutable; of a program compiled in pieces, the list of theirs."""
        loaded = [piece.loaded for piece, _ in self._executable.pieces]
        return loaded[0] if len(loaded) == 1 else loaded

    def call_any(self, args: tuple[Any, ...], kwargs: dict[str, Any], fast_key: Any) -> Any:
        """Run.  TypeError where structure, shapes or dtypes differ from what was compiled for."""
        leaves, in_tree = pytree.tree_flatten((args, kwargs))
        taken: Sequence[adapters.Taken] = ()
        if adapters.any_adapted(leaves):
            leaves, in_tree, taken = adapters.flatten_by_value((args, kwargs))
        if in_tree != self._arg_tree:
            _errors().refuse_structure(self._lowered._stage._flat, self._arg_tree, in_tree, self.fun_name)
        if tuple([x.aval if type(x) is ArrayImpl else None for x in leaves]) != self._avals:
            _errors().refuse_types(self._lowered._stage._flat, self._arg_tree, self._avals, leaves,
                                   self.fun_name)
        if not taken:
            if not self._lowered._references and not state.check_floats:
                keep(self._fast, fast_key, self._call, leaves)
            return self._run_with(self._lowered._references, leaves)
        with adapters.lending(taken):
            leaves = adapters.own_memory(taken, leaves, self._lowered._traced.donated)
            result, changes = self._run_with(self._lowered._references, leaves)
        adapters.write_back(taken, changes)
        return result

    def _run_with(self, references: Sequence[Any], leaves: Sequence[Any]) -> Any:
        """A call of the program, which may use references that its function closes over."""
        if not references:
            return self._run(leaves)
        for ref, _ in references:
            ref.check()
        values = [ref.lend() if written else ref.value() for ref, written in references]
        was = [ref.take() for ref, _ in references]
        try:
            changed, result = self._run([*values, *leaves])
        finally:
            for (ref, _), value in zip(references, was):
                ref.keep(value)
        for (ref, _), value in zip([pair for pair in references if pair[1]], changed, strict=True):
            ref.put(value)
        return result

    def _run(self, leaves: Sequence[Any]) -> Any:
        results = self._call(leaves)
        if results is WRONG_DEVICE:
            formats = pytree.tree_leaves(self.input_formats, lambda x: x is None)
            _errors().refuse_placements(formats, leaves, self._lowered._stage._flat, self.fun_name)
        return results


def _errors() -> ModuleType:
    from . import compiled_errors  # few calls are wrong
    return compiled_errors


def _view(title: str, path: Any, **forms: Any) -> View:
    from ..inspection.pages.view import view  # few look
    return view(title, path=path, **forms)


def _view_jaxpr(self: Jaxpr, path: str | os.PathLike[str] | None = None) -> View:
    """The program as a page to look at; see `Lowered.view`.

    >>> jax.make_jaxpr(lambda x: x + 1)(1.).view()
    View(<lambda>: 3 rows of jaxpr)
    """
    return _view(self.name, path, jaxpr=self)


Jaxpr.view = _view_jaxpr


def trace(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any], statics: Any) -> Traced:
    """The `trace` method of a jit function."""
    given = jitted.given_values(args, kwargs, statics, abstract)
    with adapters.lending(given.taken):
        traced = jitted.trace_given(given, requested=True)
    flat = jitted.flat(given.leaves, given.in_tree, statics, bool(given.taken))
    return Traced(traced, jitted, flat, given.key)


def _is_stablehlo(dialect: str | None) -> bool:
    if dialect not in (None, "stablehlo", "hlo"):
        raise ValueError(f"unknown dialect: {dialect}: \"stablehlo\" and \"hlo\" are known")
    return dialect != "hlo"
