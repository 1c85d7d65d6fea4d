"""Rows of the operations that move values, and of those that read and write at run-time positions."""
import numpy as np

from hlotrace.core.avals import aval_of
from hlotrace.primitives.arrays.gather_numbers import (
    GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers)
from hlotrace.primitives.arrays.reduce import scalar_program

from .row import Row, between, fails, fixed, op

ALL = "fciub"
ROWS = []


def row(name, ref, *args, kinds=ALL, bad=(), **fields):
    params = fields.pop("params", {})
    ROWS.append(Row(name, op(name, **params), ref, args, kinds, bad=tuple(bad), **fields))


# --- shapes -------------------------------------------------------------------------------------------------

X23, X234 = between(-3, 3, 2, 3), between(-3, 3, 2, 3, 4)

row("broadcast_in_dim", lambda x: np.broadcast_to(x[:, None], (2, 4, 3)), X23,
    params={"shape": (2, 4, 3), "broadcast_dimensions": (0, 2)}, bad=[
        fails(TypeError, "dimension sizes must either be 1", "broadcast_in_dim", (2,), shape=(3,),
              broadcast_dimensions=(0,)),
        fails(TypeError, "must have length equal to operand ndim", "broadcast_in_dim", (2,), shape=(2,),
              broadcast_dimensions=()),
        fails(ValueError, "strictly increasing", "broadcast_in_dim", (2, 2), shape=(2, 2),
              broadcast_dimensions=(1, 0))])
row("broadcast_in_dim", lambda x: np.broadcast_to(x, (3, 4)), between(-3, 3, 3, 1), variant="of size one",
    params={"shape": (3, 4), "broadcast_dimensions": (0, 1)})
row("broadcast_in_dim", lambda x: np.full((2, 2), x), np.float64(2), variant="of a scalar",
    params={"shape": (2, 2), "broadcast_dimensions": ()})
row("reshape", lambda x: x.reshape(3, 2), X23, params={"new_sizes": (3, 2), "dimensions": None}, bad=[
    fails(TypeError, r"cannot reshape array of shape \(2, 3\)", "reshape", (2, 3), new_sizes=(4,),
          dimensions=None)])
row("squeeze", lambda x: x.reshape(3), between(-3, 3, 1, 3, 1), params={"dimensions": (0, 2)}, bad=[
    fails(ValueError, "size not equal to one", "squeeze", (2, 3), dimensions=(0,))])
row("transpose", lambda x: x.transpose(2, 0, 1), X234, params={"permutation": (2, 0, 1)}, bad=[
    fails(TypeError, "isn't a permutation", "transpose", (2, 3), permutation=(0, 0))])
row("rev", lambda x: x[::-1, :, ::-1], X234, params={"dimensions": (0, 2)}, bad=[
    fails(ValueError, "must all be less than operand ndim", "rev", (2, 3), dimensions=(2,))])
row("slice", lambda x: x[1:5:3, 0:2], between(-3, 3, 6, 4), bad=[
    fails(TypeError, "must be less than or equal to operand shape", "slice", (3,), start_indices=(1,),
          limit_indices=(4,),
          strides=None),
    fails(TypeError, "must each have one entry", "slice", (3,), start_indices=(), limit_indices=(),
          strides=None)],
    params={"start_indices": (1, 0), "limit_indices": (5, 2), "strides": (3, 1)})
row("slice", lambda x: x[1:1], X23,
    params={"start_indices": (1, 0), "limit_indices": (1, 3), "strides": None},
    variant="of nothing")
row("pad", lambda x, v: np.pad(x[:, :2], ((1, 2), (0, 0)), constant_values=v), X23, np.float64(2),
    params={"padding_config": ((1, 2, 0), (0, -1, 0))}, bad=[
        fails(TypeError, "same dtypes", "pad", (2,), np.int32(0), padding_config=((0, 0, 0),)),
        fails(TypeError, "padding_value must be a scalar", "pad", (2,), (1,), padding_config=((0, 0, 0),)),
        fails(ValueError, "not at least 0", "pad", (2,), (), padding_config=((-3, 0, 0),))])
row("pad", lambda x, v: np.array([v, x[0], v, v, x[1], v, v, x[2]]), between(-3, 3, 3), np.float64(2),
    params={"padding_config": ((1, 0, 2),)}, variant="interior")
row("concatenate", lambda *xs: np.concatenate(xs, 1), X23, between(-3, 3, 2, 1), between(-3, 3, 2, 2),
    params={"dimension": 1}, bad=[
        fails(TypeError, "shapes that differ in dimensions other", "concatenate", (2, 3), (3, 3),
              dimension=1),
        fails(ValueError, "out of bounds", "concatenate", (2,), (2,), dimension=1)])
