"""Making arrays: `array` from anything, arrays of one value, ranges, diagonals and triangles.

A small array whose values are known is made on the host when called eagerly, with nothing to compile; under
jit it is computed in the program.
"""
import math
import operator
from functools import partial

from ...api.composite import composite
from ...api.vmap import vmap
from ...core import dtypes, errors
from ...core.array import Array
from ...core.avals import ShapedArray, aval_of, is_arraylike
from ...core.config import state
from ...core.refs import Ref
from ...core.surface.boundary import arrays_of
from ...core.symbolic.dimension import Dimension, max_dim
from ...core.trace import Tracer, concrete_or_error
from ...lax import shapes as lax
from ...placement.out_sharding import devices_like, make_with_sharding, new_array
from ...primitives.arrays.elementwise import (
    add,
    convert,
    div,
    eq,
    floor_p,
    ge,
    log,
    mul,
    power,
    select,
    sign_p,
    sub,
)
from ...primitives.arrays.shape import broadcast_in_dim, move_axis, reshape
from ...primitives.arrays.slicing import concatenate_p, copy_p, iota_p, pad_p, slice_p
from ...primitives.common import canonical_axis, canonical_shape, np, scalar, static_int
from ...primitives.parallel.collectives import vary
from ...runtime.array_impl import ArrayImpl
from ...runtime.array_impl import from_dlpack as import_dlpack
from ..util import (
    SCALARS,
    broadcast_shapes,
    broadcast_to_shape,
    cast,
    check_arraylike,
    in_pieces,
    ndim,
    promotes,
    result_type,
)
from ..util import shape as shape_of

__all__ = ["arange", "array", "asarray", "astype", "copy", "diag", "diagflat", "diagonal", "empty",
           "empty_like", "eye", "from_dlpack", "frombuffer", "fromfile", "fromfunction", "fromiter",
           "fromstring", "full", "full_like", "geomspace", "identity", "linspace", "load", "logspace", "ones",
           "ones_like", "tri", "tril", "triu", "vander", "zeros", "zeros_like"]

HOST_BYTES = 1 << 20


# --- array
# ------------------------------------------------------------------------------------------------------

def staging():
    """Is a program being written down?  grad and vmap outside jit compute values."""
    return state.trace.staging


def on_device(x, device, out_sharding=None, name=""):
    """The array moved to `device`, a Device or a Sharding, or with the sharding `out_sharding`.

    Under jit its sharding is a constraint.
    """
    return make_with_sharding(lambda: x, 0, f"jnp.{name}", device, out_sharding)


def _made(make, aval, device, out_sharding, name):
    """`make()`, an array of `aval`, as `on_device` would have it, but made there if it is large."""
    return make_with_sharding(make, 0 if dtypes.is_extended(aval.dtype) else aval.size * aval.dtype.itemsize,
                              f"jnp.{name}",
                device, out_sharding)


def _known(value, aval, given=False):
    """An array of a NumPy value of the dtype of `aval`, which the caller may have `given`."""
    if not staging():
        return new_array(value, aval=aval, given=given)
    if not aval.weak_type:
        return copy_p.bind(value)
    return copy_p.bind(value.item()) if not aval.shape else convert(value, aval.dtype, True)


def _default_dtype(dtype, name):
    return dtypes.canonicalize(dtypes.float64) if dtype is None else dtypes.check_user_dtype(dtype, name)


def array(object, dtype=None, copy=True, order="K", ndmin=0, *, device=None, out_sharding=None):
    """An array of an array, a number, nested lists of them, or an object with an array protocol.

    Args:
        object: what the array is made of.
        dtype: that of the result; without it floats become float32 and ints int32 (64-bit with x64), a Python
            number has a weak type, which gives way in promotion.
        copy: False may share memory with an array.
        order: only "K".
        ndmin: axes of size 1 are put in front until there are so many.
        device: a Device or a Sharding, where the result is placed.
        out_sharding: the sharding of the result.

    Raises:
        TypeError: for values that are not numbers.
        ValueError: for nested lists of unequal lengths.

    >>> jnp.array([[1, 2], [3, 4.5]]), jnp.array(7)
    (Array([[1. , 2. ],
           [3. , 4.5]], dtype=float32), Array(7, dtype=int32, weak_type=True))
    >>> jnp.array([1, 2], dtype=jnp.bfloat16, ndmin=2)
    Array([[1, 2]], dtype=bfloat16)
    >>> jnp.array([[1, 2], [3]])
    Traceback (most recent call last):
        ...
    ValueError: jnp.array: nested lists must have the same length at each level, so that they make a
    rectangle; ...
    """
    if order not in (None, "K"):
        raise NotImplementedError(f"Only implemented for order='K', got {order!r}: the layout is the "
                                  "compiler's, leave it out")
    dtype = None if dtype is None else dtypes.check_user_dtype(dtype, "array")
    x = _convert(object, dtype)
    if copy and x is object:
        x = copy_p.bind(x)
    if ndmin > x.ndim:
        x = reshape(x, (1,) * (ndmin - x.ndim) + x.shape)
    return on_device(x, device, out_sharding, "array")


