"""linear_call, zero_from_primal, optimize_remat; primitives of custom rules."""
import functools

import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.ad_checkpoint import checkpoint_name
from hlotrace.custom_derivatives import (
    SymbolicZero, custom_jvp_call_p, custom_vjp_call_p, linear_call, remat_opt_p, zero_from_primal)

X = np.arange(3, dtype=np.float32)


def scaled(r, x):
    """Its transpose is ten times too large, so that it shows."""
    return linear_call(lambda r, x: x * r, lambda r, ct: ct * r * 10, r, x)


def test_linear_call_is_transposed_as_the_user_says():
    same(scaled(2.0, X), X * 2)
    same(jax.jit(scaled)(2.0, X), X * 2)
    same(jax.jvp(lambda x: scaled(2.0, x), (X,), (X,))[1], X * 2)
    for f in (lambda f: f), jax.jit:
        same(f(jax.grad(lambda x: scaled(2.0, x).sum()))(X), np.full(3, 20, np.float32))
        same(f(lambda ct: jax.linear_transpose(lambda x: scaled(2.0, x), X)(ct))(X), (20 * X,))
    same(jax.vmap(jax.grad(lambda x, r: scaled(r, x)), (None, 0))(1.0, X), 10 * X)
    same(jax.grad(lambda x: jax.vmap(scaled, (0, None))(X, x).sum())(1.0), 10 * X.sum())
    same(jax.grad(lambda x: jax.vmap(scaled)(X, x).sum())(X), 10 * X)


def test_linear_call_transposed_twice_is_itself():
    def turned(f):
        return lambda ct: jax.linear_transpose(f, X)(ct)[0]

    def three_ways(c, wrap=lambda f: f):    # the rule closes over c
        f = wrap(lambda x: linear_call(lambda r, x: x * r, lambda r, ct: ct * r * c, 2.0, x))
        return f(X), turned(f)(X), turned(turned(f))(X), turned(turned(turned(f)))(X)
    for wrap in (lambda f: f), jax.jit:
        same(three_ways(10.0, wrap), (X * 2, X * 20, X * 2, X * 20))
    same(jax.jvp(three_ways, (10.0,), (1.0,))[1], (X * 0, X * 2, X * 0, X * 2))
    same(jax.vmap(three_ways)(X)[3], 2 * X[:, None] * X)


def test_linear_call_with_respect_to_its_residuals():
    same(jax.jvp(scaled, (2.0, X), (1.0, X)), (X * 2, X + X * 2))
    same(jax.grad(lambda r: scaled(r, X).sum())(2.0), X.sum())
    same(jax.grad(lambda r: jax.grad(lambda x: scaled(r, x).sum())(X).sum())(2.0), 30.0)


def test_linear_call_of_pytrees():
    def f(r, x):
        return linear_call(lambda r, x: {"s": x[0] + r["k"] * x[1]},
                           lambda r, ct: (ct["s"], ct["s"] * r["k"]), r, x)
    value, back = jax.vjp(lambda x: f({"k": 3.0}, x), (1.0, 2.0))
    same((value, back({"s": 1.0})), ({"s": 7.0}, ((1.0, 3.0),)))
    with pytest.raises(TypeError, match="(?s)transpose <lambda> must have the structure of linear_args"):
        jax.grad(lambda x: linear_call(lambda r, x: x, lambda r, ct: (ct, ct), (), x))(1.0)
    with pytest.raises(TypeError, match=r"has shape \(\), and linear_args has shape \(3,\)"):
        jax.grad(lambda x: linear_call(lambda r, x: x.sum(), lambda r, ct: ct, (), x))(X)
    with pytest.raises(TypeError, match="fun_transpose must be a function"):
        linear_call(lambda r, x: x, None, (), X)


def test_zero_from_primal():
    zeros = zero_from_primal({"x": X, "n": np.arange(2), "z": 1j})
    same(zeros["x"], np.zeros(3, np.float32))
    assert zeros["n"].dtype == jax.dtypes.float0 and zeros["z"].dtype == np.complex64
    symbolic = zero_from_primal(X, symbolic_zeros=True)
    assert type(symbolic) is SymbolicZero and symbolic.shape == (3,)


