"""dot_general: the product of two arrays over shared axes.

Every axis gets a letter, as in "bik,bkj->bij": an axis in both operands and the result is a batch axis, one
in both operands only is contracted, the others are free.  The letters alone give shapes, error text, the
axis map, batching and the transpose.  `contract` is the same operation for rules and for the public
library, with any order of the result's axes and sums over axes of one operand; where nothing is contracted,
and it is no outer product, it multiplies.
"""
import functools
import string

from ...core.axes import AxisMap, AxisRule
from ...core.symbolic.dimension import surely
from ..common import (
    Primitive, ShapedArray, aval_of, dtype_of, dtypes, is_undefined_primal, ndim_of, prod, shape_of)
from . import shape
from .elementwise import accumulate, and_p, convert, in_bytes, mul
from .precision import DotAlgorithm, algorithm_of, storage_dtype, sum_dtype, swapped
from .reduce import reduce_or_p
from .shape import broadcast_in_dim, reduce_sum_p, transpose
from .slicing import slice_p, zero_filled


@functools.lru_cache(maxsize=4096)
def labels(dimension_numbers, lhs_ndim, rhs_ndim):
    """The letters of lhs, rhs and result, as strings.  The result has the batch, lhs free, rhs free axes."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    letters = iter(string.ascii_letters)
    lhs = "".join(next(letters) for _ in range(lhs_ndim))
    shared = dict(zip((*rhs_contract, *rhs_batch), (lhs[i] for i in (*lhs_contract, *lhs_batch))))
    rhs = "".join(shared[i] if i in shared else next(letters) for i in range(rhs_ndim))
    batch = "".join(lhs[i] for i in lhs_batch)
    return lhs, rhs, batch + _free(lhs, rhs) + _free(rhs, lhs)


def _free(x, y):
    return "".join(c for c in x if c not in y)


def _numbers(lhs, rhs, out):
    """(dimension numbers, letters of the result) of a product of lhs and rhs that keeps those in `out`."""
    batch = [c for c in out if c in lhs and c in rhs]
    contracted = [c for c in lhs if c in rhs and c not in out]
    dimension_numbers = tuple((tuple(map(lhs.index, group)), tuple(map(rhs.index, group)))
                              for group in (contracted, batch))
    return dimension_numbers, "".join(batch) + _free(lhs, rhs) + _free(rhs, lhs)


def _kept(x, y, out):
    return "".join(c for c in x if c in y or c in out)


def natural_labels(lhs, rhs, kept):
    """The letters of the product that keeps the letters in `kept`, in the order that needs no transpose."""
    return _numbers(_kept(lhs, rhs, kept), _kept(rhs, lhs, kept), kept)[1]


@functools.lru_cache(maxsize=4096)
def _plan(lhs, rhs, out):
    """How to contract: axes to sum in each operand, whether to exchange them, dimension numbers, permutation.

    Where nothing is summed over both, and one has no axes of its own, the last two are None and the place of
    each operand's axes in the result.
    """
    sums = tuple(tuple(i for i, c in enumerate(x) if c not in y and c not in out)
                 for x, y in ((lhs, rhs), (rhs, lhs)))
    lhs, rhs = _kept(lhs, rhs, out), _kept(rhs, lhs, out)
    if all(c in out for c in lhs if c in rhs) and not (_free(lhs, rhs) and _free(rhs, lhs)):
        return sums, False, None, tuple(tuple(map(out.index, x)) for x in (lhs, rhs))
    dimension_numbers, natural = _numbers(lhs, rhs, out)
    exchanged = _numbers(rhs, lhs, out)
    exchange = natural != out and exchanged[1] == out
    if exchange:
        dimension_numbers, natural = exchanged
    return sums, exchange, dimension_numbers, tuple(map(natural.index, out))


def contract(x, x_labels, y, y_labels, out_labels, precision=None, preferred_element_type=None, dot=None):
    """The sum of x * y over the letters that `out_labels` lacks, as in einsum.

    No letter is twice in one operand, and letters in both have equal sizes.  `dot`, which is called as
    `lax.dot_general` is, does the product in its place, also where nothing is contracted.
    """
    sums, exchange, dimension_numbers, permutation = _plan(x_labels, y_labels, out_labels)
    sizes = {**dict(zip(x_labels, shape_of(x))), **dict(zip(y_labels, shape_of(y)))}
    x, y = reduce_axes(x, sums[0]), reduce_axes(y, sums[1])
    if dot is not None:
        dimension_numbers, natural = _numbers(_kept(x_labels, y_labels, out_labels),
                                              _kept(y_labels, x_labels, out_labels), out_labels)
        out = dot(x, y, dimension_numbers, precision, preferred_element_type=preferred_element_type)
        return transpose(out, tuple(map(natural.index, out_labels)))
    if (aval_of(x).mesh or aval_of(y).mesh) and not dtypes.is_bool(dtype_of(x)):
        # the type is that of a product, also where nothing is contracted, and its order that of JAX
        lhs, rhs = _kept(x_labels, y_labels, out_labels), _kept(y_labels, x_labels, out_labels)
        dimension_numbers, natural = _numbers(lhs, rhs, out_labels)
        if exchange := natural != out_labels:
            dimension_numbers, natural = _numbers(rhs, lhs, out_labels)
        permutation = tuple(map(natural.index, out_labels))
    if dimension_numbers is None:
        dtype = product_dtype(dtype_of(x), dtype_of(y), preferred_element_type)
        shape = tuple(sizes[c] for c in out_labels)
        x, y = (_spread(convert(v, dtype, aval_of(v).weak_type), shape, where)
                for v, where in zip((x, y), permutation))
        return and_p.bind(x, y) if dtypes.is_bool(dtype) else mul(x, y)
    if exchange:
        x, y, precision = y, x, swapped(precision)
    out = dot_general_p.bind(x, y, dimension_numbers=dimension_numbers, precision=precision,
                             preferred_element_type=preferred_element_type)
    return transpose(out, permutation)


def _spread(x, shape, where):
    """`x` with its axes put at the places `where` of a larger shape."""
    order = sorted(range(len(where)), key=where.__getitem__)
    return broadcast_in_dim(transpose(x, order), shape, sorted(where))


def reduce_axes(x, axes):
    """The sum of `x` over axes, of booleans their disjunction."""
    if not axes:
        return x
    return (reduce_or_p if dtypes.is_bool(dtype_of(x)) else reduce_sum_p).bind(x, axes=axes)


# --- types ----------------------------------------------------------------------------------------

def _rank(dtype):
    """Order of dtypes: bool < integer < float < complex, then size, then range."""
    if dtypes.is_bool(dtype):
        return 0, 0, 0
    if dtypes.is_integer(dtype):
        return 1, dtype.itemsize, not dtypes.is_unsigned(dtype)
    if dtypes.is_float(dtype):
        return 2, dtype.itemsize, float(dtypes.finfo(dtype).max)
    return 3, dtype.itemsize, 0


def _width(dtype):
    """Bytes of a number, or of its real part; none of a truth value."""
    return 0 if dtypes.is_bool(dtype) else dtype.itemsize // (1 + dtypes.is_complex(dtype))


@functools.lru_cache(maxsize=1024)
def product_dtype(a, b, preferred=None, name="dot_general"):
    """The dtype of a product: the preferred one, else the higher of the two.  TypeError if the preferred one
    loses bits."""
    for operand, dtype in (("lhs", a), ("rhs", b)):
        if dtypes.is_extended(dtype):
            raise TypeError(f"{name}: {operand} has dtype {dtypes.short_name(dtype)}, which is not a number")
    natural = max(a, b, key=_rank)
    if preferred is None:
        return natural
    if not dtypes.is_float(natural) and _width(preferred) < _width(natural):
        raise TypeError(f"{name}: `preferred_element_type` must not be narrower than the original type, got "
                        f"preferred_element_type of {preferred} for result type of {natural}.")
    return preferred


def _check_axes(x, y, dimension_numbers):
    """The words for wrong axes: they are checked before any letters can be given."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    for side, aval, contracted, batch in (("lhs", x, lhs_contract, lhs_batch),
                                          ("rhs", y, rhs_contract, rhs_batch)):
        for d in (*contracted, *batch):
            if not 0 <= d < aval.ndim:
                raise TypeError(f"dot_general requires {side} dimension numbers to be nonnegative and less "
                                f"than the number of axes of the {side} value, got {side}_batching of "
                                f"{batch} and {side}_contracting of {contracted} for {side} of shape "
                                f"{aval.shape}, whose axes are 0 to {aval.ndim - 1}")
        for kind, axes in (("batch", batch), ("contracting", contracted)):
            if len(set(axes)) != len(axes):
                raise TypeError(f"dot_general requires {side} {kind} dimensions to be distinct, got {axes}: "
                                "name each axis once")
        if set(batch) & set(contracted):
            raise TypeError(f"dot_general requires {side} batch dimensions to be disjoint from contracting "
                            f"dimensions, got {side}_batching {batch} and {side}_contracting {contracted}")
    for kind, lhs_axes, rhs_axes in (("batch", lhs_batch, rhs_batch),
                                     ("contracting", lhs_contract, rhs_contract)):
        if len(lhs_axes) != len(rhs_axes):
            raise TypeError(f"dot_general requires equally many lhs and rhs {kind} dimensions, got "
                            f"{lhs_axes} and {rhs_axes}: they are summed together, or go together, in pairs")


