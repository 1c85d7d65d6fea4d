"""Text of the Triton dialect, which XLA's compiler for NVIDIA's GPUs takes: values, and what makes others of
them.

Triton: Tillet, Kung & Cox, "Triton: an intermediate language and compiler for tiled neural network
computations" (MAPL 2019).  Values are scalars, or tensors of which each size is a power of 2.
"""
import functools
import math
from typing import NamedTuple

import numpy as np

from ...core import dtypes
from ...lowering.constants import element

INT = np.dtype("int32")
_FLOAT = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "float8_e5m2": "f8E5M2",
          "float8_e4m3fn": "f8E4M3FN"}


class Value(NamedTuple):
    """A value of the kernel: its name in the text, its shape and its dtype."""
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def type(self):
        """Its type in the text."""
        return type_of(self.shape, element_type(self.dtype))


def element_type(dtype):
    """The type of an element; integers have no sign."""
    if dtypes.is_bool(dtype):
        return "i1"
    if dtypes.is_integer(dtype):
        return f"i{dtypes.iinfo(dtype).bits}"
    if dtype.name not in _FLOAT:
        raise NotImplementedError(f"Triton has no values of {dtype.name}")
    return _FLOAT[dtype.name]


def memory_type(dtype):
    """The type of an element in memory, where a bool is a byte."""
    return "i8" if dtypes.is_bool(dtype) else element_type(dtype)


def type_of(shape, of):
    """The type of a value of elements `of`."""
    if any(n < 1 or n & (n - 1) for n in shape):
        raise NotImplementedError(f"there is a value of shape {shape}, and sizes must be powers of 2: make "
                                  "blocks larger, and mask what is beyond, with triton.load(..., mask=)")
    return f"tensor<{''.join(f'{n}x' for n in shape)}{of}>" if shape else of


def kind_of(dtype):
    """"b", "i", "u" or "f"."""
    if dtypes.is_bool(dtype):
        return "b"
    if dtypes.is_integer(dtype):
        return "u" if dtypes.is_unsigned(dtype) else "i"
    return "f"


class Operation(NamedTuple):
    """An operation of two values, as it is called for each kind of dtype; None where there is none."""
    f: str | None = None
    i: str | None = None
    u: str | None = None
    b: str | None = None

    def of(self, dtype):
        """Its name for a dtype."""
        found = getattr(self, kind_of(dtype))
        if found is None:
            raise NotImplementedError(f"it does not take {dtype.name}")
        return found


ADD = Operation("arith.addf", "arith.addi", "arith.addi", "arith.ori")
SUBTRACT = Operation("arith.subf", "arith.subi", "arith.subi")
MULTIPLY = Operation("arith.mulf", "arith.muli", "arith.muli", "arith.andi")
DIVIDE = Operation("arith.divf", "arith.divsi", "arith.divui")
REMAINDER = Operation("arith.remf", "arith.remsi", "arith.remui")
MAXIMUM = Operation("arith.maximumf", "arith.maxsi", "arith.maxui", "arith.ori")
MINIMUM = Operation("arith.minimumf", "arith.minsi", "arith.minui", "arith.andi")
AND, OR, XOR = (Operation(None, *[name] * 3) for name in ("arith.andi", "arith.ori", "arith.xori"))
SHIFT_LEFT = Operation(None, "arith.shli", "arith.shli")
SHIFT_RIGHT = Operation(None, "arith.shrui", "arith.shrui")
SHIFT_RIGHT_SIGNED = Operation(None, "arith.shrsi", "arith.shrsi")
# of what is in memory and a value, in one step
ATOMIC_ADD = Operation("tt.atomic_rmw fadd", *["tt.atomic_rmw add"] * 2)
ATOMIC_MAXIMUM = Operation(*["tt.atomic_rmw max"] * 2, "tt.atomic_rmw umax")
ATOMIC_MINIMUM = Operation(*["tt.atomic_rmw min"] * 2, "tt.atomic_rmw umin")
ATOMIC_AND = Operation(None, *["tt.atomic_rmw and"] * 2)
ATOMIC_OR = Operation(None, *["tt.atomic_rmw or"] * 2)
ATOMIC_XOR = Operation(None, *["tt.atomic_rmw xor"] * 2)
ATOMIC_EXCHANGE = Operation(*["tt.atomic_rmw exch"] * 3)
# comparisons, as they are called for each kind
EQUAL, DIFFERENT = Operation("oeq", "eq", "eq", "eq"), Operation("une", "ne", "ne", "ne")
LESS, AT_MOST = Operation("olt", "slt", "ult", "ult"), Operation("ole", "sle", "ule", "ule")
GREATER, AT_LEAST = Operation("ogt", "sgt", "ugt", "ugt"), Operation("oge", "sge", "uge", "uge")


