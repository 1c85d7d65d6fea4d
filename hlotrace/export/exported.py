"""Exported functions: a jitted function as a portable program with its calling convention, and calls of such.

The calling convention is JAX's, version 10: main takes the position of the platform among `platforms` where
there are several, then the arguments that the program uses (`module_kept_var_idx`), flat; it gives the
results, flat.
"""
from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..api.autodiff import vjp
from ..api.custom_derivatives import custom_vjp
from ..api.flat import FlatFunction, abstract
from ..api.jit import JitFunction, jit
from ..api.shape_dtype_struct import ShapeDtypeStruct
from ..core.avals import ShapedArray
from ..core.config import config
from ..core.dtypes import is_extended
from ..core.effects import Check
from ..core.errors import UnexpectedTracerError
from ..core.jaxpr import Jaxpr, dce, eval_jaxpr
from ..core.platforms import platform_named
from ..core.programs import embed_constants, trace_closed
from ..core.pytrees import pytree
from ..core.refs import accesses
from ..core.surface.boundary import boundaries, boundary, filtered
from ..core.symbolic.dimension import Dimension, evaluate, is_symbolic_dim, surely, variables
from ..core.symbolic.scope import SymbolicScope, solve, symbolic_shape
from ..core.trace import Tracer
from ..lowering.lowered import Lowered, lower
from ..lowering.module import Module
from ..lowering.symbolic_shapes import DynamicModule
from ..placement.shardings import constrained
from ..primitives.arrays.random import random_unwrap_p, random_wrap_p
from ..primitives.programs.exported import call_exported_p, lower_for_platforms
from ..runtime.devices import client
from ..runtime.mlir import portable_artifacts as portable
from ..sharding.mesh import AbstractMesh
from ..sharding.named import NamedSharding, as_named
from ..sharding.partition import Partition
from . import format

if TYPE_CHECKING:
    from ..sharding.mesh import Mesh

# kernels that jaxlib, its plugins and XLA have under these names, and will have
_PROMISED = re.compile(
    r"(lapack|cu|cusolver|cublas|cusparse|cuhybrid|hip|hipsolver|hipblas|hipsparse|hiphybrid)_|"
    r"(annotate_device_placement|ApproxTopK|Sharding|shape_assertion|TopK)$")

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10


@boundaries
class DisabledSafetyCheck:
    """A check that `export` and calls of what it gives shall leave out; see `platform` and `custom_call`."""
    __slots__ = ("target",)

    def __init__(self, target: str | None = None) -> None:
        self.target = target

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """May it be called on a platform for which it was not exported?"""
        return cls(None)

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """May it call the kernel of this name, which may change in another version?"""
        return cls(target_name)

    def is_custom_call(self) -> str | None:
        """The name of the kernel, None for another check."""
        return self.target

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self.target == other.target

    def __hash__(self) -> int:
        return hash(self.target)

    def __repr__(self) -> str:
        return "platform" if self.target is None else f"custom_call:{self.target}"


