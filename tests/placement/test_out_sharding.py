"""`out_sharding=`, `device=`, `sharding=`: the result is where its caller says, eagerly and when traced, or
an error says why."""

import forked
import numpy as np
import pytest
from mesh8 import auto_mesh, grid as auto_grid, lies, on, on_device, one, whole

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax, random
from hlotrace.nn import initializers
from hlotrace.runtime.devices import transfer
from hlotrace.sharding import AxisType, PartitionSpec as P, set_mesh


def grid():
    """The grid with axes of type Explicit."""
    return auto_grid().update(axis_types=(AxisType.Explicit,) * 2)


def over(*spec):
    return jax.NamedSharding(grid(), P(*spec))


X = np.arange(32, dtype=np.float32).reshape(8, 4)
SQUARE = np.arange(64, dtype=np.float32).reshape(8, 8)
CUBE = np.arange(128, dtype=np.float32).reshape(8, 4, 4)
ROWS = np.arange(8)


def key():
    return random.key(3)


# name -> a function of out_sharding, whose result has shape (8, 4) unless RANK1 says (8,)
FUNCTIONS = {
    "jnp.zeros": lambda s: jnp.zeros((8, 4), out_sharding=s),
    "jnp.ones": lambda s: jnp.ones((8, 4), out_sharding=s),
    "jnp.empty": lambda s: jnp.empty((8, 4), out_sharding=s),
    "jnp.full": lambda s: jnp.full((8, 4), 2.5, out_sharding=s),
    "jnp.zeros_like": lambda s: jnp.zeros_like(X, out_sharding=s),
    "jnp.ones_like": lambda s: jnp.ones_like(X, out_sharding=s),
    "jnp.empty_like": lambda s: jnp.empty_like(X, out_sharding=s),
    "jnp.full_like": lambda s: jnp.full_like(X, 3, out_sharding=s),
    "jnp.array": lambda s: jnp.array(X, out_sharding=s),
    "jnp.asarray": lambda s: jnp.asarray(X, out_sharding=s),
    "jnp.arange": lambda s: jnp.arange(8, out_sharding=s),
    "jnp.reshape": lambda s: jnp.reshape(jnp.arange(32), (8, 4), out_sharding=s),
    "jnp.reshape order F": lambda s: jnp.reshape(jnp.arange(32), (8, 4), order="F", out_sharding=s),
    "Array.reshape": lambda s: jnp.arange(32).reshape(8, 4, out_sharding=s),
    "jnp.ravel": lambda s: jnp.ravel(jnp.ones((2, 4)), out_sharding=s),
    "Array.flatten": lambda s: jnp.ones((2, 4)).flatten(out_sharding=s),
    "jnp.broadcast_to": lambda s: jnp.broadcast_to(X[0], (8, 4), out_sharding=s),
    "jnp.repeat": lambda s: jnp.repeat(X[:4], 2, axis=0, out_sharding=s),
    "jnp.repeat each": lambda s: jnp.repeat(X[:4], np.array([1, 3, 2, 2]), axis=0, out_sharding=s),
    "jnp.matmul": lambda s: jnp.matmul(SQUARE, X, out_sharding=s),
    "jnp.dot": lambda s: jnp.dot(SQUARE, X, out_sharding=s),
    "jnp.tensordot": lambda s: jnp.tensordot(SQUARE, X, 1, out_sharding=s),
    "jnp.einsum": lambda s: jnp.einsum("ij,jk->ik", SQUARE, X, out_sharding=s),
    "jnp.bincount": lambda s: jnp.bincount(ROWS, length=8, out_sharding=s),
    "jnp.percentile": lambda s: jnp.percentile(X, np.linspace(0, 100, 8), axis=0, out_sharding=s),
    "at.get": lambda s: jnp.asarray(X).at[ROWS].get(out_sharding=s),
    "at.set": lambda s: jnp.asarray(X).at[0].set(1.0, out_sharding=s),
    "at.add": lambda s: jnp.asarray(X).at[0].add(1.0, out_sharding=s),
    "at.subtract": lambda s: jnp.asarray(X).at[0].subtract(1.0, out_sharding=s),
    "at.divide": lambda s: jnp.asarray(X).at[0].divide(2.0, out_sharding=s),
    "at.power": lambda s: jnp.asarray(X).at[0].power(2.0, out_sharding=s),
    "lax.empty": lambda s: lax.empty((8, 4), np.float32, out_sharding=s),
    "lax.broadcasted_iota": lambda s: lax.broadcasted_iota(np.int32, (8, 4), 0, out_sharding=s),
    "lax.broadcast_in_dim": lambda s: lax.broadcast_in_dim(X[0], (8, 4), (1,), out_sharding=s),
    "lax.broadcast": lambda s: lax.broadcast(X[0], (8,), out_sharding=s),
    "lax.reshape": lambda s: lax.reshape(np.arange(32), (8, 4), out_sharding=s),
    "lax.reduce_sum": lambda s: lax.reduce_sum(CUBE, (1,), out_sharding=s),
    "lax.reduce": lambda s: lax.reduce(CUBE, np.float32(0), lax.add, (1,), out_sharding=s),
    "lax.reduce by a function": lambda s: lax.reduce(CUBE, np.float32(1), lambda a, b: a + 2 * b, (1,), out_sharding=s),
    "lax.dot": lambda s: lax.dot(SQUARE, X, out_sharding=s),
    "lax.dot_general": lambda s: lax.dot_general(SQUARE, X, (((1,), (0,)), ((), ())), out_sharding=s),
    "lax.ragged_dot": lambda s: lax.ragged_dot(SQUARE, np.stack([X, X]), np.array([3, 5]), out_sharding=s),
    "lax.ragged_dot_general": lambda s: lax.ragged_dot_general(
        SQUARE, np.stack([X, X]), np.array([3, 5]),
        lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)), out_sharding=s),
    "lax.conv_general_dilated": lambda s: lax.conv_general_dilated(
        X[:, None], np.ones((1, 1, 1), np.float32), (1,), "SAME", out_sharding=s)[:, 0],
    "random.bits": lambda s: random.bits(key(), (8, 4), out_sharding=s),
    "random.uniform": lambda s: random.uniform(key(), (8, 4), out_sharding=s),
    "random.normal": lambda s: random.normal(key(), (8, 4), out_sharding=s),
    "random.truncated_normal": lambda s: random.truncated_normal(key(), -1, 1, (8, 4), out_sharding=s),
    "random.exponential": lambda s: random.exponential(key(), (8, 4), out_sharding=s),
    "random.laplace": lambda s: random.laplace(key(), (8, 4), out_sharding=s),
    "random.logistic": lambda s: random.logistic(key(), (8, 4), out_sharding=s),
    "random.cauchy": lambda s: random.cauchy(key(), (8, 4), out_sharding=s),
    "random.gumbel": lambda s: random.gumbel(key(), (8, 4), out_sharding=s),
    "random.randint": lambda s: random.randint(key(), (8, 4), 0, 9, out_sharding=s),
    "random.bernoulli": lambda s: random.bernoulli(key(), 0.5, (8, 4), out_sharding=s),
    "random.rademacher": lambda s: random.rademacher(key(), (8, 4), out_sharding=s),
    "random.permutation": lambda s: random.permutation(key(), X, out_sharding=s),
    "random.permutation of a number": lambda s: random.permutation(key(), 8, out_sharding=s),
    "random.categorical": lambda s: random.categorical(key(), CUBE, out_sharding=s),
    "initializers.zeros": lambda s: initializers.zeros(key(), (8, 4), out_sharding=s),
    "initializers.ones": lambda s: initializers.ones(key(), (8, 4), out_sharding=s),
    "initializers.constant": lambda s: initializers.constant(2)(key(), (8, 4), out_sharding=s),
    "initializers.uniform": lambda s: initializers.uniform()(key(), (8, 4), out_sharding=s),
    "initializers.normal": lambda s: initializers.normal()(key(), (8, 4), out_sharding=s),
    "initializers.truncated_normal": lambda s: initializers.truncated_normal()(key(), (8, 4), out_sharding=s),
    "initializers.he_normal": lambda s: initializers.he_normal()(key(), (8, 4), out_sharding=s),
    "initializers.orthogonal": lambda s: initializers.orthogonal()(key(), (8, 4), out_sharding=s),
    "initializers.delta_orthogonal": lambda s: initializers.delta_orthogonal()(key(), (8, 4, 4), out_sharding=s)[:, 0],
}
FULL = {
    "lax.full": lambda s: lax.full((8, 4), 2.0, sharding=s),
    "lax.full_like": lambda s: lax.full_like(X, 2.0, sharding=s),
    "lax.full_like, weak": lambda s: lax.full_like(jnp.full((8, 4), 1.0), 2.0, sharding=s),
    "lax.full of keys": lambda s: lax.full((8, 4), 0, key().dtype, sharding=s),
}
PLACED = {
    **FULL,
    "jnp.zeros": lambda d: jnp.zeros((8, 4), device=d), "jnp.full": lambda d: jnp.full((8, 4), 1.5, device=d),
    "jnp.ones_like": lambda d: jnp.ones_like(X, device=d), "jnp.array": lambda d: jnp.array(X, device=d),
    "jnp.asarray": lambda d: jnp.asarray(X, device=d), "jnp.astype": lambda d: jnp.astype(X, np.int32, device=d),
    "Array.astype": lambda d: jnp.asarray(X).astype(np.int32, device=d), "jnp.eye": lambda d: jnp.eye(8, 4, device=d),
    "Array.to_device": lambda d: jnp.asarray(X).to_device(d),
    "jnp.linspace": lambda d: jnp.linspace(0, X[0], 8, device=d),
}