class Writer:
    """The text of a kernel: operations are added at its end.

    `ids` is the place in the grid, of which the last axis is the fastest.  `same` says which arguments have
    the memory of another: {number: that of the other}.
    """

    def __init__(self, grid, same):
        self.lines, self._number = [], 0
        self.pointers, self.starts = {}, {}     # by the number of the kernel's argument
        self.same = same
        self.read, self.written = set(), set()  # which were, by some thread, since all threads last met
        at = Value(self.operation("tt.get_program_id x : i32"), (), INT)
        self.ids = []
        for size in reversed(grid):
            self.ids.insert(0, self.binary(REMAINDER, at, self.constant(size)))
            at = self.binary(DIVIDE, at, self.constant(size))

    def argument(self, number, array):
        """The text of the kernel's argument of this number, the memory of an array."""
        self.pointers[number], self.starts[number] = f"%arg{number}", [None] * array.ndim
        return f"%arg{number}: !tt.ptr<{memory_type(array.dtype)}> {{tt.divisibility = 16 : i32}}"

    def new_name(self):
        """A name that is not used yet."""
        self._number += 1
        return f"%{self._number}"

    def operation(self, text):
        """The name of the result of an operation."""
        name = self.new_name()
        self.lines.append(f"{name} = {text}")
        return name

    def emit(self, text, shape, dtype, types=None):
        """The value that an operation gives; `types` is the text after the colon, else the value's type."""
        made = Value("", tuple(shape), np.dtype(dtype))
        return made._replace(name=self.operation(f"{text} : {types or made.type}"))

    def changed(self, text, x, shape, dtype=None, arrow="->"):
        """The value of an operation whose types are x's and the result's."""
        made = Value("", tuple(shape), np.dtype(dtype or x.dtype))
        return self.emit(text, shape, made.dtype, f"{x.type} {arrow} {made.type}")

    # --- shapes ---

    def constant(self, value, dtype=INT, shape=()):
        """The same number everywhere."""
        dtype = np.dtype(dtype)
        number = element(np.asarray(value).astype(dtype)[()], dtype)
        if kind_of(dtype) == "b" and not shape:
            return Value(self.operation(f"arith.constant {number}"), (), dtype)
        if kind_of(dtype) == "u" and int(number) > dtypes.iinfo(dtype).max // 2:
            number = str(int(number) - 2 ** dtypes.iinfo(dtype).bits)
        return self.emit(f"arith.constant {f'dense<{number}>' if shape else number}", shape, dtype)

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

    def binary(self, operation, x, y):
        """An operation of two values of one dtype, of which one may be a scalar."""
        shape, dtype = x.shape or y.shape, x.dtype
        x, y = self.full(x, shape), self.full(y, shape)
        if operation in (DIVIDE, REMAINDER) and kind_of(dtype) == "f" and dtype.itemsize < 4:
            wide = self.convert(x, np.float32), self.convert(y, np.float32)     # Triton ends the process
            return self.convert(self.binary(operation, *wide), dtype)
        return self.emit(f"{operation.of(dtype)} {x.name}, {y.name}", shape, dtype)

    def compare(self, how, x, y):
        """Where it holds."""
        shape = x.shape or y.shape
        x, y = self.full(x, shape), self.full(y, shape)
        kind = "f" if kind_of(x.dtype) == "f" else "i"
        return self.emit(f"arith.cmp{kind} {how.of(x.dtype)}, {x.name}, {y.name}", shape, np.bool_, x.type)

    def select(self, which, x, y):
        """x where it holds, y elsewhere."""
        shape = which.shape or x.shape or y.shape
        which, x, y = (self.full(v, shape) for v in (which, x, y))
        return self.emit(f"arith.select {which.name}, {x.name}, {y.name}", shape, x.dtype,
                         f"{which.type}, {x.type}" if shape else x.type)

    def convert(self, x, dtype):
        """The value in another dtype, as `astype` has it."""
        dtype, old = np.dtype(dtype), x.dtype
        before, after = kind_of(old), kind_of(dtype)
        if dtype == old:
            return x
        if after == "b":
            return self.compare(DIFFERENT, x, self.constant(0, old, x.shape))
        if before == after == "f":
            return self._other_float(x, dtype)
        if after == "f":
            how = "sitofp" if before == "i" else "uitofp"
        elif before == "f":
            how = "fptosi" if after == "i" else "fptoui"
        else:
            bits = [1 if kind_of(d) == "b" else dtypes.iinfo(d).bits for d in (old, dtype)]
            if bits[0] == bits[1]:
                return x._replace(dtype=dtype)
            wider = "extsi" if before == "i" else "extui"
            how = wider if bits[1] > bits[0] else "trunci"
        return self.changed(f"arith.{how} {x.name}", x, x.shape, dtype, "to")

    def _other_float(self, x, dtype):
        narrow = dtype.itemsize < x.dtype.itemsize
        if 1 in (dtype.itemsize, x.dtype.itemsize):  # float8
            return self.changed(
                f"tt.fp_to_fp {x.name}{', rounding = rtne' if narrow else ''}", x, x.shape, dtype
            )
        if dtype.itemsize == x.dtype.itemsize:
            return self.convert(self.convert(x, np.float32), dtype)
        return self.changed(f"arith.{'truncf' if narrow else 'extf'} {x.name}", x, x.shape, dtype, "to")

    def wide(self, function, *operands):
        """A function of floats that has no form in 16 bits."""
        dtype = operands[0].dtype
        if dtype.itemsize >= 4:
            return function(*operands)
        return self.convert(function(*[self.convert(x, np.float32) for x in operands]), dtype)

    def math(self, name, x):
        """A function of the dialect `math`."""
        return self.emit(f"math.{name} {x.name}", x.shape, x.dtype)

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
        of, made = element_type(x.dtype), x._replace(shape=shape)
        result, a, b, c = [self.new_name() for _ in range(4)]
        self.lines += [
            f'{result} = "tt.{how}"({x.name}) <{{{attributes}}}> ({{',
            f"^bb0({a}: {of}, {b}: {of}):",
            f"{c} = {operation.of(x.dtype)} {a}, {b} : {of}",
            f"tt.{how}.return {c} : {of}",
            f"}}) : ({x.type}) -> {made.type}",
        ]
        return made._replace(name=result)

    def first_extreme(self, before, x, axis):
        """The first index along an axis of the element that comes before all others; a NaN does."""
        at, shape = self.range(x.shape[axis], axis, x.shape), (*x.shape[:axis], *x.shape[axis + 1:])
        result, *names = [self.new_name() for _ in range(5)]
        p, m, q, n = (Value(name, (), dtype) for name, dtype in zip(names, (x.dtype, INT) * 2))
        self.lines += [f'{result}:2 = "tt.reduce"({x.name}, {at.name}) <{{axis = {axis} : i32}}> ({{',
                       f"^bb0({', '.join(f'{v.name}: {v.type}' for v in (p, m, q, n))}):"]
        better, tie = self.compare(before, p, q), self.compare(EQUAL, p, q)
        if kind_of(x.dtype) == "f":
            nans = self.compare(DIFFERENT, p, p), self.compare(DIFFERENT, q, q)
            better = self.binary(OR, better, self.binary(AND, nans[0], self.compare(EQUAL, q, q)))
            tie = self.binary(OR, tie, self.binary(AND, *nans))
        first = self.binary(OR, better, self.binary(AND, tie, self.compare(LESS, m, n)))
        found, where = self.select(first, p, q), self.select(first, m, n)
        types = [type_of(shape, v.type) for v in (p, m)]
        self.lines += [f"tt.reduce.return {found.name}, {where.name} : {p.type}, {m.type}",
                       f"}}) : ({x.type}, {at.type}) -> ({', '.join(types)})"]
        return Value(f"{result}#1", shape, INT)

    # --- memory ---

    def _memory_number(self, ref):
        number = ref._value.number
        return self.same.get(number, number)

    def before(self, ref, writes):
        """Have the threads of a program meet, where one may read or write what another has not yet."""
        number = self._memory_number(ref)
        if number in self.written or writes and number in self.read:
            self.lines.append("gpu.barrier")
            self.read, self.written = set(), set()
        (self.written if writes else self.read).add(number)

    def again(self, accesses):
        """What a loop does to memory may be done before its body as well."""
        if any(access.writes for access in accesses):
            for access in accesses:
                (self.written if access.writes else self.read).add(self._memory_number(access.ref))

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

    def all(self, conditions, shape):
        """Where all hold, with this shape; None without any."""
        conditions = [self.full(c, shape) for c in conditions]
        return functools.reduce(functools.partial(self.binary, AND), conditions) if conditions else None

    def _pointers(self, memory, base, offsets, shape):
        pointer, one = self.pointers[memory.number], f"!tt.ptr<{memory_type(memory.array.dtype)}>"
        if base is not None:
            pointer = self.operation(f"tt.addptr {pointer}, {base.name} : {one}, {base.type}")
        if not shape:
            return pointer, one
        many = type_of(shape, one)
        pointer = self.operation(f"tt.splat {pointer} : {one} -> {many}")
        if offsets is not None:
            offsets = self.full(offsets, shape)
            pointer = self.operation(f"tt.addptr {pointer}, {offsets.name} : {many}, {offsets.type}")
        return pointer, many
