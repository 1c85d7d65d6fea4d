"""What TPUs are, as kernels are sized by: units, memories and rates of one device.

Figures of memory and rates: Google Cloud's pages of TPU versions; those of units: Jouppi et al., "TPU v4: an
optically reconfigurable supercomputer" (ISCA 2023) and its predecessors.
"""
import dataclasses
import enum

from ...core import dtypes
from ...runtime.devices import client

_KiB, _MiB, _TERA = 1 << 10, 1 << 20, 10 ** 12


class ChipVersion(enum.Enum):
    """A version of TPU."""
    TPU_V2 = "v2"
    TPU_V3 = "v3"
    TPU_V4I = "v4i"
    TPU_V4 = "v4"
    TPU_V5E = "v5e"
    TPU_V5P = "v5p"
    TPU_V6E = "v6e"
    TPU_7 = "7"
    TPU_7X = "7x"

    def __str__(self):
        return self.value


@dataclasses.dataclass(frozen=True)
class SparseCoreInfo:
    """The SparseCores of a chip."""
    num_cores: int
    num_subcores: int
    num_lanes: int
    vmem_capacity_bytes: int
    dma_granule_size_bytes: int = 32


@dataclasses.dataclass(frozen=True, kw_only=True)
class TpuInfo:
    """A device of a TPU: `num_cores` TensorCores that work as one, of a chip of this version.

    >>> info = jax.experimental.pallas.tpu.get_tpu_info_for_chip(
    ...     jax.experimental.pallas.tpu.ChipVersion.TPU_V5E, 1)
    >>> info.generation, info.vmem_capacity_bytes, info.get_sublane_tiling("bfloat16")
    (5, 134217728, 16)
    """
    chip_version: ChipVersion
    generation: int
    num_cores: int
    num_lanes: int = 128
    num_sublanes: int = 8
    mxu_column_size: int
    num_mxus: int
    num_accumulators: int = 0
    vmem_capacity_bytes: int
    cmem_capacity_bytes: int = 0
    smem_capacity_bytes: int = _MiB
    hbm_capacity_bytes: int
    mem_bw_bytes_per_second: int
    bf16_ops_per_second: int
    int8_ops_per_second: int = 0
    fp8_ops_per_second: int = 0
    int4_ops_per_second: int = 0
    sparse_core: SparseCoreInfo | None = None

    is_lite = property(lambda self: self.chip_version in _LITE)
    is_megacore = property(lambda self: self.num_cores > 1)
    is_split_chip = property(lambda self: self.chip_version in _TWO_CORES and self.num_cores == 1)

    def get_sublane_tiling(self, dtype):
        """Rows of a tile of such elements: 8 of 32 bits, more of fewer."""
        return self.num_sublanes * 32 // dtypes.itemsize_bits(dtypes.as_dtype(dtype))

    def is_matmul_supported(self, lhs_dtype, rhs_dtype):
        """Do the matrix units take these dtypes?"""
        pair = [dtypes.as_dtype(dtype).name for dtype in (lhs_dtype, rhs_dtype)]
        rates = {"int8": self.int8_ops_per_second, "uint8": self.int8_ops_per_second,
                 "int4": self.int4_ops_per_second, "uint4": self.int4_ops_per_second,
                 **dict.fromkeys(("float8_e4m3fn", "float8_e5m2"), self.fp8_ops_per_second),
                 "float32": 1, "bfloat16": 1}
        kinds = {"f" if name.startswith(("float", "bfloat")) else "i" for name in pair}
        return len(kinds) == 1 and all([rates.get(name, 0) for name in pair])


_LITE = ChipVersion.TPU_V4I, ChipVersion.TPU_V5E, ChipVersion.TPU_V6E
# chips of two TensorCores, of which each may be a device of its own
_TWO_CORES = {*ChipVersion} - {*_LITE}
_MEGACORE = ChipVersion.TPU_V4, ChipVersion.TPU_V5P


