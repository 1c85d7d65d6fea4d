"""Values that are unreduced over mesh axes, the terms of a sum on the devices, and values whose cotangents
are."""
import pickle
import re

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.errors import ShardingTypeError
from hlotrace.experimental.layout import Layout, with_layout_constraint
from hlotrace.experimental.shard_alike import shard_alike
from hlotrace.primitives.parallel.sharding import reshard_p
from hlotrace.sharding import AxisType, NamedSharding, P, reshard

A = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
B = np.random.default_rng(1).normal(size=(16, 8)).astype(np.float32)
AB = A @ B
U = P("x", None, unreduced={"y"})


@pytest.fixture(autouse=True)
def in_use():
    with jax.set_mesh(jax.make_mesh((2, 4), ("x", "y"))):
        yield


def operands():
    return jax.device_put(A, P("x", "y")), jax.device_put(B, P("y", None))


def product(a, b):
    return jnp.einsum("ij,jk->ik", a, b, out_sharding=U)


def added(x):
    return reshard(x, P("x"))


def both(fun, *args):
    yield fun(*args)
    yield jax.jit(fun)(*args)


def collectives(fun, *args):
    return found_in(jax.jit(fun).lower(*args).compile())


def found_in(program):
    return re.findall(
        r"= \S+ (all-reduce|reduce-scatter|all-gather|all-to-all|collective-permute)(?:-start)?\(",
        program.as_text())


# --- what makes them, what is linear -------------------------------------------------------------

@pytest.mark.parametrize("dot", [
    product, lambda a, b: jnp.matmul(a, b, out_sharding=U), lambda a, b: jnp.dot(a, b, out_sharding=U),
    lambda a, b: jnp.tensordot(a, b, 1, out_sharding=U),
    lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())), out_sharding=U)])
