"""shard_map as users call it: pytrees, prefixes of specs, checks that name the argument."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...core.avals import ShapedArray, aval_of
from ...core.config import state
from ...core.effects import IO, is_ordered
from ...core.errors import DuplicateSpecError, ShardingTypeError, check_callable, did_you_mean
from ...core.jaxpr import Eqn, Jaxpr, Var, close
from ...core.jaxpr_trace import trace_to_jaxpr
from ...core.pytrees import pytree
from ...core.surface.boundary import boundaries
from ...core.trace import Tracer
from ...primitives.parallel.collectives import vary
from ...primitives.parallel.shard_map import inside, names, part, shard_map_p
from ...runtime import evaluate
from ...sharding.mesh import AbstractMesh, Mesh, current_mesh
from ...sharding.named import NamedSharding
from ...sharding.spec import PartitionSpec
from .. import adapters
from ..adapters import Taken
from ..flat import FlatFunction, StatefulFunction
from ..signatures import name_of, take_names
from . import eager_shard_map


class _Infer:
    """`in_specs` that are not given: those of the shardings of the arguments."""

    def __repr__(self) -> str:
        return "Infer"


_INFER = _Infer()


def shard_map(f: Callable[..., Any] | None = None, /, *, out_specs: Any, in_specs: Any = _INFER,
              mesh: Mesh | AbstractMesh | None = None, axis_names: Iterable[str] = frozenset(),
              check_vma: bool = True, check_rep: bool | None = None) -> Callable[..., Any]:
    """A function that runs `f` on every device of a mesh, each with its part of the arguments.

    Outside of jit the values inside can be read: `print` shows each device's, and where all devices have one
    by type, `if`, `while`, `float` and their like take it (without check_vma, if it is the same on all).
    What types do not show hangs with check_vma too: collectives that the compiler adds for axes outside of
    `axis_names` in a branch that devices take differently, and a callback that does not return on one of
    them.

    Args:
        f: function of positional arguments, pytrees of arrays; it sees one device's parts, and may call
            collectives (`lax.psum(x, "data")`).  Without it, returns a decorator.
        out_specs: PartitionSpecs, or a pytree of them that is a prefix of the result: which dimensions are
            cut over which axes.  Along axes that a spec does not name, all devices must have computed the
            same.
        in_specs: the same for the tuple of arguments; along axes that a spec does not name, all devices get
            the same value.  Without it each argument is cut as its sharding says, and TypeError names one
            whose sharding is not over the mesh, or is not known: under jit, give in_specs.
        mesh: a Mesh or an AbstractMesh; without it, the current one (`set_mesh`).
        axis_names: the axes of the mesh that `f` may name, all by default; along the others the compiler
            divides the work.
        check_vma: let types say which values differ between devices.  A result that may differ along an axis
            which its spec does not name is then a ValueError; so is a collective in a branch or a loop for
            which devices decide differently, where they would wait for each other for ever; and inside, the
            derivative by a value that all devices share is summed over them.  Without it nothing is checked,
            of such results that of the first device is taken, such collectives hang the process or mix up
            what they add, and a derivative taken inside is each device's own.  Derivatives taken outside are
            the same.
        check_rep: an older name of `check_vma`.
    Raises:
        ValueError: where specs do not fit mesh or arguments, or a dimension does not divide.
        TypeError: for specs, a mesh or an `f` of another kind.

    >>> mesh = jax.make_mesh((2,), ("x",))                      # two devices
    >>> def f(part):                                            # shape (2,) on each
    ...     return part - lax.pmean(part.mean(), "x")
    >>> jax.shard_map(f, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))(jnp.array([1., 2., 3., 6.]))
    Array([-2., -1.,  0.,  3.], dtype=float32)
    """
    if check_rep is not None:
        check_vma = check_rep
    if f is None:
        return functools.partial(shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs,
                                 axis_names=axis_names, check_vma=check_vma)
    check_callable(f)
    return _ShardMapped(f, mesh, in_specs, out_specs, axis_names, check_vma)


@boundaries(called="")
class _ShardMapped:
    """The function that `shard_map` returns."""

    def __init__(self, f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any,
                 axis_names: Iterable[str], check_vma: bool) -> None:
        self.f = f
        self.name = name_of(f)
        if isinstance(axis_names, str):
            raise TypeError("`axis_names` argument of shard_map should be of type `frozenset` or `set`. Got "
                            f"type: {type(axis_names)}: write {{{axis_names!r}}}")
        self.mesh, self.axis_names, self.check_vma = mesh, axis_names, check_vma
        self.in_specs, self.out_specs = in_specs, out_specs
        take_names(self, f)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise TypeError(f"shard_map of {self.name} takes positional arguments only; in_specs says "
                            f"nothing of keyword arguments {', '.join(kwargs)}")
        mesh, manual = self._mesh_and_axes()
        leaves, in_tree, taken = adapters.flatten_by_value((args, {}))
        flat = (StatefulFunction if taken else FlatFunction)(self.f, leaves, in_tree, "shard_map")
        adapters.refuse_twice(flat, taken)
        given = self.in_specs
        if given is _INFER:
            given = flat.arg_tree.unflatten([self._spec_of(flat, i, mesh, manual)
                                             for i in range(len(flat.leaves))])
        if type(given) is list:
            raise ValueError(f"shard_map of {self.name}: in_specs is a list, and its arguments are a tuple: "
                             "write a tuple of specs")
        in_specs = self._specs("in_specs", flat.arg_tree, given, mesh, manual)
        avals = [self._part(flat, i, spec, mesh, manual) for i, spec in enumerate(in_specs)]
        with adapters.lending(taken):
            jaxpr, operands, specs, out_specs = self._trace(flat, avals, in_specs, mesh, manual, taken)
            results = shard_map_p.bind(*operands, jaxpr=jaxpr, mesh=mesh, in_specs=tuple(specs),
                                       out_specs=tuple(out_specs), manual=manual,
                                       checked=bool(self.check_vma))
        if not taken:
            return flat.out_tree.unflatten(results)
        result, changes = flat.out_tree.unflatten(results)
        adapters.write_back(taken, changes)
        return result

    def _mesh_and_axes(self) -> tuple[Any, tuple[str, ...]]:
        """The mesh, and those of its axes that become manual here, in order."""
        around = {name for name, _, kind in state.axis_env if kind != "vmap"}
        mesh = current_mesh() if self.mesh is None else self.mesh
        if mesh is None:
            raise ValueError(f"shard_map of {self.name}: The context mesh cannot be empty, and there is no "
                             "mesh: pass mesh=, or enter one with set_mesh(mesh)")
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            raise TypeError(f"shard_map of {self.name}: mesh is a Mesh or an AbstractMesh, got {mesh!r}")
        known = current_mesh()
        if not around and known is not None and (known.shape_tuple, known.axis_types) != (
                mesh.shape_tuple, mesh.axis_types):
            raise ValueError(f"shard_map of {self.name}: The context mesh {known}, which set_mesh or "
                             f"use_abstract_mesh said, should match the mesh passed to shard_map {mesh}")
        enclosing = current_mesh() if around else None
        if enclosing is not None and not _same_devices(mesh, enclosing):
            raise ValueError(f"shard_map of {self.name}: it is inside of a shard_map over {enclosing}, and "
                             f"its own mesh is {mesh}; nested ones are over the same mesh")
        unknown = [a for a in self.axis_names if a not in mesh.axis_names]
        if unknown:
            raise ValueError(f"shard_map of {self.name} requires axis_names={self.axis_names} to be a subset "
                             f"of mesh.axis_names={mesh.axis_names}: {unknown[0]!r} is no axis of it")
        free = [a for a in mesh.axis_names if a not in around]
        manual = tuple(a for a in free if not self.axis_names or a in self.axis_names)
        if not manual:
            raise ValueError(f"shard_map of {self.name}: its axes "
                             f"{sorted(self.axis_names) or mesh.axis_names} are those of an enclosing "
                             "shard_map already")
        return mesh, manual

    def _specs(self, what: str, treedef: pytree.PyTreeDef, specs: Any, mesh: Mesh | AbstractMesh,
               manual: tuple[str, ...]) -> tuple[PartitionSpec, ...]:
        """The PartitionSpec of each leaf."""
        where = f"shard_map of {self.name}: {what}"
        found = []
        flat = pytree.flatten_axes(where, treedef, specs)
        for spec in adapters.specs_of_values(treedef, flat, PartitionSpec):
            spec = PartitionSpec() if spec is None else spec
            if not isinstance(spec, PartitionSpec):
                raise TypeError(f"{where} argument must be a pytree of `jax.sharding.PartitionSpec` "
                                f"instances, got {spec!r}")
            if PartitionSpec.UNCONSTRAINED in spec:
                raise ValueError(f"{where} {spec} leaves a dimension to the compiler (UNCONSTRAINED): name "
                                 f"the axes of {manual} that cut it, or None")
            used = [a for d in range(len(spec)) for a in spec.axes(d)]
            used += [*spec.unreduced, *spec.reduced]
            if spec.partial and not {*spec.unreduced, *spec.reduced} <= {*mesh.explicit_axes}:
                raise ValueError(f"{where} {spec} is unreduced or reduced, which is over Explicit axes, and "
                                 f"the mesh is {mesh}")
            for axis in used:
                if axis not in manual:
                    raise ValueError(f"{where} argument must refer to an axis marked as manual: {spec} "
                                     f"names {axis!r}, which is not one of the axes {manual} over which "
                                     f"it maps; the mesh is {mesh}{did_you_mean(axis, manual)}")
                if used.count(axis) > 1:
                    raise DuplicateSpecError(f"{where}: a single NamedSharding specification can map every "
                                             f"mesh axis to at most one positional dimension, but {spec} "
                                             f"has duplicate entries for `{axis}`: name it once")
            found.append(spec)
        return tuple(found)

    def _spec_of(self, flat: FlatFunction, i: int, mesh: Mesh | AbstractMesh,
                 manual: tuple[str, ...]) -> PartitionSpec:
        """The spec of leaf number `i` over the manual axes of the mesh, by its sharding."""
        x, aval = flat.leaves[i], flat.aval(i)
        if {*manual} <= {*mesh.explicit_axes}:      # the type says it
            spec = PartitionSpec(*[tuple(a for a in split if a in manual) for split in aval.splits])
            stated = aval.explicit.spec if aval.explicit is not None else spec
            return spec.update(unreduced=stated.unreduced & {*manual}, reduced=stated.reduced & {*manual})
        known = x.concrete() if isinstance(x, Tracer) else x
        sharding = evaluate.committed_sharding(known)
        if aval.ndim == 0 and known is not None and sharding is None:
            return PartitionSpec()
        if not isinstance(sharding, NamedSharding) or not _same_devices(mesh, sharding.mesh):
            why = f"is not sharded over it: its sharding is {sharding}"
            if known is None:
                why = f"is traced by {x.under()}, where its sharding is not known"
            elif sharding is None:
                why = f"is not sharded over it: it is a {type(known).__name__}"
            raise TypeError(f"{flat} has no in_specs, so its arguments are cut as they are sharded over "
                            f"{mesh}; argument {flat.path(i)} of type {aval.str_short()} {why}. Pass "
                            "in_specs=, or place it with device_put(x, NamedSharding(mesh, spec))")
        cut = [tuple(a for a in sharding.spec.axes(d) if a in manual) for d in range(len(sharding.spec))]
        return PartitionSpec(*[axes or None for axes in cut])

    def _part(self, flat: FlatFunction, i: int, spec: PartitionSpec,
              mesh: Mesh | AbstractMesh, manual: tuple[str, ...]) -> ShapedArray:
        """The aval of a device's part of leaf number `i`."""
        aval = flat.aval(i)
        found = aval.explicit.spec if aval.explicit is not None else PartitionSpec()
        if found.unreduced & {*manual} != spec.unreduced or not spec.reduced <= found.reduced:
            raise ShardingTypeError(f"{flat}: argument {flat.path(i)} is of type {aval}, and in_specs says "
                                    f"{spec}: both are to be unreduced and reduced over the same of the axes "
                                    f"{manual}. Change in_specs, or reshard the argument.")
        # as JAX: where it maps over some of the axes, or some are Auto, it is divided as in_specs say
        checked = aval.mesh is not None and {*manual} == {*mesh.explicit_axes} == {*mesh.axis_names}
        for dim, split in enumerate(aval.splits if checked else ()):
            cut = spec.axes(dim) if dim < len(spec) else ()
            if [a for a in split if a in manual] != [a for a in cut if a in mesh.explicit_axes]:
                held = PartitionSpec(*[axes or None for axes in aval.splits])
                raise ValueError(f"{flat}: in_specs passed to shard_map: {spec} does not match the specs of "
                                 f"the input: {held} for argument {flat.path(i)} of type {aval}: over "
                                 "Explicit axes the type says how it is cut. Leave in_specs out, or reshard "
                                 f"the argument, as in jax.reshard(x, {spec})")
        if len(spec) > aval.ndim:
            raise ValueError(f"{flat} was given an in_specs entry which is too long to be compatible with "
                             "the corresponding input value from the function: in_specs "
                             f"{spec} has {len(spec)} entries for argument {flat.path(i)} of type "
                             f"{aval.str_short()}, which has rank {aval.ndim}: drop entries from the spec, "
                             "or add axes to the argument")
        try:
            return part(aval, spec, mesh, self.check_vma, manual)
        except ValueError as error:
            raise ValueError(f"{flat} was given argument arrays with axis sizes that are not evenly "
                             "divisible by the corresponding mesh axis sizes: "
                             f"argument {flat.path(i)}, args{pytree.leaf_paths(flat.arg_tree)[i]}, "
                             f"of type {aval.str_short()}: {error}. Pad it, or cut it otherwise.") from None

    def _trace(self, flat: Any, avals: list[ShapedArray], in_specs: Any, mesh: Mesh | AbstractMesh,
               manual: tuple[str, ...],
               taken: list[Taken]) -> tuple[Jaxpr, Sequence[Any], Sequence[Any], list[PartitionSpec]]:
        """(the program of one device, its operands, their specs, those of the results)."""
        specs: list[PartitionSpec] = []
        arg_specs, operands = in_specs, flat.leaves

        def body(*xs: Any) -> list[Any]:
            outs = flat(*xs)        # from which pmap's specs follow
            given = self.out_specs() if callable(self.out_specs) else self.out_specs
            out_tree = flat.out_tree.children()[0] if taken else flat.out_tree
            specs[:] = self._specs("out_specs", out_tree, given, mesh, manual)
            # what changed of an argument is cut as that was
            specs[:] += [arg_specs[x.places[i]] for x, numbers in zip(taken, flat.changed if taken else ())
                         for i in numbers]
            return [self._checked(flat, i, x, spec, manual) for i, (x, spec) in enumerate(zip(outs, specs))]
        with inside(mesh, manual, self.check_vma):
            if state.trace.staging or not isinstance(mesh, Mesh) or not eager_shard_map.visible(flat.leaves):
                jaxpr, consts = close(trace_to_jaxpr(body, avals, self.name))
                operands, in_specs = (*consts, *flat.leaves), (*[PartitionSpec()] * len(consts), *in_specs)
            else:
                jaxpr, operands, in_specs = eager_shard_map.trace(
                    body, avals, self.name, flat.leaves, in_specs, mesh, manual, bool(self.check_vma))
        if is_ordered(e for e in jaxpr.effects if type(e) is not IO) and mesh.size > 1:
            raise ValueError(f"{flat}: ordered effects are not supported for more than 1 device: the devices "
                             "have no order among themselves, so use ordered=False")
        return jaxpr, operands, in_specs, specs

    def _checked(self, flat: FlatFunction, i: int, x: Any, spec: PartitionSpec,
                 manual: tuple[str, ...]) -> Any:
        """A result that its spec describes; in checked mode it varies over all axes that the spec names."""
        aval = aval_of(x)
        if len(spec) > aval.ndim:
            raise ValueError(f"{flat} was given an out_specs entry which is too long to be compatible with "
                             "the corresponding output value from the function: out_specs "
                             f"{spec} has {len(spec)} entries for {flat.out_path(i)} of type "
                             f"{aval.str_short()}, which has rank {aval.ndim}: drop entries from the spec, "
                             "or keep the axes, as in x.sum(keepdims=True)")
        if not self.check_vma:
            return x
        extra = sorted((aval.vma & {*manual}) - names(spec))
        if extra:
            raise ValueError(
                f"{flat} was given out_specs which require replication which can't be statically inferred "
                f"given the mesh: out_specs {spec} says that {flat.out_path(i)} is the same on all devices "
                f"along {extra}, and it may vary there: its type is {aval}. Name the axes in out_specs, or "
                "reduce over them (psum, pmean); if the values are equal all the same, say check_vma=False.")
        if not spec.unreduced <= aval.vma:
            raise ValueError(f"{flat}: out_specs {spec} says that {flat.out_path(i)} is unreduced, and its "
                             f"type is {aval}: the devices along {sorted(spec.unreduced - aval.vma)} have "
                             "the same value, not terms of a sum.")
        return vary(x, names(spec))