def asarray(a, dtype=None, order=None, *, copy=None, device=None, out_sharding=None):
    """An array of what `array` takes, without a copy where that can be; with one if `copy` is true.

    >>> x = jnp.array([1., 2.])
    >>> jnp.asarray(x) is x, jnp.asarray([True, False])
    (True, Array([ True, False], dtype=bool))
    """
    return array(a, dtype, bool(copy), order, device=device, out_sharding=out_sharding)


def _convert(value, dtype):
    if hasattr(value, "__jax_array__"):
        value = value.__jax_array__()
    given = value
    if isinstance(value, Array):
        return value if dtype is None else cast(value, dtype)
    kind = type(value)
    if kind in SCALARS:
        if dtype is None:
            aval = aval_of(value)
            return copy_p.bind(value) if staging() else new_array(
                np.asarray(value, aval.dtype), aval=aval, given=True)
        value = _numpy(value, dtype)
    elif kind in (list, tuple):
        return _nested(value, dtype)
    elif value is None:
        raise ValueError("None is not a valid value for jnp.array: give a number, such as jnp.nan for what "
                         "is missing")
    elif not isinstance(value, (np.ndarray, np.generic)):
        value = _foreign(value)
    if value.dtype not in dtypes.SUPPORTED and value.dtype != dtypes.float0:
        raise errors.no_numbers(given, value)
    if value.dtype == dtypes.float0 and dtype is None:
        return value        # of which there is one value, on no device
    value = np.asarray(value).astype(dtype or dtypes.canonicalize(value.dtype), copy=False)
    return _known(value, ShapedArray(value.shape, value.dtype), given=True)


def _foreign(value):
    """The NumPy array of an object with __array__, the buffer protocol or __dlpack__, or of a sequence."""
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def _leaves(value):
    for item in value:
        if isinstance(item, (list, tuple)):
            yield from _leaves(item)
        else:
            yield item


def _nested(value, dtype):
    """Nested lists: one NumPy array where the leaves are numbers, else a stack of what they hold."""
    leaves = list(_leaves(value))
    kinds = {type(leaf) for leaf in leaves}
    if not kinds <= set(SCALARS):
        value = _protocols(value)
        leaves = list(_leaves(value))
        dtype = dtype or result_type(*leaves)
        if any(isinstance(leaf, Array) for leaf in leaves):
            return in_pieces(partial(_stack_nested, dtype=dtype), partial(lax.concatenate, dimension=0),
                             value)
    elif dtype is None:
        dtype = dtypes.canonicalize(float) if not leaves else result_type(*(kind() for kind in kinds))
    value = _numpy(value, dtype)         # raises for unequal lengths, and for ints that do not fit
    return _known(value, ShapedArray(value.shape, value.dtype), given=True)


def _numpy(value, dtype):
    """The NumPy array of a number or of nested lists."""
    try:
        found = np.asarray(value, dtype)
        if dtype.kind != "V" or dtype not in dtypes.SMALL_INTS:      # those wrap around silently
            return found
        overflow = None
    except OverflowError as error:
        overflow = error
    except ValueError:
        if _nested_shape(value) is not None:
            raise
        raise ValueError("array: nested lists must have the same length at each level, so that they make a "
                         f"rectangle; {_unequal(value)}; pad the shorter, or keep them in a list") from None
    limits = (dtypes.iinfo if dtypes.is_integer(dtype) else dtypes.finfo)(dtype)
    for v in _leaves([value]):
        if isinstance(v, (int, float)) and not int(limits.min) <= v <= int(limits.max):
            raise dtypes.overflow(v, dtype)
    if overflow is not None:
        raise overflow
    return found


