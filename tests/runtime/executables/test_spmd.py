"""jit over eight devices: where things lie, constraints, programs equal to unsharded ones."""
import functools

import numpy as np
import pytest
from mesh8 import (
    DELETED, MIXED, ON_JAX, UNEVEN, backwards, counting, devices, grid, high, lies, line, low, on, on_device,
    one, put, whole)
from together import compiled_together

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.sharding import Mesh, NamedSharding, PartitionSpec as P

A = counting((8, 4))
W = counting((4, 6)) - 8

KEYWORDS = "kwargs|keyword"
constrain = lambda *args, **kw: lax.with_sharding_constraint(*args, **kw)
not_on_jax = pytest.mark.skipif(ON_JAX, reason="some version of JAX crashes or hangs")


def counted(fun):
    """`fun`, and the list of calls of its Python body."""
    calls = []

    @functools.wraps(fun)
    def wrapper(*args):
        calls.append(args)
        return fun(*args)
    return wrapper, calls


def double(x):
    return x * 2


def add(x, y):
    return x + y


# --- shardings of the arguments ---


@pytest.mark.parametrize("fun, operands, spec", [
    (jnp.sin, lambda: [put(A, "data")], P("data")),
    (jnp.sin, lambda: [put(A, "data", "model")], P("data", "model")),
    (jnp.sin, lambda: [put(A, ("data", "model"))], P(("data", "model"))),
    (lambda x: x, lambda: [put(A, "model", "data")], P("model", "data")),
    (lambda x: x.T, lambda: [put(A, "data")], P(None, "data")),
    (lambda x: x.reshape(32), lambda: [put(A, "data")], P("data")),
    (lambda x: x[:, None], lambda: [put(A, "data", "model")], P("data", None, "model")),
    (lambda x: x.sum(), lambda: [put(A, "data")], P()),
    (lambda x: x.sum(0), lambda: [put(A, "data")], P()),
    (lambda x: x.sum(0), lambda: [put(A, "data", "model")], P("model")),
    (jnp.matmul, lambda: [put(A, "data"), put(W, None, "model")], P("data", "model")),
    (jnp.matmul, lambda: [A, put(W, None, "model")], P(None, "model")),
    (jnp.matmul, lambda: [jnp.asarray(A), put(W, None, "model")], P(None, "model")),
    (jnp.matmul, lambda: [put(A), put(W, None, "model")], P(None, "model")),
    (jax.grad(lambda w, x: jnp.sum(jnp.sin(x @ w))),
     lambda: [put(W, None, "model"), put(A, "data")], P(None, "model")),
])
def test_results_lie_where_propagation_puts_them(fun, operands, spec):
    operands = operands()
    y = jax.jit(fun)(*operands)
    assert isinstance(y.sharding, NamedSharding) and y.committed
    assert y.sharding.mesh == grid()
    assert y.sharding.is_equivalent_to(NamedSharding(grid(), spec), y.ndim)
    np.testing.assert_allclose(y, jax.jit(fun)(*map(np.asarray, operands)), rtol=1e-5, atol=1e-5)


def test_constant_and_unused_values_are_on_all_devices_of_the_program():
    x = put(A, "data")
    kept, constant = jax.jit(lambda x, unused: (x, jnp.zeros(3)))(x, put(np.ones(5)))
    whole(constant, np.zeros(3, np.float32))
    assert constant.devices() == set(devices()) and constant.is_fully_replicated
    assert lies(kept, "data")


def test_uncommitted_arguments_go_where_the_committed_are():
    y = jax.jit(lambda a, b, c: a + b + c)(put(A, "data"), jnp.asarray(A), 1.0)
    whole(y, 2 * A + 1)
    assert lies(y, "data")


@pytest.mark.parametrize("spec", [
    P(), P("data"), P("data", None), P("data", "model"), P(("model", "data"))])
@pytest.mark.parametrize("operand", [lambda: A, lambda: jnp.asarray(A)])
def test_in_shardings_place_what_is_uncommitted(spec, operand):
    sharding = NamedSharding(grid(), spec)
    y = jax.jit(double, in_shardings=sharding)(operand())
    whole(y, 2 * A)
    assert y.committed and y.sharding.is_equivalent_to(sharding, 2)


