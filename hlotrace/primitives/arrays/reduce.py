"""Reductions: prod, max, min, and, or, xor, argmax, argmin, and `reduce` by a user's program."""
import functools

from ...core import errors, programs
from ...core.axes import same_axes
from ...core.caches import cached
from ...core.jaxpr import eval_jaxpr
from ...core.symbolic_zeros import MappedAxis
from ...core.trace import EVAL, entering
from ..common import (
    ShapedArray, aval_of, dtype_of, dtypes, kind_of, no_tangent_jvp, np, prod, scalar, shape_of)
from . import elementwise as e
from .bit_formats import bitcast_convert_type_p
from .shape import (
    Mapped, batch_by_axes, broadcast_in_dim, check_axes, expand, full, instantiate, int_array, kept_axes,
    lower_reduction, reduce_sum, reduce_sum_p, reduction, reshape, transpose, zero)
from .slicing import concatenate_p, iota_p, slice_along

# --- programs on scalars, as regions --------------------------------------------------------------

@cached(1024)
def scalar_program(fun, avals):
    """`fun` (flat values to a list of values) traced on these avals."""
    with entering(EVAL):
        return programs.trace_closed(fun, avals)


def region(ctx, eqn, fun, avals):
    """A region that computes `fun`, with the location of `eqn`."""
    program = scalar_program(fun, tuple(avals))
    eqns = [each.replace(source=eqn.source, name_stack="") for each in program.eqns]
    return ctx.jaxpr_region(program.replace(eqns=eqns))


# --- reduction of one operand by one operation ----------------------------------------------------

def _complex_extreme(larger, x, y):
    """The larger (or smaller) of two complex scalars: by real part, then by imaginary part."""
    before = e.gt if larger else e.lt
    xr, yr = e.real(x), e.real(y)
    imag_before = e.and_p.bind(e.eq(xr, yr), before(e.imag_p.bind(x), e.imag_p.bind(y)))
    return [e.select(e.or_p.bind(before(xr, yr), imag_before), x, y)]


_COMPLEX_EXTREME = {p: functools.partial(_complex_extreme, p is e.max_p) for p in (e.max_p, e.min_p)}


def combiner(primitive, dtype):
    """The function on scalars that reduces by an elementwise primitive."""
    if dtypes.is_complex(dtype) and primitive in _COMPLEX_EXTREME:
        return _COMPLEX_EXTREME[primitive]
    return _combiner(primitive)


@functools.cache
def _combiner(primitive):
    return lambda x, y: [primitive.bind(x, y)]


# elementwise primitive -> (its reduction, its identity as a function of the dtype)
_reducers = {e.add_p: (reduce_sum_p, zero)}


def _reduction(name, combine, identity, kinds, jvp=None, **facts):
    """The primitive that reduces by the elementwise primitive `combine`."""
    def lower(ctx, eqn, x):
        operand, out, axes = eqn.invars[0].aval, eqn.outvars[0].aval, eqn.params["axes"]
        if axes and not ctx.platform.all_reduced(combine.mnemonic, kind_of(out.dtype)):
            x = ctx.replicate(x, operand, axes)
        if not axes or combiner(combine, out.dtype) is _combiner(combine):
            checked = not ctx.module.divided_by_compiler and not eqn.params.get("numbers")
            if axes and checked and loses_nan(ctx, combine, operand):
                return ctx.lower_fun(lambda x: _with_nan(p, x, axes), eqn, x)
            return lower_reduction(ctx, eqn, x, combine.mnemonic, identity)
        init, element = ctx.constant(identity(out.dtype), out.dtype), ShapedArray((), out.dtype)
        body = region(ctx, eqn, combiner(combine, out.dtype), (element, element))
        return ctx.emit(f'"stablehlo.reduce"({x}, {init}) <{{dimensions = {int_array(axes)}}}> {body} : '
                        f"({operand.mlir}, {element.mlir}) -> {out.mlir}")
    p = reduction(name, lower, kinds, **facts)
    p.jvp = functools.partial(jvp, p) if jvp else no_tangent_jvp(p)
    _reducers[combine] = p, identity
    return p


def reducer_of(primitive):
    """(reduction primitive, identity function) of an elementwise primitive, or (None, None)."""
    return _reducers.get(primitive, (None, None))


def loses_nan(ctx, combine, operand):
    """May XLA leave NaN out where it reduces floats by max or min?"""
    many = ctx.platform.extremes_lose_nan
    if many is None or combine not in COMPARING or kind_of(operand.dtype) != "f":
        return False
    return type(operand.size) is not int or operand.size >= many


