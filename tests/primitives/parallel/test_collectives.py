"""Collectives under shard_map, pmap and vmap, over one axis and several, against NumPy on all the blocks
together."""
import itertools
import math

import forked
import ml_dtypes
import numpy as np
import pytest
from equal import same
from together import compiled_together

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.sharding import Mesh, PartitionSpec as P

DEVICES = np.array(jax.devices()[:4])
LINE, SQUARE = Mesh(DEVICES, ("i",)), Mesh(DEVICES.reshape(2, 2), ("a", "b"))
RING = [(k, (k + 1) % 4) for k in range(4)]
PAIRS = [[0, 2], [3, 1]]


def A(*shape):
    return np.arange(1, math.prod(shape) + 1, dtype=np.float32).reshape(shape)


# Ways to run a function of one block on a stack of four. Each gives the stack of what the four returned.

def by_shard_map(f, **options):
    def body(x):
        return jax.tree.map(lambda leaf: jnp.expand_dims(leaf, 0), f(jnp.squeeze(x, 0)))
    return jax.shard_map(body, mesh=LINE, in_specs=P("i"), out_specs=P("i"), **options)


def by_pmap(f):
    return jax.pmap(f, "i", devices=list(DEVICES))


def by_vmap(f):
    return jax.vmap(f, axis_name="i")


WAYS = [by_shard_map, by_pmap, by_vmap]
every_way = pytest.mark.parametrize("way", WAYS)


# The same in NumPy: a function of the blocks of one group, in order, that gives their results.

def summed(blocks):
    return [np.sum(blocks, 0)] * len(blocks)


def averaged(blocks):
    return [np.mean(blocks, 0)] * len(blocks)


def gathered(axis=0, tiled=False):
    join = np.concatenate if tiled else np.stack
    return lambda blocks: [join(blocks, axis)] * len(blocks)


def scattered(axis=0, tiled=False):
    def go(blocks):
        total, n = np.sum(blocks, 0), len(blocks)
        return np.split(total, n, axis) if tiled else [np.take(total, k, axis) for k in range(n)]
    return go


def exchanged(split, concat, tiled=False):
    def go(blocks):
        n = len(blocks)
        if tiled:
            return [np.concatenate([np.split(b, n, split)[k] for b in blocks], concat)
                    for k in range(n)]
        return [np.stack([np.take(b, k, split) for b in blocks], concat) for k in range(n)]
    return go


def sent(pairs):
    source = {to: back for back, to in pairs}
    return lambda blocks: [blocks[source[k]] if k in source else np.zeros_like(b)
                           for k, b in enumerate(blocks)]


