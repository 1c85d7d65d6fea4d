"""Classes that say themselves how vmap slices their values."""
import dataclasses

import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.interpreters import batching


@dataclasses.dataclass
class Table:
    """Rows, and a scale that is the same for all of them."""
    rows: object
    scale: object
    name: str


@dataclasses.dataclass
class Outer:
    table: Table


@pytest.fixture
def tables():
    batching.register_vmappable(
        Table, int, int, lambda cont, _, x, axis: Table(cont(x.rows, axis), cont(x.scale, None), x.name),
        lambda cont, size, x, axis: Table(cont(size, x.rows, axis), cont(size, x.scale, None), x.name), None)
    batching.register_vmappable(Outer, int, int, lambda cont, _, x, axis: Outer(cont(x.table, axis)),
                                lambda cont, size, x, axis: Outer(cont(size, x.table, axis)))
    yield
    batching.unregister_vmappable(Table)
    batching.unregister_vmappable(Outer)


X = Table(jnp.arange(6.0).reshape(2, 3), jnp.array(2.0), "x")


def scaled(x, by):
    return Table(x.rows * x.scale * by, x.scale + 1, x.name), by


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x, {"a": jnp.ones(3)}], lambda x: Outer(x)])
def test_classes_that_say_how_they_are_mapped(tables, wrap):
    def f(tree, by):
        x, = jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, Table))[:1]
        x = getattr(x, "table", x)
        assert x.rows.shape == (2,) and x.scale.shape == () and x.name == "x"
        return scaled(x, by)
    axes = [1, 0] if isinstance(wrap(X), list) else 1
    out, by = jax.vmap(f, in_axes=(axes, 0), out_axes=(1, 0))(wrap(X), jnp.arange(3.0))
    assert out.rows.tolist() == (X.rows * 2 * jnp.arange(3.0)).tolist() and by.tolist() == [0, 1, 2]
    assert float(out.scale) == 3 and out.name == "x"


def test_they_are_mapped_in_maps_derivatives_and_programs(tables):
    twice = jax.vmap(lambda y: jax.vmap(lambda x: x.rows.sum() * y)(X))(jnp.arange(4.0))
    assert twice.tolist() == (jnp.arange(4.0)[:, None] * jnp.array([3.0, 12.0])).tolist()
    total = jax.jit(jax.grad(lambda y: jax.vmap(lambda x: x.rows.sum() * y)(X).sum()))
    assert float(total(2.0)) == 15
    named = jax.vmap(lambda x: jax.lax.axis_index("i") + x.rows.sum(), axis_name="i")(X)
    assert named.tolist() == [3, 13]


def test_what_is_wrong_with_them(tables):
    with pytest.raises(ValueError, match="inconsistent sizes"):
        jax.vmap(scaled)(X, jnp.ones(3))
    with pytest.raises(NotImplementedError, match="axis_size_type"):
        batching.register_vmappable(int, int, tuple, None, None, None)
    batching.unregister_vmappable(Table)
    with pytest.raises(TypeError, match="Table"):
        jax.vmap(scaled)(X, jnp.ones(2))
    batching.register_vmappable(Table, int, int, lambda cont, index, x, axis: index(), None)
    with pytest.raises(NotImplementedError, match="axis_index"):
        jax.vmap(scaled)(X, jnp.ones(2))
