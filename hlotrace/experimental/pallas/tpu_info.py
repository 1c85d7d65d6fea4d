"""What TPUs are, as kernels are sized by: units, memories and rates.

Figures of chips and their sources are in `runtime/devices/chips.py`; those of units here are what JAX 0.10.2
says.
"""
import dataclasses
import enum
from typing import NamedTuple

from ...core import dtypes
from ...runtime.devices import chips, client

_KiB, _MiB = 1 << 10, 1 << 20


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

    is_lite = property(lambda self: self.chip_version in (ChipVersion.TPU_V4I, ChipVersion.TPU_V5E,
                                                          ChipVersion.TPU_V6E))
    is_megacore = property(lambda self: self.num_cores > 1)
    is_split_chip = property(lambda self: not self.is_lite and self.num_cores == 1)

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


class _Units(NamedTuple):
    """What a TensorCore of a version is made of, beside the figures of its chip in `chips.CHIPS`."""
    chip: str
    generation: int
    mxu_column_size: int
    num_mxus: int
    narrow: tuple[str, ...] = ()        # dtypes of fewer than 16 bits that the matrix units multiply
    num_accumulators: int = 0
    smem: int = _MiB
    cmem: int = 0
    sparse_core: SparseCoreInfo | None = None


_INTS = "int8", "int4"
_V7X = _Units("tpu7x", 7, 256, 2, ("float8",), 128, sparse_core=SparseCoreInfo(2, 16, 16, 512 * _KiB))
_UNITS = {
    ChipVersion.TPU_V2: _Units("v2", 2, 128, 1, smem=16 * _KiB),
    ChipVersion.TPU_V3: _Units("v3", 3, 128, 2, smem=16 * _KiB),
    ChipVersion.TPU_V4: _Units("v4", 4, 128, 4, cmem=64 * _MiB),
    ChipVersion.TPU_V5E: _Units("v5e", 5, 128, 4, _INTS),
    ChipVersion.TPU_V5P: _Units("v5p", 5, 128, 4, _INTS, sparse_core=SparseCoreInfo(4, 16, 8, 512 * _KiB)),
    ChipVersion.TPU_V6E: _Units("v6e", 6, 256, 2, (*_INTS, "float8"),
                                sparse_core=SparseCoreInfo(2, 16, 8, 256 * _KiB)),
    ChipVersion.TPU_7: _V7X, ChipVersion.TPU_7X: _V7X}
_MEGACORE = ChipVersion.TPU_V4, ChipVersion.TPU_V5P     # whose two TensorCores may be one device


def get_tpu_info_for_chip(chip_version, num_tensor_cores_per_device):
    """The TpuInfo of devices of so many TensorCores; memories and rates are those of one.  ValueError for a
    version of which no figures are known, and for what no chip of it has.
    """
    units = _UNITS.get(chip_version)
    if units is None:
        raise ValueError(f"tpu.get_tpu_info_for_chip: no figures are known of a TPU {chip_version}")
    most = 2 if chip_version in _MEGACORE else 1
    if not 1 <= num_tensor_cores_per_device <= most:
        raise ValueError(f"tpu.get_tpu_info_for_chip: devices of a TPU {chip_version} have 1"
                         f"{' or 2 TensorCores' if most > 1 else ' TensorCore'}, not "
                         f"{num_tensor_cores_per_device}")
    chip = chips.CHIPS[units.chip]
    rates = {name: int(chip.peak[name] / chip.cores) for name in ("bfloat16", "int8", "float8")
             if name == "bfloat16" or name in units.narrow}
    return TpuInfo(
        chip_version=chip_version, generation=units.generation, num_cores=num_tensor_cores_per_device,
        mxu_column_size=units.mxu_column_size, num_mxus=units.num_mxus,
        num_accumulators=units.num_accumulators,
        vmem_capacity_bytes=chip.vmem // chip.cores, cmem_capacity_bytes=units.cmem,
        smem_capacity_bytes=units.smem, hbm_capacity_bytes=chip.memory // chip.cores,
        mem_bw_bytes_per_second=int(chip.bandwidth / chip.cores), bf16_ops_per_second=rates["bfloat16"],
        int8_ops_per_second=rates.get("int8", 0), fp8_ops_per_second=rates.get("float8", 0),
        int4_ops_per_second=2 * rates.get("int8", 0), sparse_core=units.sparse_core)


def get_tpu_info():
    """The TpuInfo of the default device.  ValueError where it is no TPU: `get_tpu_info_for_chip` needs none.
    """
    device = client.default_device()
    chip = chips.of_device(device)
    if chip is None or chip.platform != "tpu":
        raise ValueError(f"tpu.get_tpu_info: the default device, a {device.device_kind!r}, is no TPU that is "
                         "known: use tpu.get_tpu_info_for_chip(tpu.ChipVersion.TPU_V5E, 1), say")
    version = next(version for version, units in _UNITS.items() if units.chip == chip.name)
    return get_tpu_info_for_chip(version, chip.cores)