def test_a_product_over_a_split_dimension_leaves_the_sum(dot):
    for terms in both(dot, *operands()):
        assert str(jax.typeof(terms)) == "float32[8@x,8]{U:y}" and terms.sharding.spec == U
        assert not terms.sharding.is_fully_replicated and repr(terms) == "Array(shape=(8, 8), dtype=float32)"
        parts = [s.data for s in terms.addressable_shards if s.index[0].start in (0, None)]
        np.testing.assert_allclose(sum(map(np.asarray, parts)), AB[:4], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(added(terms), AB, rtol=1e-5, atol=1e-5)
    assert collectives(dot, *operands()) == []
    assert collectives(lambda a, b: added(dot(a, b)), *operands()) == ["all-reduce"]


LINEAR = {
    "itself": (lambda x: x, lambda x: x), "+": (lambda x: x + x, lambda x: 2 * x),
    "-": (lambda x: -(x - 3 * x), lambda x: 2 * x),
    "*": (lambda x: x * jnp.arange(8.0), lambda x: x * np.arange(8)),
    "/": (lambda x: x / 4, lambda x: x / 4),
    "@": (lambda x: x @ jnp.ones((8, 4)), lambda x: x @ np.ones((8, 4))),
    "astype": (lambda x: x.astype(jnp.complex64).real, lambda x: x),
    "concatenate": (lambda x: jnp.concatenate([x, x], 1), lambda x: np.concatenate([x, x], 1)),
    "where": (lambda x: jnp.where(jnp.arange(8) > 3, x, 2 * x),
              lambda x: np.where(np.arange(8) > 3, x, 2 * x)),
    "sum": (lambda x: x.sum(1), lambda x: x.sum(1)),
    "cumsum": (lambda x: jnp.cumsum(x, 1), lambda x: x.cumsum(1)),
    "slice": (lambda x: x[:, 2:5], lambda x: x[:, 2:5]),
    "reverse": (lambda x: x[:, ::-1], lambda x: x[:, ::-1]),
    "reshape": (lambda x: x.reshape(8, 2, 4), lambda x: x.reshape(8, 2, 4)),
    "new axes": (lambda x: x[:, None, :, None], lambda x: x[:, None, :, None]),
    "squeeze": (lambda x: jnp.squeeze(x[:, :1], 1), lambda x: x[:, 0]),
    "complex": (lambda x: (x.astype(complex) * (1 + 2j)).imag, lambda x: 2 * x),
    "transpose": (lambda x: x.reshape(8, 2, 4).transpose(0, 2, 1),
                  lambda x: x.reshape(8, 2, 4).transpose(0, 2, 1)),
    "dynamic_slice": (lambda x: lax.dynamic_slice(x, (0, 3), (8, 2)), lambda x: x[:, 3:5]),
    "batched @": (lambda x: jnp.einsum("ij,ijk->ik", x, jnp.ones((8, 8, 4))), lambda x: x @ np.ones((8, 4))),
    "copy": (jnp.copy, lambda x: x), "stop_gradient": (lax.stop_gradient, lambda x: x),
    "vmap": (jax.vmap(lambda row: row * 2), lambda x: 2 * x),
    "jit": (jax.jit(lambda x: x * 2), lambda x: 2 * x),
    "checkpoint": (jax.checkpoint(lambda x: x * 2), lambda x: 2 * x),
    "broadcast": (lambda x: jnp.broadcast_to(x[:, None], (8, 3, 8)),
                  lambda x: np.broadcast_to(x[:, None], (8, 3, 8))),
    "scan": (lambda x: lax.scan(lambda c, _: (c + c, None), x, None, length=2)[0], lambda x: 4 * x),
    "scan, stacked": (lambda x: lax.scan(lambda c, v: (c + v, c), x, jnp.stack([x, x]))[1],
                      lambda x: np.stack([x, 2 * x])),
    "scan, sums": (lambda x: lax.scan(lambda c, _: (c + x, None), jnp.zeros_like(x), None, length=3)[0],
                   lambda x: 3 * x),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] + c[1]), (0, x))[1],
              lambda x: 4 * x),
    "cond": (lambda x: lax.cond(jnp.arange(2).sum() > 0, lambda v: v * 2, lambda v: v, x), lambda x: 2 * x),
    "optimization_barrier": (lax.optimization_barrier, lambda x: x),
    "ones": (lambda x: x + jnp.ones_like(x), lambda x: x + 1),
    "of what is whole": (lambda x: x + reshard(jnp.full((8, 8), 3.0), U), lambda x: x + 3),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_functions_of_terms_give_terms(name):
    fun, want = LINEAR[name]
    terms = product(*operands())
    program = jax.jit(lambda x: (found := fun(x), reshard(found, P()))).lower(terms).compile()
    compiled, total = program(terms)
    assert "all-reduce" in found_in(program)
    np.testing.assert_allclose(total, want(AB), rtol=2e-5, atol=2e-5)
    for got in fun(terms), compiled:
        assert "{U:y}" in str(jax.typeof(got)), name
        np.testing.assert_allclose(reshard(got, P()), want(AB), rtol=2e-5, atol=2e-5)


def test_what_is_not_linear_is_refused():
    a, b = operands()
    x = product(a, b)
    refused = [
        (jnp.sin, "unreduced rule for sin is not implemented.*only linear functions"),
        (lambda x: x + 1, "all operands"), (lambda x: x * x, "only one operand"),
        (lambda x: x > 0, "only linear"), (jnp.max, "only linear"), (lambda x: x.astype(int), "only linear"),
        (lambda x: 1 / x, "only linear"), (lambda x: jnp.conj(x * 1j), "only linear"),
        (lambda x: x.at[:, 0].set(1.0), "all operands"), (jnp.sort, "only linear"),
        (lambda x: jnp.einsum("ij,jk->ik", reshard(a, P("x")), b, out_sharding=U), "no mesh axis splits"),
        (lambda x: jnp.einsum("ij,jk->ik", a, b, out_sharding=P(unreduced={"x"})), "mesh axis 'y' splits"),
        (lambda x: lax.with_sharding_constraint(x, P("x")), "{U:y}"),
        (lambda x: shard_alike(x, x), "unreduced values do not go"),
        (lambda x: with_layout_constraint(x, Layout((1, 0))), "unreduced values do not go"),
    ]
    for fun, words in refused:
        for way in (fun, jax.jit(fun)):
            with pytest.raises(ShardingTypeError, match=words):
                way(x)
    # XLA ends the process
    for fun in (lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
                lambda x: jax.debug.callback(print, x), lambda x: jax.device_put(x, P("x")),
                lambda x: jax.device_put(x, jax.devices()[0])):
        if "device_put" not in fun.__code__.co_names:
            with pytest.raises(ShardingTypeError, match="unreduced values do not go"):
                jax.jit(fun)(x)
        with pytest.raises(ValueError, match="each device holds a term"):
            fun(x)
    for other in (P(), P("x", "y"), jax.sharding.SingleDeviceSharding(jax.devices()[0])):
        with pytest.raises(ValueError, match="what is unreduced is a matter of the type"):
            jax.jit(lambda x: x + x, out_shardings=other)(x)
    for read in (np.asarray, float, jax.device_get, lambda x: jax.device_put(x, P("x")),
                 lambda x: jax.device_put(x, jax.devices()[0])):
        with pytest.raises((ValueError, TypeError), match="each device holds a term|scalar"):
            read(x)
    for make in (lambda: jax.device_put(A, P(unreduced={"y"})),
                 lambda: jax.jit(lambda v: v * 2, out_shardings=P(unreduced={"y"}))(A),
                 lambda: jax.jit(lambda v: v * 2, in_shardings=P(unreduced={"y"}))(A)):
        with pytest.raises(ValueError, match="unreduced"):
            make()


