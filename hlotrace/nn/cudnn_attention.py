"""Attention by cuDNN's fused kernels, on NVIDIA GPUs: XLA's custom calls `__cudnn$fmha...`.

What they take is in XLA's `CudnnfMHABackendConfig` (openxla/xla, xla/service/gpu/backend_configs.proto) and
in NVIDIA's documentation of cuDNN's scaled dot-product attention.
"""
import json

from .. import numpy as jnp
from ..api.autodiff import vjp
from ..api.custom_batching import custom_vmap
from ..api.custom_derivatives import custom_vjp
from ..api.external.ffi import ffi_call
from ..core import dtypes
from ..core.avals import ShapedArray
from ..lax.by_platform import platform_dependent
from ..primitives.common import np

_ELEMENTS = {"bfloat16": "BF16", "float16": "F16"}
# Logits of what is masked: far below others, and finite, so that a row without any key is no NaN.
_MASKED = {"bfloat16": -2.0**41, "float16": -45000.0}
# The layout of (batch, heads, length, width) in which results are written: as (batch, length, heads, width).
_BY_LENGTH = (0, 2, 1, 3)


def attention(query, key, value, bias, mask, *, scale, is_causal, lengths, window, plain, with_sums):
    """(softmax(query key^T * scale + bias) value, the logsumexp of the logits), of arrays with a batch axis.

    The second is None unless `with_sums`.

    Args:
        lengths: the int32 lengths of queries and of keys, or nothing.
        window: None, or (left, right).
        plain: (query, key, value, bias) -> the same two, as operations: by which the derivatives are taken
            that the kernels do not give.
    Raises:
        NotImplementedError: for dtypes and sizes that the kernels do not have.
    """
    _check(query, key)
    batch, target, heads, width = query.shape
    settings = {"scale": width ** -0.5 if scale is None else float(scale), "window": 0,
                "mask": "CAUSAL" if is_causal else "NO_MASK"}
    if window is not None:
        left, right = window
        if right and not is_causal:
            raise ValueError(f"cuDNN doesn't support right window: {right} when causal mask is not used.")
        settings.update(window=left + 1, mask="CAUSAL")
    if lengths:
        settings["mask"] = "PADDING_CAUSAL" if settings["mask"] == "CAUSAL" else "PADDING"
    added = _added(bias, mask, query.dtype, target, key.shape[1])
    operands = [query, key, value, *(() if added is None else (added,))]
    attend, sums = _differentiable(settings, len(operands), plain)
    return attend(*operands, *lengths), sums(*operands, *lengths) if with_sums else None


def _check(query, key):
    if query.dtype.name not in _ELEMENTS:
        raise NotImplementedError(f"Q must be fp16/bf16, got {query.dtype}: cast with .astype(jnp.bfloat16), "
                                  "or use implementation='xla'")
    width = query.shape[-1]
    if width > 128 or width % 8:
        raise NotImplementedError(f"The head dim must be <= 128 and a multiple of 8, but got {width}: use "
                                  "implementation='xla'")
    if 0 in query.shape or 0 in key.shape:
        raise NotImplementedError(f"the kernels have no empty arrays, got {query.shape} and {key.shape}: use "
                                  "implementation='xla'")


def _added(bias, mask, dtype, target, source):
    """What is added to the logits: the bias, and far below 0 where the mask is False; None without both."""
    if mask is not None:
        hidden = jnp.where(mask, 0, np.asarray(_MASKED[dtype.name], dtype))
        bias = hidden if bias is None else bias.astype(dtype) + hidden
    return None if bias is None else jnp.broadcast_to(bias.astype(dtype), (*bias.shape[:2], target, source))


def _differentiable(settings, count, plain):
    """The two results as functions of `count` arrays that have slopes, and of the lengths."""
    @custom_vjp
    def attend(*operands):
        return _forward(settings, operands, False)[0]

    def attend_fwd(*operands):
        target, source = operands[0].shape[1], operands[1].shape[1]
        if target % 2 or source % 2:
            raise NotImplementedError(f"Unsupported sequence length Q {target}, KV {source}: the kernels of "
                                      "derivatives want even ones; pad, or use implementation='xla'")
        out, sums = _forward(settings, operands)
        return out, (operands, out, sums)

    def attend_bwd(saved, moved):
        operands, out, sums = saved
        slopes = _backward(settings, operands, count, sums, moved, out)
        if count > 3:       # where nothing asks for it, XLA leaves it out
            slopes += vjp(lambda bias: plain(*operands[:3], bias)[0], operands[3])[1](moved)
        return (*slopes, *[None] * (len(operands) - count))
    attend.defvjp(attend_fwd, attend_bwd)

    @custom_vjp
    def residual(*operands):
        return jnp.transpose(_forward(settings, operands)[1], (0, 2, 1)).astype(operands[1].dtype)

    def residual_bwd(operands, moved):
        slopes = vjp(lambda *xs: plain(*xs)[1], *operands[:count])[1](moved)
        return (*slopes, *[None] * (len(operands) - count))
    residual.defvjp(lambda *operands: (residual(*operands), operands), residual_bwd)
    return attend, residual