def test_the_spec_is_one_of_the_current_mesh():
    """Eagerly a placement: the values are those without it."""
    with set_mesh(grid()):
        for name, f in FUNCTIONS.items():
            got = f(P("data"))
            assert lies(got, "data"), (name, got.sharding)
            whole(got, np.asarray(f(None)))


def test_a_type_tells_how_to_lie():
    """A sharding over an AbstractMesh, such as a type's, is over the mesh in use; without one, it says nothing."""
    def like(x):
        return random.bernoulli(key(), 0.5, x.shape, out_sharding=jax.typeof(x).sharding)
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
    split = jax.NamedSharding(mesh.abstract_mesh, P("x"))
    for call in like, jax.jit(like):
        np.testing.assert_array_equal(call(ROWS), random.bernoulli(key(), 0.5, (8,)))
    with set_mesh(mesh):
        assert jax.jit(like)(ROWS).shape == (8,)
        for call in like, jax.jit(lambda x: jnp.zeros_like(x, out_sharding=split)):
            assert call(jax.device_put(ROWS, P("x"))).sharding == split.update(mesh=mesh)
    auto = auto_mesh((8,), ("x",))
    with set_mesh(auto):
        rows = jax.NamedSharding(auto.abstract_mesh, P("x"))
        for call in lax.with_sharding_constraint, jax.jit(lax.with_sharding_constraint, static_argnums=1):
            assert call(jnp.asarray(ROWS), rows).sharding == rows.update(mesh=auto)