def test_a_forward_rule_that_checkpoint_runs_only_where_its_residuals_are_needed():
    @jax.custom_vjp
    def f(x):
        return jnp.sin(x)
    f.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda slope, ct: (10 * slope * ct,), optimize_remat=True)

    @jax.checkpoint
    def loss(x):
        return checkpoint_name(jnp.exp(f(x)), "e") * 2
    for policy in None, jax.checkpoint_policies.save_only_these_names("e"):
        gradient = jax.grad(jax.checkpoint(lambda x: jnp.sin(loss.__wrapped__(x)), policy=policy))
        forward, backward = [eqn.params["jaxpr"] for eqn in jax.make_jaxpr(gradient)(1.0).eqns]
        assert "remat_opt" not in str(forward) and "cos" not in str(forward) and "remat_opt" in str(backward)
        same(gradient(1.0), jax.jit(gradient)(1.0))
        same(gradient(1.0), 10 * jax.grad(lambda x: jnp.sin(jnp.exp(jnp.sin(x)) * 2))(1.0))
    same(jax.jit(jax.vmap(jax.grad(f)))(X), 10 * np.cos(X))
    same(jax.jit(jax.grad(jax.grad(f)))(1.0), -10 * np.sin(1.0))
    same(jax.jit(lambda w: jax.grad(lambda x: f(x) * w)(1.0))(2.0), 20 * np.cos(1.0))


def test_primitives_of_custom_rules_have_names():
    @jax.custom_jvp
    def f(x):
        return x
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    assert jax.make_jaxpr(f)(1.0).eqns[0].primitive is custom_jvp_call_p
    g = jax.custom_vjp(lambda x: x)
    g.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
    assert jax.make_jaxpr(g)(1.0).eqns[0].primitive is custom_vjp_call_p
    assert remat_opt_p.name == "remat_opt"


def test_keyword_only_arguments_at_their_defaults_are_left_out():
    @jax.custom_jvp
    def f(x, *, scale=2.0):
        return x * scale
    f.defjvp(lambda primals, tangents: (f(*primals), 7 * tangents[0]))
    assert jax.grad(f)(1.0) == 7
    with pytest.raises(TypeError, match=r"keyword-only arguments \['scale'\]"):
        f(1.0, scale=3.0)


def told(x, y):
    """x * y, whose backward rule asks what the forward one kept beside arrays."""
    return x * y


def told_forward(x, y):
    by_x, by_y = x.perturbed, y.perturbed
    return x.value * y.value, ({"by_x": by_x, "y": y.value if by_x else None},
                               {"by_y": by_y, "x": x.value if by_y else None})


def told_backward(residuals, g):
    by_x, by_y = residuals
    return (g * by_x["y"] if by_x["by_x"] else None), (g * by_y["x"] if by_y["by_y"] else None)


@pytest.mark.parametrize("through", [
    lambda f: f, jax.jit, lambda f: lambda x, y: jax.vmap(f, in_axes=(0, None))(jnp.stack([x, x]), y)[1],
    lambda f: jax.jit(lambda x, y: jax.vmap(jax.jit(f), out_axes=0)(jnp.stack([x, x]), jnp.stack([y, y]))[0]),
    lambda f: lambda x, y: jax.lax.scan(lambda c, _: (jax.vmap(f, (0, None))(c, y), 0), x[None], None,
                                        length=1)[0][0],
    jax.checkpoint], ids="itself jit vmap jit-vmap-jit scan-vmap checkpoint".split())
def test_the_backward_rule_gets_what_its_own_forward_rule_kept(through):
    """Also where residuals are numbers of Python under vmap, and where a call is differentiated twice, in two
    ways."""
    f = jax.custom_vjp(told)
    f.defvjp(told_forward, told_backward, symbolic_zeros=True)
    f, x, y = through(f), jnp.array(3.0), jnp.array(5.0)
    _, by_x = jax.vjp(lambda x: f(x, y), x)
    _, by_y = jax.vjp(lambda y: f(x, y), y)
    _, by_both = jax.vjp(f, x, y)
    assert (by_x(1.0), by_y(1.0), by_both(1.0)) == ((5.0,), (3.0,), (5.0, 3.0))


