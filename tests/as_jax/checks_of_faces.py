"""Small faces on the house's objects under the names of JAX's inside: what they do."""
import asyncio
import inspect
from types import SimpleNamespace

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.as_jax import faces, nothing


def test_numbers_shapes_and_lists():
    assert faces.remaining([1, 2, 3, 2], [2], [5]) == [1, 3]
    assert faces.canonicalize_shape((np.int64(2), 3)) == (2, 3) and faces.dimension_as_value(np.int8(3)) == 3
    assert faces.definitely_equal_shape((2, 3), [2, 3]) and not faces.definitely_equal_shape((2,), (2, 1))
    assert faces.TypedInt(3, np.int32) + 1 == 4 and faces.TypedFloat(0.5, "float32").dtype == "float32"
    assert [x.dtype.name for x in faces.promote_dtypes_complex(jnp.ones(2), 1)] == ["complex64"] * 2
    whole, rest = faces.batch_and_remainder({"x": jnp.arange(5)}, 2)
    assert whole["x"].shape == (2, 2) and rest["x"].tolist() == [4] and faces.batch_and_remainder(
        jnp.arange(4), 2)[1] is None
    assert str([faces.p2tz(1), faces.a2tz(jax.typeof(jnp.ones(2)))]) == "[Zero(float0[]), Zero(float32[2])]"
    with pytest.raises(NotImplementedError, match="wrap_key_data"):
        faces.EArray(None, None)


def test_sums_of_products_step_by_step():
    x, y, z = (np.random.default_rng(0).normal(size=(2, 3, 4)), np.ones((4, 5)), np.arange(3.))
    steps = [((2, 0), frozenset("b"), "b,abc->ac"), ((1, 0), frozenset("c"), "ac,cd->da")]
    products = []

    def dot(*args, **kwargs):
        products.append(kwargs)
        return jax.lax.dot_general(*args, **kwargs)
    found = faces.einsum_along([x, y, z], steps, None, np.float32, dot)
    np.testing.assert_allclose(found, np.einsum("abc,cd,b->da", x, y, z), rtol=1e-4, atol=1e-5)
    assert len(products) == 2 and found.dtype == np.float32
    operands, steps = faces.contraction_steps("abc,cd,b->da", x, y, z, einsum_call=True, use_blas=True)
    np.testing.assert_allclose(faces.einsum_along(operands, steps), found, rtol=1e-4, atol=1e-5)
    assert sorted(map(sorted, (summed for _, summed, _ in steps))) == [["b"], ["c"]]


def test_functions_and_their_arguments():
    def f(a, b, *, c=1):
        yield a, b, c
    assert faces.ensure_index(np.int8(2)) == 2 and faces.ensure_index([1, 2]) == (1, 2)
    signature = inspect.signature(f)
    assert faces.infer_argnums_and_argnames(signature, (1,), None) == ((1,), ("b",))
    assert faces.infer_argnums_and_argnames(signature, None, "a") == ((0,), ("a",))
    assert faces.infer_argnums_and_argnames(signature, 0, ("c",)) == ((0,), ("c",))
    named = faces.wraps(f, "grad_{fun}", "Of {fun} by {by}.", by="x")(lambda: None)
    assert (named.__name__, named.__doc__) == ("grad_f", "Of f by x.")
    for wrong, words in ((1, "callable"), (f, "generator")):
        with pytest.raises(TypeError, match=words):
            faces.check_callable(wrong)


def test_primitives_and_tables():
    double = faces.standard_primitive(lambda x: x.shape, lambda x: x.dtype, "double_of_faces")
    assert str(jax.eval_shape(double.bind, jnp.ones(3)).shape) == "(3,)"
    with pytest.raises(NotImplementedError, match="sharding_rule"):
        faces.standard_primitive(None, None, "x", sharding_rule=len)
    with pytest.raises(NotImplementedError, match="custom_staging_rules"):
        faces.custom_staging_rules["x"] = 1
    with pytest.raises(NotImplementedError, match="jax._src.x.y.* has no counterpart"):
        nothing.Nothing("jax._src.x.y")(1)
    faces.runtime_tokens.block_until_ready()
    square = faces.xla_primitive_callable(jax.lax.integer_pow_p, y=2)
    faces.xla_primitive_callable.cache_clear()
    assert square(jnp.float32(3)) == 9


def test_arrays_over_processes_and_on_disk(monkeypatch):
    sharding = jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("x"))
    assert faces.get_process_index_and_count(sharding, 1, 2) == (0, 1)
    assert faces.local_to_global_shape(sharding, (4, 8)) == (4, 8)
    # of four parts of dimension 0 this process holds the third and the fourth
    elsewhere = SimpleNamespace(is_fully_addressable=False)
    monkeypatch.setattr(faces, "held_tiles", lambda *_: (((2, 3), 4), ((0,), 1)))
    assert faces.get_process_index_and_count(elsewhere, 0, 2) == (1, 2)
    assert faces.local_to_global_shape(elsewhere, (4, 8)) == (8, 8)
    monkeypatch.setattr(faces, "held_tiles", lambda *_: (((1, 2), 4),))
    with pytest.raises(ValueError, match="dimension 0 among processes"):
        faces.get_process_index_and_count(elsewhere, 0, 1)
    assert faces.get_metadata(jnp.ones((2, 0)))["chunks"] == [2, 1]


def test_bytes_in_flight():
    async def main():
        limit, order = faces.LimitInFlightBytes(10), []

        async def take(size):
            await limit.wait_for_bytes(size)
            order.append(size)
        await take(7)
        waiting = [asyncio.create_task(take(size)) for size in (7, 20, 3)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert order == [7, 3]
        await limit.release_bytes(3)
        await limit.release_bytes(7)
        for _ in range(10):
            await asyncio.sleep(0)
        assert order == [7, 3, 7]
        with pytest.raises(AssertionError, match="8 bytes released of 7"):
            await limit.release_bytes(8)
        await limit.release_bytes(7)
        await asyncio.gather(*waiting)      # more than the limit, alone
        assert order == [7, 3, 7, 20]
    asyncio.run(main())


def test_devices(monkeypatch):
    assert faces.get_concrete_mesh().empty and faces.canonicalize_sharding(None, "f") is None
    mesh = jax.make_mesh((1,), ("x",))
    with jax.set_mesh(mesh):
        assert faces.get_concrete_mesh() is mesh
    assert not faces.SlurmCluster.is_env_present()


def test_check_close():
    faces.check_close({"a": jnp.ones(2)}, {"a": np.ones(2, np.float32) + 1e-7})
    faces.check_close(1., 1.1, atol=0.2, rtol={np.dtype("float64"): 0.})
    with pytest.raises(AssertionError, match="why"):
        faces.check_close(jnp.ones(2), jnp.ones(2) * 1.01, err_msg="why")
    for n in (2, 50):       # as JAX has it
        faces.check_close(np.ones(n), np.ones(n) + 1.5e-6 * n)
        with pytest.raises(AssertionError):
            faces.check_close(np.ones(n), np.ones(n) + 2.5e-6 * n)


def test_the_dictionary_of_a_module_has_what_is_imported_when_used():
    for module in (jnp, jax.lax, jax.random):
        assert set(module.__all__) <= set(vars(module))


def test_errors_whose_frames_are_left_out_say_so_as_in_jax():
    def wrong(x):
        raise ValueError("wrong")
    with pytest.raises(ValueError, match="wrong") as caught:
        jax.jit(wrong)(1.)
    assert "removed its internal frames" in "".join(caught.value.__notes__)