LINEAR = {                                              # name: collective, reference, shape of a block
    "psum": (lambda x: lax.psum(x, "i"), summed, (2, 3)),
    "psum of a scalar": (lambda x: lax.psum(x, "i"), summed, ()),
    "psum over a list of one": (lambda x: lax.psum(x, ["i"]), summed, (2,)),
    "pmean": (lambda x: lax.pmean(x, "i"), averaged, (2, 3)),
    "all_gather": (lambda x: lax.all_gather(x, "i"), gathered(), (2, 3)),
    "all_gather scalars": (lambda x: lax.all_gather(x, "i"), gathered(), ()),
    "all_gather to axis 1": (lambda x: lax.all_gather(x, "i", axis=1), gathered(1), (2, 3)),
    "all_gather to axis -1": (lambda x: lax.all_gather(x, "i", axis=-1), gathered(-1), (2, 3)),
    "all_gather tiled": (lambda x: lax.all_gather(x, "i", tiled=True), gathered(0, True), (2, 3)),
    "all_gather tiled in axis 1":
        (lambda x: lax.all_gather(x, "i", axis=1, tiled=True), gathered(1, True), (2, 3)),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), scattered(), (4, 3)),
    "psum_scatter along 1":
        (lambda x: lax.psum_scatter(x, "i", scatter_dimension=1), scattered(1), (2, 4, 3)),
    "psum_scatter tiled":
        (lambda x: lax.psum_scatter(x, "i", tiled=True), scattered(0, True), (8, 3)),
    "psum_scatter tiled along 1":
        (lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True), scattered(1, True), (3, 8)),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 0), exchanged(0, 0), (4, 3)),
    "all_to_all from 1 to 0": (lambda x: lax.all_to_all(x, "i", 1, 0), exchanged(1, 0), (2, 4)),
    "all_to_all from 0 to 1": (lambda x: lax.all_to_all(x, "i", 0, 1), exchanged(0, 1), (4, 3)),
    "all_to_all from 0 to 2": (lambda x: lax.all_to_all(x, "i", 0, 2), exchanged(0, 2), (4, 3, 2)),
    "all_to_all tiled":
        (lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), exchanged(0, 0, True), (8, 3)),
    "all_to_all tiled from 1 to 0":
        (lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True), exchanged(1, 0, True), (3, 4)),
    "ppermute around": (lambda x: lax.ppermute(x, "i", RING), sent(RING), (2, 3)),
    "ppermute to some": (lambda x: lax.ppermute(x, "i", [(3, 0), (1, 2)]), sent([(3, 0), (1, 2)]), (2,)),
    "ppermute to none": (lambda x: lax.ppermute(x, "i", []), sent([]), (2,)),
    "pshuffle": (lambda x: lax.pshuffle(x, "i", [1, 2, 0, 3]), sent([(1, 0), (2, 1), (0, 2), (3, 3)]), (2,)),
    "pswapaxes": (lambda x: lax.pswapaxes(x, "i", 1), exchanged(1, 1), (3, 4)),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "i", 2), lambda blocks: [blocks[2]] * 4, (2, 3)),
}


def apply(reference, stack):
    return np.stack(reference(list(stack)))


def adjoint(reference, stack, cotangent):
    """The transpose of a linear reference, from the images of the basis vectors of the stack's space."""
    basis = np.eye(stack.size, dtype=np.float32).reshape(-1, *stack.shape)
    return np.array([np.sum(apply(reference, e) * cotangent) for e in basis]).reshape(stack.shape)


EACH = [(name, way) for way in WAYS for name in LINEAR]      # those of one way are compiled together


def value_jvp_and_transpose(name, way):
    collective, reference, shape = LINEAR[name]
    x, t = A(4, *shape), np.cos(A(4, *shape))
    ct = np.sin(A(*apply(reference, x).shape))

    def all_three(x, t, ct):
        run = way(collective)
        out, tangent = jax.jvp(run, (x,), (t,))
        return out, tangent, jax.vjp(run, x)[1](ct)[0]
    return all_three, (x, t, ct)


def batched(name, way):
    collective, _, shape = LINEAR[name]

    def both(x):
        inside_the_named_axis = way(jax.vmap(collective, in_axes=-1))(x)
        return inside_the_named_axis, jax.vmap(way(collective), in_axes=-1, out_axes=1)(x)
    return both, (A(4, *shape, 2),)


ALL_THREE, BOTH = (compiled_together(EACH, lambda each, program=program: program(*each), len(LINEAR))
                   for program in (value_jvp_and_transpose, batched))


@pytest.mark.parametrize("name, way", EACH)
def test_value_jvp_and_transpose(name, way):
    _, (x, t, ct) = value_jvp_and_transpose(name, way)
    reference = LINEAR[name][1]
    found, = ALL_THREE((name, way))
    same(found, (apply(reference, x), apply(reference, t), adjoint(reference, x, ct)))


@pytest.mark.parametrize("name, way", EACH)
def test_batched(name, way):
    _, (x,) = batched(name, way)
    want = np.stack([apply(LINEAR[name][1], x[..., k]) for k in range(2)], 1)
    found, = BOTH((name, way))
    same(found, (want, want))