def _chip(generation, mxu_column_size, num_mxus, vmem_mib, hbm_bytes, bandwidth, bf16, **more):
    return dict(generation=generation, mxu_column_size=mxu_column_size, num_mxus=num_mxus,
                vmem_capacity_bytes=vmem_mib * _MiB, hbm_capacity_bytes=int(hbm_bytes),
                mem_bw_bytes_per_second=int(bandwidth), bf16_ops_per_second=int(bf16 * _TERA), **more)


def _rates(**tera):
    return {f"{name}_ops_per_second": int(rate * _TERA) for name, rate in tera.items()}


_SEVEN = _chip(7, 256, 2, 64, 103e9, 3.7e12, 1155, num_accumulators=128, **_rates(fp8=2300),
               sparse_core=SparseCoreInfo(2, 16, 16, 512 * _KiB))
# memories and rates of one TensorCore
_CHIPS = {
    ChipVersion.TPU_V2: _chip(2, 128, 1, 16, 8e9, 358e9, 23, smem_capacity_bytes=16 * _KiB),
    ChipVersion.TPU_V3: _chip(3, 128, 2, 16, 17.2e9, 412.5e9, 70, smem_capacity_bytes=16 * _KiB),
    ChipVersion.TPU_V4I: _chip(4, 128, 4, 16, 8.59e9, 614e9, 137, cmem_capacity_bytes=134_000_000),
    ChipVersion.TPU_V4: _chip(4, 128, 4, 16, 17.2e9, 615e9, 137.5, cmem_capacity_bytes=67_000_000),
    ChipVersion.TPU_V5E: _chip(5, 128, 4, 128, 17.2e9, 820e9, 197, **_rates(int8=394, int4=788)),
    ChipVersion.TPU_V5P: _chip(5, 128, 4, 64, 51.5e9, 1.23e12, 229.5, **_rates(int8=459, int4=920),
                               sparse_core=SparseCoreInfo(4, 16, 8, 512 * _KiB)),
    ChipVersion.TPU_V6E: _chip(6, 256, 2, 128, 34.4e9, 1.64e12, 920, **_rates(int8=1840, fp8=920, int4=3680),
                               sparse_core=SparseCoreInfo(2, 16, 8, 256 * _KiB)),
    ChipVersion.TPU_7: _SEVEN, ChipVersion.TPU_7X: _SEVEN}
# (begin of `device_kind`, the version, TensorCores of a device)
_KINDS = [("TPU v5 lite", ChipVersion.TPU_V5E, 1), ("TPU v5e", ChipVersion.TPU_V5E, 1),
          ("TPU v6", ChipVersion.TPU_V6E, 1), ("TPU v5", ChipVersion.TPU_V5P, 2),
          ("TPU v4 lite", ChipVersion.TPU_V4I, 1), ("TPU v4", ChipVersion.TPU_V4, 2),
          ("TPU v3", ChipVersion.TPU_V3, 1), ("TPU v2", ChipVersion.TPU_V2, 1),
          ("TPU7x", ChipVersion.TPU_7X, 1), ("TPU7", ChipVersion.TPU_7, 1)]


def get_tpu_info_for_chip(chip_version, num_tensor_cores_per_device):
    """The TpuInfo of devices of so many TensorCores.  ValueError for what no chip of this version has."""
    most = 2 if chip_version in _MEGACORE else 1
    if not 1 <= num_tensor_cores_per_device <= most:
        raise ValueError(f"tpu.get_tpu_info_for_chip: devices of a TPU {chip_version} have 1"
                         f"{' or 2 TensorCores' if most > 1 else ' TensorCore'}, not "
                         f"{num_tensor_cores_per_device}")
    return TpuInfo(chip_version=chip_version, num_cores=num_tensor_cores_per_device, **_CHIPS[chip_version])


def get_tpu_info():
    """The TpuInfo of the default device.  ValueError where it is no TPU: `get_tpu_info_for_chip` needs none.
    """
    kind = client.default_device().device_kind
    for begin, version, cores in _KINDS:
        if kind.startswith(begin):
            return get_tpu_info_for_chip(version, cores)
    raise ValueError(f"tpu.get_tpu_info: the default device, a {kind!r}, is no TPU that is known: use "
                     "tpu.get_tpu_info_for_chip(tpu.ChipVersion.TPU_V5E, 1), say")
