"""shard_map: a program that each device runs on its part of the operands.

`jaxpr` is the program of one device; `in_specs` and `out_specs` say how operands and results are cut over
the axes `manual` of `mesh`; other axes stay with the compiler.  In a `checked` one, avals inside tell over
which axes values vary (see `collectives.py`).  The derivative of an operand that all devices share is a sum
over them: checked programs have it inside, others get it in the transpose rule, where also the cotangent of
a result that all devices hold is divided.
"""
import contextlib
import dataclasses
import functools

from ...core import programs
from ...core.config import named_axes, state
from ...core.effects import Check
from ...core.jaxpr import Eqn, Var, eval_jaxpr
from ...core.primitive import fact_of
from ...core.refs import Holder, Ref
from ...core.symbolic_zeros import MappedAxis, drop_zeros, fill_zeros, is_undefined_primal, nonzero_mask
from ...sharding.mesh import AxisType
from ...sharding.named import NamedSharding
from ...sharding.spec import PartitionSpec
from ...sharding.text import unreduced_text
from ..arrays.elementwise import div
from ..arrays.shape import front, front_dims, reshape
from ..common import dtypes, prod
from ..programs.calls import no_tangent
from ..programs.checks import Failures, failures_of, first_code
from .collectives import psum_p
from .sharding import as_type


