"""Exported functions: a portable program with its calling convention, calls of it, and reading it again.

The calling convention is JAX's, version 10: main takes the position of the platform among `platforms` where
there are several, then the arguments that the program uses (`module_kept_var_idx`), flat; it gives the
results, flat.
"""
from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..api.custom_derivatives import custom_vjp
from ..api.flat import FlatFunction
from ..api.jit import JitFunction
from ..core.avals import ShapedArray
from ..core.pytrees import pytree
from ..core.surface.boundary import boundaries, boundary
from ..core.symbolic.dimension import Dimension, evaluate, is_symbolic_dim, surely, variables
from ..core.symbolic.scope import SymbolicScope, solve
from ..lowering.module import Module
from ..placement.shardings import constrained
from ..primitives.programs.exported import call_exported_p
from ..runtime.mlir import portable_artifacts as portable
from ..sharding.mesh import AbstractMesh, Mesh
from ..sharding.named import NamedSharding
from . import format

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10


@boundaries
@dataclasses.dataclass(frozen=True, repr=False)
class DisabledSafetyCheck:
    """A check that `export` and calls of what it gives shall leave out; see `platform` and `custom_call`."""
    target: str | None = None

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
                    raise _other_type(aval, want, paths_of(self.in_tree)[i])
            return list(self.out_avals)
        values = self._values(avals)
        return [ShapedArray(tuple(evaluate(d, values) for d in a.shape), a.dtype, a.weak_type)
                for a in self.out_avals]

    @functools.cached_property
    def _symbolic(self) -> list[Any]:
        return [d for a in self.in_avals for d in a.shape if is_symbolic_dim(d)]

    def _values(self, avals: Sequence[ShapedArray]) -> dict[Any, Any]:
        """{variable: its value} for arguments of these types; ValueError where they do not fit."""
        paths = paths_of(self.in_tree)
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


def paths_of(in_tree: pytree.PyTreeDef) -> list[str]:
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


# --- reading ------------------------------------------------------------------------------------------------

def check_version(said: str, version: int) -> None:
    """ValueError for a calling convention version that is not known."""
    known = minimum_supported_calling_convention_version, maximum_supported_calling_convention_version
    if not known[0] <= version <= known[1]:
        raise ValueError(f"{said}; hlotrace knows {known[0]} to {known[1]}")


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
    check_version(f"deserialize: {fields['fun_name']} has the calling convention version {version}", version)
    if table["vjp"]:
        fields["_get_vjp"] = lambda _: _from_table(table["vjp"])
    return Exported(**fields)


# --- symbolic shapes ----------------------------------------------------------------------------------------

for _name in "add radd sub rsub mul rmul floordiv rfloordiv mod rmod divmod rdivmod lt le gt ge int".split():
    # their errors are the user's
    setattr(Dimension, f"__{_name}__", boundary(getattr(Dimension, f"__{_name}__"), ""))
boundaries(SymbolicScope)