def test_the_linear_part_of_a_custom_vjp_is_mapped_and_then_transposed():
    @jax.custom_vjp
    def f(x, y):
        return jnp.sin(x) * y
    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, ct: (ct * jnp.cos(r[0]) * r[1], ct * jnp.sin(r[0])))

    def line(x, t):
        return jax.linearize(lambda a: f(a, 2 * a), x)[1](t)
    x = np.float32([1, 2, 3])
    slope = 2 * x * np.cos(x) + 2 * np.sin(x)
    for axes, at, t, want in ((0, 0), x, x, slope * x), ((0, None), x, x[0], slope @ x), (
        (None, 0), x[1], x, slope[1] * x):
        moved, = jax.linear_transpose(lambda t, at=at, axes=axes: jax.vmap(line, axes)(at, t), t)(x)
        np.testing.assert_allclose(moved, want, rtol=1e-5)
    for transform in jax.jit, jax.vmap:
        with pytest.raises(TypeError,
                           match="can't apply forward-mode autodiff .jvp. to a custom_vjp function .f"):
            transform(line)(x, x)


def test_a_rule_is_asked_for_what_comes_to_it_as_none():
    """As where a rule hands on what is to overwrite a value; not where nothing differentiable depends on its
    results."""
    f, g = (jax.custom_vjp(fun) for fun in (lambda x, s: (x * 1, s), lambda x, q: x + q))
    f.defvjp(lambda x, s: ((x * 1, s), s), lambda s, cts: (None, s + 1 + cts[0]))
    g.defvjp(lambda x, q: (x + q, None), lambda _, ct: (ct, None))
    between = lambda x, s: g(x, 2 * f(x, s)[0])
    loop = lambda x, s: lax.scan(lambda c, _: (g(c, f(c, s)[0]), None), x, None, length=2)[0]
    unused = lambda x, s: (f(x, s), lax.stop_gradient(f(x, s)[0]) + x)[1]
    for fun, want in (between, 4), (lambda x, s: g(x, f(x, s)[0]), 4), (loop, 8), (unused, 0):
        for wrapped in (lambda f: f), jax.jit:
            same(wrapped(jax.grad(fun, (0, 1)))(2.0, 3.0), (1.0, float(want)))


def _times(y, how):
    """x -> x * y with a custom rule, y closed over, or held by a partial, an object or a default that is."""
    class Held:
        def __init__(self):
            self.y = y
    held, given = Held(), functools.partial(lambda y, x: x * y, y)
    others = [[i] for i in range(7000)] if how == "among others" else []
    crowd = [*others, y, *others]
    times = {"closure": lambda x: x * y, "object": lambda x: x * held.y, "partial": lambda x: given(x),
             "default": lambda x, *, y=y: x * y, "among others": lambda x: x * crowd[len(others)]}[how]
    forward, backward = jax.custom_jvp(times), jax.custom_vjp(times)
    forward.defjvp(lambda p, t: (forward(*p), t[0] * y * 3))
    backward.defvjp(lambda x: (backward(x), None), lambda _, ct: (ct * y * 3,))
    return forward, backward


@pytest.mark.parametrize("how", ["closure", "object", "partial", "default", "among others"])
@pytest.mark.parametrize("kind", [0, 1], ids=["custom_jvp", "custom_vjp"])
def test_what_vmap_maps_may_be_closed_over(kind, how):
    ys, one = jnp.arange(3.), jnp.array([2., 5.])

    def value(y):
        return _times(y, how)[kind](2.)

    def slope(y):
        return jax.grad(_times(y, how)[kind])(2.)
    for f, want in ((value, 2 * ys), (slope, 3 * ys)):
        for g in (f, jax.jit(f), jax.checkpoint(f)):
            same(jax.vmap(g)(ys), want)
            same(jax.jit(jax.vmap(g))(ys), want)
            same(jax.vmap(lambda a, g=g: jax.vmap(lambda y: g(y) + a)(ys))(one), want + one[:, None])
            same(jax.vmap(lambda a, g=g: jax.vmap(lambda _: g(a))(ys))(one),
                 jnp.stack([f(one[0]), f(one[1])])[:, None] * jnp.ones(3))
    same(jax.lax.scan(lambda c, _: (c, jax.vmap(value if kind else slope)(ys)), 0., None, 2)[1],
         jnp.stack([2 * ys if kind else 3 * ys] * 2))