def _unequal(value, path="object"):
    """Words for the first two parts of nested lists that have not the same shape."""
    shapes = [_nested_shape(v) for v in value]
    for i, (v, s) in enumerate(zip(value, shapes)):
        if s is None:
            return _unequal(v, f"{path}[{i}]")
        if s != shapes[0]:
            return f"{path}[0] has shape {shapes[0]} and {path}[{i}] has shape {s}"
    return None


def _nested_shape(value):
    """The shape of nested lists of numbers; None where it has none."""
    if not isinstance(value, (list, tuple)):
        return ()
    shapes = {_nested_shape(v) for v in value}
    if None in shapes or len(shapes) > 1:
        return None
    if shapes:
        return (len(value), *shapes.pop())
    return (0,)


def _protocols(value):
    """Nested lists with every leaf an array or a number."""
    if isinstance(value, (list, tuple)):
        return [_protocols(v) for v in value]
    return value if is_arraylike(value) and not hasattr(value, "__jax_array__") else _convert(value, None)


@composite(static=("dtype",))
def _stack_nested(value, *, dtype):
    if not isinstance(value, list):
        return cast(value, dtype)
    return lax.stack([_stack_nested(v, dtype=dtype) for v in value])


def copy(a, order=None):
    """A copy of an array, in memory of its own: it stays when the original is donated or deleted.

    >>> x = jnp.arange(3)
    >>> y = jnp.copy(x)
    >>> x.delete()
    >>> y
    Array([0, 1, 2], dtype=int32)
    """
    check_arraylike("copy", a)
    return array(a, copy=True, order=order)


def astype(x, dtype, /, *, copy=False, device=None):
    """`x` with another dtype; None is the default float.  Complex to real drops the imaginary part.

    Floats lose their fraction when they become integers; what is not 0 becomes True.

    >>> jnp.astype(jnp.array([-1.7, 0., 2.9]), jnp.int32), jnp.astype(jnp.array([0., 0.5]), bool)
    (Array([-1,  0,  2], dtype=int32), Array([False,  True], dtype=bool))
    """
    check_arraylike("astype", x)
    dtype = _default_dtype(dtype, "astype")
    return array(cast(x, dtype) if type(x) in SCALARS else x, dtype, copy, device=device)


def share(external_array, device=None, copy=None):
    """An array over the memory of an object with `__dlpack__`: of NumPy, PyTorch, CuPy, ...

    Args:
        external_array: the object.
        device: the Device or Sharding where the result is placed, that of the object by default.
        copy: True copies; False raises an error where the memory cannot be shared: another device, strides,
            64-bit numbers while those are off, an address that is not a multiple of 64; None, the default,
            copies only then.

    Raises:
        TypeError: for other objects, and for element types that `is_supported_dtype` does not have.
        ValueError: where `copy` is False and the memory cannot be shared.

    >>> jax.dlpack.from_dlpack(np.arange(3, dtype="float32"))
    Array([0., 1., 2.], dtype=float32)
    >>> np.from_dlpack(jnp.ones(2))
    array([1., 1.], dtype=float32)
    """
    x = external_array
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"from_dlpack: a value of type {type(x)} has no __dlpack__ and __dlpack_device__ "
                        "methods")
    found, copied = (x, False) if isinstance(x, Array) else import_dlpack(x)
    result = array(found, copy=bool(copy), device=device)
    if copy is False and (copied or result is not found):
        raise ValueError("from_dlpack: copy=False, but the memory cannot be shared: it is on another "
                         "device, is strided, is not aligned to 64 bytes, or holds 64-bit numbers while "
                         "those are off; leave copy= out")
    return convert(result, result.dtype)


def from_dlpack(x, /, *, device=None, copy=None):
    """An array over the memory of an object with `__dlpack__`, as `jax.dlpack.from_dlpack` gives it.

    >>> jnp.from_dlpack(np.arange(3, dtype="float32"))
    Array([0., 1., 2.], dtype=float32)
    """
    return share(x, device, copy)


def is_dlpack_dtype(dtype):
    """Can arrays of this dtype go through DLPack?

    bool, integers, bfloat16, floats and complex numbers of whole bytes can.

    Raises:
        TypeError: for what is no dtype.

    >>> jax.dlpack.is_supported_dtype("bfloat16"), jax.dlpack.is_supported_dtype(jnp.int4)
    (True, False)
    """
    if dtype is None:
        raise TypeError("is_supported_dtype: None is no dtype; give one, such as 'float32'")
    dtype = np.dtype(dtype)
    return dtype in dtypes.SUPPORTED and (dtype == dtypes.bfloat16 or dtype.kind in "biufc"
                                          and dtype.isbuiltin == 1)


