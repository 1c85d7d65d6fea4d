"""JAX's `pallas.ops`: kernels to be used.  Masks and sizes are here; kernels raise when they are called."""
import enum
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ....core.surface.public import export_names
from .. import masks
from ..unsupported import as_module, functions


class SegmentIds(NamedTuple):
    """For each query and each key a number; those of one number see each other."""
    q: Any
    kv: Any


class QKVLayout(enum.IntEnum):
    """Which dimension of queries, keys and values is the last one."""
    HEAD_DIM_MINOR = enum.auto()
    SEQ_MINOR = enum.auto()


class BlockSizes(NamedTuple):
    """The sizes of blocks of a splash attention kernel, forward and backward."""
    block_q: int
    block_kv: int
    block_kv_compute: int | None = None
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_kv_dkv_compute: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None
    use_fused_bwd_kernel: bool = False
    q_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    k_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    v_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR

    @classmethod
    def get_default(cls):
        """Blocks of 128."""
        return cls(*[128] * 8)


_MAKERS = """
    make_masked_mha_reference make_masked_mqa_reference make_splash_mha make_splash_mha_single_device
    make_splash_mqa make_splash_mqa_single_device"""
# module: its functions that need kernels
_MODULES = {
    "gpu": "",
    "gpu.attention": "BlockSizes mha mha_reference segment_mask",
    "gpu.attention_mgpu": "TuningConfig attention attention_reference",
    "gpu.decode_attention": """
        attn_forward_kernel decode_attn_unbatched gqa gqa_reference mha_reference mqa mqa_reference""",
    "gpu.layer_norm": "layer_norm layer_norm_backward layer_norm_forward layer_norm_reference",
    "gpu.paged_attention": "paged_attention paged_attention_reference paged_attention_unbatched",
    "gpu.rms_norm": "rms_norm rms_norm_backward rms_norm_forward rms_norm_reference",
    "gpu.softmax": "softmax",
    "tpu": "",
    "tpu.all_gather": "all_gather get_neighbor",
    "tpu.example_kernel": "double",
    "tpu.flash_attention": """
        BlockSizes _flash_attention_dkv_kernel _flash_attention_dq_kernel _flash_attention_kernel
        _verify_block below_or_on_diag flash_attention mha_reference mha_reference_bwd
        mha_reference_no_custom_vjp""",
    "tpu.matmul": "matmul",
    "tpu.megablox": "",
    "tpu.megablox.common": "assert_is_supported_dtype is_tpu select_input_dtype tpu_generation tpu_kind",
    "tpu.megablox.gmm": "gmm make_group_metadata tgmm",
    "tpu.megablox.ops": "gmm",
    "tpu.paged_attention": "paged_attention",
    "tpu.paged_attention.paged_attention_kernel": "paged_attention",
    "tpu.paged_attention.quantization_utils": """
        QuantizedTensor from_int8 get_quantization_scales quantize_to_int8 to_int8
        unquantize_from_int8""",
    "tpu.paged_attention.util": "grouped_query_attention_reference",
    "tpu.ragged_paged_attention": """
        dynamic_validate_inputs get_tuned_block_sizes ragged_paged_attention
        ref_ragged_paged_attention static_validate_inputs""",
    "tpu.ragged_paged_attention.kernel": """
        dynamic_validate_inputs ragged_paged_attention ref_ragged_paged_attention
        static_validate_inputs""",
    "tpu.random": "",
    "tpu.random.philox": "philox_4x32 philox_4x32_count philox_fold_in philox_random_bits philox_split",
    "tpu.random.threefry": "plthreefry_random_bits threefry_2x32_count",
    "tpu.splash_attention": _MAKERS,
    "tpu.splash_attention.splash_attention_kernel": """
        SplashAttentionKernel _apply_mask_and_soft_cap _div _next_nonzero attention_reference
        attention_reference_custom flash_attention_kernel from_head_minor get_kernel_name
        make_attention_reference""" + _MAKERS,
    "tpu.splash_attention.splash_attention_mask": "",
    "tpu.splash_attention.splash_attention_mask_info": """
        MaskInfo process_dynamic_mask process_dynamic_mask_dkv process_mask process_mask_dkv""",
}
_MASKS = {name: getattr(masks, name) for name in masks.__all__}
_SIZES = {"BlockSizes": BlockSizes, "QKVLayout": QKVLayout, "SegmentIds": SegmentIds}
_CLASSES = {"tpu.flash_attention": {
                "SegmentIds": SegmentIds, "DEFAULT_MASK_VALUE": -0.7 * float(np.finfo(np.float32).max),
                "MIN_BLOCK_SIZE": 128, "NUM_LANES": 128, "NUM_SUBLANES": 8},
            "tpu.splash_attention": {**_MASKS, **_SIZES},
            "tpu.splash_attention.splash_attention_kernel": {
                **_SIZES, "MaskFunctionType": Callable, "SplashCustomReturnType": Any},
            "tpu.splash_attention.splash_attention_mask": {
                **_MASKS, "_ComputableMask": masks._ComputableMask}}
for _name, _functions in _MODULES.items():
    _full = f"{__name__}.{_name}"
    _contents = {**functions(_full, _functions), **_CLASSES.get(_name, {})}
    as_module(_full, f"JAX's `pallas.ops.{_name}`.", _contents)
__all__ = ["gpu", "tpu"]

export_names(globals())
