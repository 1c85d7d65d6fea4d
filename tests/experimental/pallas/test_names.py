"""Pallas without kernels: what is said of them, masks and sizes are here; what runs them raises."""
import importlib
import pkgutil

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.experimental import pallas as pl
from hlotrace.experimental.pallas import tpu, triton
from hlotrace.experimental.pallas.ops.tpu import splash_attention
from hlotrace.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel import (
    BlockSizes, SegmentIds)
from hlotrace.experimental.pallas.unsupported import KernelFunction

MASK = splash_attention.CausalMask((4, 4))


def test_every_module_and_what_raises():
    modules = [pl, *(importlib.import_module(f"{pl.__name__}.{m.name}")
                     for m in pkgutil.iter_modules(pl.__path__))]
    modules += [module for name, module in __import__("sys").modules.items()
                if name.startswith(f"{pl.__name__}.ops.")]
    found = [value for module in modules for value in vars(module).values()
             if isinstance(value, KernelFunction)]
    assert len(modules) > 30 and len(found) > 150
    for function in found:
        with pytest.raises(NotImplementedError,
                           match=f"{function.__name__}: it is not supported yet"):
            function(1, x=2)


def test_what_is_said_of_kernels():
    spec = pl.BlockSpec((8, None), lambda i: (i, 0), memory_space=tpu.VMEM)
    assert spec.replace(block_shape=[4, 4]).block_shape == (
        4, 4) and spec.memory_space is tpu.MemorySpace.VMEM
    with pytest.raises(TypeError, match="block_shape, index_map"):
        pl.BlockSpec(lambda i: (i, 0), (8, 8))
    assert pl.GridSpec(3).grid == (3,) and pl.GridSpec((2, 3)).in_specs is pl.no_block_spec
    assert tpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,)).num_scalar_prefetch == 1
    assert tpu.CompilerParams(dimension_semantics=["parallel", tpu.ARBITRARY]).dimension_semantics == (
        "parallel", tpu.ARBITRARY)
    assert triton.CompilerParams(num_warps=4).num_stages is None and pl.ANY((2,), "int8").dtype == jnp.int8
    assert BlockSizes.get_default()[:8] == (128,) * 8
    assert BlockSizes(1, 2).q_layout == 1 and SegmentIds(1, 2).kv == 2 and isinstance(pl.ds(0, 2), pl.Slice)


def test_sizes_branches_and_loops():
    assert (pl.cdiv(7, 2), pl.align_to(7, 4), pl.strides_from_shape((2, 3, 4))) == (4, 8, (12, 4, 1))
    assert [pl.next_power_of_2(n) for n in (0, 1, 2, 3, 5, 1024, 1025)] == [1, 1, 2, 4, 8, 1024, 2048]
    with pytest.raises(ValueError, match="non-negative"):
        pl.next_power_of_2(-1)

    @jax.jit
    def f(x, n):
        ref = jax.new_ref(x)

        @pl.loop(0, 4)
        def _(i):
            ref[i] += 1

        @pl.loop(1, 4, step=2)
        def _(i):
            ref[i] += 10

        @pl.when(n > 2)
        def _():
            ref[0] = 9.

        @pl.when(True)
        def _():
            ref[1] = 7.
        return ref[...]
    assert f(jnp.zeros(4), 1).tolist() == [1, 7, 1, 11] and f(jnp.zeros(4), 3).tolist() == [9, 7, 1, 11]


def dense(rule, n=6):
    return np.array([[rule(q, k) for k in range(n)] for q in range(n)])


@pytest.mark.parametrize("mask, rule", [
    (splash_attention.CausalMask((6, 6)), lambda q, k: q >= k),
    (splash_attention.CausalMask((6, 6), 2), lambda q, k: q + 2 >= k),
    (splash_attention.LocalMask((6, 6), (1, 2), 0), lambda q, k: q - 1 <= k <= q + 2),
    (splash_attention.LocalMask((6, 6), (None, 0), 1), lambda q, k: k <= q + 1),
    (splash_attention.FullMask((6, 6)), lambda q, k: True),
    (importlib.import_module(f"{splash_attention.__name__}.splash_attention_mask").ChunkedCausalMask(
        (6, 6), 4),
     lambda q, k: q // 4 == k // 4 and k <= q),
    (importlib.import_module(f"{splash_attention.__name__}.splash_attention_mask")._ComputableMask(
        (6, 6), mask_function=lambda q, k: np.broadcast_to(k < 2, (q.shape[0], k.shape[1])), shard_count=2),
     lambda q, k: k < 2),
    (splash_attention.CausalMask((6, 6)) & splash_attention.LocalMask((6, 6), (2, 0), 0),
     lambda q, k: q - 2 <= k <= q),
    (splash_attention.CausalMask((6, 6)) | splash_attention.NumpyMask(np.eye(6, dtype=bool)[::-1]),
     lambda q, k: k <= q or q + k == 5)])
def test_masks_and_their_parts(mask, rule):
    whole = dense(rule)
    np.testing.assert_array_equal(mask[:, :], whole)
    np.testing.assert_array_equal(mask[1:3, 2:], whole[1:3, 2:])
    heads = splash_attention.MultiHeadMask([mask, MASK if mask.shape == (4, 4) else mask])
    assert heads.shape == (2, *mask.shape) and heads[0, :2, :].shape == (2, 6)
    np.testing.assert_array_equal(heads[:, 1:3, :], [whole[1:3]] * 2)


def test_faulty_masks():
    assert MASK == splash_attention.CausalMask((4, 4)) and hash(MASK) != hash(
        splash_attention.CausalMask((4, 4), 1))
    for make, words in ((lambda: splash_attention.MultiHeadMask([]), "one shape"),
                        (lambda: splash_attention.NumpyMask(np.ones(3)), "2 dim"),
                        (lambda: MASK & splash_attention.FullMask((2, 2)), "must be equal"),
                        (lambda: splash_attention.CausalMask((3, 3), 0, 2), "shards")):
        with pytest.raises(ValueError, match=words):
            make()
    with pytest.raises(NotImplementedError, match="rows"):
        MASK[0]
