"""conv_general_dilated: convolution with strides, padding, dilations and groups.

A `ConvDimensionNumbers` says where each array keeps its axes: lhs_spec is (batch, feature, *spatial),
rhs_spec (out feature, in feature, *spatial), out_spec (batch, feature, *spatial).  The derivatives and
batching are again convolutions: an axis becomes another group, or part of a batch or feature axis.
"""
import functools
from typing import NamedTuple

from ...core import errors
from ...core.axes import AxisMap
from ...core.symbolic.dimension import max_dim, surely
from ..common import (
    Primitive, ShapedArray, aval_of, dtype_of, dtypes, is_undefined_primal, prod, same_dtype, shape_of)
from .contract import bilinear_jvp, lower_converted, product_dtype
from .elementwise import add, complex_p, convert, imag_p, in_bytes, real, sub
from .shape import full, move_axis, reshape
from .slicing import rev_p


class ConvDimensionNumbers(NamedTuple):
    """Axes of lhs (batch, feature, *spatial), rhs (out feature, in feature, *spatial) and result."""
    lhs_spec: tuple
    rhs_spec: tuple
    out_spec: tuple


# --- types ----------------------------------------------------------------------------------------

def dilated(size, dilation):
    """The extent of `size` elements with `dilation - 1` gaps between neighbours."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def window_outputs(size, window, stride, low, high, lhs_dilation, rhs_dilation):
    """How many windows fit along one axis."""
    extent = dilated(size, lhs_dilation) + low + high - dilated(window, rhs_dilation)
    return max_dim(extent // stride + 1, 0)


def _spatial(x, spec):
    return tuple(shape_of(x)[i] for i in spec[2:])


def _check_groups(name, lhs, rhs, feature_groups, batch_groups):
    """`lhs` is (batch, feature), `rhs` (out feature, in feature)."""
    (batch, feature), (rhs_out, rhs_in) = lhs, rhs
    for kind, groups, axis, size in (("feature", feature_groups, "feature", feature),
                                     ("batch", batch_groups, "batch", batch)):
        if groups < 1:
            raise ValueError(f"{name} {kind}_group_count must be a positive integer, got {groups}.")
        if size % groups:
            raise ValueError(f"{name} {kind}_group_count must divide lhs {axis} dimension size, but {groups} "
                             f"does not divide {size}: each group takes as many.")
        if rhs_out % groups:
            raise ValueError(f"{name} rhs output feature dimension size must be a multiple of "
                             f"{kind}_group_count, but {rhs_out} is not a multiple of {groups}: each group "
                             "gives as many.")
    if feature_groups > 1 and batch_groups > 1:
        raise ValueError("At most one of batch_group_count and feature_group_count may be > 1, got "
                         f"batch_group_count={batch_groups} and feature_group_count={feature_groups}")
    if feature // feature_groups != rhs_in:
        raise errors.ShapeError(f"{name} lhs feature dimension size divided by feature_group_count must "
                                f"equal the rhs input feature dimension size, but {feature} // "
                                f"{feature_groups} != {rhs_in}: the image (lhs) has {feature} channels, the "
                                f"kernel (rhs) takes {rhs_in} a group; dimension_numbers says which axis is "
                                "which")


@functools.lru_cache(maxsize=1024)
def _abstract_eval(x, y, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
                   feature_group_count, batch_group_count, precision, preferred_element_type):
    name = "conv_general_dilated"
    same_dtype(name, x, y)
    if x.ndim != y.ndim or x.ndim < 2:
        raise TypeError(f"{name} requires lhs and rhs of equal rank, at least 2, got shapes {x.shape} and "
                        f"{y.shape}")
    for side, spec in zip(("lhs", "rhs", "out"), dimension_numbers):
        if sorted(spec) != list(range(x.ndim)):
            raise TypeError(f"{name}: dimension_numbers.{side}_spec {spec} is not a permutation of the "
                            f"{x.ndim} axes")
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    sizes, windows = _spatial(x, lhs_spec), _spatial(y, rhs_spec)
    for what, values in (("window_strides", window_strides), ("padding", padding),
                         ("lhs_dilation", lhs_dilation), ("rhs_dilation", rhs_dilation)):
        if len(values) != len(windows):
            raise errors.ShapeError(f"{name} window and {what} must have the same number of dimensions, but "
                                    f"got {len(windows)} and {len(values)}")
        if what != "padding" and any(v < 1 for v in values):
            raise errors.ShapeError(f"All {'strides' if what == 'window_strides' else 'dilations'} must be "
                                    f"positive, got {values}: {name} {what}")
    _check_groups(name, [x.shape[i] for i in lhs_spec[:2]], [y.shape[i] for i in rhs_spec[:2]],
                  feature_group_count, batch_group_count)
    for i, (n, dilation, (low, high)) in enumerate(zip(sizes, lhs_dilation, padding)):
        if surely(dilated(n, dilation) + low + high, high=-1):
            raise ValueError(f"{name}: negative padding {(low, high)} removes more than spatial axis {i} of "
                             f"lhs has ({dilated(n, dilation)} elements after dilation by {dilation}; lhs "
                             f"shape {x.shape})")
    shape = [0] * x.ndim
    shape[out_spec[0]] = x.shape[lhs_spec[0]] // batch_group_count
    shape[out_spec[1]] = y.shape[rhs_spec[0]]
    for d, n, window, stride, pads, *dilations in zip(out_spec[2:], sizes, windows, window_strides, padding,
                                                      lhs_dilation, rhs_dilation):
        shape[d] = window_outputs(n, window, stride, *pads, *dilations)
    dtype = product_dtype(x.dtype, y.dtype, preferred_element_type, name)
    return ShapedArray(tuple(shape), dtype, x.weak_type and y.weak_type)


# --- lowering -------------------------------------------------------------------------------------

def _axes_text(spec, batch, feature):
    names = {spec[0]: batch, spec[1]: feature, **{axis: str(i) for i, axis in enumerate(spec[2:])}}
    return f"[{', '.join(names[i] for i in range(len(spec)))}]"


def _complex_product(x, y, params):
    """Three real convolutions (Gauss): no accelerator library has complex ones."""
    def conv(u, v):
        return conv_general_dilated_p.bind(u, v, **{**params, "preferred_element_type": None})
    (a, b), (c, d) = ((real(z), imag_p.bind(z)) for z in (x, y))
    shared = conv(add(a, b), c)
    return complex_p.bind(sub(shared, conv(b, add(c, d))), add(shared, conv(a, sub(d, c))))


def _lower(ctx, eqn, x, y):
    converted = lower_converted(conv_general_dilated_p, ctx, eqn, x, y)
    if converted is not None:
        return converted
    if dtypes.is_complex(eqn.outvars[0].aval.dtype):
        return ctx.lower_fun(lambda u, v: _complex_product(u, v, eqn.params), eqn, x, y)
    p, (a, b), out = eqn.params, (v.aval for v in eqn.invars), eqn.outvars[0].aval
    if not dtypes.is_float(out.dtype):      # XLA folds integers that do not fit to the largest; others wrap
        x = ctx.emit(f"stablehlo.optimization_barrier {x} : {a.mlir}")
    lhs, rhs, result = p["dimension_numbers"]
    numbers = f"{_axes_text(lhs, 'b', 'f')}x{_axes_text(rhs, 'o', 'i')}->{_axes_text(result, 'b', 'f')}"
    window = (f"stride = {list(p['window_strides'])}, pad = {[list(pair) for pair in p['padding']]}, "
              f"lhs_dilate = {list(p['lhs_dilation'])}, rhs_dilate = {list(p['rhs_dilation'])}")
    precision = ", ".join(f"#stablehlo<precision {q.name}>" for q in p["precision"] or ())
    groups = (f"batch_group_count = {p['batch_group_count']} : i64, "
              f"feature_group_count = {p['feature_group_count']} : i64")
    how = f"{groups}, precision_config = [{precision}]" if precision else groups
    return ctx.emit(f"stablehlo.convolution({x}, {y}) dim_numbers = {numbers}, window = {{{window}}} "
                    f"{{{how}}} : ({a.mlir}, {b.mlir}) -> {out.mlir}")


# --- moving axes into groups ----------------------------------------------------------------------

def _fold(x, source, target, outer=1):
    """Merge axis `source` into axis `target`, counted without it, behind `outer` groups of that."""
    x = move_axis(x, source, target)
    shape = shape_of(x)
    size, merged = shape[target], shape[target + 1]
    x = reshape(x, (*shape[:target], size, outer, merged // outer, *shape[target + 2:]))
    return reshape(move_axis(x, target, target + 1), (*shape[:target], size * merged, *shape[target + 2:]))


def _unfold(x, axis, size, outer=1):
    """The reverse: split a group of `size` out of `axis`, from behind `outer` others, and put it first."""
    shape = shape_of(x)
    merged = shape[axis] // size
    x = move_axis(reshape(x, (*shape[:axis], outer, size, merged // outer, *shape[axis + 1:])), axis + 1, 0)
    return reshape(x, (size, *shape[:axis], merged, *shape[axis + 1:]))


# --- transpose ------------------------------------------------------------------------------------

def _swap(spec):
    return (spec[1], spec[0], *spec[2:])


def _extents(x, y, out, p):
    """For each spatial axis the dilated sizes of lhs, rhs and result."""
    lhs_spec, rhs_spec, out_spec = p["dimension_numbers"]
    return zip([dilated(n, d) for n, d in zip(_spatial(x, lhs_spec), p["lhs_dilation"])],
               [dilated(n, d) for n, d in zip(_spatial(y, rhs_spec), p["rhs_dilation"])],
               [dilated(n, d) for n, d in zip(_spatial(out, out_spec), p["window_strides"])])


def _transpose_lhs(ct, x, y, p):
    lhs_spec, rhs_spec, out_spec = p["dimension_numbers"]
    features, batches = p["feature_group_count"], p["batch_group_count"]
    padding = tuple((rhs - low - 1, lhs - out + low) for (lhs, rhs, out),
                    (low, _) in zip(_extents(x, y, ct, p), p["padding"]))
    if features * batches > 1:    # in each group the roles of in and out features are exchanged
        y = _fold(_unfold(y, rhs_spec[0], features * batches), 0, rhs_spec[1])
    y = rev_p.bind(y, dimensions=tuple(rhs_spec[2:]))
    result = conv_general_dilated_p.bind(ct, y, **{
        **p, "window_strides": p["lhs_dilation"], "lhs_dilation": p["window_strides"], "padding": padding,
        "dimension_numbers": ConvDimensionNumbers(out_spec, _swap(rhs_spec), lhs_spec),
        "feature_group_count": features * batches, "batch_group_count": 1})
    if batches > 1:
        result = _fold(_unfold(result, lhs_spec[1], batches), 0, lhs_spec[0])
    return result


def _transpose_rhs(ct, x, y, p):
    lhs_spec, rhs_spec, out_spec = p["dimension_numbers"]
    padding = tuple((low, rhs + out - lhs - low - 1) for (lhs, rhs, out),
                    (low, _) in zip(_extents(x, y, ct, p), p["padding"]))
    # sums over the batch: it takes the place of the features, and groups of one become groups of the other
    return conv_general_dilated_p.bind(x, ct, **{
        **p, "window_strides": p["rhs_dilation"], "rhs_dilation": p["window_strides"], "padding": padding,
        "dimension_numbers": ConvDimensionNumbers(_swap(lhs_spec), _swap(out_spec), _swap(rhs_spec)),
        "feature_group_count": p["batch_group_count"], "batch_group_count": p["feature_group_count"]})


def _transpose(ct, x, y, **p):
    rule, operand, other = (_transpose_lhs, x, y) if is_undefined_primal(x) else (_transpose_rhs, y, x)
    if prod(ct.shape) == 0 or prod(shape_of(other)) == 0:
        result = full(operand.shape, 0, operand.dtype)
    else:
        wide = max(ct.dtype, dtype_of(other), key=lambda dtype: dtype.itemsize)
        ct, other = convert(ct, wide), convert(other, wide)
        operands = (x, other) if operand is x else (other, y)
        result = convert(rule(ct, *operands, {**p, "preferred_element_type": None}), operand.dtype)
    return [result, None] if operand is x else [None, result]


# --- batching -------------------------------------------------------------------------------------

def _batching(axis, args, dims, *, dimension_numbers, feature_group_count, batch_group_count, **p):
    (x, y), (dx, dy) = args, dims
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    features, batches = feature_group_count, batch_group_count
    where, outer = out_spec[1], 1
    if not axis.size:           # there are no groups of size zero
        one = _abstract_eval(
            *(aval_of(v) if d is None else aval_of(v).without_axis(d) for v, d in zip(args, dims)),
            dimension_numbers=dimension_numbers, feature_group_count=features, batch_group_count=batches, **p)
        return full((0, *one.shape), 0, one.dtype), 0
    if dy is None:                   # more batch
        x = _fold(x, dx, lhs_spec[0], batches)
        where = out_spec[0]
    elif dx is None:                 # more output features in each group
        outer = features * batches
        y = _fold(y, dy, rhs_spec[0], outer)
    elif batches > 1:                # more groups
        x, y = _fold(x, dx, lhs_spec[0]), _fold(y, dy, rhs_spec[0])
        batches *= axis.size
    else:
        x, y = _fold(x, dx, lhs_spec[1]), _fold(y, dy, rhs_spec[0])
        features *= axis.size
    out = conv_general_dilated_p.bind(x, y, dimension_numbers=dimension_numbers, feature_group_count=features,
                                      batch_group_count=batches, **p)
    return _unfold(out, where, axis.size, outer), 0


def _sharding(lhs, rhs, *, dimension_numbers, batch_group_count, **_):
    """The batch axis and those in space stay what they are; the kernel is whole."""
    of_lhs, of_out = [None] * lhs.ndim, [None] * lhs.ndim
    x, _, out = dimension_numbers
    for at, to in zip(x[2:], out[2:]):
        of_lhs[at] = of_out[to] = at
    if batch_group_count == 1:
        of_lhs[x[0]] = of_out[out[0]] = "batch"
    return AxisMap((tuple(of_lhs), (None,) * rhs.ndim), tuple(of_out))


conv_general_dilated_p = Primitive(
    "conv_general_dilated", abstract_eval=_abstract_eval, lower=in_bytes(_lower), sharding=_sharding,
    transpose=_transpose, batching=_batching, whole="Please specify the output sharding via `out_sharding` "
                                                    "parameter of `conv_general_dilated`")
conv_general_dilated_p.answer("out_sharding")
conv_general_dilated_p.shown = lambda eqn: {**eqn.params, "out_sharding": None}
conv_general_dilated_p.jvp = bilinear_jvp(conv_general_dilated_p)
