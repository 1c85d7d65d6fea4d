"""Rows of the primitives that say how values lie over devices, or that devices do together."""
import functools

import numpy as np

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.primitive import PRIMITIVES
from hlotrace.experimental.layout import Layout, with_layout_constraint
from hlotrace.experimental.shard_alike import shard_alike
from hlotrace.lax import with_sharding_constraint
from hlotrace.sharding import AxisType, Mesh, NamedSharding, P

from .row import Row, between, op

sin = op("sin")

ROWS = []


@functools.cache
def mesh():
    return Mesh(hlotrace.devices()[:2], "x")


def row(primitive, fun, ref, *args, bad=(), **fields):
    ROWS.append(Row(primitive, fun, ref, args, fields.pop("kinds", "f"), bad=tuple(bad), **fields))


row("sharding_constraint", lambda x: with_sharding_constraint(x, NamedSharding(mesh(), P(None, "x"))),
    lambda x: x,
    between(-3, 3, 3, 4), kinds="fci", linear=True, bad=[
        (lambda: with_sharding_constraint(1.0, NamedSharding(mesh(), P("x"))), ValueError, "rank"),
        (lambda: with_sharding_constraint([1.0, 2.0], {"a": P()}), ValueError, "prefix"),
        (lambda: with_sharding_constraint(1.0, hlotrace.devices()[0]), TypeError, "is a device")])

def explicit():
    return mesh().update(axis_types=(AxisType.Explicit,))


row("reshard", lambda x: hlotrace.reshard(x, NamedSharding(explicit(), P(None, "x"))), lambda x: x,
    between(-3, 3, 3, 4), kinds="fci", linear=True, bad=[
        (lambda: hlotrace.reshard(np.ones(3), NamedSharding(explicit(), P("x"))), ValueError,
         "is partitioned 2 times"),
        (lambda: hlotrace.jit(lambda x: PRIMITIVES["reshard"].bind(
            x, sharding=NamedSharding(explicit(), P("x"))))(
            np.ones(3)), ValueError, "is partitioned 2 times"),
        (lambda: hlotrace.reshard(1.0, NamedSharding(explicit(), P("x"))), ValueError, "rank"),
        (lambda: hlotrace.reshard(np.ones(4), NamedSharding(mesh(), P("x"))), ValueError, "of type Auto"),
        (lambda: hlotrace.reshard(np.ones(4), 3), TypeError, "NamedSharding, or a PartitionSpec")])
row("mesh_cast", lambda x: PRIMITIVES["mesh_cast"].bind(x, mesh=explicit()), lambda x: x,
    between(-3, 3, 3, 4),
    kinds="fci", linear=True, bad=[
        (lambda: hlotrace.jit(lambda x: PRIMITIVES["mesh_cast"].bind(
            hlotrace.reshard(x, NamedSharding(explicit(), P("x"))), mesh=Mesh(hlotrace.devices()[:2], "y")))(
                np.ones(2)),
         TypeError, "has other axes")])


def explicitly(x, *entries):
    return hlotrace.reshard(x, NamedSharding(explicit(), P(*entries)))


def terms(*entries):
    return NamedSharding(explicit(), P(*entries, unreduced={"x"}))


row("unreduced_dot_general", lambda x, y: explicitly(lax.dot_general(
    explicitly(x, None, "x"), explicitly(y, "x"), (((1,), (0,)), ((), ())), out_sharding=terms(None, None))),
    lambda x, y: x @ y,
    between(-2, 2, 3, 4), between(-2, 2, 4, 2), kinds="fci", bad=[
        (lambda: lax.dot_general(np.ones((2, 4)), np.ones((4, 2)), (((1,), (0,)), ((), ())),
                                 out_sharding=terms(None, None)), TypeError, "cannot be made unreduced"),
        (lambda: lax.dot_general(explicitly(np.ones((2, 2)), None, "x"), explicitly(np.ones((4, 2)), "x"),
                                 (((1,), (0,)), ((), ())), out_sharding=terms(None, None)), TypeError,
                                 "same shape")])
