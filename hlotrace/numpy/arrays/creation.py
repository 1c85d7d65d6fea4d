"""Making arrays: `array` from anything, and arrays of one value.

A small array whose values are known is made on the host when called eagerly, with nothing to compile; under
jit it is computed in the program.
"""
import warnings
from functools import partial

from numpy.ma import MaskedArray

from ...api.composite import composite
from ...core import dtypes, errors, source_info
from ...core.array import Array
from ...core.avals import ShapedArray, aval_of, is_arraylike
from ...core.config import state
from ...core.jaxpr_trace import as_constant
from ...core.refs import Ref
from ...core.surface.boundary import arrays_of
from ...core.trace import Tracer
from ...core.watched import unwatch
from ...lax import shapes as lax
from ...placement.device_put import device_put
from ...placement.out_sharding import devices_like, make_with_sharding, new_array
from ...primitives.arrays.elementwise import convert
from ...primitives.arrays.shape import reshape
from ...primitives.arrays.slicing import copy_p
from ...primitives.common import canonical_shape, dtype_of, np, scalar, warn_of_imaginary_part
from ...primitives.parallel.collectives import vary
from ...runtime.array_impl import from_dlpack as import_dlpack
from ..util import SCALARS, broadcast_to_shape, cast, check_arraylike, in_pieces, ndim, result_type

__all__ = ["array", "asarray", "astype", "copy", "empty", "empty_like", "from_dlpack", "frombuffer",
           "fromfile", "fromiter", "fromstring", "full", "full_like", "load", "ones", "ones_like", "zeros",
           "zeros_like"]

HOST_BYTES = 1 << 20


# --- array ----------------------------------------------------------------------------------------

def staging():
    """Is a program being written down?  grad and vmap outside jit compute values."""
    return state.trace.staging


def on_device(x, device, out_sharding=None, name=""):
    """The array moved to `device`, a Device or a Sharding, or with the sharding `out_sharding`.

    Under jit its sharding is a constraint.
    """
    if device is None and out_sharding is None:
        return x
    return make_with_sharding(lambda: x, 0, f"jnp.{name}", device, out_sharding)


def made_on(make, aval, device, out_sharding, name):
    """`make()`, an array of `aval`, as `on_device` would have it, but made there if it is large."""
    return make_with_sharding(make, 0 if dtypes.is_extended(aval.dtype) else aval.size * aval.dtype.itemsize,
                              f"jnp.{name}", device, out_sharding)


def known_array(value, aval, given=False):
    """An array of a NumPy value of the dtype of `aval`, which the caller may have `given`."""
    if not staging():
        return new_array(value, aval=aval, given=given)
    if not aval.weak_type:
        return _of_program(value)
    return _of_program(value.item()) if not aval.shape else convert(value, aval.dtype, True)


def _of_program(value):
    return copy_p.bind(value) if (found := as_constant(value)) is None else found


def default_dtype(dtype, name):
    return dtypes.canonicalize(dtypes.float64) if dtype is None else dtypes.check_user_dtype(dtype, name)