@boundaries
@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Exported:
    """A function as a portable program: what `export` and `deserialize` give.  `call` calls it.

    `in_shardings_hlo` and `out_shardings_hlo` are None for each leaf; `in_shardings_jax` and
    `out_shardings_jax` give the shardings.  `ordered_effects` and `unordered_effects` are empty, as what
    calls Python cannot be exported.

    Attributes:
        fun_name: its name, for errors.
        in_tree: the structure of (args, kwargs).
        in_avals: the types of its leaves.
        out_tree: the structure of the result.
        out_avals: the types of its leaves.
        _in_named_shardings: for each leaf of the arguments a NamedSharding over an AbstractMesh, or None.
        _out_named_shardings: the same of the result.
        nr_devices: over how many devices it runs; one for one device may be called over any number.
        platforms: those for which it was exported.
        disabled_safety_checks: those that were left out.
        mlir_module_serialized: the program, a portable artifact of StableHLO.
        calling_convention_version: the option `jax_export_calling_convention_version`, 9 or 10.
        module_kept_var_idx: the leaves that the program takes.
        uses_global_constants: does it take the position of the platform, or sizes?
        _get_vjp: gives of this the Exported of its derivative; None where there is none.

    >>> exported = jax.export.export(jax.jit(lambda x: x**2))(jax.ShapeDtypeStruct((2,), "float32"))
    >>> exported.call(jnp.array([1., 3.])), len(exported.serialize()) > 100
    (Array([1., 9.], dtype=float32), True)
    """

    fun_name: str
    in_tree: pytree.PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: pytree.PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    _in_named_shardings: tuple[NamedSharding | None, ...]
    _out_named_shardings: tuple[NamedSharding | None, ...]
    in_shardings_hlo: tuple[Any, ...] = ()
    out_shardings_hlo: tuple[Any, ...] = ()
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[Any, ...] = ()
    unordered_effects: tuple[Any, ...] = ()
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Exported], Exported] | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(field.type, str) and field.type.startswith("tuple"):
                object.__setattr__(self, field.name, tuple(value))
        object.__setattr__(self, "in_shardings_hlo", (None,) * len(self.in_avals))
        object.__setattr__(self, "out_shardings_hlo", (None,) * len(self.out_avals))

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    def mlir_module(self) -> str:
        """The program as StableHLO text."""
        return portable.text(self.mlir_module_serialized)

    def in_shardings_jax(self, mesh: Mesh | AbstractMesh) -> tuple[NamedSharding | None, ...]:
        """For each leaf of the arguments its sharding over a mesh, which may be an AbstractMesh, or None."""
        return _over(mesh, self._in_named_shardings, self)

    def out_shardings_jax(self, mesh: Mesh | AbstractMesh) -> tuple[NamedSharding | None, ...]:
        """For each leaf of the result its sharding over a mesh, which may be an AbstractMesh, or None."""
        return _over(mesh, self._out_named_shardings, self)

    def has_vjp(self) -> bool:
        """Is there a derivative?"""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The Exported of its derivative: (leaves of the arguments, cotangents of the results) -> cotangents.

        Raises:
            ValueError: where it was read from an artifact that has none.
        """
        if self._get_vjp is None:
            raise ValueError(f"No VJP is available: {self.fun_name} was serialized without its derivative. "
                             "Serialize it with vjp_order=1, or more for derivatives of the derivative.")
        return self._vjp

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """It as a bytearray, which `deserialize` and JAX read.

        Args:
            vjp_order: how many derivatives in reverse mode go with it.
        Raises:
            ValueError: for more derivatives than there are, and for containers whose class is not registered.
        """
        if type(vjp_order) is not int or vjp_order < 0:
            raise ValueError("serialize: vjp_order is the number of derivatives that go with it, 0 or more; "
                             f"got {vjp_order!r}")
        return format.to_bytes(self._table(vjp_order))

    def _table(self, vjp_order: int) -> dict[str, Any]:
        if vjp_order and self._get_vjp is None:
            raise ValueError(f"serialize: {self.fun_name} has no VJP of high-enough order: it was read from "
                             f"an artifact, and vjp_order={vjp_order} is more than went into that. Ask for "
                             "less, or export the function again.")
        return format.to_table(self, self.vjp()._table(vjp_order - 1) if vjp_order else None)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call it, also while another function is traced.

        There are reverse-mode derivatives as far as `vjp` goes.

        Args:
            args: the arguments; with `kwargs` of the structure, shapes and dtypes for which it was exported.
        Raises:
            ValueError: for others, on other platforms and over other numbers of devices.
        """
        leaves, in_tree = pytree.tree_flatten((args, kwargs))
        if in_tree != self.in_tree:
            differences = [line for what, a, b in zip(
                ("args", "kwargs"), self.in_tree.children(), in_tree.children())
                for line in pytree.structure_differences(
                    f"- {what}{{path}} is {{b}} in the invocation and {{a}} when exported, so {{why}}.", a, b,
                    ("what was exported", "the invocation"))]
            raise ValueError(pytree.report(
                "The invocation args and kwargs must have the same pytree structure as when the function "
                f"{self.fun_name!r} was exported, but they have the following structural differences",
                differences) + "\nGive it what `in_tree` says, or export it for this.")
        flat = FlatFunction(self.call, leaves, in_tree, f"call of the exported function {self.fun_name}")
        self._result_avals(flat.avals())
        return self.out_tree.unflatten(self._call(*leaves))

    @functools.cached_property
    def _vjp(self) -> Exported:
        assert self._get_vjp is not None
        return self._get_vjp(self)

    # --- what `call_exported` needs -------------------------------------------------------------------------

    @functools.cached_property
    def _call(self) -> JitFunction:
        """The jitted function of leaves."""
        several = self.nr_devices > 1
        ins, outs = (self._in_named_shardings, self._out_named_shardings) if several else (None, None)

        def call(*leaves: Any) -> Any:
            results = self._differentiable(*constrained(leaves, ins, f"call of {self.fun_name}"))
            return constrained(results, outs, f"result of {self.fun_name}")
        call.__name__ = self.fun_name
        return JitFunction(call)

    @functools.cached_property
    def _differentiable(self) -> custom_vjp:
        """The function of leaves, with its derivative."""
        def call(*leaves: Any) -> tuple[Any, ...]:
            return tuple(call_exported_p.bind(*leaves, exported=self))

        def backward(leaves: Sequence[Any], cotangents: Sequence[Any]) -> Any:
            return self.vjp().call(*leaves, *cotangents)
        call.__name__ = self.fun_name
        function = custom_vjp(call)
        # also the second derivative
        function.defvjp(lambda *leaves: (function(*leaves), leaves), backward)
        return function

    def _result_avals(self, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
        """The types of the results for arguments of these types; ValueError for others than the exported."""
        if not self._symbolic:
            for i, (aval, want) in enumerate(zip(avals, self.in_avals)):
                if (aval.shape, aval.dtype) != (want.shape, want.dtype):
                    raise _other_type(aval, want, _paths(self.in_tree)[i])
            return list(self.out_avals)
        values = self._values(avals)
        return [ShapedArray(tuple(evaluate(d, values) for d in a.shape), a.dtype, a.weak_type)
                for a in self.out_avals]

    @functools.cached_property
    def _symbolic(self) -> list[Any]:
        return [d for a in self.in_avals for d in a.shape if is_symbolic_dim(d)]

    def _values(self, avals: Sequence[ShapedArray]) -> dict[Any, Any]:
        """{variable: its value} for arguments of these types; ValueError where they do not fit."""
        paths = _paths(self.in_tree)
        for aval, want, path in zip(avals, self.in_avals, paths):
            if aval.ndim != want.ndim or aval.dtype != want.dtype or any(
                    a != b for a, b in zip(aval.shape, want.shape) if not is_symbolic_dim(b)):
                raise _other_type(aval, want, path)
        shapes = [a.shape for a in self.in_avals]
        places = [[(i, j) for j in range(len(shape))] for i, shape in enumerate(shapes)]
        values: dict[Any, Any] = {}

        obtained: list[str] = []

        def refuse(problem: str, what: str = "polymorphic shapes specification") -> NoReturn:
            said = ",".join(f"{path}.shape = {shape}" for path, shape in zip(paths, shapes))
            raise ValueError(f"Input shapes do not match the {what}. {problem} Using the following "
                             f"polymorphic shapes specifications: {said}. Obtained dimension variables: "
                             f"{''.join(obtained)}.")
        for variable, (i, j), rest, factor in solve(shapes, places, paths):
            size = avals[i].shape[j]
            value, left = divmod(size - evaluate(rest, values), factor)
            if left != 0:
                refuse(f"Division had remainder {left} when computing the value of {variable!r}.")
            obtained.append(f"{variable!r} = {value} from specification '{shapes[i][j]}' for dimension "
                            f"{paths[i]}.shape[{j}] (= {size}), ")
            if not is_symbolic_dim(value) and value < 1:
                refuse(f"Expected value >= 1 for dimension variable {variable!r}.")
            values[variable] = value
        for i, shape in enumerate(shapes):
            for j, d in enumerate(shape):
                if evaluate(d, values) != avals[i].shape[j]:
                    refuse(f"Found inconsistency between dimension size {paths[i]}.shape[{j}] (= "
                           f"{avals[i].shape[j]}) and the specification '{d}' (= {evaluate(d, values)}).")
        for text, rest, equal in self._symbolic[0].scope.constraints:
            found = evaluate(rest, values) if variables(rest) <= values.keys() else 0
            if found != 0 if equal else not surely(found, 0):
                refuse(f"Expected '{rest}' to be {'equal' if equal else 'greater or equal'} to 0, but found "
                       f"{found}. ", f"symbolic shape constraint {text}")
        return values

    def _platform_index(self, platform: str) -> int:
        if platform in self.platforms:
            return self.platforms.index(platform)
        if DisabledSafetyCheck.platform() in self.disabled_safety_checks:
            return 0
        wanted = (*self.platforms, str(platform))
        raise ValueError(f"Function {self.fun_name!r} was exported for platforms {self.platforms} but it is "
                         f"used on {platform!r}. Export it with platforms={wanted}.")

    def _check_devices(self, number: int) -> None:
        if self.nr_devices not in (1, number):
            raise ValueError(f"Function {self.fun_name} was exported for {self.nr_devices} devices and is "
                             f"called in a context with {number} device{'s' * (number != 1)}, which is not "
                             f"allowed. Place its arguments over a mesh of {self.nr_devices} devices: see "
                             "in_shardings_jax.")

    def _functions(self, avals: Sequence[ShapedArray], module: Module) -> Any:
        """The text of its functions for a module under construction; see `portable_artifacts.functions`."""
        def mesh(axes: dict[str, int]) -> str:
            return module.mesh(AbstractMesh(tuple(axes.values()), tuple(axes)))
        types = None
        if self._symbolic:
            types = [re.sub(r"\{[^{}]*\}x", "?x", avals[i].mlir) for i in self.module_kept_var_idx]
        return portable.functions(self.mlir_module_serialized, module.unique,
                                  mesh if self.nr_devices > 1 else None, module.locations is not None, types)


def _paths(in_tree: pytree.PyTreeDef) -> list[str]:
    """`args[0]['w']` for each leaf of (args, kwargs)."""
    args, kwargs = map(pytree.leaf_paths, in_tree.children())
    return [*("args" + path for path in args), *("kwargs" + path for path in kwargs)]


def _over(mesh: Mesh | AbstractMesh, shardings: Sequence[NamedSharding | None],
          exported: Exported) -> tuple[NamedSharding | None, ...]:
    if mesh.size != exported.nr_devices:
        raise ValueError(f"{exported.fun_name} was exported for {exported.nr_devices} devices, and {mesh} "
                         f"has {mesh.size}")
    return tuple(s and s.update(mesh=mesh) for s in shardings)


def _other_type(aval: ShapedArray, want: ShapedArray, path: str) -> ValueError:
    """The error for an argument of another type than the one that was exported."""
    if aval.ndim != want.ndim:
        return ValueError(f"Rank mismatch for {path}: expected {want.shape} and called with {aval.shape}")
    for i, (got, size) in enumerate(zip(aval.shape, want.shape)):
        if got != size and not is_symbolic_dim(size):
            return ValueError(f"Shape mismatch for {path}.shape[{i}] (expected same constant): expected "
                              f"{want.shape} and called with {aval.shape}. Export it for this shape as "
                              "well, or for a symbolic one: see export.symbolic_shape.")
    return ValueError(f"Dtype mismatch for {path}: expected {want.dtype} and called with {aval.dtype}; "
                      f"convert it with .astype({want.dtype.name!r})")


# --- exporting ----------------------------------------------------------------------------------------------

def default_export_platform() -> str:
    """The platform for which `export` exports where none is given: "cpu", "cuda", "rocm" or "tpu".

    >>> jax.export.default_export_platform() in ("cpu", "cuda", "rocm", "tpu")
    True
    """
    return str(client.platform_of(client.default_device()))


def export(fun_jit: Any, *, platforms: Sequence[str] | None = None,
           disabled_checks: Sequence[DisabledSafetyCheck] = ()) -> Callable[..., Exported]:
    """A function of arguments of `fun_jit`, or ShapeDtypeStructs, that gives an `Exported` for their types.

    The artifact has shardings of arguments and results and no layouts: it takes and gives the devices' own.

    Args:
        fun_jit: what `jit` returned; its static arguments are given as they will be.
        platforms: those that it shall run on, a sequence of "cpu", "cuda", "rocm" and "tpu"; by default the
            one that is used.
        disabled_checks: `DisabledSafetyCheck`s to leave out.
    Raises:
        ValueError: for a function that is not jitted, or that calls kernels of the user's.
        NotImplementedError: for one that calls Python.

    >>> sizes = jax.export.symbolic_shape("n, 3")                            # for all n
    >>> exported = jax.export.export(jax.jit(lambda x: x.sum(0)))(jax.ShapeDtypeStruct(sizes, "float32"))
    >>> exported.in_avals, exported.out_avals
    ((ShapedArray(float32[n,3]),), (ShapedArray(float32[3]),))
    >>> exported.call(jnp.ones((5, 3)))
    Array([5., 5., 5.], dtype=float32)
    """
    if not isinstance(fun_jit, JitFunction) and hasattr(fun_jit, "lower") and hasattr(fun_jit, "trace"):
        fun_jit = jit(fun_jit)      # as jnp.sin
    if not isinstance(fun_jit, JitFunction):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit!r:.80}; "
                         "write export(jit(f))")
    if isinstance(platforms, str) or not all(isinstance(p, str) for p in platforms or ()):
        raise TypeError("export: platforms is a sequence of names, such as ('cpu', 'tpu'); got "
                        f"{platforms!r}")
    if not all(isinstance(c, DisabledSafetyCheck) for c in disabled_checks):
        raise TypeError("export: disabled_checks is a sequence of export.DisabledSafetyCheck, got "
                        f"{disabled_checks!r}")

    @filtered
    def exported(*args: Any, **kwargs: Any) -> Exported:
        names = tuple(platforms) if platforms else (default_export_platform(),)
        return _export(fun_jit, args, kwargs, tuple(dict.fromkeys(str(platform_named(p)) for p in names)),
                       tuple(disabled_checks))
    return exported


