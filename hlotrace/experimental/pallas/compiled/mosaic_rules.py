"""How the operations of a kernel are written for Mosaic, where it differs from others."""
import functools
import math

import numpy as np

from ....primitives.arrays import elementwise as e, slicing, special, transcendental as f
from ....primitives.arrays.bit_formats import bitcast_convert_type_p
from ....primitives.arrays.contract import dot_general_p
from ....primitives.arrays.precision import Precision
from ....primitives.parallel.collectives import axis_index_p
from . import kernel_text as t
from .kernel_memory import load_p, store_p
from .kernel_rules import product_of_elements
from .kernel_text import INT, generic
from .mosaic_memory import load, on_memory, scope_begin, scope_end, store
from .tpu_parts import memory_p, operation_p, scope_begin_p, scope_end_p

_MATH = {f.exp_p: "exp", f.exp2_p: "exp2", f.log_p: "log", f.log1p_p: "log1p", f.sin_p: "sin", f.cos_p: "cos",
         f.tan_p: "tan", f.tanh_p: "tanh", special.erf_p: "erf", f.sqrt_p: "sqrt",
         f.rsqrt_p: "rsqrt", e.floor_p: "floor", e.ceil_p: "ceil"}


def _math(name):
    return lambda w, eqn, x: w.wide(functools.partial(w.math, name), x)


def _expm1(w, x):
    def function(x):        # tanh(x / 2) is (exp(x) - 1) / (exp(x) + 1), and loses no digits near 0
        half = w.math("tanh", w.binary(t.MULTIPLY, x, w.constant(0.5, x.dtype, x.shape)))
        return w.binary(t.MULTIPLY, half, w.binary(t.ADD, w.math("exp", x), w.constant(1, x.dtype, x.shape)))
    return w.wide(function, x)


def _of_two(name, w, x, y):
    shape = x.shape or y.shape
    return w.wide(lambda x, y: w.emit(f"math.{name} {x.name}, {y.name}", shape, x.dtype),
                  w.full(x, shape), w.full(w.convert(y, x.dtype), shape))


def _bits(name):
    return lambda w, eqn, x: w.math(name, x)


def _round(w, eqn, x):
    name = "round" if eqn.params["rounding_method"] == 0 else "roundeven"
    return w.wide(functools.partial(w.math, name), x)


def _bitcast(w, eqn, x):
    dtype = np.dtype(eqn.params["new_dtype"])
    if dtype.itemsize != x.dtype.itemsize:
        raise NotImplementedError(f"the bits of {x.dtype.name} as {dtype.name}, of another width: "
                                  "tpu.bitcast has those of rows")
    if not x.shape:
        return w.changed(f"arith.bitcast {x.name}", x, (), dtype, "to")
    return w.generic("tpu.bitcast", [x], x.shape, dtype)


def _concatenate(w, eqn, *operands):
    if len(operands) == 1:
        return operands[0]
    return w.generic("tpu.concatenate", operands, eqn.outvars[0].aval.shape, operands[0].dtype,
                     f"dimension = {eqn.params['dimension']} : i32")


def _pad(w, eqn, x, value):
    for axis, (low, high, interior) in enumerate(eqn.params["padding_config"]):
        if interior or low < 0 or high < 0:
            raise NotImplementedError("padding between elements, or of less than none")
        if not low and not high:
            continue
        sizes, parts = [*x.shape], [x]
        for width, at in ((low, 0), (high, 2)):
            if width:
                sizes[axis] = width
                parts.insert(at, w.full(value, sizes))
        sizes[axis] = x.shape[axis] + low + high
        x = w.generic("tpu.concatenate", parts, sizes, x.dtype, f"dimension = {axis} : i32")
    return x


def _slice(w, eqn, x):
    p = eqn.params
    strides = p["strides"] or [1] * len(x.shape)
    if any(step != 1 for step in strides):
        raise NotImplementedError("a slice of a value with steps: read the Ref with them")
    sizes = eqn.outvars[0].aval.shape
    return w.generic("vector.extract_strided_slice", [x], sizes, x.dtype,
                     f"offsets = {[*p['start_indices']]}, sizes = {[*sizes]}, strides = {[*strides]}")


def _dot_general(w, eqn, x, y):
    (over_x, over_y), (batch_x, batch_y) = eqn.params["dimension_numbers"]
    out = eqn.outvars[0].aval
    free = [[i for i in range(len(v.shape)) if i not in (*over, *batch)]
            for v, over, batch in ((x, over_x, batch_x), (y, over_y, batch_y))]
    if len(over_x) != 1 or len(free[0]) != 1 or len(free[1]) != 1:
        return product_of_elements(w, eqn, x, y)
    if x.dtype != y.dtype and t.kind_of(x.dtype) == t.kind_of(y.dtype) == "f":
        x, y = w.convert(x, np.float32), w.convert(y, np.float32)
    sums = np.dtype("float32") if t.kind_of(x.dtype) == "f" else INT
    order = [n for b in range(len(batch_x)) for n in (0, batch_x[b])] + [0, *free[0], 1, *free[1]]
    numbers = ", ".join(map(str, map(list, (over_x, over_y, *free, order, batch_x, batch_y))))
    highest = _first(eqn.params["precision"]) is Precision.HIGHEST and x.dtype == np.float32
    zero = w.constant(0, sums, out.shape)
    hint = str(w.fuses and over_x[0] == 0).lower()
    found = w.generic("tpu.matmul", [x, y, zero], out.shape, sums,
                      f"dimension_numbers = #tpu.dot_dimension_numbers<{numbers}>, transpose_lhs = false, "
                      f"transpose_rhs = false, transpose_lhs_hint = {hint}" +
                      highest * ", precision = #tpu.contract_precision<fp32>")
    return w.convert(found, out.dtype)


def _first(precision):
    return precision[0] if isinstance(precision, (tuple, list)) else precision


# --- what TPUs do besides ---------------------------------------------------------------------------

def _operation(w, eqn, *operands):
    name, attributes, out = (eqn.params[n] for n in ("name", "attributes", "out"))
    if out is not None:
        return [w.generic(f"tpu.{name}", operands, out.shape, out.dtype, attributes)]
    w.lines.append(generic(f"tpu.{name}", operands, attributes))
    return []


def _axis_index(w, eqn):
    if w.mesh is None:
        raise NotImplementedError("the place of a device along an axis outside of jax.shard_map")
    w.communicates = True
    (axis,) = eqn.params["axes"]
    i = w.mesh.axis_names.index(axis)
    number = w.emit("tpu.device_id", (), INT)
    number = w.binary(t.DIVIDE, number, w.constant(math.prod(w.mesh.axis_sizes[i + 1:])))
    return w.binary(t.REMAINDER, number, w.constant(w.mesh.axis_sizes[i]))


RULES = {
    **{p: _math(name) for p, name in _MATH.items()},
    e.population_count_p: _bits("ctpop"), e.clz_p: _bits("ctlz"), e.round_p: _round,
    f.expm1_p: lambda w, eqn, x: _expm1(w, x),
    f.pow_p: lambda w, eqn, x, y: _of_two("powf", w, x, y),
    e.atan2_p: lambda w, eqn, x, y: _of_two("atan2", w, x, y),
    bitcast_convert_type_p: _bitcast, slicing.concatenate_p: _concatenate, slicing.slice_p: _slice,
    slicing.pad_p: _pad, dot_general_p: _dot_general, load_p: load, store_p: store,
    operation_p: _operation, memory_p: on_memory, axis_index_p: _axis_index, scope_begin_p: scope_begin,
    scope_end_p: lambda w, eqn, *operands: scope_end(w, *operands)}