def _compared(before, x, y):
    return [e.select(e.or_p.bind(before(x, y), e.ne(x, x)), x, y)]


# max and min of two scalars, written so that XLA leaves no NaN out
COMPARING = {e.max_p: functools.partial(_compared, e.gt), e.min_p: functools.partial(_compared, e.lt)}


def _with_nan(p, x, axes):
    """The extreme value by XLA, or NaN where the sum of squares is NaN, which needs one."""
    wide = x if dtype_of(x).itemsize >= 4 else e.convert(x, np.float32)
    squares = reduce_sum(e.mul(wide, wide), axes)
    return e.select(e.ne(squares, squares), np.nan, p.bind(x, axes=axes, numbers=True))


def _extreme_jvp(p, primals, tangents, *, axes, **facts):
    """The mean of the tangents of all elements that attain the extreme value."""
    x, = primals
    out = p.bind(x, axes=axes, **facts)
    hit = e.convert(e.eq(x, expand(out, axes, shape_of(x))), dtype_of(x))
    return out, e.div(reduce_sum(e.mul(tangents[0], hit), axes), reduce_sum(hit, axes))


def _prod_jvp(p, primals, tangents, *, axes):
    """A tree of products of (value, tangent): right where elements are zero, where out / x is not."""
    out = p.bind(*primals, axes=axes)

    def dual_product(a, b):
        return [e.mul(a[0], b[0]), e.add(e.mul(a[1], b[0]), e.mul(a[0], b[1]))]
    values = [axes_first(v, axes) for v in (*primals, *tangents)]
    if shape_of(values[0])[0] == 0:
        return out, None
    return out, reshape(tree_reduce(dual_product, values)[1], shape_of(out))


def axes_first(x, axes):
    """`x` as a matrix: the elements along `axes`, by all others."""
    shape = shape_of(x)
    kept = kept_axes(len(shape), axes)
    return reshape(transpose(x, (*axes, *kept)), (prod(shape[a] for a in axes), prod(shape[a] for a in kept)))


def tree_reduce(combine, values):
    """Reduce the rows of several matrices together to one; `combine` takes and gives lists of matrices."""
    while (n := shape_of(values[0])[0]) > 1:
        half = n // 2
        merged = combine(*[[slice_along(v, 0, start, start + half) for v in values] for start in (0, half)])
        values = merged if n == 2 * half else [
            concatenate_p.bind(m, slice_along(v, 0, n - 1, n), dimension=0) for m, v in zip(merged, values)]
    return values


reduce_prod_p = _reduction("reduce_prod", e.mul_p, lambda dtype: scalar(1, dtype), "fciu", _prod_jvp)
reduce_max_p = _reduction("reduce_max", e.max_p, dtypes.min_value, "fciub", _extreme_jvp, makes_nan=False)
reduce_min_p = _reduction("reduce_min", e.min_p, dtypes.max_value, "fciub", _extreme_jvp, makes_nan=False)
for _p in (reduce_max_p, reduce_min_p):
    # numbers=True: NaN may be left out of the result
    _p.abstract_eval = functools.partial(
        lambda type_of, x, *, axes, numbers=False: type_of(x, axes=axes), _p.abstract_eval)
    _p.shown = lambda eqn: {"axes": eqn.params["axes"]}
reduce_and_p = _reduction("reduce_and", e.and_p, lambda dtype: np.asarray(~np.zeros((), dtype)), "biu")
reduce_or_p = _reduction("reduce_or", e.or_p, zero, "biu")
reduce_xor_p = _reduction("reduce_xor", e.xor_p, zero, "biu")


# --- argmax, argmin -------------------------------------------------------------------------------

def _arg_step(before, x, i, y, j):
    """Of (x, i) and (y, j) the one whose value comes first; NaN before all, the lower index at a tie.

    It commutes, also where both are NaN: GPUs take pairs in any order.
    """
    nan = e.ne(x, x)
    better = e.or_p.bind(before(x, y), e.and_p.bind(nan, e.eq(y, y)))
    tie = e.or_p.bind(e.eq(x, y), e.and_p.bind(nan, e.ne(y, y)))
    earlier = e.or_p.bind(better, e.and_p.bind(tie, e.lt(i, j)))
    return [e.select(better, x, y), e.select(earlier, i, j)]


_PAIRS = 4096       # elements that a CPU takes as pairs, one by one: `find` compiles four times as long


