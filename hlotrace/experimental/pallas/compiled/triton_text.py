"""Text of the Triton dialect, which XLA's compiler for NVIDIA's GPUs takes: values, and what makes others of
them.

Triton: Tillet, Kung & Cox, "Triton: an intermediate language and compiler for tiled neural network
computations" (MAPL 2019).  Values are scalars, or tensors of which each size is a power of 2.
"""
import functools
import math

import numpy as np

from ....core import dtypes
from .kernel_text import (
    ADD, AND, AT_LEAST, DIFFERENT, DIVIDE, EQUAL, INT, LESS, MULTIPLY, OR, REMAINDER, Operation, Writer,
    element_type, kind_of)

# of what is in memory and a value, in one step
ATOMIC_ADD = Operation("tt.atomic_rmw fadd", *["tt.atomic_rmw add"] * 2)
ATOMIC_MAXIMUM = Operation(*["tt.atomic_rmw max"] * 2, "tt.atomic_rmw umax")
ATOMIC_MINIMUM = Operation(*["tt.atomic_rmw min"] * 2, "tt.atomic_rmw umin")
ATOMIC_AND = Operation(None, *["tt.atomic_rmw and"] * 2)
ATOMIC_OR = Operation(None, *["tt.atomic_rmw or"] * 2)
ATOMIC_XOR = Operation(None, *["tt.atomic_rmw xor"] * 2)
ATOMIC_EXCHANGE = Operation(*["tt.atomic_rmw exch"] * 3)


def memory_type(dtype):
    """The type of an element in memory, where a bool is a byte."""
    return "i8" if dtypes.is_bool(dtype) else element_type(dtype)