def array(object, dtype=None, copy=True, order="K", ndmin=0, *, device=None, out_sharding=None):
    """An array of an array, a number, nested lists of them, or an object with an array protocol.

    Args:
        dtype: that of the result; without it floats become float32 and ints int32 (64-bit with x64), a Python
            number has a weak type, which gives way in promotion.
        copy: False may share memory with an array.
        order: only "K".
        ndmin: axes of size 1 are put in front until there are so many.
        device: a Device or a Sharding, where the result is placed.
    Raises:
        TypeError: for values that are not numbers.
        ValueError: for nested lists of unequal lengths.

    >>> jnp.array([[1, 2], [3, 4.5]]).tolist(), jnp.array(7)
    ([[1.0, 2.0], [3.0, 4.5]], Array(7, dtype=int32, weak_type=True))
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
    if device is not None and dtype is None and getattr(getattr(object, "dtype", None), "kind", "") == "T":
        return device_put(object, device)       # texts, of which an array is made nowhere else
    dtype = None if dtype is None else dtypes.check_user_dtype(dtype, "array")
    x = _convert(object, dtype)
    if copy and (x is object or _is_elsewhere(object)):
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
    if type(a) is MaskedArray:
        aval_of(a)      # which refuses it; `array` leaves its mask out
    return array(a, dtype, bool(copy), order, device=device, out_sharding=out_sharding)


_READ = "USO"       # kinds of NumPy's values, texts and objects, which are read where a dtype is given


def _convert(value, dtype):
    if hasattr(value, "__jax_array__"):
        value = value.__jax_array__()
    given = value
    if isinstance(value, Array):
        return value if dtype is None else cast(value, dtype)
    kind = type(value := dtypes.plain(value))
    if kind in SCALARS:
        if dtype is None:
            aval = aval_of(value)
            return _of_program(value) if staging() else new_array(
                np.asarray(value, aval.dtype), aval=aval, given=True)
        value = _numpy(value, dtype)
    elif kind in (list, tuple):
        return _nested(value, dtype)
    elif value is None:
        raise ValueError("None is not a valid value for jnp.array: give a number, such as jnp.nan for what "
                         "is missing")
    elif _is_elsewhere(value):
        return _convert(share(value), dtype)
    elif not isinstance(value, (np.ndarray, np.generic)):
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            value = np.from_dlpack(value)
        else:       # it has __array__ or the buffer protocol, or is a sequence
            value = np.asarray(value)
    if dtype is not None and value.dtype.kind in _READ:
        value = np.asarray(given, dtype)
    if value.dtype not in dtypes.SUPPORTED and value.dtype != dtypes.float0:
        raise errors.no_numbers(given, value)
    if value.dtype == dtypes.float0 and dtype is None:
        return value        # of which there is one value, on no device
    value = np.asarray(value).astype(dtype or dtypes.canonicalize(value.dtype), copy=False)
    return known_array(value, ShapedArray(value.shape, value.dtype), given=True)


_HOST = 1       # DLPack's number


def _is_elsewhere(value):
    """Is it an array of another library that says by DLPack that it is not in the host's memory?"""
    if type(value) is np.ndarray or isinstance(value, Array) or not hasattr(value, "__dlpack_device__"):
        return False
    return value.__dlpack_device__()[0] != _HOST


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
    if dtype is not None and kinds and kinds <= {str, bytes}:
        return _convert(np.asarray(value), dtype)
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
    return known_array(value, ShapedArray(value.shape, value.dtype), given=True)


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


def dtype_to_cast_to(x, dtype):
    """What `dtype` means for astype, which warns where imaginary parts are lost."""
    dtype = default_dtype(dtype, "astype")
    if dtypes.is_complex(aval_of(x).dtype) and not (dtypes.is_complex(dtype) or dtypes.is_bool(dtype)):
        warnings.warn("Casting from complex to real dtypes discards the imaginary part, and will be an "
                      "error: take jnp.real(x) or jnp.imag(x) first", DeprecationWarning,
                      stacklevel=source_info.user_stacklevel())
    return dtype


def astype(x, dtype, /, *, copy=False, device=None):
    """`x` with another dtype; None is the default float.  Complex to real drops the imaginary part.

    Floats lose their fraction when they become integers; what is not 0 becomes True.

    >>> jnp.astype(jnp.array([-1.7, 0., 2.9]), jnp.int32), jnp.astype(jnp.array([0., 0.5]), bool)
    (Array([-1,  0,  2], dtype=int32), Array([False,  True], dtype=bool))
    """
    check_arraylike("astype", x)
    dtype = dtype_to_cast_to(x, dtype)
    if dtypes.is_complex(dtype_of(x)) and not dtypes.is_complex(dtype):
        x = convert(x, dtype)       # which has its own warning
    return array(cast(x, dtype) if type(x) in SCALARS else x, dtype, copy, device=device)


def share(external_array, device=None, copy=None):
    """An array over the memory of an object with `__dlpack__`: of NumPy, PyTorch, CuPy, ...

    Args:
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
    result = array(found, dtypes.canonicalize(found.dtype), copy=bool(copy), device=device)
    if copy is False and (copied or result is not found and (
            isinstance(found, Tracer) or len(result.devices()) > 1
            or result.unsafe_buffer_pointer() != found.unsafe_buffer_pointer())):
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
        unwatch()       # a file may have changed
        return asarray(getattr(np, name)(*args, **kwargs))
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""What `numpy.{name}` gives for the same arguments, as an Array; 32-bit where x64 is off.

    {example}
    """
    return make


