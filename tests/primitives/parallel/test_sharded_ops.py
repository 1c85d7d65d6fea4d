"""Every row of the op table over several devices: sharding an operand never changes a value.

Each axis that divides is split in turn, then two at once over two mesh axes, all in one program.
"""
import functools

import numpy as np
import pytest
from mesh8 import devices
from op_table import ROWS
from op_table.row import listed
from row_checks import assert_all_near, rows, rows_together

import hlotrace
from hlotrace.core.primitive import PRIMITIVES, fact_of
from hlotrace.sharding import Mesh, NamedSharding, P


@functools.cache
def square():
    """Devices 0 to 3 as 2 rows along "x", of 2 along "y"."""
    return Mesh(np.array(devices()[:4]).reshape(2, 2), ("x", "y"))


def mesh_for(row, args):
    """The mesh that the row's own program names, as a program has one set of devices; else the square."""
    named = fact_of(hlotrace.make_jaxpr(lambda *args: listed(row.fun(*args)))(*args).jaxpr, "meshes")
    return named[0] if named else square()


def divisible(args, by=2):
    """(operand, axis) for every axis that can be split."""
    return [(i, axis) for i, x in enumerate(args) for axis, size in enumerate(x.shape) if size and size % by == 0]


def placements(args, mesh):
    """Lists of PartitionSpecs for the operands: one axis split at a time, then two."""
    axes = divisible(args, max(mesh.axis_sizes))
    first, *more = mesh.axis_names
    choices = [{place: first} for place in axes]
    if len(axes) > 1 and more:
        choices.append(dict(zip(axes, (first, more[0]))))
    return [[P(*(names.get((i, axis)) for axis in range(x.ndim))) for i, x in enumerate(args)] for names in choices]


def can_be_split(row):
    return bool(divisible(row.args))


@rows_together(can_be_split)
def of_split_operands(row):
    args = row.sample(row.base)
    mesh = mesh_for(row, args)
    operands = [[hlotrace.device_put(x, NamedSharding(mesh, spec)) for x, spec in zip(args, specs)]
                for specs in placements(args, mesh)]
    return lambda *operands: [listed(row.fun(*xs)) for xs in operands], operands


@rows(can_be_split)
def test_sharded_is_unsharded(row):
    args = row.sample(row.base)
    mesh = mesh_for(row, args)
    if not placements(args, mesh):
        pytest.skip(f"no axis can be split over {mesh}, which the row's program names")
    results, = of_split_operands(row)
    want = row.expect(args)
    for got in results:
        assert all(x.sharding.device_set == set(mesh.devices.flat) for x in got)
        assert_all_near(got, want, row.rtol)


def test_most_rows_have_an_axis_to_split():
    assert sum(bool(divisible(row.args)) for row in ROWS) > 0.6 * len(ROWS)


@pytest.mark.parametrize("name, dtype", [
    ("reduce_and", bool), ("reduce_xor", bool), ("reduce_or", np.uint8), ("reduce_max", np.complex64),
    ("reduce_min", np.complex64), ("reduce_max", np.int8), ("reduce_prod", np.complex64), ("reduce_sum", np.float16)])
def test_reductions_along_a_split_axis_for_other_dtypes(name, dtype):
    """Not every reduction is one that devices can do together."""
    x = np.array([[3, 2], [1, 5], [0, 4], [6, 1]]).astype(dtype)
    apply = hlotrace.jit(functools.partial(PRIMITIVES[name].bind, axes=(0,)))
    for spec in (P("x"), P(("x", "y")), P("y", "x")):
        np.testing.assert_array_equal(apply(hlotrace.device_put(x, NamedSharding(square(), spec))), apply(x))


@pytest.mark.parametrize("window, stride", [(2, 1), (3, 2), (4, 2), (5, 2)])
def test_gradients_of_pooling_with_overlapping_windows(window, stride):
    """XLA's partitioner alone loses those where a value stands in windows two or more apart."""
    def loss(x):
        return (hlotrace.lax.reduce_window(x, -np.inf, hlotrace.lax.max, (window,), (stride,), "VALID") ** 2).sum()
    grad, x = hlotrace.jit(hlotrace.grad(loss)), np.random.default_rng(0).normal(size=16).astype(np.float32)
    for spec in (P("x"), P(("x", "y"))):
        np.testing.assert_allclose(grad(hlotrace.device_put(x, NamedSharding(square(), spec))), grad(x), rtol=1e-6)
