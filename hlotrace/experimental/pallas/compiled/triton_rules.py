"""How the operations of a kernel are written in the Triton dialect, where it differs from others."""
import functools

import numpy as np

from ....core import dtypes
from ....primitives.arrays import cumulative, elementwise as e, special, transcendental as f
from ....primitives.arrays.bit_formats import bitcast_convert_type_p
from ....primitives.arrays.contract import dot_general_p
from ....primitives.arrays.precision import Precision
from ..grid_blocks import nothing
from . import kernel_text as t
from .kernel_index import Index
from .kernel_memory import cas_p, load_p, store_p
from .kernel_rules import product_of_elements, run
from .kernel_text import INT
from .triton_text import TritonWriter

_MATH = {f.exp_p: "exp", f.exp2_p: "exp2", f.log_p: "log", special.log2_p: "log2", f.sin_p: "sin",
         f.cos_p: "cos", f.sqrt_p: "sqrt", f.rsqrt_p: "rsqrt", e.floor_p: "floor", e.ceil_p: "ceil"}
_LIBDEVICE = {
    f.tan_p: "tan", f.asin_p: "asin", f.acos_p: "acos", f.atan_p: "atan", f.sinh_p: "sinh", f.cosh_p: "cosh",
    f.tanh_p: "tanh", f.asinh_p: "asinh", f.acosh_p: "acosh", f.atanh_p: "atanh", f.expm1_p: "expm1",
    f.log1p_p: "log1p", f.cbrt_p: "cbrt", special.erf_p: "erf", special.erfc_p: "erfc",
    special.lgamma_p: "lgamma", e.atan2_p: "atan2", e.nextafter_p: "nextafter", f.pow_p: "pow",
    special.erf_inv_p: "erfinv"}
_SCANNED = {cumulative.cumsum_p: t.ADD, cumulative.cumprod_p: t.MULTIPLY, cumulative.cummax_p: t.MAXIMUM,
            cumulative.cummin_p: t.MINIMUM}


# --- elements ---------------------------------------------------------------------------------------

def _math(name):
    return lambda w, eqn, x: w.wide(functools.partial(w.math, name), x)


def _libdevice(name):
    return lambda w, eqn, *operands: w.wide(functools.partial(w.libdevice, name), *operands)


def _scanned(operation):
    return lambda w, eqn, x: w.scan(operation, x, eqn.params["axis"], eqn.params["reverse"])


def _round(w, eqn, x):
    away = eqn.params["rounding_method"] == 0
    return w.wide(functools.partial(w.libdevice, "round" if away else "rint"), x)


def _bitcast(w, eqn, x):
    dtype = np.dtype(eqn.params["new_dtype"])
    if dtype.itemsize != x.dtype.itemsize:
        raise NotImplementedError(f"the bits of {x.dtype.name} as {dtype.name}, of another width")
    return w.changed(f"tt.bitcast {x.name}", x, x.shape, dtype)


# --- products ---------------------------------------------------------------------------------------

def _dot_general(w, eqn, x, y):
    (over_x, over_y), (batch_x, _) = eqn.params["dimension_numbers"]
    out = eqn.outvars[0].aval
    if not (len(x.shape) == len(y.shape) == 2 and len(over_x) == 1 and not batch_x
            and _is_for_units(x, y, out)):
        return product_of_elements(w, eqn, x, y)
    x = w.transpose(x, (1, 0)) if over_x[0] == 0 else x
    y = w.transpose(y, (1, 0)) if over_y[0] == 1 else y
    sums = np.dtype("float32") if t.kind_of(x.dtype) == "f" else INT
    zero = w.constant(0, sums, out.shape)
    found = w.emit(f"tt.dot {x.name}, {y.name}, {zero.name}, inputPrecision = "
                   f"{_precision(eqn.params['precision'])}", out.shape, sums,
                   f"{x.type} * {y.type} -> {zero.type}")
    return w.convert(found, out.dtype)


def _is_for_units(x, y, out):
    """Do the units for products of matrices take them?"""
    floats = t.kind_of(x.dtype) == "f" and x.dtype.itemsize <= 4
    alike = x.dtype == y.dtype and (floats or x.dtype == np.int8 and out.dtype == INT)
    return alike and min(*x.shape, *y.shape) >= 16


def _precision(precision):
    one = precision[0] if isinstance(precision, (tuple, list)) else precision
    return {Precision.HIGHEST: "ieee", Precision.HIGH: "tf32x3"}.get(one, "tf32")


# --- memory -----------------------------------------------------------------------------------------

def _places(w, params, operands, masked, storing):
    """(The pointers and their type, where they are inside), of the operands of an index."""
    index = Index(w, params["ref"].shape, operands, masked, storing)
    for how, what in params["layout"]:
        if how == "at":
            index.at(what)
        elif how == "transpose":
            index.transpose(what)
        else:
            raise NotImplementedError(f"ref.{how}")
    if index.shape() != params["out"].shape:
        raise NotImplementedError("an index of this kind: index in two steps, ref.at[...][...]")
    return w.places(params["ref"], index, masked)