@pytest.mark.parametrize("name", ["jnp.zeros", "jnp.arange", "jnp.einsum", "jnp.repeat", "at.set", "lax.dot_general",
                                  "lax.reduce", "random.normal", "random.permutation", "initializers.he_normal"])
def test_under_jit_it_is_the_same(name):
    f = FUNCTIONS[name]
    got = jax.jit(lambda: f(over("data")))()
    assert lies(got, "data")
    np.testing.assert_allclose(np.asarray(got), np.asarray(f(None)), rtol=1e-6)


def test_over_other_axes_the_compiler_decides():
    """An axis that is not Explicit is refused, also beside one that is; a spec that names none says nothing."""
    mixed = auto_grid().update(axis_types=(AxisType.Auto, AxisType.Explicit))
    for name, f in FUNCTIONS.items():
        for mesh in auto_grid(), mixed:
            for call in f, lambda s, f=f: jax.eval_shape(lambda: f(s)):
                with pytest.raises(ValueError, match="mesh axis 'data' of type Auto"):
                    call(jax.NamedSharding(mesh, P("data")))
                with set_mesh(mesh), pytest.raises(ValueError, match="mesh axis 'data' of type Auto"):
                    call(P("data"))
        assert str(jax.make_jaxpr(lambda f=f: f(on()))()) == str(jax.make_jaxpr(lambda f=f: f(None))()), name


