"""Activation functions, softmax and its kin, standardize, one_hot."""
import functools

import numpy as np
import pytest
import scipy.special
from reference import evaluated

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import nn

RNG = np.random.default_rng(0)
X = np.array([-30.0, -3.5, -1.5, -0.5, 0.3, 0.9, 2.0, 4.0, 40.0], np.float32)


def sigmoid(x):
    return scipy.special.expit(x)


def softplus(x):
    return np.logaddexp(x, 0)


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


FUNCTIONS = {
    "relu": lambda x: np.maximum(x, 0), "relu6": lambda x: np.clip(x, 0, 6), "sigmoid": sigmoid, "softplus": softplus,
    "soft_sign": lambda x: x / (1 + abs(x)), "log_sigmoid": lambda x: -softplus(-x), "silu": lambda x: x * sigmoid(x),
    "swish": lambda x: x * sigmoid(x), "mish": lambda x: x * np.tanh(softplus(x)), "tanh": np.tanh,
    "gelu": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))), "elu": elu, "celu": elu,
    "selu": lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772), "identity": lambda x: x,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x), "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6, "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6, "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip(x + 1, 0, 2) / 2,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_activation_function(name):
    function, reference = getattr(nn, name), FUNCTIONS[name]
    np.testing.assert_allclose(function(X), reference(X.astype(np.float64)), rtol=3e-6, atol=2e-6)
    slope = evaluated(hlotrace.vmap(hlotrace.grad(function)))(X)
    x, h = X.astype(np.float64), 1e-6
    np.testing.assert_allclose(slope, (reference(x + h) - reference(x - h)) / (2 * h), rtol=1e-4, atol=1e-5)


