"""Running sums, products, extremes and log-sum-exps along one axis."""
from ...core.axes import same_axes
from ..common import dtype_of, dtypes, kind_of, shape_of
from . import elementwise as e
from .reduce import combiner, reducer_of, region
from .shape import Mapped
from .slicing import concatenate_p, interleave_p, rev_p, slice_along
from .transcendental import exp, log1p_p
from .window import window_attributes


def _window(aval, axis, reverse):
    """The window whose reduction is the running one: all elements up to (or from) each position."""
    n, ones = aval.shape[axis], (1,) * aval.ndim
    sizes, padding = list(ones), [(0, 0)] * aval.ndim
    sizes[axis], padding[axis] = n, (0, n - 1) if reverse else (n - 1, 0)
    return dict(window_dimensions=tuple(sizes), window_strides=ones, padding=tuple(padding),
                base_dilation=ones, window_dilation=ones)


def cumulative(name, combine, identity, kinds, jvp, transpose=None, **facts):
    """The running form of a reduction.  `combine(dtype)` is a function on two scalars, giving a list."""
    def abstract_eval(x, *, axis, reverse):
        if not 0 <= axis < x.ndim:
            raise ValueError(f"{name}: axis {axis} is out of bounds for array of shape {x.shape}")
        if kind_of(x.dtype) not in kinds:
            raise TypeError(f"{name} does not accept dtype {x.dtype}; cast with .astype(dtype)")
        return x

    def lower(ctx, eqn, x):
        aval = eqn.outvars[0].aval
        if aval.size == 0:
            return x
        element = aval.update(shape=()).strip_weak_type()
        init = ctx.constant(identity(aval.dtype), aval.dtype)
        body = region(ctx, eqn, combine(aval.dtype), (element, element))
        return ctx.emit(f'"stablehlo.reduce_window"({x}, {init}) '
                        f'{window_attributes(_window(aval, **eqn.params))} '
                        f"{body} : ({aval.mlir}, {element.mlir}) -> {aval.mlir}")

    def scan_jvp(primals, tangents, **params):
        """A scan over pairs of value and tangent, whose combination carries the tangent by `jvp`."""
        return tuple(associative_scan(lambda a, b: jvp(*a, *b), [*primals, *tangents], **params))

    p = Mapped(name, abstract_eval=abstract_eval, lower=lower, transpose=transpose,
               axes=same_axes("axis"), whole="Input should be unsharded over the axis being reduced", **facts)
    p.jvp = scan_jvp if jvp else lambda primals, tangents, **params: (
        p.bind(*primals, **params), p.bind(*tangents, **params))
    return p


def associative_scan(combine, values, *, axis, reverse=False):
    """All prefixes of `values` (arrays of one shape) under `combine` (lists to a list), in O(log n) steps.

    Blelloch, "Prefix sums and their applications" (1990): the prefixes of pairs are the odd prefixes.
    """
    if reverse:
        flipped = [rev_p.bind(v, dimensions=(axis,)) for v in values]
        return [rev_p.bind(v, dimensions=(axis,)) for v in associative_scan(combine, flipped, axis=axis)]
    n = shape_of(values[0])[axis]
    if n < 2:
        return values
    pairs = combine([slice_along(v, axis, 0, n - 1, 2) for v in values],
                    [slice_along(v, axis, 1, n, 2) for v in values])
    odd = associative_scan(combine, pairs, axis=axis)
    shorter = [slice_along(v, axis, 0, shape_of(v)[axis] - (n % 2 == 0)) for v in odd]
    later = [slice_along(v, axis, 2, n, 2) for v in values]
    even = combine(shorter, later) if n > 2 else shorter
    first = [slice_along(v, axis, 0, 1) for v in values]
    even = [concatenate_p.bind(x, y, dimension=axis) for x, y in zip(first, even)]
    return [interleave_p.bind(x, y, dimension=axis) for x, y in zip(even, odd)]


def _by(primitive):
    """Value and tangent of two pairs under an elementwise primitive, from that primitive's own rule."""
    return lambda x, dx, y, dy: primitive.jvp((x, y), (dx, dy))


def _reduction(name, primitive, jvp=None, transpose=None, **facts):
    return cumulative(name, lambda dtype: combiner(primitive, dtype), reducer_of(primitive)[1], "fciu", jvp,
                      transpose, **facts)


cumsum_p = _reduction("cumsum", e.add_p, transpose=lambda ct, x, *, axis, reverse: [
    cumsum_p.bind(ct, axis=axis, reverse=not reverse)], linear="first")
cumprod_p = _reduction("cumprod", e.mul_p, _by(e.mul_p))
cummax_p = _reduction("cummax", e.max_p, _by(e.max_p), makes_nan=False)
cummin_p = _reduction("cummin", e.min_p, _by(e.min_p), makes_nan=False)


def _real(x):
    return e.real(x) if kind_of(dtype_of(x)) == "c" else x


def _logaddexp(x, y):
    """log(exp(x) + exp(y)); equal infinities give themselves."""
    first = e.ge(_real(x), _real(y))
    high, low = e.select(first, x, y), e.select(first, y, x)
    difference = e.sub(low, high)
    undefined = e.ne(difference, difference)        # equal infinities, or NaN
    tail = log1p_p.bind(exp(e.select(undefined, 0, difference)))
    return [e.select(undefined, e.add(x, y), e.add(high, tail))]


def _logaddexp_jvp(x, dx, y, dy):
    out, = _logaddexp(x, y)

    def weight(v):     # exp(v - out), 0 where v is -inf and out too
        return e.select(e.is_finite_p.bind(_real(out)), exp(e.sub(v, out)),
                        e.convert(e.is_finite_p.bind(_real(v)), dtype_of(v)))
    return [out, e.add(e.mul(dx, weight(x)), e.mul(dy, weight(y)))]


cumlogsumexp_p = cumulative("cumlogsumexp", lambda dtype: _logaddexp,
                            lambda dtype: dtypes.min_value(dtype).real.astype(dtype), "fc", _logaddexp_jvp)