def _export(jitted: JitFunction, args: Iterable[Any], kwargs: dict[str, Any], platforms: tuple[str, ...],
            checks: tuple[DisabledSafetyCheck, ...]) -> Exported:
    stage = jitted.trace(*args, **kwargs)
    traced, jaxpr = stage._traced, _without_keys(stage._traced.jaxpr)
    if any(isinstance(c, Tracer) for c in traced.consts):
        raise UnexpectedTracerError(f"export of {jitted._name}: it closes over a value that is being traced. "
                                    "Pass it as an argument.")
    effects = [e for e in jaxpr.effects if not (isinstance(e, Check) and e.failure.debug)]
    if accesses(effects) or traced.changed is not None:
        raise NotImplementedError(f"export of {jitted._name}: it uses a Ref from outside, and an artifact "
                                  "has none. Pass the value, ref[...], and return the new one.")
    if any(isinstance(e, Check) for e in effects):
        raise NotImplementedError(f"export of {jitted._name}: the checks in it would not be made. Export "
                                  "checkify.checkify(f), which returns its errors as values; and those of "
                                  "hlotrace_check_bounds are not there while that option is off.")
    if effects:
        raise NotImplementedError(f"export of {jitted._name}: serialization of host_callbacks is not yet "
                                  "implemented: a call of Python cannot leave this process. Take "
                                  "debug.print, pure_callback and io_callback out of it.")
    where, _ = jitted.device_assignment(traced, stage._flat.leaves)
    paths = _paths(stage.in_tree)
    symbolic = [(d, path) for a, path in zip(jaxpr.in_avals, paths) for d in a.shape if is_symbolic_dim(d)]
    for d, path in symbolic:
        if d.scope is not symbolic[0][0].scope:
            raise ValueError(f"Invalid mixing of symbolic scopes when exporting {jitted._name}.\nExpected "
                             f"current (from {symbolic[0][1]}) scope {symbolic[0][0].scope}\nand found for "
                             f"'{d}' ({path}) scope {d.scope}\nMake all shapes with one "
                             "scope=SymbolicScope().")
    keep = traced.keep_unused or bool(symbolic)     # sizes are asked of all
    program, used = dce(embed_constants(jaxpr), keep_invars=keep)
    kept = tuple(i for i, u in enumerate(used) if u or keep)
    ins: list[Any] = [None] * len(jaxpr.invars)
    outs: Sequence[Any] = [None] * len(jaxpr.outvars)
    if isinstance(where, Partition):
        plain = [[s and s.in_layout(None) or None for s in given] for given in
                 (where.ins[len(where.ins) - len(kept):], where.outs or outs)]
        where = where._replace(ins=tuple(plain[0]), outs=tuple(plain[1]))
        for i, s in zip(kept, where.ins):
            ins[i] = s
        outs = where.outs
    partition = where if isinstance(where, Partition) and len(where.devices) > 1 else None
    results = ["result" + path for path in pytree.leaf_paths(traced.out_tree)]
    text = _text(program, platforms, partition, paths, results, checks)
    version = config.jax_export_calling_convention_version
    _check_version(f"export of {jitted._name}: jax_export_calling_convention_version is {version}", version)
    return Exported(
        fun_name=jitted._name, in_tree=stage.in_tree, in_avals=tuple(jaxpr.in_avals), out_tree=stage.out_tree,
        out_avals=tuple(jaxpr.out_avals), _in_named_shardings=_named(ins, jaxpr.in_avals),
        _out_named_shardings=_named(outs, jaxpr.out_avals),
        nr_devices=len(partition.devices) if partition else 1,
        platforms=platforms, disabled_safety_checks=checks, mlir_module_serialized=portable.write(text),
        calling_convention_version=version, module_kept_var_idx=kept,
        uses_global_constants=len(platforms) > 1 or bool(symbolic),
        _get_vjp=lambda exported: _export_vjp(exported, jitted, stage))


