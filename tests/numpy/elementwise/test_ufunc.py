"""ufunc objects and their methods: reduce, accumulate, reduceat, at, outer."""
import inspect
import pickle

import numpy as np
import pytest

import hlotrace.numpy as jnp
from hlotrace.api.jit import jit

INF, NAN = np.inf, np.nan


X = np.array([[3.0, 1.0, 2.0], [0.5, 4.0, 1.5]], "float32")
OPERANDS = {"float": X, "int": np.array([[6, 3, 5], [2, 7, 1]], "int32"), "bool": X > 1}
FUNCTIONS = {"float": ("add", "subtract", "multiply", "maximum", "logaddexp"), "int": ("bitwise_xor", "gcd"),
             "bool": ("logical_and",)}
NO_ORDER = "subtract"       # NumPy has no order of several axes for it
METHODS = {
    "reduce": lambda f, a: [f.reduce(a), f.reduce(a, axis=1, keepdims=True), *([] if f.__name__ == NO_ORDER else [
        f.reduce(a, axis=None)])],
    "accumulate": lambda f, a: [f.accumulate(a), f.accumulate(a, axis=1)],
    "outer": lambda f, a: [f.outer(a[0], a)],
    "reduceat": lambda f, a: [f.reduceat(a, np.array([0, 2, 1]), axis=1), f.reduceat(a, np.array([1, 0]))],
}
OPTIONS = {
    "reduce": [{"dtype": "float16"}, {"where": X > 1, "initial": 2.0}, {"axis": (0, 1), "where": X > 1, "initial": 2.0},
               {"axis": (0, 1), "initial": 3.0, "keepdims": True}],
    "accumulate": [{"dtype": "float16"}, {"dtype": "float16", "axis": 1}],
}


@pytest.mark.parametrize("kind", OPERANDS)
def test_ufunc_methods_agree_with_numpy(kind):
    def results(numpy, a):
        ufuncs = [getattr(numpy, name) for name in FUNCTIONS[kind]]
        found = {(f.__name__, method): call(f, a) for f in ufuncs for method, call in METHODS.items()}
        if kind == "float":
            found |= {(name, f"{method} with options"): [getattr(getattr(numpy, name), method)(a, **options) for options in OPTIONS[method]]
                      for name in ("add", "maximum", "logaddexp") for method in OPTIONS}
        return found
    found, wanted = jit(lambda a: list(results(jnp, a).values()))(OPERANDS[kind]), results(np, OPERANDS[kind])
    for (name, method), got, want in zip(wanted, found, wanted.values(), strict=True):
        for f, w in zip(got, want, strict=True):
            assert f.dtype == w.dtype
            np.testing.assert_allclose(f, w, rtol=2e-3 if w.dtype == "float16" else 1e-5, err_msg=f"{name}.{method}")


def test_reductions_that_are_nothing_or_not_there():
    assert jnp.add.reduce(jnp.ones(3), initial=5.0, where=np.array([True, False, True])) == 7
    assert jnp.logaddexp.reduce(jnp.ones(0)) == -INF
    assert jnp.logaddexp.reduce(jnp.zeros(2, "float8_e4m3fn")) == jnp.float8_e4m3fn(np.log(2))      # has no infinity
    assert jnp.maximum.accumulate(jnp.ones((2, 0, 3)), axis=1).shape == (2, 0, 3)
    with pytest.raises(ValueError, match="zero-size"):
        jnp.subtract.reduce(jnp.ones(0))
    with pytest.raises(ValueError, match="only supported for binary"):
        jnp.sin.reduce(X)


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
