"""hlotrace_check_bounds: reads and writes out of bounds are errors, where the index is only known when the
program runs."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.config import override
from hlotrace.sharding import PartitionSpec as P

X = jnp.arange(12.0).reshape(3, 4)
# what runs with an index -> (a function, an index inside, one outside, that index, axis, size)
CASES = {
    "read": (lambda i: X[i], -3, 3, (3, 0, 3)),
    "read from the end": (lambda i: X[:, i], -4, -5, (-5, 1, 4)),
    "read many": (lambda i: X[0, i], [0, -4, 3], [0, -6, 9], (-6, 1, 4)),
    "read pairs": (lambda i: X[[0, 1], i], [0, 3], [3, 4], (4, 1, 4)),
    "read rows": (lambda i: X[i[:, None], :2], [0, 2], [2, 3], (3, 0, 3)),
    "read with get": (lambda i: X.at[i].get(), 2, 3, (3, 0, 3)),
    "unsigned": (lambda i: X[i.astype(jnp.uint8)], 2, 255, (255, 0, 3)),
    "write": (lambda i: X.at[i, 0].set(1.0), 2, 4, (4, 0, 3)),
    "write many": (lambda i: X.at[:, i].set(0.0), [0, -4], [0, -5], (-5, 1, 4)),
    "add": (lambda i: X.at[i].add(1.0), [0, 2], [0, 7], (7, 0, 3)),
    "apply": (lambda i: X.at[i].apply(jnp.sin), 1, 3, (3, 0, 3)),
    "take": (lambda i: jnp.take(X, i, 1), [3, -4], [3, 4], (4, 1, 4)),
    "take flat": (lambda i: jnp.take(X, i), 11, 12, (12, 0, 12)),
    "take_along_axis": (lambda i: jnp.take_along_axis(X, i[None, None], 1), 3, -5, (-5, 1, 4)),
    "put": (lambda i: jnp.put(X, i, 1.0, inplace=False), 11, 12, (12, 0, 12)),
    "dynamic_slice": (lambda i: lax.dynamic_slice(X, (0, i), (3, 2)), -2, 3, (3, 1, 4)),
    "dynamic_index_in_dim": (lambda i: lax.dynamic_index_in_dim(X, i, 1), -4, -5, (-5, 1, 4)),
    "dynamic_update_slice": (lambda i: lax.dynamic_update_slice(X, X[:2], (i, 0)), 1, 2, (2, 0, 3)),
    "gather": (lambda i: lax.gather(X, i[None, None], lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4)),
               2, -1,
               (-1, 0, 3)),
    "scatter": (lambda i: lax.scatter_add(X, i[None, None], X[:1],
                                          lax.ScatterDimensionNumbers((1,), (0,), (0,))), 2, 3,
                (3, 0, 3)),
    "scan": (lambda i: lax.scan(lambda c, j: (c + X[j, 0], None), 0.0, i + jnp.arange(3))[0], 0, 1,
             (3, 0, 3)),
    "while": (lambda i: lax.while_loop(lambda s: X[0, s[0]] < 2, lambda s: (s[0] + 1, s[1] + X[s[0], 0]),
                                       (i, 0.0)), 1, -5,
              (-5, 1, 4)),
    "branch": (lambda i: lax.cond(i > 2, lambda i: X[i], lambda i: X[0], i), 1, 3, (3, 0, 3)),
    "mapped": (jax.vmap(lambda i: X[i]), [0, 2], [0, 3], (3, 0, 3)),
    "mapped with its array": (lambda i: jax.vmap(lambda x, i: x[i])(X, i), [0, 3, -4], [0, 4, 3], (4, 0, 4)),
    "mapped branch": (jax.vmap(lambda i: lax.cond(i < 3, lambda i: X[i, 0], lambda i: X[i - 3, 1], i)),
                      [0, 5], [0, 6],
                      (3, 0, 3)),
    "mapped loop": (jax.vmap(lambda i: lax.while_loop(lambda i: i < 3, lambda i: i + 1 + (X[i, 0] < 0), i)),
                    [0, 2], [2, -4],
                    (-4, 0, 3)),
    "gradient": (jax.grad(lambda x, i: (x[i] ** 2).sum()), 2, 3, (3, 0, 3)),
    "checkpoint": (jax.grad(jax.checkpoint(lambda x, i: (x[i] ** 2).sum())), 2, 3, (3, 0, 3)),
}


def run(f, index):
    index = jnp.asarray(index)
    return f(X, index) if f in (CASES["gradient"][0], CASES["checkpoint"][0]) else f(index)


@pytest.mark.parametrize("case", CASES)
def test_out_of_bounds(case):
    f, inside, outside, (index, axis, size) = CASES[case]
    jitted = jax.jit(lambda i: run(f, i))
    said = f"index {index} is out of bounds for axis {axis} with size {size}"
    with override("hlotrace_check_bounds", True):
        with pytest.raises(IndexError, match=said) as raised:
            jitted(jnp.asarray(outside))
        assert "test_check_bounds.py:" in str(raised.value)
        checked = jitted(jnp.asarray(inside))
    plain = jitted(jnp.asarray(inside))     # off, an index outside is none of our business
    jax.tree.map(np.testing.assert_array_equal, checked, plain)


EAGER = ("read", "read many", "write", "take_along_axis", "dynamic_slice", "gather", "scan", "branch",
         "mapped",
         "mapped branch", "gradient")


@pytest.mark.parametrize("case", EAGER)
def test_out_of_bounds_outside_of_jit(case):
    f, inside, outside, (index, axis, size) = CASES[case]
    with override("hlotrace_check_bounds", True):
        with pytest.raises(IndexError,
                           match=f"index {index} is out of bounds for axis {axis} with size {size}"):
            run(f, outside)
        run(f, inside)


def test_a_mode_says_what_is_meant():
    def f(i):
        return (X.at[i].get(mode="clip")[0], X.at[i].get(mode="fill", fill_value=7)[0],
                jnp.take(X, i, 0, mode="clip")[0],
                jnp.take(X, i, fill_value=9.0), X.at[i].set(1.0, mode="drop")[2, 0],
                X.at[i].add(5, mode="promise_in_bounds")[2, 3],
                jnp.take_along_axis(X, i[None, None], 0, mode="clip")[0, 0])
    expected = jax.jit(f)(20)
    with override("hlotrace_check_bounds", True):
        np.testing.assert_array_equal(jax.jit(f)(20), expected)
        np.testing.assert_array_equal(X[X > 5], np.arange(6.0, 12))


def test_programs_without_the_option_are_those_without_checks():
    f = lambda i: X[i]
    text = jax.jit(f).lower(0).as_text()
    with override("hlotrace_check_bounds", True):
        assert "custom_call" not in (checked := jax.jit(f).lower(0).as_text()) and len(checked) > 2 * len(
            text)
        compiled = jax.jit(f).lower(0).compile()
        with pytest.raises(IndexError):
            compiled(3)
        assert compiled(2).shape == (4,) == compiled.out_info.shape
    assert jax.jit(f).lower(0).as_text() == text


def test_the_first_index_and_no_result():
    """The first read outside is told of; donated arguments are gone, effects have happened, and all is well
    afterwards."""
    heard = []

    def f(x, i):
        jax.debug.callback(lambda v: heard.append(int(v)), i)
        return x.at[i].add(X[i - 1, 0])
    with override("hlotrace_check_bounds", True):
        g = jax.jit(f, donate_argnums=0)
        with pytest.raises(IndexError, match="index 6 is out of bounds for axis 0 with size 3"):
            g(jnp.ones(5), 7)
        np.testing.assert_array_equal(g(jnp.ones(5), 3), [1, 1, 1, 9, 1])
        jax.effects_barrier()
    assert heard == [7, 3]


def test_over_devices():
    mesh = jax.sharding.Mesh(jax.devices()[:2], ("d",))
    laid = jax.device_put(jnp.arange(4), jax.sharding.NamedSharding(mesh, P("d")))
    by_device = jax.shard_map(lambda i: X[i, 0], mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    with override("hlotrace_check_bounds", True):
        for f in (jax.jit(lambda i: X[i, 0]), jax.jit(by_device), by_device):
            np.testing.assert_array_equal(f(laid - 1), [8, 0, 4, 8])
            with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3") as raised:
                f(laid)
        assert "at mapped index 1: " in str(raised.value)


def test_checkify_takes_them_as_values():
    from hlotrace.experimental import checkify
    with override("hlotrace_check_bounds", True):
        error, _ = jax.jit(checkify.checkify(lambda i: X[i], errors=checkify.index_checks))(5)
        assert "index 5 is out of bounds for axis 0 with size 3" in error.get()
        with pytest.raises(IndexError, match="index 5"):
            jax.jit(checkify.checkify(lambda i: X[i]))(5)