@every_way
def test_extremes(way):
    x = np.float32([[1, -5, 2], [4, 0, 2], [-3, 9, 2], [0, 1, 2]])
    want = tuple(np.tile(v, (4, 1)) for v in (x.max(0), x.min(0)))
    both = lambda x: (lax.pmax(x, "i"), lax.pmin(x, "i"))
    same(way(both)(x), want)
    same(jax.vmap(way(both), in_axes=1, out_axes=1)(x), want)


@every_way
def test_second_derivatives(way):
    # f(x) = (sum of cubes)^2 on each of 4: the Hessian of their sum is 4 (18 x_i^2 x_j^2 + [i = j] 12 s x_i)
    x = np.float32([1, 2, -1, 0.5])
    total = lambda x: way(lambda x: lax.psum(x**3, "i") ** 2)(x).sum()
    want = 4 * (18 * np.outer(x**2, x**2) + np.diag(12 * np.sum(x**3) * x))
    same(jax.jit(jax.hessian(total))(x), want)


@every_way
def test_where_am_i(way):
    def f(x):
        assert type(lax.axis_size("i")) is int
        return lax.axis_index("i"), lax.axis_size("i") + 0 * lax.axis_index("i")
    index, size = way(f)(A(4))
    assert index.dtype == np.int32
    same((index, size), (np.arange(4), np.full(4, 4)))


@every_way
def test_reductions_of_python_numbers_are_known_when_traced(way):
    def f(x):
        n = lax.psum(1, "i")
        assert type(n) is int and (n, lax.psum(2.5, "i"), lax.pmean(3, "i")) == (4, 10.0, 3.0)
        return x.reshape(n, 2)                          # a shape: no traced value would do
    same(way(f)(A(4, 8)), A(4, 4, 2))


@every_way
def test_trees(way):
    x = A(4, 2)
    tree = lambda f: lambda x: f({"a": x, "b": (2 * x, [x[0]])})
    wants = {"a": x, "b": (2 * x, [x[:, 0]])}
    for f, reference in [(lambda t: lax.psum(t, "i"), summed), (lambda t: lax.pmean(t, "i"), averaged),
                         (lambda t: lax.all_gather(t, "i"), gathered()),
                         (lambda t: lax.ppermute(t, "i", RING), sent(RING))]:
        same(way(tree(f))(x), jax.tree.map(lambda v, r=reference: apply(r, v), wants))


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int32", "uint32", "float16", "bfloat16", "float32", "complex64"])
def test_dtypes(dtype):
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    x = np.arange(16).reshape(4, 4) % 3
    x = (x - 2j * x if dtype == np.complex64 else x).astype(dtype)
    exact = dtype.kind in "biu"                         # bfloat16 has the kind V
    sums = x.sum(0, dtype=np.int32 if dtype.kind == "b" else dtype)
    means = x.astype(np.float32 if exact else dtype).mean(0)
    ops = [(lambda x: lax.psum(x, "i"), np.stack([sums] * 4)),
           (lambda x: lax.pmean(x, "i"), np.stack([means] * 4)),
           (lambda x: lax.all_gather(x, "i"), np.stack([x] * 4)),
           (lambda x: lax.ppermute(x, "i", RING), np.roll(x, 1, 0)),
           (lambda x: lax.all_to_all(x, "i", 0, 0), x.T)]
    if dtype.kind != "c":                               # complex numbers have no order
        ops += [(lambda x: lax.pmax(x, "i"), np.stack([x.max(0)] * 4)),
                (lambda x: lax.pmin(x, "i"), np.stack([x.min(0)] * 4))]
    if dtype.kind != "b":
        ops += [(lambda x: lax.psum_scatter(x, "i"), x.sum(0, dtype=dtype))]
    for way in WAYS:
        got = jax.jit(way(lambda x: [op(x) for op, _ in ops]))(x)
        assert [g.dtype for g in got] == [w.dtype for _, w in ops]
        for g, (_, w) in zip(got, ops):
            np.testing.assert_array_equal(np.asarray(g), w)