row("unreduced_sum",
    lambda x: explicitly(lax.reduce_sum(explicitly(x, None, "x"), (1,), out_sharding=terms(None))),
    lambda x: x.sum(1), between(-2, 2, 3, 4), kinds="fci", bad=[
        (lambda: lax.reduce_sum(explicitly(np.ones((2, 4)), "x"), (1,), out_sharding=terms(None)), TypeError,
         "no mesh axis splits"),
        (lambda: PRIMITIVES["unreduced_sum"].bind(np.ones(2), axes=(3,), unreduced=frozenset({"x"})),
         ValueError, "axes"),
        (lambda: lax.reduce_max(np.ones((2, 4)), (1,), out_sharding=terms(None)), NotImplementedError,
         "is for sums")])


def put(*spec):
    """device_put of a tracer."""
    return hlotrace.jit(lambda x: hlotrace.device_put(x, NamedSharding(mesh(), P(*spec))))


row("device_put", lambda x: put(None, "x")(x), lambda x: x, between(-3, 3, 3, 4), kinds="fci", linear=True,
    bad=[
    (lambda: hlotrace.jit(lambda x: PRIMITIVES["device_put"].bind(x, sharding=NamedSharding(mesh(), P("x")),
                                                                  source=None))(
        np.ones(3)), ValueError, "is partitioned 2 times"),
    (lambda: put("x")(1.0), ValueError, "rank")])


def inspected(x):
    PRIMITIVES["inspect_sharding"].bind(x, callback=print)
    return x


row("inspect_sharding", lambda x: hlotrace.jit(inspected)(x), lambda x: x, between(-3, 3, 3), kinds="fi")


def sunk(x):
    lax.dce_sink(x)
    return x


row("dce_sink", lambda x: hlotrace.jit(sunk)(x), lambda x: x, between(-3, 3, 3), kinds="fi")

row("layout_constraint", lambda x: with_layout_constraint(jnp.asarray(x), Layout((1, 0))), lambda x: x,
    between(-3, 3, 3, 4),
    kinds="fci", linear=True,
    bad=[(lambda: hlotrace.jit(lambda x: with_layout_constraint(x, Layout((1, 0))))(jnp.ones(3)),
                                    ValueError, "incompatible with its layout annotation")])

row("shard_alike", lambda x, y: list(shard_alike(x, y)), lambda x, y: [x, y], between(-3, 3, 3),
    between(-3, 3, 3),
    kinds="fci", linear=True,
    bad=[(lambda: shard_alike(np.ones(3), np.ones(2)), ValueError,
          "leaves shapes of `x` and `y` should match")])

# --- collectives --------------------------------------------------------------------------------------------

CUT = P("x")


def over(fun, in_specs=CUT, out_specs=CUT, **options):
    """`fun` on each of two devices."""
    return lambda *xs: hlotrace.shard_map(fun, mesh=mesh(), in_specs=in_specs, out_specs=out_specs,
                                          **options)(*xs)


def refused(name, *args, **params):
    """A call of the primitive itself on each of two devices."""
    return lambda: hlotrace.jit(over(lambda *xs: PRIMITIVES[name].bind(*xs, **params)))(*args)


def halves(x):
    return np.split(x, 2)


X = between(-3, 3, 4, 2)
C = (np.arange(8).reshape(4, 2) * (1 - 2j)).astype(np.complex64)
UNCHECKED = {"check_vma": False}
row("psum", over(lambda x: lax.psum(x, "x"), **UNCHECKED), lambda x: np.tile(sum(halves(x)), (2, 1)), X,
    kinds="fciu",
    linear=True)
row("psum_invariant", over(lambda x: lax.psum(x, "x"), out_specs=P()), lambda x: sum(halves(x)), X,
    kinds="fciu",
    linear=True)
row("pmax", over(lambda x: lax.pmax(x, "x"), out_specs=P()), lambda x: np.maximum(*halves(x)), X, kinds="fiu",
    bad=[
    (lambda: hlotrace.jit(over(lambda x: lax.pmax(x, "x")))(C), TypeError, "complex values have no order")])
