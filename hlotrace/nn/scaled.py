"""Products of arrays that are rounded to narrow floats, with a scale for each block of a contracted axis.

The formats are those of the OCP Microscaling Formats (MX) Specification 1.0 (2023), whose scales are powers
of two, and nvfp4, whose scales are float8 beside one number for the whole array.
"""
import dataclasses
from typing import Any

from .. import lax, numpy as jnp
from ..api.custom_derivatives import custom_vjp
from ..core.errors import check_choice
from ..primitives.common import prod


@dataclasses.dataclass(frozen=True, eq=False)
class BlockScaleConfig:
    """How an array is rounded: to `data_type`, in blocks of `block_size` with a scale of `scale_type`."""
    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any = None
    infer_only: bool = False


_MODES = {"nvfp4": (16, jnp.float4_e2m1fn, jnp.float8_e4m3fn),
          "mxfp8": (32, jnp.float8_e4m3fn, jnp.float8_e8m0fnu),
          "mxfp4": (32, jnp.float4_e2m1fn, jnp.float8_e8m0fnu)}

_LARGEST = 6.0 * 448.0      # of float4_e2m1fn times that of float8_e4m3fn


def get_scaled_dot_general_config(mode, global_scale=None):
    """The BlockScaleConfig of a format, for `scaled_dot_general`.

    Args:
        mode: "nvfp4", "mxfp8" or "mxfp4".
        global_scale: an array of one element, a factor of the whole array; nvfp4 alone has one, 1 for None.
    Raises:
        ValueError: for another mode.

    >>> config = nn.get_scaled_dot_general_config("mxfp8")
    >>> config.block_size, config.data_type == jnp.float8_e4m3fn, config.scale_type == jnp.float8_e8m0fnu
    (32, True, True)
    """
    check_choice("mode", mode, _MODES)
    if mode == "nvfp4" and global_scale is None:
        global_scale = jnp.ones(1, "float32")
    if mode != "nvfp4" and global_scale is not None:
        raise ValueError(f"get_scaled_dot_general_config: {mode} has no global_scale: its scales are powers "
                         "of two")
    return BlockScaleConfig(mode, *_MODES[mode], global_scale)


def scaled_matmul(lhs, rhs, lhs_scales, rhs_scales, preferred_element_type=jnp.float32):
    """The product along K of (B, M, K) and (B, N, K), whose blocks of K have scales, computed in float32.

    Args:
        lhs: (B, M, K).
        rhs: (B, N, K).
        lhs_scales: (B, M, K / k), a factor of each block of k.
        rhs_scales: (B, N, K / k).
        preferred_element_type: the dtype of the result (B, M, N).
    Raises:
        ValueError: where K is no multiple of the number of scales.

    >>> a, b = jnp.ones((1, 2, 64), jnp.float8_e4m3fn), jnp.ones((1, 3, 64), jnp.float8_e4m3fn)
    >>> a_scales = jnp.full((1, 2, 2), 2, jnp.float8_e8m0fnu)      # of blocks of 32
    >>> nn.scaled_matmul(a, b, a_scales, jnp.ones((1, 3, 2), jnp.float8_e8m0fnu))
    Array([[[128., 128., 128.],
            [128., 128., 128.]]], dtype=float32)
    """
    lhs, rhs = _unscaled("lhs", lhs, lhs_scales), _unscaled("rhs", rhs, rhs_scales)
    return lax.dot_general(lhs, rhs, (((2,), (2,)), ((0,), (0,)))).astype(preferred_element_type)


def _unscaled(name, x, scales):
    fits = x.ndim == 3 and scales.shape[:-1] == x.shape[:-1]
    if not fits or not scales.shape[-1] or x.shape[-1] % scales.shape[-1]:
        raise ValueError(f"scaled_matmul: {name} and its scales must have shapes (B, M, K) and (B, M, a "
                         f"divisor of K), got {x.shape} and {scales.shape}")
    return x.astype("float32") * jnp.repeat(scales.astype("float32"), x.shape[-1] // scales.shape[-1],
                                            axis=-1)