@pytest.mark.parametrize("spec", [P(unreduced={"y"}), P(None, "x", unreduced={"y"}), U])
def test_terms_may_be_split_otherwise(spec):
    """No device holds the value, so it is not the host that moves its parts."""
    for terms in [*both(lambda x: reshard(x, spec), product(*operands())),
                  jnp.dot(*operands(), out_sharding=spec)]:
        assert "{U:y}" in str(jax.typeof(terms)) and terms.sharding.is_equivalent_to(NamedSharding(
            jax.sharding.get_mesh(), spec), 2)
        for whole in (P(), P("y"), P("x", "y")):
            np.testing.assert_allclose(reshard(terms, whole), AB, rtol=1e-5, atol=1e-5)


def test_sums_and_scattered_sums():
    a, b = operands()
    for got in both(lambda a: lax.reduce_sum(a, (1,), out_sharding=P("x", unreduced={"y"})), a):
        np.testing.assert_allclose(added(got), A.sum(1), rtol=1e-5, atol=1e-5)
    for got in both(lambda a, b: reshard(product(a, b), P("x", "y")), a, b):
        assert got.sharding.spec == P("x", "y")
        np.testing.assert_allclose(got, AB, rtol=1e-5, atol=1e-5)


# --- derivatives ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("wrap", [lambda f: f, jax.checkpoint, jax.jit])
def test_derivatives_of_what_goes_through_terms(wrap):
    def loss(a, b):
        return jnp.sum(wrap(lambda a, b: jnp.sin(added(3 * product(a, b))))(a, b))
    want = jax.grad(lambda a, b: jnp.sum(jnp.sin(3 * (a @ b))), (0, 1))(A, B)
    for got in both(jax.grad(loss, (0, 1)), *operands()):
        assert [g.sharding.spec for g in got] == [P("x", "y"), P("y", None)]
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4)
    for out, tangent in both(lambda a, b: jax.jvp(lambda a, b: added(product(a, b)), (a, b), (a, b)),
                             *operands()):
        np.testing.assert_allclose(out, AB, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(tangent, 2 * AB, rtol=1e-5, atol=1e-5)


def test_the_cotangent_of_what_is_reduced_is_unreduced():
    """Data parallel training that adds the gradients of two batches before it sums them over the devices."""
    x, w = A.T, B[:8, :4]
    xs = jax.device_put(x, P("y"))
    whole = jax.device_put(w, P())
    reduced = reshard(whole, P(None, None, reduced={"y"}))
    assert str(jax.typeof(reduced)) == "float32[8,4]{R:y}"
    np.testing.assert_array_equal(reduced, w)

    def loss(w, x):
        return jnp.sum(jnp.tanh(jnp.einsum("bd,df->bf", x, 2 * w)) ** 2)
    want = jax.grad(loss)(w, x)
    for got in both(jax.grad(loss), reduced, xs):
        assert str(jax.typeof(got)) == "float32[8,4]{U:y}"
        np.testing.assert_allclose(reshard(got, P()), want, rtol=1e-5, atol=1e-5)

    def accumulated(w, x):
        w = reshard(w, P(None, None, reduced={"y"}))
        return reshard(jax.grad(loss)(w, x) + jax.grad(loss)(w, 3 * x), P())
    for got in both(accumulated, whole, xs):
        np.testing.assert_allclose(got, want + jax.grad(loss)(w, 3 * x), rtol=1e-3, atol=1e-4)
    assert collectives(accumulated, whole, xs) == ["all-reduce"]

    def through(w, x):
        return loss(reshard(w, P(None, None, reduced={"y"})), x)
    for got in both(jax.grad(through), whole, xs):
        assert str(jax.typeof(got)) == "float32[8,4]"
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


# --- specs ------------------------------------------------------------------------------------------------

def test_specs_name_them():
    spec = P("x", unreduced={"y"}, reduced={"z"})
    assert repr(spec) == "P('x', unreduced={'y'}, reduced={'z'})" and spec != P("x") and len(spec) == 1
    assert (spec.unreduced, spec.reduced) == ({"y"}, {"z"}) and hash(spec) == hash(
        pickle.loads(pickle.dumps(spec)))
    assert pickle.loads(pickle.dumps(spec)) == spec == spec.update() == P() + spec
    assert spec.to_ct_spec() == P("x", unreduced={"z"}, reduced={"y"}) and P("x").to_ct_spec() == P("x")
    x = product(*operands())
    assert pickle.loads(pickle.dumps(jax.typeof(x))) is jax.typeof(x)
    mixed = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Explicit))
    for make, error, words in [
        (lambda: P("x", unreduced={"x"}), ValueError, "cannot overlap"),
        (lambda: P(unreduced={"x"}, reduced={"x"}), ValueError, "cannot overlap"),
        (lambda: P(unreduced="x"), TypeError, "`frozenset` or `set`"),
        (lambda: P(reduced={None}), ValueError, "cannot contain"),
        (lambda: NamedSharding(mixed, P(unreduced={"z"})), ValueError, "is not found in mesh"),
        (lambda: NamedSharding(mixed, P(unreduced={"x"})), ValueError, "of type `Explicit`"),
        (lambda: jax.shard_map(jnp.sin, mesh=mixed, in_specs=P(reduced={"y"}), out_specs=P())(A), ValueError,
         "The context mesh .* should match the mesh passed to shard_map"),
    ]:
        with pytest.raises(error, match=words):
            make()
    with jax.set_mesh(mixed), pytest.raises(ShardingTypeError, match="reduced"):
        jax.shard_map(jnp.sin, in_specs=P(reduced={"y"}), out_specs=P())(A)
    with pytest.raises(ShardingTypeError, match="unreduced over other axes"):     # XLA ends the process
        reshard_p.bind(x, sharding=NamedSharding(x.sharding.mesh, P(unreduced={"x"})))


