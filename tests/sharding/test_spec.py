"""PartitionSpec: a tuple of axes, with words for what it cannot hold."""
import copy
import pickle

import pytest
from stand_ins import MESH, U, raises

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.sharding import NamedSharding, P, PartitionSpec

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(("spec", "shown", "entries"), [
    (P(), "P()", ()),
    (P("data"), "P('data',)", ("data",)),
    (P("data", None), "P('data', None)", ("data", None)),
    (P(("data", "model")), "P(('data', 'model'),)", (("data", "model"),)),
    (P(["data", "model"]), "P(('data', 'model'),)", (("data", "model"),)),
    (P(("data",), ()), "P('data', None)", ("data", None)),
    (P(U, "data"), "P(UNCONSTRAINED, 'data')", (U, "data")),
    (P("a") + P("b"), "P('a', 'b')", ("a", "b")),
    (P("a") + ("b",), "P('a', 'b')", ("a", "b")),
    (("a",) + P("b"), "P('a', 'b')", ("a", "b")),
    (P("a", ...), "P('a', Ellipsis)", ("a", ...)),
    (P("a").update(partitions=(None, ["b", "c"])), "P(None, ('b', 'c'))", (None, ("b", "c"))),
    (P("a", unreduced=set()).update(), "P('a',)", ("a",)),
])
def test_spec_reads_like_a_tuple(spec, shown, entries):
    assert repr(spec) == shown
    assert tuple(spec) == spec.partitions == spec[:] == entries and len(spec) == len(entries)
    for same in (PartitionSpec(*entries), pickle.loads(pickle.dumps(spec)), copy.deepcopy(spec)):
        assert same == spec and hash(same) == hash(spec)


def test_specs_differ_as_written():
    assert P("a") != P("a", None) and P("a") != ("a",) and P("a", "b") != P(("a", "b"))
    assert P("a", None).index(None) == 1 and P("a", None).count("a") == 1


def test_what_a_spec_does_not_say():
    assert P("a").unreduced == P().reduced == frozenset()
    with raises(TypeError, "unexpected keyword argument 'axes'"):
        P("c").update(axes=("a",))
    with pytest.raises(AttributeError):
        P("a").partitions = ("b",)


@pytest.mark.parametrize("take", [
    lambda s: jax.device_put(jnp.ones((4, 4)), s), lambda s: jax.jit(lambda x: x, in_shardings=s)(jnp.ones((4, 4))),
    lambda s: jax.jit(lambda x: x, out_shardings=s)(jnp.ones((4, 4)))])
def test_only_a_constraint_leaves_a_dimension_to_the_compiler(take):
    with raises(ValueError, "P('data', UNCONSTRAINED) leaves dimension 1 to the compiler (UNCONSTRAINED), which only "
                            "with_sharding_constraint can"):
        take(NamedSharding(MESH, P("data", U)))


def test_an_ellipsis_is_no_axis():
    with raises(ValueError, "Resource axis: Ellipsis of P(Ellipsis, 'data') is not found in mesh: ('data', 'model')"):
        NamedSharding(MESH, P(..., "data"))


def test_spec_is_a_leaf():
    assert jax.tree.leaves({"w": P("a", "b"), "b": (P(), P("a"))}) == [P(), P("a"), P("a", "b")]


@pytest.mark.parametrize("entry", [1, (("a",),), ("a", None), MESH])
def test_bad_entry_of_a_spec_is_named(entry):
    with raises(TypeError, f"entry 1 is {entry!r}; an entry is None, the name of a mesh axis"):
        P(None, entry)
