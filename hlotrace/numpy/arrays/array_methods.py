"""The operators and methods of Array, the functions of this package under other names; `x.at[...]`."""
import sys

from ...api.composite import composite
from ...core import dtypes, errors, source_info
from ...core.array import Array
from ...core.surface.boundary import boundaries, boundary, filtered, reraise_for_user
from ...core.symbolic.dimension import Dimension
from ...core.trace import Tracer
from ...lax.elementwise import bitcast_convert_type
from ...lax.indexing import dynamic_slice_in_dim, index_in_dim
from ...placement.device_put import device_put
from ...placement.out_sharding import over_auto_axes, with_out_sharding
from ...primitives.arrays.elementwise import complex_p, convert, imag_p, ne, real
from ...primitives.arrays.shape import full, reshape
from ...primitives.arrays.slicing import concatenate_p, rev_p
from ...primitives.common import np
from ...runtime.recalled import recall
from ..elementwise import arithmetic, ufuncs
from ..indexing import indexing, selection
from ..indexing.indexing import apply, get_noting, update
from ..util import unsigned
from . import creation, shaping

_OPERANDS = (Array, int, float, complex, np.ndarray, np.generic, Dimension)

# name of the operator's method -> (the function, how the operator is written)
_OPERATORS = {
    "add": (ufuncs.add, "+"), "sub": (ufuncs.subtract, "-"), "mul": (ufuncs.multiply, "*"),
    "truediv": (ufuncs.divide, "/"), "floordiv": (arithmetic.floor_divide, "//"),
    "mod": (arithmetic.remainder, "%"),
    "divmod": (arithmetic.divmod, "divmod"), "pow": (arithmetic.power, "**"),
    "and": (ufuncs.bitwise_and, "&"),
    "or": (ufuncs.bitwise_or, "|"), "xor": (ufuncs.bitwise_xor, "^"), "lshift": (ufuncs.left_shift, "<<"),
    "rshift": (ufuncs.right_shift, ">>"),
}
_COMPARISONS = {"eq": (ufuncs.equal, "=="), "ne": (ufuncs.not_equal, "!="), "lt": (ufuncs.less, "<"),
                "le": (ufuncs.less_equal, "<="), "gt": (ufuncs.greater, ">"),
                "ge": (ufuncs.greater_equal, ">=")}
_UNARY = {"neg": (ufuncs.negative, "-"), "pos": (ufuncs.positive, "+"), "abs": (ufuncs.abs, "abs"),
          "invert": (ufuncs.invert, "~")}

# functions whose first parameter is the array and whose others are those of the method
_METHODS = """all any argmax argmin argpartition argsort choose clip cumprod cumsum diagonal dot max mean min
    nonzero prod ptp ravel repeat round searchsorted sort squeeze std sum swapaxes take trace var""".split()


def _unary(function, name, symbol):
    def method(self):
        try:
            return function(self)
        except Exception as error:
            reraise_for_user(error, symbol, (self,))
            raise
    method.__name__ = method.__qualname__ = f"__{name}__"
    return method


def _operator(function, name, symbol, reflected=False):
    def method(self, other):
        operands = (other, self) if reflected else (self, other)
        try:
            if isinstance(other, _OPERANDS):
                return function(*operands)
            if hasattr(other, "__jax_array__"):
                other = other.__jax_array__()
                return function(other, self) if reflected else function(self, other)
            return _foreign(*operands, symbol)
        except Exception as error:
            reraise_for_user(error, symbol, operands)
            raise
    method.__name__ = method.__qualname__ = f"__{name}__"
    return method


def _foreign(left, right, symbol):
    """The result of an operator with something that is not an array: the other operand may know better."""
    other = left if isinstance(right, Array) else right
    if isinstance(other, (list, tuple)):
        mend = "make an array of the list or tuple with jnp.array(...)"
    elif isinstance(other, dict):
        mend = "pick one of its values"
    elif isinstance(other, set):
        mend = "use jnp.array(list(...))"
    elif isinstance(other, str) and symbol not in ("==", "!="):
        mend = "float(...) or int(...) makes a number of text"
    elif other is None and symbol not in ("==", "!="):
        mend = "did a function return nothing, or an argument stay at its default None?"
    else:
        mend = ""
    if mend:
        raise TypeError(f"unsupported operand type(s) for {symbol}: {type(left).__name__!r} and "
                        f"{type(right).__name__!r}; {mend}")
    return NotImplemented


