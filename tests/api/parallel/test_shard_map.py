"""shard_map: one program on the blocks that the devices of a mesh hold, under every transformation, against NumPy."""
import functools
import itertools
import warnings

import numpy as np
import pytest
from equal import same
from mapped import DEVICES, GRID, LINE, RING, ROWS, A, both_modes, on_grid, on_line, raises

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.sharding import NamedSharding, PartitionSpec as P

# --- calls, specs and trees ---


def test_blocks_and_results():
    shapes = []

    def f(x, w):
        shapes.append((x.shape, w.shape))
        return x * w, lax.psum(x.sum(), "x")

    x, w = A(8, 2), A(2)
    same(on_line(f, (P("x"), P()), (P("x"), P()))(x, w), (x * w, x.sum()))
    assert set(shapes) == {((2, 2), (2,))}


@pytest.mark.parametrize("spec, shape, block", [
    (P(), (8, 4), (8, 4)),
    (P("x"), (8, 4), (2, 4)),
    (P(None, "y"), (8, 4), (8, 2)),
    (P("y", "x"), (8, 4), (4, 1)),
    (P(("x", "y")), (8, 4), (1, 4)),
    (P(("y", "x"), None), (8, 4), (1, 4)),
    (P("x"), (0, 2), (0, 2)),
])
def test_specs_of_a_grid(spec, shape, block):
    def f(x):
        assert x.shape == block
        return 2 * x
    same(on_grid(f, spec, spec)(A(*shape)), 2 * A(*shape))


def test_the_order_of_axes_in_a_spec_is_the_order_of_blocks():
    where = lambda x: 10 * x + lax.axis_index(("x", "y"))
    same(on_grid(where, P(("y", "x")), P(("y", "x")))(A(8)), 10 * A(8) + [0, 2, 4, 6, 1, 3, 5, 7])


def test_decorators_keep_the_name():
    @functools.partial(jax.shard_map, mesh=LINE, in_specs=P("x"), out_specs=P())
    def total(x):
        return lax.psum(x, "x")

    @jax.shard_map(mesh=LINE, in_specs=P("x"), out_specs=P("x"))
    def negative(x):
        return -x

    same((total(A(8)), negative(A(8))), (A(8).reshape(4, 2).sum(0), -A(8)))
    assert (total.__name__, negative.__name__) == ("total", "negative")


def test_the_mesh_of_the_context():
    total = jax.shard_map(lambda x: lax.psum(x, "x"), in_specs=P("x"), out_specs=P())
    with jax.set_mesh(LINE):
        same((total(A(4)), jax.jit(total)(A(4))), (np.float32([6]), np.float32([6])))
    with raises(ValueError, "mesh"):
        total(A(4))


def test_arguments_are_cut_as_they_lie_where_nobody_says_how():
    @jax.shard_map(mesh=GRID, out_specs=P())
    def product(x, w, scale=1.0):
        return scale * lax.psum(x @ w, ("x", "y"))
    x, w = A(2, 8), A(8, 3)
    place = lambda v, *spec, mesh=GRID: jax.device_put(v, NamedSharding(mesh, P(*spec)))
    placed = place(x, None, ("x", "y")), place(w, ("x", "y"))
    same((product(*placed), product(*placed, 2.0)), (x @ w, 2 * x @ w))
    same(jax.grad(lambda w: product(placed[0], w).sum())(placed[1]), np.repeat(x.sum(0)[:, None], 3, 1))
    for call, words in ((lambda: product(placed[0], w), ("argument w", "ndarray")),
                        (lambda: product(placed[0], jnp.asarray(w)), ("argument w", "is not sharded over it")),
                        (lambda: product(place(x, mesh=LINE), placed[1]), ("argument x", "its sharding is")),
                        (lambda: jax.jit(product)(*placed), ("argument x", "jit of product"))):
        with raises(TypeError, "in_specs", "product", *words):
            call()
    same(jax.shard_map(lambda x: lax.psum(x, "y"), mesh=GRID, out_specs=P(), axis_names={"y"})(placed[1]),
         A(8, 3).reshape(2, 4, 3).sum(0))
    with raises(TypeError, "out_specs"):
        jax.shard_map(lambda x: x, mesh=GRID, in_specs=P())


