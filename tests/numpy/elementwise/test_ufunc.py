"""ufunc objects and their methods: reduce, accumulate, reduceat, at, outer."""
import inspect
import pickle

import numpy as np
import pytest

import hlotrace.numpy as jnp

INF, NAN = np.inf, np.nan


def test_ufunc_methods_agree_with_numpy():
    x = np.array([[3.0, 1.0, 2.0], [0.5, 4.0, 1.5]], "float32")
    i = np.array([[6, 3, 5], [2, 7, 1]], "int32")
    calls = {
        "reduce": lambda n, f, a: (f.reduce(a), f.reduce(a, axis=None), f.reduce(a, axis=1, keepdims=True)),
        "accumulate": lambda n, f, a: (f.accumulate(a), f.accumulate(a, axis=1)),
        "outer": lambda n, f, a: f.outer(a[0], a),
        "reduceat": lambda n, f, a: f.reduceat(a, np.array([0, 2, 1]), axis=1),
    }
    for name, a in [("add", x), ("subtract", x), ("multiply", x), ("maximum", x), ("logaddexp", x), ("bitwise_xor", i),
                    ("gcd", i), ("logical_and", x > 1)]:
        for method, call in calls.items():
            if (name, method) == ("subtract", "reduce"):
                call = lambda n, f, a: (f.reduce(a), f.reduce(a, axis=1))    # NumPy has no order for two axes
            found, wanted = call(name, getattr(jnp, name), a), call(name, getattr(np, name), a)
            for f, w in zip(found, wanted, strict=True):
                np.testing.assert_allclose(f, w, rtol=1e-5, err_msg=f"{name}.{method}")
    assert jnp.add.reduce(jnp.ones(3), initial=5.0, where=np.array([True, False, True])) == 7
    assert jnp.logaddexp.reduce(jnp.ones(0)) == -INF
    with pytest.raises(ValueError, match="zero-size"):
        jnp.subtract.reduce(jnp.ones(0))
    with pytest.raises(ValueError, match="only supported for binary"):
        jnp.sin.reduce(x)


def test_ufunc_at_gives_an_updated_copy():
    x = jnp.array([5, 3, 4])
    for name in ("add", "subtract", "maximum", "bitwise_xor"):
        wanted = np.array([5, 3, 4])
        getattr(np, name).at(wanted, [0, 0, 2], [1, 7, 2])
        found = getattr(jnp, name).at(x, jnp.array([0, 0, 2]), jnp.array([1, 7, 2]), inplace=False)
        assert found.tolist() == wanted.tolist(), name
    assert jnp.negative.at(x, 1, inplace=False).tolist() == [5, -3, 4]
    with pytest.raises(NotImplementedError, match="inplace=False"):
        jnp.add.at(x, 0, 1)


def test_ufunc_objects():
    assert isinstance(jnp.add, jnp.ufunc) and (jnp.add.nin, jnp.add.nout, jnp.add.identity) == (2, 1, 0)
    assert repr(jnp.add) == "<jnp.ufunc 'add'>" and jnp.add.__name__ == "add" and jnp.add.__doc__
    assert pickle.loads(pickle.dumps(jnp.hypot)) is jnp.hypot
    assert list(inspect.signature(jnp.sin).parameters)[0] == "x"
    with pytest.raises(NotImplementedError, match="out argument of add"):
        jnp.add(1, 2, out=jnp.ones(()))
    multiply_add = jnp.frompyfunc(lambda a, b: a * b + 1, 2, 1, identity=0)
    x = jnp.arange(3.0)
    assert multiply_add(x[:, None], x).shape == (3, 3) and multiply_add.reduce(x) == 5


def test_what_a_ufunc_says_of_itself_is_numpys_and_stays():
    ours = {name: f for name in dir(np) if isinstance(f := getattr(jnp, name, None), jnp.ufunc) and isinstance(
        getattr(np, name), np.ufunc)}
    assert len(ours) > 80
    for name, f in ours.items():
        theirs = getattr(np, name)
        assert (f.nin, f.nout, f.nargs, f.identity) == (theirs.nin, theirs.nout, theirs.nargs, theirs.identity), name
    for name in "nin", "nout", "nargs", "identity":
        with pytest.raises(AttributeError, match=name):
            setattr(jnp.add, name, 3)


def test_ufuncs_of_one_function_are_equal():
    def f(a, b):
        return a + b
    one, other = jnp.frompyfunc(f, 2, 1), jnp.frompyfunc(f, 2, 1)
    assert one == other and hash(one) == hash(other) and one != jnp.frompyfunc(f, 2, 1, identity=0) and jnp.add != jnp.subtract


def test_reduceat_of_no_positions():
    for x, axis in ((jnp.arange(4.), 0), (jnp.ones((2, 3), int), 1)):
        got, want = jnp.add.reduceat(x, jnp.array([], int), axis), np.add.reduceat(np.asarray(x), np.array([], int), axis)
        assert (got.shape, got.dtype.kind) == (want.shape, want.dtype.kind)