# --- several axes ---


def over(grid, names, axes, reference, stack):
    """`reference` on each group along `axes` of a grid of blocks: `stack` has the grid's shape in front."""
    out = np.empty(grid, dtype=object)
    rest = [n for n in names if n not in axes]
    for fixed in itertools.product(*[range(grid[names.index(n)]) for n in rest]):
        group = []
        for moving in itertools.product(*[range(grid[names.index(n)]) for n in axes]):
            place = dict(zip(rest, fixed)) | dict(zip(axes, moving))
            group.append(tuple(place[n] for n in names))
        for where, value in zip(group, reference([stack[g] for g in group])):
            out[where] = value
    return np.stack([np.stack(list(row)) for row in out])


def by_square(f):
    expand = lambda leaf: jnp.expand_dims(leaf, (0, 1))
    return jax.shard_map(lambda x: jax.tree.map(expand, f(jnp.squeeze(x, (0, 1)))), mesh=SQUARE,
                         in_specs=P("a", "b"), out_specs=P("a", "b"))


def by_two_vmaps(f):
    return jax.vmap(jax.vmap(f, axis_name="b"), axis_name="a")


def by_vmap_in_pmap(f):
    return jax.pmap(jax.vmap(f, axis_name="b"), "a", devices=list(DEVICES[:2]))


def by_pmap_in_vmap(f):
    return jax.vmap(jax.pmap(f, "b", devices=list(DEVICES[:2])), axis_name="a")


@pytest.mark.parametrize("axes", [("a",), ("b",), ("a", "b"), ("b", "a")], ids=" ".join)
@pytest.mark.parametrize("way", [by_square, by_two_vmaps, by_vmap_in_pmap, by_pmap_in_vmap])
def test_two_axes(way, axes):
    n = 2 ** len(axes)
    name = axes if len(axes) > 1 else axes[0]
    x = A(2, 2, 8) ** 2
    number = lambda blocks: [np.int32(k) for k in range(len(blocks))]
    cases = [(lambda x: lax.psum(x, name), summed), (lambda x: lax.pmean(x, name), averaged),
             (lambda x: lax.pmax(x, name), lambda blocks: [np.max(blocks, 0)] * n),
             (lambda x: lax.axis_index(name), number),
             (lambda x: lax.axis_index(name) * 0 + lax.axis_size(name), lambda blocks: [n] * n),
             (lambda x: 0 * x + lax.psum(1, name), lambda blocks: [0 * b + n for b in blocks])]
    got = jax.jit(way(lambda x: [f(x) for f, _ in cases]))(x)
    same(got, [over((2, 2), ("a", "b"), axes, r, x) for _, r in cases])


@pytest.mark.parametrize("axes", [("a",), ("b",), ("a", "b"), ("b", "a")], ids=" ".join)
@pytest.mark.parametrize("way", [by_square, by_two_vmaps])
def test_moving_data_over_two_axes(way, axes):
    n = 2 ** len(axes)
    name = axes if len(axes) > 1 else axes[0]
    x = A(2, 2, 8) ** 2
    cases = [(lambda x: lax.all_gather(x, name), gathered()),
             (lambda x: lax.all_gather(x, name, tiled=True), gathered(0, True)),
             (lambda x: lax.psum_scatter(x, name, tiled=True), scattered(0, True)),
             (lambda x: lax.all_to_all(x, name, 0, 0, tiled=True), exchanged(0, 0, True))]
    if axes != ("b", "a"):                              # JAX 0.12 refuses an order that is not the mesh's
        turn = [(k, (k + 1) % n) for k in range(n)]
        cases += [(lambda x: lax.ppermute(x, name, turn), sent(turn))]
    got = jax.jit(way(lambda x: [f(x) for f, _ in cases]))(x)
    same(got, [over((2, 2), ("a", "b"), axes, r, x) for _, r in cases])