def arg_reduction(name, before, worst, extreme_p):
    step = functools.partial(_arg_step, before)

    def abstract_eval(x, *, axes, index_dtype):
        check_axes(name, axes, x.ndim, x.shape)
        axis, = axes
        if kind_of(x.dtype) not in "fiub":
            raise TypeError(f"{name} does not accept dtype {x.dtype}: complex values have no order")
        if not dtypes.is_integer(index_dtype):
            raise TypeError(f"{name}: index_dtype must be an integer type, but got {index_dtype}")
        if x.shape[axis] == 0:
            raise ValueError(f"{name}: argmin and argmax require non-empty reduced dimension. "
                             f"operand.shape={x.shape} axis={axis}")
        return ShapedArray(tuple(x.shape[i] for i in kept_axes(x.ndim, axes)), index_dtype)

    def lower(ctx, eqn, x):
        operand, out, (axis,) = eqn.invars[0].aval, eqn.outvars[0].aval, eqn.params["axes"]
        positions = operand.update(dtype=out.dtype)
        value, index = ShapedArray((), operand.dtype), ShapedArray((), out.dtype)
        i = ctx.emit(f"stablehlo.iota dim = {axis} : {positions.mlir}")
        inits = ctx.constant(worst(operand.dtype), operand.dtype), ctx.constant(scalar(0, out.dtype),
                                                                                out.dtype)
        body = region(ctx, eqn, step, (value, index, value, index))
        return ctx.emit(f'"stablehlo.reduce"({x}, {i}, {", ".join(inits)}) <{{dimensions = '
                        f'{int_array((axis,))}}}> {body} '
                        f": ({operand.mlir}, {positions.mlir}, {value.mlir}, {index.mlir}) -> "
                        f"({out.update(dtype=operand.dtype).mlir}, {out.mlir})", 2)[1]

    def find(x, *, axes, index_dtype):
        """First the value, then its first place: CPUs do both with vectors, and reduce pairs one by one.

        Floats are compared by their bits: broadcast as they are, XLA writes them to memory first.  A place
        with a NaN is marked by its sign, which comes before all others: XLA's largest of many can lose it.
        """
        best, dtype = extreme_p.bind(x, axes=axes, numbers=True), dtype_of(x)
        signed = np.dtype("i4" if index_dtype.itemsize < 4 or index_dtype == np.int32 else "i8")
        last, mark = (scalar(value, signed) for value in (np.iinfo(signed).max, np.iinfo(signed).min))
        places = iota_p.bind(dtype=signed, shape=shape_of(x), dimension=axes[0])

        def everywhere(value):
            return expand(value, axes, shape_of(x))
        if kind_of(dtype) == "f" and dtype.itemsize >= 4:
            bits = functools.partial(bitcast_convert_type_p.bind, new_dtype=np.dtype(f"u{dtype.itemsize}"))
            zero = e.and_p.bind(everywhere(e.eq(best, 0)), e.eq(x, 0))
            hit = e.or_p.bind(zero, e.eq(bits(x), everywhere(bits(best))))
        else:
            hit = e.eq(x, everywhere(best))
        places = e.select(e.ne(x, x), e.or_p.bind(places, mark), e.select(hit, places, last))
        return e.convert(e.and_p.bind(reduce_min_p.bind(places, axes=axes), last), index_dtype)

    def lower_for_cpu(ctx, eqn, x):
        size = eqn.invars[0].aval.size
        if type(size) is int and size <= _PAIRS:
            return lower(ctx, eqn, x)
        return ctx.lower_fun(functools.partial(find, **eqn.params), eqn, x)

    p = Mapped(name, abstract_eval=abstract_eval, axes=same_axes("axes", gone=True),
               lower={None: e.in_bytes(lower, dtypes.PACKED),
                      "cpu": e.in_bytes(lower_for_cpu, dtypes.PACKED)})
    p.jvp = no_tangent_jvp(p)
    return p


argmax_p = arg_reduction("argmax", e.gt, dtypes.min_value, reduce_max_p)
argmin_p = arg_reduction("argmin", e.lt, dtypes.max_value, reduce_min_p)


# --- reduce by a user's program -------------------------------------------------------------------

def check_reducer(name, avals, jaxpr):
    """Operands and initial values for a program that maps two sets of scalars to one."""
    n = len(avals) // 2
    operands, inits = avals[:n], avals[n:]
    if any(x.shape != operands[0].shape for x in operands):
        raise TypeError(f"{name}: operands must have equal shapes, got "
                        f"{', '.join(str(x.shape) for x in operands)}")
    for i, (x, init) in enumerate(zip(operands, inits)):
        if init.shape:
            raise errors.ShapeError(f"{name} found non-scalar initial value: it expected init_values to be "
                                    f"scalars but number {i} has shape {init.shape}")
        if init.dtype != x.dtype:
            raise TypeError(f"{name}: operand {i} has dtype {x.dtype}, its initial value {init.dtype}; they "
                            "must be equal")
    expected = [ShapedArray((), x.dtype) for x in operands]
    if [(a.shape, a.dtype) for a in jaxpr.out_avals] != [(a.shape, a.dtype) for a in expected]:
        raise TypeError(f"{name}: the computation must return {', '.join(map(str, expected))} like its "
                        f"operands, it returns {', '.join(map(str, jaxpr.out_avals))}")


