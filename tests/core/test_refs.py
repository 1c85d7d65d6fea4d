"""Refs as objects: whose value they hold, where they may be used, what becomes of the value when a call takes it."""
import copy

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.avals import ShapedArray
from hlotrace.core.config import override
from hlotrace.core.refs import AbstractRef, Ref

F3 = ShapedArray((3,), "float32")


@pytest.fixture
def ref():
    return jax.new_ref(jnp.arange(3.0))


@pytest.mark.quick
def test_types_of_refs():
    weak = AbstractRef(F3.update(weak_type=True))
    assert AbstractRef(F3) == AbstractRef(F3) != weak and weak.strip_weak_type() == AbstractRef(F3)
    assert AbstractRef(F3) != F3 and AbstractRef(F3, kind="no_grad_no_remat") != AbstractRef(F3) != AbstractRef(F3, "here")
    assert len({AbstractRef(F3), AbstractRef(F3), weak}) == 2 and (AbstractRef(F3).shape, AbstractRef(F3).ndim) == ((3,), 1)
    assert (str(AbstractRef(F3)), AbstractRef(F3).str_short(True)) == ("Ref{float32[3]}", "Ref{f32[3]}")


@pytest.mark.quick
def test_what_a_ref_says_of_itself():
    ref = Ref(np.zeros(3, np.float32))
    assert (ref.shape, ref.dtype, ref.ndim, ref.size, len(ref), ref.aval) == ((3,), "float32", 1, 3, 3, AbstractRef(F3))
    with pytest.raises(TypeError, match=r"Ref\{float32\[\]\}|scalar"):
        len(Ref(np.float32(1)))
    for wrong, words in [(lambda: iter(ref), "not iterable"), (lambda: np.asarray(ref), "is not an array. Read")]:
        with pytest.raises(TypeError, match=words):
            wrong()


def test_a_value_is_given_up_once(ref):
    assert ref.give_up().tolist() == [0, 1, 2] and repr(ref) == "Ref{float32[3]} (freed)"
    for use in (lambda: ref[...], ref.give_up, lambda: ref.value()):
        with pytest.raises(ValueError, match="was given up by freeze or free_ref"):
            use()


def test_a_ref_is_of_its_trace(ref):
    kept = []

    def f(x):
        kept.append(jax.new_ref(x))
        return kept[0][...]
    assert jax.jit(f)(1.0) == 1
    with pytest.raises(jax.errors.UnexpectedTracerError, match="was made in jit of f, and is used outside"):
        kept[0][...]
    with pytest.raises(ValueError, match="was made outside of .* and is whole only there"):
        jax.make_jaxpr(lambda x: ref.value())(1.0)


def test_a_call_takes_the_value_and_gives_it_back(ref):
    before = ref._value
    assert ref.take() is before
    with pytest.raises(ValueError, match="both closed over and passed as an argument"):
        ref[...]
    ref.keep(before)
    assert ref[...].tolist() == [0, 1, 2]
    taken = jnp.arange(3.0) + 1
    taken.delete()
    ref.take()
    ref.keep(taken)
    with pytest.raises(ValueError, match="has lost its value: a call that wrote to it in place has failed"):
        ref[...]


@pytest.mark.parametrize("option", ["jax_debug_nans", "jax_debug_infs", "hlotrace_check_bounds", None])
def test_a_value_is_lent_as_a_copy_where_it_is_needed_again(option, ref):
    """By somebody else who holds it, or where a check may fail after the call."""
    assert ref.lend() is not ref._value     # the array was the caller's
    ref.put(jnp.arange(3.0) + 5)
    if option is None:
        assert ref.lend() is ref._value
        other = copy.copy(ref)
        assert ref.lend() is not ref._value and other[...].tolist() == [5, 6, 7]
    else:
        with override(option, True):
            assert ref.lend() is not ref._value and ref.lend().tolist() == [5, 6, 7]


@pytest.mark.parametrize("place", [5, jnp.array([1, 7])], ids=["int", "array"])
def test_an_index_out_of_bounds_leaves_the_value(place, ref):
    ref[0] = 4.0        # nothing else holds the value now
    with override("hlotrace_check_bounds", True), pytest.raises(IndexError):
        jax.jit(lambda ref, i: ref.__setitem__(i, 9.0))(ref, place)
    assert ref[...].tolist() == [4, 1, 2]
