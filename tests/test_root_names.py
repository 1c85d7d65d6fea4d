"""Small names at the root of the package, and of its smallest modules."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp


def test_what_things_are_called():
    assert isinstance(jax.devices()[0], jax.Device) and isinstance(jnp.ones(2).addressable_shards[0], jax.Shard)
    assert jax.version.__version__ == jax.__version__ == ".".join(map(str, jax.__version_info__))
    assert jax.version.__version_info__ == jax.__version_info__ and jax.lib.__version__.startswith("0.1")
    assert jax.process_indices() == jax.host_ids("cpu") == [0]
    assert (jax.host_count(), jax.host_id()) == (jax.process_count(), jax.process_index()) == (1, 0)
    grads = jax.grad(lambda n, x: x * n, argnums=0, allow_int=True)(3, 2.0)
    assert grads.dtype == jax.float0 == jax.dtypes.float0


def test_meshes_in_use():
    mesh = jax.make_mesh((2,), ("x",))
    assert jax.get_mesh().axis_names == ()
    with jax.set_mesh(mesh):
        assert jax.get_mesh() == mesh and jax.get_abstract_mesh().axis_names == ("x",)
    with jax.use_abstract_mesh(mesh.abstract_mesh):
        assert jax.get_abstract_mesh().axis_sizes == (2,)


def test_families_of_errors():
    e = jax.errors
    for kind in (e.ConcretizationTypeError, e.TracerArrayConversionError, e.TracerIntegerConversionError, e.KeyReuseError,
                 e.UnexpectedTracerError, e.TracerBoolConversionError):
        assert issubclass(kind, e.JAXTypeError) and issubclass(kind, TypeError)
    assert issubclass(e.NonConcreteBooleanIndexError, e.JAXIndexError) and issubclass(e.JAXIndexError, IndexError)
    program = jax.make_jaxpr(jnp.sin)(np.float32(1))
    wrong = program.replace(outvars=[jax.core.Var(jax.core.ShapedArray((), np.dtype("float32")))])
    with pytest.raises(e.JaxprTypeError, match="not bound"):
        jax.core.check_jaxpr(wrong)