def _without_keys(jaxpr: Jaxpr) -> Jaxpr:
    """The program, which makes the keys that it closes over of their words."""
    if not any(is_extended(v.aval.dtype) for v in jaxpr.constvars):
        return jaxpr
    impls = [v.aval.dtype if is_extended(v.aval.dtype) else None for v in jaxpr.constvars]
    words = [np.asarray(random_unwrap_p.bind(c)) if impl else c for c, impl in zip(jaxpr.consts, impls)]

    def fun(*args: Any) -> list[Any]:
        consts = [random_wrap_p.bind(x, impl=impl) if impl else x for x, impl in zip(words, impls)]
        return eval_jaxpr(jaxpr, consts, *args)
    return trace_closed(fun, jaxpr.in_avals, jaxpr.name, jaxpr.arg_names)


def _check_version(said: str, version: int) -> None:
    """ValueError for a calling convention version that is not known."""
    known = minimum_supported_calling_convention_version, maximum_supported_calling_convention_version
    if not known[0] <= version <= known[1]:
        raise ValueError(f"{said}; hlotrace knows {known[0]} to {known[1]}")


def _named(shardings: Iterable[Any], avals: Iterable[ShapedArray]) -> tuple[NamedSharding | None, ...]:
    """Shardings over abstract meshes, by default those of the types; of one device nothing is said."""
    def named(s: Any, aval: ShapedArray) -> NamedSharding | None:
        if s is None or s.num_devices == 1:
            return aval.explicit
        s = as_named(s, aval.ndim)
        return NamedSharding(s.mesh.abstract_mesh, s.spec, s._kind)
    return tuple(map(named, shardings, avals))