def _reduce_abstract_eval(*avals, jaxpr, dimensions):
    check_reducer("reduce", avals, jaxpr)
    first = avals[0]
    check_axes("reduce", dimensions, first.ndim, first.shape)
    shape = tuple(first.shape[i] for i in kept_axes(first.ndim, dimensions))
    return [ShapedArray(shape, x.dtype, x.weak_type) for x in avals[:len(avals) // 2]]


def _reduce_lower(ctx, eqn, *names):
    n, dimensions = len(names) // 2, eqn.params["dimensions"]
    names = [name if i >= n or ctx.platform.all_reduced(None, kind_of(v.aval.dtype)) else
             ctx.replicate(name, v.aval, dimensions) for i, (name, v) in enumerate(zip(names, eqn.invars))]
    body = ctx.jaxpr_region(eqn.params["jaxpr"])
    types = ", ".join(v.aval.mlir for v in eqn.invars), ", ".join(v.aval.mlir for v in eqn.outvars)
    return ctx.emit(f'"stablehlo.reduce"({", ".join(names)}) <{{dimensions = '
                    f'{int_array(eqn.params["dimensions"])}}}> ' f"{body} : ({types[0]}) -> ({types[1]})",
                    len(eqn.outvars))


def _reduce_jvp(primals, tangents, *, jaxpr, dimensions):
    """The computation's own derivative along a tree of pairs, then once more with the initial values."""
    n = len(primals) // 2
    if any(t is not None for t in tangents[n:]):
        raise NotImplementedError("reduce: the derivative with respect to the initial values of a general "
                                  "reduction is not defined; combine the initial value with the result "
                                  "instead")
    out = reduce_p.bind(*primals, jaxpr=jaxpr, dimensions=dimensions)
    smooth = [i for i in range(n) if dtypes.is_inexact(dtype_of(primals[i]))]
    rest = shape_of(out[0])
    size = prod(rest)

    def combine(a, b):
        count = prod(shape_of(a[0]))
        mapped, _ = programs.batch(jaxpr, MappedAxis(count), (True,) * 2 * n, True)
        program, nonzero = programs.jvp(mapped, tuple(i % n in smooth for i in range(2 * n)))
        flat = [reshape(v, (count,)) for v in (*a[:n], *b[:n], *a[n:], *b[n:])]
        results = eval_jaxpr(program, (), *flat)
        moved = iter(results[n:])
        moved = {i: next(moved) for i in range(n) if nonzero[i]}
        full_results = [*results[:n], *(instantiate(moved.get(i), aval_of(results[i])) for i in smooth)]
        return [reshape(v, (count // size if size else 0, size)) for v in full_results]

    values = [*primals[:n], *(instantiate(tangents[i], aval_of(primals[i])) for i in smooth)]
    values = [axes_first(v, dimensions) for v in values]
    if not size or not shape_of(values[0])[0]:
        return out, [None] * n
    inits = [broadcast_in_dim(v, (1, size), ()) for v in primals[n:]]
    inits += [full((1, size), 0, dtype_of(primals[i])) for i in smooth]
    moved = iter(combine(inits, tree_reduce(combine, values))[n:])
    return out, [reshape(next(moved), rest) if i in smooth else None for i in range(n)]


def only_operands(primitive, axis, args, dims, **params):
    """The batching rule of reductions by programs.  NotImplementedError if an initial value is mapped."""
    if any(d is not None for d in dims[len(args) // 2:]):
        raise NotImplementedError(f"{primitive}: vmap over the initial values of a general reduction is not "
                                  "supported; combine the initial value with the result instead")
    return batch_by_axes(primitive, axis, args, dims, **params)


def initial_values(n):
    """Which of n operands of a reduction by a program have rank 0."""
    return range(n // 2, n)


reduce_p = Mapped("reduce", multiple_results=True, abstract_eval=_reduce_abstract_eval, lower=_reduce_lower,
                  jvp=_reduce_jvp,
                  axes=same_axes("dimensions", gone=True, reduced=True, scalars=initial_values))
reduce_p.batching = functools.partial(only_operands, reduce_p)
