"""What every transformation does with a user's call: errors that name the leaf, static arguments, symbolic
zeros."""
import gc
import weakref

import numpy as np
import pytest
from mesh8 import auto_mesh

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.api.flat import FlatFunction
from hlotrace.custom_derivatives import CustomVJPPrimal, SymbolicZero, custom_vjp_primal_tree_values

X = np.arange(3.0, dtype=np.float32)


def step(params, y):
    return params["w1"] * y


def text(params, y):
    return {"loss": "text"}


def custom_vjp(fun):
    made = jax.custom_vjp(fun)
    made.defvjp(lambda *args: (fun(*args), None), lambda residuals, ct: (ct, ct))
    return made


def custom_jvp(fun):
    made = jax.custom_jvp(fun)
    made.defjvp(lambda primals, tangents: (fun(*primals), tangents[1]))
    return made


def shard_map(fun):
    mesh = auto_mesh((1,), ("x",))
    return jax.shard_map(fun, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))


CALLS = {       # how each transformation calls a function of (params, y)
    "jit": lambda f, *args: jax.jit(f)(*args),
    "grad": lambda f, *args: jax.grad(f)(*args),
    "vjp": lambda f, *args: jax.vjp(f, *args),
    "jvp": lambda f, *args: jax.jvp(f, args, args),
    "linearize": lambda f, *args: jax.linearize(f, *args),
    "linear_transpose": lambda f, *args: jax.linear_transpose(f, *args),
    "jacfwd": lambda f, *args: jax.jacfwd(f)(*args),
    "jacrev": lambda f, *args: jax.jacrev(f)(*args),
    "fwd_and_bwd": lambda f, *args: jax.fwd_and_bwd(f, 0, jitted=False)[0](*args),
    "vmap": lambda f, *args: jax.vmap(f)(*args),
    "pmap": lambda f, *args: jax.pmap(f)(*args),
    "shard_map": lambda f, *args: shard_map(f)(*args),
    "checkpoint": lambda f, *args: jax.checkpoint(f)(*args),
    "custom_jvp": lambda f, *args: custom_jvp(f)(*args),
    "custom_vjp": lambda f, *args: custom_vjp(f)(*args),
    "eval_shape": lambda f, *args: jax.eval_shape(f, *args),
    "pure_callback": lambda f, *args: jax.pure_callback(f, X, *args),
    "lax.scan": lambda f, *args: lax.scan(f, *args),
    "lax.cond": lambda f, *args: lax.cond(True, f, f, *args),
    "lax.switch": lambda f, *args: lax.switch(1, [f, f], *args),
}


@pytest.mark.parametrize("what", CALLS)
def test_an_argument_that_is_no_array_is_named_by_its_path(what):
    with pytest.raises(TypeError) as found:
        CALLS[what](step, {"w0": X, "w1": "text"}, X)
    words = str(found.value)
    assert "of type <class 'str'> is not a valid JAX type: (it is argument params['w1'])" in words
    assert "step" in words and what.replace("lax.", "") in words or what == "jit"


@pytest.mark.parametrize("what", [what for what in CALLS if what != "pure_callback"])
def test_a_result_that_is_no_array_is_named_by_its_path(what):
    scalars = jax.tree.map(lambda x: x[:1] if "map" in what else x[0], ({"w1": X}, X))
    if what == "lax.scan":
        scalars = scalars[0], X
    with pytest.raises(TypeError,
                       match=r"function text at .* traced for .* <class 'str'> at output component \['loss'\]"):
        CALLS[what](text, *scalars)


def test_the_paths_of_arguments_beside_static_ones():
    with pytest.raises(TypeError, match=r"it is argument y\['a'\]"):
        jax.checkpoint(lambda n, y, z: y, static_argnums=0)("static", {"a": "text"}, X)
    with pytest.raises(TypeError, match=r"it is argument z"):
        jax.grad(lambda x, y, z: x, argnums=(2, 0))(1.0, "any", "text")
    with pytest.raises(TypeError, match=r"it is argument y"):
        jax.pmap(lambda n, y: y, static_broadcasted_argnums=0)("static", "text")


def test_static_arguments_by_name():
    def power(x, n):
        return x * n if isinstance(n, int) else None
    with pytest.raises(ValueError, match="by position"):
        jax.pmap(power, static_broadcasted_argnums=1)(X[:1], n=3)
    kept = jax.checkpoint(power, static_argnames="n")
    assert jax.grad(kept)(2.0, n=3) == jax.grad(kept)(2.0, 3) == 3


def test_gradients_come_in_the_order_of_argnums():
    def f(x, y, z):
        return x * y * y + z
    assert jax.grad(f, (1, 0))(2.0, 3.0, 0.0) == (12.0, 9.0)
    assert jax.grad(f, (-1, 0))(2.0, 3.0, 0.0) == (1.0, 9.0)
    assert jax.jacrev(f, (1, 0))(2.0, 3.0, 0.0) == jax.jacfwd(f, (1, 0))(2.0, 3.0, 0.0) == (12.0, 9.0)
    forward, backward = jax.fwd_and_bwd(f, (1, -3))
    assert backward(forward(2.0, 3.0, 0.0)[1], 1.0) == (12.0, 9.0)


