"""The smallest modules of `hlotrace.experimental`, and keywords that the smallest functions have."""
import numpy as np
import pytest
from mesh8 import on

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import random
from hlotrace.experimental import pjit, scheduling_groups, topologies
from hlotrace.experimental.compilation_cache import compilation_cache


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
    double = pjit.pjit(lambda x, n: x * n, on("data"), on("model"), 1)
    assert double(jnp.arange(8), 2).tolist() == [*range(0, 16, 2)]
    assert pjit.pjit(fun=jnp.sin, out_shardings=on("data"))(jnp.arange(8.)).sharding == on("data")


def test_where_a_function_becomes_a_part_of_its_caller():
    ways = {jax.Inline.JAX_EARLY: 0, jax.Inline.JAX_LATE: 0, jax.Inline.AUTO: 1, jax.Inline.XLA_LATE: 1,
            True: 0, False: 1}
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
    rows = jax.NamedSharding(jax.make_mesh((4,), ("data",), devices=jax.devices()[:4]), jax.P("data", None))
    found = jax.nn.one_hot(jnp.arange(8), 3, out_sharding=rows)
    assert found.sharding == rows and found.tolist() == np.eye(8, 3).tolist()