class TritonWriter(Writer):
    """The text of a kernel in the Triton dialect.

    `ids` is the place in the grid, of which the last axis is the fastest.
    """

    compiler = "Triton"
    platform = "cuda"

    def __init__(self, rules, grid, same):
        super().__init__(rules, same)
        self.pointers, self.starts = {}, {}     # by the number of the kernel's argument
        at = self.emit("tt.get_program_id x", (), INT)
        self.ids = []
        for size in reversed(grid):
            self.ids.insert(0, self.binary(REMAINDER, at, self.constant(size)))
            at = self.binary(DIVIDE, at, self.constant(size))

    def argument(self, number, array):
        """The text of the kernel's argument of this number, the memory of an array."""
        self.pointers[number], self.starts[number] = f"%arg{number}", [None] * array.ndim
        return f"%arg{number}: !tt.ptr<{memory_type(array.dtype)}> {{tt.divisibility = 16 : i32}}"

    def block_type(self, shape, of):
        """The type of a block of elements `of`."""
        if any(n < 1 or n & (n - 1) for n in shape):
            raise NotImplementedError(f"there is a value of shape {shape}, and sizes must be powers of 2: "
                                      "make blocks larger, and mask what is beyond, with "
                                      "triton.load(..., mask=)")
        return f"tensor<{''.join(f'{n}x' for n in shape)}{of}>"

    # --- shapes ---

    def range(self, size, axis, shape):
        """0, 1, 2, ... along an axis of a shape."""
        if size == 1:
            return self.constant(0, INT, shape)
        counted = self.emit(f"tt.make_range {{end = {size} : i32, start = 0 : i32}}", (size,), INT)
        return self.broadcast(counted, shape, (axis,))

    def full(self, x, shape):
        """A scalar at all places of a shape; other values broadcast as NumPy has it."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        if x.shape:
            return self.broadcast(x, shape, range(len(shape) - len(x.shape), len(shape)))
        return self.changed(f"tt.splat {x.name}", x, shape)

    def broadcast(self, x, shape, axes):
        """The value with its axes at these places of a shape, the same along all others."""
        if not x.shape:
            return self.full(x, shape)
        axes, shape = tuple(axes), tuple(shape)
        for axis in range(len(shape)):
            if axis not in axes:
                x = self.changed(f"tt.expand_dims {x.name} {{axis = {axis} : i32}}", x,
                                 (*x.shape[:axis], 1, *x.shape[axis:]))
        return x if x.shape == shape else self.changed(f"tt.broadcast {x.name}", x, shape)

    def reshape(self, x, shape):
        """The elements in another shape."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        if not x.shape:
            return self.full(x, shape)
        if not shape:
            return self.reduce(ADD, x, range(len(x.shape)))
        return self.changed(f"tt.reshape {x.name}", x, shape)

    def transpose(self, x, order):
        """The value with its axes in another order."""
        order = tuple(order)
        if order == tuple(range(len(order))):
            return x
        return self.changed(f"tt.trans {x.name} {{order = array<i32: {', '.join(map(str, order))}>}}", x,
                            [x.shape[i] for i in order])

    # --- elements ---

    def other_float(self, x, dtype):
        """A float in another width."""
        if 1 not in (dtype.itemsize, x.dtype.itemsize):
            return super().other_float(x, dtype)
        rounded = ", rounding = rtne" if dtype.itemsize < x.dtype.itemsize else ""      # from or to float8
        return self.changed(f"tt.fp_to_fp {x.name}{rounded}", x, x.shape, dtype)

    def libdevice(self, name, *operands):
        """A function of NVIDIA's libdevice, whose functions of float32 end in f."""
        shape = next((x.shape for x in operands if x.shape), ())
        operands = [self.full(x, shape) for x in operands]
        x = operands[0]
        symbol = f"__nv_{name}{'f' if x.dtype == np.float32 else ''}"
        return self.emit(f"tt.extern_elementwise {', '.join(v.name for v in operands)} {{libname = \"\", "
                         f'libpath = "", pure = true, symbol = "{symbol}"}}', shape, x.dtype,
                         f"({', '.join([x.type] * len(operands))}) -> {x.type}")

    # --- along axes ---

    def reduce(self, operation, x, axes):
        """The combination of all elements along axes."""
        dtype = x.dtype
        if operation in (ADD, MULTIPLY) and kind_of(dtype) == "f" and dtype.itemsize < 4:
            x = self.convert(x, np.float32)
        for axis in sorted(axes, reverse=True):
            x = self._combined("reduce", operation, x, f"axis = {axis} : i32",
                               (*x.shape[:axis], *x.shape[axis + 1:]))
        return self.convert(x, dtype)

    def scan(self, operation, x, axis, reverse):
        """The combination of the elements up to each, along an axis."""
        return self._combined("scan", operation, x, f"axis = {axis} : i32, reverse = {str(reverse).lower()}",
                              x.shape)

    def _combined(self, how, operation, x, attributes, shape):
        result, a, b, c = [self.new_name() for _ in range(4)]
        of, made = element_type(x.dtype), self.value(result, shape, x.dtype)
        self.lines += [
            f'{result} = "tt.{how}"({x.name}) <{{{attributes}}}> ({{',
            f"^bb0({a}: {of}, {b}: {of}):",
            f"{c} = {operation.of(x.dtype)} {a}, {b} : {of}",
            f"tt.{how}.return {c} : {of}",
            f"}}) : ({x.type}) -> {made.type}",
        ]
        return made

    def first_extreme(self, before, x, axis):
        """The first index along an axis of the element that comes before all others; a NaN does."""
        at, shape = self.range(x.shape[axis], axis, x.shape), (*x.shape[:axis], *x.shape[axis + 1:])
        result, *names = [self.new_name() for _ in range(5)]
        p, m, q, n = (self.value(name, (), dtype) for name, dtype in zip(names, (x.dtype, INT) * 2))
        self.lines += [f'{result}:2 = "tt.reduce"({x.name}, {at.name}) <{{axis = {axis} : i32}}> ({{',
                       f"^bb0({', '.join(f'{v.name}: {v.type}' for v in (p, m, q, n))}):"]
        better, tie = self.compare(before, p, q), self.compare(EQUAL, p, q)
        if kind_of(x.dtype) == "f":
            nans = self.compare(DIFFERENT, p, p), self.compare(DIFFERENT, q, q)
            better = self.binary(OR, better, self.binary(AND, nans[0], self.compare(EQUAL, q, q)))
            tie = self.binary(OR, tie, self.binary(AND, *nans))
        first = self.binary(OR, better, self.binary(AND, tie, self.compare(LESS, m, n)))
        found, where = self.select(first, p, q), self.select(first, m, n)
        types = [self.value("", shape, v.dtype).type for v in (p, m)]
        self.lines += [f"tt.reduce.return {found.name}, {where.name} : {p.type}, {m.type}",
                       f"}}) : ({x.type}, {at.type}) -> ({', '.join(types)})"]
        return self.value(f"{result}#1", shape, INT)

    # --- memory ---

    def before(self, ref, writes):
        """Have the threads of a program meet, where one may read or write what another has not yet."""
        number = self.memory_number(ref)
        if number in self.written or writes and number in self.read:
            self.lines.append("gpu.barrier")
            self.read, self.written = set(), set()
        (self.written if writes else self.read).add(number)

    def places(self, ref, index, masked):
        """(The pointers to what an index selects of a Ref, their type, where they are inside or None)."""
        memory, shape = ref._value, index.shape()
        array, blocks, starts = memory.array, memory.blocks, self.starts[memory.number]
        beyond, squeezed = (blocks.beyond, blocks.squeezed) if blocks else ((), ())
        wide = np.dtype("int64") if array.size >= 2 ** 31 else INT
        inside, base, offsets = index.conditions(), None, None
        dims = iter(range(ref.ndim))
        for d, start in enumerate(starts):
            found = None if d in squeezed else index.along(next(dims), shape)
            terms = [term for term in (start, found) if term is not None]
            if terms and (masked or d in beyond):
                place = functools.reduce(functools.partial(self.binary, ADD), terms)
                inside += [self.compare(AT_LEAST, place, self.constant(0))] if masked else []
                inside.append(self.compare(LESS, place, self.constant(array.shape[d])))
            for term in terms:
                term, stride = self.convert(term, wide), math.prod(array.shape[d + 1:])
                if stride != 1:
                    term = self.binary(MULTIPLY, term, self.constant(stride, wide))
                if not term.shape:
                    base = term if base is None else self.binary(ADD, base, term)
                else:
                    offsets = term if offsets is None else self._sum(offsets, term)
        return *self._pointers(memory, base, offsets, shape), self.all(inside, shape)

    def _sum(self, x, y):
        shape = tuple(map(max, x.shape, y.shape))
        return self.binary(ADD, self.full(x, shape), self.full(y, shape))

    def _pointers(self, memory, base, offsets, shape):
        pointer, one = self.pointers[memory.number], f"!tt.ptr<{memory_type(memory.array.dtype)}>"
        if base is not None:
            pointer = self.operation(f"tt.addptr {pointer}, {base.name} : {one}, {base.type}")
        if not shape:
            return pointer, one
        many = self.block_type(shape, one)
        pointer = self.operation(f"tt.splat {pointer} : {one} -> {many}")
        if offsets is not None:
            offsets = self.full(offsets, shape)
            pointer = self.operation(f"tt.addptr {pointer}, {offsets.name} : {many}, {offsets.type}")
        return pointer, many
