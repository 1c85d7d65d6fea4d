"""Masks of attention that kernels compute block by block: `mask[rows, columns]` is a part, of NumPy."""
import numpy as np

__all__ = ["CausalMask", "ChunkedCausalMask", "FullMask", "LocalMask", "LogicalAnd", "LogicalOr", "Mask",
           "MultiHeadMask", "NumpyMask", "make_causal_mask", "make_chunk_attention_mask",
           "make_local_attention_mask", "make_random_mask"]


class Mask:
    """Which queries, rows, see which keys, columns."""

    @property
    def shape(self):
        """(queries, keys), with the number of heads in front where there are several."""
        raise NotImplementedError(f"{type(self).__name__}.shape: a mask of one's own says it")

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__}[index]: a mask of one's own gives its parts")

    def __and__(self, other):
        return LogicalAnd(self, other)

    def __or__(self, other):
        return LogicalOr(self, other)

    def _key(self):
        return type(self), *(v.tobytes() if isinstance(v, np.ndarray) else v for v in vars(self).values())

    def __eq__(self, other):
        return isinstance(other, Mask) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())


class _ComputableMask(Mask):       # JAX's name: libraries derive masks of their own from it
    """A mask that a function of the numbers of queries and keys gives."""

    def __init__(self, shape, mask_function=None, shard_count=1):
        if shape[0] % shard_count:
            raise ValueError(f"{type(self).__name__}: {shape[0]} queries cannot be divided into "
                             f"{shard_count} shards of one size")
        self._shape, self.shard_count = tuple(shape), shard_count
        if mask_function is not None:
            self._sees = mask_function

    shape = property(lambda self: self._shape)
    q_sequence = property(lambda self: np.arange(self._shape[0], dtype=np.int32))

    def __getitem__(self, index):
        if not isinstance(index, tuple) or len(index) != 2:
            raise NotImplementedError(f"{type(self).__name__}[{index}]: give the rows and the columns")
        rows, columns = (np.arange(size)[part] for size, part in zip(self._shape, index))
        return self._sees(rows[..., None], columns[(None,) * rows.ndim])


class CausalMask(_ComputableMask):
    """A query sees the keys up to its own, or `offset` more.

    >>> from hlotrace.experimental.pallas.ops.tpu.splash_attention import CausalMask
    >>> CausalMask((4, 4))[:2, :]
    array([[ True, False, False, False],
           [ True,  True, False, False]])
    """

    def __init__(self, shape, offset=0, shard_count=1):
        super().__init__(shape, None, shard_count)
        self.offset = offset

    def _sees(self, query, key):
        return query + self.offset >= key


class ChunkedCausalMask(_ComputableMask):
    """A query sees the keys up to its own in its chunk.  ValueError for chunks of no positive size."""

    def __init__(self, shape, chunk_size, shard_count=1):
        if chunk_size <= 0:
            raise ValueError(f"chunk_size must be positive, got {chunk_size}")
        super().__init__(shape, None, shard_count)
        self.chunk_size = chunk_size

    def _sees(self, query, key):
        return (query // self.chunk_size == key // self.chunk_size) & (query >= key)


class LocalMask(_ComputableMask):
    """A query, moved by `offset`, sees the keys so far to its left and right; None is any distance."""

    def __init__(self, shape, window_size, offset, shard_count=1):
        super().__init__(shape, None, shard_count)
        self.window_size, self.offset = tuple(window_size), offset

    def _sees(self, query, key):
        left, right = self.window_size
        seen = np.ones(np.broadcast_shapes(query.shape, key.shape), bool)
        if left is not None:
            seen &= query + self.offset - left <= key
        if right is not None:
            seen &= query + self.offset + right >= key
        return seen


class FullMask(_ComputableMask):
    """Every query sees every key."""

    def __init__(self, _shape):
        super().__init__(_shape)

    def _sees(self, query, key):
        return np.ones(np.broadcast_shapes(query.shape, key.shape), bool)


class NumpyMask(Mask):
    """A mask that is there as an array of bools, of two dimensions.  ValueError for another."""

    def __init__(self, array):
        if array.ndim != 2 or array.dtype != np.bool_:
            raise ValueError(f"NumpyMask: a mask has 2 dimensions and dtype bool, not {array.ndim} and "
                             f"{array.dtype}")
        self.array = array

    shape = property(lambda self: self.array.shape)

    def __getitem__(self, index):
        return self.array[index]


class _Both(Mask):
    def __init__(self, left, right):
        if left.shape != right.shape:
            raise ValueError(f"{type(self).__name__}: masks of shapes {left.shape} and {right.shape}; they "
                             "must be equal")
        self.left, self.right = left, right

    shape = property(lambda self: self.left.shape)


class LogicalAnd(_Both):
    """What both masks show."""

    def __getitem__(self, index):
        return self.left[index] & self.right[index]


class LogicalOr(_Both):
    """What one of two masks shows."""

    def __getitem__(self, index):
        return self.left[index] | self.right[index]


class MultiHeadMask(Mask):
    """A mask for each head.  ValueError unless their shapes are equal."""

    def __init__(self, masks):
        if not masks or len({mask.shape for mask in masks}) > 1:
            raise ValueError(f"MultiHeadMask: masks of one shape, not of {[mask.shape for mask in masks]}")
        if any(isinstance(mask, MultiHeadMask) for mask in masks):
            raise ValueError("MultiHeadMask: its masks are each of one head")
        self.masks = tuple(masks)

    shape = property(lambda self: (len(self.masks), *self.masks[0].shape))

    def __getitem__(self, index):
        if not isinstance(index, tuple) or len(index) != 3:
            raise NotImplementedError(f"MultiHeadMask[{index}]: give the heads, the rows and the columns")
        head, *rest = index
        found, part = self.masks[head], tuple(rest)
        return np.stack([mask[part] for mask in found]) if isinstance(head, slice) else found[part]


def make_causal_mask(shape, offset=0):
    """The array of a CausalMask."""
    return CausalMask(shape, offset)[:, :]


def make_local_attention_mask(shape, window_size, *, offset=0):
    """The array of a LocalMask."""
    return LocalMask(shape, window_size, offset)[:, :]


def make_chunk_attention_mask(shape, chunk_size):
    """The array of a ChunkedCausalMask."""
    return ChunkedCausalMask(shape, chunk_size)[:, :]


def make_random_mask(shape, sparsity, seed):
    """An array of bools, of which the share `sparsity` is False, drawn by NumPy from a seed."""
    return np.random.default_rng(seed).binomial(1, 1 - sparsity, shape).astype(bool)
