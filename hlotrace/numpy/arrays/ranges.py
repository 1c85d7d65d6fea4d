"""Numbers in rows: arange, linspace, logspace, geomspace; functions of positions."""
import contextlib
import math
import operator

from ...api.composite import composite
from ...api.vmap import vmap
from ...core import dtypes
from ...core.avals import ShapedArray, aval_of
from ...core.symbolic.dimension import Dimension, max_dim
from ...core.trace import concrete_or_error
from ...lax import shapes as lax
from ...primitives.arrays.elementwise import (
    abs_p, add, convert, div, floor_p, maximum, minimum, mul, sign_p, sub)
from ...primitives.arrays.shape import broadcast_in_dim, move_axis, reshape
from ...primitives.arrays.slicing import concatenate_p, iota_p
from ...primitives.arrays.transcendental import log, power
from ...primitives.common import canonical_axis, canonical_shape, np, scalar, static_int
from ...runtime.devices import transfer_guards
from ..util import (
    broadcast_to_shape, cast, check_arraylike, joint_shape, ndim, promotes, result_type, shape as shape_of)
from .creation import HOST_BYTES, known_array, made_on, on_device, staging

__all__ = ["arange", "fromfunction", "geomspace", "linspace", "logspace"]


def arange(start, stop=None, step=None, dtype=None, *, device=None, out_sharding=None):
    """The vector start, start + step, ... below `stop`; arange(n) starts at 0.

    With a step that is no integer, rounding may add or drop the last one: `linspace` is exact.

    Args:
        start: the first number, or the end if it is the only argument.  All three are known under jit too, as
            they say how many elements there are.
        step: the distance, 1 by default.
        dtype: that of the result; that of the promotion of the numbers by default.
        device: a Device or a Sharding, where the result is placed.

    >>> jnp.arange(4)
    Array([0, 1, 2, 3], dtype=int32)
    >>> jnp.arange(2, 10, 3)
    Array([2, 5, 8], dtype=int32)
    >>> jnp.arange(1, 0, -0.25)
    Array([1.  , 0.75, 0.5 , 0.25], dtype=float32)
    """
    given = [v for v in (start, stop, step) if v is not None]
    if start is None:
        raise TypeError("arange: start must be a number, got None")
    for v in given:
        check_arraylike("arange", v)
        if ndim(v):
            raise ValueError(f"arange: arguments must be scalars; got an array of shape {shape_of(v)}; for "
                             "as many numbers as it has entries write jnp.arange(x.size)")
        if aval_of(v).dtype.kind == "c":
            raise ValueError("Passing complex start/stop/step to jnp.arange is not supported")
    if dtype is None:
        if all(type(v) in (int, Dimension) for v in given):
            dtype = dtypes.canonicalize(int)
        else:
            dtype = result_type(*given)
    dtype = dtypes.check_user_dtype(dtype, "arange")
    if dtypes.is_bool(dtype):
        raise TypeError("arange does not accept dtype bool: it counts")
    start, stop, step = (v if v is None or type(v) in (int, float, Dimension)
                         else np.asarray(concrete_or_error(
        v, "start, stop and step of jnp.arange must be known")).item() for v in (start, stop, step))
    start, stop = (0, start) if stop is None else (start, stop)
    counts = step is None and start == 0
    step = 1 if step is None else step
    if Dimension in (type(start), type(stop)) and type(step) is int and step:
        count = max_dim(0, (abs(step) - 1 + (stop - start if step > 0 else start - stop)) // abs(step))
        return add(mul(lax.broadcasted_iota(dtype, (count,), 0, out_sharding=out_sharding),
                       scalar(step, dtype)), scalar(start, dtype))
    if step == 0:
        raise ZeroDivisionError(f"arange: step is 0, so that {stop} is never reached from {start}; jnp.full "
                                "repeats a number")
    size = max(0, math.ceil((stop - start) / step))
    whole = all(isinstance(v, int) or v.is_integer() for v in (start, step))
    integral = whole and not dtypes.is_complex(dtype)
    if size * dtype.itemsize > HOST_BYTES and integral or staging() and (start, step) == (0, 1):
        def count():
            counted = iota_p.bind(dtype=dtype, shape=(size,), dimension=0)
            if (start, step) == (0, 1):
                return counted
            return add(mul(counted, scalar(step, dtype)), scalar(start, dtype))
        return made_on(count, ShapedArray((size,), dtype), device, out_sharding, "arange")
    value = (np.arange(size) * step + start if integral else start + np.arange(size) *
             float(step)).astype(dtype)
    # counting from 0 is an operation without operands: no transfer guard is asked
    with transfer_guards.unasked() if counts else contextlib.nullcontext():
        result = known_array(value, ShapedArray(value.shape, dtype))
    return on_device(result, device, out_sharding, "arange")


def _inexact_dtype(name, dtype, *values):
    return dtypes.to_inexact(result_type(*values)) if dtype is None else dtypes.check_user_dtype(dtype, name)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """`num` evenly spaced values from `start` to `stop`, along a new axis.

    Args:
        start: a scalar or an array.
        stop: a scalar or an array, which broadcasts with `start`.
        endpoint: whether `stop` is the last value; otherwise they stop one step before.
        retstep: return the distance of the values too.
        dtype: that of the result, floating point by default; integer results are rounded down.
        axis: where the new axis is.
        device: a Device or a Sharding, where the result is placed.

    >>> jnp.linspace(0, 1, 5), jnp.linspace(0, 4, 4, endpoint=False, dtype=int)
    (Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32), Array([0, 1, 2, 3], dtype=int32))
    >>> jnp.linspace(jnp.array([0, 10]), 20, 3)
    Array([[ 0., 10.],
           [10., 15.],
           [20., 20.]], dtype=float32)
    """
    check_arraylike("linspace", start, stop)
    num = _samples("linspace", num)
    if dtype is not None:
        dtype = dtypes.check_user_dtype(dtype, "linspace")
    made = _linspace(start, stop, num, bool(endpoint), dtype, operator.index(axis), bool(retstep))
    # made whole: XLA divides its concatenation so that each device holds the whole
    return (on_device(made[0], device), made[1]) if retstep else on_device(made, device)


def _samples(name, num):
    """The argument `num` as an int."""
    if type(num) is not int:
        num = static_int(concrete_or_error(num, f"'num' argument of jnp.{name}"),
                         "num, the number of samples,",
                         "; for a given distance use jnp.arange(start, stop, step)")
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative: {name}(start, stop, num)")
    return num


@composite(static=("num", "endpoint", "dtype", "axis", "retstep"))
@promotes("start", "stop")
def _linspace(start, stop, num, endpoint, dtype, axis, retstep):
    dtype = _inexact_dtype("linspace", dtype, start, stop)
    work = dtypes.to_inexact(result_type(start, stop, dtype))
    shape = joint_shape(shape_of(start), shape_of(stop))
    start, stop = (broadcast_to_shape(cast(v, work), shape) for v in (start, stop))
    pieces = num - 1 if endpoint else num
    parts = pieces.as_value(work) if type(pieces) is Dimension else pieces
    step = div(sub(stop, start), parts) if pieces > 0 else lax.full(shape, np.nan, work)
    if num > 1:
        count = pieces if endpoint else num
        column = (count, *(1,) * len(shape))
        fraction = reshape(div(iota_p.bind(dtype=work, shape=(count,), dimension=0), parts), column)
        rest = broadcast_to_shape(sub(1, fraction), (count, *shape))
        fraction = broadcast_to_shape(fraction, (count, *shape))
        first, last = (broadcast_to_shape(reshape(v, (1, *shape)), (count, *shape)) for v in (start, stop))
        out = add(mul(first, rest), mul(last, fraction))
        if dtypes.is_integer(dtype) and dtypes.is_float(work):      # a whole number may come out just below
            error = mul(maximum(abs_p.bind(first), abs_p.bind(last)), 2 * float(dtypes.finfo(work).eps))
            out = floor_p.bind(add(out, minimum(error, 0.25)))
        if endpoint:
            out = concatenate_p.bind(out, reshape(stop, (1, *shape)), dimension=0)
    else:
        out = broadcast_in_dim(start, (num, *shape), tuple(range(1, len(shape) + 1)))
    if dtypes.is_integer(dtype) and not dtypes.is_integer(work):
        out = floor_p.bind(out)
    out = move_axis(convert(out, dtype), 0, canonical_axis(axis, len(shape) + 1))
    return (out, step) if retstep else out


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """Powers of `base` whose exponents are evenly spaced from `start` to `stop`.

    >>> jnp.logspace(0, 3, 4)
    Array([   1.,   10.,  100., 1000.], dtype=float32)
    >>> jnp.logspace(0, 8, 3, base=2, endpoint=False)
    Array([ 1.       ,  6.3496046, 40.31748  ], dtype=float32)
    """
    check_arraylike("logspace", start, stop, base)
    dtype = _inexact_dtype("logspace", dtype, start, stop)
    return _logspace(start, stop, base, num=_samples("logspace", num), endpoint=bool(endpoint), dtype=dtype,
                     axis=operator.index(axis))


@composite(static=("num", "endpoint", "dtype", "axis"))
@promotes("start", "stop")
def _logspace(start, stop, base, *, num, endpoint, dtype, axis):
    work = dtypes.to_inexact(result_type(start, stop, dtype))
    exponents = _linspace(start, stop, num, endpoint, work, axis, False)
    return convert(power(broadcast_to_shape(cast(base, work), exponents.shape), exponents), dtype)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """`num` values from `start` to `stop`, each the same multiple of the one before.

    From or to 0 it is NaN, where NumPy raises a ValueError.

    >>> jnp.geomspace(1, 8, 4).round(3), jnp.geomspace(-1., -8., 4).round(3)
    (Array([1., 2., 4., 8.], dtype=float32), Array([-1., -2., -4., -8.], dtype=float32))
    """
    check_arraylike("geomspace", start, stop)
    dtype = _inexact_dtype("geomspace", dtype, start, stop)
    return _geomspace(start, stop, num=_samples("geomspace", num), endpoint=bool(endpoint), dtype=dtype,
                      axis=operator.index(axis))


@composite(static=("num", "endpoint", "dtype", "axis"))
@promotes("start", "stop")
def _geomspace(start, stop, *, num, endpoint, dtype, axis):
    work = dtypes.to_inexact(result_type(start, stop, dtype))
    shape = joint_shape(shape_of(start), shape_of(stop))
    start, stop = (broadcast_to_shape(cast(v, work), shape) for v in (start, stop))
    sign = sign_p.bind(start)
    logs = [mul(log(div(v, sign)), float(1 / np.log(10))) for v in (start, stop)]
    out = _logspace(*logs, 10.0, num=num, endpoint=endpoint, dtype=work, axis=0)
    out = mul(broadcast_to_shape(reshape(sign, (1, *shape)), out.shape), out)
    return move_axis(convert(out, dtype), 0, canonical_axis(axis, len(shape) + 1))


def fromfunction(function, shape, *, dtype=float, **kwargs):
    """The array of function(i, j, ...) over all positions.

    Args:
        function: of one index for each axis; it is mapped with vmap, where NumPy calls it once, with arrays.
        shape: that of the positions.
        dtype: that of the indices.

    >>> jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int)
    Array([[ 0,  1,  2],
           [10, 11, 12]], dtype=int32)
    """
    shape = canonical_shape(shape, "fromfunction: shape")
    axes = range(len(shape))

    def mapped(*positions):
        return function(*positions, **kwargs)
    for axis in reversed(axes):
        mapped = vmap(mapped, tuple(0 if i == axis else None for i in axes))
    return mapped(*(arange(n, dtype=dtype) for n in shape))
