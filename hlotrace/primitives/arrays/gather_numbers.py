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


def check_dims(name: str, what: str, dims: Sequence[int], bound: int, increasing: bool = True) -> None:
    """Are `dims` distinct (and increasing) numbers below `bound`?

    Raises:
        TypeError: if they are not.
    """
    if any(not 0 <= d < bound for d in dims):
        raise TypeError(f"{name}: {what} {dims} must be axes in the range [0, {bound})")
    if len(set(dims)) != len(dims) or increasing and list(dims) != sorted(dims):
        raise TypeError(f"{name}: {what} {dims} must be distinct" + (" and increasing" if increasing else ""))


def check_index_vectors(name: str, indices: ShapedArray, index_map: Sequence[int], map_name: str) -> None:
    """Has `indices`, along its last axis, one integer for each entry of `index_map`?

    Raises:
        TypeError: if it has not.
    """
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"{name}: indices must have an integer type, got {indices.str_short()}: convert them "
                        "with .astype(int)")
    if indices.ndim == 0 or indices.shape[-1] != len(index_map):
        raise TypeError(f"{name}: the last axis of the indices, of shape {indices.shape}, must have one "
                        f"entry for each of the {len(index_map)} dimensions in {map_name} {index_map}")


def check_batching_dims(name: str, x: ShapedArray, indices: ShapedArray, operand_dims: Sequence[int],
                        index_dims: Sequence[int], index_name: str) -> None:
    """Do batching dims of operand and indices pair up with equal sizes?

    Raises:
        TypeError: if they do not.
    """
    check_dims(name, index_name, index_dims, indices.ndim - 1, increasing=False)
    sizes, index_sizes = [x.shape[d] for d in operand_dims], [indices.shape[d] for d in index_dims]
    if sizes != index_sizes:
        raise TypeError(f"{name}: operand_batching_dims {operand_dims} of the operand of shape {x.shape} and "
                        f"{index_name} {index_dims} of the indices of shape {indices.shape} must have equal "
                        f"sizes, got {sizes} and {index_sizes}")


def last_starts(shape: Sequence[Any], window_sizes: Sequence[Any], index_map: Sequence[int],
                dtype: Any) -> Any:
    """The greatest index vector at which a window is inside of `shape`, in the dtype of the indices."""
    limit, starts = dtypes.iinfo(dtype).max, [shape[d] - window_sizes[d] for d in index_map]
    if is_constant_shape(starts):
        return np.array([min(start, limit) for start in starts], dtype)
    return concatenate_p.bind(*(reshape(scalar(start, dtype), (1,)) for start in starts), dimension=0)
