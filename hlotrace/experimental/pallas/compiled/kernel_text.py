"""Text of kernels, as far as dialects agree: values, what is computed with elements, and branches and loops.

Values are scalars, or blocks of elements: tensors in Triton's dialect, vectors in Mosaic's.
"""
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ....core import dtypes
from ....lowering.constants import element

INT = np.dtype("int32")
_FLOAT = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "float8_e5m2": "f8E5M2",
          "float8_e4m3fn": "f8E4M3FN"}


def element_type(dtype):
    """The type of an element; integers have no sign."""
    if dtypes.is_bool(dtype):
        return "i1"
    if dtypes.is_integer(dtype):
        return f"i{dtypes.iinfo(dtype).bits}"
    if dtype.name not in _FLOAT:
        raise NotImplementedError(f"there are no values of {dtype.name} in kernels")
    return _FLOAT[dtype.name]


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
# comparisons, as they are called for each kind
EQUAL, DIFFERENT = Operation("oeq", "eq", "eq", "eq"), Operation("une", "ne", "ne", "ne")
LESS, AT_MOST = Operation("olt", "slt", "ult", "ult"), Operation("ole", "sle", "ule", "ule")
GREATER, AT_LEAST = Operation("ogt", "sgt", "ugt", "ugt"), Operation("oge", "sge", "uge", "uge")


class Value(NamedTuple):
    """A value of a kernel: its name in the text, its shape, its dtype, and its type in the text."""
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    type: str


class Writer:
    """The text of a kernel: operations are added at its end.  What a dialect has of its own is in the classes
    derived from it.

    `same` says which arguments have the memory of another: {number: that of the other}.  `read` and `written`
    are the numbers of those that were, by some thread, since all threads last met.
    """
    compiler: str
    platform: str               # of `lax.platform_dependent`
    block_type: Callable        # (shape, the type of elements) -> that of a block

    def __init__(self, rules, same=()):
        self.rules = rules      # {primitive: a function of the Writer, an equation and its operands}
        self.lines, self._number, self.same = [], 0, dict(same)
        self.read, self.written = set(), set()

    def value(self, name, shape, dtype):
        """The Value of that name."""
        shape, dtype = tuple(shape), np.dtype(dtype)
        of = element_type(dtype)
        return Value(name, shape, dtype, self.block_type(shape, of) if shape else of)

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
        made = self.value("", shape, dtype)
        return made._replace(name=self.operation(f"{text} : {types or made.type}"))

    def changed(self, text, x, shape, dtype=None, arrow="->"):
        """The value of an operation whose types are x's and the result's."""
        made = self.value("", shape, dtype or x.dtype)
        return made._replace(name=self.operation(f"{text} : {x.type} {arrow} {made.type}"))

    def generic(self, name, operands, shape, dtype, attributes=""):
        """The value of an operation in the form that all have, with attributes."""
        made = self.value("", shape, dtype)
        return made._replace(name=self.operation(generic(name, operands, attributes, made.type)))

    # --- memory ---

    def memory_number(self, ref):
        """The number of the argument that has the memory of a Ref."""
        number = ref._value.number
        return self.same.get(number, number)

    def again(self, accesses):
        """What a loop does to memory may be done before its body as well."""
        if any(access.writes for access in accesses):
            for access in accesses:
                (self.written if access.writes else self.read).add(self.memory_number(access.ref))

    # --- elements ---

    def constant(self, value, dtype=INT, shape=()):
        """The same number everywhere."""
        dtype = np.dtype(dtype)
        number = element(np.asarray(value).astype(dtype)[()], dtype)
        if kind_of(dtype) == "b" and not shape:
            return self.value(self.operation(f"arith.constant {number}"), (), dtype)
        if kind_of(dtype) == "u" and int(number) > dtypes.iinfo(dtype).max // 2:
            number = str(int(number) - 2 ** dtypes.iinfo(dtype).bits)
        return self.emit(f"arith.constant {f'dense<{number}>' if shape else number}", shape, dtype)

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
            return self.other_float(x, dtype)
        if after == "f":
            how = "sitofp" if before == "i" else "uitofp"
        elif before == "f":
            how = "fptosi" if after == "i" else "fptoui"
        else:
            bits = [1 if kind_of(d) == "b" else dtypes.iinfo(d).bits for d in (old, dtype)]
            if bits[0] == bits[1]:
                return self.value(x.name, x.shape, dtype)
            wider = "extsi" if before == "i" else "extui"
            how = wider if bits[1] > bits[0] else "trunci"
        return self.changed(f"arith.{how} {x.name}", x, x.shape, dtype, "to")

    def other_float(self, x, dtype):
        """A float in another width."""
        narrow = dtype.itemsize < x.dtype.itemsize
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

    def all(self, conditions, shape):
        """Where all hold, with this shape; None without any."""
        conditions = [self.full(c, shape) for c in conditions]
        return functools.reduce(functools.partial(self.binary, AND), conditions) if conditions else None



def generic(name, operands, attributes, *results):
    """The text of an operation in the form that all have."""
    properties = f" <{{{attributes}}}>" if attributes else ""
    return (f'"{name}"({", ".join(x.name for x in operands)}){properties} : '
            f"({', '.join(x.type for x in operands)}) -> ({', '.join(results)})")
