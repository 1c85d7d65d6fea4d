"""extend.backend's clients and caches, extend.lowering, pxla's options, batching's batch_subtrace."""
import functools
import types

import forked
import numpy as np
import pytest
from jaxlib._hlo import HloSharding

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.extend import backend, linear_util, lowering, sharding as xla_sharding
from hlotrace.extend.core import primitives
from hlotrace.interpreters import batching, mlir, pxla


def test_caches_of_others_are_emptied():
    cache = functools.lru_cache(lambda n: n + 1)
    backend.register_backend_cache(cache, "a test")
    cache(1)
    jax.clear_caches()
    assert cache.cache_info().currsize == 0
    with pytest.raises(TypeError, match="cache_clear"):
        backend.register_backend_cache({}, "a test")


TEXT = "func.func @f(%x: tensor<f32>) { %0 = chlo.tan %x : tensor<f32> -> tensor<f32> return }"
PROGRAM = """
import hlotrace as jax
from hlotrace.extend import backend
import hlotrace.numpy as jnp
before = jnp.arange(3) + 1
assert len(jax.devices()) == 1
backend.clear_backends()
jax.config.update("jax_num_cpu_devices", 3)
assert len(jax.devices()) == 3 and backend.get_default_device() is jax.devices()[0]
x = jax.device_put(jnp.arange(3), jax.devices()[2])
assert (jax.jit(jnp.sin)(x) + x).devices() == {jax.devices()[2]} and before.tolist() == [1, 2, 3]
assert jnp.ones(3).devices() == {jax.devices()[0]} and float(jax.jit(lambda x: x.sum())(jnp.ones(3))) == 3
"""


def test_clients_are_made_again():
    forked.run(PROGRAM, check=True, XLA_FLAGS="")


FACTORIES = """
import hlotrace as jax
from hlotrace.extend import backend
import hlotrace.numpy as jnp
from hlotrace.runtime import binding

def none():
    raise RuntimeError("no such device")
backend.register_backend_factory("broken", none, priority=9)
three = lambda: binding._jax.get_tfrt_cpu_client(asynchronous=True, num_devices=3)
backend.register_backend_factory("mine", three, priority=5)
assert len(jax.devices()) == 3 == len(jax.devices("mine")) and len(jax.devices("cpu")) == 1
assert {"mine", "cpu"} <= set(backend.backends()) and "broken" not in backend.backends()
assert (jnp.arange(3) + jax.device_put(1, jax.devices("mine")[0])).devices() == {jax.devices("mine")[0]}
"""


def test_clients_of_users():
    forked.run(FACTORIES, check=True, XLA_FLAGS="")
    with pytest.raises(NotImplementedError, match="experimental"):
        backend.register_backend_factory("mine", None, experimental=True)


def test_shardings_of_xla():
    devices = jax.devices()[:8]
    for text, shape in (("{devices=[2,4]<=[8]}", (4, 1)), ("{replicated}", (8, 4)),
                        ("{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}", (2, 4))):
        hlo = HloSharding.from_string(text)
        for given in hlo, hlo.to_proto():
            sharding = xla_sharding.GSPMDSharding(devices, given)
            assert isinstance(sharding, xla_sharding.GSPMDSharding) and sharding.shard_shape((8, 4)) == shape
    assert xla_sharding.GSPMDSharding.get_replicated(devices).is_fully_replicated
    with pytest.raises(ValueError, match="is for 8 devices"):
        xla_sharding.GSPMDSharding(devices[:2], HloSharding.from_string("{devices=[2,4]<=[8]}"))
    with pytest.raises(NotImplementedError, match="neither replicated"):
        xla_sharding.GSPMDSharding(devices, HloSharding.from_string("{manual}"))


def test_contexts():
    assert primitives.random_seed_p in {e.primitive for e in jax.make_jaxpr(jax.random.key)(3).eqns}
    assert lowering.LoweringRuleContext is mlir.LoweringRuleContext
    for context in lowering.JaxIrContext(), mlir.make_ir_context():
        assert isinstance(context, lowering.JaxIrContext)
        with context:
            assert "chlo" in str(mlir.ir.Module.parse(TEXT))
    mlir.ir.Context().append_dialect_registry(lowering.upstream_dialects)


def test_options_of_compilations():
    module, devices = jax.jit(jnp.sin).lower(1.0).compiler_ir(), np.array(jax.devices()[:1])
    client = devices[0].client
    options = pxla.create_compile_options(module, True, [False], [True], client, devices,
                                          {"xla_cpu_enable_fast_math": False})
    build = options.executable_build_options
    assert options.parameter_is_tupled_arguments and build.num_partitions == 1
    assert list(build.allow_spmd_sharding_propagation_to_output) == [True]
    with pytest.raises(ValueError, match="2 partitions, but the module says 1"):
        pxla.create_compile_options(module, False, [False], [True], client, np.repeat(devices, 2), None)
    with pytest.raises(ValueError, match="another client"):
        pxla.create_compile_options(module, False, [False], [True], types.SimpleNamespace(platform="x"), devices, None)


def test_a_function_over_an_axis():
    axis = types.SimpleNamespace(size=3, name="i")
    fun = linear_util.wrap_init(lambda x, y: [x * y, y, jax.lax.psum(x, "i")])
    for dims in ((0, None), lambda: (0, None)):
        mapped, out_dims = batching.batch_subtrace(fun, None, axis, dims)
        outs = mapped.call_wrapped(jnp.arange(3.0), 2.0)
        assert out_dims() == [0, None, None] and outs[0].tolist() == [0, 2, 4] and float(outs[2]) == 3
