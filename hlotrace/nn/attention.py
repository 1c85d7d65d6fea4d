"""Scaled dot-product attention, as plain products and a softmax that XLA fuses."""
from .. import numpy as jnp
from ..api.composite import composite
from ..core import dtypes
from ..core.avals import aval_of
from ..core.errors import ShapeError, check_choice
from ..numpy.util import at_least_float32, check_arraylike, promotes
from ..primitives.common import np
from .functions import logsumexp, softmax

# Times the largest float: far below any logit, yet a row that is masked as a whole gives a mean, not nan.
_MASKED = -0.7


def _check_shape(name, x, shape, axes=("batch", "length", "heads", "head size")):
    if len(x.shape) != len(shape) or any(n not in (None, m) for n, m in zip(shape, x.shape)):
        wanted = ", ".join(letter if n is None else str(n) for n, letter in zip(shape, axes))
        raise ValueError(f"{name} shape must be ({', '.join(axes)}) = ({wanted}), but is {x.shape}")


def _lengths(name, lengths, batch):
    if lengths is None:
        return None
    lengths = jnp.asarray(lengths)
    if lengths.dtype != dtypes.int32:
        raise ValueError(f"{name} dtype should be int32, but got {lengths.dtype}")
    _check_shape(name, lengths, (batch,), ("batch",))
    return lengths[:, None, None, None]


def _check(query, key, value, bias, mask):
    """ValueError unless the shapes fit.

    They are (B, T, N, H), (B, S, K, H), (B, S, K, H) and what broadcasts to (B, N, T, S).
    """
    _check_shape("query", query, (None,) * 4)
    batch, target, heads, width = query.shape
    _check_shape("key", key, (batch, None, None, width))
    source, key_heads = key.shape[1:3]
    _check_shape("value", value, (batch, source, key_heads, width))
    if not key.dtype == value.dtype == query.dtype:
        raise ValueError(f"query, key and value should have the same dtype, but got {query.dtype}, "
                         f"{key.dtype} and {value.dtype}; cast with .astype(dtype)")
    if heads % key_heads:
        raise ValueError(f"The number of query heads must be a multiple of key/value heads, but got {heads} "
                         f"vs {key_heads}: axis 2 of query {query.shape} and of key {key.shape}")
    if mask is not None and aval_of(mask).dtype != dtypes.bool_:
        raise ValueError(f"mask dtype should be bool, but got {mask.dtype}: compare it, as in mask > 0, or "
                         "pass it as bias, which is added")
    shape = batch, heads, target, source
    for name, x in (("bias", bias), ("mask", mask)):
        if x is not None and x.ndim > 4:
            raise ValueError(f"{name} ndim should be 4 at most, but got {x.ndim}: (batch, heads, target, "
                             f"source) = {shape}")
        if x is not None and any(n not in (1, m) for n, m in zip(x.shape, shape)):
            raise ShapeError(f"{name} of shape {x.shape} should broadcast to (batch, heads, target, source) "
                             f"= {shape}")


