"""Small names at the root of the package, and of its smallest modules."""
import numpy as np
import pytest
from mesh8 import auto_mesh

import hlotrace as jax
import hlotrace.numpy as jnp


def test_what_things_are_called():
    assert isinstance(jax.devices()[0], jax.Device) and isinstance(
        jnp.ones(2).addressable_shards[0], jax.Shard)
    assert jax.version.__version__ == jax.__version__ == ".".join(map(str, jax.__version_info__))
    assert jax.version.__version_info__ == jax.__version_info__ and jax.lib.__version__.startswith("0.1")
    assert jax.process_indices() == jax.host_ids("cpu") == [0]
    assert (jax.host_count(), jax.host_id()) == (jax.process_count(), jax.process_index()) == (1, 0)
    grads = jax.grad(lambda n, x: x * n, argnums=0, allow_int=True)(3, 2.0)
    assert grads.dtype == jax.float0 == jax.dtypes.float0


def test_slices_by_start_and_size():
    x, y, i = jnp.arange(10.0), jnp.arange(24).reshape(4, 6), 1
    a, b = np.asarray(x), np.asarray(y)
    assert x[jax.ds(2, 3)].tolist() == [2, 3, 4] and x[jax.ds(8, 3)].tolist() == [8, 9] and x[
        jax.ds(4)].size == 4
    assert jax.ds(None) == slice(None) and x[jax.ds(2, 5, 2)].tolist() == [2, 4, 6] and jax.ds(3) == jax.ds(
        0, 3)

    @jax.jit
    def read(i):
        s = jax.ds(i, 2)
        return (y[s, 1], y[s, jax.ds(i, 3)], y[..., s], y[None, s, i], y[s, jnp.array([1, 0])],
                x[jax.ds(i + 7, 3)],
                x[jax.ds(-i, 3)], x.at[s].set(7), x.at[s].add(7), x.at[jax.ds(i + 8, 2)].add(7),
                y.at[s, 1:3].set(0),
                y.at[jnp.array([3, 0]), s].set(-1), x.at[jax.ds(i + 7, 3)].get(mode="fill"))
    set_, add, block, arrays = a.copy(), a.copy(), b.copy(), b.copy()
    set_[1:3], add[1:3], block[1:3, 1:3], arrays[[3, 0], 1:3] = 7, add[1:3] + 7, 0, -1
    wanted = (b[1:3, 1], b[1:3, 1:4], b[:, 1:3], b[None, 1:3, 1], b[1:3, [1, 0]], a[7:], a[7:], set_, add, a,
              block, arrays,
              np.full(3, np.nan))
    for found, value in zip(read(i), wanted, strict=True):
        np.testing.assert_array_equal(found, value)
    assert x[jax.ds(jnp.int32(4), 2)].tolist() == [4, 5]
    np.testing.assert_array_equal(jax.vmap(lambda i: y[jax.ds(i, 2), 0])(jnp.array([0, 2])),
                                  [[0, 6], [12, 18]])
    assert jax.grad(lambda x: x[jax.ds(jnp.int32(1), 2)].sum())(x).tolist() == [0, 1, 1] + [0] * 7
    n = jnp.int32(1)
    for bad, error, words in [
            (lambda: jax.ds(1, 2, -1), ValueError, "the stride -1 is negative"),
            (lambda: x[jax.ds(n, 11)], TypeError, "the size 11 of"),
            (lambda: x[jax.ds(n, -1)], TypeError, "not between 0 and 10"),
            (lambda: x[jax.ds(n, n)], TypeError, "static int"),
            (lambda: x[jax.ds(jnp.float32(1), 2)], TypeError, r"one integer, but is float32\[\]"),
            (lambda: x[jax.ds(n, 6, 2)], TypeError, "size 6 in steps of 2")]:
        with pytest.raises(error, match=words):
            bad()
    assert [level.value for level in jax.CompilerEffortLevel] == [0, 9, 19, 29, 39]


def test_meshes_in_use():
    mesh = auto_mesh((2,), ("x",))
    assert jax.get_mesh().axis_names == ()
    with jax.set_mesh(mesh):
        assert jax.get_mesh() == mesh and jax.get_abstract_mesh().axis_names == ("x",)
    with jax.use_abstract_mesh(mesh.abstract_mesh):
        assert jax.get_abstract_mesh().axis_sizes == (2,)


def test_families_of_errors():
    e = jax.errors
    for kind in (e.ConcretizationTypeError, e.TracerArrayConversionError, e.TracerIntegerConversionError,
                 e.KeyReuseError,
                 e.UnexpectedTracerError, e.TracerBoolConversionError):
        assert issubclass(kind, e.JAXTypeError) and issubclass(kind, TypeError)
    assert issubclass(e.NonConcreteBooleanIndexError, e.JAXIndexError) and issubclass(
        e.JAXIndexError, IndexError)
    program = jax.make_jaxpr(jnp.sin)(np.float32(1))
    wrong = program.replace(outvars=[jax.core.Var(jax.core.ShapedArray((), np.dtype("float32")))])
    with pytest.raises(e.JaxprTypeError, match="not bound"):
        jax.core.check_jaxpr(wrong)
