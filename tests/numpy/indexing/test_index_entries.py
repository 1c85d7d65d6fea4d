"""A Python int out of bounds reads the nearest element, is logged once a line, and is an IndexError by an option."""
import re

import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.config import override
from hlotrace.experimental import checkify

X, M = jnp.arange(10.), jnp.arange(12.).reshape(3, 4)


class Index:
    """What Python takes for an int."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


# what is asked -> (the words of the error, what JAX gives)
OUTSIDE = {
    "x[10]": (lambda: X[10], "index 10 is out of bounds for axis 0 with size 10: ints from -10 to 9", 9.),
    "x[-11]": (lambda: X[-11], "index -11 is out of bounds for axis 0 with size 10", 0.),
    "x[:, -5]": (lambda: M[:, -5], "index -5 is out of bounds for axis 1 with size 4", M[:, 0]),
    "x[..., 4]": (lambda: M[..., 4], "index 4 is out of bounds for axis 1 with size 4", M[:, 3]),
    "x[None, 3]": (lambda: M[None, 3], "index 3 is out of bounds for axis 0 with size 3", M[None, 2]),
    "x[3, 0]": (lambda: M[3, 0], "index 3 is out of bounds for axis 0", 8.),
    "x[1:, 4]": (lambda: M[1:, 4], "index 4 is out of bounds for axis 1", M[1:, 3]),
    "beside an array": (lambda: M[3, jnp.array([1, 2])], "index 3 is out of bounds for axis 0", M[2, 1:3]),
    "beside a mask": (lambda: M[np.array([True, False, True]), 4], "index 4 is out of bounds for axis 1", M[::2, 3]),
    "of one element": (lambda: jnp.ones(1)[1], "index 1 is out of bounds for axis 0 with size 1: ints from -1 to 0", 1.),
    "np.int64": (lambda: X[np.int64(10)], "index 10 is out of bounds for axis 0", 9.),
    "__index__": (lambda: X[Index(10)], "index 10 is out of bounds for axis 0", 9.),
    "of keys": (lambda: jax.random.key_data(jax.random.split(jax.random.key(0), 3)[3]), "index 3 is out of bounds",
                lambda: jax.random.key_data(jax.random.split(jax.random.key(0), 3)[2])),
    "get": (lambda: X.at[10].get(), "index 10 is out of bounds for axis 0 with size 10", 9.),
    "set": (lambda: X.at[10].set(5.), "index 10 is out of bounds for axis 0 with size 10", X),
    "add": (lambda: M.at[:, -5].add(5.), "index -5 is out of bounds for axis 1 with size 4", M),
    "divide": (lambda: X.at[10].divide(5.), "index 10 is out of bounds", X),
    "apply": (lambda: X.at[10].apply(jnp.sin), "index 10 is out of bounds", X),
    "not wrapped": (lambda: X.at[-1].set(5., wrap_negative_indices=False), "ints from 0 to 9 are inside", X),
    "take": (lambda: jnp.take(X, 10), "index 10 is out of bounds for axis 0 with size 10", np.nan),
    "x.take": (lambda: M.take(4, axis=1), "index 4 is out of bounds for axis 1 with size 4", np.full(3, np.nan)),
    "put": (lambda: jnp.put(M, 12, 5., inplace=False), "index 12 is out of bounds for axis 0 with size 12",
            lambda: M.at[2, 3].set(5.)),
    "insert": (lambda: jnp.insert(X, 11, 5.), "index 11 is out of bounds for axis 0 with size 10",
               lambda: jnp.append(X, 5.)),
    "unravel_index": (lambda: jnp.unravel_index(12, (3, 4)),
                      "index 12 is out of bounds for axis 0 with size 12", (2, 3)),
    "dynamic_index_in_dim": (lambda: lax.dynamic_index_in_dim(M, 4, 1, keepdims=False),
                             "index 4 is out of bounds for axis 1 with size 4", M[:, 3]),
    "dynamic_update_index_in_dim": (lambda: lax.dynamic_update_index_in_dim(X, 5., 10, 0),
                                    "index 10 is out of bounds for axis 0 with size 10", lambda: X.at[9].set(5.)),
}
ROADS = {
    "eager": lambda f: f(),
    "jit": lambda f: jax.jit(lambda _: f())(0.),
    "grad": lambda f: jax.grad(lambda x: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(f())) * x)(1.),
    "vmap": lambda f: jax.tree.map(lambda x: x[0], jax.vmap(lambda _: f())(jnp.zeros(2))),
    "scan": lambda f: jax.tree.map(lambda x: x[0], lax.scan(lambda c, _: (c, f()), 0., None, 2)[1]),
}


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("name", OUTSIDE)
def test_the_option_makes_it_an_error(name, road):
    function, words, _ = OUTSIDE[name]
    with override("jax_check_static_indices", True), pytest.raises(IndexError, match=re.escape(words)):
        ROADS[road](function)


@pytest.mark.parametrize("road", ["eager", "jit", "vmap", "scan"])
@pytest.mark.parametrize("name", OUTSIDE)
def test_an_int_out_of_bounds_is_the_nearest_element_and_no_update(name, road):
    function, _, want = OUTSIDE[name]
    same(ROADS[road](function), want() if callable(want) else want)


def test_each_line_is_logged_once(caplog):
    def read(x):
        return x[10] + x[-11]

    for _ in range(3):
        same((read(X), jax.jit(read)(X), X.at[12].set(5.)), (9., 9., X))
    said = [record.getMessage() for record in caplog.records]
    assert [
        re.findall(
            r"test_index_entries.py:\d+ \(.*(read|logged_once)\): index (-?\d+) is out of bounds for axis 0 with "
            "size 10: ints from -10 to 9 are inside",
            words,
        )
        for words in said
    ] == [[("read", "10")], [("logged_once", "12")]]
    assert all("jax_check_static_indices" in words for words in said)


def test_index_checks_see_ints_too():
    for function, index in ((lambda x: x[10], 10), (lambda x: x[-11], -1), (lambda x: x.at[12].add(1.), 12)):
        error, _ = jax.jit(checkify.checkify(function, errors=checkify.index_checks))(X)
        assert f"index {index} is out of bounds for axis 0 with size 10" in error.get()


@pytest.mark.parametrize("mode", ["clip", "fill", "drop", "promise_in_bounds"])
def test_a_mode_says_what_else_is_meant(mode):
    reads = np.nan if mode in ("fill", "drop") else 9.
    same(X.at[10].get(mode=mode), reads)
    same(M.at[5, 1].get(mode=mode), np.nan if mode in ("fill", "drop") else 9.)
    same(X.at[10].set(5., mode=mode), X.at[9].set(5.) if mode == "clip" else X)
    same(X.at[10].apply(lambda x: x + 1, mode=mode), X.at[9].add(1.) if mode == "clip" else X)


def test_the_modes_of_take_and_put():
    same([jnp.take(X, 12, mode=m) for m in ("fill", "clip", "wrap")], [np.nan, 9., 2.])
    same(jnp.take(X, 12, fill_value=7.), 7.)
    same([jnp.put(X, 12, 5., mode=m, inplace=False) for m in ("clip", "wrap")], [X.at[9].set(5.), X.at[2].set(5.)])


ARRAYS = {
    "x[array]": (lambda i: X[i], [9.]), "set": (lambda i: X.at[i].set(5.), X), "take": (lambda i: jnp.take(X, i), [np.nan]),
    "dynamic_index_in_dim": (lambda i: lax.dynamic_index_in_dim(X, jnp.sum(i)), [9.]),
    "x[scalar]": (lambda i: X[jnp.sum(i)], 9.),
    "insert": (lambda i: jnp.insert(X, i, 5.)[-1], 5.),
    "unravel_index": (lambda i: jnp.unravel_index(i, (2, 5)), ([1], [4])),
    "take_along_axis": (lambda i: jnp.take_along_axis(X, i, 0), [np.nan]),
}


@pytest.mark.parametrize("make", [jnp.array, np.array])
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_indices_keep_the_rules_of_jax(name, make):
    function, want = ARRAYS[name]
    same(jax.tree.map(np.asarray, function(make([13]))), jax.tree.map(lambda x: np.asarray(x, np.float32), want, is_leaf=
                                                                      lambda x: isinstance(x, list)))


def test_slices_and_windows_keep_the_rules_of_python_and_of_jax():
    same((X[8:20], X[10:12]), (X[8:], X[:0]))
    same(lax.dynamic_slice(X, (8,), (5,)), X[5:])
    same(lax.dynamic_update_slice(X, jnp.ones(5), (8,)), X.at[5:].set(1.))
    same(lax.switch(5, [lambda: 0., lambda: 1.]), 1.)


def test_an_empty_axis_has_no_element_whatever_the_option_says():
    for option in (True, False):
        with override("jax_check_static_indices", option):
            for f in (lambda: jnp.zeros((0, 3))[0], lambda: jnp.zeros((3, 0))[:, -1], lambda: jnp.zeros(0).at[0].set(1.)):
                with pytest.raises(IndexError, match=r"index -?[01] is out of bounds for axis [01] with size 0"):
                    f()