def _text(program: Jaxpr, platforms: tuple[str, ...], partition: Partition | None, paths: list[str],
          result_names: list[str], checks: tuple[DisabledSafetyCheck, ...]) -> str:
    """The program by the calling convention."""
    dims = [d for v in program.invars for d in v.aval.shape if is_symbolic_dim(d)]

    def lowered(program: Jaxpr, partition: Partition | None, platform: str) -> Lowered:
        kind: Callable[..., Module] = Module
        if dims:
            names = ["the platform", *paths][-len(program.invars):]
            kind = functools.partial(DynamicModule, dims=dims, paths=names)
        found = lower(program, platform=platform, blocks=[], partition=partition, result_names=result_names,
                      kind=kind)
        if found.callbacks:
            raise NotImplementedError(f"export of {program.name}: serialization of host_callbacks is not yet "
                                      "implemented")
        for target in found.targets:
            if not _PROMISED.match(target) and DisabledSafetyCheck(target) not in checks:
                raise ValueError(f"export of {program.name}: Cannot serialize code with custom calls whose "
                                 f"targets have no compatibility guarantees: it calls {target!r}. If every "
                                 "process that shall call it has this kernel, pass "
                                 f"disabled_checks=[export.DisabledSafetyCheck.custom_call({target!r})].")
        return found
    text = lower_for_platforms(program, partition, platforms, lowered).text
    if not dims and len(platforms) == 1:
        return text
    return text.replace(" attributes {", " attributes {jax.uses_shape_polymorphism = true, ", 1)


