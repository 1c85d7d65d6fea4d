"""A kernel's program as text of the Triton dialect, which XLA's compiler for NVIDIA's GPUs takes.

Triton: Tillet, Kung & Cox, "Triton: an intermediate language and compiler for tiled neural network
computations" (MAPL 2019).  Values are scalars, or tensors of which each size is a power of 2.
"""
import functools
import math
from typing import NamedTuple

import numpy as np

from ...core import dtypes
from ...core.jaxpr import Jaxpr, Literal
from ...core.source_info import describe
from ...lax import Precision
from ...lowering.constants import element
from ...numpy.indexing.refs import TRACED

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
        return _type(self.shape, _element(self.dtype))


def _element(dtype):
    if dtypes.is_bool(dtype):
        return "i1"
    if dtypes.is_integer(dtype):
        return f"i{dtypes.iinfo(dtype).bits}"
    if dtype.name not in _FLOAT:
        raise NotImplementedError(f"values of {dtype.name} are none that Triton has")
    return _FLOAT[dtype.name]


def _in_memory(dtype):
    """The element type in memory, where a bool is a byte."""
    return "i8" if dtypes.is_bool(dtype) else _element(dtype)


def _type(shape, of):
    if any(n < 1 or n & (n - 1) for n in shape):
        raise NotImplementedError(f"there is a value of shape {shape}, and sizes must be powers of 2: make "
                                  "blocks larger, and mask what is beyond, with triton.load(..., mask=)")
    return f"tensor<{''.join(f'{n}x' for n in shape)}{of}>" if shape else of


def _kind(dtype):
    if dtypes.is_bool(dtype):
        return "b"
    if dtypes.is_integer(dtype):
        return "u" if dtypes.is_unsigned(dtype) else "i"
    return "f"


# name -> operation by kind of dtype
_BINARY = {
    **dict.fromkeys(("add", "add_any"), {"f": "arith.addf", "iu": "arith.addi", "b": "arith.ori"}),
    "sub": {"f": "arith.subf", "iu": "arith.subi"},
    "mul": {"f": "arith.mulf", "iu": "arith.muli", "b": "arith.andi"},
    "div": {"f": "arith.divf", "i": "arith.divsi", "u": "arith.divui"},
    "rem": {"f": "arith.remf", "i": "arith.remsi", "u": "arith.remui"},
    "max": {"f": "arith.maximumf", "i": "arith.maxsi", "u": "arith.maxui", "b": "arith.ori"},
    "min": {"f": "arith.minimumf", "i": "arith.minsi", "u": "arith.minui", "b": "arith.andi"},
    "and": {"iub": "arith.andi"}, "or": {"iub": "arith.ori"}, "xor": {"iub": "arith.xori"},
    "shift_left": {"iu": "arith.shli"}, "shift_right_logical": {"iu": "arith.shrui"},
    "shift_right_arithmetic": {"iu": "arith.shrsi"}}
_COMPARED = {"eq": ("oeq", "eq", "eq"), "ne": ("une", "ne", "ne"), "lt": ("olt", "slt", "ult"),
             "le": ("ole", "sle", "ule"), "gt": ("ogt", "sgt", "ugt"), "ge": ("oge", "sge", "uge")}
_MATH = {"exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "sin": "sin", "cos": "cos",
         "sqrt": "sqrt", "rsqrt": "rsqrt", "floor": "floor", "ceil": "ceil", "abs": "absf"}
# of NVIDIA's libdevice, whose functions of float32 end in f
_LIBDEVICE = {name: name for name in "tan asin acos atan sinh cosh tanh asinh acosh atanh expm1 log1p cbrt erf "
              "erfc lgamma atan2 nextafter pow".split()} | {"erf_inv": "erfinv"}
_SAME = {"stop_gradient", "copy", "copy_p", "pvary", "optimization_barrier", "reduce_precision"}
_REDUCED = {"reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "max", "reduce_min": "min",
            "reduce_and": "and", "reduce_or": "or", "reduce_xor": "xor"}
_SCANNED = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}
_ATOMIC = {"add": {"f": "fadd", "iu": "add"}, "max": {"f": "max", "i": "max", "u": "umax"},
           "min": {"f": "min", "i": "min", "u": "umin"}, "and": {"iu": "and"}, "or": {"iu": "or"},
           "xor": {"iu": "xor"}, "xchg": {"fiu": "exch"}}


def _of_kind(table, name, dtype):
    for kinds, operation in table[name].items():
        if _kind(dtype) in kinds:
            return operation
    raise NotImplementedError(f"{name} of {dtype.name}")


