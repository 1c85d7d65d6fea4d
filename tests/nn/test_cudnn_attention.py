"""Attention by cuDNN's kernels: the calls that a program for NVIDIA GPUs has; tests/distributed/test_gpu_run.py has values."""

import json
import re

import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import nn

Q = jax.ShapeDtypeStruct((2, 128, 4, 64), "bfloat16")
KV = jax.ShapeDtypeStruct((2, 256, 2, 64), "bfloat16")
LENGTHS = jax.ShapeDtypeStruct((2,), "int32")


def bias(*shape, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype)


def calls(f, *types):
    """[(target, config, types of operands and results)] of the kernels in a program for CUDA."""
    text = jax.jit(f).trace(*types).lower(lowering_platforms=("cuda",)).as_text()
    found = re.findall(r'custom_call @"?(__cudnn[\w$]+)"?\(.*?backend_config = "(.*?)",.* : (.*)', text)
    return [
        (
            target,
            json.loads(config.replace(r"\22", '"').replace(r"\"", '"'))["cudnn_fmha_backend_config"],
            kinds,
        )
        for target, config, kinds in found
    ]


def attend(*args, **options):
    names = dict(zip(options.pop("names", ()), args[3:]))
    return nn.dot_product_attention(*args[:3], **names, **options, implementation="cudnn")


@pytest.mark.parametrize("args, options, target, settings", [
    ((Q, KV, KV), {}, "Softmax", {"mask_type": "NO_MASK", "fmha_scale": .125, "sliding_window_length": 0}),
    ((Q, Q, Q), {"is_causal": True, "scale": .25}, "Softmax", {"mask_type": "CAUSAL", "fmha_scale": .25}),
    ((Q, Q, Q), {"is_causal": True, "local_window_size": 16}, "Softmax", {"mask_type": "CAUSAL", "sliding_window_length": 17}),
    ((Q, Q, Q), {"local_window_size": (16, 0)}, "Softmax", {"mask_type": "CAUSAL", "sliding_window_length": 17}),
    ((Q, KV, KV, bias(1, 4, 128, 256)), {"names": ["bias"]}, "ScaleBiasSoftmax", {}),
    ((Q, KV, KV, bias(2, 1, 1, 256, dtype="bool")), {"names": ["mask"]}, "ScaleBiasSoftmax", {}),
    ((Q, Q, Q, LENGTHS), {"names": ["key_value_seq_lengths"]}, "Softmax", {"mask_type": "PADDING"}),
    ((Q, Q, Q, LENGTHS, LENGTHS), {"names": ["query_seq_lengths", "key_value_seq_lengths"], "is_causal": True}, "Softmax",
     {"mask_type": "PADDING_CAUSAL"}),
], ids=lambda x: str(x)[:30] if isinstance(x, dict) else "")
def test_the_kernel_is_called(args, options, target, settings):
    f = lambda *xs: attend(*xs, **options)
    (name, config, kinds), = calls(f, *args)
    assert name == f"__cudnn$fmha{target}" and {**config, **settings} == config
    assert config["intermediate_tensor_shape"]["dimensions"] == ["2", "4", "128", str(args[1].shape[1])]
    assert f"tensor<{'x'.join(map(str, args[1].shape))}xbf16>" in kinds and kinds.endswith(
        "-> (tensor<2x4x128x64xbf16>, tensor<0xui8>)")
    forward, backward = calls(jax.grad(lambda *xs: f(*xs).astype("float32").sum(), (0, 1, 2)), *args)
    assert forward[0] == name and "tensor<2x4x128xf32>" in forward[2]
    assert backward[0] == f"{name}Backward" and backward[1]["mask_type"] == config["mask_type"]


def test_mapped_axes_become_part_of_the_batch():
    stacked = [jax.ShapeDtypeStruct((3, *x.shape), x.dtype) for x in (Q, KV, KV)]
    kinds = calls(jax.vmap(attend), *stacked)[0][2]
    assert (
        kinds.startswith("(tensor<6x128x4x64xbf16>, tensor<6x256x2x64xbf16>")
        and "-> (tensor<6x4x128x64xbf16>" in kinds
    )
    biased = jax.vmap(lambda q, k, v, b: attend(q, k, v, b, names=["bias"]), (0, None, None, None))
    kinds = calls(biased, stacked[0], KV, KV, bias(1, 4, 128, 256))[0][2]
    assert kinds.count("tensor<6x") == 4 and "tensor<1x4x128x256xbf16>" in kinds


def test_a_bias_has_a_slope():
    slope = jax.grad(lambda q, k, v, b: attend(q, k, v, b, names=["bias"]).astype("float32").sum(), 3)
    shape = jax.eval_shape(slope, Q, KV, KV, bias(2, 1, 128, 256))
    assert shape.shape == (2, 1, 128, 256) and shape.dtype == "bfloat16"


def test_the_logsumexp_is_given_too():
    out, sums = jax.eval_shape(lambda *xs: attend(*xs, return_residual=True), *[
        jax.ShapeDtypeStruct((6, 2, 8), "float16")] * 3)
    assert out.shape == (6, 2, 8) and sums.shape == (6, 2) and sums.dtype == "float16"


@pytest.mark.parametrize("shape, dtype, options, error, words", [
    ((2, 8, 4, 64), "float32", {}, NotImplementedError, "Q must be fp16/bf16, got float32"),
    ((2, 8, 4, 136), "float16", {}, NotImplementedError, "head dim must be <= 128 and a multiple of 8"),
    ((2, 8, 4, 60), "float16", {}, NotImplementedError, "head dim must be <= 128 and a multiple of 8"),
    ((2, 0, 4, 64), "float16", {}, NotImplementedError, "no empty arrays"),
    ((2, 8, 4, 64), "float16", {"local_window_size": 3}, ValueError, "doesn't support right window: 3"),
    ((2, 8, 4, 64), "float16", {"local_window_size": (3, 3, 3)}, ValueError, "an int or a pair"),
])
def test_what_the_kernels_do_not_have(shape, dtype, options, error, words):
    x = jax.ShapeDtypeStruct(shape, dtype)
    with pytest.raises(error, match=words):
        jax.eval_shape(lambda *xs: attend(*xs, **options), x, x, x)


def test_where_the_kernels_are_not():
    x = jnp.ones((2, 7, 4, 64), "float16")
    with pytest.raises(NotImplementedError, match="odd|even"):
        jax.eval_shape(jax.grad(lambda x: attend(x, x, x).astype("float32").sum()), x)
    with pytest.raises(NotImplementedError, match="no function for platform cpu, only for cuda"):
        attend(x, x, x)
    with pytest.raises(ValueError, match="'cudnn'"):
        nn.dot_product_attention(x, x, x, implementation="triton")