def _rounded(x, config):
    """(values, scales) of `x`, of which every block fits."""
    size, most = config.block_size, float(jnp.finfo(config.data_type).max)
    if x.shape[-1] % size:
        raise ValueError(f"scaled_dot_general: {config.mode} rounds blocks of {size}, and a contracted axis "
                         f"has size {x.shape[-1]}: pad it to a multiple")
    x = x.astype("float32")
    if config.global_scale is not None:
        x = x / config.global_scale
    blocks = x.reshape(*x.shape[:-1], -1, size)
    scale = jnp.max(jnp.abs(blocks), -1, keepdims=True) / most
    if config.scale_type == jnp.float8_e8m0fnu:      # the next power of two, by the bits of a float32
        bits = lax.bitcast_convert_type(scale, "uint32")
        exponent, rest = bits >> 23, bits & 0x7FFFFF
        up = (rest > 0) & (exponent != 254) & ~((exponent == 0) & (rest <= 0x400000))
        exponent = jnp.where(up, exponent + 1, exponent)
        scales = lax.bitcast_convert_type(exponent.astype("uint8"), config.scale_type)
        scale = lax.bitcast_convert_type(jnp.where(exponent == 0, 0x400000, exponent << 23), "float32")
    else:
        scales = _as(config.scale_type, jnp.clip(scale, 0, float(jnp.finfo(config.scale_type).max)))
        scale = scales.astype("float32")
    values = _as(config.data_type, jnp.clip(blocks / scale, -most, most))
    return values.reshape(x.shape), scales[..., 0]


def _as(dtype, x):
    """`x` rounded, also where it is made wide again: XLA for GPUs would leave out both conversions."""
    return lax.optimization_barrier(x.astype(dtype))


def _product(lhs, rhs, configs, dtype):
    """(B, M, K) times (B, N, K), both rounded."""
    (a, s), (b, t) = _rounded(lhs, configs[0]), _rounded(rhs, configs[1])
    out = scaled_matmul(a, b, s, t, dtype)
    for config in configs:
        out = out if config.global_scale is None else out * config.global_scale.astype(dtype)
    return out


def scaled_dot_general(lhs, rhs, dimension_numbers, preferred_element_type=jnp.float32, configs=None,
                       implementation=None):
    """lax.dot_general of rounded operands.

    Derivatives are those of the exact function, by products that are rounded too, but for nvfp4.

    Args:
        dimension_numbers: as for lax.dot_general.
        preferred_element_type: the dtype of the result.
        configs: how to round lhs, rhs, and the cotangents in the derivative; without, it is lax.dot_general.
        implementation: not supported; None.
    Raises:
        ValueError: where blocks do not fit.

    >>> configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> a, b = jax.random.normal(jax.random.key(0), (2, 16, 64))
    >>> rounded = nn.scaled_dot_general(a, b, (((1,), (1,)), ((), ())), configs=configs)
    >>> rounded.shape, 0 < jnp.abs(rounded - a @ b.T).max() < 2
    ((16, 16), Array(True, dtype=bool))
    """
    if implementation is not None:
        raise NotImplementedError(f"scaled_dot_general: implementation={implementation!r} is not supported: "
                                  "XLA chooses")
    if configs is None:
        return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)
    first, second, third = configs

    @custom_vjp
    def product(lhs, rhs):
        return _product(lhs, rhs, (first, second), preferred_element_type)

    def backward(operands, ct):
        lhs, rhs = operands
        # as JAX does it: the exact product, 0 where an operand was beyond what it can hold
        if third.mode == "nvfp4":
            exact = (lax.dot_general(ct, rhs, (((2,), (1,)), ((0,), (0,)))),
                     lax.dot_general(ct, lhs, (((1,), (1,)), ((0,), (0,)))))
            return tuple([jnp.where(jnp.abs(x) <= c.global_scale * _LARGEST, g, 0).astype(x.dtype)
                          for g, x, c in zip(exact, operands, (first, second))])
        return (_product(ct, jnp.swapaxes(rhs, 1, 2), (third, second), lhs.dtype),
                _product(jnp.swapaxes(ct, 1, 2), jnp.swapaxes(lhs, 1, 2), (third, first), rhs.dtype))
    product.defvjp(lambda *operands: (product(*operands), operands), backward)
    (left, right), (left_batch, right_batch) = dimension_numbers
    a, batch, rows = _three_axes(lhs, left_batch, left)
    b, _, columns = _three_axes(rhs, right_batch, right)
    return product(a, b).reshape(*batch, *rows, *columns)


def _three_axes(x, batch, contracted):
    """(`x` as (batch, free, contracted), the sizes of its batch axes, those of its free axes)."""
    free = [i for i in range(x.ndim) if i not in (*batch, *contracted)]
    groups = [[x.shape[i] for i in axes] for axes in (batch, free, contracted)]
    return jnp.transpose(x, (*batch, *free, *contracted)).reshape(*map(prod, groups)), groups[0], groups[1]