def _check_sizes(x, y, dimension_numbers, lhs, rhs, out):
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    for kind, lhs_axes, rhs_axes in (("batch", lhs_batch, rhs_batch),
                                     ("contracting", lhs_contract, rhs_contract)):
        for i, j in zip(lhs_axes, rhs_axes):
            if x.shape[i] != y.shape[j]:
                raise TypeError(
                    f"dot_general requires {kind} dimensions to have the same shape, got "
                    f"{tuple(x.shape[a] for a in lhs_axes)} and {tuple(y.shape[a] for a in rhs_axes)}: in "
                    f"'{lhs},{rhs}->{out}', {lhs[i]!r} is axis {i} of lhs with size {x.shape[i]} and axis "
                    f"{j} of rhs with size {y.shape[j]} (lhs has shape {x.shape}, rhs {y.shape})")


@functools.lru_cache(maxsize=4096)
def _abstract_eval(x, y, *, dimension_numbers, precision, preferred_element_type):
    _check_axes(x, y, dimension_numbers)
    lhs, rhs, out = labels(dimension_numbers, x.ndim, y.ndim)
    _check_sizes(x, y, dimension_numbers, lhs, rhs, out)
    sizes = {**dict(zip(lhs, x.shape)), **dict(zip(rhs, y.shape))}
    dtype = product_dtype(x.dtype, y.dtype, preferred_element_type)
    return ShapedArray(tuple(sizes[c] for c in out), dtype, x.weak_type and y.weak_type)