def test_arguments_of_activation_functions():
    x = X.astype(np.float64)
    np.testing.assert_allclose(nn.gelu(X, approximate=False), x * scipy.special.ndtr(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(nn.celu(X, 2.0), np.where(x > 0, x, 2 * np.expm1(np.minimum(x, 0) / 2)), rtol=1e-5)
    np.testing.assert_allclose(nn.elu(X, 2.0), elu(x, 2), rtol=1e-6)
    np.testing.assert_allclose(nn.leaky_relu(X, 0.2), np.where(x > 0, x, 0.2 * x), rtol=1e-6)
    np.testing.assert_allclose(nn.squareplus(X, 1.0), (x + np.sqrt(x * x + 1)) / 2, rtol=1e-5, atol=1e-6)
    pair = RNG.normal(size=(2, 4, 3)).astype(np.float32)
    np.testing.assert_allclose(nn.glu(pair, 0), pair[:1] * sigmoid(pair[1:]), rtol=1e-5)
    with pytest.raises(AssertionError, match="divisible by 2"):
        nn.glu(pair)
    p = np.array([1e-6, 0.1, 0.6, 0.8, 5, 60], np.float32)
    np.testing.assert_allclose(nn.log1mexp(p), np.log(-np.expm1(-p.astype(np.float64))), rtol=1e-5, atol=1e-20)
    assert np.isfinite(hlotrace.vmap(hlotrace.grad(nn.log1mexp))(p)).all()
    seconds = [hlotrace.grad(hlotrace.grad(nn.log1mexp))(x) for x in (-0.0, 0.0, 0.5, 2.0, np.inf)]
    np.testing.assert_allclose(seconds, [-np.inf, -np.inf, *(-0.25 / np.sinh([0.25, 1])**2), 0], rtol=1e-5)


def test_activation_functions_at_the_edges():
    kinks = {"relu": (0.0, 0), "relu6": (6.0, 0), "hard_tanh": (1.0, 1), "leaky_relu": (0.0, 1), "elu": (0.0, 1)}
    for name, (x, slope) in kinks.items():
        assert hlotrace.grad(getattr(nn, name))(x) == slope, name
    for name in ("relu", "elu", "selu", "softplus", "sigmoid", "log_sigmoid", "hard_silu"):
        assert np.isnan(getattr(nn, name)(np.nan)), name
    for name in ("elu", "selu", "celu", "softplus"):
        assert hlotrace.grad(getattr(nn, name))(1000.0) > 0.9, name
    assert nn.relu(np.int8([-1, 2])).dtype == np.int8
    assert nn.gelu(1).dtype == np.float32
    assert all(f(np.arange(2)).dtype == np.float32 for f in (nn.sigmoid, nn.silu, nn.swish, nn.glu))
    assert nn.silu(jnp.ones(2, jnp.bfloat16)).dtype == jnp.bfloat16
    with pytest.raises(TypeError, match="list"):
        nn.relu([1.0])


def test_the_derivatives_of_relu_are_zero_where_it_is_not_positive_and_at_nan():
    x = np.array([-1.0, 0.0, 1.0, 7.0, np.nan], np.float32)
    for f, want in ((nn.relu, [0, 0, 1, 1, 0]), (nn.relu6, [0, 0, 1, 0, 0])):
        np.testing.assert_array_equal(hlotrace.vmap(hlotrace.grad(f))(x), want)


# --- along axes -------------------------------------------------------------------------------------------------

A = RNG.normal(size=(3, 4, 5)).astype(np.float32) * 10
MASK = RNG.random((3, 4, 5)) < 0.6


@pytest.mark.parametrize("axis", [None, 1, -1, (0, 2), [0, 2]], ids=repr)
def test_softmax_and_logsumexp(axis):
    listed, axis = axis, tuple(axis) if isinstance(axis, list) else axis
    np.testing.assert_allclose(nn.softmax(A, listed), nn.softmax(A, axis), rtol=1e-6)
    np.testing.assert_allclose(hlotrace.jit(lambda a: nn.logsumexp(a, listed))(A), nn.logsumexp(A, listed), rtol=1e-6)
    np.testing.assert_allclose(nn.softmax(A, axis), scipy.special.softmax(A, axis), rtol=2e-5, atol=1e-7)
    np.testing.assert_allclose(nn.log_softmax(A, axis), scipy.special.log_softmax(A, axis), rtol=2e-5, atol=1e-5)
    np.testing.assert_allclose(nn.logsumexp(A, axis), scipy.special.logsumexp(A, axis), rtol=1e-6)
    weights = MASK - 0.3
    got = nn.logsumexp(A, axis, weights, keepdims=True, return_sign=True)
    want = scipy.special.logsumexp(A, axis, weights, keepdims=True, return_sign=True)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=1e-4)
    np.testing.assert_allclose(nn.logmeanexp(A, axis, keepdims=True),
                               np.log(np.mean(np.exp(A.astype(np.float64)), axis, keepdims=True)), rtol=1e-5)


def test_masked_softmax():
    low = np.where(MASK, A, -np.inf)
    with np.errstate(invalid="ignore"):
        want = np.nan_to_num(np.exp(low - scipy.special.logsumexp(low, 1, keepdims=True)))
    np.testing.assert_allclose(nn.softmax(A, 1, where=MASK), want, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(np.exp(nn.log_softmax(A, 1, where=MASK)), want, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(nn.logsumexp(A, 1, where=MASK), scipy.special.logsumexp(low, 1), rtol=1e-6)
    mean = np.log(np.sum(np.exp(low.astype(np.float64)), 2) / MASK.sum(2))
    np.testing.assert_allclose(nn.logmeanexp(A, 2, where=MASK), mean, rtol=1e-5)
    spoiled = np.where(MASK, A, 1e30).astype(np.float32)      # what is masked must not reach the gradient
    for function in (nn.softmax, nn.log_softmax):
        slope = hlotrace.grad(lambda x: jnp.sum(jnp.where(MASK, function(x, 1, where=MASK), 0) * A))  # noqa: B023
        got = evaluated(slope)(spoiled)
        assert np.isfinite(got).all() and not got[~MASK].any()


def check_gradient(f, x):
    """Reverse mode against a difference quotient in a random direction, both of a random projection."""
    ct = RNG.normal(size=hlotrace.eval_shape(f, x).shape).astype(np.float32)
    d = RNG.normal(size=x.shape).astype(np.float32)

    def project(x):
        return jnp.sum(f(x) * ct)
    h = 1e-2
    after, before = (float(evaluated(project)(x + by * d)) for by in (h, -h))
    slope = evaluated(hlotrace.grad(project))(x)
    np.testing.assert_allclose(np.vdot(slope, d), (after - before) / (2 * h), rtol=2e-2, atol=1e-3)


@pytest.mark.parametrize("function", [
    nn.softmax, nn.log_softmax, functools.partial(nn.logsumexp, axis=1), nn.standardize,
    functools.partial(nn.standardize, algorithm="stable"), functools.partial(nn.logsumexp, b=2 * MASK[0] + 1.0)])
def test_gradients_along_axes(function):
    check_gradient(function, A[0] / 10)


def test_logsumexp_of_infinities():
    inf = np.inf
    cases = [[-inf, -inf], [inf, 1.0], [-inf, 1.0], [1e30, 1e30], []]
    assert [float(nn.logsumexp(np.array(c, np.float32))) for c in cases] == [-inf, inf, 1, np.float32(1e30), -inf]
    np.testing.assert_array_equal(hlotrace.grad(nn.logsumexp)(np.array([-inf, 1.0], np.float32)), [0, 1])
    assert np.isnan(nn.logsumexp(np.array([1.0, 2.0]), b=np.array([1.0, -5.0])))
    z = np.array([1 + 2j, 2], np.complex64)
    np.testing.assert_allclose(nn.logsumexp(z), np.log(np.exp(z).sum()), rtol=1e-5)
    np.testing.assert_array_equal(nn.softmax(np.array([-inf, 0, 0], np.float32)), [0, 0.5, 0.5])
    assert nn.softmax(np.zeros((0, 3), np.float32)).shape == (0, 3)
    with pytest.raises(ValueError, match="axis -1 is out of bounds"):
        nn.softmax(1.0)


def test_softmax_keeps_only_its_result_for_the_backward_pass():
    linear = hlotrace.linearize(nn.softmax, A)[1]
    text = str(hlotrace.make_jaxpr(linear)(A))
    assert "exp" not in text and "div" not in text


def test_standardize_and_one_hot():
    want = (A - A.mean(1, keepdims=True)) / np.sqrt(A.var(1, keepdims=True) + 1e-5)
    for algorithm in ("fast", "stable"):
        np.testing.assert_allclose(nn.standardize(A, 1, algorithm=algorithm), want, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(nn.standardize(A, mean=1.0, variance=4.0, epsilon=0), (A - 1) / 2, rtol=1e-6)
    with pytest.raises(ValueError, match="Unknown algorithm 'x'"):
        nn.standardize(A, algorithm="x")
    eye = np.eye(3, dtype=np.float32)
    np.testing.assert_array_equal(nn.one_hot(np.array([0, 2, 5, -1]), 3), [eye[0], eye[2], 0 * eye[0], 0 * eye[0]])
    assert nn.one_hot(np.zeros((2, 3), int), 4, axis=1).shape == (2, 4, 3)
    assert nn.one_hot(1, 3, dtype=np.int8).dtype == np.int8
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        nn.one_hot(np.array([1]), 3, axis=2)


@pytest.mark.parametrize("x", [1., np.array([1., 0.]), np.array([1j])])
def test_indices_that_are_no_integers_are_deprecated(x):
    with pytest.warns(DeprecationWarning, match="one_hot of .* is deprecated"):
        assert nn.one_hot(x, 3).shape == (*np.shape(x), 3)
    with pytest.raises(ValueError, match="num_classes must not be negative"):
        nn.one_hot(1, -1)