def test_terms_over_different_axes_are_not_added():
    one, other = product(*operands()), reshard(jnp.ones((8, 8)), P(unreduced={"x"}))
    with pytest.raises(ShardingTypeError, match="still to be taken"):
        reshard(one, P(unreduced={"y"})) + other


def test_terms_over_other_axes_are_those_of_the_sum():
    for way in (lambda f: f, jax.jit):
        terms = way(lambda a, b: reshard(product(a, b), P(unreduced={"x"})))(*operands())
        assert jax.typeof(terms).sharding.spec.unreduced == {"x"}
        np.testing.assert_allclose(way(added)(terms), A @ B, rtol=1e-5)


def test_over_a_mesh_that_has_auto_axes_too():
    mixed = jax.make_mesh((2, 2, 2), ("x", "y", "z"), axis_types=(AxisType.Explicit,) * 2 + (AxisType.Auto,))
    terms = P(unreduced={"x"})

    def made(a, b):
        return jnp.einsum("ij,jk->ik", a, b, out_sharding=terms)

    def loop(a, b):
        return lax.scan(lambda c, _: (c + c, None), made(a, b), None, length=1)[0]
    with jax.set_mesh(mixed):
        a, b, rows, whole = [jax.device_put(v, NamedSharding(mixed, spec)) for v, spec in (
            (A, P(None, "x")), (B, P("x")), (A, P("x")), (A, P()))]
        kept = jax.device_put(B, NamedSharding(mixed, P(None, None, reduced={"x"})))
        cases = [
            (lambda: reshard(made(a, b), P()), A @ B), (lambda: reshard(made(a, b), P("x")), A @ B),
            (lambda: reshard(made(a, b) + made(a, b), P()), 2 * A @ B),
            (lambda: reshard(loop(a, b), P()), 2 * A @ B),
            (lambda: reshard(made(lax.with_sharding_constraint(a, P("z")), b) * 2, P()), 2 * A @ B),
            (lambda: reshard(lax.reduce_sum(rows, (0,), out_sharding=terms), P()), A.sum(0)),
            (lambda: reshard(reshard(whole, terms) * 3, P()), 3 * A),
            (lambda: reshard(jax.grad(lambda w: jnp.dot(rows, w).sum())(kept), P()),
             A.sum(0)[:, None] + 0 * B)]
        results = jax.jit(lambda: [f() for f, _ in cases])()
    for got, (_, want) in zip(results, cases, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


# --- derivatives through programs ----------------------------------------------------------------

STACK = np.random.default_rng(2).normal(size=(3, 8, 8)).astype(np.float32)
GRADIENTS = {
    "elementwise": lambda x, ws: jnp.sin(ws[0]).sum(), "sum": lambda x, ws: (x @ (ws[0] + ws[0])).sum(),
    "loop": lambda x, ws: lax.scan(lambda c, _: (jnp.tanh(c @ ws[0]), None), x, length=2)[0].sum(),
    "layers": lambda x, ws: lax.scan(lambda c, w: (jnp.tanh(c @ w), None), x, ws)[0].sum(),
    "layers, remat": lambda x, ws: lax.scan(jax.checkpoint(lambda c, w: (jnp.tanh(c @ w), None)), x,
                                            ws)[0].sum(),
    "branch": lambda x, ws: lax.cond(jnp.arange(2).sum() > 0, lambda w: (x @ w).sum(),
                                     lambda w: (2 * x @ w).sum(), ws[0]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_what_is_reduced_are_unreduced(name):
    fun = GRADIENTS[name]
    x, ws = jax.device_put(A[:, :8], P("x")), jax.device_put(STACK, P(None, None, None, reduced={"x"}))
    found = jax.jit(jax.grad(lambda ws: fun(x, ws)))(ws)
    assert "{U:x}" in str(jax.typeof(found))
    np.testing.assert_allclose(reshard(found, P()), jax.grad(lambda ws: fun(A[:, :8], ws))(STACK), rtol=1e-4,
                               atol=1e-4)


def test_an_axis_that_splits_both_operands_splits_the_first_alone():
    a = jax.device_put(A, P("x", "y"))
    for got in both(lambda a: jnp.einsum("ab,ac->bc", a, a, out_sharding=P(None, None, unreduced={"x"})), a):
        assert str(jax.typeof(got)) == "float32[16,16]{U:x}"
        np.testing.assert_allclose(reshard(got, P()), A.T @ A, rtol=1e-4, atol=1e-4)


def test_a_product_of_what_is_reduced_is_not():
    whole = jax.device_put(A[:, :8], P(reduced={"x"}))
    assert [str(jax.typeof(x)) for x in both(lambda x: x @ x.T, whole)] == ["float32[8,8]"] * 2


def test_products_along_a_path_and_values_that_leave_explicit_axes():
    a, b = operands()
    path = jax.jit(lambda a, b: jnp.einsum("ij,jk,kl->il", a, b, jnp.ones((8, 4)),
                                           out_sharding=P(unreduced={"y"})))
    assert str(jax.typeof(path(a, b))) == "float32[8,4]{U:y}"
    np.testing.assert_allclose(reshard(path(a, b), P()), AB @ np.ones((8, 4)), rtol=1e-4, atol=1e-4)
    for leave in (lambda x: jax.device_put(x, P("x")),
                  jax.sharding.auto_axes(lambda v: v * 1, out_sharding=P("x"))):
        found = jax.jit(lambda a, b, leave=leave: leave(product(a, b)))(a, b)
        assert str(jax.typeof(found)) == "float32[8@x,8]"
        np.testing.assert_allclose(found, AB, rtol=1e-5, atol=1e-5)
    assert str(
        jax.typeof(lax.reduce_sum(a, (0, 1), out_sharding=P(unreduced={"x", "y"})))) == "float32[]{U:(x,y)}"


# --- shard_map -----------------------------------------------------------------------------------

def test_terms_go_into_a_shard_map_and_come_out():
    a, b = operands()
    inside = {
        "doubled": (lambda u: u * 2, U, 2 * AB), "summed": (lambda u: lax.psum(u, "y"), P("x"), AB),
        "scattered": (lambda u: lax.psum_scatter(u, "y", scatter_dimension=1, tiled=True), P("x", "y"), AB),
    }
    for name, (fun, out, want) in inside.items():
        mapped = jax.shard_map(fun, in_specs=U, out_specs=out)
        for found in both(lambda a, b, mapped=mapped: mapped(product(a, b)), a, b):
            assert found.sharding.spec.unreduced == out.unreduced, name
            np.testing.assert_allclose(reshard(found, P()), want, rtol=1e-5, atol=1e-5)
    local = jax.shard_map(lambda a, b: lax.pcast(a @ b, "y", to="unreduced"), in_specs=(P("x", "y"), P("y")),
                          out_specs=U)
    np.testing.assert_allclose(added(jax.jit(local)(a, b)), AB, rtol=1e-5, atol=1e-5)
    assert str(jax.typeof(jax.shard_map(lambda u: u, out_specs=U)(product(a, b)))) == "float32[8@x,8]{U:y}"


@pytest.mark.parametrize("outside", [True, False])
def test_the_cotangent_of_what_is_reduced_leaves_a_shard_map_unreduced(outside):
    x, w = jax.device_put(A[:, :8], P("x")), jax.device_put(STACK[0], P(None, None, reduced={"x"}))
    if outside:
        apply = jax.shard_map(lambda x, w: x @ w, in_specs=(P("x"), P(reduced={"x"})), out_specs=P("x"))
        found = jax.jit(jax.grad(lambda w: apply(x, w).sum()))(w)
    else:
        found = jax.jit(jax.shard_map(lambda x, w: jax.grad(lambda w: (x @ w).sum())(w),
                                      in_specs=(P("x"), P(reduced={"x"})),
                                      out_specs=P(unreduced={"x"})))(x, w)
    assert str(jax.typeof(found)) == "float32[8,8]{U:x}"
    np.testing.assert_allclose(reshard(found, P()), A[:, :8].T @ np.ones((8, 8), np.float32), rtol=1e-4,
                               atol=1e-4)


@pytest.mark.parametrize("fun", [lambda a, b: jnp.dot(a, b, out_sharding=P(unreduced={"y"})),
                                 lambda a, b: jax.reshard(a, P(unreduced={"y"}))])
def test_nothing_is_made_unreduced_beside_manual_axes(fun):
    """XLA ends the process."""
    call = jax.shard_map(fun, in_specs=P(), out_specs=P("x"), axis_names={"x"})
    with pytest.raises(ShardingTypeError, match="not made unreduced within a shard_map over mesh axis 'x'"):
        jax.jit(call)(jax.reshard(A, P(None, "y")), jax.reshard(A.T, P("y")))


def test_specs_of_a_shard_map_that_say_what_is_not_so():
    a, b = operands()
    with pytest.raises(ShardingTypeError, match="in_specs says"):
        jax.shard_map(lambda u: u, in_specs=P("x"), out_specs=P("x"))(product(a, b))
    with pytest.raises(ShardingTypeError, match="in_specs says"):
        jax.shard_map(lambda u: u, in_specs=P(unreduced={"y"}), out_specs=P(unreduced={"y"}))(jnp.ones(8))
    with pytest.raises(ValueError, match="not terms of a sum"):
        jax.shard_map(lambda u: u, in_specs=P(), out_specs=P(unreduced={"y"}))(jnp.ones(8))
    with pytest.raises(ValueError, match="no term of a sum"):
        jax.shard_map(lambda u: lax.pcast(u, "y", to="unreduced"), in_specs=P(),
                      out_specs=P(unreduced={"y"}))(jnp.ones(8))