row(
    "interleave",
    lambda x, y: np.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1], x[:, 2]], 1),
    X23,
    between(-3, 3, 2, 2),
    params={"dimension": 1},
    bad=[
        fails(TypeError, "same dtypes", "interleave", (2,), np.zeros(2, np.int32), dimension=0),
        fails(ValueError, "as long as the second", "interleave", (2,), (3,), dimension=0),
        fails(ValueError, "as long as the second", "interleave", (2, 3), (2, 2), dimension=0),
    ],
)
row(
    "interleave",
    lambda x, y: np.stack([x, y], 1).reshape(4, 3),
    X23,
    X23,
    params={"dimension": 0},
    variant="alike",
)
row("iota", lambda: np.broadcast_to(np.arange(3), (2, 3)), kinds="", bad=[
    fails(ValueError, "iota dimension must be between", "iota", dtype=np.dtype(np.int32), shape=(2, 3),
          dimension=2)],
    params={"dtype": np.dtype(np.int32), "shape": (2, 3), "dimension": 1})
row("copy", lambda x: x, X23)
row("optimization_barrier", lambda x, y: [x, y], X23, between(-3, 3, 4))

# --- slices at run-time positions ---------------------------------------------------------------------------

ONE, TWO = fixed(1), fixed(2)
BAD_STARTS = [
    fails(TypeError, "must have one entry for each axis", "dynamic_slice", (3, 3), ONE, slice_sizes=(1, 1)),
    fails(TypeError, "must be less than or equal to operand shape", "dynamic_slice", (3,), ONE,
          slice_sizes=(4,)),
    fails(TypeError, "must be scalars, and integers", "dynamic_slice", (3,), (), slice_sizes=(1,))]
row("dynamic_slice", lambda x, i, j: x[1:3, 2:3], between(-3, 3, 4, 5), ONE, TWO,
    params={"slice_sizes": (2, 1)},
    bad=BAD_STARTS)
row("dynamic_slice", lambda x, i: x[2:], between(-3, 3, 5), fixed(4), params={"slice_sizes": (3,)},
    variant="moved inside")
row("dynamic_slice", lambda x, i: x, between(-3, 3, 5), fixed(4), params={"slice_sizes": (5,)},
    variant="of all")


def updated(x, value, *where):
    x = x.copy()
    x[where] = value
    return x


row("dynamic_update_slice", lambda x, u, i, j: updated(x, u, slice(1, 3), slice(2, 3)), between(-3, 3, 4, 5),
    between(-3, 3, 2, 1), ONE, TWO, bad=[
        fails(TypeError, "requires arguments to have the same dtypes", "dynamic_update_slice", (3,),
              np.zeros(1, int), ONE),
        fails(TypeError, "must be smaller than operand shape", "dynamic_update_slice", (3,), (4,), ONE)])
row("dynamic_update_slice", lambda x, u, i: updated(x, u, slice(2, 5)), between(-3, 3, 5), between(-3, 3, 3),
    fixed(4), variant="moved inside")

# --- gather and scatter -------------------------------------------------------------------------------------

CLIP, FILL, PROMISE = (GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP,
                       GatherScatterMode.PROMISE_IN_BOUNDS)


def gathering(mode, sizes, *numbers, fill_value=None, unique=False):
    return dict(dimension_numbers=GatherDimensionNumbers(*numbers), slice_sizes=sizes,
                indices_are_sorted=False,
                unique_indices=unique, mode=mode, fill_value=fill_value)


def scattering(mode, *numbers, unique=False, **more):
    return dict(dimension_numbers=ScatterDimensionNumbers(*numbers), indices_are_sorted=False,
                unique_indices=unique,
                mode=mode, **more)


TABLE = between(-3, 3, 4, 3)
ROW_OF = ((1,), (0,), (0,))                     # window of one row; one index counts along axis 0
rows, rows_out = fixed([[2], [0], [2]]), fixed([[3], [-1], [4]])
row("gather", lambda x, i: x[i[:, 0]], TABLE, rows, params=gathering(PROMISE, (1, 3), *ROW_OF), bad=[
    fails(TypeError, "indices must have an integer type", "gather", (4, 3), (2, 1),
          **gathering(CLIP, (1, 3), *ROW_OF)),
    fails(TypeError, "Gather op has 1 elements in start_index_map", "gather", (4, 3),
          fixed([[1, 1]]), **gathering(CLIP, (1, 3), *ROW_OF)),
    fails(TypeError, "Slice size at index 1 in gather op is out of range", "gather", (4, 3), rows,
          **gathering(CLIP, (1, 4), *ROW_OF))])