def _logits(query, key, scale, bias):
    """query key^T * scale + bias, (B, N, T, S), float32 at least."""
    batch, target, heads, width = query.shape
    source, key_heads = key.shape[1:3]
    wide = at_least_float32(query.dtype)
    grouped = query.reshape(batch, target, key_heads, heads // key_heads, width)
    logits = jnp.einsum("btkgh,bskh->bkgts", grouped, key, preferred_element_type=wide)
    logits = logits.reshape(batch, heads, target, source) * (width ** -0.5 if scale is None else scale)
    return logits if bias is None else logits + bias.astype(wide)


def _masks(target, source, mask, is_causal, window, query_lengths, source_lengths):
    """Who may attend to whom: masks that broadcast to (B, N, T, S), all of which must hold."""
    rows, columns = jnp.arange(target).reshape(1, 1, target, 1), jnp.arange(source)
    parts = [columns <= rows] if is_causal else []
    if window is not None:
        left, right = window
        parts += [columns >= rows - left, columns <= rows + right]
    parts += [] if mask is None else [mask]
    parts += [] if query_lengths is None else [rows < query_lengths]
    parts += [] if source_lengths is None else [columns < source_lengths]
    return parts


def _window(size):
    """How far from a query keys are attended to: (left, right), or None."""
    pair = size if isinstance(size, (tuple, list)) or size is None else (size,) * 2
    if pair is not None and len(pair) != 2:
        raise ValueError(f"local_window_size must be an int or a pair (left, right), got {size!r}")
    return pair


def _weighted(logits, value):
    """softmax(logits) value, (B, T, N, H), from (B, N, T, S) and (B, S, K, H)."""
    batch, heads, target, source = logits.shape
    key_heads, width = value.shape[2:]
    weights = softmax(logits).astype(value.dtype).reshape(batch, key_heads, heads // key_heads, target,
                                                          source)
    return jnp.einsum("bkgts,bskh->btkgh", weights, value).reshape(batch, target, heads, width)


@composite(static=("scale", "is_causal", "local_window_size", "return_residual", "implementation"))
@promotes("query", "key", "value", "bias")
def dot_product_attention(query, key, value, bias=None, mask=None, *, scale=None, is_causal=False,
                          query_seq_lengths=None, key_value_seq_lengths=None, local_window_size=None,
                          implementation=None, return_residual=False):
    """softmax(query key^T * scale + bias) value for each head.

    The logits and the softmax are float32 at least.

    Args:
        query: (B, T, N, H); the batch axis may be left out, here and below.
        key: (B, S, K, H) with N a multiple of K: query heads share key heads.
        value: (B, S, K, H).
        bias: broadcasts to (B, N, T, S).
        mask: broadcasts to (B, N, T, S); True means attend.
        scale: a number, 1 / sqrt(H) by default.
        is_causal: a query attends to the keys up to its own position.
        query_seq_lengths: int32 of shape (B,).
        key_value_seq_lengths: int32 of shape (B,).
        local_window_size: (left, right) or one int, how far from a query keys are attended to.
        implementation: None or "xla"; "cudnn" for NVIDIA's fused kernels, in programs for their GPUs, of
            float16 and bfloat16 and head sizes of at most 128.
        return_residual: return also the logsumexp of the logits, (B, T, N).
    Raises:
        ValueError: where shapes or dtypes do not fit.

    >>> q, k, v = jax.random.normal(jax.random.key(0), (3, 2, 5, 4, 8))     # 2 sequences of 5, 4 heads of 8
    >>> out = nn.dot_product_attention(q, k, v, is_causal=True)
    >>> out.shape, jnp.allclose(out[:, 0], v[:, 0])                         # the first sees itself alone
    ((2, 5, 4, 8), Array(True, dtype=bool))
    >>> nn.dot_product_attention(q, k[:, :, :2], v[:, :, :2]).shape         # two heads share a key
    (2, 5, 4, 8)
    """
    check_choice("implementation", implementation, (None, "xla", "cudnn"))
    check_arraylike("dot_product_attention", query, key, value)
    query, key, value = map(jnp.asarray, (query, key, value))
    if not query.ndim == key.ndim == value.ndim:
        raise ValueError("query, key and value must have the same number of axes, (batch, length, heads, "
                         f"head size) or all of these but the first, got shapes {query.shape}, {key.shape} "
                         f"and {value.shape}")
    batched = query.ndim == 4
    if not batched:
        query, key, value = (x[None] for x in (query, key, value))
    bias, mask = (x if x is None or x.ndim > 3 else x.reshape((1,) * (4 - x.ndim) + x.shape)
                  for x in (bias, mask))
    _check(query, key, value, bias, mask)
    batch, target, source = *query.shape[:2], key.shape[1]
    query_lengths = _lengths("query_seq_lengths", query_seq_lengths, batch)
    source_lengths = _lengths("key_value_seq_lengths", key_value_seq_lengths, batch)

    window = _window(local_window_size)

    def plain(query, key, value, bias, mask=None, with_sums=True):
        logits = _logits(query, key, scale, bias)
        for allowed in _masks(target, source, mask, is_causal, window, query_lengths, source_lengths):
            logits = jnp.where(allowed, logits, _MASKED * float(dtypes.finfo(logits.dtype).max))
        out = _weighted(logits, value)
        if query_lengths is not None:
            out = jnp.where(np.arange(target)[None, :, None, None] < query_lengths, out, 0)
        sums = jnp.transpose(logsumexp(logits, -1), (0, 2, 1)).astype(key.dtype) if with_sums else None
        return out, sums
    if implementation == "cudnn":
        from . import cudnn_attention  # few programs ask for it
        lengths = [] if query_lengths is source_lengths is None else [
            jnp.full(batch, length, dtypes.int32) if found is None else found.reshape(batch)
            for found, length in ((query_lengths, target), (source_lengths, source))]
        found = cudnn_attention.attention(query, key, value, bias, mask, scale=scale, is_causal=is_causal,
                                          lengths=lengths, window=window, plain=plain,
                                          with_sums=return_residual)
    else:
        found = plain(query, key, value, bias, mask, return_residual)
    out, residual = (x if batched or x is None else x[0] for x in found)
    return (out, residual) if return_residual else out