def _export_vjp(exported: Exported, jitted: JitFunction, stage: Any) -> Exported:
    """The Exported of a function's derivative."""
    n, (in_tree, statics) = len(exported.in_avals), (stage.in_tree, stage._flat.statics)

    def primal(*leaves: Any) -> tuple[Any, ...]:
        flat = FlatFunction(jitted._fun, leaves, in_tree, "export", statics)
        return tuple(flat(*leaves))

    def fun_vjp_jax(*leaves: Any) -> tuple[Any, ...]:
        outs, pullback = vjp(primal, *leaves[:n])
        return pullback(tuple(leaves[n:]))
    avals = (*exported.in_avals, *(a.tangent() for a in exported.out_avals))
    places: list[Any] = [None] * len(avals)
    if exported.nr_devices > 1:
        places = [*exported._in_named_shardings, *exported._out_named_shardings]
    structs = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type, sharding=s)
               for a, s in zip(avals, places)]
    return _export(JitFunction(fun_vjp_jax), structs, {}, exported.platforms, exported.disabled_safety_checks)


def deserialize(blob: bytes | bytearray | memoryview) -> Exported:
    """The `Exported` that `Exported.serialize` wrote, here or in JAX.

    Raises:
        ValueError: where the bytes are no such thing, or name a container whose class is not registered here.
        TypeError: for what is no bytes.

    >>> export = jax.export.export(jax.jit(jnp.sin), platforms=("cpu", "tpu"))
    >>> exported = export(jax.ShapeDtypeStruct((2,), "float32"))
    >>> again = jax.export.deserialize(exported.serialize())
    >>> again.platforms, again.call(jnp.zeros(2))
    (('cpu', 'tpu'), Array([0., 0.], dtype=float32))
    """
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise TypeError(f"deserialize expects the bytes that Exported.serialize gave, got {blob!r:.60} of "
                        f"type {type(blob).__name__}")
    return _from_table(format.from_bytes(blob))


