"""What is said of a kernel beside its function: its grid, the blocks of its operands, its memory."""
import dataclasses
import enum
from collections.abc import Callable
from typing import Any, NamedTuple

from ...core import dtypes

__all__ = ["ANY", "BlockDim", "HOST", "BlockSpec", "Blocked", "BoundedSlice", "Buffered", "CostEstimate",
           "Element", "GridSpec", "Indirect", "MemoryRef", "MemorySpace", "RevisitMode", "Squeezed",
           "no_block_spec", "squeezed"]


class Memory(enum.Enum):
    """A kind of memory: called, it is scratch there."""

    def __str__(self):
        return self.value

    def __call__(self, shape, dtype):
        return MemoryRef(tuple(shape), dtypes.as_dtype(dtype), self)


class MemorySpace(Memory):
    """A kind of memory of which every device has some.  `ANY((8, 128), jnp.float32)` is scratch there."""
    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"


ANY, HOST = MemorySpace.ANY, MemorySpace.HOST


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """Scratch of a kernel: its shape, dtype and kind of memory."""
    shape: tuple[int, ...]
    dtype: Any
    memory_space: Any


@dataclasses.dataclass(frozen=True)
class Blocked:
    """A dimension of which a kernel has blocks; the index map counts these."""
    block_size: int


@dataclasses.dataclass(frozen=True)
class Element:
    """A dimension of which a kernel has windows; the index map counts elements."""
    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """A dimension of which a kernel has up to so many elements; the index map gives a slice."""
    block_size: int


@dataclasses.dataclass(frozen=True)
class Indirect:
    """A dimension of which a kernel has so many elements; the index map gives their indices."""
    block_size: int


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """A dimension of which a kernel has one element and which its block does not have: None is the same."""


squeezed = Squeezed()
BlockDim = Element | Squeezed | Blocked | BoundedSlice | Indirect


class RevisitMode(enum.Enum):
    """When a block of a result may be written again."""
    IMMEDIATE = "immediate"
    ANY = "any"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """How many blocks of an operand are in memory at a time."""
    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


class NoBlockSpec:
    """No BlockSpec is given: a kernel has the whole array."""

    def __repr__(self):
        return "NoBlockSpec"


no_block_spec = NoBlockSpec()


@dataclasses.dataclass
class BlockSpec:
    """The block of an operand or a result that a kernel has at a place of the grid.

    `block_shape` has for each dimension an int, the size of blocks; None for one element without the
    dimension; or one of the classes above.  None in its place is the whole array.  `index_map` goes from the
    place in the grid to the index of the block.  `pipeline_mode` says how many blocks are in memory at a
    time, `memory_space` in what memory.

    >>> from hlotrace.experimental import pallas as pl
    >>> pl.BlockSpec((8, 128), lambda i, j: (i, j)).block_shape
    (8, 128)
    """
    block_shape: Any = None
    index_map: Callable[..., Any] | None = None
    pipeline_mode: Buffered | None = None
    _: dataclasses.KW_ONLY
    memory_space: Any = None

    def __post_init__(self):
        if callable(self.block_shape) or self.index_map is not None and not callable(self.index_map):
            raise TypeError(f"BlockSpec(block_shape, index_map): a shape and a function, not "
                            f"{self.block_shape!r:.60} and {self.index_map!r:.60}")
        if self.block_shape is not None:
            self.block_shape = tuple(self.block_shape)

    def replace(self, **changes):
        """The same but for what is given."""
        return dataclasses.replace(self, **changes)


class GridSpec:
    """A grid, and the blocks that a kernel has at its places.

    Args:
        grid: sizes; an int is one size.
        in_specs: a pytree of BlockSpecs, as the operands.
        out_specs: one as the results.
        scratch_shapes: memory that a kernel has besides.

    >>> from hlotrace.experimental import pallas as pl
    >>> pl.GridSpec(3).grid, pl.GridSpec((2, 3)).grid
    ((3,), (2, 3))
    """

    def __init__(self, grid=(), in_specs=no_block_spec, out_specs=no_block_spec, scratch_shapes=()):
        self.grid = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        # lists are tuples, as operands are: Qwix maps over both
        self.in_specs, self.out_specs, self.scratch_shapes = [
            tuple(x) if isinstance(x, list) else x for x in (in_specs, out_specs, scratch_shapes)]

    def __repr__(self):
        inner = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({inner})"


class CostEstimate(NamedTuple):
    """What a kernel costs, for the compiler."""
    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0