@pytest.mark.parametrize("how", ["closure", "object", "partial", "default"])
@pytest.mark.parametrize("kind", [0, 1], ids=["custom_jvp", "custom_vjp"])
def test_what_is_differentiated_may_not_be_closed_over(kind, how):
    for f in (jax.grad(lambda y: _times(y, how)[kind](2.)), lambda y: jax.linearize(
            lambda y: _times(y, how)[kind](2.), y)[0]):
        for wrapped in (f, jax.jit(f), jax.jit(lambda y, f=f: jax.jit(f)(y))):
            with pytest.raises(jax.errors.UnexpectedTracerError):
                wrapped(3.)


def test_mapped_keys_that_are_not_differentiated():
    f = jax.custom_jvp(lambda key, x: x * jax.random.uniform(key), nondiff_argnums=(0,))
    f.defjvp(lambda key, p, t: (f(key, *p), t[0] * jax.random.uniform(key)))
    keys = jax.random.split(jax.random.key(0), 3)
    want = jnp.stack([jax.random.uniform(key) for key in keys])
    same(jax.vmap(lambda key: jax.grad(f, 1)(key, 2.))(keys), want)
    same(jax.jit(jax.vmap(lambda key: f(key, 2.)))(keys), 2 * want)
    same(jax.vmap(lambda key, x: jax.grad(f, 1)(key, x))(keys, jnp.ones(3)), want)


@pytest.mark.quick
@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.grad], ids=["jit", "vmap", "grad"])
def test_custom_vjp_refuses_tracers_that_are_not_differentiated(transform):
    f = jax.custom_vjp(lambda c, x: x * c["by"], nondiff_argnums=(0,))
    f.defvjp(lambda c, x: (f(c, x), None), lambda c, _, ct: (ct * c["by"],))
    assert jax.eval_shape(lambda x: f({"by": 2.}, x), 1.).shape == ()
    with pytest.raises(jax.errors.UnexpectedTracerError,
                       match="indicated by nondiff_argnums as non-differentiable"):
        transform(lambda by: f({"by": by}, 1.))(jnp.ones(3 * (transform is jax.vmap) or ()))


def test_a_rule_that_closes_over_nothing_mapped_stays_unmapped():
    f = jax.custom_jvp(lambda x: jnp.sin(x))
    f.defjvp(lambda p, t: (f(*p), jnp.cos(p[0]) * t[0]))
    assert jax.vmap(lambda x, y: f(y), (0, None), None)(jnp.ones(3), 2.) == jnp.sin(2.)
    big = jnp.arange(1000.)
    g = jax.custom_jvp(lambda x: x * big)
    g.defjvp(lambda p, t: (g(*p), t[0] * big))
    same(jax.jit(jax.grad(lambda x: g(x).sum()))(1.), big.sum())


@jax.custom_jvp
def total(x):
    return lax.psum(x, "i")


total.defjvp(lambda p, t: (total(*p), lax.psum(t[0], "i")))


@jax.custom_vjp
def weighed(x):
    return lax.psum(x, "i"), x


weighed.defvjp(lambda x: (weighed(x), 3.), lambda r, g: (g[0] * r + g[1],))