def _same_devices(mesh: Mesh | AbstractMesh, other: Mesh | AbstractMesh) -> bool:
    """Have two meshes the same axes, and the same devices if both have some?"""
    if mesh.shape_tuple != other.shape_tuple:
        return False
    return not isinstance(mesh, Mesh) or not isinstance(other, Mesh) or mesh._devices == other._devices


def _with_devices(mesh: Mesh | AbstractMesh, args: Sequence[Any]) -> Mesh | AbstractMesh:
    """The mesh, or in place of an AbstractMesh that of an argument, or of `set_mesh`, with the same axes."""
    found = [*[getattr(evaluate.committed_sharding(x), "mesh", None) for x in args], state.mesh_to_run_on]
    return mesh if isinstance(mesh, Mesh) else next((
        m for m in found if isinstance(m, Mesh) and m.shape_tuple == mesh.shape_tuple), mesh)


def _evaluate(*args: Any, **params: Any) -> list[Any]:
    """Outside of every trace: a program of this one equation, whose results are sharded by out_specs."""
    mesh = _with_devices(params["mesh"], args)
    params = {**params, "mesh": mesh}
    whole = {*params["manual"]} == {*mesh.axis_names}
    outs = tuple([NamedSharding(mesh, spec) for spec in params["out_specs"]]) if whole else None
    invars = [Var(aval_of(a)) for a in args]
    outvars = [Var(a) for a in shard_map_p.abstract_eval(*[v.aval for v in invars], **params)]
    eqn = Eqn(shard_map_p, invars, outvars, params, effects=shard_map_p.effects_of(params))
    return evaluate.run_program(Jaxpr((), (), invars, [eqn], outvars, params["jaxpr"].name), args, outs=outs)


shard_map_p.impl_rule = _evaluate
