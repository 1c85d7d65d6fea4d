"""Products and convolutions: dot_general and its kin, conv_general_dilated and its kin."""
import operator
from typing import NamedTuple

from ..core import dtypes
from ..core.avals import aval_of
from ..core.errors import did_you_mean
from ..core.symbolic.dimension import as_size, max_dim
from ..placement.out_sharding import over_auto_axes, unreduced_axes, with_out_sharding
from ..primitives.arrays.contract import contract, dot_general_p, labels, unreduced_dot
from ..primitives.arrays.conv import ConvDimensionNumbers, conv_general_dilated_p, dilated
from ..primitives.arrays.elementwise import and_p, convert, ge, lt, mul, select, sub
from ..primitives.arrays.precision import DotAlgorithm, DotAlgorithmPreset, Precision, canonical_precision
from ..primitives.arrays.shape import broadcast_in_dim, full, reshape, transpose
from ..primitives.arrays.slicing import iota_p, rev_p
from ..primitives.common import ndim_of, np, prod, shape_of

PrecisionLike = (None | str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm
                 | DotAlgorithmPreset)
DotDimensionNumbers = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]
ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]


def _preferred(dtype, name):
    return None if dtype is None else dtypes.check_user_dtype(dtype, name)


def _ints(values, what):
    try:
        return tuple(operator.index(v) for v in values)
    except TypeError:
        raise TypeError(f"{what} must be a sequence of ints, one for each axis, got {values!r}") from None


# --- dot ------------------------------------------------------------------------------------------

def dot_general(lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None, *,
                out_sharding=None):
    """Product over shared axes.

    The result's axes are the batch axes, the free axes of `lhs`, the free axes of `rhs`.

    Args:
        dimension_numbers: ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch)), tuples of axes.
        precision: a `Precision`, a pair of them, or a `DotAlgorithm`.
        preferred_element_type: the dtype of the result and of the sums; that of the operands for None.
    Raises:
        TypeError: where axes or sizes do not fit.

    >>> x, y = jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))
    >>> lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))).shape
    (5, 2, 4)
    """
    try:
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    except (TypeError, ValueError):
        raise TypeError("dot_general: dimension_numbers must be ((lhs_contracting, rhs_contracting), "
                        f"(lhs_batch, rhs_batch)), got {dimension_numbers!r}") from None
    groups = tuple(_ints(g, "dot_general dimension_numbers") for g in (lhs_contract, rhs_contract, lhs_batch,
                                                                      rhs_batch))
    aval_of(lhs), aval_of(rhs)
    params = dict(dimension_numbers=(groups[:2], groups[2:]), precision=canonical_precision(precision),
                  preferred_element_type=_preferred(preferred_element_type, "dot_general"))
    unreduced = unreduced_axes(out_sharding, "lax.dot_general", lhs, rhs)
    if unreduced:
        out = unreduced_dot(unreduced, lhs, rhs, **params)
    else:
        if out_sharding is not None:
            lhs, rhs = over_auto_axes(lhs, rhs)
        out = dot_general_p.bind(lhs, rhs, **params)
    return with_out_sharding(out, out_sharding, "lax.dot_general")


