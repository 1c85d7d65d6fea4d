"""jax.extend: names of primitives, tokens, bytes of modules and shardings, options of compilers."""
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.extend import backend, mlir as extend_mlir, sharding as xla_sharding
from hlotrace.extend.core import AbstractToken, Token, primitives
from hlotrace.interpreters import mlir


def test_names_of_primitives_and_tokens():
    assert primitives.linear_solve_p is primitives.custom_linear_solve_p and lax.eq_to_p is primitives.eq_to_p
    assert lax.split_p is lax.slice_p and lax.scatter_sub_p is lax.scatter_add_p
    assert isinstance(AbstractToken(), AbstractToken) and not isinstance(jax.typeof(1.0), AbstractToken)
    assert isinstance(lax.create_token(), Token)


def test_bytes_of_modules_and_shardings():
    text = jax.jit(jnp.sin).lower(1.0).as_text()
    artifact = extend_mlir.serialize_portable_artifact(text, "1.0.0")
    with mlir.make_ir_context():
        assert "sine" in str(extend_mlir.deserialize_portable_artifact(artifact))
    assert callable(extend_mlir.hlo_to_stablehlo) and callable(extend_mlir.refine_polymorphic_shapes)
    assert extend_mlir.lower_with_sharding_in_types(None, "op", None) == "op"
    replicated = xla_sharding.get_op_sharding_from_serialized_proto(b"")
    again = xla_sharding.get_hlo_sharding_from_serialized_proto(replicated.SerializeToString())
    assert again.is_replicated() and isinstance(xla_sharding.get_serialized_proto_from_hlo_sharding(again), bytes)


def test_options_of_compilers():
    options = backend.get_compile_options(1, 2, jax.devices()[:2], {"xla_cpu_enable_fast_math": False})
    assert (options.num_replicas, options.num_partitions) == (1, 2)
    assert backend.get_compile_options(1, 1).num_partitions == 1 and backend.backend_xla_version() is None
    for options, error in (({"device_assignment": [0, 1, 2]}, ValueError), ({"fdo_profile": b"x"}, NotImplementedError)):
        with pytest.raises(error, match="get_compile_options"):
            backend.get_compile_options(1, 2, **options)
