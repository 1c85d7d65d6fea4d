"""What positions mean: modes, dimension numbers of gathers and scatters, and their checks."""
from __future__ import annotations

import enum
import typing
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...core.symbolic.dimension import is_constant_shape, min_dim
from ..common import dtypes, np, scalar
from .shape import reshape
from .slicing import concatenate_p

if TYPE_CHECKING:
    from ...core.avals import ShapedArray


class GatherScatterMode(enum.Enum):
    """What happens to windows that stick out of the operand.

    CLIP moves them inside.  FILL_OR_DROP reads a fill value, or writes nothing.  PROMISE_IN_BOUNDS says that
    there are none.  ONE_HOT is accepted and means PROMISE_IN_BOUNDS.
    """
    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(mode: Any) -> GatherScatterMode:
        """A mode from itself, its name, or None (FILL_OR_DROP).

        Raises:
            ValueError: for another string.
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        try:
            return _MODES[mode]
        except (KeyError, TypeError):
            names = ", ".join(repr(m) for m in _MODES if m)
            raise ValueError(f"Unknown gather mode {mode!r}: choose one of {names}") from None


CLIP, FILL, PROMISE = (GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP,
                       GatherScatterMode.PROMISE_IN_BOUNDS)
_MODES = {None: FILL, "clip": CLIP, "fill": FILL, "drop": FILL, "promise_in_bounds": PROMISE,
          "one_hot": GatherScatterMode.ONE_HOT}


class GatherDimensionNumbers(typing.NamedTuple):
    """Which axes mean what in a gather; see `lax.gather`."""
    offset_dims: tuple
    collapsed_slice_dims: tuple
    start_index_map: tuple
    operand_batching_dims: tuple = ()
    start_indices_batching_dims: tuple = ()


class ScatterDimensionNumbers(typing.NamedTuple):
    """Which axes mean what in a scatter; see `lax.scatter`."""
    update_window_dims: tuple
    inserted_window_dims: tuple
    scatter_dims_to_operand_dims: tuple
    operand_batching_dims: tuple = ()
    scatter_indices_batching_dims: tuple = ()


def window_sizes(dnums: ScatterDimensionNumbers, x_shape: Sequence[Any],
                 updates_shape: Sequence[Any]) -> tuple[Any, ...]:
    """The size of the window along each axis of the operand."""
    window = iter(dnums.update_window_dims)
    return tuple(min_dim(n, 1) if d in dnums.inserted_window_dims or d in dnums.operand_batching_dims
                 else updates_shape[next(window)] for d, n in enumerate(x_shape))


def shift(dims: Iterable[int], by: int = 1) -> tuple[int, ...]:
    return tuple(d + by for d in dims)


def check_dims(op: str, what: str, dims: Sequence[int], bound: int, increasing: bool = True) -> None:
    """Are `dims` distinct (and increasing) numbers below `bound`?  TypeError if they are not."""
    _check_distinct(op, what, dims, increasing)
    for d in dims:
        if not 0 <= d < bound:
            raise TypeError(f"Invalid {what} set in {op} op; valid range is [0, {bound}); got: {d}.")


def check_offsets(dims: Sequence[int], bound: int) -> None:
    """`check_dims` of the axes of a gather's result along which windows lie."""
    _check_distinct("gather", "offset_dims", dims, True)
    for i, d in enumerate(dims):
        if not 0 <= d < bound:
            raise TypeError(f"Offset dimension {i} in gather op is out of bounds; got {d}, but should have "
                            f"been in [0, {bound})")


def check_map(op: str, what: str, dims: Sequence[int], bound: int) -> None:
    """`check_dims` of the axes that index vectors count along."""
    for i, d in enumerate(dims):
        if not 0 <= d < bound:
            mapping = "" if op == "gather" else " mapping"
            raise TypeError(f"Invalid {what}{mapping}; domain is [0, {bound}), got: {i}->{d}.")
    _check_distinct(op, what, dims, False)


def _check_distinct(op: str, what: str, dims: Sequence[int], increasing: bool) -> None:
    if increasing and list(dims) != sorted(dims):
        raise TypeError(f"{what} in {op} op must be sorted; got {dims}")
    if len(set(dims)) != len(dims):
        raise TypeError(f"{what} in {op} op must not repeat; got: {dims}.")


def check_index_vectors(op: str, indices: ShapedArray, index_map: Sequence[int], map_name: str) -> None:
    """Has `indices`, along its last axis, one integer for each entry of `index_map`?  Else a TypeError."""
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"{op}: indices must have an integer type, got {indices.str_short()}: convert them "
                        "with .astype(int)")
    if indices.ndim == 0:
        raise TypeError(f"{op.capitalize()} index leaf dimension must be within [0, rank(indices) + 1). "
                        f"rank(indices) is 0 and {op} index leaf dimension is -1.")
    if indices.shape[-1] != len(index_map):
        raise TypeError(f"{op.capitalize()} op has {len(index_map)} elements in {map_name} and the bound of "
                        f"dimension index_vector_dim={indices.ndim - 1} of indices is {indices.shape[-1]}. "
                        "These two numbers must be equal.")


def check_batching_dims(op: str, x: ShapedArray, indices: ShapedArray, operand_dims: Sequence[int],
                        index_dims: Sequence[int], index_name: str, **others: Sequence[int]) -> None:
    """Do batching dims of operand and indices pair up with equal sizes, and are none among the `others`?
    TypeError if they do not."""
    check_dims(op, "operand_batching_dims", operand_dims, x.ndim)
    for name, dims in others.items():
        if not set(dims).isdisjoint(operand_dims):
            raise TypeError(f"{name} and operand_batching_dims in {op} op must be disjoint; got: {dims} and "
                            f"{operand_dims}.")
    check_dims(op, index_name, index_dims, indices.ndim, increasing=False)
    name = op.capitalize()
    if indices.ndim - 1 in index_dims:
        raise TypeError(f"{name} op cannot have the index vector dimension as a batching dimension; got "
                        f"{index_dims}.")
    if len(operand_dims) != len(index_dims):
        raise TypeError(f"{name} op requires equal numbers of operand_batching_dims and {index_name}, got "
                        f"{operand_dims} and {index_dims}.")
    sizes, index_sizes = [tuple([a.shape[d] for d in dims])
                          for a, dims in ((x, operand_dims), (indices, index_dims))]
    if sizes != index_sizes:
        raise TypeError(f"{name} op requires operand batching dimensions and indices batching dimensions to "
                        f"have the same shape, got {sizes} and {index_sizes}.")


def last_starts(shape: Sequence[Any], window_sizes: Sequence[Any], index_map: Sequence[int],
                dtype: Any) -> Any:
    """The greatest index vector at which a window is inside of `shape`, in the dtype of the indices."""
    limit, starts = dtypes.iinfo(dtype).max, [shape[d] - window_sizes[d] for d in index_map]
    if is_constant_shape(starts):
        return np.array([min(start, limit) for start in starts], dtype)
    return concatenate_p.bind(*(reshape(scalar(start, dtype), (1,)) for start in starts), dimension=0)
