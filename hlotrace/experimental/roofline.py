"""Roofline estimates: what a function computes and moves, read from its program by a rule for each primitive.

`flops` and `hbm_bytes` are those of matrix products, as if all else were fused into them; the `unfused_` ones
count each operation apart.  What goes over the links of a torus is counted by mesh axis (`ici_bytes`, of the
busiest link; `ici_latency`, in hops), as in Chan et al., "Collective communication: theory, practice, and
experience" (2007).
"""
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import prod

import numpy as np

from ..api.autodiff import vjp as vjp_of
from ..api.jit import make_jaxpr
from ..api.parallel.shard_map import shard_map
from ..api.shape_dtype_struct import ShapeDtypeStruct, eval_shape
from ..core.jaxpr import Var, sub_jaxprs
from ..core.primitive import Builtin, PassRules
from ..core.pytrees import pytree
from ..core.surface.public import export_names
from ..inspection.costs import taps
from ..primitives.arrays import elementwise as e, reduce as r
from ..primitives.arrays.bit_formats import bitcast_convert_type_p, reduce_precision_p
from ..primitives.arrays.contract import dot_general_p
from ..primitives.arrays.conv import conv_general_dilated_p
from ..primitives.arrays.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from ..primitives.arrays.gather import SCATTERS, gather_p
from ..primitives.arrays.random import random_unwrap_p, random_wrap_p, threefry2x32_p
from ..primitives.arrays.shape import reduce_sum_p
from ..primitives.arrays.slicing import copy_p, iota_p, optimization_barrier_p
from ..primitives.parallel import collectives as c
from ..primitives.parallel.sharding import device_put_p, layout_constraint_p, sharding_constraint_p
from ..primitives.programs.cond_while import cond_p
from ..primitives.programs.remat import name_p
from ..primitives.programs.scan import scan_p

__all__ = ["RooflineResult", "RooflineRuleContext", "RooflineShape", "register_roofline",
           "register_standard_roofline", "roofline", "roofline_and_grad"]


@dataclass(frozen=True, kw_only=True)
class RooflineResult:
    """What a program needs.  `+` adds up all but `peak_hbm_bytes`, of which it takes the larger."""
    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: Mapping[str, int] = field(default_factory=dict)
    ici_latency: Mapping[str, int] = field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls):
        return cls()

    def __add__(self, other):
        return self._with(other, lambda name, a, b: max(a, b) if name == "peak_hbm_bytes" else a + b)

    def _with(self, other, combine):
        def each(name):
            a, b = getattr(self, name), getattr(other, name)
            if isinstance(a, Mapping):
                return {k: combine(name, a.get(k, 0), b.get(k, 0)) for k in (*a, *b)}
            return combine(name, a, b)
        return RooflineResult(**{f.name: each(f.name) for f in fields(self)})


@dataclass(frozen=True, kw_only=True)
class RooflineShape:
    """The shape and dtype of an operand, as rules are given them."""
    shape: tuple
    dtype: np.dtype

    @classmethod
    def from_aval(cls, aval):
        return cls(shape=aval.shape, dtype=aval.dtype)

    @classmethod
    def total_bytes(cls, avals):
        """The bytes of several arrays together."""
        return sum(cls.from_aval(a).bytes for a in avals)

    @property
    def size(self):
        return prod(self.shape)

    @property
    def bytes(self):
        return self.size * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, kw_only=True)
class RooflineRuleContext:
    """What a rule gets of an application: `avals_out` are its results, `mesh` is that of the shard_map."""
    name_stack: str
    primitive: object
    avals_in: tuple
    avals_out: tuple
    mesh: object
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool


_total = RooflineShape.total_bytes


def register_roofline(prim):
    """Decorator of the rule of a primitive: `rule(ctx, *RooflineShapes, **params)` gives a RooflineResult.

    >>> from hlotrace.experimental import roofline as rf
    >>> from hlotrace.extend.core import Primitive
    >>> my_op = Primitive("my_op")
    >>> _ = my_op.def_abstract_eval(lambda x: x)
    >>> @rf.register_roofline(my_op)
    ... def rule(ctx, x):
    ...     return rf.RooflineResult(unfused_flops=10 * x.size)
    >>> rf.roofline(my_op.bind)(jnp.ones(3))[1].unfused_flops
    30
    """
    def register(rule):
        RULES.given[prim] = rule
        return rule
    return register