def test_no_axes_at_all():
    same(by_vmap(lambda x: lax.psum(x, ()))(A(4)), A(4))
    same(by_shard_map(lambda x: lax.psum(x, ()))(A(4)), A(4))


@pytest.mark.parametrize("collective", [lax.psum, lax.pmean, lax.pmax, lax.all_gather])
def test_cotangents_that_are_the_same_everywhere_cross_the_axis_in_a_compiled_program(collective):
    """The program of a derivative is inlined as it is where nothing mapped goes in, unless it names the axis."""
    def slope(x):
        return jax.vmap(jax.grad(lambda v: (collective(v, "i") ** 2).sum()), in_axes=1, axis_name="i")(x)
    same(jax.jit(slope)(A(3, 4)), slope(A(3, 4)))


def test_vmapped_results_of_reductions_are_unmapped():
    same(jax.vmap(lambda x: (lax.psum(x, "i"), lax.pmax(x, "i")), axis_name="i", out_axes=None)(A(4)),
         (10.0, 4.0))
    same(jax.vmap(lambda x: lax.psum(2.0, "i") + x, axis_name="i")(A(4)), A(4) + 8)
    same(jax.vmap(lambda x, y: lax.psum(y, "i") + x, (0, None), axis_name="i")(A(4), np.float32(3)),
         A(4) + 12)


# --- groups ---


def in_groups(reference):
    """Apply a reference to each group of PAIRS; the members' results stand in the members' places."""
    def go(blocks):
        out = [None] * 4
        for group in PAIRS:
            for k, value in zip(group, reference([blocks[k] for k in group])):
                out[k] = value
        return out
    return go


G = {"axis_index_groups": PAIRS}
GROUPED = {
    "psum": (lambda x: lax.psum(x, "i", **G), summed),
    "pmean": (lambda x: lax.pmean(x, "i", **G), averaged),
    "pmax": (lambda x: lax.pmax(x, "i", **G), lambda blocks: [np.max(blocks, 0)] * 2),
    "pmin": (lambda x: lax.pmin(x, "i", **G), lambda blocks: [np.min(blocks, 0)] * 2),
    "all_gather": (lambda x: lax.all_gather(x, "i", **G), gathered()),
    "all_gather tiled": (lambda x: lax.all_gather(x, "i", tiled=True, **G), gathered(0, True)),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i", **G), scattered()),
    "psum_scatter tiled": (lambda x: lax.psum_scatter(x, "i", tiled=True, **G), scattered(0, True)),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 0, **G), exchanged(0, 0)),
    "all_to_all tiled": (lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True, **G), exchanged(0, 0, True)),
    "size": (lambda x: 0 * x + lax.psum(1, "i", **G), lambda blocks: [0 * b + 2 for b in blocks]),
}


@pytest.mark.parametrize("way", [lambda f: by_shard_map(f, check_vma=False), by_pmap],
                         ids=["shard_map", "pmap"])
def test_groups_within_an_axis(way):
    x = A(4, 2)
    got = jax.jit(way(lambda x: {k: f(x) for k, (f, _) in GROUPED.items()}))(x)
    same(got, {k: apply(in_groups(r), x) for k, (_, r) in GROUPED.items()})


@pytest.mark.parametrize("way", [lambda f: by_shard_map(f, check_vma=False), by_pmap],
                         ids=["shard_map", "pmap"])
def test_reductions_over_groups_of_different_sizes(way):
    uneven, x = {"axis_index_groups": [[2], [0, 1, 3]]}, A(4)
    got = jax.jit(way(lambda x: [*(f(x, "i", **uneven) for f in (lax.psum, lax.pmean, lax.pmax, lax.pmin)),
                                 lax.psum(1, "i", **uneven)]))(x)
    same(got[:4], [A(4) * 0 + row for row in ([7, 7, 3, 7], [7 / 3, 7 / 3, 3, 7 / 3], [4, 4, 3, 4], [1, 1, 3, 1])])
    assert np.asarray(got[4]).ravel().tolist() == [3, 3, 1, 3]
    with pytest.raises(ValueError, match="must have one size"):
        way(lambda x: lax.all_gather(x, "i", **uneven))(x)