@pytest.mark.parametrize("call, words", [
    (lambda: jax.grad(step, reduce_axes=("i",)), "reduce_axes"),
    (lambda: jax.value_and_grad(step, reduce_axes=("i",)), "reduce_axes"),
    (lambda: jax.vjp(step, X, reduce_axes=("i",)), "reduce_axes"),
    (lambda: jax.linear_transpose(step, X, reduce_axes=("i",)), "reduce_axes"),
    (lambda: jax.checkpoint(step, concrete=True), "concrete"),
])
def test_what_is_not_supported_says_so(call, words):
    with pytest.raises(NotImplementedError, match=words):
        call()


def test_a_struct_knows_the_axes_along_which_it_varies():
    struct = jax.ShapeDtypeStruct((2,), jnp.float32, vma={"x"})
    assert struct.vma == {"x"} and struct != jax.ShapeDtypeStruct((2,), jnp.float32) and "vma=['x']" in repr(
        struct)
    found = []

    def f(x):
        found.append(jax.eval_shape(lambda a: a + x, jax.ShapeDtypeStruct((1,), jnp.float32)))
        found.append(jax.eval_shape(lambda a: a * 2, jax.ShapeDtypeStruct((1,), jnp.float32, vma={"x"})))
        return x
    shard_map(f)(X[:1])
    assert [s.vma for s in found] == [{"x"}, {"x"}]


# --- symbolic zeros ---

def zeros(values):
    return jax.tree.map(lambda x: type(x) is SymbolicZero, values)


def forward_rule(seen):
    @jax.custom_jvp
    def f(x, y):
        return x * y, x

    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        seen.append(zeros(tangents))
        if isinstance(dx, SymbolicZero):
            assert dx.shape == jnp.shape(x) and dx.dtype == x.dtype
            return (x * y, x), (x * dy, SymbolicZero.from_primal_value(x))
        return (x * y, x), (dx * y + (0 if zeros(dy) else x * dy), dx)
    f.defjvp(rule, symbolic_zeros=True)
    return f


@pytest.mark.parametrize("around", [lambda f: f, jax.jit, lambda f: lambda *xs: jax.jit(f)(*xs)])
def test_tangents_known_to_be_zero_are_symbolic(around):
    seen = []
    f = forward_rule(seen)
    one = np.float32(1)
    assert jax.jvp(around(lambda y: f(np.float32(3), y)), (one,), (one,)) == (
        (3, 3), (3, 0)) and seen.pop() == (True, False)
    assert jax.jvp(around(lambda x: f(x, np.float32(2))), (one,), (one,)) == (
        (2, 1), (2, 1)) and seen.pop() == (False, True)
    assert jax.grad(around(lambda x: f(x, x)[0]))(np.float32(3)) == 6 and seen.pop() == (False, False)


def test_tangents_known_to_be_zero_under_vmap():
    seen = []
    f = forward_rule(seen)
    moved = jax.jvp(lambda y: jax.vmap(f, (0, None))(X, y), (np.float32(2),), (np.float32(1),))[1]
    np.testing.assert_array_equal(moved, [X, 0 * X])
    assert seen.pop() == (True, False)
    moved = jax.vmap(lambda x: jax.jvp(lambda x: f(x, x), (x,), (np.float32(1),))[1])(X)
    np.testing.assert_array_equal(moved, [2 * X, 1 + 0 * X])


def reverse_rule(seen):
    @jax.custom_vjp
    def g(x, params):
        return x * params["a"], x

    def fwd(x, params):
        assert type(x) is CustomVJPPrimal
        seen.append((x.perturbed, params["a"].perturbed))
        x, params = custom_vjp_primal_tree_values((x, params))
        return (x * params["a"], x), (x, params["a"])

    def bwd(residuals, cts):
        x, a = residuals
        seen.append(zeros(cts))
        return a * cts[0] + (0 if zeros(cts[1]) else cts[1]), {"a": x * cts[0]}
    g.defvjp(fwd, bwd, symbolic_zeros=True)
    return g


@pytest.mark.parametrize(
    "around", [lambda f: f, jax.jit, lambda f: lambda *xs: jax.jit(f)(*xs), jax.checkpoint])
def test_cotangents_known_to_be_zero_are_symbolic(around):
    seen = []
    g = reverse_rule(seen)
    assert jax.grad(around(lambda x: g(x, {"a": 2.0})[0]))(3.0) == 2
    assert seen[-1] == (False, True)
    assert jax.grad(around(lambda x: sum(g(x, {"a": x}))))(3.0) == 7
    assert seen[-2:] == [(True, True), (False, False)]
    assert g(3.0, {"a": 2.0}) == (6, 3)


def test_which_primals_are_perturbed():
    seen = []
    g = reverse_rule(seen)
    jax.grad(lambda x: g(x, {"a": 2.0})[0])(3.0)
    jax.grad(lambda a: jax.vmap(lambda x: g(x, {"a": a})[0])(X).sum())(2.0)
    assert seen == [(True, False), (False, True), (False, True), (False, True)]
    np.testing.assert_array_equal(jax.vmap(jax.grad(lambda x: g(x, {"a": 2.0})[0]))(X), [2, 2, 2])