def _through_numpy(name, example):
    def make(*args, **kwargs):
        return asarray(getattr(np, name)(*args, **kwargs))
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""What `numpy.{name}` gives for the same arguments, as an Array; 32-bit where x64 is off.

    {example}
    """
    return make


def frombuffer(buffer, dtype=float, count=-1, offset=0):
    """The numbers in an object with the buffer protocol, as `numpy.frombuffer` reads them; 32-bit without
    x64.

    Args:
        buffer: the object.
        dtype: the dtype of the bytes.
        count: how many numbers, -1 for all.
        offset: bytes to leave out in front.

    >>> jnp.frombuffer(b"\\x01\\x02\\x00\\x01", dtype="<u2")
    Array([513, 256], dtype=uint16)
    """
    return asarray(np.frombuffer(buffer, dtype, count, offset))


def fromstring(string, dtype=float, count=-1, *, sep):
    """The numbers in a text, `sep` between them, as `numpy.fromstring` reads them; 32-bit where x64 is off.

    >>> jnp.fromstring("1 2.5", sep=" ")
    Array([1. , 2.5], dtype=float32)
    """
    return asarray(np.fromstring(string, dtype, count, sep=sep))


fromfile = _through_numpy("fromfile", """>>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     _ = file.write(b"abc"), file.seek(1)
    ...     jnp.fromfile(file, dtype="u1")
    Array([98, 99], dtype=uint8)""")
fromiter = _through_numpy("fromiter", """>>> jnp.fromiter((n * n for n in range(4)), dtype=int)
    Array([0, 1, 4, 9], dtype=int32)""")


def load(file, *args, **kwargs):
    """The array in an .npy file, as `numpy.load` reads it; an .npz archive as it is, with NumPy arrays.

    The file holds two bytes without a name for a bfloat16: such elements are read as bfloat16.

    >>> import io
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(3)); _ = file.seek(0)
    >>> jnp.load(file)
    Array([0, 1, 2], dtype=int32)
    """
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    return asarray(found.view(dtypes.bfloat16) if found.dtype == np.dtype("V2") else found)


# --- arrays of one value
# ----------------------------------------------------------------------------------------

def _fill(shape, value, dtype, weak=False):
    aval = ShapedArray(shape, dtype, weak)
    if dtypes.is_extended(dtype) and is_arraylike(value) and aval_of(value).dtype == dtype:
        return asarray(broadcast_to_shape(value, shape))
    if type(value) in SCALARS and not dtypes.is_extended(dtype):
        value = scalar(value, dtype)
        if not staging() and aval.size * dtype.itemsize <= HOST_BYTES:
            return new_array(np.full(shape, value), aval=aval)
        value = value.item() if weak else value
    if ndim(value) == 0:
        if weak and not aval_of(value).weak_type:
            return convert(lax.full(shape, value, dtype), dtype, True)
        return lax.full(shape, value, None if weak else dtype)
    return asarray(broadcast_to_shape(cast(value, dtype, weak), shape))


def _shape(name, shape):
    return canonical_shape((shape,) if ndim(shape) == 0 and hasattr(shape, "dtype") else shape,
                           f"jnp.{name}: shape")


def full(shape, fill_value, dtype=None, *, device=None, out_sharding=None):
    """An array of the given shape with `fill_value` everywhere.

    Args:
        shape: an int or a tuple of ints, known under jit too.
        fill_value: a scalar, or an array that broadcasts.
        dtype: that of the result; by default it has the dtype and weak type of `fill_value`.
        device: a Device or a Sharding, where the result is placed.
        out_sharding: the sharding of the result.

    >>> jnp.full((2, 2), 7, dtype=jnp.int8), jnp.full((2, 2), jnp.array([1., 2.]))
    (Array([[7, 7],
           [7, 7]], dtype=int8), Array([[1., 2.],
           [1., 2.]], dtype=float32))
    """
    check_arraylike("full", fill_value)
    shape = _shape("full", shape)
    weak = dtype is None and aval_of(fill_value).weak_type
    dtype = aval_of(fill_value).dtype if dtype is None else dtypes.check_user_dtype(dtype, "full")
    return _made(lambda: _fill(shape, fill_value, dtype, weak), ShapedArray(shape, dtype), device,
                 out_sharding, "full")


def full_like(a, fill_value, dtype=None, shape=None, *, device=None, out_sharding=None):
    """`full` with the shape and dtype of `a`, an array or anything that has a shape and a dtype.

    The result has the sharding of `a`, whose values are not used: it may be a `ShapeDtypeStruct`.

    Args:
        a: the model.
        fill_value: a scalar, or an array that broadcasts.
        dtype: in place of that of `a`.
        shape: in place of that of `a`.
        device: a Device or a Sharding, where the result is placed.
        out_sharding: the sharding of the result.

    >>> jnp.full_like(jnp.array([1, 2]), 7.9), jnp.full_like(jax.ShapeDtypeStruct((1, 2), "float32"), 5)
    (Array([7, 7], dtype=int32), Array([[5., 5.]], dtype=float32))
    """
    a = a.aval.inner_aval if isinstance(a, Ref) else arrays_of(a)      # which is not read
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        check_arraylike("full_like", a)
    check_arraylike("full_like", a if is_arraylike(a) else 0, fill_value)
    aval = aval_of(a) if is_arraylike(a) else a
    weak = dtype is None and getattr(aval, "weak_type", False) and not ndim(fill_value)
    shape = aval.shape if shape is None else _shape("full_like", shape)
    dtype = dtypes.canonicalize(aval.dtype) if dtype is None else dtypes.check_user_dtype(dtype, "full_like")
    if device is None and out_sharding is None:
        device = devices_like(a)
        if shape != aval.shape and device is not None and device.num_devices > 1:
            device = None
    filled = _made(lambda: _fill(shape, fill_value, dtype, weak), ShapedArray(shape, dtype), device,
                   out_sharding, "full_like")
    return vary(filled, a.aval.vma) if isinstance(a, Tracer) and a.aval.vma else filled


def _constant(name, value):
    """`zeros` and `zeros_like`, and their kin."""
    def make(shape, dtype=None, *, device=None, out_sharding=None):
        shape = _shape(name, shape)
        dtype = _default_dtype(dtype, name)
        return _made(lambda: _fill(shape, value, dtype), ShapedArray(shape, dtype), device, out_sharding,
                     name)

    def make_like(a, dtype=None, shape=None, *, device=None, out_sharding=None):
        return full_like(a, value, dtype, shape, device=device, out_sharding=out_sharding)
    word = "one" if value else "zero"
    note = "Unlike NumPy's, it is never uninitialized.\n\n    " if name == "empty" else ""
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""An array of {word}s.

    {note}Args:
        shape: an int or a tuple of ints, known under jit too.
        dtype: that of the result, the default float by default.
        device: a Device or a Sharding, where the result is placed.
        out_sharding: the sharding of the result.

    >>> jnp.{name}((2, 3)), jnp.{name}(2, dtype=jnp.int8)
    (Array([[{value}., {value}., {value}.],
           [{value}., {value}., {value}.]], dtype=float32), Array([{value}, {value}], dtype=int8))
    """
    make_like.__name__ = make_like.__qualname__ = f"{name}_like"
    make_like.__doc__ = f"""An array of {word}s with the shape and dtype of `a`, or with those given.

    {note}Args:
        a: anything that has a shape and a dtype, such as a `ShapeDtypeStruct`.
        dtype: in place of that of `a`.
        shape: in place of that of `a`.
        device: a Device or a Sharding, where the result is placed.
        out_sharding: the sharding of the result.

    >>> jnp.{name}_like(jnp.array([5, 6])), jnp.{name}_like(jax.ShapeDtypeStruct((2,), "float16"), dtype=bool)
    (Array([{value}, {value}], dtype=int32), Array([{bool(value)!s:>5}, {bool(value)!s:>5}], dtype=bool))
    """
    return make, make_like