def test_transposes_stay_within_groups():
    x, ct = A(4, 2), np.sin(A(4, 2, 2))
    for name, shape in [("psum", (2,)), ("all_gather", (2, 2)), ("psum_scatter tiled", (1,)),
                        ("all_to_all", (2,))]:
        f, reference = GROUPED[name]
        cotangent = ct.reshape(-1)[:4 * math.prod(shape)].reshape(4, *shape)
        back = jax.vjp(by_shard_map(f, check_vma=False), x)[1](cotangent)[0]
        same(back, adjoint(in_groups(reference), x, cotangent))


# --- running ---


MANY = """
import numpy as np
import hlotrace as jax
from hlotrace import lax
from hlotrace.sharding import Mesh, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), "i")
step = jax.jit(jax.shard_map(lambda x: lax.pmean(x, "i") + x, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
x = np.ones((8, 4), np.float32)
print(sum(float(y[0, 0]) for y in [step(x) for _ in range(300)]))
"""


def test_a_long_stream_of_launches_comes_to_its_end():
    # Some jaxlibs never return when many programs with collectives wait on more devices than there are cores.
    done = forked.run(MANY)
    assert (done.returncode, done.stdout) == (0, "600.0\n"), done.stderr


# --- errors ---


NAMED = [lambda x: lax.psum(x, "j"), lambda x: lax.pmean(x, "j"), lambda x: lax.pmax(x, "j"),
         lambda x: lax.pmin(x, "j"), lambda x: lax.all_gather(x, "j"), lambda x: lax.psum_scatter(x, "j"),
         lambda x: lax.all_to_all(x, "j", 0, 0), lambda x: lax.ppermute(x, "j", []),
         lambda x: lax.axis_index("j"), lambda x: lax.axis_size("j"), lambda x: lax.psum(1, "j")]


@pytest.mark.parametrize("place", [lambda f: f, jax.jit, by_vmap, by_pmap],
                         ids=["nowhere", "jit", "vmap", "pmap"])
def test_an_axis_that_nothing_binds(place):
    for f in NAMED:
        with pytest.raises(NameError, match="unbound axis name.*j"):
            place(f)(A(4, 4))


def test_an_axis_that_shard_map_does_not_bind():
    for f in NAMED:
        with pytest.raises(NameError, match="unbound axis name.*j"):
            by_shard_map(f)(A(4, 4))


@pytest.mark.parametrize("f, error, words", [
    (lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), ValueError, ["(0, 1)", "(0, 2)"]),
    (lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]), ValueError, ["(0, 1)", "(2, 1)"]),
    (lambda x: lax.ppermute(x, "i", [(0, 9)]), (ValueError, IndexError), []),
    (lambda x: lax.pshuffle(x, "i", [1, 1, 2, 3]), ValueError, ["[1, 1, 2, 3]"]),
    (lambda x: lax.psum_scatter(x[:3], "i"), ValueError, ["3", "4"]),
    (lambda x: lax.psum_scatter(x[:6], "i", tiled=True), ValueError, ["6", "4"]),
    (lambda x: lax.all_to_all(x[:3], "i", 0, 0), ValueError, ["3", "4"]),
    (lambda x: lax.all_to_all(x[:6], "i", 0, 0, tiled=True), ValueError, ["6", "4"]),
    *[(lambda x, perm=perm: lax.ppermute(x, "i", perm), TypeError, ["perm", "(0, 1)", repr(perm)])
      for perm in ([0, 1], [(0, 1, 2)], [(0.0, 1)])],
    (lambda x: lax.psum(x, ("i", "i")), ValueError, ["'i' more than once"]),
    (lambda x: lax.all_gather(x, "i", axis_index_groups=[0, 1]), TypeError,
     ["all_gather", "[[0, 1], [2, 3]]", "[0, 1]"]),
])
def test_arguments_that_do_not_fit_the_axis(f, error, words):
    with pytest.raises(error) as caught:
        by_shard_map(f)(A(4, 8))
    assert [word for word in words if word not in str(caught.value)] == []


