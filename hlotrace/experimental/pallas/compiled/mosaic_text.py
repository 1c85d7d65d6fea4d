"""Text of the dialects that Mosaic, the compiler of kernels in libtpu, takes: vectors, and places in memory.

Attributes are those of jaxlib's dialect `tpu`, which reads and verifies the text.
"""
from typing import NamedTuple

import numpy as np

from ....core import dtypes
from .kernel_text import (
    ADD, AND, DIFFERENT, EQUAL, GREATER, INT, MAXIMUM, MINIMUM, MULTIPLY, OR, XOR, Operation, Value, Writer,
    element_type, generic, kind_of)

_WIDE = {"f": np.dtype("float32"), "i": INT, "u": np.dtype("uint32")}
# the combination of many elements; of floats there is no product
_COMBINED = {
    ADD: Operation(*["add"] * 3), MULTIPLY: Operation(None, *["mul"] * 2),
    MAXIMUM: Operation("maximumf", "maxsi", "maxui"), MINIMUM: Operation("minimumf", "minsi", "minui"),
    **{how: Operation(None, *[name] * 2) for how, name in ((OR, "or"), (AND, "and"), (XOR, "xor"))}}


class Place(NamedTuple):
    """Memory, or a part of it: its name in the text, its shape, the type of elements, the kind of memory."""
    name: str
    shape: tuple[int, ...]
    of: str
    space: str

    @property
    def type(self):
        """Its type in the text."""
        return f"memref<{''.join(f'{n}x' for n in self.shape)}{self.of}, #tpu.memory_space<{self.space}>>"


def memory_type(dtype):
    """The type of an element in memory, where a bool has 32 bits."""
    if dtypes.is_bool(dtype):
        return "i32"
    if dtype.itemsize > 4:
        raise NotImplementedError(f"there are values of {dtype.name}, of 64 bits, which TPUs do not have")
    return element_type(dtype)


