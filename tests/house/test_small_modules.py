"""The smallest modules of `hlotrace.experimental`, and keywords that the smallest functions have."""
import types

import numpy as np
import pytest
from mesh8 import on

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import random
from hlotrace.experimental import mesh_utils, pjit, scheduling_groups, topologies
from hlotrace.experimental.compilation_cache import compilation_cache
from hlotrace.experimental.random import StatefulPRNG, stateful_rng

ENDS = np.array([5, 9])


def test_a_generator_that_counts_its_draws():
    rng, base = stateful_rng(42), random.key(42)
    keys = (random.fold_in(base, i) for i in range(100))
    draws = [      # by the generator, by functions of keys
        (lambda: rng.key(), lambda key: key), (lambda: rng.key((2, 1)), lambda key: random.split(key, (2, 1))),
        (lambda: rng.random(3), lambda key: random.uniform(key, (3,))), (lambda: rng.uniform(), random.uniform),
        (lambda: rng.uniform(1, 3, (2,)), lambda key: random.uniform(key, (2,), minval=1, maxval=3)),
        (lambda: rng.normal(np.ones(2), 3), lambda key: 1 + 3 * random.normal(key, (2,))),
        (lambda: rng.normal(dtype="float16"), lambda key: random.normal(key, dtype="float16")),
        (lambda: rng.integers(5), lambda key: random.randint(key, (), 0, 5)),
        (lambda: rng.integers(2, ENDS, dtype="int8"), lambda key: random.randint(key, (2,), 2, ENDS, "int8")),
        (lambda: [child.key() for child in rng.spawn(2)], lambda key: [random.fold_in(k, 0) for k in random.split(key)]),
        (lambda: jax.jit(lambda g: g.uniform())(rng), random.uniform), (jax.jit(lambda: rng.uniform()), random.uniform)]
    for draw, want in draws:
        assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all() and a.dtype == b.dtype, draw(), want(next(keys))))
    several = rng.split(2)
    assert isinstance(several, StatefulPRNG) and jax.vmap(lambda g: g.uniform())(several).shape == (2,)
    with pytest.raises(ValueError, match="vmap"):
        several.key()
    assert stateful_rng(3, impl="rbg").key().dtype == random.key(3, impl="rbg").dtype
    assert stateful_rng().uniform() != stateful_rng().uniform()
    with pytest.raises(TypeError, match="seed"):
        jax.jit(lambda: stateful_rng().uniform())()


def test_meshes_of_slices():
    devices = [types.SimpleNamespace(id=i, slice_index=1 - i // 4, process_index=i // 2, platform="tpu", device_kind="chip")
               for i in range(8)]
    def ids(*shapes, **more):
        found = mesh_utils.create_hybrid_device_mesh(*shapes, devices, **more)
        return np.vectorize(lambda d: d.id)(found).tolist()
    assert ids((2, 2), (2, 1)) == [[4, 5], [6, 7], [0, 1], [2, 3]]
    assert ids((2, 2), (1, 2), should_sort_granules_by_key=False) == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert ids((1, 2), (2, 2), process_is_granule=True) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    for shapes, words in [(((2, 2), (2,)), "same number of axes"), (((4,), (3,)), "3 slices, and there are 2"),
                          (((3,), (2,)), "holds 3 devices")]:
        with pytest.raises(ValueError, match=words):
            ids(*shapes)
    with pytest.raises(ValueError, match="process_is_granule=True"):
        mesh_utils.create_hybrid_device_mesh((8,), (1,), jax.devices())
    mesh_utils.device_kind_handler_dict["chip"] = lambda shape, devices, contiguous_submeshes: np.array(devices[::-1])
    try:
        assert [d.id for d in mesh_utils.create_device_mesh((8,), devices)] == [*range(7, -1, -1)]
    finally:
        mesh_utils.device_kind_handler_dict.clear()


def test_other_small_modules(tmp_path):
    f = jax.jit(scheduling_groups.scheduling_group("first")(lambda x: jnp.sin(x) * 2))
    assert 'scheduling_group = "first"' in f.lower(1.0).as_text() and abs(f(1.0) - 2 * np.sin(1)) < 1e-6
    attached = topologies.get_attached_topology()
    assert attached.devices == jax.devices() and attached.platform == "cpu"
    assert all(isinstance(device, topologies.Device) for device in attached.devices)
    assert topologies.make_mesh(attached, (4, 2), ("a", "b")).devices.shape == (4, 2)
    before = jax.config.jax_compilation_cache_dir
    try:
        compilation_cache.set_cache_dir(tmp_path / "programs")
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / "programs")
    finally:
        compilation_cache.set_cache_dir(before)
    assert compilation_cache.reset_cache() is None
    assert pjit.pjit(lambda x: x * 2, out_shardings=on("data"))(jnp.arange(8)).tolist() == [*range(0, 16, 2)]


def test_where_a_function_becomes_a_part_of_its_caller():
    ways = {jax.Inline.JAX_EARLY: 0, jax.Inline.JAX_LATE: 0, jax.Inline.AUTO: 1, jax.Inline.XLA_LATE: 1, True: 0, False: 1}
    for inline, calls in ways.items():
        program = jax.make_jaxpr(lambda x, i=inline: jax.jit(jnp.sin, inline=i)(x))(1.0)
        assert [eqn.primitive.name for eqn in program.eqns] == ["jit" if calls else "sin"]
    with pytest.raises(ValueError, match="inline"):
        jax.jit(jnp.sin, inline="early")


def test_keywords_of_dtypes_and_one_hot():
    assert jax.dtypes.result_type(1, return_weak_type_flag=True) == (np.dtype("int32"), True)
    assert jax.dtypes.result_type(1, jnp.int8, return_weak_type_flag=True) == (np.dtype("int8"), False)
    key = random.key(0).dtype
    assert jax.dtypes.canonicalize_dtype(key) == key
    with pytest.raises(ValueError, match="allow_extended_dtype"):
        jax.dtypes.canonicalize_dtype(key, allow_extended_dtype=False)
    found = jax.nn.one_hot(jnp.arange(8), 3, out_sharding=on("data"))
    assert found.sharding == on("data") and found.tolist() == np.eye(8, 3).tolist()
