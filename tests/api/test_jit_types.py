"""jit takes a ShapeDtypeStruct of which the function reads the shape and the dtype; and shardings over the
abstract mesh in use."""
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp

S = jax.ShapeDtypeStruct
traces = []


@jax.jit
def f(tree, x):
    traces.append(tree)
    return jnp.zeros(tree["like"].shape, tree["like"].dtype) + x


def test_a_type_among_the_arguments():
    for shape in (2,), (2,), (3,):
        assert f({"like": S(shape, "int32")}, 1).tolist() == [1] * shape[0]
    assert [t["like"].shape for t in traces] == [(2,), (3,)]
    assert jax.grad(lambda x: f({"like": S((2,), "float32")}, x).sum())(1.) == 2
    static = jax.jit(lambda s, x, n: jnp.ones(s.shape) * x + n, static_argnums=2)
    assert static(S((2,), "float32"), 1., 3).tolist() == [4, 4]
    # an argument of `lower` is the type of an array
    assert len(static.lower(S((2,), "float32"), 1., 3).args_info[0]) == 2


def test_types_are_no_arrays():
    for call in (lambda: f({"like": S((2,), "int32")}, "a"),
                 lambda: jax.jit(lambda s: s + 1)(S((2,), "int32"))):
        with pytest.raises(TypeError,
                           match="Argument 'text' of type <class 'str'>|type <class 'str'> and was passed to the function at path x|ShapeDtypeStruct"):
            call()


def test_shardings_over_the_abstract_mesh():
    mesh = jax.make_mesh((1,), ("x",))
    with jax.set_mesh(mesh):
        sharding = jax.NamedSharding(jax.sharding.get_abstract_mesh(), jax.P("x"))
        for named in {"out_shardings": sharding}, {"in_shardings": sharding}, {
            "in_shardings": sharding, "out_shardings": sharding}:
            found = jax.jit(lambda x: x + 1, **named)(jnp.ones(2)).sharding
            assert found.mesh is mesh and (found.spec == jax.P("x") or "out_shardings" not in named)