zeros, zeros_like = _constant("zeros", 0)
ones, ones_like = _constant("ones", 1)
empty, _ = _constant("empty", 0)


def empty_like(prototype, dtype=None, shape=None, *, device=None, out_sharding=None):
    """An array of zeros with the shape and dtype of `prototype`, or with those given.

    Unlike NumPy's, it is never uninitialized.

    Args:
        prototype: anything that has a shape and a dtype, such as a `ShapeDtypeStruct`.
        dtype: in place of that of `prototype`.
        shape: in place of that of `prototype`.
        device: a Device or a Sharding, where the result is placed.
        out_sharding: the sharding of the result.

    >>> jnp.empty_like(jnp.array([5, 6])), jnp.empty_like(jax.ShapeDtypeStruct((2,), "float16"), dtype=bool)
    (Array([0, 0], dtype=int32), Array([False, False], dtype=bool))
    """
    return full_like(prototype, 0, dtype, shape, device=device, out_sharding=out_sharding)


# --- ranges
# -----------------------------------------------------------------------------------------------------

def arange(start, stop=None, step=None, dtype=None, *, device=None, out_sharding=None):
    """The vector start, start + step, ... below `stop`; arange(n) starts at 0.

    With a step that is no integer, rounding may add or drop the last one: `linspace` is exact.

    Args:
        start: the first number, or the end if it is the only argument.  All three are known under jit too, as
            they say how many elements there are.
        stop: the end.
        step: the distance, 1 by default.
        dtype: that of the result; that of the promotion of the numbers by default.
        device: a Device or a Sharding, where the result is placed.
        out_sharding: the sharding of the result.

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
            raise ValueError("jnp.arange: complex start, stop and step are not supported")
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
    step = 1 if step is None else step
    if Dimension in (type(start), type(stop)) and type(step) is int and step:
        count = max_dim(0, -((start - stop) // step))
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
        return _made(count, ShapedArray((size,), dtype), device, out_sharding, "arange")
    value = (np.arange(size) * step + start if integral else start + np.arange(size) *
             float(step)).astype(dtype)
    result = _known(value, ShapedArray(value.shape, dtype))
    return on_device(result, device, out_sharding, "arange")


def _inexact_dtype(name, dtype, *values):
    return dtypes.to_inexact(result_type(*values)) if dtype is None else dtypes.check_user_dtype(dtype, name)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """`num` evenly spaced values from `start` to `stop`, along a new axis.

    Args:
        start: a scalar or an array.
        stop: a scalar or an array, which broadcasts with `start`.
        num: an int.
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
    dtype = _inexact_dtype("linspace", dtype, start, stop)
    out, step = _linspace(start, stop, num=num, endpoint=bool(endpoint), dtype=dtype,
                          axis=operator.index(axis))
    # made whole: XLA divides its concatenation so that each device holds the whole
    out = on_device(out, device)
    return (out, step) if retstep else out