@pytest.mark.parametrize("shardings", [
    lambda: on("data"), lambda: on("data", None), lambda: None, lambda: (None,),
    lambda: [on("data")], lambda: (on("data"),)])
def test_in_shardings_agree_with_a_committed_argument(shardings):
    y = jax.jit(double, in_shardings=shardings())(put(A, "data"))
    whole(y, 2 * A)
    assert lies(y, "data")


@pytest.mark.parametrize("number", [2.0, 3, True, 1j, np.float32(2), jnp.float32(2)])
def test_in_shardings_take_numbers(number):
    jitted = jax.jit(lambda x, y: x * y, in_shardings=(on(), on("data")))
    for result in (jitted(number, A), jitted.lower(number, A).compile()(number, A)):
        np.testing.assert_array_equal(result, np.asarray(A) * number)
    with pytest.raises(ValueError, match="argument x"):
        jax.jit(lambda x: x, in_shardings=on("data"))(number)


def test_in_shardings_are_a_prefix_of_the_arguments():
    def identity(tree, k):
        return tree

    tree = {"a": A, "b": (A, [A])}
    for shardings, want in (
            (on("data"), [P("data"), P("data"), P("data")]),
            ((on("data"), on()), [P("data"), P("data"), P("data")]),
            (({"a": on("data"), "b": on(None, "model")}, None),
             [P("data"), P(None, "model"), P(None, "model")]),
            (({"a": on(), "b": (on("data"), [on("model")])}, on()), [P(), P("data"), P("model")])):
        got = jax.jit(identity, in_shardings=shardings)(tree, np.ones(8, np.float32))
        for x, spec in zip(jax.tree.leaves(got), want):
            whole(x, A)
            assert x.sharding.is_equivalent_to(NamedSharding(grid(), spec), 2)


def test_in_shardings_may_number_the_devices_of_an_argument_in_another_order():
    y = jax.jit(double, in_shardings=on(mesh=backwards))(put(A, mesh=line))
    whole(y, 2 * A)
    assert lies(y, mesh=backwards)


def test_static_arguments_have_no_sharding():
    y = jax.jit(lambda n, x: x * n, in_shardings=(on("data"),), static_argnums=0)(3, A)
    whole(y, 3 * A)
    assert lies(y, "data")
    z = jax.jit(jnp.multiply, in_shardings=on("data"), static_argnums=1, out_shardings=on())(A, 2)
    whole(z, 2 * A)


def test_in_shardings_on_one_device():
    y = jax.jit(double, in_shardings=one(3))(A)
    whole(y, 2 * A)
    assert y.devices() == {devices()[3]}


@pytest.mark.parametrize(("held", "wanted"), [
    (on("x", mesh=low), NamedSharding(Mesh(devices()[4:], "y"), P("y"))), (on("x", mesh=low), on("x", mesh=low)),
    (on("data"), NamedSharding(Mesh(grid().devices[::-1], grid().axis_names), P("data"))), (on(mesh=low), on()),
    (on(), one(3)), (one(1), on(mesh=low))])
def test_in_shardings_bring_what_they_divide_alike_from_other_devices(held, wanted):
    f, x = jax.jit(double, in_shardings=wanted), jax.device_put(A, held)
    for place in held, wanted, held:
        y = f(jax.device_put(A, place))
        whole(y, 2 * A)
        assert y.sharding.is_equivalent_to(wanted, 2)
    g = jax.jit(double, in_shardings=wanted, donate_argnums=0)
    whole(g(x), 2 * A)
    assert held == wanted or not x.is_deleted()     # the copy was given away


def test_out_shardings_over_an_abstract_mesh_are_over_the_mesh_of_the_arguments():
    wanted = NamedSharding(grid().abstract_mesh, P("model"))
    f = jax.jit(lambda x: (double(x), x), out_shardings=(wanted, None))
    for results in f(put(A, "data")), f.lower(put(A, "data")).compile()(put(A, "data")):
        whole(results[0], 2 * A)
        assert lies(results[0], "model") and lies(results[1], "data")
    for how in dict(out_shardings=wanted), dict(in_shardings=wanted):
        with pytest.raises(ValueError, match="over an AbstractMesh, which has no devices"):
            jax.jit(double, **how)(A)