def dot(lhs, rhs, *, dimension_numbers=None, precision=None, preferred_element_type=None, out_sharding=None):
    """The product of two vectors, of matrix and vector, of matrices; with `dimension_numbers`, `dot_general`.

    >>> lax.dot(jnp.array([[1., 2.], [3., 4.]]), jnp.array([1., 10.]))
    Array([21., 43.], dtype=float32)
    """
    if dimension_numbers is None:
        x, y = aval_of(lhs), aval_of(rhs)
        if not (1 <= x.ndim <= 2 and 1 <= y.ndim <= 2 and x.shape[-1] == y.shape[0]):
            raise ValueError("lax.dot: dimension_numbers must be specified when not performing simple "
                             "un-batched matrix-matrix, matrix-vector, or vector-vector products, whose "
                             "last axis of lhs and first axis of rhs have equal sizes; got "
                             f"lhs_shape={x.shape} rhs_shape={y.shape}")
        dimension_numbers = (((x.ndim - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type,
                       out_sharding=out_sharding)


def batch_matmul(lhs, rhs, precision=None):
    """Matrix product over the last two axes; all leading axes are batch axes and must be equal.

    >>> lax.batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    x, y = aval_of(lhs), aval_of(rhs)
    if min(x.ndim, y.ndim) < 2:
        raise ValueError(f"Arguments to batch_matmul must be at least 2D, got {x.ndim}, {y.ndim}")
    if x.ndim != y.ndim:
        raise ValueError(f"Arguments to batch_matmul must have same ndim, got {x.ndim}, {y.ndim}")
    batch = tuple(range(x.ndim - 2))
    return dot_general(lhs, rhs, (((x.ndim - 1,), (x.ndim - 2,)), (batch, batch)), precision)


class RaggedDotDimensionNumbers(NamedTuple):
    """Axes of a ragged product: those of dot_general, the lhs axis cut into groups, the group axis of rhs."""
    dot_dimension_numbers: tuple
    lhs_ragged_dimensions: tuple
    rhs_group_dimensions: tuple


def ragged_dot_general(lhs, rhs, group_sizes, ragged_dot_dimension_numbers, precision=None,
                       preferred_element_type=None, group_offset=None, out_sharding=None):
    """A product whose ragged axis of `lhs` is cut into groups of the lengths `group_sizes`.

    A free ragged axis meets slice g of rhs's group axis in group g (rows past the last group give zero); a
    contracted one is summed group by group, and the result gains a leading group axis; along a batch axis
    the groups make no difference.  Needs memory for one masked copy of lhs for each group.

    Args:
        group_sizes: integers, the last axis for the groups.  The others, if there are any, are the batch axes
            of lhs, and those of the kind of the ragged one, free or contracted, that are before it.
        precision: as in `dot_general`.
        preferred_element_type: as in `dot_general`.
        group_offset: not supported; None.

    >>> numbers = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
    >>> rhs = jnp.array([[[1., 1.]], [[2., 2.]]]).transpose(0, 2, 1)
    >>> lax.ragged_dot_general(jnp.ones((3, 2)), rhs, jnp.array([1, 2]), numbers)
    Array([[2.],
           [4.],
           [4.]], dtype=float32)
    """
    if group_offset is not None:
        raise NotImplementedError("Unimplemented group_offset support.")
    numbers, (ragged,), groups = ragged_dot_dimension_numbers
    sizes = aval_of(group_sizes)
    if not sizes.ndim or not dtypes.is_integer(sizes.dtype):
        raise TypeError("ragged_dot: group_sizes must be integers of rank 1 at least, got "
                        f"{sizes.str_short()}")
    if out_sharding is not None:
        lhs, rhs, group_sizes = over_auto_axes(lhs, rhs, group_sizes)
    elif any(aval_of(x).explicit is not None for x in (lhs, rhs, group_sizes)):
        raise NotImplementedError("Explicit sharding inference for ragged_dot_general is not currently "
                                  "implemented. Please specify out_sharding.")
    numbers = tuple(tuple(_ints(axes, "ragged_dot dimension numbers") for axes in pair) for pair in numbers)
    x, y, out = labels(numbers, ndim_of(lhs), ndim_of(rhs))
    for g in groups:
        if shape_of(rhs)[g] != sizes.shape[-1]:
            raise TypeError(f"expected rhs group dimension size to be {sizes.shape[-1]}, got "
                            f"{shape_of(rhs)[g]}.")
    group = y[groups[0]] if groups else "+"
    if ragged not in numbers[1][0]:
        free = ragged not in numbers[0][0]
        if free != bool(groups):
            raise TypeError("ragged_dot: rhs has a group axis exactly where the ragged axis of lhs is free, "
                            f"got rhs_group_dimensions={groups} for ragged axis {ragged} of '{x},{y}->{out}'")
        out = out.replace(group, "") if free else group + out
        lhs, x = _masked_groups(lhs, ragged, group_sizes, _prefix(numbers, lhs, ragged, sizes)), group + x
    product = contract(lhs, x, rhs, y, out, canonical_precision(precision),
                       _preferred(preferred_element_type, "ragged_dot"))
    return with_out_sharding(product, out_sharding, "lax.ragged_dot_general")


def _prefix(numbers, lhs, ragged, sizes):
    """The axes of lhs that all but the last axis of group_sizes are for.

    They are the batch axes, and those of the kind of the ragged one, free or contracted, that are before it.
    """
    if sizes.ndim == 1:
        return ()
    (contracted, _), (batch, _) = numbers
    alike = contracted if ragged in contracted else [
        i for i in range(ndim_of(lhs)) if i not in contracted and i not in batch]
    prefix = (*batch, *alike[:alike.index(ragged)])
    wanted = tuple([shape_of(lhs)[p] for p in prefix])
    if sizes.shape[:-1] != wanted:
        raise TypeError(f"ragged_dot: group_sizes {sizes.str_short()} must have rank 1, or the shape "
                        f"{(*wanted, 'number of groups')}: the sizes of axes {prefix} of lhs "
                        f"{shape_of(lhs)}, its batch axes and those before the ragged one, come first")
    return prefix


def _masked_groups(x, axis, group_sizes, prefix):
    """`x` once for each group, along a new first axis, zero outside the group.

    The groups along `axis` differ along the axes `prefix`, if there are any.
    """
    groups, shape = shape_of(group_sizes)[-1], shape_of(x)
    dtype, kept = aval_of(group_sizes).dtype, sorted([*prefix, axis])
    order = sorted(range(len(prefix)), key=prefix.__getitem__)
    sizes = transpose(group_sizes, (len(prefix), *order))
    lead = "abcdefgh"[:len(prefix)]
    ends = contract(np.tri(groups, dtype=dtype), "ij", sizes, "j" + lead, "i" + lead)
    small = (groups, *[shape[k] for k in kept])
    rows = iota_p.bind(dtype=dtype, shape=small, dimension=kept.index(axis) + 1)
    dims = (0, *[kept.index(p) + 1 for p in sorted(prefix)])
    end, start = (broadcast_in_dim(v, small, dims) for v in (ends, sub(ends, sizes)))
    inside = and_p.bind(ge(rows, start), lt(rows, end))
    shape = (groups, *shape)
    return select(broadcast_in_dim(inside, shape, (0, *[k + 1 for k in kept])),
                  broadcast_in_dim(x, shape, tuple(range(1, len(shape)))), full(shape, 0, aval_of(x).dtype))


def ragged_dot(lhs, rhs, group_sizes, precision=None, preferred_element_type=None, group_offset=None,
               out_sharding=None):
    """Rows of `lhs`, cut into groups, times the matrix of their group in `rhs`; see `dot_general`.

    Args:
        lhs: of shape (m, k).
        rhs: of shape (g, k, n).
        group_sizes: how many rows each group has, of shape (g,).
        group_offset: not supported; None.

    >>> rhs = jnp.array([[[1.], [1.]], [[2.], [2.]]])
    >>> lax.ragged_dot(jnp.ones((3, 2)), rhs, jnp.array([1, 2]))
    Array([[2.],
           [4.],
           [4.]], dtype=float32)
    """
    if (aval_of(lhs).ndim, aval_of(rhs).ndim) != (2, 3):
        raise TypeError("ragged_dot: lhs must be a matrix (m, k) and rhs matrices (g, k, n), got shapes "
                        f"{aval_of(lhs).shape} and {aval_of(rhs).shape}")
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset,
                              out_sharding=out_sharding)


# --- products of blocks with scales ---------------------------------------------------------------

def scaled_dot(lhs, rhs, *, lhs_scale=None, rhs_scale=None, dimension_numbers=None,
               preferred_element_type=None):
    """dot_general of `lhs * lhs_scale` and `rhs * rhs_scale`.

    Args:
        lhs_scale: with the axes of `lhs`; along the contracted ones an element of it is for a block of 2 or
            more, and sizes divide.
        rhs_scale: the same for `rhs`.
        dimension_numbers: as in `dot_general`; for None a product of matrices, or of batches of them.
        preferred_element_type: the dtype it is computed in, bfloat16 for None.
    Raises:
        TypeError: where axes or sizes do not fit.

    >>> lax.scaled_dot(jnp.ones((2, 4)), jnp.ones((4, 3)), lhs_scale=jnp.full((2, 1), 2.)).shape
    (2, 3)
    """
    rank = aval_of(lhs).ndim
    given = {"lhs": lhs, "rhs": rhs, "lhs_scale": lhs_scale, "rhs_scale": rhs_scale}
    ranks = {name: aval_of(x).ndim for name, x in given.items() if x is not None}
    if set(ranks.values()) != {rank} or rank < 2:
        raise TypeError("scaled_dot: operands and scales must have the same rank, of 2 or more, got "
                        f"{', '.join(f'{name} of rank {n}' for name, n in ranks.items())}")
    if dimension_numbers is None:
        if rank > 3:
            raise TypeError(f"scaled_dot: dimension_numbers are needed for operands of rank {rank}, above 3")
        batch = tuple(range(rank - 2))
        dimension_numbers = (((rank - 1,), (rank - 2,)), (batch, batch))
    dtype = _preferred(preferred_element_type, "scaled_dot") or dtypes.bfloat16
    operands = [_scaled(name, x, scale, tuple(axes), dtype) for name, x, scale, axes in zip(
        ("lhs", "rhs"), (lhs, rhs), (lhs_scale, rhs_scale), dimension_numbers[0])]
    return dot_general(*operands, dimension_numbers, preferred_element_type=dtype)


def _scaled(name, x, scale, contracted, dtype):
    """`x` times its scale, in `dtype`; each element of it is repeated along the axes that are contracted."""
    if scale is None:
        return convert(x, dtype)
    shape, sizes = shape_of(x), shape_of(scale)
    for i, (n, m) in enumerate(zip(shape, sizes)):
        if i not in contracted and n != m:
            raise TypeError(f"scaled_dot: axis {i} of {name}, of size {n} (shape {shape}), does not fit its "
                            f"scale of shape {sizes}: only contracted axes have fewer scales than elements")
        if i in contracted and (not m or n % m or n < 2 * m):
            raise TypeError(f"scaled_dot: the contracted axis {i} of {name}, of size {n} (shape {shape}), "
                            f"must be several times, 2 or more, that of its scale of shape {sizes}")
    blocks = [part for i, (n, m) in enumerate(zip(shape, sizes))
              for part in ((m, n // m) if i in contracted else (m,))]
    places = [i + sum(j < i for j in contracted) for i in range(len(shape))]
    return mul(convert(x, dtype), reshape(broadcast_in_dim(convert(scale, dtype), blocks, places), shape))


# --- convolution ----------------------------------------------------------------------------------

def padtype_to_pads(in_shape, window_shape, window_strides, padding):
    """The (low, high) pads of each axis for 'SAME', 'SAME_LOWER' or 'VALID'.

    Raises:
        RuntimeError: for another string.

    >>> lax.padtype_to_pads((8, 8), (3, 2), (1, 2), "SAME")
    [(1, 1), (0, 0)]
    """
    kind = padding.upper() if isinstance(padding, str) else padding
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if kind not in ("SAME", "SAME_LOWER"):
        raise RuntimeError("Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got "
                           f"{padding}{did_you_mean(padding, ('VALID', 'SAME', 'SAME_LOWER'))}")
    totals = [max_dim(as_size((-(-n // stride) - 1) * stride + window - n), 0)
              for n, window, stride in zip(in_shape, window_shape, window_strides, strict=True)]
    return [(t // 2, t - t // 2) if kind == "SAME" else (t - t // 2, t // 2) for t in totals]


def conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers):
    """The ConvDimensionNumbers of a convolution.

    Args:
        dimension_numbers: None for (batch, feature, spatial...), strings such as ('NHWC', 'HWIO', 'NHWC'), or
            a ConvDimensionNumbers.
    Raises:
        TypeError: where the strings do not fit each other or the ranks.

    >>> lax.conv_dimension_numbers((1, 8, 8, 2), (3, 3, 2, 6), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return ConvDimensionNumbers(*map(tuple, dimension_numbers))
    ndim = len(lhs_shape)
    if len(rhs_shape) != ndim:
        batch = ": an image alone gets a batch axis by image[None]" if ndim + 1 == len(rhs_shape) else ""
        raise TypeError(f"convolution requires lhs and rhs ndim to be equal, got {ndim} and "
                        f"{len(rhs_shape)}: the image (lhs) has shape {tuple(lhs_shape)}, the kernel (rhs) "
                        f"{tuple(rhs_shape)}{batch}")
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(ndim))] * 3)
    if not isinstance(dimension_numbers, (list, tuple)):
        raise TypeError("convolution dimension_numbers must be a tuple of strings, ConvDimensionNumbers or "
                        f"None, got {type(dimension_numbers)}.")
    if len(dimension_numbers) != 3:
        raise TypeError("convolution dimension_numbers list/tuple must be length 3, got "
                        f"{len(dimension_numbers)}.")
    for i, (text, needed) in enumerate(zip(dimension_numbers, ("NC", "OI", "NC"))):
        if not isinstance(text, str) or len(text) != ndim:
            raise TypeError(f"convolution dimension_numbers[{i}] must have len equal to the ndim of lhs and "
                            f"rhs, got {text!r} for lhs and rhs shapes {tuple(lhs_shape)} and "
                            f"{tuple(rhs_shape)}.")
        if len(set(text)) != ndim:
            raise TypeError(f"convolution dimension_numbers[{i}] cannot have duplicate characters, got "
                            f"{text}.")
        if not set(needed) <= set(text):
            raise TypeError(f"convolution dimension_numbers[{i}] must contain {needed[0]!r} and "
                            f"{needed[1]!r}, got {text}.")
    lhs, rhs, out = dimension_numbers
    spatial = [c for c in rhs if c not in "OI"]
    if set(lhs) - set("NC") != set(spatial) or set(out) - set("NC") != set(spatial):
        raise TypeError("convolution dimension_numbers elements must each have the same set of spatial "
                        f"characters, got {tuple(dimension_numbers)}: such as ('NHWC', 'HWIO', 'NHWC')")
    return ConvDimensionNumbers(*(tuple(map(text.index, (*first, *spatial)))
                                  for text, first in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))))