def _samples(name, num):
    """The argument `num` as an int."""
    num = static_int(concrete_or_error(num, f"'num' argument of jnp.{name}"), "num, the number of samples,",
                     "; for a given distance use jnp.arange(start, stop, step)")
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative: {name}(start, stop, num)")
    return num


@composite(static=("num", "endpoint", "dtype", "axis"))
@promotes("start", "stop")
def _linspace(start, stop, *, num, endpoint, dtype, axis):
    work = dtypes.to_inexact(result_type(start, stop, dtype))
    shape = broadcast_shapes(shape_of(start), shape_of(stop))
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
        if endpoint:
            out = concatenate_p.bind(out, reshape(stop, (1, *shape)), dimension=0)
    else:
        out = broadcast_in_dim(start, (num, *shape), tuple(range(1, len(shape) + 1)))
    if dtypes.is_integer(dtype) and not dtypes.is_integer(work):
        out = floor_p.bind(out)
    return move_axis(convert(out, dtype), 0, canonical_axis(axis, len(shape) + 1)), step


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
    exponents, _ = _linspace(start, stop, num=num, endpoint=endpoint, dtype=work, axis=axis)
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
    shape = broadcast_shapes(shape_of(start), shape_of(stop))
    start, stop = (broadcast_to_shape(cast(v, work), shape) for v in (start, stop))
    sign = sign_p.bind(start)
    logs = [mul(log(div(v, sign)), float(1 / np.log(10))) for v in (start, stop)]
    out = _logspace(*logs, 10.0, num=num, endpoint=endpoint, dtype=work, axis=0)
    out = mul(broadcast_to_shape(reshape(sign, (1, *shape)), out.shape), out)
    return move_axis(convert(out, dtype), 0, canonical_axis(axis, len(shape) + 1))


# --- diagonals and triangles
# ------------------------------------------------------------------------------------

def _positions(n, m, k):
    """Row numbers plus k, and column numbers, of an n x m matrix."""
    rows, columns = (iota_p.bind(dtype=dtypes.int32, shape=(n, m), dimension=i) for i in range(2))
    k = scalar(k, dtypes.int32) if isinstance(k, int) else broadcast_to_shape(k, (n, m))
    return add(rows, k), columns


def _sizes(name, n, m):
    """Both sizes of a matrix, which is square where `m` is None."""
    return [static_int(v, f"{name}: a size", f"; the sizes are two arguments, as in jnp.{name}(3, 4)")
            for v in (n, n if m is None else m)]


