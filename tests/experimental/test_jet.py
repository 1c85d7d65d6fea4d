"""experimental.jet: derivatives of high order along curves, held against NumPy's values on a circle around
the point."""
import math

import numpy as np
import pytest
from scipy import special

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.config import override
from hlotrace.experimental import jet as jets
from hlotrace.experimental.jet import jet
from hlotrace.extend import linear_util
from hlotrace.extend.core import Primitive

X, CURVE = 0.6, (1.3, 0.7, -0.4, 0.25)
ORDER = len(CURVE)


def derivatives(f, x=X, curve=CURVE):
    """Of `f(x + sum of curve[k-1] t**k / k!)` at t = 0, by Cauchy's formula on a circle."""
    t = 0.2 * np.exp(2j * np.pi * np.arange(64) / 64)
    values = f(x + sum(c * t**k / math.factorial(k) for k, c in enumerate(curve, 1)))
    coefficients = np.fft.fft(values) / 64
    return [(coefficients[k] / 0.2**k * math.factorial(k)).real for k in range(1, len(curve) + 1)]


@jax.custom_vjp
def square(x):
    return x * x


square.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))


@jax.custom_jvp
def cube(x):
    return x * x * x


cube.defjvp(lambda primals, tangents: (cube(primals[0]), 3 * square(primals[0]) * tangents[0]))


def looped(x, n):
    for _ in range(n):
        x = x * x + 0.5
    return x


def pooled(x):
    return lax.reduce_window(jnp.stack([x**3 + 1, x * x, x]), -np.inf, lax.max, (2,), (1,), "VALID").sum()


MATRIX = np.array([[1.0, 2.0], [3.0, 4.0]])
# what -> (the function, the same with NumPy on complex numbers)
FUNCTIONS = {
    **{name: (getattr(jnp, name), getattr(np, name)) for name in (
        "sin", "cos", "exp", "log", "tanh", "tan", "sinh", "cosh", "sqrt", "expm1", "log1p", "exp2", "arctan",
        "square")},
    "logistic": (jax.nn.sigmoid, lambda x: 1 / (1 + np.exp(-x))), "erf": (lax.erf, special.erf),
    "rsqrt": (lax.rsqrt, lambda x: x**-0.5), "cbrt": (lax.cbrt, lambda x: x**(1 / 3)),
    "power": (lambda x: x**2.5, lambda x: x**2.5), "integer power": (lambda x: x**-3, lambda x: x**-3),
    "power of itself": (lambda x: x**x, lambda x: x**x),
    "asin": (lambda x: jnp.arcsin(x / 2), lambda x: np.arcsin(x / 2)),
    "quotient": (lambda x: jnp.sin(x) / (1 + x * x), lambda x: np.sin(x) / (1 + x * x)),
    "of a constant": (lambda x: 2 / x - 3 * x, lambda x: 2 / x - 3 * x),
    "softplus": (jax.nn.softplus, lambda x: np.log1p(np.exp(x))),
    "relu, abs": (lambda x: jax.nn.relu(x) * jnp.abs(-x), lambda x: x * x),
    "choices": (lambda x: jnp.where(x > 0, x * x, x) + jnp.maximum(x, x * x), lambda x: x * x + x),
    "sorted": (lambda x: jnp.sort(jnp.stack([x + 1, x * x, x]))[1] + jnp.stack([x, 2 * x]).max(),
               lambda x: 3 * x),
    "product of all": (lambda x: jnp.prod(jnp.stack([x, x * x, x + 1])), lambda x: x**3 * (x + 1)),
    "logsumexp": (lambda x: jax.nn.logsumexp(jnp.stack([x, x * x])),
                  lambda x: np.log(np.exp(x) + np.exp(x * x))),
    "matrices": (lambda x: (MATRIX * x) @ jnp.stack([x, x * x]) @ jnp.ones(2),
                 lambda x: 4 * x * x + 6 * x**3),
    "complex numbers": (lambda x: jnp.real(jnp.exp(1j * x) * x), lambda x: np.cos(x) * x),
    "a custom vjp": (square, np.square), "a custom jvp": (cube, lambda x: x**3),
    "jit": (jax.jit(lambda x: x * jnp.sin(x)), lambda x: x * np.sin(x)),
    "checkpoint": (jax.checkpoint(lambda x: x * jnp.sin(x)), lambda x: x * np.sin(x)),
    "cond": (lambda x: lax.cond(x > 0, lambda x: x**3, lambda x: x, x), lambda x: x**3),
    "cond of some": (lambda x: lax.cond(x > 0, lambda x: 2.0, lambda x: x, x) * x, lambda x: 2 * x),
    "fori_loop": (lambda x: lax.fori_loop(0, 3, lambda i, x: x * x + 0.5, x), lambda x: looped(x, 3)),
    "while_loop": (lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * c[1] + 0.5),
                                            (0, x))[1],
                   lambda x: looped(x, 2)),
    "scan": (lambda x: lax.scan(lambda c, y: (c * y, c * c * x), x, jnp.arange(1.0, 4))[1].sum(),
             lambda x: x**3 * (1 + 1 + 4)),
    "scan over a curve": (lambda x: lax.scan(lambda c, y: (c * y, None), 1.0, jnp.arange(1.0, 3) + x)[0],
                          lambda x: (1 + x) * (2 + x)),
    "a derivative": (jax.grad(lambda x: jnp.sin(x) * x), lambda x: np.cos(x) * x + np.sin(x)),
    "pooling": (pooled, lambda x: x**3 + 1 + x), "its derivative": (jax.grad(pooled), lambda x: 3 * x * x + 1),
    "what does not depend on it": (lambda x: 3.0, lambda x: 3 + 0 * x),
}