def _stored(dtype):
    return np.dtype("int8") if dtypes.is_bool(dtype) else dtype


def _load(w, eqn, *operands):
    w.before(eqn.params["ref"], False)
    masked, out = eqn.params["masked"], eqn.params["out"]
    *operands, mask, other = operands if masked else (*operands, None, None)
    pointer, types, inside = _places(w, eqn.params, operands, masked, False)
    where = w.all([m for m in (mask, inside) if m is not None], out.shape)
    names, dtype = [pointer], _stored(out.dtype)
    if where is not None:
        other = w.constant(nothing(out.dtype), dtype) if other is None else w.convert(other, dtype)
        names += where.name, w.full(other, out.shape).name
    return w.convert(w.emit(f"tt.load {', '.join(names)}", out.shape, dtype, types), out.dtype)


def _store(w, eqn, *operands):
    w.before(eqn.params["ref"], True)
    masked, how, out = (eqn.params[name] for name in ("masked", "how", "out"))
    *operands, value, mask = operands if masked else (*operands, None)
    pointer, types, inside = _places(w, eqn.params, operands, masked, True)
    where = w.all([m for m in (mask, inside) if m is not None], out.shape)
    value = w.full(w.convert(value, _stored(out.dtype)), out.shape)
    if how is None:
        names = [pointer, value.name, *([] if where is None else [where.name])]
        w.lines.append(f"tt.store {', '.join(names)} : {types}")
        return []
    where = w.constant(True, np.bool_, out.shape) if where is None else where
    return [w.emit(f"{how.of(out.dtype)}, acq_rel, gpu, {pointer}, {value.name}, "
                   f"{where.name}", out.shape, out.dtype,
                   f"({types}, {value.type}, {where.type}) -> {value.type}")]


def _compare_and_swap(w, eqn, *operands):
    w.before(eqn.params["ref"], True)
    *operands, old, new = operands
    pointer, types, _ = _places(w, eqn.params, operands, False, False)
    return w.emit(f"tt.atomic_cas acq_rel, gpu, {pointer}, {old.name}, {new.name}", new.shape, new.dtype,
                  f"({types}, {old.type}, {new.type}) -> {new.type}")


_RULES = {
    **{p: _math(name) for p, name in _MATH.items()},
    **{p: _libdevice(name) for p, name in _LIBDEVICE.items()},
    **{p: _scanned(operation) for p, operation in _SCANNED.items()},
    e.round_p: _round, bitcast_convert_type_p: _bitcast, dot_general_p: _dot_general,
    load_p: _load, store_p: _store, cas_p: _compare_and_swap}


def text(kernel, same=()):
    """A `Kernel` in the Triton dialect; `same` is {number of a Ref: that of the Ref whose memory it has}."""
    if None in kernel.grid:
        raise NotImplementedError(f"pallas_call of {kernel.name}: a size of the grid, {kernel.grid}, is no "
                                  "int, and must be known where a kernel is compiled with Triton")
    if kernel.arguments.scratch:
        raise NotImplementedError(f"pallas_call of {kernel.name}: scratch_shapes are not supported where it "
                                  "is compiled with Triton; carry values in lax.fori_loop")
    w = TritonWriter(_RULES, kernel.grid, same)
    arguments = [w.argument(i, ref._value.array) for i, ref in enumerate(kernel.refs)]
    for i, ref in enumerate(kernel.refs):
        if (places := ref._value.blocks) is not None:
            for d, at in enumerate(run(w, places.index, w.ids)):
                size = 1 if d in places.windows else places.sizes[d]
                w.starts[i][d] = at if size == 1 else w.binary(t.MULTIPLY, at, w.constant(size))
    run(w, kernel.program, [])
    head = f"tt.func public @{kernel.name}({', '.join(arguments)}) {{"
    return "\n".join(["module {", head, *w.lines, "tt.return", "}", "}"])


def options(kernel):
    """(warps, stages) of a Kernel: those of its CompilerParams, or the usual ones."""
    params, _ = kernel.options
    warps, stages = (getattr(params, name, None) for name in ("num_warps", "num_stages"))
    warps, stages = 4 if warps is None else warps, 3 if stages is None else stages
    if warps not in (1, 2, 4, 8, 16, 32):       # XLA would end the process
        raise ValueError(f"pallas_call of {kernel.name}: num_warps={warps} must be 1, 2, 4, 8, 16 or 32")
    if type(stages) is not int or stages < 1:
        raise ValueError(f"pallas_call of {kernel.name}: num_stages={stages} must be an int of at least 1")
    return warps, stages
