"""export: the portable program of a jitted function, for types of its arguments."""
from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..api.autodiff import vjp
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
from ..core.surface.boundary import filtered
from ..core.symbolic.dimension import is_symbolic_dim
from ..core.symbolic.scope import SymbolicScope, symbolic_shape
from ..core.trace import Tracer
from ..lowering.lowered import Lowered, lower
from ..lowering.module import Module
from ..lowering.symbolic_shapes import DynamicModule
from ..primitives.arrays.random import random_unwrap_p, random_wrap_p
from ..primitives.programs.exported import lower_for_platforms
from ..runtime.devices import client
from ..runtime.mlir import portable_artifacts as portable
from ..sharding.named import NamedSharding, as_named
from ..sharding.partition import Partition
from .exported import DisabledSafetyCheck, Exported, check_version, paths_of

# kernels that jaxlib, its plugins and XLA have under these names, and will have
_PROMISED = re.compile(
    r"(lapack|cu|cusolver|cublas|cusparse|cuhybrid|hip|hipsolver|hipblas|hipsparse|hiphybrid)_|"
    r"(annotate_device_placement|ApproxTopK|Sharding|shape_assertion|TopK)$")


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
    paths = paths_of(stage.in_tree)
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
    check_version(f"export of {jitted._name}: jax_export_calling_convention_version is {version}", version)
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
