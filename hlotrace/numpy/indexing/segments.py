"""Reductions by segment ids (`hlotrace.ops`): rows with the same id go into the same row of the result."""
from ...api.composite import composite
from ...core import dtypes
from ...core.errors import ShapeError
from ...core.symbolic.dimension import as_size, surely
from ...core.trace import concrete_or_error
from ...placement.out_sharding import over_auto_axes, with_out_sharding
from ...primitives.arrays.elementwise import add_p, max_p, min_p, mul_p
from ...primitives.arrays.reduce import reducer_of
from ...primitives.arrays.shape import broadcast_in_dim
from ...runtime.devices import transfer
from ..arrays.creation import asarray
from ..arrays.ranges import arange
from ..reductions.reductions import wider
from ..util import check_arraylike, np
from . import indexing

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


@composite(static=("combine", "operation", "num", "flags", "bucket_size"))
def _reduced(data, ids, combine, operation, num, flags, bucket_size):
    """One scatter into rows of the identity; with buckets, one for each, whose results are then reduced."""
    reduction, identity = reducer_of(combine)
    buckets = () if bucket_size is None else (-(-ids.shape[0] // bucket_size),)
    rows = broadcast_in_dim(identity(data.dtype), (*buckets, num, *data.shape[1:]), ())
    index = (*[arange(ids.shape[0]) // bucket_size for _ in buckets], ids)
    ordered, unique, mode = flags
    rows = indexing.update(rows, index, data, operation, indices_are_sorted=ordered, unique_indices=unique,
                           mode=mode, wrap=False)
    if not buckets:
        return rows
    return reduction.bind(rows.astype(wider(rows.dtype)), axes=(0,)).astype(rows.dtype)


def _segments(name, combine, operation, verb, none, example):
    """The function `name`, which reduces by the elementwise primitive `combine` as `.at[].operation` does."""
    called = f"segment_{name}"

    def segment(data, segment_ids, num_segments=None, indices_are_sorted=False, unique_indices=False,
                bucket_size=None, mode=None, out_sharding=None):
        check_arraylike(called, data, segment_ids)
        data, ids = asarray(data), asarray(segment_ids)
        _check(called, combine, data, ids)
        num = _number(called, ids, num_segments)
        if out_sharding is not None:
            data, ids = over_auto_axes(data, ids)
        if bucket_size is not None and bucket_size < 1:
            raise ValueError(f"{called}: bucket_size must be a positive number of rows, got {bucket_size}")
        flags = bool(indices_are_sorted), bool(unique_indices), mode
        return with_out_sharding(_reduced(data, ids, combine, operation, num, flags, bucket_size),
                                 out_sharding, called)
    segment.__name__ = segment.__qualname__ = called
    segment.__doc__ = f"""The {verb} of the rows of `data` that have the same segment id; {none} without rows.

    Args:
        data: array (n, ...), of any dtype that `.at[].{operation}` takes, which is that of the result.
        segment_ids: ints (n,); those outside of 0 .. num_segments - 1, negative ones too, are dropped.
        num_segments: the length of the result, max(segment_ids) + 1 by default, which must then be known: not
            under jit.
        indices_are_sorted: a promise about the ids that may make it faster.
        unique_indices: a promise about the ids that may make it faster.
        bucket_size: reduce so many rows at a time, and then their results, for exacter floats.
        mode: what happens to ids outside instead ("clip", "promise_in_bounds", ...).
        out_sharding: the sharding of the result.

    Raises:
        ShapeError: where there are not as many ids as rows.
        TypeError: for ids that are no ints.
        ValueError: for a negative number of segments.

    >>> jax.ops.{called}(jnp.array([5, 2, 4]), jnp.array([0, 1, 0]), num_segments=3)
    Array({example}, dtype=int32)
    """
    return segment


def _check(called, combine, data, ids):
    if not dtypes.is_integer(ids.dtype):
        raise TypeError(f"{called}: segment_ids must be integers, got {ids.dtype.name}; convert them with "
                        ".astype('int32')")
    if combine in (add_p, mul_p) and dtypes.is_bool(data.dtype):
        raise TypeError(f"{called} does not reduce bool: give data.astype('int32'), or use segment_max for "
                        "`any` and segment_min for `all`")
    if ids.ndim != 1 or data.shape[:1] not in ((), (1,), ids.shape):
        raise ShapeError(f"{called}: data of shape {data.shape} does not fit segment_ids of shape "
                         f"{ids.shape}: there must be one id for each row of data")


def _number(called, ids, num):
    if num is None:
        ids = concrete_or_error(ids, f"{called}: the number of segments is the largest id + 1 unless "
                                "num_segments= says it")
        num = np.max(np.asarray(transfer.whole(ids))) + 1 if ids.size else 0
    num = as_size(num)
    if surely(num, high=-1):
        raise ValueError(f"{called}: num_segments must not be negative, got {num}")
    return num


segment_sum = _segments("sum", add_p, "add", "sum", "0", "[9, 2, 0]")
segment_prod = _segments("prod", mul_p, "multiply", "product", "1", "[20,  2,  1]")
segment_max = _segments("max", max_p, "max", "greatest", "-inf, or the least number of an integer dtype,",
                        "[          5,           2, -2147483648]")
segment_min = _segments("min", min_p, "min", "least", "inf, or the greatest number of an integer dtype,",
                        "[         4,          2, 2147483647]")