def test_in_shardings_win_over_the_default_device():
    with jax.default_device(devices()[3]):
        assert lies(jax.jit(double, in_shardings=on("data"))(A), "data")


@pytest.mark.parametrize("call, error, text", [
    (lambda: jax.jit(double, in_shardings=on(None, "model"))(put(A, "data")), ValueError,
     "(?s)sharding.*model.*data"),
    (lambda: jax.jit(double, in_shardings=on("data"))(on_device(A, 0)), ValueError, "sharding"),
    (lambda: jax.jit(double, in_shardings=on("x", mesh=low))(put(A, "data")), ValueError,
     "sharding"),
    (lambda: jax.jit(add, in_shardings=(on("data"), None))(A, y=A), ValueError, KEYWORDS),
    (lambda: jax.jit(add, in_shardings=on("data"))(A, y=A), ValueError, KEYWORDS),
    (lambda: jax.jit(add, in_shardings=(on(),))(A, A), ValueError, "(?s)in_shardings.*1.*2"),
    (lambda: jax.jit(add, in_shardings=(on(),) * 3)(A, A), ValueError, "(?s)in_shardings.*3.*2"),
    (lambda: jax.jit(jnp.multiply, in_shardings=(None, on()), static_argnums=0)(3, A), ValueError,
     "(?s)in_shardings.*2.*1"),
    (lambda: jax.jit(lambda d: d, in_shardings=({"z": on()},))({"a": A}), ValueError,
     "in_shardings"),
    (lambda: jax.jit(double, in_shardings=on("data"))(A[:6]), ValueError, UNEVEN),
    (lambda: jax.jit(double, in_shardings=on(None, "data"))(A[0]), ValueError,
     "(?s)rank.*2.*rank.*1"),
    (lambda: jax.jit(double, in_shardings="data")(A), (TypeError, ValueError),
     "(?s)in_shardings.*data"),
    (lambda: jax.jit(double, in_shardings=P("data"))(A), (RuntimeError, ValueError), "(?s)mesh"),
    (lambda: jax.jit(double, out_shardings=on("data"))(A[:6]), ValueError, UNEVEN),
    (lambda: jax.jit(double, out_shardings=on(None, "data"))(A[0]), ValueError,
     "(?s)rank.*2.*rank.*1"),
    (lambda: jax.jit(lambda x: (x, x), out_shardings=(on(),))(A), ValueError, "out_shardings"),
    (lambda: jax.jit(lambda x: {"a": x}, out_shardings={"b": on()})(A), ValueError,
     "out_shardings"),
    (lambda: jax.jit(double, out_shardings=P("data"))(A), (RuntimeError, ValueError), "(?s)mesh"),
    (lambda: jax.jit(double, out_shardings=on("x", mesh=low))(put(A, "data")), ValueError, MIXED),
    (lambda: jax.jit(double, out_shardings=one(2))(put(A, "data")), ValueError, MIXED),
    (lambda: jax.jit(jnp.add)(put(A, "data"), on_device(A, 1)), ValueError, MIXED),
    (lambda: jax.jit(jnp.add)(put(A, "x", mesh=line), put(A, "x", mesh=backwards)), ValueError,
     MIXED),
    (lambda: jax.jit(lambda x: jax.jit(double, in_shardings=on("x", mesh=low))(x))(put(A, "data")),
     ValueError, MIXED),
    (lambda: jax.jit(lambda x: jax.jit(double, in_shardings=on("data"))(x))(A[:6]), ValueError,
     UNEVEN),
])
def test_what_does_not_fit_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
    whole(jax.jit(double)(put(A, "data")), 2 * A)


# --- shardings of the results ---


@pytest.mark.parametrize("operand", [
    lambda: A, lambda: jnp.asarray(A), lambda: put(A, "data"), lambda: put(A, "x", mesh=line)])
