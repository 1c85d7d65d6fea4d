"""Reductions over sliding windows: sum, max, min, a user's program; derivatives of max and min pooling."""
import functools

from ...core import errors, programs
from ...core.axes import same_axes
from ...core.jaxpr import eval_jaxpr
from ...core.symbolic.dimension import max_dim
from ..common import ShapedArray, aval_of, dtype_of, dtypes, first_operand_jvp, kind_of, scalar, shape_of
from .conv import dilated
from .elementwise import add_p, ge_p, gt_p, le_p, lt_p, max_p, min_p, select
from .reduce import (
    COMPARING, check_reducer, combiner, initial_values, loses_nan, only_operands, reducer_of, region)
from .shape import Mapped, full, instantiate, int_array, int_list
from .slicing import pad_p, slice_p, zero_padded

_WINDOW = ("window_dimensions", "window_strides", "base_dilation", "window_dilation")


def window_shape(name, shape, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    """The shape of a windowed reduction's results.  TypeError, ValueError for parameters that do not fit."""
    given = dict(window_dimensions=window_dimensions, window_strides=window_strides, padding=padding,
                 base_dilation=base_dilation, window_dilation=window_dilation)
    for key, value in given.items():
        if key in _WINDOW[1:] and len(value) != len(window_dimensions):
            raise errors.ShapeError(f"{name} got inconsistent {key} and window_dimensions: got {key} {value} "
                                    f"and window_dimensions {window_dimensions}")
        if len(value) != len(shape):
            raise errors.ShapeError(f"{name} got the wrong number of {key} for operand: got operand shape "
                                    f"{shape} with {key} {value}; give one for each axis, 1 where the "
                                    "window is not to reach")
        if key != "padding" and any(v < 1 for v in value):
            raise TypeError(f"{name} {key} must have every element be strictly positive, got {value}")
    sizes = (dilated(n, d) + lo + hi for n, d, (lo, hi) in zip(shape, base_dilation, padding))
    windows = (dilated(w, d) for w, d in zip(window_dimensions, window_dilation))
    return tuple(max_dim((n - w) // s + 1, 0) for n, w, s in zip(sizes, windows, window_strides))


def window_attributes(params, keys=_WINDOW):
    """The attributes `<{...}>` of a windowed operation; `keys` are those that it has besides the padding."""
    names = {"base_dilation": "base_dilations", "window_dilation": "window_dilations"}
    padding = params["padding"]
    listed = [f"{names.get(k, k)} = {int_array(params[k])}" for k in keys]
    rows = int_list(int_list(pair) for pair in padding) if padding else ""
    return f"<{{{', '.join(listed)}, padding = dense<{rows}> : tensor<{len(padding)}x2xi64>}}>"


def _apart(params, shape):
    """Has no element two windows?  XLA makes a reduction of such."""
    return all(n == 1 or width <= stride for n, width, stride in zip(
        shape, params["window_dimensions"], params["window_strides"]))


_ALONE = {"padding": (0, 0), **dict.fromkeys(_WINDOW, 1)}
WINDOWED = same_axes(**_ALONE)


# --- reductions of one operand --------------------------------------------------------------------

REDUCERS = {}       # an elementwise primitive -> the windowed reduction by it


def window_reduction(name, combine, select_prim=None, transpose=None):
    """`select_prim` is the comparison that says which element of a window gives the result; None is a sum."""
    identity = reducer_of(combine)[1]

    def abstract_eval(x, **params):
        if kind_of(x.dtype) not in ("fciu" if combine is add_p else "fciub"):
            raise TypeError(f"{name} does not accept dtype {x.dtype}; cast with .astype(dtype)")
        return ShapedArray(window_shape("reduce_window", x.shape, **params), x.dtype, x.weak_type)

    def lower(ctx, eqn, x):
        operand, out = eqn.invars[0].aval, eqn.outvars[0].aval
        element, step = ShapedArray((), out.dtype), combiner(combine, out.dtype)
        init = ctx.constant(identity(out.dtype), out.dtype)
        if loses_nan(ctx, combine, operand) and _apart(eqn.params, out.shape):
            step = COMPARING[combine]
        return ctx.emit(f'"stablehlo.reduce_window"({x}, {init}) {window_attributes(eqn.params)} '
                        f"{region(ctx, eqn, step, (element, element))} : ({operand.mlir}, {element.mlir}) -> "
                        f"{out.mlir}")

    def jvp(primals, tangents, **params):
        if select_prim is None:
            return p.bind(*primals, **params), p.bind(*tangents, **params)
        return p.bind(*primals, **params), select_and_gather_add_p.bind(*tangents, *primals,
                                                                        select_prim=select_prim, **params)

    p = Mapped(name, abstract_eval=abstract_eval, lower=lower, jvp=jvp, transpose=transpose, axes=WINDOWED)
    REDUCERS[combine] = p
    return p


def _sum_transpose(ct, x, *, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    """Each element of the operand gets the sum of the cotangents of the windows that saw it.

    That is a window sum over the cotangent, spread out by the strides and padded so that the first
    window ends where the first one of the forward pass did.
    """
    if x.size == 0 or ct.size == 0:
        return [full(x.shape, 0, x.dtype)]
    config = []
    for n, m, w, s, (lo, _), b, d in zip(x.shape, shape_of(ct), window_dimensions, window_strides, padding,
                                         base_dilation, window_dilation):
        low = dilated(w, d) - 1 - lo
        high = dilated(n, b) + dilated(w, d) - 1 - low - dilated(m, s)
        config.append((low, high, s - 1))
    spread = zero_padded(ct, config)
    ones = (1,) * x.ndim
    return [reduce_window_sum_p.bind(
        spread, window_dimensions=window_dimensions, window_strides=base_dilation, padding=((0, 0),) * x.ndim,
        base_dilation=ones, window_dilation=window_dilation)]


reduce_window_sum_p = window_reduction("reduce_window_sum", add_p, transpose=_sum_transpose)
reduce_window_max_p = window_reduction("reduce_window_max", max_p, ge_p)
reduce_window_min_p = window_reduction("reduce_window_min", min_p, le_p)


# --- derivatives of the extremes ------------------------------------------------------------------

# comparison -> the value that loses it to every other
_LOSER = {ge_p: dtypes.min_value, le_p: dtypes.max_value, gt_p: dtypes.min_value, lt_p: dtypes.max_value}


def _pick_first(comparison):
    def pick(x, u, y, v):
        first = comparison.bind(x, y)
        return [select(first, x, y), select(first, u, v)]
    return pick


_PICKS = {comparison: _pick_first(comparison) for comparison in _LOSER}
_COMPARE = {comparison: lambda x, y, c=comparison: [c.bind(x, y)] for comparison in _LOSER}


def _gather_abstract_eval(tangent, operand, *, select_prim, **params):
    if tangent.shape != operand.shape:
        raise TypeError(f"select_and_gather_add: tangents of shape {tangent.shape} do not fit the operand of "
                        f"shape {operand.shape}")
    return ShapedArray(window_shape("select_and_gather_add", operand.shape, **params), tangent.dtype)


def _gather_lower(ctx, eqn, tangent, operand):
    """Reduce (operand, tangent) together: the operand decides which tangent survives."""
    out, avals = eqn.outvars[0].aval, [v.aval for v in eqn.invars[::-1]]
    elements = [ShapedArray((), a.dtype) for a in avals]
    comparison = eqn.params["select_prim"]
    inits = (ctx.constant(_LOSER[comparison](avals[0].dtype), avals[0].dtype),
             ctx.constant(scalar(0, out.dtype), out.dtype))
    return ctx.emit(f'"stablehlo.reduce_window"({operand}, {tangent}, {", ".join(inits)}) '
                    f"{window_attributes(eqn.params)} {region(ctx, eqn, _PICKS[comparison], elements * 2)} : "
                    f"({', '.join(a.mlir for a in (*avals, *elements))}) -> "
                    f"({out.update(dtype=avals[0].dtype).mlir}, {out.mlir})", 2)[1]


def _gather_transpose(ct, tangent, operand, *, select_prim, window_dimensions, window_strides, padding,
                      base_dilation, window_dilation):
    if any(d != 1 for d in window_dilation):
        raise NotImplementedError("reverse-mode differentiation of max or min pooling with window dilation "
                                  f"is not implemented, got window_dilation={window_dilation}; use forward "
                                  "mode, or slice the operand by the dilation first")
    low = _LOSER[select_prim](operand.dtype)
    spread = pad_p.bind(operand, low, padding_config=tuple((0, 0, b - 1) for b in base_dilation))
    result = select_and_scatter_add_p.bind(ct, spread, select_prim=select_prim,
                                           window_dimensions=window_dimensions, window_strides=window_strides,
                                           padding=padding)
    return [slice_p.bind(result, start_indices=(0,) * ct.ndim, limit_indices=shape_of(result),
                         strides=base_dilation), None]


select_and_gather_add_p = Mapped("select_and_gather_add", abstract_eval=_gather_abstract_eval,
                                 lower=_gather_lower, transpose=_gather_transpose, axes=WINDOWED)


def _scatter_abstract_eval(source, operand, *, select_prim, window_dimensions, window_strides, padding):
    ones = (1,) * operand.ndim
    expected = window_shape("select_and_scatter_add", operand.shape, window_dimensions, window_strides,
                            padding, ones, ones)
    if source.shape != expected:
        raise TypeError("select_and_scatter_add: the source must have one element for each window, shape "
                        f"{expected}, got {source.shape}")
    return ShapedArray(operand.shape, source.dtype)


def _scatter_lower(ctx, eqn, source, operand):
    """StableHLO pads with no value of its own choice: the operand is padded here with one that never wins."""
    params, aval, out = eqn.params, eqn.invars[1].aval, eqn.outvars[0].aval
    if not eqn.invars[0].aval.size or not aval.size:
        return ctx.lower_fun(lambda *_: full(out.shape, 0, out.dtype), eqn, source, operand)
    # XLA's partitioner loses values between devices where windows overlap with more than their neighbours,
    # and where the padded result is split.
    split = [i for i, n in enumerate(params["window_dimensions"]) if n > 1 and out.splits[i]]
    far = [i for i, (n, s) in enumerate(zip(params["window_dimensions"], params["window_strides"]))
           if n >= 2 * s or i in split]
    source = ctx.replicate(source, eqn.invars[0].aval, far)
    operand = ctx.replicate(operand, aval, far)
    lo, hi = zip(*params["padding"]) if params["padding"] else ((), ())
    padded = out.update(shape=tuple(a + n + b for a, n, b in zip(lo, out.shape, hi)))
    value, element = ShapedArray((), aval.dtype), ShapedArray((), out.dtype)
    low = ctx.constant(_LOSER[params["select_prim"]](aval.dtype), aval.dtype)
    wide = padded.update(dtype=aval.dtype).mlir
    operand = ctx.emit(f"stablehlo.pad {operand}, {low}, low = {int_list(lo)}, high = {int_list(hi)}, "
                       f"interior = {int_list([0] * len(lo))} : ({aval.mlir}, {value.mlir}) -> {wide}")
    zero = ctx.constant(scalar(0, out.dtype), out.dtype)
    none = {**params, "padding": ((0, 0),) * out.ndim}
    picks = region(ctx, eqn, _COMPARE[params["select_prim"]], (value, value))[1:-1]
    adds = region(ctx, eqn, combiner(add_p, out.dtype), (element, element))[1:-1]
    result = ctx.emit(f'"stablehlo.select_and_scatter"({operand}, {source}, {zero}) '
                      f"{window_attributes(none, _WINDOW[:2])} ({picks}, {adds}) : "
                      f"({wide}, {eqn.invars[0].aval.mlir}, {element.mlir}) -> {padded.mlir}")
    result = ctx.replicate(result, padded, split)
    return ctx.emit(f"stablehlo.pad {result}, {zero}, low = {int_list(-a for a in lo)}, high = "
                    f"{int_list(-b for b in hi)}, interior = {int_list([0] * len(lo))} : ({padded.mlir}, "
                    f"{element.mlir}) -> {out.mlir}")


def _scatter_transpose(ct, source, operand, **params):
    ones = (1,) * ct.ndim
    return [select_and_gather_add_p.bind(ct, operand, base_dilation=ones, window_dilation=ones, **params),
            None]


select_and_scatter_add_p = Mapped("select_and_scatter_add", abstract_eval=_scatter_abstract_eval,
                                  lower=_scatter_lower, transpose=_scatter_transpose, axes=WINDOWED)
for _p in (select_and_gather_add_p, select_and_scatter_add_p):
    _p.jvp = first_operand_jvp(_p)


# --- by a user's program --------------------------------------------------------------------------

def _general_abstract_eval(*avals, jaxpr, **params):
    check_reducer("reduce_window", avals, jaxpr)
    shape = window_shape("reduce_window", avals[0].shape, **params)
    return [ShapedArray(shape, x.dtype) for x in avals[:len(avals) // 2]]


def _general_lower(ctx, eqn, *names):
    types = ", ".join(v.aval.mlir for v in eqn.invars), ", ".join(v.aval.mlir for v in eqn.outvars)
    return ctx.emit(f'"stablehlo.reduce_window"({", ".join(names)}) {window_attributes(eqn.params)} '
                    f"{ctx.jaxpr_region(eqn.params['jaxpr'])} : ({types[0]}) -> ({types[1]})",
                    len(eqn.outvars))


def _general_jvp(primals, tangents, *, jaxpr, **params):
    """Windows of values and tangents together, by the computation's own derivative."""
    n = len(primals) // 2
    smooth = tuple(dtypes.is_inexact(dtype_of(x)) for x in primals[:n])
    given = [instantiate(t, aval_of(x)) for x, t, s in zip(primals, tangents, 2 * smooth) if s]
    m = sum(smooth)
    program, nonzero = programs.jvp(jaxpr, 2 * smooth)
    order = [*range(n), *range(2 * n, 2 * n + m), *range(n, 2 * n), *range(2 * n + m, 2 * n + 2 * m)]
    program = program.replace(invars=[program.invars[i] for i in order])

    def combine(*pairs):
        outs = eval_jaxpr(program, (), *pairs)
        moved = iter(outs[n:])
        moved = [next(moved) if found else None for found in nonzero]
        return [*outs[:n], *(instantiate(t, aval_of(x)) for x, t, s in zip(outs, moved, smooth) if s)]
    outs = reduce_window_p.bind(*primals[:n], *given[:m], *primals[n:], *given[m:], **params,
                                jaxpr=programs.trace_closed(combine, program.in_avals, program.name))
    moved = iter(outs[n:])
    return (reduce_window_p.bind(*primals, jaxpr=jaxpr, **params),
            [next(moved) if s else None for s in smooth])


reduce_window_p = Mapped("reduce_window", multiple_results=True, abstract_eval=_general_abstract_eval,
                         lower=_general_lower, jvp=_general_jvp,
                         axes=same_axes(**_ALONE, scalars=initial_values))
reduce_window_p.batching = functools.partial(only_operands, reduce_window_p)