row("pmin", over(lambda x: lax.pmin(x, "x"), out_specs=P()), lambda x: np.minimum(*halves(x)), X, kinds="fiu",
    bad=[
    (lambda: hlotrace.jit(over(lambda x: lax.pmin(x, "x")))(C), TypeError, "complex values have no order")])
row("pvary", over(lambda x: lax.pvary(x, "x"), in_specs=P()), lambda x: np.tile(x, (2, 1)), X, kinds="fciub",
    linear=True)
row("all_gather", over(lambda x: lax.all_gather(x, "x", tiled=True)), lambda x: np.tile(x, (2, 1)), X,
    kinds="fciub",
    linear=True)
row("reduce_scatter", over(lambda x: lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True)),
    lambda x: np.concatenate(np.split(sum(halves(x)), 2, 1)), X, kinds="fciu", linear=True, bad=[
        (refused("reduce_scatter", np.ones((2, 3)), axes=("x",), size=2, dim=1, groups=None), ValueError,
         "not a multiple of 2")])
row("all_to_all", over(lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True)),
    lambda x: np.concatenate(np.split(x, 2, 1)), X, kinds="fciub", linear=True, bad=[
        (refused("all_to_all", np.ones((2, 3)), axes=("x",), size=2, split=1, concat=0, groups=None),
         ValueError,
         "not a multiple of 2")])
row("ppermute", over(lambda x: lax.ppermute(x, "x", [(0, 1), (1, 0)])),
    lambda x: np.concatenate(halves(x)[::-1]), X,
    kinds="fciub", linear=True)
row("ppermute", over(lambda x: lax.ppermute(x, "x", [(0, 1)])), lambda x: np.concatenate([0 * x[:2], x[:2]]),
    X,
    linear=True, variant="partial")


def dealt(x):
    """Each of two devices sends its first row to the first, its second to the second."""
    ids, ones = np.arange(2, dtype=np.int32), np.ones(2, np.int32)
    places = lax.axis_index("x") + np.zeros(2, np.int32)
    return lax.ragged_all_to_all(x, lax.full_like(x, 0), ids, ones, places, ones, axis_name="x")


row("ragged_all_to_all", over(dealt), lambda x: x[[0, 2, 1, 3]], X, kinds="fciu", linear=True, bad=[
    (refused("ragged_all_to_all", np.ones((2, 3)), np.ones((2, 3)), *[np.ones(2, np.int32)] * 4, axes=("x",),
             size=2,
             groups=None), ValueError, "not a multiple of 2")])
row("axis_index", over(lambda x: x * (lax.axis_index("x") + 1)), lambda x: np.concatenate([x[:2], 2 * x[2:]]),
    X)
row("axis_index", lambda x: hlotrace.vmap(lambda v: v * (lax.axis_index("i") + 1), axis_name="i")(x),
    lambda x: x * np.arange(1, 5)[:, None], X, variant="of a vmap")

# --- shard_map ----------------------------------------------------------------------------------------------

def dot_and_sin(x, w):
    return [lax.psum((x @ w).sum(), "x"), sin(x) * w]


row("shard_map", over(dot_and_sin, (CUT, P()), [P(), CUT]),
    lambda x, w: [(x @ w).sum(), np.sin(x) * w], X, between(-2, 2, 2), kinds="fc", bad=[
        (lambda: hlotrace.shard_map(lambda x: x, mesh=mesh(), in_specs=P("x"), out_specs=P("x"))(np.ones(3)),
         ValueError,
         "not a multiple of 2"),
        (lambda: hlotrace.jit(lambda x: PRIMITIVES["shard_map"].bind(
            x, jaxpr=hlotrace.make_jaxpr(sin)(np.ones(3)), mesh=mesh(), in_specs=(CUT,), out_specs=(CUT,),
            manual=("x",),
            checked=True))(np.ones(4)), TypeError, "the program takes")])
row("shard_map", over(dot_and_sin, (CUT, P()), [P(), CUT], **UNCHECKED),
    lambda x, w: [(x @ w).sum(), np.sin(x) * w], X, between(-2, 2, 2), variant="unchecked")