@pytest.mark.parametrize("spec", [
    P(), P("data"), P(None, "model"), P("model", "data"), P(("data", "model"))])
def test_results_lie_where_out_shardings_say(operand, spec):
    sharding = NamedSharding(grid(), spec)
    y = jax.jit(double, out_shardings=sharding)(operand())
    whole(y, 2 * A)
    assert y.committed and y.sharding == sharding


def test_out_shardings_are_a_prefix_of_the_results():
    def fun(x):
        return {"a": x, "b": (x + 1, [x.sum()])}

    for shardings, want in (
            (on(), [P(), P(), P()]),
            (None, [P("data"), P("data"), P()]),
            ({"a": on(None, "model"), "b": None}, [P(None, "model"), P("data"), P()]),
            ({"a": None, "b": (on("model"), on())}, [P("data"), P("model"), P()])):
        got = jax.jit(fun, out_shardings=shardings)(put(A, "data"))
        for x, value, spec in zip(jax.tree.leaves(got), (A, A + 1, A.sum()), want):
            whole(x, value)
            assert x.sharding.is_equivalent_to(NamedSharding(grid(), spec), x.ndim)


def test_out_shardings_go_with_keyword_arguments():
    y = jax.jit(lambda x, y: x + y, out_shardings=on("data"))(A, y=A)
    assert lies(y, "data")
    whole(y, 2 * A)


def test_out_shardings_alone_choose_the_devices():
    y = jax.jit(double, out_shardings=on("x", mesh=high))(A)
    assert y.devices() == set(devices()[4:])
    z = jax.jit(double, out_shardings=one(2))(A)
    assert z.devices() == {devices()[2]}
    whole(y, 2 * A)
    whole(z, 2 * A)


def test_parameters_are_made_sharded():
    zeros = jax.jit(lambda: jnp.zeros((8, 4)), out_shardings=on("data"))()
    whole(zeros, np.zeros((8, 4), np.float32))
    assert lies(zeros, "data")

    def init(key):
        return {"w": jax.random.normal(key, (8, 4)), "b": jnp.zeros(4)}

    key = jax.random.key(0)
    params = jax.jit(init, out_shardings={"w": on("data", "model"), "b": on("model")})(key)
    assert lies(params["w"], "data", "model") and lies(params["b"], "model")
    np.testing.assert_array_equal(params["w"], jax.jit(init)(key)["w"])


def test_keys_go_through_sharded_programs():
    keys = jax.random.split(jax.random.key(0), 8)
    draw = jax.jit(jax.vmap(jax.random.uniform))
    y = draw(put(keys, "data"))
    np.testing.assert_array_equal(y, draw(keys))
    assert lies(y, "data")
    made = jax.jit(lambda k: jax.random.split(k, 8), out_shardings=on("data"))(jax.random.key(0))
    assert lies(made, "data") and made.dtype == keys.dtype
    np.testing.assert_array_equal(jax.random.key_data(made), jax.random.key_data(keys))


@pytest.mark.parametrize("dtype", ["bfloat16", "bool", "int8", "complex64", "int4", "uint32"])
def test_dtypes_go_through_sharded_programs(dtype):
    values = counting((8,)).astype(jnp.dtype(dtype))
    y = jax.jit(lambda x: jnp.where(x == x, x, x))(put(values, "data"))
    assert y.dtype == jnp.dtype(dtype) and np.array_equal(np.asarray(y), values)
    assert lies(y, "data")


def test_weak_types_and_empty_arrays_go_through_sharded_programs():
    assert jax.jit(lambda x: x + 1)(put(3.0)).aval.weak_type
    empty = jax.jit(lambda x: (x + 1, x.sum()))(put(np.zeros((0, 4), np.float32), "data"))
    assert empty[0].shape == (0, 4) and float(empty[1]) == 0.0


# --- bare specs under a mesh ---