def _mask(name, n, m, k, compare):
    """The boolean matrix compare(row + k, column)."""
    n, m = _sizes(name, n, m)
    if n < 0 or m < 0:
        raise ValueError(f"{name}: negative sizes are not allowed, got {n} and {m}")
    if isinstance(k, Array) and not isinstance(k, ArrayImpl):
        k = cast(k, dtypes.int32)
    else:
        k = operator.index(k)
        if not staging() and n * m <= HOST_BYTES:
            return _known((np.equal if compare is eq else np.greater_equal)(np.arange(n)[:, None] + k,
                                                                            np.arange(m)),
                          ShapedArray((n, m), dtypes.bool_))
    return compare(*_positions(n, m, k))


def _from_mask(mask, dtype):
    if isinstance(mask, ArrayImpl):
        return _known(mask._numpy().astype(dtype), ShapedArray(mask.shape, dtype))
    return convert(mask, dtype)


def eye(N, M=None, k=0, dtype=None, *, device=None):
    """The N x M matrix with ones on the k-th diagonal.

    Args:
        N: the number of rows.
        M: the number of columns, N by default.
        k: which diagonal, above the main one for k > 0.
        dtype: the default float by default.
        device: a Device or a Sharding, where the result is placed.

    >>> jnp.eye(2), jnp.eye(2, 3, k=1, dtype=int)
    (Array([[1., 0.],
           [0., 1.]], dtype=float32), Array([[0, 1, 0],
           [0, 0, 1]], dtype=int32))
    """
    dtype = _default_dtype(dtype, "eye")
    aval = ShapedArray(tuple(max(0, n) for n in _sizes("eye", N, M)), dtype)
    return _made(lambda: _from_mask(_mask("eye", N, M, k, eq), dtype), aval, device, None, "eye")