@every_way
def test_the_derivative_of_an_extreme_is_that_of_those_that_attain_it(way):     # JAX has none
    for f, x, want in ((lax.pmax, [1, 2, 3, 4], [0, 0, 0, 4]), (lax.pmin, [1, 2, 3, 4], [4, 0, 0, 0]),
                       (lax.pmax, [5, 1, 5, 2], [2, 0, 2, 0])):
        same(jax.grad(lambda x, f=f: way(lambda x: f(x, "i"))(x).sum())(np.float32(x)), np.float32(want))


@pytest.mark.parametrize("checked", [True, False])
def test_alone_on_an_axis(checked):
    """Nothing is exchanged along an axis of one device, and nothing is changed."""
    along = {
        "psum": lambda v: lax.psum(v, "y"), "pmax": lambda v: lax.pmax(v, "y"),
        "pmean": lambda v: lax.pmean(lax.pmean(v, "x"), "y"),
        "all_gather": lambda v: lax.psum(lax.all_gather(v, "y")[0], "y"), "psum_scatter": lambda v: lax.psum(
            lax.psum_scatter(v, "y", tiled=True), "y"), "all_to_all": lambda v: lax.psum(lax.all_to_all(
                v[None], "y", 0, 0)[0], "y"),
                "ppermute": lambda v: lax.psum(lax.ppermute(v, "y", [(0, 0)]), "y"),
        "nowhere": lambda v: lax.psum(lax.ppermute(v, "y", []), "y"), "axis_index": lambda v: v + lax.psum(
            lax.axis_index("y"), "y")}
    for mesh in (Mesh(DEVICES[1:2].reshape(1, 1), ("x", "y")), Mesh(DEVICES[:2].reshape(2, 1), ("x", "y"))):
        for name, f in along.items():
            got = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=checked))(
                A(4))
            same(got, np.tile(A(4).reshape(mesh.shape["x"], -1).mean(0), mesh.shape["x"]) if name == "pmean"
                 else
                 A(4) * (name != "nowhere"))


TEXTS = [
    (lambda x: lax.all_gather(x, "i", tiled=True), "i",
     "all_gather[all_gather_dimension=0 axis_index_groups=None "
     "axis_name=('i',) axis_size=4 tiled=True]"),
    (lambda x: lax.psum_scatter(x, "i", tiled=True), "i",
     "reduce_scatter[axis_index_groups=None axis_name=('i',) axis_size=4 "
     "scatter_dimension=0 tiled=True]"),
    (lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), "i",
     "all_to_all[axis_index_groups=None axis_name=('i',) concat_axis=0 "
     "split_axis=0 tiled=True]"),
    (lambda x: lax.ppermute(x, "i", [(0, 1)]), "i", "ppermute[axis_name=('i',) perm=((0, 1),)]"),
    (lambda x: lax.pmax(x, "i"), None, "pmax[axes=('i',) axis_index_groups=None]"),
    (lambda x: x + lax.axis_index("i"), "i", "axis_index[axis_name=i]"),
    (lambda x: x, "i", "check_vma=True in_specs=(P('i',),)"),
    (lambda x: x, "i", "newly_manual_axes=frozenset({'i'})")]


@pytest.mark.quick
@pytest.mark.parametrize("f, out, text", TEXTS)
def test_parameters_have_jaxs_names_in_the_text_of_programs(f, out, text):
    program = jax.make_jaxpr(jax.shard_map(f, mesh=LINE, in_specs=P("i"), out_specs=P(out)))(A(16))
    assert text in " ".join(str(program).split()).replace("[ ", "[").replace(" ]", "]")