def test_specs_are_read_under_the_mesh_in_force():
    with jax.set_mesh(grid()):
        y = jax.jit(double, in_shardings=P("data"), out_shardings=P(None, "model"))(A)
        z = jax.jit(double, in_shardings=P("data"))(A)
    whole(y, 2 * A)
    assert lies(y, None, "model") and lies(z, "data")


def test_an_unknown_axis_of_a_bare_spec_is_named():
    with jax.set_mesh(grid()), pytest.raises(ValueError, match="(?s)zzz.*mesh"):
        jax.jit(double, in_shardings=P("zzz"))(A)


def test_results_lie_on_the_mesh_in_force():
    with jax.set_mesh(grid()):
        y = jax.jit(double)(A)
    whole(y, 2 * A)
    assert y.devices() == set(devices())


def test_one_function_serves_several_meshes():
    f = jax.jit(lambda x: constrain(x * 2, P("x")))
    for mesh in (line(), low(), high(), backwards()):
        with jax.set_mesh(mesh):
            y = f(A)
        whole(y, 2 * A)
        assert y.sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 2)


# --- donation ---


def test_donated_shards_are_given_up():
    f = jax.jit(lambda x, y: x + y, donate_argnums=0)
    x, y = put(A, "data"), put(A, "data")
    z = f(x, y)
    whole(z, 2 * A)
    assert x.is_deleted() and not y.is_deleted() and lies(z, "data")
    with pytest.raises(RuntimeError, match=DELETED):
        np.asarray(x)
    for _ in range(3):
        z = f(z, y)
    whole(z, 5 * A)


def test_donation_goes_with_shardings_of_arguments_and_results():
    f = jax.jit(lambda t, n: {"a": t["a"] + n}, in_shardings=({"a": on("data")}, None),
                out_shardings={"a": on("data")}, donate_argnums=0)
    x = {"a": put(A, "data")}
    whole(f(x, 1.0)["a"], A + 1)
    assert x["a"].is_deleted()
    whole(f({"a": A}, 1.0)["a"], A + 1)


@not_on_jax
def test_a_donated_array_cannot_be_passed_again():
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = put(A, "data")
    f(x)
    for g in (f, jax.jit(double), jnp.sin):
        with pytest.raises((RuntimeError, ValueError), match=DELETED):
            g(x)
    whole(f(put(A, "data")), A + 1)


@not_on_jax
def test_an_array_donated_and_passed_in_one_call_is_refused():
    f = jax.jit(lambda x, y: x + y, donate_argnums=0)
    x = put(A, "data")
    with pytest.raises((RuntimeError, ValueError), match="donat"):
        f(x, x)
    whole(f(put(A, "data"), put(A, "data")), 2 * A)


@not_on_jax
def test_a_deleted_argument_of_a_program_that_ran_is_refused():
    f = jax.jit(lambda x, y: x @ y)
    x, y = put(A, "data"), put(W, None, "model")
    f(x, y)
    y.delete()
    for operands in ((x, y), (A, y), (put(A), y)):
        with pytest.raises(RuntimeError, match=DELETED):
            f(*operands)
    whole(f(x, put(W, None, "model")), A @ W)


# --- traces and programs kept ---


def test_a_second_call_does_not_trace():
    f, calls = counted(lambda x, y: x * 2 + y)
    g = jax.jit(f)
    for _ in range(3):
        whole(g(put(A, "data"), put(A, "data")), 3 * A)
    assert len(calls) == 1


def test_another_spec_compiles_and_does_not_trace():
    f, calls = counted(double)
    g = jax.jit(f)
    for spec in (P(), P("data"), P(None, "model"), P("data", "model"), P(("data", "model")), P()):
        y = g(put(A, *spec))
        whole(y, 2 * A)
        assert lies(y, *spec)
    assert len(calls) == 1


def test_one_function_runs_on_any_devices():
    g = jax.jit(lambda x: x * 2 - x.sum())
    want = A * 2 - A.sum()
    for place in (lambda: put(A, "data"), lambda: A, lambda: on_device(A, 3),
                  lambda: put(A, "x", mesh=low), lambda: put(A, "x", mesh=high),
                  lambda: put(A, "x", mesh=backwards), lambda: jnp.asarray(A),
                  lambda: put(A, "data")):
        x = place()
        y = g(x)
        whole(y, want)
        if isinstance(x, jax.Array):
            assert y.devices() == x.devices()