# --- iteration ------------------------------------------------------------------------------------

_CHUNK = 32     # rows that one program takes apart; compiling takes about 10 ms for each


@composite(static=("count",))
def _rows(x, start, count):
    block = x if count == x.shape[0] else dynamic_slice_in_dim(x, start, count)
    return [index_in_dim(block, i, keepdims=False) for i in range(count)]


def _iterate(self):
    if not isinstance(self, Tracer) and self.is_fully_addressable and len(self.devices()) > 1 and (
            not dtypes.is_extended(self.dtype)):
        self = device_put(np.asarray(self))     # one move, and not one for each row
    for start in range(0, int(self.shape[0]), _CHUNK):
        yield from _rows(self, start, min(_CHUNK, self.shape[0] - start))


def __iter__(self):
    if not self.shape:
        raise TypeError(f"iteration over a 0-d array: one of type {self.aval.str_short()} has no axis to "
                        "take apart")
    wanted = source_info.unpacked_into(sys._getframe(2))      # past the boundary
    if wanted is not None and wanted != self.shape[0]:
        raise errors.wrong_unpacking(self.aval, wanted)
    return _iterate(self)


def __reversed__(self):
    return iter(self[::-1])


def __contains__(self, value):
    same = self == value
    if same is False:       # what Python makes of it where neither side knows the other
        raise TypeError(f"an array holds no {type(value).__name__}: `in` asks for a number or an array")
    return bool(same.any())


def __setitem__(self, index, value):
    raise TypeError(f"'{type(self).__name__}' object does not support item assignment. JAX arrays are "
                    "immutable and do not support in-place item assignment. Instead of x[idx] = y, use x = "
                    "x.at[idx].set(y) or another .at[] method: .add, .multiply, .min, .max, ...")


def __round__(self, ndigits=None):
    if ndigits is None:
        return self.round().astype(int)
    return self.round(ndigits)


# --- methods that are no function of the package, or one with other parameters --------------------

def astype(self, dtype, copy=False, device=None):
    """The array with another dtype.  Complex to real drops the imaginary part, with a warning."""
    result = convert(self, creation.dtype_to_cast_to(self, dtype))
    if copy and result is self:
        result = creation.array(self, copy=True)
    return result if device is None else to_device(result, device)


def to_device(self, device, *, stream=None):
    """The array on another device, or as a Sharding says."""
    if stream is not None:
        raise NotImplementedError("array.to_device: stream is not supported")
    return device_put(self, device)


def copy(self):
    """A copy with memory of its own."""
    return creation.array(self, copy=True)


