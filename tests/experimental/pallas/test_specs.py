"""What is said of a kernel beside its function: specs as they are written, and what is no spec."""
import numpy as np
import pytest

from hlotrace.experimental import pallas as pl
from hlotrace.experimental.pallas import specs

pytestmark = pytest.mark.quick


def place(i, j):
    return i, j


def test_a_block_has_its_shape_as_a_tuple_and_may_be_changed():
    spec = pl.BlockSpec([8, None], place)
    assert spec.block_shape == (
        8, None) and spec.index_map is place and spec.memory_space is None and spec.pipeline_mode is None
    assert pl.BlockSpec().block_shape is None and pl.BlockSpec(memory_space=pl.ANY).memory_space is pl.ANY
    other = spec.replace(block_shape=(4, 4))
    assert (other.block_shape, other.index_map, spec.block_shape) == ((4, 4), place, (8, None))
    assert pl.BlockSpec((8,), place) == pl.BlockSpec([8], place) != pl.BlockSpec((8,))


@pytest.mark.parametrize("arguments", [(place, (8, 8)), ((8, 8), (0, 0)), (place,)])
def test_a_function_in_the_place_of_a_shape_is_refused(arguments):
    with pytest.raises(TypeError, match=r"BlockSpec\(block_shape, index_map\): a shape and a function, not"):
        pl.BlockSpec(*arguments)


@pytest.mark.parametrize("grid, wanted", [(3, (3,)), ((2, 3), (2, 3)), ([4], (4,)), ((), ())])
def test_a_grid_is_a_tuple(grid, wanted):
    spec = pl.GridSpec(grid, [pl.BlockSpec()], pl.BlockSpec((8,)), (pl.ANY((2,), "float32"),))
    assert spec.grid == wanted and len(spec.in_specs) == 1 and spec.out_specs.block_shape == (8,)
    assert repr(spec).startswith(f"GridSpec(grid={wanted}, in_specs=(BlockSpec(")
    spec = pl.GridSpec(grid, [pl.BlockSpec()], [pl.BlockSpec()], [pl.ANY((2,), "float32")])
    assert {type(specs) for specs in (spec.in_specs, spec.out_specs, spec.scratch_shapes)} == {tuple}


def test_what_is_not_given_says_so():
    spec = pl.GridSpec()
    assert spec.grid == () and spec.in_specs is spec.out_specs is specs.no_block_spec and repr(
        spec.in_specs) == "NoBlockSpec"
    assert spec.scratch_shapes == ()


@pytest.mark.parametrize("space", list(pl.MemorySpace))
def test_scratch_is_in_a_memory(space):
    scratch = space([8, 128], "bfloat16")
    assert (scratch.shape, scratch.dtype.name, scratch.memory_space, str(space)) == (
        (8, 128), "bfloat16", space, space.value)
    assert scratch == space((8, 128), np.dtype("bfloat16")) and hash(scratch) == hash(
        space((8, 128), "bfloat16"))


def test_dimensions_of_blocks_are_values():
    assert pl.Element(4) == pl.Element(4, (0, 0)) != pl.Element(4, (1, 0)) and pl.Blocked(4) != pl.Element(4)
    assert pl.squeezed == pl.Squeezed() and pl.BoundedSlice(3).block_size == specs.Indirect(3).block_size == 3
    assert pl.Buffered(2) == pl.Buffered(2, False, None) and pl.Buffered(2, True) != pl.Buffered(2)
    assert pl.CostEstimate(1, 2, 3) == (1, 2, 3, 0)