# --- nested jit, device_put and closures ---


def test_a_nested_jit_constrains_what_goes_in_and_out():
    inner = jax.jit(double, in_shardings=on(None, "model"), out_shardings=on(None, "model"))
    y = jax.jit(lambda x: inner(x + 1) - 1)(put(A, "data"))
    whole(y, 2 * A + 1)
    assert lies(y, None, "model")
    whole(jax.jit(jax.grad(lambda x: (inner(x) * x).sum()))(put(A, "data")), 4 * A)
    whole(jax.vmap(jax.jit(double, in_shardings=on("model")))(A), 2 * A)


def test_device_put_inside_a_program_keeps_the_values():
    for where in (on("data"), on(None, "model")):
        moved = jax.jit(lambda x, where=where: jax.device_put(x, where) * 2)
        whole(moved(put(A, "data")), 2 * A)


def test_a_program_closes_over_sharded_arrays():
    x, w = put(A, "data"), put(W, None, "model")
    np.testing.assert_array_equal(jax.jit(lambda y: (y + x) @ w)(put(A, "data")), (2 * A) @ W)
    np.testing.assert_array_equal(jax.jit(lambda y: (y + x) @ w)(A), (2 * A) @ W)
    grad = jax.grad(lambda y: ((y + x) @ w).sum())(put(A))
    np.testing.assert_array_equal(grad, np.tile(W.sum(1), (8, 1)))


# --- programs: sharded equals unsharded ---


def conv(x):
    kernel = counting((3, 3, 1, 2)) - 4
    return lax.conv_general_dilated(
        x.reshape(8, 2, 2, 1), kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def mlp_loss(x):
    def loss(params):
        return jnp.mean((jnp.tanh(x / 32 @ params["w"]) @ params["v"]) ** 2)
    return jax.value_and_grad(loss)({"w": W / 8, "v": counting((6, 3)) / 18})


PROGRAMS = {
    "grad": jax.grad(lambda x: (jnp.sin(x) * x.sum(0)).sum()),
    "two results of grad": mlp_loss,
    "jvp": lambda x: jax.jvp(lambda y: y * y.sum(), (x,), (x,)),
    "hessian": lambda x: jax.hessian(lambda y: (y ** 3).sum())(x[:2, 0]),
    "vmap": jax.vmap(lambda row: jnp.outer(row, row).sum(0)),
    "vmap of columns": jax.vmap(jnp.cumsum, in_axes=1, out_axes=1),
    "scan over rows": lambda x: lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(4), x),
    "scan with a carry": lambda x: lax.scan(
        lambda c, k: (c * 0.5 + k, c.sum()), x, jnp.arange(3.0)),
    "grad of scan": jax.grad(
        lambda x: lax.scan(lambda c, r: (c * 0.5 + r * r, None), x[0], x)[0].sum()),
    "while": lambda x: lax.while_loop(lambda c: c.sum() < 5000, lambda c: c * 2 + 1, x),
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, c: c.at[i].add(1.0), x),
    "cond": lambda x: lax.cond(x.sum() > 3, jnp.sort, lambda y: -y, -x),
    "switch": lambda x: lax.switch(2, [jnp.sin, jnp.cos, lambda y: y * 3], x),
    "sort": lambda x: jnp.sort(-x, axis=0),
    "sort of rows": lambda x: jnp.sort(-x, axis=1),
    "argsort": lambda x: jnp.argsort(-x, axis=0),
    "top_k": lambda x: lax.top_k(x.T, 3),
    "gather": lambda x: x[np.array([5, 0, 7]), np.array([1, 2, 3])],
    "gather rows": lambda x: x[np.array([[5, 0], [7, 7]])],
    "scatter": lambda x: x.at[np.array([0, 3, 0])].add(10.0),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (3, 1), (4, 2)),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, -x[:2, :2], (3, 1)),
    "conv": conv,
    "max pool": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID"),
    "cumsum": lambda x: jnp.cumsum(x, axis=0),
    "softmax": lambda x: jax.nn.softmax(x / 32, axis=0),
    "argmax": lambda x: jnp.argmax(x, axis=0),
    "einsum": lambda x: jnp.einsum("ij,kj->ik", x, x),
    "pad and slice": lambda x: jnp.pad(x, ((3, 2), (1, 0)))[1::3],
    "roll": lambda x: jnp.roll(x, (3, 1), (0, 1)),
    "concatenate": lambda x: jnp.concatenate([x[3:], x, x[:2]]),
    "reshape and transpose": lambda x: x.reshape(2, 4, 4).transpose(2, 0, 1).reshape(8, 4),
    "mean and variance": lambda x: (x.mean(0), x.var(1)),
    "where and any": lambda x: (jnp.where(x > 9, x, -x), (x > 30).any(), (x >= 0).all(1)),
    "random": lambda x: x + jax.random.normal(jax.random.key(1), x.shape),
    "checkpoint": jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(y).sum())(x)),
    "nested jit": lambda x: jax.jit(lambda y: y @ y.T)(x) + jax.jit(jnp.sum)(x),
}


