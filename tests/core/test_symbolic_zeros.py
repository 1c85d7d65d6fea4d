"""What rules see in place of values: marks and lists without zeros, unknown operands, the axis of a vmap."""
import itertools

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.symbolic_zeros import (
    MappedAxis, UndefinedPrimal, drop_zeros, fill_zeros, is_undefined_primal, nonzero_mask)

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("values", list(itertools.product((None, 0, 1.5), repeat=3)), ids=str)
def test_filling_is_the_inverse_of_dropping(values):
    """A zero that is a number is no symbolic zero."""
    marks, left = nonzero_mask(values), drop_zeros(values)
    assert marks == tuple(v is not None for v in values) and sum(marks) == len(left)
    assert fill_zeros(left, marks) == list(values)
    assert fill_zeros(iter(left), iter(marks)) == list(values)


def test_an_unknown_operand_has_the_type_of_what_it_is_in_place_of():
    aval = jax.typeof(np.ones((2, 3), np.float32))
    unknown = UndefinedPrimal(aval)
    assert (unknown.shape, unknown.dtype, unknown.ndim, unknown.size) == ((2, 3), np.float32, 2, 6)
    assert is_undefined_primal(unknown) and not any(map(is_undefined_primal, (None, aval, np.ones(3), 0.0)))


@pytest.mark.parametrize("function", [lambda x: x * x, lambda x: x[::-1] * x, lambda x: x * jnp.sin(x)])
def test_what_combines_two_unknown_operands_is_not_linear(function):
    with pytest.raises(TypeError, match="not linear in its arguments"):
        jax.linear_transpose(function, np.ones(3, np.float32))(np.ones(3, np.float32))


def test_an_axis_is_its_size_names_and_sharding():
    axis = MappedAxis(4, "i")
    assert axis == MappedAxis(4, "i") and hash(axis) == hash(MappedAxis(4, "i"))
    for other in (MappedAxis(5, "i"), MappedAxis(4, "j"), MappedAxis(4), MappedAxis(4, "i", "data"),
                  MappedAxis(4, "i", None, "split"), (4, "i", None, None)):
        assert axis != other