row("gather", lambda x, i: x[[3, 0, 3]], TABLE, rows_out, params=gathering(CLIP, (1, 3), *ROW_OF),
    variant="clip")
row("gather", lambda x, i: np.stack([x[3], np.full(3, 7, x.dtype), np.full(3, 7, x.dtype)]), TABLE, rows_out,
    params=gathering(FILL, (1, 3), *ROW_OF, fill_value=7), variant="fill", kinds="fciu")
row("gather", lambda x, i: np.stack([x[a:a + 2, b:b + 2] for a, b in i]), TABLE, fixed([[2, 1], [0, 0]]),
    params=gathering(FILL, (2, 2), (1, 2), (), (0, 1)), variant="windows")
row("gather", lambda x, i: np.stack([x[n, i[n, :, 0]] for n in range(4)]), TABLE, fixed([[[1], [2]]] * 4),
    params=gathering(CLIP, (1, 1), (), (1,), (1,), (0,), (0,)), variant="batched")

UPDATES = between(-3, 3, 3, 3)
distinct = fixed([[2], [0], [3]])


def scattered(combine, valid=lambda i: 0 <= i < 4):
    def ref(x, indices, updates):
        x = x.copy()
        for (i,), u in zip(indices, updates):
            if valid(i):
                x[i] = combine(x[i], u)
        return x
    return ref


def scatters(name, combine, kinds, variants):
    for variant, indices, mode, unique in variants:
        row(name, scattered(combine), TABLE, indices, UPDATES, kinds=kinds, variant=variant,
            params=scattering(mode, *ROW_OF, unique=unique), bad=() if variant else BAD_SCATTERS[name])


BAD_SCATTERS = {name: [
    fails(TypeError, "Updates tensor must be of rank 2", name, (4, 3), rows, (3,),
          **scattering(CLIP, *ROW_OF)),
    fails(TypeError, "same dtypes", name, (4, 3), rows, np.zeros((3, 3), int), **scattering(CLIP, *ROW_OF)),
    fails(TypeError, "For dimension 1, updates bound is 4, operand bound is 3", name, (4, 3), rows, (3, 4),
          **scattering(CLIP, *ROW_OF))] for name in ("scatter", "scatter_add", "scatter_mul", "scatter_min",
                                                     "scatter_max")}
ONCE, TWICE = ("", distinct, PROMISE, True), ("twice in one place", rows, PROMISE, False)
DROPPED = ("dropped outside", rows_out, FILL, True)
scatters("scatter", lambda old, new: new, ALL, [ONCE, TWICE, DROPPED])
scatters("scatter_add", np.add, "fciu", [ONCE, TWICE, DROPPED])
scatters("scatter_mul", np.multiply, "fciu", [ONCE, DROPPED])
scatters("scatter_min", np.minimum, "fiub", [ONCE, TWICE])
scatters("scatter_max", np.maximum, "fiub", [ONCE, TWICE])
row("scatter_mul", scattered(np.multiply), TABLE, rows, UPDATES, params=scattering(PROMISE, *ROW_OF),
    smooth=(0,),
    kinds="fciu", variant="twice in one place")
row("scatter_add", lambda x, i, u: updated(updated(x, x[1] + u[1], 1), x[3] + u[0] + u[2], 3), TABLE,
    fixed([[4], [1], [3]]), UPDATES, params=scattering(CLIP, *ROW_OF), kinds="fc", variant="clip")
row("scatter_add", lambda x, i, u: np.stack([updated(x[n], x[n, i[n, 0]] + u[n], i[n, 0]) for n in range(4)]),
    TABLE,
    fixed([[1], [2], [0], [2]]), between(-3, 3, 4), variant="batched", kinds="f",
    params=scattering(PROMISE, (), (1,), (1,), (0,), (0,)))


def square_at(x, indices, updates):
    program = scalar_program(_square, (aval_of(x).update(shape=()),))
    return op("scatter_apply", **scattering(PROMISE, *ROW_OF, update_jaxpr=program))(x, indices, updates)


def _square(x):
    return [op("mul")(x, x)]


ROWS.append(Row("scatter_apply", square_at, scattered(lambda old, new: old * old), (TABLE, distinct, UPDATES),
                "fi",
                derivative="none", bad=(fails(
                    TypeError, "Updates tensor must be of rank 2", "scatter_apply", (4, 3), rows, (3,),
                    **scattering(CLIP, *ROW_OF, update_jaxpr=None)),)))