# what each gives for an array on one device, and for one over several, placed in three ways
SHARDED = compiled_together(PROGRAMS, lambda name: (PROGRAMS[name], *[(x,) for x in (
    A, put(A, "data", "model"), put(A, ("data", "model")), put(A, "x", mesh=high))]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_sharded_program_gives_what_the_unsharded_gives(name):
    alone, *over_several = SHARDED(name)
    want = jax.tree.map(np.asarray, alone)
    for got, mesh in zip(over_several, (grid(), grid(), high()), strict=True):
        assert jax.tree.structure(got) == jax.tree.structure(want)
        for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want)):
            assert g.dtype == w.dtype and g.devices() == set(mesh.devices.flat) and g.committed
            np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5)


def test_a_training_step_is_the_same_on_any_mesh():
    def loss(params, x, y):
        return jnp.mean((jnp.tanh(x @ params["w1"] + params["b"]) @ params["w2"] - y) ** 2)

    @functools.partial(jax.jit, donate_argnums=0)
    def step(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    rng = np.random.default_rng(0)
    shapes = {"w1": (4, 16), "b": (16,), "w2": (16, 2)}
    params = {k: rng.standard_normal(s).astype(np.float32) for k, s in shapes.items()}
    x, y = (rng.standard_normal((8, n)).astype(np.float32) for n in (4, 2))
    data_parallel = {"w1": on(), "b": on(), "w2": on()}
    tensor_parallel = {"w1": on(None, "model"), "b": on("model"), "w2": on("model")}
    want = params
    for _ in range(3):
        want = step(jax.tree.map(jnp.array, want), x, y)
    for shardings in (data_parallel, tensor_parallel):
        got = jax.device_put(params, shardings)
        for _ in range(3):
            got = step(got, put(x, "data"), put(y, "data"))
        for k in shapes:
            np.testing.assert_allclose(got[k], want[k], rtol=1e-5, atol=1e-6)
            assert got[k].sharding.is_equivalent_to(shardings[k], got[k].ndim)


# --- jit(device=) ---


@pytest.mark.filterwarnings("ignore:backend and device argument:DeprecationWarning")
@pytest.mark.parametrize(
    "source", [lambda: A, lambda: jnp.asarray(A), lambda: on_device(A, 2), lambda: put(A, "data")])
def test_device_says_where_a_program_runs(source):
    """Arguments go there wherever they lie, and the results stay."""
    third = devices()[3]
    for f, want in [(lambda a: a + 1, A + 1), (lambda a: a, A),
                    (lambda a: jnp.zeros(3), np.zeros(3, np.float32))]:
        for how, place in ((dict(device=third), third), (dict(backend="cpu"), devices()[0]),
                           *([] if ON_JAX else [(dict(device="cpu"), devices()[0])])):
            run = jax.jit(f, **how)
            for results in (run(source()), jax.jit(**how)(f)(a=source()), jax.vmap(run)(source())):
                assert results.devices() == {place} and results.committed
            whole(jax.jit(f, **how)(source()), want)
    x = source()
    jax.jit(lambda a: a * 2, device=third, donate_argnums=0)(x)
    np.testing.assert_array_equal(x, A)      # the copy was given away
    grad = jax.grad(jax.jit(lambda a: jnp.sum(a * a), device=third))(source())
    np.testing.assert_array_equal(grad, 2 * A)


@pytest.mark.filterwarnings("ignore:backend and device argument:DeprecationWarning")
def test_device_is_for_programs_without_arguments_and_with_static_ones():
    third = devices()[3]
    for x in (jax.jit(lambda: jnp.ones(3), device=third)(),
              jax.jit(lambda n: jnp.ones(n), static_argnums=0, device=third)(3),
              jax.jit(lambda x, *, n: x + jnp.ones(n), static_argnames="n", device=third)(1, n=3)):
        assert x.devices() == {third} and x.committed
    assert jax.jit(lambda x: x + 1, device=third).lower(A).compile()(A).devices() == {third}


@pytest.mark.filterwarnings("ignore:backend and device argument:DeprecationWarning")
@pytest.mark.skipif(ON_JAX, reason="hlotrace's words")
@pytest.mark.parametrize("how, error, words", [
    (lambda: dict(device=devices()[1], backend="cpu"), ValueError,
     "can't specify both a device and a backend"),
    (lambda: dict(device=3), TypeError, "jit: device is one of hlotrace.devices\\(\\), got 3"),
    (lambda: dict(device=devices()[1], out_shardings=on()), ValueError,
     "device and backend say in another way"),
    (lambda: dict(backend="nope"), RuntimeError, "nope"),
])
def test_a_wrong_device_is_refused(how, error, words):
    with pytest.raises(error, match=words):
        jax.jit(lambda x: x, **how())(1.0)


@pytest.mark.filterwarnings("ignore:backend and device argument:DeprecationWarning")
@pytest.mark.parametrize(
    "how", [{}, {"device": devices()[3]}, {"out_shardings": on()}, {"in_shardings": on()}], ids=str)
def test_constants_give_way_to_arguments_and_shardings(how):
    """They are brought where the program runs, also from several places, for calls and for what is compiled
    ahead."""
    one, split, host = on_device(A, 2), jax.device_put(A, on("data")), np.zeros((8, 4), np.float32)
    f, x = jax.jit(lambda a: a + one - split + host, **how), A if how else on_device(A, 1)
    for call in (f, f, f.lower(x).compile()):
        np.testing.assert_array_equal(call(x), A)
    assert f(x).devices() == ({devices()[3]} if "device" in how else set(devices()[:8]) if how
                              else x.devices())


# --- the words of a result's sharding ---


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (4, 1), (1, 2), (1, 4), (4, 2), (8, 1)])
@pytest.mark.parametrize(
    "spec", [P("data", "model"), P("data"), P("model"), P("data", None), P(None, "model"), P(),
                                  P(("data", "model")), P(None, None)], ids=str)
def test_axes_that_split_nothing_stay_in_the_spec_of_a_result(shape, spec):
    mesh = Mesh(np.array(devices()[:shape[0] * shape[1]]).reshape(shape), ("data", "model"))
    x = jax.device_put(counting((8, 8)), NamedSharding(mesh, spec))
    slope = jax.grad(lambda x: jnp.sum(x ** 2))
    square = jax.jit(lambda x: {
        "same": x * 2, "loop": lax.fori_loop(0, 3, lambda i, c: c * 2, x), "row": x[None],
        "slope": slope(x)})(x)
    for y in (x + 1, jnp.sin(x), square["same"], square["loop"], square["slope"], slope(x),
              jax.jit(lambda x: x)(x)):
        assert y.sharding == x.sharding
    assert square["row"].sharding.mesh == mesh and square["row"].sharding.shard_shape((1, 8, 8))[1:] == (
        x.sharding.shard_shape((8, 8)))
    np.testing.assert_array_equal(square["same"], counting((8, 8)) * 2)