def frombuffer(buffer, dtype=float, count=-1, offset=0):
    """The numbers in an object with the buffer protocol, as by `numpy.frombuffer`; 32-bit without x64.

    Args:
        count: how many numbers, -1 for all.
        offset: bytes to leave out in front.

    >>> jnp.frombuffer(b"\\x01\\x02\\x00\\x01", dtype="<u2")
    Array([513, 256], dtype=uint16)
    """
    if isinstance(buffer, Array):       # which offers its buffer from Python 3.12 on
        buffer = np.asarray(buffer)
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
    unwatch()
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    return asarray(found.view(dtypes.bfloat16) if found.dtype == np.dtype("V2") else found)


# --- arrays of one value --------------------------------------------------------------------------

def _fill(shape, value, dtype, weak=False):
    aval = ShapedArray(shape, dtype, weak)
    if dtypes.is_extended(dtype) and is_arraylike(value) and aval_of(value).dtype == dtype:
        return asarray(broadcast_to_shape(value, shape))
    if type(value := dtypes.plain(value)) in SCALARS and not dtypes.is_extended(dtype):
        warn_of_imaginary_part(value, dtype)
        value = scalar(value, dtype)
        if not staging() and isinstance(value, np.ndarray) and aval.size * dtype.itemsize <= HOST_BYTES:
            return new_array(np.full(shape, value), aval=aval)
        value = value.item() if weak else value
    if ndim(value) == 0:
        if weak and not aval_of(value).weak_type:
            return convert(lax.full(shape, value, dtype), dtype, True)
        return lax.full(shape, value, None if weak or dtype_of(value) == dtype else dtype)
    return asarray(broadcast_to_shape(cast(value, dtype, weak), shape))


def _shape(name, shape):
    return canonical_shape(shape, f"jnp.{name}: shape")


def full(shape, fill_value, dtype=None, *, device=None, out_sharding=None):
    """An array of the given shape with `fill_value` everywhere.

    Args:
        shape: an int or a tuple of ints, known under jit too.
        fill_value: a scalar, or an array that broadcasts.
        dtype: that of the result; by default it has the dtype and weak type of `fill_value`.
        device: a Device or a Sharding, where the result is placed.

    >>> jnp.full((2, 2), 7, dtype=jnp.int8).tolist(), jnp.full((2, 2), jnp.array([1., 2.])).tolist()
    ([[7, 7], [7, 7]], [[1.0, 2.0], [1.0, 2.0]])
    """
    check_arraylike("full", fill_value)
    shape = _shape("full", shape)
    weak = dtype is None and aval_of(fill_value).weak_type
    dtype = aval_of(fill_value).dtype if dtype is None else dtypes.check_user_dtype(dtype, "full")
    return made_on(lambda: _fill(shape, fill_value, dtype, weak), ShapedArray(shape, dtype), device,
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
    if dtype is None:
        dtype = aval.dtype if aval is not a else dtypes.canonicalize(aval.dtype)
    else:
        dtype = dtypes.check_user_dtype(dtype, "full_like")
    if device is None and out_sharding is None:
        device = devices_like(a)
        if shape != aval.shape and device is not None and device.num_devices > 1:
            device = None
    filled = made_on(lambda: _fill(shape, fill_value, dtype, weak), ShapedArray(shape, dtype), device,
                   out_sharding, "full_like")
    return vary(filled, a.aval.vma) if isinstance(a, Tracer) and a.aval.vma else filled


def _constant(name, value):
    """`zeros` and `zeros_like`, and their kin."""
    def make(shape, dtype=None, *, device=None, out_sharding=None):
        shape = _shape(name, shape)
        dtype = default_dtype(dtype, name)
        return made_on(lambda: _fill(shape, value, dtype), ShapedArray(shape, dtype), device, out_sharding,
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

    >>> jnp.empty_like(jnp.array([5, 6])), jnp.empty_like(jax.ShapeDtypeStruct((2,), "float16"), dtype=bool)
    (Array([0, 0], dtype=int32), Array([False, False], dtype=bool))
    """
    return full_like(prototype, 0, dtype, shape, device=device, out_sharding=out_sharding)