def identity(n, dtype=None):
    """The n x n identity matrix.

    Args:
        n: the number of rows.
        dtype: the default float by default.

    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    """The N x M matrix with ones on and below the k-th diagonal; float32 unless `dtype` is given.

    >>> jnp.tri(3), jnp.tri(2, 3, k=1, dtype=int)
    (Array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]], dtype=float32), Array([[1, 1, 0],
           [1, 1, 1]], dtype=int32))
    """
    return _from_mask(_mask("tri", N, M, k, ge), dtypes.check_user_dtype(dtypes.float32 if dtype is None
                                                                         else dtype, "tri"))


def tril(m, k=0):
    """`m` with zeros above the k-th diagonal of its last two axes.

    Raises:
        ValueError: for less than two axes.

    >>> jnp.tril(jnp.arange(1, 10).reshape(3, 3)), jnp.tril(jnp.ones((2, 2), int), k=-1)
    (Array([[1, 0, 0],
           [4, 5, 0],
           [7, 8, 9]], dtype=int32), Array([[0, 0],
           [1, 0]], dtype=int32))
    """
    return _triangle("tril", m, k, True)


def triu(m, k=0):
    """`m` with zeros below the k-th diagonal of its last two axes.

    Raises:
        ValueError: for less than two axes.

    >>> jnp.triu(jnp.arange(1, 10).reshape(3, 3)), jnp.triu(jnp.ones((2, 2), int), k=1)
    (Array([[1, 2, 3],
           [0, 5, 6],
           [0, 0, 9]], dtype=int32), Array([[0, 1],
           [0, 0]], dtype=int32))
    """
    return _triangle("triu", m, k, False)


def _triangle(name, m, k, lower):
    check_arraylike(name, m)
    if ndim(m) < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D, got shape {shape_of(m)}")
    return _keep_triangle(m, k=operator.index(k) - (not lower), lower=lower)


@composite(static=("k", "lower"))
def _keep_triangle(m, *, k, lower):
    shape = shape_of(m)
    mask = broadcast_to_shape(ge(*_positions(*shape[-2:], k)), shape)
    zero = lax.full(shape, 0, aval_of(m).dtype)
    return select(mask, m, zero) if lower else select(mask, zero, m)


def diagonal(a, offset=0, axis1=0, axis2=1):
    """The entries a[i, i + offset] of two axes, as a last axis.

    >>> x = jnp.arange(6).reshape(2, 3)
    >>> jnp.diagonal(x), jnp.diagonal(x, offset=1), jnp.diagonal(jnp.ones((2, 3, 4))).shape
    (Array([0, 4], dtype=int32), Array([1, 5], dtype=int32), (4, 2))
    """
    check_arraylike("diagonal", a)
    if ndim(a) < 2:
        raise ValueError(f"diagonal requires an array of at least two dimensions, got shape {shape_of(a)}")
    axis1, axis2 = canonical_axis(axis1, ndim(a), "axis1"), canonical_axis(axis2, ndim(a), "axis2")
    if axis1 == axis2:
        raise ValueError("axis1 and axis2 cannot be same")
    return _diagonal(a, offset=operator.index(offset), axes=(axis1, axis2))


@composite(static=("offset", "axes"))
def _diagonal(a, *, offset, axes):
    """Of the flattened matrix, the diagonal is every (m + 1)-th element."""
    others = [i for i in range(a.ndim) if i not in axes]
    a = lax.transpose(a, (*others, *axes))
    *lead, n, m = a.shape
    first = offset if offset >= 0 else -offset * m
    size = max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m))
    stop = first + (size - 1) * (m + 1) + 1 if size else 0
    return slice_p.bind(reshape(a, (*lead, n * m)), start_indices=(*(0,) * len(lead), first if size else 0),
                        limit_indices=(*lead, stop), strides=(*(1,) * len(lead), m + 1))


def diag(v, k=0):
    """The matrix with the vector `v` on its k-th diagonal, or the k-th diagonal of the matrix `v`.

    Raises:
        ValueError: for another number of axes.

    >>> jnp.diag(jnp.array([1, 2]), k=1), jnp.diag(jnp.array([[1, 2], [3, 4]]))
    (Array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]], dtype=int32), Array([1, 4], dtype=int32))
    """
    check_arraylike("diag", v)
    if ndim(v) == 2:
        return diagonal(v, k)
    if ndim(v) != 1:
        raise ValueError(f"diag input must be 1d or 2d, got shape {shape_of(v)}; jnp.diagonal takes more "
                         "axes")
    return _diag(v, k=operator.index(k))


@composite(static=("k",))
def _diag(v, *, k):
    n, aval = shape_of(v)[0] + abs(k), aval_of(v)
    zero = scalar(0, aval.dtype)
    padded = pad_p.bind(v, zero, padding_config=((max(0, k), max(0, -k), 0),))
    filled = select(eq(*_positions(n, n, k)), broadcast_to_shape(padded, (n, n)),
                    lax.full((n, n), 0, zero.dtype))
    return convert(filled, aval.dtype, aval.weak_type)


def diagflat(v, k=0):
    """The matrix with the elements of `v` on its k-th diagonal.

    >>> jnp.diagflat(jnp.array([[1, 2], [3, 4]]), k=-1)
    Array([[0, 0, 0, 0, 0],
           [1, 0, 0, 0, 0],
           [0, 2, 0, 0, 0],
           [0, 0, 3, 0, 0],
           [0, 0, 0, 4, 0]], dtype=int32)
    """
    check_arraylike("diagflat", v)
    return convert(_diag(reshape(v, (aval_of(v).size,)), k=operator.index(k)), aval_of(v).dtype)


def vander(x, N=None, increasing=False):
    """The matrix of powers of the vector `x`: columns x**(N-1), ..., x, 1, or the other way round.

    >>> jnp.vander(jnp.array([1, 2, 3])), jnp.vander(jnp.array([2, 3]), 4, increasing=True)
    (Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], dtype=int32), Array([[ 1,  2,  4,  8],
           [ 1,  3,  9, 27]], dtype=int32))
    """
    check_arraylike("vander", x)
    if ndim(x) != 1:
        raise ValueError(f"x must be a one-dimensional array, got shape {shape_of(x)}")
    n = shape_of(x)[0] if N is None else operator.index(N)
    if n < 0:
        raise ValueError(f"N must be nonnegative, got {n}")
    return _vander(x, n=n, increasing=bool(increasing))


@composite(static=("n", "increasing"))
def _vander(x, *, n, increasing):
    dtype, shape = aval_of(x).dtype, (shape_of(x)[0], n)
    powers = iota_p.bind(dtype=dtype, shape=(n,), dimension=0)
    powers = powers if increasing else sub(n - 1, powers)
    return power(broadcast_in_dim(x, shape, (0,)), broadcast_in_dim(powers, shape, (1,)))


def fromfunction(function, shape, *, dtype=float, **kwargs):
    """The array of function(i, j, ...) over all positions.

    Args:
        function: of one index for each axis; it is mapped with vmap, where NumPy calls it once, with arrays.
        shape: that of the positions.
        dtype: that of the indices.
        kwargs: passed to `function`.

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
