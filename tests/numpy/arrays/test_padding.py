"""pad, in all its modes: values as NumPy's, derivatives, errors."""
import numpy as np
import pytest
from equal import same_as_numpy

import hlotrace
import hlotrace.numpy as jnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)
V = np.array([3, 1, 2, 5, 4], np.float32)
I3 = np.arange(3, dtype=np.int32)


SAME = [
    lambda xp: xp.pad(X, ((1, 2), (0, 1))), lambda xp: xp.pad(X, 1, constant_values=((1, 2), (3, 4))),
    lambda xp: xp.pad(X, ((1, 2), (0, 1)), "edge"), lambda xp: xp.pad(X, 2, "linear_ramp", end_values=((1, 2), (3, 4))),
    lambda xp: xp.pad(I3, 2, "linear_ramp", end_values=8), lambda xp: xp.pad(X, 1, "maximum"),
    lambda xp: xp.pad(V, 2, "minimum", stat_length=2), lambda xp: xp.pad(V, (1, 2), "mean", stat_length=((2, 3),)),
    lambda xp: xp.pad(X, 1, "median"), lambda xp: xp.pad(V, (13, 9), "symmetric"), lambda xp: xp.pad(X, 2, "wrap"),
    lambda xp: xp.pad(V, 11, "reflect"), lambda xp: xp.pad(X, ((1, 2), (2, 1)), "reflect"),
    lambda xp: xp.pad(V, (13, 9), "reflect", reflect_type="odd"), lambda xp: xp.pad(V[:1], 2, "reflect"),
    lambda xp: xp.pad(V, (3, 8), "symmetric", reflect_type="odd"), lambda xp: xp.pad(V, 0, "wrap"),
]


@pytest.mark.parametrize("function", SAME)
def test_result_is_that_of_numpy(function):
    same_as_numpy(function(jnp), function(np))


@pytest.mark.parametrize("width", [0, 1])
@pytest.mark.parametrize("mode, more", [("constant", {}), ("constant", {"constant_values": np.float32(2)}),
                                        ("constant", {"constant_values": (2, 3)}), ("edge", {}), ("mean", {}),
                                        ("linear_ramp", {}), ("empty", {})])
def test_the_type_stays_weak(width, mode, more):
    assert jnp.pad(jnp.full(3, 1.0), width, mode, **more).weak_type


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.pad(V, -1), ValueError, "negative"), (lambda: jnp.pad(V, 1.5), TypeError, "integral"),
    (lambda: jnp.pad(X, ((1, 1),) * 3), ValueError, "unsupported shape"),
    (lambda: jnp.pad(V, 1, "a"), NotImplementedError, "a"),
    (lambda: jnp.pad(V, 1, "edge", constant_values=1), ValueError, "unsupported keyword"),
    (lambda: jnp.pad(V[:0], 1, "wrap"), ValueError, "empty axis"), (lambda: jnp.pad([1], 1), TypeError, "pad requires"),
])
def test_padding_refuses(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("function, derivative", [
    (lambda a: jnp.pad(a, 2, "reflect"), [1, 2, 3, 2, 1]),
])
def test_derivatives(function, derivative):
    np.testing.assert_allclose(hlotrace.grad(lambda a: function(a).sum())(V), derivative, 1e-6)