# --- lowering -------------------------------------------------------------------------------------

def _computed_in(a, b, out, algorithm):
    """Dtypes of lhs, rhs and result in which to emit the operation, which then sees no mixture."""
    if algorithm is not None:
        return storage_dtype(algorithm[0], a), storage_dtype(algorithm[1], b), sum_dtype(algorithm[2])
    natural = max(a, b, key=_rank)
    result = out if _rank(out)[:2] >= _rank(natural)[:2] else natural
    same_kind = a == b and _rank(a)[0] == _rank(result)[0] and (a not in dtypes.SMALL_INTS or a == result)
    if same_kind or (a in dtypes.SMALL_FLOATS and b in dtypes.SMALL_FLOATS):
        return a, b, result
    return result, result, result


def lower_converted(primitive, ctx, eqn, x, y, algorithm=None):
    """The result lowered at other dtypes where these do not go together; None where they do."""
    (a, b), out = (v.aval.dtype for v in eqn.invars), eqn.outvars[0].aval.dtype
    lhs, rhs, result = _computed_in(a, b, out, algorithm)
    if (lhs, rhs, result) == (a, b, out):
        return None
    params = {**eqn.params, "preferred_element_type": result}
    return ctx.lower_fun(lambda u, v: convert(primitive.bind(convert(u, lhs), convert(v, rhs), **params),
                                              out), eqn, x, y)