@pytest.mark.parametrize("spec", [P("data"), P("data", "model")])
def test_over_explicit_axes_it_is_the_type_of_the_result(spec):
    sharding = jax.NamedSharding(jax.make_mesh((4, 2), ("data", "model")), spec)
    wanted = {name: f(None) for name, f in FUNCTIONS.items() if "empty" not in name and "delta_orthogonal" not in name}
    wanted = {name: x for name, x in wanted.items() if len(spec) <= x.ndim and (x.ndim < 3 or len(spec) < 2)}
    if len(spec) == 2:
        del wanted["lax.conv_general_dilated"]     # its result of the shape (8, 1, 4) does not divide
    found = jax.jit(lambda: {name: FUNCTIONS[name](sharding) for name in wanted})()
    for name, x in found.items():
        assert jax.typeof(x).sharding == sharding.update(mesh=sharding.mesh.abstract_mesh, spec=P(
            *spec, *[None] * (x.ndim - len(spec)))), name
        assert x.sharding.is_equivalent_to(sharding, x.ndim), name
        np.testing.assert_allclose(np.asarray(x), np.asarray(wanted[name]), rtol=1e-5, atol=1e-6, err_msg=name)


def test_gradients_pass_and_so_does_vmap():
    def loss(w):
        return jnp.sum(jnp.matmul(X, w, out_sharding=P("data", "model")) ** 2)
    w = np.ones((4, 2), np.float32)
    want = 2 * X.T @ (X @ w)
    with set_mesh(grid()):
        np.testing.assert_allclose(jax.grad(loss)(w), want)
        np.testing.assert_allclose(jax.jit(jax.grad(loss))(w), want)
        both = jax.vmap(lambda x: jnp.dot(x, w, out_sharding=P(None, "model")))(CUBE)
        np.testing.assert_allclose(both, CUBE @ w)


@pytest.mark.parametrize("like", [lax.full_like, jnp.full_like, *(
    lambda x, value, make=make, **options: make(x, **options) for make in (jnp.zeros_like, jnp.ones_like, jnp.empty_like))])
def test_an_array_like_another_lies_like_it(like):
    for x in (on_device(X, 3), jax.device_put(X, on("data")), jax.device_put(X, on(None, "model"))):
        for options in ({}, {"dtype": np.int32}, {"shape": (8, 4)}):
            made = like(x, 2, **options)
            assert made.sharding == x.sharding and made.committed
        assert like(x, 2, shape=(3,)).committed == (len(x.devices()) == 1 and like is not lax.full_like)
    assert not like(jnp.asarray(X), 2).committed


def test_what_holds_another_mesh_is_moved():
    x = on_device(X, 5)
    assert lies(jnp.reshape(x, (4, 8), out_sharding=over("data")), "data")


@pytest.mark.parametrize("name", PLACED)
def test_device_and_sharding_place(name):
    f = PLACED[name]
    assert f(one(3)).devices() == {jax.devices()[3]}
    assert f(jax.devices()[3]).committed
    assert lies(f(on("data", "model")), "data", "model")
    assert "device_put[" in str(jax.make_jaxpr(lambda: f(on("data")))())