@composite(static=("dtype",))
def _view(x, dtype):
    if dtypes.is_complex(x.dtype):
        part = dtypes.real_of(x.dtype)
        x = _pairs(real(x), imag_p.bind(x))
        return x if dtype == part else _view(x, dtype)
    if dtypes.is_complex(dtype):
        x = _view(x, dtypes.real_of(dtype))
        pairs = reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))
        return complex_p.bind(pairs[..., 0], pairs[..., 1])
    if dtypes.is_bool(x.dtype):
        x = convert(x, dtypes.uint8)
    if dtypes.is_bool(dtype):
        return ne(_view(x, dtypes.uint8), 0)
    ratio = dtypes.itemsize_bits(dtype) // dtypes.itemsize_bits(x.dtype)
    if ratio > 1:
        x = reshape(x, (*x.shape[:-1], x.shape[-1] // ratio, ratio))
    result = bitcast_convert_type(x, dtype)
    if result.ndim > x.ndim:
        result = reshape(result, (*x.shape[:-1], x.shape[-1] * result.shape[-1]))
    return result


def _pairs(a, b):
    """The elements of two arrays in turn along the last axis."""
    stacked = concatenate_p.bind(reshape(a, (*a.shape, 1)), reshape(b, (*b.shape, 1)), dimension=a.ndim)
    return reshape(stacked, (*a.shape[:-1], a.shape[-1] * 2))


def view(self, dtype=None, type=None):
    """The same bits as another dtype; a narrower or wider one changes the size of the last axis."""
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported")
    if dtype is None:
        return self
    dtype = dtypes.check_user_dtype(dtype, "view")
    if dtype == self.dtype:
        return self
    if dtypes.is_extended(self.dtype):
        raise ValueError(f"cannot view an array of dtype {self.dtype}: see random.key_data")
    old, new = dtypes.itemsize_bits(self.dtype), dtypes.itemsize_bits(dtype)
    bits = old * (self.shape[-1] if self.shape else 1)
    if bits % new or not self.shape and old != new:
        raise ValueError(f"cannot view an array of dtype {self.dtype} and shape {self.shape} as {dtype}: its "
                         f"last axis has {bits} bits, and each element of the result {new}")
    return _view(self, dtype)


@composite
def byteswap(self):
    """The bytes of each element in reverse order."""
    if self.dtype.itemsize == 1:
        return self
    octets = bitcast_convert_type(self, dtypes.uint8)
    return bitcast_convert_type(rev_p.bind(octets, dimensions=(octets.ndim - 1,)), self.dtype)


def compress(self, condition, axis=None, *, out=None, size=None, fill_value=0):
    """The slices along `axis` for which the condition holds."""
    return selection.compress(condition, self, axis, out=out, size=size, fill_value=fill_value)


def conj(self):
    """Complex conjugate."""
    return ufuncs.conjugate(self)


def reshape_method(self, *args, order="C", out_sharding=None):
    """The array with another shape, given as a tuple or as ints; one of them may be -1."""
    return shaping.reshape(self, args[0] if len(args) == 1 else args, order=order, out_sharding=out_sharding)


def transpose(self, *args):
    """The array with its axes in the order given, as a tuple or as ints; reversed if there is none."""
    if len(args) == 1 and (args[0] is None or np.ndim(args[0])):
        return shaping.transpose(self, args[0])
    return shaping.transpose(self, args or None)


def flat(self):
    raise NotImplementedError("JAX Arrays do not implement the arr.flat property: consider arr.flatten() "
                              "instead.")


# --- x.at[...] ------------------------------------------------------------------------------------

def _ones_like(x):
    return full(x.shape, 1, x.dtype)


def _over_auto_axes(index, *values):
    """The index and the values of a call with `out_sharding`: without what Explicit axes split."""
    parts = over_auto_axes(*(index if type(index) is tuple else (index,)))
    return [tuple(parts) if type(index) is tuple else parts[0], *over_auto_axes(*values)]


def _method(operation, effect):
    def method(self, values, *, indices_are_sorted=False, unique_indices=False, mode=None, out_sharding=None,
               wrap_negative_indices=True):
        flags = dict(indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
                     wrap=wrap_negative_indices)
        x, index = self.array, self.index
        values = creation.asarray(values) if isinstance(values, (list, tuple)) else unsigned(values, x.dtype)
        if out_sharding is not None:
            index, x, values = _over_auto_axes(index, x, values)
        if operation == "subtract":
            result = update(x, index, -values, "add", **flags)
        elif operation == "divide":
            result = x / update(_ones_like(x), index, values, "multiply", **flags)
        elif operation == "power":
            result = x ** update(_ones_like(x), index, values, "multiply", **flags)
        else:
            result = recall(update, (x, index, values, operation), flags)
        return with_out_sharding(result, out_sharding, f"x.at[].{operation}")
    method.__name__, method.__qualname__ = operation, f"at[].{operation}"
    method.__doc__ = f"""A copy of the array in which the addressed elements are {effect}.

        What indices address out of bounds is dropped, as with mode="drop"; mode="clip" writes the nearest
        element instead; the option `jax_check_static_indices` makes an int out of bounds an IndexError unless
        there is a `mode`.  The dtype stays that of the array.  `unique_indices` and `indices_are_sorted` are
        promises that may make it faster.
        """
    return method


@boundaries(called="x.at[]", tell_self=True)
class _IndexUpdateRef:
    """`x.at[index]`: the methods give updated copies of the array, or read with options."""
    __slots__ = ("array", "index")

    def __init__(self, array, index):
        self.array = array
        self.index = index

    def __repr__(self):
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    set = _method("set", "replaced by `values`")
    add = _method("add", "increased by `values`; repeated indices add repeatedly")
    subtract = _method("subtract", "decreased by `values`; repeated indices subtract repeatedly")
    multiply = mul = _method("multiply", "multiplied by `values`; repeated indices multiply repeatedly")
    divide = _method("divide", "divided by `values`; integers become floats")
    power = _method("power", "raised to the power `values`")
    min = _method("min", "replaced by the lesser of themselves and `values`")
    max = _method("max", "replaced by the greater of themselves and `values`")

    def apply(self, func, *, indices_are_sorted=False, unique_indices=False, mode=None,
              wrap_negative_indices=True):
        """A copy in which the elementwise `func` is applied to the addressed elements."""
        return apply(self.array, self.index, func, indices_are_sorted=indices_are_sorted,
                     unique_indices=unique_indices, mode=mode, wrap=wrap_negative_indices)

    def get(self, *, indices_are_sorted=False, unique_indices=False, mode=None, fill_value=None,
            out_sharding=None, wrap_negative_indices=True):
        """`x[index]` with a choice for indices out of bounds.

        By default the nearest element is read, as for mode="clip"; the option `jax_check_static_indices`
        makes an int out of bounds an IndexError.

        Args:
            indices_are_sorted: a promise that may make it faster.
            unique_indices: a promise that may make it faster.
            mode: "clip", "fill" or "promise_in_bounds".
            fill_value: what mode="fill" reads out of bounds; nan, the least signed or greatest unsigned
                integer, or True by default.
            wrap_negative_indices: negative indices count from the end.
        """
        array, index = self.array, self.index
        if out_sharding is not None:
            index, array = _over_auto_axes(index, array)
        result = get_noting(array, index, indices_are_sorted=indices_are_sorted,
                            unique_indices=unique_indices, mode=mode, fill_value=fill_value,
                            wrap=wrap_negative_indices)
        return with_out_sharding(result, out_sharding, "x.at[].get")


class _IndexUpdateHelper:
    """`x.at`; index it to name the elements to update."""
    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array

    __iter__ = None     # else Python would count up without an end

    def __getitem__(self, index):
        return _IndexUpdateRef(self.array, index)

    @filtered
    def __setitem__(self, index, value):
        raise TypeError("'_IndexUpdateHelper' object does not support item assignment: instead of "
                        "x.at[idx] = y use x = x.at[idx].set(y); for += there is .add")

    def __repr__(self):
        return f"_IndexUpdateHelper({self.array!r})"


# --- installed ------------------------------------------------------------------------------------

def install(functions):
    """Give Array its operators, and its methods from `functions`, the names of the package."""
    matmul = boundary(functions["matmul"], "@", recalled=True)
    for name, (function, symbol) in {**_OPERATORS, "matmul": (matmul, "@")}.items():
        setattr(Array, f"__{name}__", _operator(function, name, symbol))
        setattr(Array, f"__r{name}__", _operator(function, f"r{name}", symbol, True))
    for name, (function, symbol) in _COMPARISONS.items():
        setattr(Array, f"__{name}__", _operator(function, name, symbol))
    for name, (function, symbol) in _UNARY.items():
        setattr(Array, f"__{name}__", _unary(function, name, symbol))
    for name in _METHODS:
        setattr(Array, name, boundary(functions[name], f"Array.{name}", recalled=True))
    for method in (__reversed__, __contains__, __setitem__, __round__, astype, to_device, copy, view,
                   byteswap, compress, conj, transpose):
        setattr(Array, method.__name__, boundary(method, f"Array.{method.__name__}", recalled=True))
    Array.__iter__ = boundary(__iter__, "")     # its errors say all
    Array.__getitem__ = boundary(indexing.getitem, "[]")
    Array.reshape = boundary(reshape_method, "Array.reshape", recalled=True)
    Array.flatten = boundary(functions["ravel"], "Array.flatten", recalled=True)
    Array.conjugate, Array.clone = conj, copy
    Array.at = property(_IndexUpdateHelper,
                        doc="x.at[idx].set(y) and its kin: updated copies of the array.")
    Array.T = property(boundary(transpose, "Array.T", recalled=True), doc="The array with its axes reversed.")
    Array.mT = property(functions["matrix_transpose"], doc="The array with its last two axes swapped.")
    Array.real = property(lambda self: ufuncs.real(self), doc="The real part.")
    Array.imag = property(lambda self: ufuncs.imag(self), doc="The imaginary part; 0 for real arrays.")
    Array.flat = property(boundary(flat, "Array.flat"))
    Array.__len__ = boundary(Array.__len__, "len")