def register_standard_roofline(prim):
    """Let a primitive count as nothing, without the warning.

    >>> from hlotrace.experimental import roofline as rf
    >>> rf.register_standard_roofline(lax.sort_p)
    """
    RULES.given[prim] = _nothing


# --- rules ----------------------------------------------------------------------------------------

def _nothing(_ctx, *_, **__):
    return RooflineResult()


def _unfused(ctx, flops):
    return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=_total((*ctx.avals_in, *ctx.avals_out)))


def _elementwise(ctx, *_, **__):
    return _unfused(ctx, ctx.avals_out[0].size)


def _reduction(ctx, x, *_, **__):
    return _unfused(ctx, x.size - ctx.avals_out[0].size)


def _cumulative(ctx, x, *, axis, **_):
    return _unfused(ctx, x.size - x.size // max(x.shape[axis], 1))


def _dot(ctx, lhs, rhs, *, dimension_numbers, **_):
    out, (contracted, _) = ctx.avals_out[0], dimension_numbers[0]
    flops = 2 * out.size * prod(lhs.shape[i] for i in contracted)
    moved = _total([out]) + (not ctx.pin_lhs_in_vmem) * lhs.bytes + (not ctx.pin_rhs_in_vmem) * rhs.bytes
    return RooflineResult(flops=flops, unfused_flops=flops, hbm_bytes=moved, unfused_hbm_bytes=moved)


def _conv(ctx, x, w, *, dimension_numbers, window_strides, padding, lhs_dilation, rhs_dilation, **_):
    (_, _, *spatial), (out_features, features, *window), (batch, _, *outs) = dimension_numbers
    out = ctx.avals_out[0].shape
    along = zip(spatial, window, outs, window_strides, padding, lhs_dilation, rhs_dilation)
    met = (taps(x.shape[i], w.shape[j], out[k], stride, low, *gaps) for i, j, k, stride, (low, _),
           *gaps in along)
    return _unfused(ctx, 2 * out[batch] * w.shape[out_features] * w.shape[features] * prod(met))


def _gather(ctx, _x, indices, **_):
    return RooflineResult(unfused_hbm_bytes=2 * _total(ctx.avals_out) + indices.bytes)


def _scatter(ctx, _x, indices, updates, **_):
    return RooflineResult(unfused_flops=0 if ctx.primitive.structural else updates.size,
                          unfused_hbm_bytes=3 * updates.bytes + indices.bytes)


# --- collectives: rings along the axes of a torus -------------------------------------------------

def _over(axes, each, hops):
    return RooflineResult(ici_bytes=dict.fromkeys(axes, int(each)), ici_latency=dict.fromkeys(axes, hops))


def _sizes(ctx, axes, groups):
    return [len(groups[0])] if groups else [ctx.mesh.shape[a] for a in axes]


def _ring(times, share):
    """`times` rounds in which a device receives the part `share(bytes, number of devices)`, over all axes."""
    def rule(ctx, *xs, axes, groups=None, **_):
        sizes = _sizes(ctx, axes, groups)
        part = sum(share(x.bytes, prod(sizes)) for x in xs)
        return _over(axes, times * part // len(axes), times * max(sizes) * len(sizes))
    return rule


def _all_to_all(ctx, x, *, axes, groups, **_):
    """Half of all bytes cross the middle of the longest axis, which is a ring if all are of size over 2."""
    sizes = _sizes(ctx, axes, groups)
    crossing = x.bytes * max(sizes) / (4 if min(sizes) > 2 else 2)
    return _over(axes, crossing if prod(sizes) > 1 else 0, sum(n // 2 for n in sizes))


def _ppermute(ctx, x, *, axes, perm):
    """Messages go the shortest way, axis after axis; `load` counts them on each link."""
    sizes, load, hops = _sizes(ctx, axes, None), Counter(), [0]
    for source, target in perm:
        at, to = (list(np.unravel_index(i, sizes)) for i in (source, target))
        hops.append(0)
        for i, n in enumerate(sizes):
            step = 1 if (to[i] - at[i]) % n <= n // 2 else -1
            while at[i] != to[i]:
                after = [*at[:i], (at[i] + step) % n, *at[i + 1:]]
                load[frozenset([tuple(at), tuple(after)])] += 1
                at, hops[-1] = after, hops[-1] + 1
    return _over(axes, x.bytes * max(load.values(), default=0), max(hops))


# --- programs within programs ---------------------------------------------------------------------

def _most(ctx, *_, branches, **__):
    results = [_program(b, ctx) for b in branches]
    largest = results[0]
    for other in results[1:]:
        largest = largest._with(other, lambda _, a, b: max(a, b))
    return largest


def _scan(ctx, *_, jaxpr, length, **__):
    once = _program(jaxpr, ctx)
    return once._with(once, lambda name, a, _: a if name == "peak_hbm_bytes" else a * length)


def _other(ctx, *_, **params):
    """The rule of what is not listed: by its kind, or a warning that it counts as nothing."""
    primitive = ctx.primitive
    if inside := list(sub_jaxprs(params)):
        return sum((_program(p, ctx) for p in inside), RooflineResult())
    if primitive.elementwise:
        return _elementwise(ctx)
    if not (primitive.structural and isinstance(primitive, Builtin)):
        warnings.warn(f"roofline: there is no rule for {primitive}, which counts as nothing; "
                      "register_roofline gives it one, register_standard_roofline says that nothing is meant",
                      stacklevel=2)
    return _nothing(ctx)


# A warning names what has no rule, so the default is right for all.
# Rules are called (ctx, *shapes, **params) -> RooflineResult.
RULES = PassRules("roofline", _other, lambda p: True, {
    _elementwise: (e.select_n_p, e.clamp_p, threefry2x32_p),
    _reduction: (reduce_sum_p, r.reduce_prod_p, r.reduce_max_p, r.reduce_min_p, r.reduce_and_p, r.reduce_or_p,
                 r.reduce_xor_p, r.argmax_p, r.argmin_p, r.reduce_p),
    _cumulative: (cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p),
    _dot: (dot_general_p,), _conv: (conv_general_dilated_p,), _gather: (gather_p,),
    _scatter: SCATTERS,
    _ring(2, lambda size, n: size * (n - 1) // n): (c.psum_p, c.psum_invariant_p, c.pmax_p, c.pmin_p),
    _ring(1, lambda size, n: size * (n - 1)): (c.all_gather_p,),
    _ring(1, lambda size, n: size * (n - 1) // n): (c.reduce_scatter_p,),
    _all_to_all: (c.all_to_all_p,), _ppermute: (c.ppermute_p,), _most: (cond_p,), _scan: (scan_p,),
    _nothing: (e.convert_element_type_p, bitcast_convert_type_p, reduce_precision_p, e.stop_gradient_p,
               iota_p, copy_p, c.pvary_p, c.axis_index_p, optimization_barrier_p, name_p,
               sharding_constraint_p, layout_constraint_p, device_put_p, random_wrap_p, random_unwrap_p)})


def _program(jaxpr, ctx, held=_total):
    """What a program needs; `held` gives the bytes of arrays between equations.

    Values are freed by the last equation that reads them.
    """
    last = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.invars if type(v) is Var}
    last.update((v, len(jaxpr.eqns)) for v in jaxpr.outvars if type(v) is Var)
    live = {v for v in (*jaxpr.constvars, *jaxpr.invars) if v in last}
    total = RooflineResult(peak_hbm_bytes=held([v.aval for v in live]))
    for i, eqn in enumerate(jaxpr.eqns):
        operands = {v for v in eqn.invars if type(v) is Var}
        avals = tuple(v.aval for v in eqn.invars)
        here = RooflineRuleContext(
            name_stack=eqn.name_stack, primitive=eqn.primitive, avals_in=avals,
            avals_out=tuple(v.aval for v in eqn.outvars), mesh=eqn.params.get("mesh") or ctx.mesh,
            pin_lhs_in_vmem=ctx.pin_lhs_in_vmem, pin_rhs_in_vmem=ctx.pin_rhs_in_vmem)
        found = RULES.of(eqn.primitive)(here, *map(RooflineShape.from_aval, avals), **eqn.params)
        beside = held([v.aval for v in live - operands])
        live = {v for v in (*live, *eqn.outvars) if last.get(v, -1) > i}
        total = total + found + RooflineResult(peak_hbm_bytes=max(
            found.peak_hbm_bytes and found.peak_hbm_bytes + beside, held([v.aval for v in live])))
    return total


# --- functions ------------------------------------------------------------------------------------

def _struct(x):
    return ShapeDtypeStruct(x.shape, x.dtype) if isinstance(x, RooflineShape) else x


def _analyse(f, args, mesh, pins, print_jaxpr):
    jaxpr, out = make_jaxpr(f, return_shape=True)(*args)
    if print_jaxpr:
        print(jaxpr)
    ctx = RooflineRuleContext(name_stack="", primitive=None, avals_in=(), avals_out=(), mesh=mesh, **pins)
    # outside of shard_map arrays are whole
    return out, _program(jaxpr, ctx, _total if mesh is None else lambda avals: 0)


def _backward(f, args):
    """The function of (residuals, cotangents) that a backward pass is, and the types of these."""
    out, pullback = eval_shape(lambda *xs: vjp_of(f, *xs), *args)
    return (lambda back, ct: back(ct)), (pullback, out)


def roofline(f, mesh=None, in_specs=None, out_specs=None, *, pin_lhs_in_vmem=False, pin_rhs_in_vmem=False,
             vjp=False, print_jaxpr=False):
    """A function of `f`'s arguments, or their ShapeDtypeStructs: (types of results, a RooflineResult).

    Nothing is computed.  A branch counts as the most of all, a `while` as one round, a `scan` as all of its
    steps.  What has no rule counts as nothing, with a warning.

    Args:
        mesh: with it, the estimate is that of one device of `shard_map(f, mesh, in_specs, out_specs)`.
        in_specs: for `shard_map`.
        out_specs: for `shard_map`.
        pin_lhs_in_vmem: left operands of products are not read from memory.
        pin_rhs_in_vmem: right operands of products are not read from memory.
        vjp: of the backward pass alone.

    >>> from hlotrace.experimental.roofline import roofline
    >>> x, y = jax.ShapeDtypeStruct((64, 32), "float32"), jax.ShapeDtypeStruct((32, 16), "float32")
    >>> out, need = roofline(lambda x, y: jnp.exp(x @ y))(x, y)
    >>> need.flops, need.unfused_flops, need.hbm_bytes
    (65536, 66560, 14336)
    """
    def wrapped(*args):
        args = pytree.tree_map(_struct, args)
        mapped = f if mesh is None else shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs,
                                                  check_vma=False)
        function, given = _backward(mapped, args) if vjp else (mapped, args)
        return _analyse(function, given, mesh, pins, print_jaxpr)
    pins = {"pin_lhs_in_vmem": pin_lhs_in_vmem, "pin_rhs_in_vmem": pin_rhs_in_vmem}
    return wrapped


def roofline_and_grad(f, mesh, in_specs, out_specs, *, pin_lhs_in_vmem=False, pin_rhs_in_vmem=False,
                      print_jaxpr=False):
    """A function that gives (types of results, RooflineResult of `f`, RooflineResult of its backward pass).

    The arguments are those of `roofline`; without a mesh give None for the three.  Dtypes are the arguments'.

    >>> from hlotrace.experimental.roofline import roofline_and_grad
    >>> x = jax.ShapeDtypeStruct((8, 8), "float32")
    >>> _, forward, backward = roofline_and_grad(lambda x, y: x @ y, None, None, None)(x, x)
    >>> forward.flops, backward.flops
    (1024, 2048)
    """
    def wrapped(*args):
        (out, forward), (_, backward) = (roofline(
            f, mesh, in_specs, out_specs, pin_lhs_in_vmem=pin_lhs_in_vmem, pin_rhs_in_vmem=pin_rhs_in_vmem,
            vjp=back, print_jaxpr=print_jaxpr)(*args) for back in (False, True))
        return out, forward, backward
    return wrapped


export_names(globals())