def _lower(ctx, eqn, x, y):
    (a, b), out, params = (v.aval for v in eqn.invars), eqn.outvars[0].aval, eqn.params
    algorithm = algorithm_of(params["precision"])
    if not (dtypes.is_float(a.dtype) and dtypes.is_float(b.dtype)):
        algorithm = None    # algorithms are about floats; integers are always exact
    converted = lower_converted(dot_general_p, ctx, eqn, x, y, algorithm)
    if converted is not None:
        return converted
    if (found := _on_whole_words(ctx, eqn, x, y)) is not None:
        return found
    contracting, batching = params["dimension_numbers"]
    batch = f"batching_dims = {list(batching[0])} x {list(batching[1])}, " if batching[0] else ""
    how = ""
    if algorithm is not None:
        fields = ", ".join(f"{name} = {value}" for name, value in zip(DotAlgorithm._fields, algorithm))
        how = f", algorithm = <{fields.replace('True', 'true').replace('False', 'false')}>"
    elif type(params["precision"]) is tuple:
        how = f", precision = [{', '.join(p.name for p in params['precision'])}]"
    return ctx.emit(f"stablehlo.dot_general {x}, {y}, {batch}contracting_dims = {list(contracting[0])} x "
                    f"{list(contracting[1])}{how} : ({a.mlir}, {b.mlir}) -> {out.mlir}")