# --- the calls ------------------------------------------------------------------------------------

def _forward(settings, operands, with_sums=True):
    """The output, (B, T, N, H), and `with_sums` the float32 logsumexp of the logits, (B, N, T)."""
    is_biased = any(x.ndim == 4 for x in operands[3:])

    def call(*xs):
        (batch, target, heads, width), dtype = xs[0].shape, xs[0].dtype
        results = [ShapedArray((batch, heads, target, width), dtype)]
        results += [ShapedArray((batch, heads, target), dtypes.float32)] * with_sums
        out, *sums = _kernel("", settings, xs, is_biased, results, [_BY_LENGTH, None][:len(results)])
        return jnp.transpose(out, _BY_LENGTH), *sums
    return _mapped(call)(*operands)


def _backward(settings, operands, count, sums, moved, out):
    """The slopes of query, key and value."""
    def call(*xs):
        results = [ShapedArray((x.shape[0], x.shape[2], x.shape[1], x.shape[3]), x.dtype) for x in xs[:3]]
        slopes = _kernel("Backward", settings, xs, count > 3, results, [_BY_LENGTH] * 3)
        return tuple(jnp.transpose(slope, _BY_LENGTH) for slope in slopes)
    return _mapped(call)(*operands[:3], sums, moved, *operands[3:count], out, *operands[count:])


def _kernel(suffix, settings, operands, is_biased, results, layouts):
    """A call on NVIDIA GPUs; elsewhere the program cannot be lowered."""
    name = f"__cudnn$fmha{'ScaleBias' if is_biased else ''}Softmax{suffix}"
    workspace = ShapedArray((0,), dtypes.uint8)

    def call(*xs):
        return tuple(ffi_call(
            name, [*results, workspace], output_layouts=[*layouts, None], custom_call_api_version=2,
            legacy_backend_config=_config(settings, xs[0], xs[1].shape[1], bool(suffix)))(*xs)[:-1])
    return platform_dependent(*operands, cuda=call)


def _mapped(call):
    """A function of arrays with a batch axis in front: under vmap the mapped axis becomes part of it."""
    @custom_vmap
    def mapped(*xs):
        return call(*xs)

    @mapped.def_vmap
    def rule(size, batched, *xs):
        batch = xs[0].shape[1 if batched[0] else 0]

        def merged(x, is_batched):
            if not is_batched and x.shape[0] == 1 != batch:     # a bias for all
                return x
            x = x if is_batched else jnp.broadcast_to(x, (size, *x.shape))
            if x.shape[1] != batch:
                x = jnp.broadcast_to(x, (size, batch, *x.shape[2:]))
            return x.reshape(size * batch, *x.shape[2:])
        found = mapped(*map(merged, xs, batched))
        return tuple(x.reshape(size, batch, *x.shape[1:]) for x in found), (True,) * len(found)
    return mapped


def _config(settings, query, source, is_backward):
    """The text of XLA's backend config."""
    def product(left, right, left_batch, right_batch):
        return {"lhs_contracting_dimensions": [left], "rhs_contracting_dimensions": [right],
                "lhs_batch_dimensions": left_batch, "rhs_batch_dimensions": right_batch}
    heads_last, heads_first = ["0", "2"], ["0", "1"]
    batch, target, heads, _ = query.shape
    if is_backward:
        products = {"bmm1_grad_gemm1": product("2", "1", heads_first, heads_last),
                    "bmm1_grad_gemm2": product("3", "1", heads_first, heads_last),
                    "bmm2_grad_gemm1": product("2", "1", heads_first, heads_last),
                    "bmm2_grad_gemm2": product("3", "3", heads_last, heads_last)}
    else:
        products = {"bmm1": product("3", "3", heads_last, heads_last),
                    "bmm2": product("3", "1", heads_first, heads_last)}
    logits = {"element_type": _ELEMENTS[query.dtype.name],
              "dimensions": [str(n) for n in (batch, heads, target, source)],
              "layout": {"minor_to_major": ["3", "2", "1", "0"]}, "is_dynamic_dimension": [False] * 4}
    algorithm = {"algo_id": "0", "math_type": "TENSOR_OP_MATH", "tuning_knobs": {"17": "1", "24": "0"},
                 "is_cudnn_frontend": True, "workspace_size": "0"}
    return json.dumps({"operation_queue_id": "0", "cudnn_fmha_backend_config": {
        "algorithm": algorithm, "fmha_scale": settings["scale"], "intermediate_tensor_shape": logits,
        "is_flash_attention": True, "mask_type": settings["mask"], "dropout_rate": 0.0, "seed": 42,
        "sliding_window_length": settings["window"], "max_seg_per_batch": 1, "is_paged_attention": False,
        **{f"{name}_dot_dimension_numbers": numbers for name, numbers in products.items()}}})