@pytest.mark.parametrize("stage", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_what_a_collective_made_equal_is_one_value(stage):
    x = jnp.arange(3.)
    summed = stage(jax.vmap(total, axis_name="i", out_axes=None))
    both = stage(jax.vmap(weighed, axis_name="i", out_axes=(None, 0)))
    same(summed(x), 3.)
    same(jax.jvp(summed, (x,), (x + 1,)), (3., 6.))
    same(both(x), (3., X))
    same(jax.grad(lambda x: 2 * both(x)[0] + both(x)[1][1])(x), [6., 7., 6.])
    inside = jax.vmap(jax.value_and_grad(lambda x: weighed(x)[0]), axis_name="i", out_axes=(None, 0))
    same(stage(inside)(x), (3., np.full(3, 3.)))
    nested = jax.vmap(jax.vmap(total, axis_name="i", out_axes=None))
    same(stage(nested)(jnp.ones((2, 3))), [3., 3.])


def test_a_rule_that_is_not_equal_where_its_function_is():
    same_for_all = jax.custom_jvp(lambda x: jnp.zeros_like(x))
    same_for_all.defjvp(lambda p, t: (same_for_all(*p), t[0]))
    mapped = jax.jit(jax.vmap(same_for_all, axis_name="i"))
    with pytest.raises(ValueError, match="the same for all elements of the axis 'i'"):
        jax.jvp(mapped, (jnp.ones(3),), (jnp.ones(3),))
    mapped = jax.jit(jax.vmap(same_for_all))
    same(jax.jvp(mapped, (jnp.ones(3),), (jnp.ones(3),)), (np.zeros(3), np.ones(3)))


def test_rules_that_are_no_functions_or_too_few():
    with pytest.raises(TypeError, match="expected two functions, got 3"):
        jax.custom_vjp(lambda x: x).defvjp(lambda x: (x, None), 3)
    f = jax.custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda t, out, x, y: t * y)
    with pytest.raises(ValueError, match="1 rules"):
        jax.grad(f)(1., 3.)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2, 0))
def applied(scale, x, how):
    return how(scale * x)


applied.defjvp(lambda scale, how, primals, tangents: (applied(scale, *primals, how), scale * tangents[0]))


@pytest.mark.parametrize("transformed, expected", [
    (lambda f: jax.grad(f, 0), 0), (lambda f: jax.grad(f, 1), 2), (lambda f: jax.jit(jax.grad(f, 0)), 0),
    (lambda f: jax.grad(jax.jit(f), (0, 1)), (0, 2)), (lambda f: jax.jacfwd(f, (0, 1)), (0, 2)),
    (lambda f: lambda *xs: jax.jvp(f, xs, (1., 1.)), (6, 2)),
    (lambda f: lambda *xs: jax.linearize(f, *xs)[1](1., 1.), 2),
    (lambda f: lambda *xs: jax.vmap(f)(*[jnp.array([x]) for x in xs])[0], 6)])
def test_a_traced_argument_that_is_not_differentiated_has_no_derivative(transformed, expected):
    got = transformed(lambda scale, x: applied(scale, x, jnp.abs))(2., 3.)
    assert jax.tree.map(float, got) == expected


@jax.custom_vjp
def doubled(x):
    return x * 2


def forward_of_doubled(x):
    return doubled(x), None


def backward_of_doubled(_, g):
    return (g * 2,)


doubled.defvjp(forward_of_doubled, backward_of_doubled)


@pytest.mark.quick
@pytest.mark.parametrize("f, words", [
    (doubled, ["custom_vjp_call[\n      name=doubled\n      bwd=backward_of_doubled\n      call_jaxpr={",
              "fwd=forward_of_doubled\n      symbolic_zeros=False"]),
    (jax.vmap(doubled), ["bwd=backward_of_doubled", "fwd=forward_of_doubled"]),
    (jax.vmap(jax.nn.relu), ["custom_jvp_call[\n      name=relu", "jvp=_relu_jvp"]),
    (lambda x: jax.pure_callback(np.sin, x, x), ["pure_callback[\n      callback=sin\n", "sharding=None"]),
    (lambda x: jax.experimental.io_callback(np.sin, x, x), ["io_callback[\n", "ordered=False\n"]),
    (lambda x: jax.debug.callback(print, x),
     ["debug_callback[callback=print effect=debug partitioned=False]"]),
    (lambda x: jax.debug.print("x = {}", x), ["callback=debug.print('x = {}')"]),
])
def test_texts_of_programs_name_the_functions_of_the_user(f, words):
    text = str(jax.make_jaxpr(f)(np.ones(3, np.float32)))
    assert all(word in text for word in words), text