def _on_whole_words(ctx, eqn, x, y):
    """A product of bytes into ints on a GPU, of sizes that are multiples of 4; None where it is one already.

    cuBLAS takes no others (NVIDIA, cuBLAS, "cublasGemmEx": CUDA_R_8I), and XLA's are wrong.
    """
    (a, b), out = (v.aval for v in eqn.invars), eqn.outvars[0].aval
    if not ctx.platform.whole_words or out.dtype.kind not in "iu" or (
            (a.dtype.itemsize, b.dtype.itemsize, out.dtype.itemsize) != (1, 1, 4)):
        return None
    batching = eqn.params["dimension_numbers"][1]
    wide = [tuple(n if i in axes or type(n) is not int else -(-n // 4) * 4 for i, n in enumerate(v.shape))
            for v, axes in zip((a, b), batching)]
    if wide == [a.shape, b.shape]:
        return None

    def padded(*operands):
        found = dot_general_p.bind(*map(zero_filled, operands, wide), **eqn.params)
        return slice_p.bind(found, start_indices=(0,) * out.ndim, limit_indices=out.shape, strides=None)
    return ctx.lower_fun(padded, eqn, x, y)


# --- derivatives and batching ---------------------------------------------------------------------

def bilinear_jvp(primitive):
    """The jvp rule of a product: linear in each of its two operands."""
    def jvp(primals, tangents, **params):
        (x, y), (dx, dy) = primals, tangents
        out = primitive.bind(x, y, **params)
        if not dtypes.is_inexact(dtype_of(out)):
            return out, None
        left = None if dx is None else primitive.bind(dx, y, **params)
        right = None if dy is None else primitive.bind(x, dy, **params)
        if left is None or right is None:
            return out, right if left is None else left
        return out, accumulate(left, right)
    return jvp


def _transpose(ct, x, y, *, dimension_numbers, precision, preferred_element_type):
    # The cotangent has the dtype of the result, so its products are as wide as the result's were.
    lhs, rhs, out = labels(dimension_numbers, ndim_of(x), ndim_of(y))
    types = [v.aval if is_undefined_primal(v) else aval_of(v) for v in (ct, x, y)]
    dot = _typed_dot if any(a.explicit is not None and a.explicit.spec.partial for a in types) else None
    known, to, unknown = ((y, rhs), lhs, x) if is_undefined_primal(x) else ((x, lhs), rhs, y)
    pair, order = [(ct, out), known] if unknown is x else [known, (ct, out)], to
    lighter = surely(prod(shape_of(known[0])) - prod(shape_of(ct)) - unknown.aval.size, low=1)
    if lighter and (unknown is y or _summed_in_the_middle(known[1], out, to)):
        # compilers copied it for the product, or transposed it: the other two are less
        pair, precision = pair[::-1], swapped(precision)
        order = natural_labels(pair[0][1], pair[1][1], to)
    found = contract(*pair[0], *pair[1], order, precision, preferred_element_type, dot)
    found = convert(transpose(found, tuple(map(order.index, to))), unknown.dtype)
    return [found, None] if unknown is x else [None, found]


def _summed_in_the_middle(operand, other, out):
    """Whether a product that sums axes of an operand has others of it on both sides of these."""
    kinds = [c in out for c in operand if not (c in other and c in out)]
    return kinds[:1] == kinds[-1:] == [True] and not all(kinds)


def _typed_dot(x, y, dimension_numbers, precision=None, preferred_element_type=None):
    """The product in a cotangent where values are unreduced or reduced: it is unreduced over the axes that
    split what is summed; what is summed of it depends on the type that it is to have."""
    splits = [[aval_of(v).splits[d] for d in axes] for v, axes in zip((x, y), dimension_numbers[0])]
    unreduced = frozenset(name for a, b in zip(*splits) if a == b for name in a)
    params = {"unreduced": unreduced} if unreduced else {}
    primitive = unreduced_dot_general_p if unreduced else dot_general_p
    return primitive.bind(x, y, dimension_numbers=dimension_numbers, precision=precision,
                          preferred_element_type=preferred_element_type, **params)


def _batching_of(primitive):
    def batching(axis, args, dims, *, dimension_numbers, **params):
        lhs, rhs, out = labels(dimension_numbers, *(ndim_of(a) - (d is not None) for a, d in zip(args, dims)))
        lhs, rhs = (x if d is None else x[:d] + "*" + x[d:] for x, d in zip((lhs, rhs), dims))
        dimension_numbers, out = _numbers(lhs, rhs, "*" + out)
        return primitive().bind(*args, dimension_numbers=dimension_numbers, **params), out.index("*")
    return batching


def _labels(x, y, *, dimension_numbers, **_):
    lhs, rhs, out = map(tuple, labels(dimension_numbers, x.ndim, y.ndim))
    return AxisMap((lhs, rhs), out)


_axes = AxisRule(_labels, first=True)

dot_general_p = Primitive("dot_general", abstract_eval=_abstract_eval, lower=in_bytes(_lower), linear="each",
                          transpose=_transpose, batching=_batching_of(lambda: dot_general_p), axes=_axes)
dot_general_p.jvp = bilinear_jvp(dot_general_p)


def _unreduced_lower(ctx, eqn, x, y):
    """The constraint by the type of the result says what is unreduced."""
    params = {name: value for name, value in eqn.params.items() if name != "unreduced"}
    return _lower(ctx, eqn.replace(params=params), x, y)


# the product where the mesh axes `unreduced` split the contracted dimensions, before the sum over these
unreduced_dot_general_p = Primitive(
    "unreduced_dot_general", sharding=_axes, linear="each",
    batching=_batching_of(lambda: unreduced_dot_general_p),
    abstract_eval=lambda x, y, *, unreduced, **params: _abstract_eval(x, y, **params), lower=_unreduced_lower,
    transpose=lambda ct, x, y, *, unreduced, **params: _transpose(ct, x, y, **params))
unreduced_dot_general_p.jvp = bilinear_jvp(unreduced_dot_general_p)


def unreduced_dot(unreduced, x, y, dimension_numbers, precision=None, preferred_element_type=None):
    """As `lax.dot_general`, of an unreduced result: the sum over these mesh axes is still to be taken.

    A mesh axis that splits a dimension of the result by each operand splits that of the first.
    """
    aval, entries = aval_of(y), []
    lhs, rhs, _ = labels(dimension_numbers, ndim_of(x), aval.ndim)
    taken = {name for letter, split in zip(lhs, aval_of(x).splits) for name in split if letter not in rhs}
    for letter, split in zip(rhs, aval.splits):
        entries.append(None if letter not in lhs and taken.intersection(split) else split)
    if None in entries:
        y = shape.as_type(y, aval.update(sharding=aval.explicit.with_entries(*entries)))
    return unreduced_dot_general_p.bind(x, y, dimension_numbers=dimension_numbers, precision=precision,
                                        unreduced=unreduced, preferred_element_type=preferred_element_type)


def _shown_dot_general(eqn):
    numbers = tuple([tuple(map(list, pair)) for pair in eqn.params["dimension_numbers"]])
    return {"preferred_element_type": eqn.outvars[0].aval.dtype,
            **{k: v for k, v in eqn.params.items() if v is not None}, "dimension_numbers": numbers}


dot_general_p.answer("out_sharding")
dot_general_p.shown = _shown_dot_general