@pytest.mark.parametrize(
    "around", [lambda f: f, jax.jit, jax.vmap, jax.checkpoint, lambda f: jax.jit(jax.vmap(f))])
def test_rules_get_arrays(around):
    """Not the NumPy constants of the transformations, such as the 1 with which grad begins."""
    def check(*values):
        for v in values:
            assert isinstance(v, jax.Array)
            v.at[...].set(1)

    @jax.custom_vjp
    def f(x, y):
        return x * y, y

    def bwd(residuals, cts):
        check(*cts)
        return cts[0] * residuals[1] + cts[1], cts[0] * residuals[0]
    f.defvjp(lambda x, y: (f(x, y), (x, y)), bwd)

    @jax.custom_jvp
    def g(x, y):
        return x * y

    def rule(primals, tangents):
        check(*tangents)
        return g(*primals), primals[0] * tangents[1] + primals[1] * tangents[0]
    g.defjvp(rule)
    for h in around(lambda x: f(x, 2 + 0 * x)[0]), around(lambda x: g(x, 2 + 0 * x)):
        np.testing.assert_array_equal(jax.grad(lambda x, h=h: h(x).sum())(X), 2 + 0 * X)


def test_what_is_kept_for_later_does_not_keep_the_arguments():
    x = jnp.ones(3)
    kept = [jax.vjp(lambda x: x + 1, x)[1], jax.linearize(lambda x: x + 1, x)[1],
            jax.linear_transpose(lambda x: 2 * x, x),
            jax.jit(custom_jvp(lambda x, y: x * y)), jax.checkpoint(lambda x: 2 * x)]
    kept[3](x, x), kept[4](x)
    there = weakref.ref(x)
    del x
    gc.collect()
    assert there() is None


class Converting:
    """A class that makes arrays of its children whatever they are, as SCICO's BlockArray does."""

    def __init__(self, xs):
        self.xs = [jnp.array(x) for x in xs]


jax.tree_util.register_pytree_node(Converting, lambda b: (b.xs, None), lambda _, xs: Converting(xs))


@pytest.mark.parametrize("call", [
    lambda b: jax.jit(lambda b, n: jax.tree.map(lambda x: x * n, b))(b, 2.0), jax.checkpoint(lambda b: b),
    lambda b: jax.jit(lambda b: b, donate_argnums=0)(Converting([1.0, 2.0])),
    lambda b: jax.jit(lambda r, d: d["b"])(jax.new_ref(1.0), {"b": b, "a": (b, None)}),
    lambda b: jax.jit(lambda b: b).lower(b).compile()(b),
    lambda b: jax.vmap(lambda b: b)(Converting([jnp.ones(2)])),
    jax.jit(lambda b: b, in_shardings=jax.sharding.SingleDeviceSharding(jax.devices()[0])),
    lambda b: jax.jit(lambda b: jax.lax.scan(lambda c, _: (c, None), b, None, length=2)[0])(b),
    lambda b: jax.jvp(jax.jit(lambda b: b), (b,), (b,))[1], jax.grad(lambda b: b.xs[0] ** 2),
])
def test_a_class_that_makes_arrays_of_its_children(call):
    assert type(call(Converting([1.0, 2.0]))) is Converting


def test_the_names_of_what_such_a_class_holds():
    flat = FlatFunction(lambda d, n: None,
                        *jax.tree.flatten((({"b": Converting([1.0, 2.0]), "a": [3.0]}, 4), {})), "jit")
    assert flat.paths() == ["d['a'][0]", "d['b'][<flat index 0>]", "d['b'][<flat index 1>]", "n"]


class ArraysOnly:
    """A node whose leaves are those of its attributes that are arrays: others, names too, become static data.
    """

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def flatten(self):
        arrays = {name: x for name, x in self.__dict__.items() if isinstance(x, (jax.Array, jax.core.Tracer))}
        static = tuple((name, x) for name, x in self.__dict__.items() if name not in arrays)
        return list(arrays.values()), (tuple(arrays), static)


jax.tree_util.register_pytree_node(ArraysOnly, ArraysOnly.flatten, lambda data, arrays: ArraysOnly(
    **dict(zip(data[0], arrays)), **dict(data[1])))


def test_leaves_have_names_where_a_class_drops_what_is_no_array():
    module = ArraysOnly(w=jnp.ones(3, jnp.float32), n=2)
    scaled = jax.jit(lambda x, m: ArraysOnly(w=x * m.w, n=3))
    lowered = scaled.lower(1., module)
    assert 'loc("x")' in lowered.as_text(debug_info=True)
    np.testing.assert_array_equal(scaled(2., module).w, [2, 2, 2])
    with pytest.raises(TypeError, match="m.*int32"):
        lax.while_loop(lambda m: True, lambda m: ArraysOnly(w=m.w.astype(int), n=2), module)
