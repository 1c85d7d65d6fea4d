"""Products: dot_general and its kin."""
import operator
from typing import NamedTuple

from ..core import dtypes
from ..core.avals import aval_of
from ..placement.out_sharding import over_auto_axes, unreduced_axes, with_out_sharding
from ..primitives.arrays.contract import contract, dot_general_p, labels, unreduced_dot
from ..primitives.arrays.elementwise import and_p, convert, ge, lt, mul, select, sub
from ..primitives.arrays.precision import DotAlgorithm, DotAlgorithmPreset, Precision, canonical_precision
from ..primitives.arrays.shape import broadcast_in_dim, reshape, transpose
from ..primitives.arrays.slicing import iota_p
from ..primitives.common import ndim_of, np, shape_of

PrecisionLike = (None | str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm
                 | DotAlgorithmPreset)
DotDimensionNumbers = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


def preferred(dtype, name):
    return None if dtype is None else dtypes.check_user_dtype(dtype, name)


def ints(values, what):
    try:
        return tuple(operator.index(v) for v in values)
    except TypeError:
        raise TypeError(f"{what} must be a sequence of ints, one for each axis, got {values!r}") from None


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
    groups = tuple(ints(g, "dot_general dimension_numbers") for g in (lhs_contract, rhs_contract, lhs_batch,
                                                                      rhs_batch))
    aval_of(lhs), aval_of(rhs)
    params = dict(dimension_numbers=(groups[:2], groups[2:]), precision=canonical_precision(precision),
                  preferred_element_type=preferred(preferred_element_type, "dot_general"))
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
    numbers = tuple(tuple(ints(axes, "ragged_dot dimension numbers") for axes in pair) for pair in numbers)
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
                       preferred(preferred_element_type, "ragged_dot"))
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
                  broadcast_in_dim(x, shape, tuple(range(1, len(shape)))), 0)


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
    dtype = preferred(preferred_element_type, "scaled_dot") or dtypes.bfloat16
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


__all__ = ["DotAlgorithm", "DotAlgorithmPreset", "DotDimensionNumbers", "Precision", "PrecisionLike",
           "RaggedDotDimensionNumbers", "batch_matmul", "dot", "dot_general", "ragged_dot",
           "ragged_dot_general", "scaled_dot"]