class MosaicWriter(Writer):
    """The text of a kernel for TPUs.

    `places` are the Places of the kernel's arguments, by number; `ids` the place in the grid; `scopes` the
    lines in which memory begins that ends before the kernel does; `mesh` that of the devices, or None, and
    `communicates` whether they meet.
    """
    compiler = "Mosaic"
    platform = "tpu"

    def __init__(self, rules, axes, mesh=None, fuses=False):
        super().__init__(rules)
        self.fuses = fuses      # a transposition into the product after it
        self.places, self.scopes, self.mesh, self.communicates = {}, [], mesh, False
        self.ids = [self.value(f"%at{axis}", (), INT) for axis in range(axes)]

    def argument(self, number, shape, of, space):
        """The text of the kernel's argument of this number."""
        place = self.places[number] = Place(f"%arg{number}", tuple(shape), of, space)
        return f"{place.name}: {place.type}"

    def block_type(self, shape, of):
        """The type of a block of elements `of`."""
        return f"vector<{''.join(f'{n}x' for n in shape)}{of}>"

    def value(self, name, shape, dtype):
        """The Value of that name."""
        memory_type(np.dtype(dtype))        # which refuses 64 bits
        return super().value(name, shape, dtype)

    # --- shapes ---

    def range(self, size, axis, shape):
        """0, 1, 2, ... along an axis of a shape, of which it has `size`."""
        if len(shape) == 1:
            return self.reshape(self.range(size, 1, (1, size)), shape)
        return self.generic("tpu.iota", [], shape, INT, f"dimensions = array<i32: {axis}>")

    def full(self, x, shape):
        """A scalar at all places of a shape; other values broadcast as NumPy has it."""
        shape = tuple(shape)
        return self.broadcast(x, shape, range(len(shape) - len(x.shape), len(shape)))

    def broadcast(self, x, shape, axes):
        """The value with its axes at these places of a shape, the same along all others."""
        axes, shape = tuple(axes), tuple(shape)
        if x.shape == shape:
            return x
        if kind_of(x.dtype) == "b":
            return self.convert(self.broadcast(self.convert(x, INT), shape, axes), np.bool_)
        if x.shape:
            x = self.reshape(x, [x.shape[axes.index(axis)] if axis in axes else 1
                                 for axis in range(len(shape))])
        return x if x.shape == shape else self.generic("vector.broadcast", [x], shape, x.dtype)

    def reshape(self, x, shape):
        """The elements in another shape."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        if kind_of(x.dtype) == "b":
            return self.convert(self.reshape(self.convert(x, INT), shape), np.bool_)
        if not x.shape:
            return self.full(x, shape)
        if shape:
            return self.generic("vector.shape_cast", [x], shape, x.dtype)
        at = ", ".join("0" * len(x.shape))
        return self.generic("vector.extract", [x], (), x.dtype, f"static_position = array<i64: {at}>")

    def transpose(self, x, order):
        """The value with its axes in another order."""
        order = tuple(order)
        if order == tuple(range(len(order))):
            return x
        return self.generic("tpu.transpose", [x], [x.shape[i] for i in order], x.dtype,
                            f"permutation = array<i64: {', '.join(map(str, order))}>")

    # --- elements ---

    def convert(self, x, dtype):
        """The value in another dtype, as `astype` has it: between kinds of numbers by 32 bits."""
        dtype = np.dtype(dtype)
        before, after, steps = kind_of(x.dtype), kind_of(dtype), []
        if before != after and after != "b":
            if before == "b":
                steps = [INT]
            elif "f" in (before, after):
                steps = [_WIDE[before], _WIDE[after]]
        for step in (*steps, dtype):
            x = super().convert(x, step)
        return x

    def binary(self, operation, x, y):
        """An operation of two values of one dtype, of which one may be a scalar: of integers in 32 bits."""
        dtype = x.dtype
        if kind_of(dtype) in "iu" and dtype.itemsize < 4:
            wide = [self.convert(v, _WIDE[kind_of(dtype)]) for v in (x, y)]
            return self.convert(super().binary(operation, *wide), dtype)
        return super().binary(operation, x, y)

    def compare(self, how, x, y):
        """Where it holds; Mosaic does not know whether floats differ or are NaN."""
        if kind_of(x.dtype) == "b":
            return self.compare(how, self.convert(x, INT), self.convert(y, INT))
        if how is not DIFFERENT or kind_of(x.dtype) != "f":
            return super().compare(how, x, y)
        equal = super().compare(EQUAL, x, y)
        return self.binary(XOR, equal, self.constant(True, np.bool_, equal.shape))

    # --- along axes ---

    def reduce(self, operation, x, axes):
        """The combination of all elements along axes."""
        dtype, axes = x.dtype, sorted(axes)
        if kind_of(dtype) == "b":
            how = MINIMUM if operation is AND else MAXIMUM
            return self.convert(self.reduce(how, self.convert(x, INT), axes), np.bool_)
        if dtype.itemsize < 4:
            wide = self.convert(x, _WIDE[kind_of(dtype)])
            return self.convert(self.reduce(operation, wide, axes), dtype)
        if len(axes) == len(x.shape):       # Mosaic has no scalars of reductions
            x = self.reshape(x, (1, *x.shape))
            found = self.reduce(operation, x, range(1, len(x.shape)))
            return self.reshape(self.reshape(found, [1] * len(x.shape)), ())
        shape = [n for axis, n in enumerate(x.shape) if axis not in axes]
        kind = _COMBINED[operation].of(dtype)
        first = self.constant(_neutral(operation, dtype), dtype, shape)
        return self.generic("vector.multi_reduction", [x, first], shape, dtype,
                            f"kind = #vector.kind<{kind}>, reduction_dims = array<i64: "
                            f"{', '.join(map(str, axes))}>")

    def first_extreme(self, before, x, axis):
        """The first index along an axis of the element that comes before all others."""
        if len(x.shape) == 1:       # Mosaic has no scalars of reductions
            found = self.first_extreme(before, self.reshape(x, (1, *x.shape)), 1)
            return self.reshape(self.reshape(found, (1, 1)), ())
        kind = "arg_max" if before is GREATER else "arg_min"
        return self.generic("tpu.reduce_index", [x],
                            [*x.shape[:axis], *x.shape[axis + 1:]], INT,
                            f"axis = {axis} : i32, kind = #tpu.reduction_kind<{kind}>")

    # --- memory ---

    def at(self, start):
        """The name of a place along an axis: a value, a number, or None for the first."""
        if start is None or isinstance(start, int):
            return self.operation(f"arith.constant {start or 0} : index")
        return self.operation(f"arith.index_cast {self.convert(start, INT).name} : i32 to index")

    def view(self, place, starts, sizes, shape):
        """The part of a Place from `starts` on, of these sizes, without axes of size 1 if `shape` says so.
        A size may be a value."""
        later = [self.convert(n, INT) for n in sizes if isinstance(n, Value)]
        sizes, shape = (tuple(["?" if isinstance(n, Value) else n for n in each]) for each in (sizes, shape))
        starts = [self.constant(start or 0) if start is None or isinstance(start, int)
                  else self.convert(start, INT) for start in starts]
        if sizes != place.shape:
            part = place._replace(name="", shape=sizes)
            count = f"operandSegmentSizes = array<i32: 1, {len(starts)}, {len(later)}>"
            place = part._replace(name=self.operation(
                generic("tpu.memref_slice", [place, *starts, *later], count, part.type)))
        if shape != place.shape:
            part = place._replace(name="", shape=shape)
            place = part._replace(name=self.operation(generic("tpu.memref_squeeze", [place], "", part.type)))
        return place

    def formed(self, place, how, shape, dtype):
        """The elements of a Place in another shape, or as another dtype; `how` is the step of a view."""
        part = Place("", tuple(shape), memory_type(dtype), place.space)
        name = {"reshape": "tpu.memref_reshape", "bitcast": "tpu.memref_bitcast"}[how]
        return part._replace(name=self.operation(generic(name, [place], "", part.type)))


def _neutral(operation, dtype):
    if operation is MULTIPLY:
        return 1
    if operation not in (MAXIMUM, MINIMUM):
        return -1 if operation is AND else 0
    if kind_of(dtype) == "f":
        return -np.inf if operation is MAXIMUM else np.inf
    info = dtypes.iinfo(dtype)
    return info.min if operation is MAXIMUM else info.max