def part(aval, spec, mesh, checked, manual):
    """The aval of one device's part of a value of `aval`; what other axes than `manual` ones split stays so.

    Raises:
        ValueError: where a dimension is not divisible.
    """
    shape = []
    for dim, size in enumerate(aval.shape):
        count = prod(mesh.shape[a] for a in spec.axes(dim))
        if size % count:
            raise ValueError(f"axis {dim} of shape {aval.shape} has size {size}, which is not a multiple of "
                             f"{count}, the size of mesh axes {spec.axes(dim)}, along which {spec} cuts it")
        shape.append(size // count)
    explicit = aval.explicit
    if explicit is not None:
        types = [AxisType.Manual if name in manual else kind
                 for name, kind in zip(explicit.mesh.axis_names, explicit.mesh.axis_types)]
        rest = explicit.spec.update(
            partitions=[tuple(a for a in split if a not in manual) for split in aval.splits],
            unreduced=explicit.spec.unreduced - {*manual}, reduced=explicit.spec.reduced - {*manual})
        explicit = explicit.update(mesh=explicit.mesh.update(axis_types=types), spec=rest)
    return aval.update(shape=tuple(shape), vma=aval.vma | (names(spec) if checked else frozenset()),
                       sharding=explicit)


def whole(aval, spec, mesh, manual):
    """The aval of the value of which each device holds a part of `aval`."""
    shape = tuple(size * prod(mesh.shape[a] for a in spec.axes(dim)) for dim, size in enumerate(aval.shape))
    own = [spec.axes(dim) for dim in range(aval.ndim)]
    explicit = NamedSharding(mesh, spec.update(
        partitions=[(*axes, *split) for axes, split in zip(own, aval.splits)]))
    return aval.update(shape=shape, vma=aval.vma - {*manual},
                       sharding=explicit if mesh.explicit_axes else None)


def names(spec):
    """The mesh axes along which devices have values of their own, of what a PartitionSpec cuts.

    A term of a sum is a device's own; so is a value that is reduced, in that its cotangent is such a term.
    """
    return frozenset(a for dim in range(len(spec)) for a in spec.axes(dim)) | spec.unreduced | spec.reduced


def cotangents(specs):
    """The specs of cotangents of values of these specs."""
    return [spec.to_ct_spec() for spec in specs]


def _abstract_eval(*avals, jaxpr, mesh, in_specs, out_specs, manual, checked):
    for aval, spec, inner in zip(avals, in_specs, jaxpr.in_avals, strict=True):
        found = part(aval, spec, mesh, checked, manual)
        if (found.shape, found.dtype) != (inner.shape, inner.dtype):
            raise TypeError(f"shard_map: an operand's part is {found.str_short()}, the program takes "
                            f"{inner.str_short()}")
    return [whole(a, spec, mesh, manual) for a, spec in zip(jaxpr.out_avals, out_specs)]


def _lower(ctx, eqn, *operands):
    p = eqn.params
    jaxpr, mesh, manual = p["jaxpr"], p["mesh"], p["manual"]
    if mesh.size == 1:      # a part is the whole; and XLA lets no token into a manual computation
        return ctx.single_device_region(mesh, manual, lambda: ctx.inline(jaxpr, operands))
    name, inside = ctx.module.mesh(mesh), {*ctx.module.manual[1], *manual}
    free = "?" if len(inside) < len(mesh.axis_names) else ""

    def sharding(spec, aval):
        ndim = aval.ndim + (len(aval.dtype.physical_shape) if dtypes.is_extended(aval.dtype) else 0)
        dims = [", ".join([*(f'"{a}"' for a in spec.axes(d)), *free]) for d in range(ndim)]
        return f"<@{name}, [{', '.join(f'{{{d}}}' for d in dims)}]{unreduced_text(spec)}>"

    def body(args):
        return ctx.inline(jaxpr, args), [a.mlir for a in jaxpr.out_avals]
    in_types = [(inner.mlir, v.aval.mlir) for inner, v in zip(jaxpr.in_avals, eqn.invars)]
    return ctx.manual_computation(
        operands, in_types, [sharding(s, v.aval) for s, v in zip(p["in_specs"], eqn.invars)],
        [sharding(s, v.aval) for s, v in zip(p["out_specs"], eqn.outvars)],
        [v.aval.mlir for v in eqn.outvars], mesh, manual, body)


@contextlib.contextmanager
def inside(mesh, manual, checked):
    """`with inside(mesh, manual, checked):` the manual axes have the names that collectives may use."""
    with named_axes(*[(a, mesh.shape[a], "checked" if checked else "manual") for a in manual]):
        state.enter(meshes=(*state.meshes, (mesh, False)))      # `changed` would bring back, after a Ctrl-C,
        try:                                                    # meshes of blocks that have ended
            yield
        finally:
            state.put(meshes=state.meshes[:-1])


# --- derivatives ----------------------------------------------------------------------------------

def _jvp(primals, tangents, *, jaxpr, in_specs, out_specs, **params):
    tangents = _moving(tangents)
    moving = nonzero_mask(tangents)
    # rules that users wrote run, with collectives
    with inside(params["mesh"], params["manual"], params["checked"]):
        program, out_nonzero = programs.jvp(jaxpr, moving)
    results = shard_map_p.bind(
        *primals, *drop_zeros(tangents), jaxpr=program, in_specs=(*in_specs, *_where(in_specs, moving)),
        out_specs=(*out_specs, *_where(out_specs, out_nonzero)), **params)
    return results[:len(out_specs)], fill_zeros(results[len(out_specs):], out_nonzero)


def _moving(tangents):
    return [None if no_tangent(t) else t for t in tangents]


def _where(specs, chosen):
    return [spec for spec, c in zip(specs, chosen) if c]


@programs.cached
def _split(jaxpr, moving, mesh, manual, checked):
    """(program of results and what the linear part needs, specs of that, the linear program, `Linearized`).

    What a device computes for later is stacked along a new leading dimension, over the axes where it varies.
    """
    with inside(mesh, manual, checked):
        split = programs.linearize(jaxpr, moving)
    stacked = [kind == "out" for kind, _ in split.residuals]
    stacked += [False] * (len(split.linear.invars) - len(stacked))
    return *_saving(split.primal, len(jaxpr.outvars), manual, checked), _using(split.linear, stacked,
                                                                               "linear"), split


def _saving(jaxpr, n, manual, checked):
    """(the program with its results behind the first n stacked, the specs of those)."""
    specs = tuple(PartitionSpec(tuple(a for a in manual if not checked or a in aval.vma) or None)
                  for aval in jaxpr.out_avals[n:])

    def saving(*xs):
        results = eval_jaxpr(jaxpr, (), *xs)
        return [*results[:n], *[reshape(x, (1, *x.shape)) for x in results[n:]]]
    return programs.trace_closed(saving, jaxpr.in_avals, jaxpr.name), specs


def _using(jaxpr, stacked, name):
    """The program that takes those inputs stacked that are marked."""
    def using(*xs):
        return eval_jaxpr(jaxpr, (), *[reshape(x, x.shape[1:]) if s else x for x, s in zip(xs, stacked)])
    avals = [a.update(shape=(1, *a.shape)) if s else a for a, s in zip(jaxpr.in_avals, stacked)]
    return programs.trace_closed(using, avals, name)


def _linearize(trace, primals, tangents, *, jaxpr, in_specs, out_specs, **params):
    tangents = _moving(tangents)
    moving = nonzero_mask(tangents)
    primal, saved_specs, linear, split = _split(jaxpr, moving, params["mesh"], params["manual"],
                                                params["checked"])
    results = shard_map_p.bind(*primals, jaxpr=primal, in_specs=in_specs,
                               out_specs=(*out_specs, *saved_specs), **params)
    outs, saved = results[:len(out_specs)], results[len(out_specs):]
    moved = trace.rules.record(
        shard_map_p, [*split.select(primals, saved), *drop_zeros(tangents)],
        {"jaxpr": linear, "in_specs": (*split.select(in_specs, saved_specs), *_where(in_specs, moving)),
         "out_specs": tuple(_where(out_specs, split.out_nonzero)), **params})
    return outs, fill_zeros(moved, split.out_nonzero)


@programs.cached
def _transposed(jaxpr, linear, ct_nonzero, in_specs, out_specs, mesh, manual, checked):
    """(the transposed program, which linear inputs get a cotangent)."""
    with inside(mesh, manual, checked):
        program, in_nonzero = programs.transpose(jaxpr, linear, ct_nonzero)
    if checked:
        return program, in_nonzero

    def shared(spec):
        return tuple(a for a in manual if a not in names(spec))
    known = linear.count(False)
    counts = [prod(mesh.shape[a] for a in shared(spec)) for spec in _where(out_specs, ct_nonzero)]
    sums = [shared(spec) for spec in _where(_where(in_specs, linear), in_nonzero)]

    def fun(*xs):
        cts = [ct if n == 1 or ct.dtype == dtypes.float0 else div(ct, n) for ct, n in zip(xs[known:], counts)]
        found = eval_jaxpr(program, (), *xs[:known], *cts)
        return [psum_p.bind(x, axes=axes, groups=None) if axes else x for x, axes in zip(found, sums)]
    return programs.trace_closed(fun, program.in_avals, program.name), in_nonzero


def _transpose(cts, *args, jaxpr, in_specs, out_specs, mesh, manual, checked):
    linear, ct_nonzero = tuple(map(is_undefined_primal, args)), nonzero_mask(cts)
    program, in_nonzero = _transposed(jaxpr, linear, ct_nonzero, in_specs, out_specs, mesh, manual, checked)
    results = shard_map_p.bind(
        *[a for a in args if not is_undefined_primal(a)], *drop_zeros(cts), jaxpr=program, mesh=mesh,
        manual=manual, checked=checked,
        in_specs=(*_where(in_specs, [not lin for lin in linear]), *cotangents(_where(out_specs, ct_nonzero))),
        out_specs=tuple(cotangents(_where(_where(in_specs, linear), in_nonzero))))
    return fill_zeros(fill_zeros(results, in_nonzero), linear)


# --- batching, dead code --------------------------------------------------------------------------

def _batching(axis, args, dims, *, jaxpr, mesh, in_specs, out_specs, manual, checked):
    """The mapped axis is cut over mesh axes only if vmap's `spmd_axis_name` says so and they are manual."""
    args = front(args, dims)
    batched = nonzero_mask(dims)
    wanted = axis.spmd_name if isinstance(axis.spmd_name, tuple) else (axis.spmd_name,)
    if axis.sharding is not None:
        wanted = axis.sharding.spec.axes(0)
    over = tuple(a for a in wanted if a in manual)
    for spec in (*in_specs, *out_specs):
        if not names(spec).isdisjoint(over):
            raise ValueError(f"vmap: spmd_axis_name {axis.spmd_name!r} names a mesh axis that {spec} of the "
                             "shard_map uses")
    local = MappedAxis(axis.size // prod(mesh.shape[a] for a in over), axis.name, axis.spmd_name)
    with inside(mesh, manual, checked):
        program, out_batched = programs.batch(jaxpr, local, batched)

    def extended(specs, mapped):
        return tuple(spec.update(partitions=(over or None, *spec)) if m else spec
                     for spec, m in zip(specs, mapped))
    specs = extended(in_specs, batched)
    if checked and over:      # once more, with the values marked that now vary over those axes too
        avals = [a.update(vma=a.vma | names(spec)) for a, spec in zip(program.in_avals, specs)]
        program = programs.trace_closed(functools.partial(eval_jaxpr, program, ()), avals, program.name)
    outs = shard_map_p.bind(*args, jaxpr=program, mesh=mesh, in_specs=specs,
                            out_specs=extended(out_specs, out_batched), manual=manual, checked=checked)
    return outs, front_dims(out_batched)


def _discharge(states, values, args, *, jaxpr, in_specs, out_specs, **params):
    if type(states[0].handles) is Failures:
        return _thread_checks(states, values, args, jaxpr, in_specs, out_specs, **params)
    alike, program = (PartitionSpec(),) * len(states), programs.discharge(jaxpr, states)
    for s, aval in zip(states, program.out_avals):
        of_a_ref = type(getattr(s.handles, "__self__", None)) is Ref      # not a token
        if of_a_ref and params["checked"] and aval.vma - s.aval.vma:
            raise ValueError(f"shard_map: what is written to Ref{{{s.aval.str_short()}}}, which the function "
                             f"closes over, may differ between devices along {sorted(aval.vma)}, and the "
                             "Ref is one for all: pass it as an argument, whose in_specs cuts it, or reduce "
                             "over these axes (psum, pmean)")
    results = shard_map_p.bind(*values, *args, jaxpr=program,
                               in_specs=(*alike, *in_specs), out_specs=(*alike, *out_specs), **params)
    return results[:len(states)], results[len(states):]


def _thread_checks(states, values, args, jaxpr, in_specs, out_specs, *, mesh, manual, checked):
    """Each device has its own states, which are stacked; the code is that of the first device that failed."""
    known, on_mesh = states[0].handles, _on_devices(jaxpr, mesh, manual)
    each = failures_of(jaxpr.effects)
    vma = states[0].aval.vma | frozenset(manual if checked else ())
    own = Failures(tuple([f for f in each.all if on_mesh[f] in known.codes]))
    n, n_own = len(each.avals), len(own.avals)

    def fun(*xs):
        results = eval_jaxpr(programs.discharge(jaxpr, own.states(vma)), (), *own.start(vma), *xs)
        all_states = each.joined(each.start(vma), own, results[:n_own])
        return [*[reshape(x, (1, *x.shape)) for x in all_states], *results[n_own:]]
    with inside(mesh, manual, checked):
        program = programs.trace_closed(fun, jaxpr.in_avals, jaxpr.name)
    results = shard_map_p.bind(*args, jaxpr=program, mesh=mesh, in_specs=in_specs, manual=manual,
                               checked=checked, out_specs=(*[PartitionSpec(manual)] * n, *out_specs))
    reported = Failures(tuple(on_mesh.values()))
    stacked = [as_type(x, aval) for x, aval in zip(results, reported.avals[1:])]
    return known.joined(values, reported, [first_code(stacked[0]), *stacked]), results[n:]


def _on_devices(jaxpr, mesh, manual):
    """{failure on a device: what it is of all devices}."""
    each, sizes = failures_of(jaxpr.effects), tuple(mesh.shape[a] for a in manual)
    return {f: f.on_devices(each, sizes) for f in each.all} if each else {}


def _effects(params):
    on_mesh = _on_devices(params["jaxpr"], params["mesh"], params["manual"])
    return tuple([dataclasses.replace(e, failure=on_mesh[e.failure]) if type(e) is Check else e
                  for e in params["jaxpr"].effects])


def _dce(used_outputs, eqn):
    p = eqn.params
    jaxpr, used = programs.alive(p["jaxpr"], tuple(used_outputs))
    return Eqn(eqn.primitive, [v for v, u in zip(eqn.invars, used) if u],
               [v for v, u in zip(eqn.outvars, used_outputs) if u],
               {**p, "jaxpr": jaxpr, "in_specs": tuple(_where(p["in_specs"], used)),
                "out_specs": tuple(_where(p["out_specs"], used_outputs))}, eqn.effects, eqn.source,
               eqn.name_stack)


def _partial_eval(policy, wanted, eqn):
    p, n = eqn.params, len(eqn.invars)
    with inside(p["mesh"], p["manual"], p["checked"]):
        forward, again = programs.partial_eval(p["jaxpr"], policy, wanted)
        again = _using(again, [i >= n for i in range(len(again.invars))], again.name)
        forward, specs = _saving(forward, len(eqn.outvars), p["manual"], p["checked"])
    extra = [Var(whole(a, spec, p["mesh"], p["manual"]))
             for a, spec in zip(forward.out_avals[len(wanted):], specs)]
    second = eqn.replace(invars=[*eqn.invars, *extra], outvars=_where(eqn.outvars, wanted), params={
        **p, "jaxpr": again, "in_specs": (*p["in_specs"], *specs),
        "out_specs": tuple(_where(p["out_specs"], wanted))})
    if extra:
        eqn = eqn.replace(outvars=[*eqn.outvars, *extra],
                          params={**p, "jaxpr": forward, "out_specs": (*p["out_specs"], *specs)})
    return eqn, _dce([True] * len(second.outvars), second), extra


shard_map_p = Holder(
    "shard_map", multiple_results=True, linear="typed", abstract_eval=_abstract_eval, lower=_lower, jvp=_jvp,
    linearize=_linearize, transpose=_transpose, batching=_batching, discharge=_discharge, effects=_effects,
    dce=_dce, partial_eval=_partial_eval,
    meshes=lambda params: (params["mesh"], *fact_of(params["jaxpr"], "meshes")), spans_devices=True,
    axis_names=lambda params: tuple(n for n in fact_of(params["jaxpr"], "axis_names")
                                    if n not in params["manual"]),
    also={"check_vma": lambda params: params["checked"],
          "newly_manual_axes": lambda params: frozenset(params["manual"])},
    shown=lambda eqn: {{"checked": "check_vma", "manual": "newly_manual_axes"}.get(k, k):
                       frozenset(v) if k == "manual" else v for k, v in eqn.params.items()})