def _from_table(table: dict[str, Any]) -> Exported:
    fields = format.fields(table)
    fields["disabled_safety_checks"] = tuple(map(DisabledSafetyCheck, fields["disabled_safety_checks"]))
    version = fields["calling_convention_version"]
    _check_version(f"deserialize: {fields['fun_name']} has the calling convention version {version}", version)
    if table["vjp"]:
        fields["_get_vjp"] = lambda _: _from_table(table["vjp"])
    return Exported(**fields)


# --- symbolic shapes ----------------------------------------------------------------------------------------

for _name in "add radd sub rsub mul rmul floordiv rfloordiv mod rmod divmod rdivmod lt le gt ge int".split():
    # their errors are the user's
    setattr(Dimension, f"__{_name}__", boundary(getattr(Dimension, f"__{_name}__"), ""))
boundaries(SymbolicScope)


def symbolic_args_specs(args: Any, shapes_specs: Any, constraints: Sequence[str] = (),
                        scope: SymbolicScope | None = None) -> Any:
    """ShapeDtypeStructs for `export`, as `args` but for their shapes, with what `symbolic_shape` takes.

    Args:
        args: a pytree of arrays or ShapeDtypeStructs, whose dtypes are taken, and sizes where the text has a
            placeholder.
        shapes_specs: None where all sizes are those of `args`, a text for all of them (see `symbolic_shape`),
            or a pytree of these that is a prefix of `args`.
    Raises:
        ValueError: for both constraints and a scope.

    >>> batch = {"x": np.ones((8, 3), np.float32), "y": np.ones(8, np.int32)}
    >>> jax.export.symbolic_args_specs(batch, "b, ...")
    {'x': ShapeDtypeStruct(shape=(b, 3), dtype=float32), 'y': ShapeDtypeStruct(shape=(b,), dtype=int32)}
    """
    leaves, treedef = pytree.tree_flatten(args)
    if scope is not None and constraints:
        raise ValueError("symbolic_args_specs: cannot specify both a `scope` and `constraints`; give the "
                         "constraints to the SymbolicScope")
    scope = scope if scope is not None else SymbolicScope(constraints)
    specs = pytree.flatten_axes("export.symbolic_args_specs shapes_specs", treedef, shapes_specs)
    return treedef.unflatten([ShapeDtypeStruct(symbolic_shape(spec, scope=scope, like=a.shape), a.dtype)
                              for a, spec in zip(map(abstract, leaves), specs)])