class Writer:
    """The text of a kernel: operations are added to the end of it."""

    def __init__(self, grid):
        self.lines, self.number = [], 0
        self.pointers, self.starts = {}, {}     # by the number of the kernel's argument
        self.rules = {name.removeprefix("_do_"): getattr(self, name) for name in dir(self)
                      if name.startswith("_do_")}
        at = Value(self._op("tt.get_program_id x : i32"), (), INT)
        self.ids = []       # the last axis of the grid is the fastest
        for size in reversed(grid):
            self.ids.insert(0, self.binary("rem", at, self.constant(size)))
            at = self.binary("div", at, self.constant(size))

    def argument(self, number, array):
        """The text of the kernel's argument of this number, the memory of an array."""
        self.pointers[number], self.starts[number] = f"%arg{number}", [None] * array.ndim
        return f"%arg{number}: !tt.ptr<{_in_memory(array.dtype)}> {{tt.divisibility = 16 : i32}}"

    def _name(self):
        self.number += 1
        return f"%{self.number}"

    def _op(self, text):
        name = self._name()
        self.lines.append(f"{name} = {text}")
        return name

    def emit(self, text, shape, dtype, of=None):
        """The value of an operation; `of` is the text before its type where the type is not the result's."""
        made = Value("", tuple(shape), np.dtype(dtype))
        return made._replace(name=self._op(f"{text} : {made.type if of is None else of}"))

    # --- values ---

    def constant(self, value, dtype=INT, shape=()):
        """The same number everywhere."""
        dtype = np.dtype(dtype)
        number = element(np.asarray(value).astype(dtype)[()], dtype)
        if _kind(dtype) == "u" and int(number) > dtypes.iinfo(dtype).max // 2:
            number = str(int(number) - 2 ** dtypes.iinfo(dtype).bits)      # integers have no sign
        if _kind(dtype) == "b" and not shape:
            return Value(self._op(f"arith.constant {number}"), (), dtype)
        return self.emit(f"arith.constant {f'dense<{number}>' if shape else number}", shape, dtype)

    def full(self, x, shape):
        """A scalar at all places of a shape; a value of that shape as it is."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        if x.shape:
            return self.broadcast(x, shape, range(len(shape) - len(x.shape), len(shape)))
        made = x._replace(shape=shape)
        return self.emit(f"tt.splat {x.name}", shape, x.dtype, f"{x.type} -> {made.type}")

    def broadcast(self, x, shape, axes):
        """The value with its axes at these places of a shape, the same along all others."""
        if not x.shape:
            return self.full(x, shape)
        axes, shape = tuple(axes), tuple(shape)
        for axis in range(len(shape)):
            if axis not in axes:
                grown = x._replace(shape=(*x.shape[:axis], 1, *x.shape[axis:]))
                x = self.emit(f"tt.expand_dims {x.name} {{axis = {axis} : i32}}", grown.shape, x.dtype,
                              f"{x.type} -> {grown.type}")
        if x.shape == shape:
            return x
        return self.emit(f"tt.broadcast {x.name}", shape, x.dtype, f"{x.type} -> {_type(shape, _element(x.dtype))}")

    def reshape(self, x, shape):
        """The elements in another shape."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        if not x.shape:
            return self.full(x, shape)
        if not shape:
            return self.reduce("add" if _kind(x.dtype) != "b" else "or", x, range(len(x.shape)))
        return self.emit(f"tt.reshape {x.name}", shape, x.dtype, f"{x.type} -> {_type(shape, _element(x.dtype))}")

    def transpose(self, x, order):
        """The value with its axes in another order."""
        if tuple(order) == tuple(range(len(order))):
            return x
        made = x._replace(shape=tuple(x.shape[i] for i in order))
        return self.emit(f"tt.trans {x.name} {{order = array<i32: {', '.join(map(str, order))}>}}", made.shape,
                         x.dtype, f"{x.type} -> {made.type}")

    def binary(self, name, x, y):
        """An operation of two values of one dtype, of which one may be a scalar."""
        shape, dtype = x.shape or y.shape, x.dtype
        x, y = self.full(x, shape), self.full(y, shape)
        if name in ("div", "rem") and _kind(dtype) == "f" and dtype.itemsize < 4:     # Triton ends the process
            wide = self.convert(x, np.float32), self.convert(y, np.float32)
            return self.convert(self.binary(name, *wide), dtype)
        return self.emit(f"{_of_kind(_BINARY, name, x.dtype)} {x.name}, {y.name}", shape, x.dtype)

    def compare(self, name, x, y):
        """Where it holds."""
        shape = x.shape or y.shape
        x, y = self.full(x, shape), self.full(y, shape)
        kind = "fiu".index(_kind(x.dtype).replace("b", "u"))
        return self.emit(f"arith.cmp{'f' if kind == 0 else 'i'} {_COMPARED[name][kind]}, {x.name}, {y.name}", shape,
                         np.bool_, x.type)

    def select(self, which, x, y):
        """x where it holds, y elsewhere."""
        shape = which.shape or x.shape or y.shape
        which, x, y = (self.full(v, shape) for v in (which, x, y))
        return self.emit(f"arith.select {which.name}, {x.name}, {y.name}", shape, x.dtype,
                         f"{which.type}, {x.type}" if shape else x.type)

    def convert(self, x, dtype):
        """The value in another dtype, as `astype` has it."""
        dtype, old = np.dtype(dtype), x.dtype
        if dtype == old:
            return x
        before, after = _kind(old), _kind(dtype)
        if after == "b":
            return self.compare("ne", x, self.constant(0, old, x.shape))
        if before == after == "f":
            wide, narrow = dtype.itemsize > old.itemsize, dtype.itemsize < old.itemsize
            if 1 in (dtype.itemsize, old.itemsize):     # float8
                rounding = ", rounding = rtne" if narrow else ""
                operation = f"tt.fp_to_fp {x.name}{rounding}"
            elif wide or narrow:
                operation = f"arith.{'extf' if wide else 'truncf'} {x.name}"
            else:
                return self.convert(self.convert(x, np.float32), dtype)
        elif after == "f":
            operation = f"arith.{'sitofp' if before == 'i' else 'uitofp'} {x.name}"
        elif before == "f":
            operation = f"arith.{'fptosi' if after == 'i' else 'fptoui'} {x.name}"
        else:
            bits = [1 if _kind(d) == "b" else dtypes.iinfo(d).bits for d in (old, dtype)]
            if bits[0] == bits[1]:
                return x._replace(dtype=dtype)
            operation = "arith.trunci" if bits[1] < bits[0] else f"arith.ext{'s' if before == 'i' else 'u'}i"
            operation += f" {x.name}"
        return self.emit(operation, x.shape, dtype, f"{x.type} to {_type(x.shape, _element(dtype))}"
                         if not operation.startswith("tt") else f"{x.type} -> {_type(x.shape, _element(dtype))}")

    def of_floats(self, x, compute):
        """A function of floats that has no form in 16 bits."""
        if x.dtype.itemsize >= 4:
            return compute(x)
        return self.convert(compute(self.convert(x, np.float32)), x.dtype)

    def libdevice(self, name, *operands):
        """A function of NVIDIA's libdevice."""
        shape = next((x.shape for x in operands if x.shape), ())
        x, *others = [self.full(x, shape) for x in operands]
        symbol = f"__nv_{name}{'f' if x.dtype == np.float32 else ''}"
        types = ", ".join([x.type] * (1 + len(others)))
        return self.emit(f"tt.extern_elementwise {', '.join(v.name for v in (x, *others))} {{libname = \"\", "
                         f'libpath = "", pure = true, symbol = "{symbol}"}}', shape, x.dtype,
                         f"({types}) -> {x.type}")

    def reduce(self, name, x, axes):
        """The combination of all elements along axes."""
        dtype = x.dtype
        if name in ("add", "mul") and _kind(dtype) == "f" and dtype.itemsize < 4:
            x = self.convert(x, np.float32)
        for axis in sorted(axes, reverse=True):
            x = self._combined("reduce", x, axis, f"axis = {axis} : i32", name,
                               (*x.shape[:axis], *x.shape[axis + 1:]))
        return self.convert(x, dtype)

    def _combined(self, how, x, axis, attributes, name, shape):
        of = _element(x.dtype)
        made = x._replace(shape=shape)
        result = self._name()
        a, b, c = self._name(), self._name(), self._name()
        self.lines += [f'{result} = "tt.{how}"({x.name}) <{{{attributes}}}> ({{', f"^bb0({a}: {of}, {b}: {of}):",
                       f"{c} = {_of_kind(_BINARY, name, x.dtype)} {a}, {b} : {of}", f"tt.{how}.return {c} : {of}",
                       f"}}) : ({x.type}) -> {made.type}"]
        return made._replace(name=result)

    # --- memory ---

    def reference(self, ref, layout, operands, masked, storing):
        """(the pointers of what an index selects, where they are inside or None)."""
        memory = ref._value
        array, starts = memory.array, self.starts[memory.number]
        wide = np.dtype("int64") if array.size >= 2 ** 31 else INT
        dims = [d for d in range(array.ndim) if memory.blocks is None or d not in memory.blocks.squeezed]
        strides = [math.prod(array.shape[d + 1:]) for d in range(array.ndim)]
        index = _Index(self, ref.shape, operands, masked, storing)
        for how, what in layout:
            if how not in ("at", "transpose"):
                raise NotImplementedError(f"ref.{how}")
            getattr(index, how)(what)
        shape = index.shape()
        inside, base, offsets = index.conditions(), None, None
        may_be_beyond = masked or memory.blocks is not None and memory.blocks.beyond
        for d in range(array.ndim):
            start = starts[d]
            found = index.at_dim(dims.index(d), shape) if d in dims else None
            if found is None and start is None:
                continue
            part = found if start is None else start if found is None else self.binary("add", start, found)
            if may_be_beyond and (masked or d in memory.blocks.beyond):
                if masked:
                    inside.append(self.compare("ge", part, self.constant(0)))
                inside.append(self.compare("lt", part, self.constant(array.shape[d])))
            for term in (start, found):
                if term is None:
                    continue
                term = self.convert(term, wide)
                if strides[d] != 1:
                    term = self.binary("mul", term, self.constant(strides[d], wide))
                if term.shape:
                    offsets = term if offsets is None else self._sum(offsets, term, shape)
                else:
                    base = term if base is None else self.binary("add", base, term)
        return self._pointers(memory, base, offsets, shape), self._all(inside, shape)

    def _sum(self, x, y, shape):
        x, y = (self.broadcast(v, tuple(map(max, x.shape, y.shape)), range(len(shape))) for v in (x, y))
        return self.binary("add", x, y)

    def _all(self, conditions, shape):
        conditions = [self.broadcast(c, shape, range(len(shape))) for c in conditions]
        return functools.reduce(functools.partial(self.binary, "and"), conditions) if conditions else None

    def _pointers(self, memory, base, offsets, shape):
        pointer, one = self.pointers[memory.number], f"!tt.ptr<{_in_memory(memory.array.dtype)}>"
        if base is not None:
            pointer = self._op(f"tt.addptr {pointer}, {base.name} : {one}, {base.type}")
        if not shape:
            return pointer, one
        many = _type(shape, one)
        pointer = self._op(f"tt.splat {pointer} : {one} -> {many}")
        if offsets is not None:
            offsets = self.broadcast(offsets, shape, range(len(shape)))
            pointer = self._op(f"tt.addptr {pointer}, {offsets.name} : {many}, {offsets.type}")
        return pointer, many

    def _do_load(self, eqn, *operands, ref, layout, masked, out):
        *operands, mask, other = operands if masked else (*operands, None, None)
        (pointer, type_), inside = self.reference(ref, layout, operands, masked, False)
        where = [m for m in (mask, inside) if m is not None]
        names, stored = [pointer], np.dtype("int8") if dtypes.is_bool(out.dtype) else out.dtype
        if where:
            other = self.constant(_nothing(out.dtype), stored) if other is None else self.convert(other, stored)
            names += self._all(where, out.shape).name, self.full(other, out.shape).name
        found = self.emit(f"tt.load {', '.join(names)}", out.shape, stored, type_)
        return self.convert(found, out.dtype)

    def _do_store(self, eqn, *operands, ref, layout, masked, how, out):
        *operands, value, mask = operands if masked else (*operands, None)
        (pointer, type_), inside = self.reference(ref, layout, operands, masked, True)
        where = [m for m in (mask, inside) if m is not None]
        stored = np.dtype("int8") if dtypes.is_bool(out.dtype) else out.dtype
        value = self.full(self.convert(value, stored), out.shape)
        mask = self._all(where, out.shape) if where else None
        if how == "set":
            names = [pointer, value.name] + ([mask.name] if mask else [])
            self.lines.append(f"tt.store {', '.join(names)} : {type_}")
            return []
        mask = mask or self.constant(True, np.bool_, out.shape)
        operation = _of_kind(_ATOMIC, how, out.dtype)
        return [self.emit(f"tt.atomic_rmw {operation}, acq_rel, gpu, {pointer}, {value.name}, {mask.name}", out.shape,
                          out.dtype, f"({type_}, {value.type}, {mask.type}) -> {value.type}")]

    def _do_compare_and_swap(self, eqn, *operands, ref, layout, out):
        *operands, old, new = operands
        (pointer, type_), _ = self.reference(ref, layout, operands, False, False)
        return self.emit(f"tt.atomic_cas acq_rel, gpu, {pointer}, {old.name}, {new.name}", out.shape, out.dtype,
                         f"({type_}, {old.type}, {new.type}) -> {new.type}")

    def _do_program_id(self, eqn, *, axis):
        return self.ids[axis]

    # --- programs ---

    def run(self, jaxpr, args):
        """The results of a program of these values, as a list."""
        env = dict(zip(jaxpr.invars, args, strict=True))
        for var, value in zip(jaxpr.constvars, jaxpr.consts):
            env[var] = self._known(value, var.aval)

        def read(atom):
            return self._known(atom.val, atom.aval) if isinstance(atom, Literal) else env[atom]
        for eqn in jaxpr.eqns:
            try:
                results = self._equation(eqn, [read(a) for a in eqn.invars])
            except NotImplementedError as error:
                if getattr(error, "of_a_kernel", False):
                    raise
                error = NotImplementedError(f"{eqn.primitive}, {describe(eqn.source)}: {error}; it is in a Pallas "
                                            "kernel, which is compiled with Triton here")
                error.of_a_kernel = True
                raise error from None
            env.update(zip(eqn.outvars, results if eqn.primitive.multiple_results else [results], strict=True))
        return [read(a) for a in jaxpr.outvars]

    def _known(self, value, aval):
        value = np.asarray(value)
        if value.size == 0 or not (value == value.reshape(-1)[0]).all() and value.size > 1:
            raise NotImplementedError(f"the kernel uses an array of shape {value.shape} from outside of it: pass "
                                      "it as an operand")
        return self.constant(value.reshape(-1)[0], aval.dtype, aval.shape)

    def _equation(self, eqn, operands):
        name, params = eqn.primitive.name, eqn.params
        if (rule := self.rules.get(name)) is not None:
            return rule(eqn, *operands, **params)
        if name in _BINARY:
            return self.binary(name, *operands)
        if name in _COMPARED:
            return self.compare(name, *operands)
        if name in _REDUCED:
            return self.reduce(_REDUCED[name], operands[0], params["axes"])
        if name in _SCANNED:
            x, axis = operands[0], params["axis"]
            return self._combined("scan", x, axis, f"axis = {axis} : i32, reverse = {str(params['reverse']).lower()}",
                                  _SCANNED[name], x.shape)
        if name in _MATH and _kind(operands[0].dtype) == "f":
            return self.of_floats(operands[0], lambda x: self.emit(f"math.{_MATH[name]} {x.name}", x.shape, x.dtype))
        if name in _LIBDEVICE:
            shape = next((x.shape for x in operands if x.shape), ())
            dtype, wide = operands[0].dtype, [self.full(x, shape) for x in operands]
            if dtype.itemsize < 4:
                wide = [self.convert(x, np.float32) for x in wide]
            return self.convert(self.libdevice(_LIBDEVICE[name], *wide), dtype)
        if name in _SAME:
            return operands if eqn.primitive.multiple_results else operands[0]
        inner = params.get("jaxpr")
        if isinstance(inner, Jaxpr) and len(inner.invars) == len(operands):
            return self.run(inner, operands)
        raise NotImplementedError("no operation of Triton does it")

    def _do_neg(self, eqn, x):
        return self.binary("sub", self.constant(-0.0 if _kind(x.dtype) == "f" else 0, x.dtype, x.shape), x)

    def _do_abs(self, eqn, x):
        if _kind(x.dtype) != "f":
            return self.emit(f"math.absi {x.name}", x.shape, x.dtype)
        return self.of_floats(x, lambda x: self.emit(f"math.absf {x.name}", x.shape, x.dtype))

    def _do_sign(self, eqn, x):
        zero = self.constant(0, x.dtype, x.shape)
        above, below = ((self.convert(self.compare(how, x, zero), x.dtype)) for how in ("gt", "lt"))
        sign = self.binary("sub", above, below)
        return self.select(self.compare("ne", x, x), x, sign) if _kind(x.dtype) == "f" else sign

    def _do_not(self, eqn, x):
        ones = self.constant(True if _kind(x.dtype) == "b" else -1, x.dtype if _kind(x.dtype) != "u" else
                             f"int{dtypes.iinfo(x.dtype).bits}", x.shape)
        return self.binary("xor", x, ones._replace(dtype=x.dtype))

    def _do_square(self, eqn, x):
        return self.binary("mul", x, x)

    def _do_one_minus_square(self, eqn, x):
        one = self.constant(1, x.dtype, x.shape)
        return self.binary("mul", self.binary("sub", one, x), self.binary("add", one, x))

    def _do_logistic(self, eqn, x):
        def compute(x):
            one = self.constant(1, x.dtype, x.shape)
            negative = self._do_neg(eqn, x)
            return self.binary("div", one, self.binary("add", one, self.emit(f"math.exp {negative.name}", x.shape,
                                                                          x.dtype)))
        return self.of_floats(x, compute)

    def _do_integer_pow(self, eqn, x, *, y):
        result, base, n = self.constant(1, x.dtype, x.shape), x, abs(y)
        while n:
            if n & 1:
                result = self.binary("mul", result, base)
            n >>= 1
            base = self.binary("mul", base, base) if n else base
        return result if y >= 0 else self.binary("div", self.constant(1, x.dtype, x.shape), result)

    def _do_round(self, eqn, x, *, rounding_method):
        even = "EVEN" in str(rounding_method) or str(rounding_method) == "1"
        return self.of_floats(x, lambda x: self.libdevice("rint" if even else "round", x))

    def _do_is_finite(self, eqn, x):
        return self.compare("lt", self._do_abs(eqn, x), self.constant(np.inf, x.dtype, x.shape))

    def _do_select_n(self, eqn, which, *cases):
        if _kind(which.dtype) == "b":
            return self.select(which, *reversed(cases))
        found = cases[0]
        for i, case in enumerate(cases[1:], 1):
            found = self.select(self.compare("ge", which, self.constant(i, which.dtype)), case, found)
        return found

    def _do_clamp(self, eqn, low, x, high):
        return self.binary("min", self.binary("max", x, self.full(low, x.shape)), self.full(high, x.shape))

    def _do_convert_element_type(self, eqn, x, *, new_dtype, **_):
        return self.convert(x, new_dtype)

    def _do_bitcast_convert_type(self, eqn, x, *, new_dtype):
        dtype = np.dtype(new_dtype)
        if dtype.itemsize != x.dtype.itemsize:
            raise NotImplementedError(f"the bits of {x.dtype.name} as {dtype.name}, of another width")
        return self.emit(f"tt.bitcast {x.name}", x.shape, dtype, f"{x.type} -> {_type(x.shape, _element(dtype))}")

    def _do_iota(self, eqn, *, dtype, shape, dimension, **_):
        return self.convert(self.range(shape[dimension], dimension, shape), dtype)

    def range(self, size, axis, shape):
        """0, 1, 2, ... along an axis of a shape."""
        if size == 1:
            return self.constant(0, INT, shape)
        counted = self.emit(f"tt.make_range {{end = {size} : i32, start = 0 : i32}}", (size,), INT)
        return self.broadcast(counted, shape, (axis,))

    def _do_broadcast_in_dim(self, eqn, x, *, broadcast_dimensions=None, **_):
        out = eqn.outvars[0].aval
        axes = broadcast_dimensions
        if axes is None:
            axes = range(out.ndim - len(x.shape), out.ndim)
        return self.broadcast(x, out.shape, axes)

    def _do_reshape(self, eqn, x, **_):
        return self.reshape(x, eqn.outvars[0].aval.shape)

    _do_squeeze = _do_expand_dims = _do_reshape

    def _do_transpose(self, eqn, x, *, permutation):
        return self.transpose(x, permutation)

    def _do_argmax(self, eqn, x, *, axes, index_dtype):
        return self._extreme(x, axes[0], index_dtype, "gt")

    def _do_argmin(self, eqn, x, *, axes, index_dtype):
        return self._extreme(x, axes[0], index_dtype, "lt")

    def _extreme(self, x, axis, index_dtype, before):
        """The first index of the element that comes before all others; a NaN does."""
        at, shape = self.range(x.shape[axis], axis, x.shape), (*x.shape[:axis], *x.shape[axis + 1:])
        result, a, i, b, j = [self._name() for _ in range(5)]
        of = _element(x.dtype)
        self.lines += [f'{result}:2 = "tt.reduce"({x.name}, {at.name}) <{{axis = {axis} : i32}}> ({{',
                       f"^bb0({a}: {of}, {i}: i32, {b}: {of}, {j}: i32):"]
        p, q = Value(a, (), x.dtype), Value(b, (), x.dtype)
        m, n = Value(i, (), INT), Value(j, (), INT)
        better, tie = self.compare(before, p, q), self.compare("eq", p, q)
        if _kind(x.dtype) == "f":
            nans = self.compare("ne", p, p), self.compare("ne", q, q)
            better = self.select(nans[0], self.select(nans[1], self.constant(False, np.bool_),
                                                      self.constant(True, np.bool_)), better)
            tie = self.binary("or", tie, self.binary("and", *nans))
        first = self.binary("or", better, self.binary("and", tie, self.compare("lt", m, n)))
        found, where = self.select(first, p, q), self.select(first, m, n)
        self.lines += [f"tt.reduce.return {found.name}, {where.name} : {of}, i32",
                       f"}}) : ({x.type}, {at.type}) -> ({_type(shape, of)}, {_type(shape, 'i32')})"]
        return self.convert(Value(f"{result}#1", shape, INT), index_dtype)

    # --- products ---

    def _do_dot_general(self, eqn, x, y, *, dimension_numbers, precision=None, **_):
        (over_x, over_y), (batch_x, batch_y) = dimension_numbers
        out = eqn.outvars[0].aval
        matrices = len(x.shape) == len(y.shape) == 2 and len(over_x) == 1 and not batch_x
        if matrices and self._is_product(x, y, out):
            x = self.transpose(x, (1, 0)) if over_x[0] == 0 else x
            y = self.transpose(y, (1, 0)) if over_y[0] == 1 else y
            sums = np.dtype("float32") if _kind(x.dtype) == "f" else INT
            zero = self.constant(0, sums, out.shape)
            found = self.emit(f"tt.dot {x.name}, {y.name}, {zero.name}, inputPrecision = {_precision(precision)}",
                              out.shape, sums, f"{x.type} * {y.type} -> {zero.type}")
            return self.convert(found, out.dtype)
        # by the elements: [batch, what is left of x, what is left of y, what is summed over]
        free = [[i for i in range(len(v.shape)) if i not in (*o, *b)]
                for v, o, b in ((x, over_x, batch_x), (y, over_y, batch_y))]
        sizes = (*out.shape, *(x.shape[i] for i in over_x))
        number = len(out.shape)
        places = (*range(len(batch_x)), *range(len(batch_x), len(batch_x) + len(free[0])), *range(number, len(sizes)))
        x = self.broadcast(self.transpose(x, (*batch_x, *free[0], *over_x)), sizes, places)
        places = (*range(len(batch_x)), *range(len(batch_x) + len(free[0]), number), *range(number, len(sizes)))
        y = self.broadcast(self.transpose(y, (*batch_y, *free[1], *over_y)), sizes, places)
        wide = np.float32 if _kind(out.dtype) == "f" and out.dtype.itemsize < 4 else out.dtype
        products = self.binary("mul", self.convert(x, wide), self.convert(y, wide))
        return self.convert(self.reduce("add", products, range(number, len(sizes))), out.dtype)

    def _is_product(self, x, y, out):
        """Do the units for products take them?"""
        alike = x.dtype == y.dtype and (_kind(x.dtype) == "f" and x.dtype.itemsize <= 4
                                        or x.dtype == np.int8 and out.dtype == INT)
        return alike and min(*x.shape, *y.shape) >= 16

    # --- control ---

    def _region(self, jaxpr, args, end):
        """A region's body, which ends in `end` of the results."""
        results = self.run(jaxpr, args)
        self.lines.append(f"{end} {', '.join(v.name for v in results)} : {', '.join(v.type for v in results)}"
                          if results else end)

    def _many(self, values):
        """(the name of an operation with such results, the results)."""
        name = self._name()
        if len(values) == 1:
            return f"{name} = ", [values[0]._replace(name=name)]
        return f"{name}:{len(values)} = " if values else "", [
            v._replace(name=f"{name}#{i}") for i, v in enumerate(values)]

    def _carried(self, values):
        """Values of these types, with names of their own; as they are given at first."""
        inside = [v._replace(name=self._name()) for v in values]
        return inside, ", ".join(f"{a.name} = {b.name}" for a, b in zip(inside, values))

    def _do_cond(self, eqn, index, *operands, branches, platforms=None):
        if platforms is not None:
            chosen = next(b for b, p in zip(branches, platforms) if p in ("cuda", None))
            return self.run(chosen, operands)
        if _kind(index.dtype) == "b":
            index = self.convert(index, INT)
        return self._chosen(index, operands, branches, 0)

    def _chosen(self, index, operands, branches, first):
        if len(branches) == 1:
            return self.run(branches[0], operands)
        results = [Value("", a.shape, a.dtype) for a in branches[0].out_avals]
        condition = self.compare("le", index, self.constant(first))
        head, named = self._many(results)
        types = ", ".join(v.type for v in results)
        self.lines.append(f"{head}scf.if {condition.name}{f' -> ({types})' if types else ''} {{")
        self._region(branches[0], operands, "scf.yield")
        self.lines.append("} else {")
        found = self._chosen(index, operands, branches[1:], first + 1)
        self.lines.append(f"scf.yield {', '.join(v.name for v in found)} : {types}" if types else "scf.yield")
        self.lines.append("}")
        return named

    def _do_scan(self, eqn, *operands, jaxpr, length, num_consts, num_carry, **_):
        if len(operands) > num_consts + num_carry or len(jaxpr.outvars) > num_carry:
            raise NotImplementedError("a scan over rows of arrays, or that stacks results: read and write them in "
                                      "a fori_loop, by ref[i]")
        consts, carry = operands[:num_consts], operands[num_consts:]
        low, high, one = (self.constant(n) for n in (0, length, 1))
        head, named = self._many(carry)
        inside, given = self._carried(carry)
        types = ", ".join(v.type for v in carry)
        self.lines.append(f"{head}scf.for {self._name()} = {low.name} to {high.name} step {one.name}" + (
            f" iter_args({given}) -> ({types})" if carry else "") + " : i32 {")
        self._region(jaxpr, [*consts, *inside], "scf.yield")
        self.lines.append("}")
        return named

    def _do_while(self, eqn, *operands, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
        of_cond, of_body = operands[:cond_nconsts], operands[cond_nconsts:cond_nconsts + body_nconsts]
        carry = operands[cond_nconsts + body_nconsts:]
        head, named = self._many(carry)
        inside, given = self._carried(carry)
        types = ", ".join(v.type for v in carry)
        self.lines.append(f"{head}scf.while ({given}) : ({types}) -> ({types}) {{")
        going_on, = self.run(cond_jaxpr, [*of_cond, *inside])
        self.lines.append(f"scf.condition({going_on.name}) {', '.join(v.name for v in inside)} : {types}")
        inside, _ = self._carried(carry)
        self.lines.append("} do {")
        self.lines.append(f"^bb0({', '.join(f'{v.name}: {v.type}' for v in inside)}):")
        self._region(body_jaxpr, [*of_body, *inside], "scf.yield")
        self.lines.append("}")
        return named


class _Index:
    """What an index selects: for each axis of the Ref a place, a range or an array of places."""

    def __init__(self, writer, shape, operands, masked, storing):
        self.writer, self.operands, self.masked, self.storing = writer, iter(operands), masked, storing
        self.sizes, self.inside = shape, []
        # for each axis of the Ref (start, step, axis of the result); of the result, the sizes
        self.terms = [(None, 1, axis) for axis in range(len(shape))]
        self.result = list(shape)       # sizes by axes; None for one that is no more
        self.order = list(range(len(shape)))
        self.arrays = {}                # axis of the Ref -> (places, the first axis of the result for them)

    def shape(self):
        return tuple(self.result[i] for i in self.order)

    def transpose(self, order):
        self.order = [self.order[i] for i in order]

    def at(self, what):
        entries = list(what)
        taken = sum(e is not None and e is not Ellipsis for e in entries)
        gap = [("slice", None, None, None)] * (len(self.order) - taken)
        here = entries.index(Ellipsis) if Ellipsis in entries else len(entries)
        entries[here:here + (Ellipsis in entries)] = gap
        order, axes, arrays = [], iter(self.order), []
        together = self._advanced_together(entries)
        for entry in entries:
            if entry is None:
                self.result.append(1)
                order.append(len(self.result) - 1)
                continue
            axis = next(axes)
            size = self.result[axis]
            if type(entry) is tuple:
                self._range(axis, entry, size)
                order.append(axis)
                continue
            place = next(self.operands) if entry is TRACED else entry
            if isinstance(entry, bool):
                raise NotImplementedError("a bool in the index of a Ref")
            if entry is TRACED and place.shape:
                arrays.append((axis, place))
                order.append(None)
                continue
            self._move(axis, self._inside(place, size, 1), 0)
            self.result[axis] = None
        if arrays:
            self._places(arrays, order, together)
        self.order = [axis for axis in order if axis is not None]

    @staticmethod
    def _advanced_together(entries):
        """Are all indices that are not slices beside each other?  Else what arrays select comes first."""
        kinds = [entry is not None and type(entry) is not tuple for entry in entries]
        return "10" not in "".join("01"[k] for k in kinds).strip("0")

    def _range(self, axis, entry, size):
        kind, start, *rest = entry
        if kind == "slice":
            found = range(*slice(start, *rest).indices(size))
            self._move(axis, found.start if found.start else None, found.step)
            self.result[axis] = len(found)
            return
        length, step = rest
        place = next(self.operands) if start is TRACED else start
        self._move(axis, self._inside(place, size, (length - 1) * step + 1), step)
        self.result[axis] = length

    def _inside(self, place, size, length):
        """Where a window of a length begins, moved so that it is inside; under a mask it stays where it is."""
        if not isinstance(place, Value):
            return place if self.masked else min(max(place + size * (place < 0), 0), size - length)
        w = self.writer
        place = w.convert(place, INT)
        if self.masked:
            return place
        negative = w.compare("lt", place, w.constant(0))
        place = w.select(negative, w.binary("add", place, w.constant(size)), place)
        return w.binary("min", w.binary("max", place, w.constant(0)), w.constant(size - length))

    def _move(self, axis, start, step):
        for dim, (begin, stride, of) in enumerate(self.terms):
            if of == axis:
                self.terms[dim] = self._plus(begin, start, stride), stride * step, axis if step else None

    def _plus(self, begin, start, stride):
        w = self.writer
        if start is None:
            return begin
        if not isinstance(start, Value):
            start = w.constant(start)
        if stride != 1:
            start = w.binary("mul", start, w.constant(stride))
        return start if begin is None else w.binary("add", begin, start)

    def _places(self, arrays, order, together):
        w = self.writer
        shape = np.broadcast_shapes(*[place.shape for _, place in arrays])
        first = len(self.result)
        self.result += shape
        new = list(range(first, first + len(shape)))
        at = order.index(None) if together else 0
        order[at:at] = new
        for axis, place in arrays:
            size, place = self.result[axis], w.convert(place, INT)
            if not self.masked:
                negative = w.compare("lt", place, w.constant(0))
                place = w.select(negative, w.binary("add", place, w.constant(size)), place)
                if self.storing:
                    self.inside += [(w.compare("ge", place, w.constant(0)), new),
                                    (w.compare("lt", place, w.constant(size)), new)]
                else:
                    place = w.binary("min", w.binary("max", place, w.constant(0)), w.constant(size - 1))
            place = w.broadcast(place, shape, range(len(shape) - len(place.shape), len(shape)))
            for dim, (begin, stride, of) in enumerate(self.terms):
                if of == axis:
                    if stride != 1:
                        place = w.binary("mul", place, w.constant(stride))
                    self.arrays[dim] = place, new
                    self.terms[dim] = begin, 0, None
            self.result[axis] = None

    def _placed(self, x, new):
        """A value with the axes `new` of the result, with as many axes as the result."""
        sizes = [self.result[a] if a in new else 1 for a in self.order]
        return self.writer.broadcast(x, sizes, [self.order.index(a) for a in new])

    def conditions(self):
        """Where arrays of places are inside, as values with as many axes as the result."""
        return [self._placed(*each) for each in self.inside]

    def at_dim(self, dim, shape):
        """The places along an axis of the Ref, with as many axes as the result; None for the first."""
        w = self.writer
        start, step, axis = self.terms[dim]
        found = None
        if dim in self.arrays:
            found = self._placed(*self.arrays[dim])
        elif axis is not None and axis in self.order and self.result[axis] > 1:
            at = self.order.index(axis)
            found = w.range(self.result[axis], at, [n if i == at else 1 for i, n in enumerate(shape)])
            if step != 1:
                found = w.binary("mul", found, w.constant(step))
        if start is None:
            return found
        return start if found is None else w.binary("add", start, found)


def _precision(precision):
    one = precision[0] if isinstance(precision, (tuple, list)) else precision
    return {Precision.HIGHEST: "ieee", Precision.HIGH: "tf32x3"}.get(one, "tf32")


def _nothing(dtype):
    """What is read beyond an array."""
    if dtypes.is_inexact(dtype):
        return np.nan
    return dtypes.iinfo(dtype).min if dtypes.is_integer(dtype) else 0