# what a function with a custom_jvp rule may hold: its rule differentiates that itself, by jvp
HELD = {
    "scan": lambda x: lax.scan(lambda c, y: (jnp.tanh(c) * y, c), x, jnp.stack([x, x]))[0],
    "fori_loop": lambda x: lax.fori_loop(0, 2, lambda i, c: jnp.sin(c) * x, x),
    "map": lambda x: lax.map(lambda y: jnp.sin(y) * y, x),
    "cond": lambda x: lax.cond(x[0] > 0, lambda x: jnp.sin(x) * x, jnp.cos, x),
    "checkpoint": jax.checkpoint(lambda x: jnp.sin(x) * x),
    "jit": jax.jit(lambda x: jnp.sin(x) * x),
    "vmap of a scan": jax.vmap(lambda y: lax.scan(lambda c, _: (jnp.sin(c) * y, None), y, None, length=2)[0]),
    "another": lambda x: by_jvp(HELD["scan"])(x) * x,
    "associative_scan": lambda x: lax.associative_scan(jnp.multiply, x),
}


def by_jvp(f):
    """`f`, whose rule is its derivative."""
    own = jax.custom_jvp(lambda x: f(x))
    own.defjvp(lambda primals, tangents: jax.jvp(f, primals, tangents))
    return own


@pytest.mark.parametrize("held", HELD)
def test_a_rule_may_call_jvp_of_what_holds_programs(held):
    """Primals and tangents are operands of one loop there: what depends on primals alone is not linear."""
    x = jnp.arange(1.0, 4.0)

    def derivatives(f):
        grad = jax.grad(lambda x: f(x).sum())
        return grad(x), jax.jit(grad)(x), jax.jvp(grad, (x,), (x,))[1], jax.linearize(f, x)[1](x)
    for found, expected in zip(derivatives(by_jvp(HELD[held])), derivatives(HELD[held]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_rule_that_calls_jvp_of_a_while_loop_has_forward_mode():
    def f(x):
        return lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, jnp.tanh(c[1])), (0, x))[1]
    x = jnp.arange(1.0, 4.0)
    np.testing.assert_allclose(jax.linearize(by_jvp(f), x)[1](x), jax.jvp(f, (x,), (x,))[1], rtol=1e-6)
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work for lax.while_loop"):
        jax.grad(lambda x: by_jvp(f)(x).sum())(x)


@jax.custom_vjp
def backward_only(x):
    return x, 2 * x


backward_only.defvjp(lambda x: (backward_only(x), None), lambda _, cts: (3 * cts[0] + 5 * cts[1],))
# how a function that only has a backward rule is used -> (function of x, its derivative if there is one)
USES = {
    "beside": (lambda x: (backward_only(x), x)[1], 1.0),
    "in a loop": (lambda x: lax.scan(lambda c, _: (c * c, (backward_only(c), c)[1]), x, None, length=2)[0],
                  32.0),
    "in a branch": (lambda x: lax.cond(x > 0, lambda x: (backward_only(x), x)[1], jnp.negative, x), 1.0),
    "of what has no derivative": (lambda x: backward_only(lax.stop_gradient(x))[1] * x, 4.0),
    "used": (lambda x: backward_only(x)[1] * x, None),
    "used in a loop": (lambda x: lax.scan(lambda c, _: backward_only(c), x, None, length=2)[0], None),
}


@pytest.mark.parametrize("use", USES)
def test_forward_mode_of_a_backward_rule_is_an_error_where_its_tangents_are_used(use):
    f, slope = USES[use]
    forward = jax.jit(lambda x: jax.jvp(f, (x,), (1.0,))[1])
    if slope is not None:
        assert forward(2.0) == slope == jax.jvp(jax.jit(f), (2.0,), (1.0,))[1]
    else:
        with pytest.raises(TypeError, match="forward-mode autodiff .*custom_vjp function .backward_only"):
            forward(2.0)


@pytest.mark.parametrize("x, out, tangent", [
    (jnp.float16(1), None, 1.0), (jnp.float32(1), None, 1), (jnp.float32(1), None, 1j),
    (jnp.float32(1), None, True), (jnp.complex64(1), None, 1.0), (jnp.float32(1), 3, 1.0),
    (jnp.float32(1), None, jnp.ones(1)), (jnp.float32(1), jnp.float16(1), jnp.float32(1))])
def test_the_tangent_that_a_rule_gives_has_the_dtype_of_what_it_is_of(x, out, tangent):
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (primals[0] if out is None else out, tangent))
    with pytest.raises(TypeError, match="primal and tangent outputs with corresponding shapes and dtypes"):
        jax.jvp(f, (x,), (x,))