def test_every_function_has_the_derivatives_of_its_taylor_series():
    with override("jax_enable_x64", True):
        every = jax.jit(lambda x, curve: {name: jet(f, (x,), (curve,)) for name, (f, _) in FUNCTIONS.items()})
        found = every(X, list(CURVE))
    for name, (_, reference) in FUNCTIONS.items():
        out, terms = found[name]
        want = derivatives(reference)
        np.testing.assert_allclose(out, reference(X), rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(terms, want, rtol=1e-7, atol=1e-7 * max(map(abs, want)), err_msg=name)


def test_values_are_those_that_jax_gives():
    out, terms = jet(jnp.sin, (0.5,), ([1.0, 2.0, 3.0],))
    np.testing.assert_allclose([out, *terms], [0.47942555, 0.87758255, 1.2757396, -1.1213882], rtol=1e-6)
    out, terms = jet(jnp.sin, (0.5,), ([1.0, 2.0, 3.0],), factorial_scaled=False)
    np.testing.assert_allclose(terms, [0.87758255, 1.5154524, 1.5276327], rtol=1e-6)
    assert terms[0].dtype == np.float32


def test_derivatives_are_of_a_weak_type_where_primals_and_series_are():
    strong = jnp.float32(1), jnp.float32(0)
    cases = [((1., 0.), 1., True), (strong, 1., False), ((1., 0.), jnp.float32(1), False)]
    for series, x, weak in cases:
        for fun in (jnp.sin, lambda x: x ** 3, lambda x: x, lambda x: 2. * x):
            assert [d.weak_type for d in jet(fun, (x,), (series,))[1]] == [weak, weak]


def test_several_arguments_containers_and_orders():
    out, terms = jet(jnp.multiply, (2.0, 3.0), ((1.0, 0.5), (2.0, 0.0)))
    assert (out, [float(t) for t in terms]) == (6, [7, 5.5])
    point, lists = {"a": jnp.ones(2), "n": 3}, {"a": [jnp.ones(2), 0.0], "n": [0, 0]}
    out, terms = jet(lambda d: (d["a"]**d["n"], d["n"]), (point,), (lists,))
    np.testing.assert_array_equal(terms[0], [[3, 3], [6, 6]])
    assert out[1] == 3 and terms[1][0].dtype == jnp.float32
    assert jet(jnp.sin, (0.0,), ([],)) == (0, [])
    assert jet(lambda x: x.sum(), (jnp.zeros((0, 2)),), ([jnp.zeros((0, 2))],))[1] == [0]
    half = jet(jnp.tanh, (jnp.bfloat16(0.5),), ([1.0, 0.0],))
    assert [t.dtype for t in half[1]] == [jnp.bfloat16] * 2
    # nothing is divided by x
    np.testing.assert_allclose(jet(lambda x: x**2, (0.0,), ([1.0, 0.0, 0.0],))[1], [0, 2, 0])


def test_under_and_around_other_transformations():
    third = lambda x: jet(jnp.sin, (x,), ([1.0, 0.0, 0.0],))[1][2]
    xs = jnp.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(jax.jit(jax.vmap(third))(xs), -np.cos(xs), rtol=1e-5)
    np.testing.assert_allclose(jax.grad(third)(0.3), np.sin(0.3), rtol=1e-5)
    np.testing.assert_allclose(jax.jvp(third, (0.3,), (2.0,))[1], 2 * np.sin(0.3), rtol=1e-5)
    nested = jet(lambda x: jet(jnp.exp, (x,), ([1.0, 0.0],))[1][1], (0.3,), ([1.0, 0.0],))
    np.testing.assert_allclose(nested[1], np.exp([0.3, 0.3]), rtol=1e-5)
    mapped = jet(jax.vmap(jnp.sin), (xs,), ([jnp.ones(3), jnp.zeros(3)],))
    np.testing.assert_allclose(mapped[1], [np.cos(xs), -np.sin(xs)], rtol=1e-5)
    swept = lax.scan(lambda c, x: (c, jet(jnp.cos, (x,), ([1.0, 0.0],))[1][1]), 0, xs)[1]
    np.testing.assert_allclose(swept, -np.cos(xs), rtol=1e-5)


def test_python_sees_the_value_when_it_is_known():
    assert jet(lambda x: x * x if x > 1 else -x, (2.0,), ([1.0],))[1] == [4]


def test_the_cost_grows_with_the_square_of_the_order():
    def equations(order):
        series = [1.0] * order
        return len(jax.make_jaxpr(lambda x: jet(lambda x: jnp.tanh(jnp.log(x)), (x,), (series,)))(0.5).eqns)
    assert equations(12) < 4.5 * equations(6)


@pytest.mark.quick
@pytest.mark.parametrize("primals, series, error, words", [
    ((1.0,), ([1.0], [1.0]), ValueError, "there are 1 primals, and series for 2"),
    ((1.0, 1.0), ([1.0], [1.0, 2.0]), ValueError, "the series must be of one length, got 1, 2"),
    ((jnp.ones,), ([1.0],), TypeError, "not a valid JAX type"),
    ((3,), ([1.0],), TypeError, r"primals\[0\] is int32\[\], which has no derivatives"),
    ((np.ones(3, "f"),), ([np.ones(2, "f")],), ValueError,
     r"derivative 1 of primals\[0\] has shape \(2,\), .* \(3,\)"),
    (1.0, ([1.0],), TypeError, r"primals must be a tuple or a list, got 1.0: write \(primals,\)"),
    ((1.0,), (1.0,), TypeError, r"series of primals\[0\] must be a tuple or a list of derivatives, got 1.0")])
def test_what_does_not_fit_is_refused(primals, series, error, words):
    with pytest.raises(error, match=words):
        jet(jnp.sin, primals, series)


def test_an_operation_without_a_derivative_says_so():
    with pytest.raises(ValueError, match="do not support JVP"):
        jet(lambda x: jax.pure_callback(np.sin, x, x), (jnp.float32(1),), ([1.0],))


def primitive(name, fun, **params):
    p = Primitive(name, **params)
    p.def_impl(fun)
    p.def_abstract_eval(lambda *xs, **_: xs[0] if not p.multiple_results else [xs[0], xs[0]])
    return p


def test_rules_that_users_give():
    curve, seen, p = ([1.0, 0.5, 0.25],), [], primitive("given", lambda x, y, k: x + y)

    def rule(primals, series, **params):
        seen.append((primals, series, params))
        return primals[0] + primals[1], [jets.zero_term, series[0][1], jets.zero_term]
    assert p not in jets.jet_rules and lax.sin_p in jets.jet_rules
    jets.jet_rules[p] = rule
    assert jets.jet_rules[p] is rule and p in list(jets.jet_rules) and "rules" in repr(jets.jet_rules)
    out, terms = jet(lambda x: p.bind(x, 2.0, k=3), (0.5,), curve)
    assert out == 2.5 and np.allclose(terms, [0, 0.5, 0])
    (primals, series, params), = seen
    assert params == {"k": 3} and np.allclose(series, [[1, 0.25, 0.25 / 6], [0, 0, 0]])
    many = primitive("given twice", lambda x: [x, x], multiple_results=True)
    jets.jet_rules[many] = lambda ps, ss: ([ps[0], ps[0]], [ss[0], jets.zero_series])
    inside = jax.jit(lambda x: many.bind(x))
    np.testing.assert_allclose(jet(many.bind, (0.5,), curve)[1], [curve[0], [0] * 3])
    assert [len(s) for s in jax.eval_shape(lambda x: jet(inside, (x,), curve)[1], 0.5)] == [3, 3]
    jets.jet_rules[p] = lambda ps, ss, k: (ps[0], ss[0][:1])
    with pytest.raises(ValueError, match="the rule of given gives .* a list of 3"):
        jet(lambda x: p.bind(x, x, k=3), (0.5,), curve)
    del jets.jet_rules[p]
    with pytest.raises(KeyError):
        jets.jet_rules[p]
    with pytest.raises(TypeError, match="must be a Primitive"):
        jets.jet_rules["sin"] = rule
    assert not jax.tree.leaves([jets.zero_term, jets.zero_series]) and type(jets.zero_term) is jets.ZeroTerm
    assert jax.tree.map(abs, jets.zero_series) is jets.zero_series and type(
        jets.zero_series) is jets.ZeroSeries


def test_rules_made_of_derivatives_and_of_other_functions():
    x, curve = 0.6, [1.3, 0.7, -0.4, 0.25]
    slope, comp, twice, stairs = (primitive(n, f) for n, f in [
        ("slope", lambda x, **_: jnp.cbrt(x)), ("comp", lambda x: jnp.sin(x)**2), ("twice", lambda x: 2 * x),
        ("stairs", jnp.floor)])
    jets.def_deriv(slope, lambda x: jnp.cbrt(x) / (3 * x))
    jets.def_comp(comp, lambda x, power: jnp.sin(x)**power, power=2)
    jets.deflinear(twice)
    jets.defzero(stairs)
    for p, f in [(lambda x: slope.bind(x, accuracy=None), jnp.cbrt), (comp.bind, lambda x: jnp.sin(x)**2),
                 (twice.bind, lambda x: 2 * x), (stairs.bind, jnp.floor)]:
        (out, found), (value, wanted) = (jets.jet2(g, (x,), (curve,)) for g in (p, f))
        np.testing.assert_allclose([out, *found], [value, *wanted], rtol=2e-5, atol=1e-6)
    for p, prop in [(lax.neg_p, jets.linear_prop), (lax.floor_p, jets.zero_prop)]:
        out, found = prop(p, (x,), (curve,))
        assert out == p.bind(x) and (found is jets.zero_series or np.allclose(found, -np.array(curve)))
    assert jets.linear_prop(lax.neg_p, (x,), (jets.zero_series,))[1] is jets.zero_series
    np.testing.assert_allclose(jets.deriv_prop(lax.sin_p, jnp.cos, (x,), (curve,))[1],
                               jets.jet_rules[lax.sin_p]((x,), (curve,), accuracy=None)[1], rtol=1e-5)
    assert abs(jets.fact(5) - 120) < 1e-3 and jets.lax is lax and jets.pjit.pjit is not None
    leaves, in_tree = jax.tree.flatten(([x], [curve]))
    fun = jets.jet_subtrace(linear_util.wrap_init(lambda x: [jnp.sin(x), 1.0]))
    flat, out_tree = jets.traceable(jets.jet_fun(fun, 4), in_tree)
    outs, terms = (lambda found: out_tree().unflatten(found))(flat.call_wrapped(*leaves))
    np.testing.assert_allclose(terms, [jets.jet2(jnp.sin, (x,), (curve,))[1], [0] * 4], rtol=1e-5)
    assert outs[1] == 1 and issubclass(jets.JetTracer, jax.core.Tracer) and isinstance(jets.JetTrace, type)