def _pads(padding, name, sizes, windows, strides, rhs_dilation):
    if isinstance(padding, str):
        return tuple(padtype_to_pads(sizes, [dilated(k, d) for k, d in zip(windows, rhs_dilation)], strides,
                                     padding))
    try:
        return tuple((operator.index(low), operator.index(high)) for low, high in padding)
    except (TypeError, ValueError):
        raise ValueError(f"padding argument to {name} should be a string or a sequence of (low, high) pairs, "
                         f"got {padding}") from None


def conv_general_permutations(dimension_numbers):
    """The orders of axes that make ("NCHW", "OIHW", "NCHW") of strings such as ("NHWC", "HWIO", "NHWC").

    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    shape = (1,) * len(dimension_numbers[0])
    return tuple(conv_dimension_numbers(shape, shape, dimension_numbers))


def conv_shape_tuple(lhs_shape, rhs_shape, strides, pads, batch_group_count=1):
    """The shape of a convolution of (batch, feature, *spatial) with (out, in, *spatial).

    Args:
        strides: one for each spatial axis.
        pads: 'SAME', 'SAME_LOWER', 'VALID' or a (low, high) pair for each spatial axis.
        batch_group_count: the number of groups of the batch.
    Raises:
        TypeError: for another number of pads.
        ValueError: where `batch_group_count` does not divide the batch.

    >>> lax.conv_shape_tuple((4, 2, 8, 8), (6, 2, 3, 3), (1, 2), "SAME", 2)
    (2, 6, 8, 4)
    """
    space, window = lhs_shape[2:], rhs_shape[2:]
    if isinstance(pads, str):
        pads = padtype_to_pads(space, window, strides, pads) if len(space) == len(window) else ()
    if not len(space) == len(window) == len(pads):
        raise TypeError(f"conv_shape_tuple: {len(pads)} pads for lhs_shape {lhs_shape} and rhs_shape "
                        f"{rhs_shape}, of {len(space)} and {len(window)} spatial axes: give one pair for "
                        "each")
    if lhs_shape[0] % batch_group_count:
        raise ValueError(f"conv_shape_tuple: batch_group_count {batch_group_count} does not divide the batch "
                         f"{lhs_shape[0]}")
    sizes = [max(0, (n + low + high - k) // stride + 1)
             for n, k, stride, (low, high) in zip(space, window, strides, pads)]
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *sizes)


def conv_general_shape_tuple(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers):
    """`conv_shape_tuple` of shapes whose axes are ordered by `dimension_numbers`.

    >>> lax.conv_general_shape_tuple((1, 8, 8, 2), (3, 3, 2, 6), (1, 2), "VALID", ("NHWC", "HWIO", "NHWC"))
    (1, 6, 3, 6)
    """
    return _ordered_shape(lhs_shape, rhs_shape, dimension_numbers,
                          lambda x, k: conv_shape_tuple(x, k, window_strides, padding))


def conv_transpose_shape_tuple(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers):
    """The shape of a `conv_transpose`; `padding` is 'SAME', 'VALID' or the pairs of the dilated convolution.

    >>> lax.conv_transpose_shape_tuple((1, 8, 8, 2), (3, 3, 2, 5), (2, 2), "SAME", ("NHWC", "HWIO", "NHWC"))
    (1, 16, 16, 5)
    """
    def shape(x, k):
        pads = padding
        if isinstance(padding, str):
            pads = [_transpose_pads(window, stride, padding) for window, stride in zip(k[2:], window_strides)]
        wide = [dilated(n, stride) for n, stride in zip(x[2:], window_strides)]
        return conv_shape_tuple((*x[:2], *wide), k, (1,) * len(wide), pads)
    return _ordered_shape(lhs_shape, rhs_shape, dimension_numbers, shape)


def _ordered_shape(lhs_shape, rhs_shape, dimension_numbers, shape):
    lhs, rhs, out = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    found = shape(tuple(lhs_shape[i] for i in lhs), tuple(rhs_shape[i] for i in rhs))
    return tuple(found[out.index(i)] for i in range(len(out)))


def _dilation(dilation, rank, what):
    return (1,) * rank if dilation is None else _ints(dilation, what)


def conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation=None, rhs_dilation=None,
                         dimension_numbers=None, feature_group_count=1, batch_group_count=1, precision=None,
                         preferred_element_type=None, out_sharding=None):
    """Convolution (the kernel is not flipped) with strides, padding, dilations of both operands, and groups.

    Args:
        lhs: the input, (batch, feature, *spatial) unless `dimension_numbers` orders the axes otherwise.
        rhs: the kernel, (out feature, in feature / feature_group_count, *spatial).
        window_strides: one for each spatial axis.
        padding: 'SAME', 'SAME_LOWER', 'VALID' or a (low, high) pair for each spatial axis.
        lhs_dilation: the distance of the input's elements, one for each spatial axis or one for all; 1 for
            None.
        rhs_dilation: the same of the kernel's elements.
        dimension_numbers: the orders of axes, as in `conv_dimension_numbers`.
        feature_group_count: the number of groups of features, each convolved with its part of the kernel.
        batch_group_count: the number of groups of the batch.
        precision: a `Precision` or a pair of them.
        preferred_element_type: the dtype of the result; that of the operands for None.
    Returns:
        An array (batch, feature, *spatial).

    >>> image, kernel = jnp.ones((1, 8, 8, 3)), jnp.ones((3, 3, 3, 6))
    >>> orders = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_general_dilated(image, kernel, (2, 2), "SAME", dimension_numbers=orders).shape
    (1, 4, 4, 6)
    """
    name = "conv_general_dilated"
    numbers = conv_dimension_numbers(aval_of(lhs).shape, aval_of(rhs).shape, dimension_numbers)
    rank = ndim_of(lhs) - 2
    strides = _ints(window_strides, f"{name} window_strides")
    lhs_dilation, rhs_dilation = (
        (d,) * rank if isinstance(d, int) else _dilation(d, rank, f"{name} dilation")
        for d in (lhs_dilation, rhs_dilation))
    if isinstance(padding, str) and any(d != 1 for d in lhs_dilation):
        raise ValueError("String padding is not implemented for transposed convolution using this op. Please "
                         "either exactly specify the required padding or use conv_transpose.")
    sizes, windows = ([shape_of(x)[i] for i in spec[2:]]
                      for x, spec in ((lhs, numbers[0]), (rhs, numbers[1])))
    if len(strides) != rank:
        raise ValueError(f"{name} window and window_strides must have the same number of dimensions, but got "
                         f"{rank} and {len(strides)}: one for each of the {rank} spatial axes")
    if any(s < 1 for s in strides):
        raise ValueError(f"{name}: all window_strides must be positive, got {strides}")
    if out_sharding is not None:
        lhs, rhs = over_auto_axes(lhs, rhs)
    out = conv_general_dilated_p.bind(
        lhs, rhs, window_strides=strides, padding=_pads(padding, name, sizes, windows, strides, rhs_dilation),
        lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation, dimension_numbers=numbers,
        feature_group_count=operator.index(feature_group_count),
        batch_group_count=operator.index(batch_group_count),
        precision=canonical_precision(precision, algorithms=False),
        preferred_element_type=_preferred(preferred_element_type, name))
    return with_out_sharding(out, out_sharding, f"lax.{name}")


def conv(lhs, rhs, window_strides, padding, precision=None, preferred_element_type=None):
    """conv_general_dilated of (batch, feature, *spatial) and (out, in, *spatial) without dilation.

    >>> lax.conv(jnp.array([[[1., 2., 3., 4.]]]), jnp.array([[[1., 10.]]]), (1,), "VALID")
    Array([[[21., 32., 43.]]], dtype=float32)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_with_general_padding(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=None,
                              preferred_element_type=None):
    """conv_general_dilated of (batch, feature, *spatial) and (out, in, *spatial).

    >>> x, kernel = jnp.array([[[1., 2., 3.]]]), jnp.array([[[1., 10.]]])
    >>> lax.conv_with_general_padding(x, kernel, (1,), [(1, 0)], None, None)
    Array([[[10., 21., 32.]]], dtype=float32)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation,
                                precision=precision, preferred_element_type=preferred_element_type)


def _transpose_pads(window, stride, padding):
    """The pads with which a convolution dilated by `stride` undoes one with that stride and `padding`."""
    if padding == "SAME":
        total = window + stride - 2
        low = window - 1 if stride > window - 1 else -(-total // 2)
    elif padding == "VALID":
        total = window + stride - 2 + max(window - stride, 0)
        low = window - 1
    else:
        raise ValueError("conv_transpose: padding must be 'SAME', 'VALID' or a sequence of (low, high) "
                         f"pairs, got {padding!r}")
    return low, total - low


def conv_transpose(lhs, rhs, strides, padding, rhs_dilation=None, dimension_numbers=None,
                   transpose_kernel=False, precision=None, preferred_element_type=None,
                   use_consistent_padding=False):
    """Convolution with fractional strides, "deconvolution".

    Args:
        lhs: the input; without `dimension_numbers`, its axes are N, spatial, C.
        rhs: the kernel; without `dimension_numbers`, its axes are spatial, I, O.
        strides: one for each spatial axis.
        padding: 'SAME', 'VALID' or a (low, high) pair for each spatial axis, of the dilated convolution, or
            with `use_consistent_padding` of the convolution undone.
        rhs_dilation: the distance of the kernel's elements, one for each spatial axis; 1 for None.
        dimension_numbers: the orders of axes, as in `conv_dimension_numbers`.
        transpose_kernel: flip the kernel and exchange its features, which makes this the gradient of a
            convolution.
        precision: a `Precision` or a pair of them.
        preferred_element_type: the dtype of the result; that of the operands for None.
        use_consistent_padding: what explicit pads mean.

    >>> image, kernel = jnp.ones((1, 4, 4, 2)), jnp.ones((3, 3, 2, 5))
    >>> lax.conv_transpose(image, kernel, (2, 2), "SAME").shape
    (1, 8, 8, 5)
    """
    ndim = aval_of(lhs).ndim
    if dimension_numbers is None:
        if not 2 <= ndim <= 5:
            raise ValueError(f"No 4+ dimensional dimension_number defaults: conv_transpose of rank {ndim} "
                             "needs dimension_numbers")
        space = "HWD"[:ndim - 2]
        dimension_numbers = (f"N{space}C", f"{space}IO", f"N{space}C")
    numbers = conv_dimension_numbers(shape_of(lhs), aval_of(rhs).shape, dimension_numbers)
    spatial = numbers.rhs_spec[2:]
    rhs_dilation = _dilation(rhs_dilation, len(spatial), "conv_transpose rhs_dilation")
    windows = [dilated(shape_of(rhs)[i], d) for i, d in zip(spatial, rhs_dilation)]
    if isinstance(padding, str):
        padding = [_transpose_pads(k, s, padding) for k, s in zip(windows, strides)]
    elif use_consistent_padding:
        padding = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(windows, padding)]
    if transpose_kernel:
        rhs = rev_p.bind(rhs, dimensions=tuple(spatial))
        order = list(range(ndim))
        i, j = numbers.rhs_spec[:2]
        order[i], order[j] = j, i
        rhs = transpose(rhs, order)
    return conv_general_dilated(lhs, rhs, (1,) * len(spatial), padding, strides, rhs_dilation, numbers,
                                precision=precision, preferred_element_type=preferred_element_type)


def conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, lhs_dilation=None,
                                 rhs_dilation=None, dimension_numbers=None, precision=None,
                                 preferred_element_type=None):
    """The windows that a convolution sees, as features.

    The features of the result are channel by channel, each with its prod(filter_shape) values.

    >>> lax.conv_general_dilated_patches(jnp.arange(4.).reshape(1, 1, 4), (2,), (1,), "VALID")
    Array([[[0., 1., 2.],
            [1., 2., 3.]]], dtype=float32)
    """
    filter_shape = _ints(filter_shape, "conv_general_dilated_patches filter_shape")
    x = aval_of(lhs)
    numbers = conv_dimension_numbers(x.shape, (1, 1, *filter_shape), dimension_numbers)
    channels, window = x.shape[numbers.lhs_spec[1]], prod(filter_shape)
    one_hot = np.tile(np.eye(window, dtype=x.dtype).reshape(window, 1, *filter_shape),
                      (channels, 1, *[1] * len(filter_shape)))
    rhs = np.transpose(one_hot, np.argsort(numbers.rhs_spec))
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, numbers,
                                feature_group_count=channels, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_general_dilated_local(lhs, rhs, window_strides, padding, filter_shape, lhs_dilation=None,
                               rhs_dilation=None, dimension_numbers=None, precision=None):
    """Convolution with a kernel of its own at each place.

    The arguments are those of `conv_general_dilated`, but for these.

    Args:
        rhs: (out feature, in feature * prod(filter_shape), *spatial of the result), ordered by
            `dimension_numbers`.

    >>> x, kernel = jnp.array([[[1., 2., 3.]]]), jnp.array([[[1., 0.], [10., 1.]]])
    >>> lax.conv_general_dilated_local(x, kernel, (1,), "VALID", (2,))
    Array([[[21.,  3.]]], dtype=float32)
    """
    if aval_of(lhs).ndim < 2 or aval_of(rhs).ndim != aval_of(lhs).ndim:
        raise TypeError("conv_general_dilated_local: lhs and rhs must have equal ranks, of two or more, got "
                        f"shapes {aval_of(lhs).shape} and {aval_of(rhs).shape}")
    numbers = conv_dimension_numbers(aval_of(lhs).shape, aval_of(rhs).shape, dimension_numbers)
    patches = conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, lhs_dilation,
                                           rhs_dilation, numbers, precision)

    def letters(first, spec):
        names = dict(zip(spec, first + "abcdefgh"))
        return "".join(names[i] for i in range(len(spec)))
    return contract(patches, letters("NI", numbers.out_spec), rhs, letters("OI", numbers.rhs_spec),
                    letters("NO", numbers.out_spec), canonical_precision(precision))


__all__ = ["ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "DotAlgorithm", "DotAlgorithmPreset",
           "DotDimensionNumbers", "Precision", "PrecisionLike", "RaggedDotDimensionNumbers", "batch_matmul",
           "conv", "conv_dimension_numbers", "conv_general_dilated", "conv_general_dilated_local",
           "conv_general_dilated_patches", "conv_general_permutations", "conv_general_shape_tuple",
           "conv_shape_tuple", "conv_transpose", "conv_transpose_shape_tuple", "conv_with_general_padding",
           "dot", "dot_general", "padtype_to_pads", "ragged_dot", "ragged_dot_general", "scaled_dot"]