# name -> a function, and by which of its parameters it is told where
BOTH, DEVICE, OUT, SHARDING = ("device", "out_sharding"), ("device",), ("out_sharding",), ("sharding",)
LARGE = {
    "zeros": (lambda **o: jnp.zeros((512, 1024), **o), BOTH),
    "ones": (lambda **o: jnp.ones((512, 1024), np.int32, **o), BOTH),
    "empty": (lambda **o: jnp.empty((512, 1024), **o), BOTH),
    "full": (lambda **o: jnp.full((512, 1024), 2.5, **o), BOTH),
    "full of a row": (lambda **o: jnp.full((512, 1024), np.arange(1024), **o), BOTH),
    "full of bfloat16": (lambda **o: jnp.full((512, 4096), 2, jnp.bfloat16, **o), BOTH),
    "zeros_like": (lambda **o: jnp.zeros_like(np.ones((512, 1024), np.int32), **o), BOTH),
    "full_like": (lambda **o: jnp.full_like(np.ones((512, 1024), np.int32), 3, **o), BOTH),
    "arange": (lambda **o: jnp.arange(1 << 19, **o), BOTH),
    "arange with a step": (lambda **o: jnp.arange(3, 3 + 5 * (1 << 19), 5, **o), BOTH),
    "eye": (lambda **o: jnp.eye(1024, 512, 2, **o), DEVICE),
    "broadcasted_iota": (lambda **o: lax.broadcasted_iota(np.int32, (512, 1024), 1, **o), OUT),
    "lax.empty": (lambda **o: lax.empty((512, 1024), np.float32, **o), OUT),
    "lax.full": (lambda **o: lax.full((512, 1024), 2.5, **o), SHARDING),
    "lax.full_like": (lambda **o: lax.full_like(np.ones((512, 1024)), 2.5, **o), SHARDING),
}


@pytest.mark.parametrize("name", LARGE)
def test_what_is_large_is_made_where_it_lies(name, monkeypatch):
    """Each device makes its part: nothing is moved."""
    make, parameters = LARGE[name]
    want = make()
    monkeypatch.setattr(transfer, "move", lambda *args: pytest.fail("made elsewhere, and moved"))
    for parameter in parameters:
        place = on if parameter != "out_sharding" else over
        for sharding in (place(("data", "model")), place("data"), place()):
            got = make(**{parameter: sharding})
            assert got.sharding.is_equivalent_to(sharding, got.ndim) and got.committed
            assert got.aval.update(sharding=None) is want.aval
            np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    if parameters != OUT:
        assert make(**{parameters[0]: jax.devices()[3]}).devices() == {jax.devices()[3]}
    with pytest.raises(ValueError, match="partitioned 8 times"):
        jnp.zeros((1 << 20) + 1, device=on(("data", "model")))


def with_mesh(f):
    with set_mesh(grid()):
        return f()


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.zeros((8, 4), out_sharding=P("data")), ValueError, "jnp.zeros: out_sharding.*no mesh in context"),
    (lambda: jnp.zeros((6, 4), out_sharding=over("data")), ValueError, "jnp.zeros.*(?s:.)*6"),
    (lambda: jax.jit(lambda: jnp.zeros((6, 4), out_sharding=over("data")))(), ValueError,
     "jnp.zeros.*(?s:.)*6"),
    (lambda: jnp.zeros(8, out_sharding=over("data", "model")), ValueError, "jnp.zeros"),
    (lambda: jnp.matmul(X, X.T, out_sharding=one(0)), TypeError, r"jnp.matmul\(.*\): out_sharding is a NamedSharding"),
    (lambda: random.normal(key(), (8,), out_sharding=jax.devices()[0]), TypeError, r"random.normal\(.*\): out_sharding"),
    (lambda: lax.reshape(X, (32,), out_sharding="data"), TypeError, r"lax.reshape\(.*\): out_sharding"),
    (lambda: with_mesh(lambda: jnp.zeros(8, out_sharding=jax.NamedSharding(
        jax.make_mesh((8,), ("data",), axis_types=(AxisType.Explicit,)), P("data")))), ValueError,
     "jnp.zeros: Context mesh .* should match the mesh of out_sharding"),
    (lambda: jnp.zeros(8, device=jax.devices()[0], out_sharding=on("data")), ValueError, "device and out_sharding"),
    (lambda: jnp.full(8, 1, device=3), ValueError, "expected a Sharding"),
    (lambda: lax.full((6,), 1, sharding=on("data")), ValueError, "6"),
])
def test_errors_name_the_function(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_without_it_the_modules_of_meshes_stay_unimported():
    program = ("import sys, hlotrace.numpy as jnp, hlotrace.lax as lax, hlotrace.random as random\n"
               "random.normal(random.key(0), (2, 2)) @ jnp.ones((2, 2)) + lax.full((2,), 1.0)\n"
               "print([m for m in sys.modules if m in ('hlotrace.sharding.named', 'hlotrace.placement.shardings')])")
    assert forked.run(program, check=True).stdout.strip() == "[]"