def test_the_mesh_seen_inside_has_manual_axes():
    from hlotrace.sharding import AxisType, get_abstract_mesh
    seen = []

    def look(x):
        seen.append(get_abstract_mesh())
        return x

    def nested(x):
        mesh = get_abstract_mesh()
        y = lax.with_sharding_constraint(look(x), NamedSharding(mesh, P(None, "y")))
        return jax.shard_map(look, mesh=mesh, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"})(y)
    for mapped in (on_grid(look), on_grid(nested, axis_names={"x"}), on_grid(look, check_vma=False)):
        for way in (lambda f: f, jax.jit, lambda f: jax.jit(jax.grad(lambda x: f(x).sum()))):
            way(mapped)(A(4, 2))
            way(jax.vmap(mapped, axis_name="v"))(A(1, 4, 2))
    manual, auto = AxisType.Manual, AxisType.Auto
    assert all(m.shape_tuple == GRID.shape_tuple for m in seen) and not get_abstract_mesh().axis_names
    assert {m.axis_types for m in seen} == {(manual, manual), (manual, auto)}
    assert {m.manual_axes for m in seen} == {("x", "y"), ("x",)} and {m.auto_axes for m in seen} == {(), ("y",)}


def test_trees_and_prefixes():
    def f(d, pair):
        return {"a": d["a"] + pair[0], "b": (d["b"], pair[1]), "none": None}
    x, w, z = A(4), A(2), A(4, 2)
    specs = ({"a": P("x"), "b": P()}, P("x")), {"a": P("x"), "b": (P(), P("x", "y")), "none": P()}
    got = on_grid(f, *specs)({"a": x, "b": w}, (x, z))
    want = np.repeat(z[:, None], 2, 1).reshape(4, 4)        # y holds two copies of each row
    same(got, {"a": 2 * x, "b": (w, want), "none": None})
    same(on_line(lambda d: d, ({"u": P("x"), "v": P("x")},), P("x"))({"u": x, "v": z}), {"u": x, "v": z})
    same(on_line(lambda t: t, (P("x"),), P("x"))((x, [z])), (x, [z]))
    same(on_line(lambda x, n: x, (P("x"), None))(x, None), x)


def test_results_without_dimensions():
    def f(x):
        return lax.psum(x.sum(), "x"), lax.pmax(x[0], "x"), 3, lax.psum(1, "x")
    same(on_line(f, out_specs=P())(A(4)), (np.float32(6), np.float32(3), 3, 4))
    same(on_line(lambda x: jnp.ones(2))(A(4)), np.ones(8))


def test_closures():
    w = A(2) + 1
    scale = lambda w: on_line(lambda x: x * w)(A(4, 2))
    want = A(4, 2) * w
    same((scale(w), scale(jnp.asarray(w)), jax.jit(scale)(w)), (want,) * 3)
    same(jax.grad(lambda w: scale(w).sum())(w), A(4, 2).sum(0))
    same(jax.vmap(scale)(np.stack([w, 2 * w])), np.stack([want, 2 * want]))


def test_where_results_lie():
    x = A(8, 2)
    identity = on_grid(lambda x: x, P("x", "y"), P("x", "y"))
    for run in (identity, jax.jit(identity)):
        out = run(x)
        assert out.sharding.is_equivalent_to(NamedSharding(GRID, P("x", "y")), 2)
        assert [s.data.shape for s in out.addressable_shards] == [(2, 1)] * 8
    assert on_line(lambda x: lax.psum(x, "x"), out_specs=P())(x).sharding.is_fully_replicated
    for spec in P(None), P("x", None):      # in the words of out_specs, outside of jit
        assert on_line(lambda x: x, out_specs=spec, check_vma=False)(x).sharding == NamedSharding(LINE, spec)


def test_arguments_from_elsewhere():
    same(on_line(lambda x: x + 1)(jax.device_put(A(4), NamedSharding(LINE, P()))), A(4) + 1)
    with raises(ValueError, "devices"):
        on_line(lambda x: x)(jax.device_put(A(4), DEVICES[6]))


def test_random_keys():
    draw = lambda k: jax.random.uniform(k, (1,))
    key, keys = jax.random.key(0), jax.random.split(jax.random.key(0), 4)
    folded = on_line(lambda k: draw(jax.random.fold_in(k, lax.axis_index("x"))), P())
    same(folded(key), np.concatenate([draw(jax.random.fold_in(key, k)) for k in range(4)]))
    same(on_line(lambda k: draw(k[0]))(keys), np.concatenate([draw(k) for k in keys]))


# --- transformations ---


def centred(x):
    return x - lax.pmean(x, "x")


def test_jit():
    same(jax.jit(on_line(centred))(A(4)), A(4) - 1.5)
    same(on_line(jax.jit(centred))(A(4)), A(4) - 1.5)
    text = jax.jit(on_line(centred)).lower(A(4)).as_text()
    assert text.count("stablehlo.all_reduce") == 1 and "sdy.manual_computation" in text


def test_printing_from_each_device(capsys):
    def f(x):
        jax.debug.print("{} holds {}", lax.axis_index("x"), x)
        return x
    for run in (on_line(f), jax.jit(on_line(f))):
        run(A(4)).block_until_ready()
        jax.effects_barrier()
        assert sorted(capsys.readouterr().out.splitlines()) == [f"{k} holds [{k}.]" for k in range(4)]


def test_the_experimental_name():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from hlotrace.experimental.shard_map import shard_map
        same(shard_map(centred, LINE, P("x"), P("x"))(A(4)), A(4) - 1.5)
        same(shard_map(lambda x: x, mesh=LINE, in_specs=P("x"), out_specs=P(), check_rep=False)(A(4)), np.float32([0]))


def test_eval_shape():
    shape = jax.eval_shape(on_line(lambda x: lax.all_gather(x, "x")), A(8, 2))
    assert (shape.shape, shape.dtype) == ((16, 2, 2), np.float32)


def test_vmap():
    x = A(3, 4) ** 2
    want = x - x.mean(1, keepdims=True)
    same(jax.vmap(on_line(centred))(x), want)
    same(jax.jit(jax.vmap(on_line(centred)))(x), want)
    same(jax.vmap(on_line(centred), 1, 1)(x.T.copy()), want.T)
    same(jax.vmap(jax.vmap(on_line(centred)))(np.stack([x, -x])), np.stack([want, -want]))
    dot = on_line(lambda x, w: lax.psum((x * w).sum(), "x"), (P("x"), P()), P())
    same(jax.vmap(dot, (None, 0))(A(4), A(3)), 6 * A(3))
    same(on_line(jax.vmap(centred, 1, 1), P("x"))(x.T.copy()), want.T)


def test_vmap_over_a_mesh_axis():
    x = A(2, 4) ** 2
    spread = jax.vmap(on_grid(centred), spmd_axis_name="y")
    for run in (spread, jax.jit(spread)):
        out = run(x)
        same(out, x - x.mean(1, keepdims=True))
        assert out.sharding.is_equivalent_to(NamedSharding(GRID, P("y", "x")), 2)
    with raises(ValueError, "spmd_axis_name"):
        jax.vmap(on_grid(centred), spmd_axis_name="x")(A(4, 4))


def test_vmap_with_a_name_seen_inside():
    x = A(3, 4)
    total = on_line(lambda x: lax.psum(x, ("x", "i")), out_specs=P(), check_vma=False)
    same(jax.vmap(total, axis_name="i")(x), np.full((3, 1), x.sum()))
    inner = jax.vmap(lambda x: lax.psum(x, ("x", "i")), axis_name="i", in_axes=1)
    same(on_line(inner, P("x"), P(), check_vma=False)(x.T.copy()), np.full((3, 1), x.sum()))


@both_modes
def test_jvp_and_grad(check):
    x, t = A(4), A(4) ** 2
    f = on_line(lambda x: x**2 - lax.pmean(x**2, "x"), check_vma=check)
    dense = np.diag(2 * x) - np.ones((4, 1)) * 2 * x / 4
    same(jax.jvp(f, (x,), (t,)), (x**2 - np.mean(x**2), dense @ t))
    same(jax.vjp(f, x)[1](t)[0], dense.T @ t)
    cubes = on_line(lambda x: lax.psum((x**3).sum(), "x"), out_specs=P(), check_vma=check)
    jacobians = jax.jit(lambda x: (jax.jacfwd(f)(x), jax.jacrev(f)(x), jax.hessian(cubes)(x)))
    same(jacobians(x), (dense, dense, np.diag(6 * x)))
    out, push = jax.linearize(f, x)
    same((out, push(t)), (x**2 - np.mean(x**2), dense @ t))


@both_modes
def test_gradients_of_replicated_operands(check):
    w, x = np.float32([2, 3]), A(8) + 1
    pairs = x.reshape(4, 2)
    total = lambda body, specs, out: lambda w: on_line(body, specs, out, check_vma=check)(w, x).sum()
    same(jax.grad(total(lambda w, x: w * x, (P(), P("x")), P("x")))(w), pairs.sum(0))
    same(jax.grad(total(lambda w, x: lax.psum(w * x, "x"), (P(), P("x")), P()))(w), pairs.sum(0))
    same(jax.grad(total(lambda w, x: w * 2, (P(), P("x")), P()))(w), np.full(2, 2.0))
    same(jax.grad(total(lambda w, x: w * 2, (P(), P("x")), P("x")))(w), np.full(2, 8.0))


@pytest.mark.parametrize("body, spec, matrix", [
    # the result as a matrix times x**2, where x has 8 elements, 2 on each device
    (lambda x: lax.psum(x, "x"), P(), np.tile(np.eye(2), 4)),
    (lambda x: lax.pmean(x, "x"), P(), np.tile(np.eye(2), 4) / 4),
    (lambda x: lax.all_gather(x, "x", tiled=True), P("x"), np.tile(np.eye(8), (4, 1))),
    (lambda x: lax.ppermute(x, "x", RING), P("x"), np.roll(np.eye(8), 2, 0)),
    (lambda x: lax.ppermute(x, "x", [(0, 1), (1, 2)]), P("x"),
     np.diag([0, 0, 1, 1, 1, 1, 0, 0]) @ np.roll(np.eye(8), 2, 0)),
    (lambda x: lax.psum_scatter(jnp.tile(x, 2), "x", tiled=True), P("x"), np.tile(np.eye(2), (2, 4))),
    (lambda x: lax.all_to_all(jnp.tile(x, 2), "x", 0, 0, tiled=True), P("x"),
     np.tile(np.concatenate([np.eye(8)[::2], np.eye(8)[1::2]]), (2, 1))),
], ids=["psum", "pmean", "all_gather", "ppermute", "ppermute to some", "psum_scatter", "all_to_all"])
@both_modes
def test_gradients_through_collectives(body, spec, matrix, check):
    x, t = A(8) / 8, np.cos(A(8))
    f = on_line(lambda x: body(x**2), out_specs=spec, check_vma=check)
    ct = np.sin(1 + A(len(matrix)))

    @jax.jit
    def all_three(x, t, ct):
        return *jax.jvp(f, (x,), (t,)), jax.vjp(f, x)[1](ct)[0]

    same(all_three(x, t, ct), (matrix @ x**2, matrix @ (2 * x * t), 2 * x * (matrix.T @ ct)))


@both_modes
def test_scan_inside(check):
    def body(x):
        step = lambda c, t: (lax.ppermute(c, "x", RING) + t, lax.psum(c, "x"))
        return lax.scan(step, x, jnp.arange(3.0))
    run = on_line(body, out_specs=(P("x"), P()), check_vma=check)
    same(run(A(4)), (np.float32([4, 5, 6, 3]), np.float32([[6], [6], [10]])))
    same(jax.jit(jax.grad(lambda x: (run(x)[1] ** 2).sum()))(A(4)), np.full(4, 44.0))     # 2 (6 + 6 + 10)
    same(jax.vmap(run)(np.stack([A(4), A(4)]))[0], np.float32([[4, 5, 6, 3]] * 2))


def test_scan_outside():
    dot = on_line(lambda x, w: lax.psum((x * w).sum(), "x"), (P("x"), P()), P())
    run = lambda x: lax.scan(lambda c, t: (on_line(centred)(c) * t, dot(c * c, t)), x, jnp.arange(1.0, 4.0))
    same(run(A(4)), (6 * (A(4) - 1.5), np.float32([14, 10, 60])))
    # y1 = x.x, y2 = 2 d.d, y3 = 12 d.d with d = x - 1.5: the gradient is 2 x + 4 d + 24 d
    same(jax.grad(lambda x: run(x)[1].sum())(A(4)), 2 * A(4) + 28 * (A(4) - 1.5))


def test_cond_inside():
    x = A(4)
    local = on_line(lambda x: lax.cond(x[0] > 1, lambda x: 10 * x, lambda x: -x, x))      # each its own way
    same((local(x), jax.jit(local)(x)), (np.float32([0, -1, 20, 30]),) * 2)
    same(jax.grad(lambda x: local(x).sum())(x), np.float32([-1, -1, 10, 10]))
    total, largest = lambda x: lax.psum(x, "x"), lambda x: lax.pmax(x, "x")
    reduce = on_line(lambda x: lax.cond(total(x[0]) > 1, total, largest, x), out_specs=P())
    same((reduce(x), reduce(x / 10)), (np.float32([6]), np.float32([0.3])))


def test_while_inside():
    local = on_line(lambda x: lax.while_loop(lambda c: c[0] < 10, lambda c: c * 2, x + 1))
    same(local(A(4)), np.float32([16, 16, 12, 16]))
    common = on_line(lambda x: lax.while_loop(lambda c: lax.psum(c[0], "x") < 100, lambda c: c * 2, x))
    same((common(A(4)), jax.jit(common)(A(4))), (32 * A(4),) * 2)
    around = on_line(lambda x: lax.fori_loop(0, 3, lambda k, c: lax.ppermute(c, "x", RING) + k, x))
    same(around(A(4)), np.float32([4, 5, 6, 3]))


def test_custom_derivatives_and_checkpoint_inside():
    @jax.custom_vjp
    def twice(x):
        return 2 * x
    twice.defvjp(lambda x: (2 * x, None), lambda _, ct: (100 * ct,))
    same(jax.grad(lambda x: on_line(twice)(x).sum())(A(4)), np.full(4, 100.0))
    again = jax.checkpoint(lambda x: jnp.sin(lax.psum(x, "x")))
    same(jax.grad(lambda x: on_line(again, out_specs=P())(x).sum())(A(4)), np.full(4, np.cos(6.0)))


# --- manual over some axes ---


def some_manual(f, in_specs=ROWS, out_specs=ROWS, **options):
    return on_grid(f, in_specs, out_specs, axis_names={"x"}, **options)


def test_automatic_axes_are_seen_whole():
    def f(x):
        assert x.shape == (2, 4)
        return lax.psum(x @ x.T, "x")
    x = A(8, 4)
    placed = jax.device_put(x, NamedSharding(GRID, P("x", "y")))
    want = sum(b @ b.T for b in np.split(x, 4))
    run = some_manual(f, out_specs=P())
    same((run(x), jax.jit(run)(x), jax.jit(run)(placed)), (want,) * 3)


def test_constraints_on_automatic_axes():
    def f(x):
        return lax.psum(lax.with_sharding_constraint(2 * x, P(None, "y")), "x")
    want = 2 * A(8, 4).reshape(4, 2, 4).sum(0)
    same(jax.jit(some_manual(f, out_specs=P()))(A(8, 4)), want)
    text = jax.jit(some_manual(f, out_specs=P())).lower(A(8, 4)).as_text()
    assert "sdy.sharding_constraint" in text and 'manual_axes={"x"}' in text
    with jax.set_mesh(GRID):
        run = jax.shard_map(f, in_specs=P("x"), out_specs=P(), axis_names={"x"})
        same(jax.jit(run)(A(8, 4)), want)
    with raises(ValueError, "'x'"):
        jax.jit(some_manual(lambda x: lax.with_sharding_constraint(x, P("x"))))(A(8, 4))


@pytest.mark.parametrize("f, want", [
    (lambda x: 0 * x + lax.axis_index("x"), np.arange(8) // 2),
    (lambda x: lax.all_gather(x, "x", tiled=True), np.tile(A(8), 4)),
    (lambda x: lax.ppermute(x, "x", RING), np.roll(A(8), 2)),
    (lambda x: lax.psum_scatter(jnp.tile(x, 2), "x", tiled=True), np.float32([12, 16, 12, 16])),
    (lambda x: lax.all_to_all(jnp.tile(x, 2), "x", 0, 0, tiled=True), np.tile(A(8).reshape(4, 2).T.ravel(), 2)),
], ids=["axis_index", "all_gather", "ppermute", "psum_scatter", "all_to_all"])
def test_collectives_beside_automatic_axes(f, want):
    same(jax.jit(some_manual(f))(A(8)), want)


def test_gradients_beside_automatic_axes():
    x, w = A(8, 4) / 8, A(4) / 4
    f = lambda w: some_manual(lambda w, x: lax.psum((jnp.sin(x @ w)).sum(), "x"), (P(), P("x")), P())(w, x)
    same(jax.jit(jax.value_and_grad(f))(w), (np.sin(x @ w).sum(), np.cos(x @ w) @ x))


def nested(**options):
    """Sums blocks over y in an inner shard_map, then weighs by the place along x and sums over x."""
    def inner(x):
        return lax.psum(x, "y") * lax.axis_size("y")

    def outer(x):
        part = jax.shard_map(inner, in_specs=P("y"), out_specs=P(), axis_names={"y"}, **options)(x)
        return lax.psum(part * (1.0 + lax.axis_index("x")), "x")
    return some_manual(outer, out_specs=P(), **options)


@both_modes
def test_nested_over_another_axis(check):
    x = A(16)
    matrix = np.kron(np.kron([1, 2, 3, 4], [2, 2]), np.eye(2))              # (x, y, kept) -> kept
    run = nested(check_vma=check)
    same(jax.jit(run)(x), matrix @ x)
    same(jax.jit(jax.vmap(run))(np.stack([x, -x])), np.stack([matrix @ x, -matrix @ x]))
    same(jax.jit(jax.jvp, static_argnums=0)(run, (x,), (x**2,))[1], matrix @ x**2)


@both_modes
def test_gradient_of_nested(check):
    matrix = np.kron(np.kron([1, 2, 3, 4], [2, 2]), np.eye(2))
    square = lambda x: (nested(check_vma=check)(x) ** 2).sum()
    same(jax.jit(jax.grad(square))(A(16)), 2 * matrix.T @ (matrix @ A(16)))


def test_the_inner_body_sees_the_outer_axis():
    inner = lambda x: lax.psum(x, ("x", "y"))
    outer = lambda x: jax.shard_map(inner, in_specs=P("y"), out_specs=P(), axis_names={"y"})(x)
    same(jax.jit(some_manual(outer, out_specs=P()))(A(16)), A(8, 2).sum(0))


# --- errors ---


@pytest.mark.parametrize("options, args, error, words", [
    ({"in_specs": P("z")}, (A(4),), ValueError, ["in_specs", "'z'"]),
    ({"out_specs": P("z")}, (A(4),), ValueError, ["out_specs", "'z'"]),
    ({"in_specs": P(None, "x")}, (A(4, 6),), ValueError, ["6", "'x'", "4", "[4,6]"]),
    ({"in_specs": P(None, "x")}, (A(4),), ValueError, ["P(None, 'x')", "[4]"]),
    ({"in_specs": (P("x"), P())}, (A(4),), ValueError, ["in_specs"]),
    ({"in_specs": ({"a": P("x")},)}, ({"b": A(4)},), ValueError, ["in_specs"]),
    ({"out_specs": (P("x"), P("x"))}, (A(4),), ValueError, ["out_specs"]),
    ({"axis_names": {"q"}}, (A(4),), ValueError, ["q", "x"]),
    ({"mesh": GRID, "in_specs": P("x", "y"), "axis_names": {"x"}}, (A(4, 4),), ValueError, ["in_specs", "'y'"]),
    ({"in_specs": P("x", "x")}, (A(4, 4),), Exception, ["'x'"]),
])
def test_specs_that_do_not_fit(options, args, error, words):
    settings = {"mesh": LINE, "in_specs": P("x"), "out_specs": P("x")} | options
    with raises(error, *words):
        jax.shard_map(lambda x: x, **settings)(*args)


def test_the_argument_that_does_not_divide_is_named():
    with raises(ValueError, "[1]", "6", "4", "'x'"):
        on_line(lambda u, v: u, (P("x"), P(None, "x")))(A(4), A(4, 6))


def test_a_result_of_too_low_a_rank():
    with raises(ValueError, "out_specs", "P('x',)"):
        on_line(lambda x: x.sum())(A(4))


@pytest.mark.parametrize("total, words", [
    (lambda x: lax.psum(x, ("x", "y")),
     "lax.psum can only accept axis_name which corresponds to one of varying"),
    (lambda x: lax.pmean(x, ("x", "y")), "lax.psum can only accept"),
    (lambda x: lax.psum_scatter(x, ("x", "y"), tiled=True), "lax.psum_scatter can only accept")])
def test_a_sum_is_over_axes_along_which_its_operand_varies_or_over_others(total, words):
    with raises(ValueError, words):
        on_grid(total, P("x"), P())(A(64))
    on_grid(lambda x: total(lax.pcast(x, "y", to="varying")), P("x"), P(), check_vma=False)(A(64))


def test_other_wrong_uses():
    with raises(TypeError, "callable"):
        on_line(3)(A(4))
    with raises(TypeError, "should be of type `frozenset` or `set`"):
        on_grid(lambda x: x, axis_names="x")
    with raises(TypeError, "k"):
        on_line(lambda x, k=0: x)(A(4), k=1)
    with raises(NameError, "unbound axis name", "y"):
        jax.jit(some_manual(lambda x: lax.psum(x, "y")))(A(8))
    with pytest.raises(jax.errors.TracerBoolConversionError):
        on_line(lambda x: x if x[0] > 0 else -x)(A(4))


def test_sharded_equals_whole_for_a_small_network():
    """Rows of the batch over x, columns of the hidden layer over y: forward, backward, both modes."""
    x, w1, w2 = (np.sin(A(*shape)) for shape in [(8, 6), (6, 4), (4, 3)])

    def block(x, w1, w2):
        return lax.psum(jnp.tanh(x @ w1) @ w2, "y")

    specs = (P("x"), P(None, "y"), P("y"))
    for check, wrap in itertools.product((True, False), (lambda f: f, jax.jit)):
        run = on_grid(block, specs, P("x"), check_vma=check)
        value, grads = wrap(jax.value_and_grad(lambda *a, run=run: (run(*a) ** 2).sum(), (0, 1, 2)))(x, w1, w2)
        h = np.tanh(x @ w1)
        ct = 2 * h @ w2
        back = ct @ w2.T * (1 - h**2)
        same((value, grads), (np.sum((h @ w2) ** 2), (back @ w1.T, x.T @ back, h.T @ ct)), 10)


def test_callbacks_run_once_outside_and_on_each_device_inside():
    seen = []

    def look(x):
        seen.append(np.asarray(x).tolist())
        return np.asarray(x) * 2
    call = lambda x: jax.pure_callback(look, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    x = jax.device_put(A(8), NamedSharding(GRID, P("x")))
    same(jax.jit(lambda x: call(x) + 1)(x), 2 * A(8) + 1)
    assert seen == [A(8).tolist()]
    seen.clear()
    same(on_grid(call, P(("x", "y")), P(("x", "y")))(x), 2 * A(8))
    assert sorted(seen) == [[float(k)] for k in range(8)]
    seen.clear()
    same(jax.jit(some_manual(call))(x), 2 * A(8))
    assert {tuple(v) for v in seen} == {(0, 1), (2, 3), (4, 5), (6, 7)}


def test_printing_in_a_program_over_devices(capsys):
    def f(x):
        jax.debug.print("whole {}", x.sum())
        return x
    jax.jit(f)(jax.device_put(A(8), NamedSharding(GRID, P("x")))).block_until_ready()
    jax.effects_barrier()
    assert capsys.readouterr().out == "whole 28.0\n"
