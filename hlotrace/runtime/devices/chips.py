"""What chips are: memory, bandwidth, peak rates, links, each figure with its source.

Rates are those of dense arithmetic at the boost clock, where data sheets also give twice as much for sparse
matrices.  Links are counted in one direction, where data sheets add up both.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

GiB = 1 << 30
TERA = 1e12


@dataclass(frozen=True, kw_only=True)
class Cuda:
    """What XLA's compiler asks of an NVIDIA GPU beyond the figures of its Chip."""
    capability: tuple[int, int]
    lanes: int                      # float32 units of a core
    clock_ghz: float
    l2_bytes: int
    core_threads: int = 2048        # most threads that a core holds
    shared_bytes: int               # shared memory of a core
    block_shared_bytes: int         # the most of it that a block of threads can ask for


@dataclass(frozen=True, kw_only=True)
class Chip:
    """A chip, or the part of one that is a device to programs: those of several TPUs are TensorCores.

    Attributes:
        name: what topologies call it.
        kind: `device_kind` of its devices.
        platform: "tpu" or "cuda".
        memory: bytes.
        bandwidth: bytes/s between memory and cores.
        peak: FLOP/s (operations/s of integers) of the matrix units by dtype; "tf32" is float32 whose products
            are of 10 bits, "float8" every type of 8 bits.
        vector: FLOP/s in float32 of other units; None where the maker does not say.
        cores: TensorCores of a TPU, streaming multiprocessors of a GPU.
        link_bandwidth: bytes/s that the chip can send over all its links to chips of its pod or host.
        torus: in how many dimensions links make a torus; 0 where a switch joins every chip of a host to
            every other.
        network: bytes/s that the chip can send to other pods or hosts, of the maker's own machines; None
            where the maker does not say.
        vmem: bytes of memory beside the cores that compilers keep values in; 0 where there is none.
        cuda: of NVIDIA's.
        sources: the figures that a source gives, separated by spaces, with that source.
    """
    name: str
    kind: str
    platform: str
    memory: int
    bandwidth: float
    peak: Mapping[str, float]
    vector: float | None
    cores: int
    link_bandwidth: float
    torus: int
    network: float | None
    aliases: tuple[str, ...] = ()
    vmem: int = 0
    cuda: Cuda | None = None
    sources: Mapping[str, str]

    def source(self, figure: str) -> str:
        """Where a figure is from: maker's document and year.

        >>> from hlotrace.runtime.devices import chips
        >>> chips.CHIPS["v5e"].source("bandwidth")
        'Google Cloud documentation (2025), https://docs.cloud.google.com/tpu/docs/v5e'
        """
        return next(source for figures, source in self.sources.items() if figure in figures.split())

    def peak_of(self, dtype: Any) -> float:
        """FLOP/s of matrix products of a dtype: its own, or of the next wider type that there are units for.

        Args:
            dtype: a dtype or its name, "tf32" among them.
        Raises:
            ValueError: for a type that no unit of the chip multiplies.

        >>> from hlotrace.runtime.devices import chips
        >>> chips.CHIPS["a100-40gb"].peak_of("float8_e4m3fn") / 1e12        # no units for float8
        312.0
        """
        name = str(dtype)
        family = next((family for family, names in _FAMILIES.items() if name.startswith(names)), name)
        for wider in _WIDER.get(family, (family,)):
            if wider in self.peak:
                return self.peak[wider]
        raise ValueError(f"{self.name}: no rate is known for products of {name}; there are those of "
                         f"{', '.join(self.peak)}")


_FAMILIES = {
    "float8": ("float8", "float6_", "float4_"),
    "int8": ("int8", "uint8", "int4", "uint4", "int2", "uint2"),
    "float32": ("complex64",),
    "float64": ("complex128",),
}
_WIDER = {
    "float8": ("float8", "bfloat16", "float16", "float32"),
    "int8": ("int8", "bfloat16", "float16", "float32"),
    "bfloat16": ("bfloat16", "float32"),
    "float16": ("float16", "bfloat16", "float32"),
    "tf32": ("tf32", "float32"),
}

# TPUs.  Their matrix units multiply bfloat16: a float32 product of full precision is six products of bfloat16
# (Henry, Tang and Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for higher-precision
# computations", 2019).
_JOUPPI_2021 = ("Jouppi et al., \"Ten lessons from three generations shaped Google's TPUv4i\", ISCA (2021), "
                "table 1, https://doi.org/10.1109/ISCA52012.2021.00010")
_JOUPPI_2023 = ("Jouppi et al., \"TPU v4: an optically reconfigurable supercomputer for machine learning\", "
                "ISCA (2023), table 4, https://arxiv.org/abs/2304.01433")

_HARDWARE = ("JAX documentation, \"TPU hardware reference\" (2026), "
             "https://docs.jax.dev/en/latest/pallas/tpu/hardware.html")


def _cloud(page: str) -> str:
    return f"Google Cloud documentation (2025), https://docs.cloud.google.com/tpu/docs/{page}"


def _tpu(name: str, kind: str, **figures: Any) -> Chip:
    peak = figures.pop("peak")
    sources = figures.pop("sources") | {"vmem": _HARDWARE}
    return Chip(name=name, kind=kind, platform="tpu", vector=None, sources=sources,
                peak=peak | {"float32": peak["bfloat16"] / 6}, **figures)


# NVIDIA GPUs.  Memory and the figures that compilers ask for are those a device reports.
_DEVICE = ("cudaGetDeviceProperties, in the target configurations of OpenXLA (2026), "
           "https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs")

_H100 = ("NVIDIA, H100 Tensor Core GPU architecture (2023), table 2, "
         "https://resources.nvidia.com/en-us-hopper-architecture/nvidia-h100-tensor-c")
_CUDA_GUIDE = ("NVIDIA, CUDA programming guide (2024), "
               "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions")


def _dgx(name: str, year: int, gigabits: int) -> str:
    return (f"NVIDIA, DGX {name} ({year}): {gigabits} Gb/s a GPU, "
            f"https://docs.nvidia.com/dgx/dgx{name.lower()}-user-guide/")


def _gpu(name: str, kind: str, **figures: Any) -> Chip:
    return Chip(name=name, kind=kind, platform="cuda", torus=0, **figures)


_AMPERE = dict(
    cores=108, vector=19.5 * TERA, link_bandwidth=300e9, network=25e9,
    peak={"float64": 19.5 * TERA, "float32": 19.5 * TERA, "tf32": 156 * TERA, "bfloat16": 312 * TERA,
          "float16": 312 * TERA, "int8": 624 * TERA},
    cuda=Cuda(capability=(8, 0), lanes=64, clock_ghz=1.41, l2_bytes=40 << 20, shared_bytes=164 << 10,
              block_shared_bytes=163 << 10),
    sources={"memory bandwidth cores cuda": _DEVICE,
             "peak vector link_bandwidth torus":
                  "NVIDIA, A100 (2021), https://www.nvidia.com/en-us/data-center/a100/",
             "network": _dgx("A100", 2021, 200)})
_HOPPER = dict(
    cores=132, vector=66.9 * TERA, link_bandwidth=450e9, network=50e9,
    peak={"float64": 66.9 * TERA, "float32": 66.9 * TERA, "tf32": 494.7 * TERA, "bfloat16": 989.4 * TERA,
          "float16": 989.4 * TERA, "float8": 1978.9 * TERA, "int8": 1978.9 * TERA},
    cuda=Cuda(capability=(9, 0), lanes=128, clock_ghz=1.98, l2_bytes=50 << 20, shared_bytes=228 << 10,
              block_shared_bytes=227 << 10),
    sources={"memory bandwidth cores cuda": _DEVICE,
             "peak vector link_bandwidth torus": _H100,
             "network": _dgx("H100", 2024, 400)})

_ALL = (
    _tpu("v2", "TPU v2", memory=16 * GiB, vmem=32 << 20, bandwidth=700e9, peak={"bfloat16": 46 * TERA},
         cores=2, torus=2,
         link_bandwidth=248e9, network=None,
         sources={"memory bandwidth peak vector cores link_bandwidth torus network": _JOUPPI_2021}),
    _tpu("v3", "TPU v3", memory=32 * GiB, vmem=32 << 20, bandwidth=900e9, peak={"bfloat16": 123 * TERA},
         cores=2, torus=2,
         link_bandwidth=280e9, network=None,
         sources={"memory bandwidth peak vector cores torus network": _cloud("v3"),
                  "link_bandwidth": _JOUPPI_2023}),
    _tpu("v4", "TPU v4", memory=32 * GiB, vmem=32 << 20, bandwidth=1200e9, cores=2, torus=3,
         link_bandwidth=300e9,
         peak={"bfloat16": 275 * TERA, "int8": 275 * TERA}, network=None,
         sources={"memory bandwidth peak vector cores torus network": _cloud("v4"),
                  "link_bandwidth": _JOUPPI_2023}),
    _tpu("v5e", "TPU v5 lite", memory=16 * GiB, vmem=128 << 20, bandwidth=819e9, cores=1, torus=2,
         link_bandwidth=200e9,
         peak={"bfloat16": 197 * TERA, "int8": 393 * TERA}, network=3.125e9, aliases=("v5litepod",),
         sources={"memory bandwidth peak vector cores torus link_bandwidth network": _cloud("v5e")}),
    _tpu("v5p", "TPU v5", memory=95 * GiB, vmem=128 << 20, bandwidth=2765e9, cores=2, torus=3,
         link_bandwidth=600e9,
         peak={"bfloat16": 459 * TERA, "float8": 459 * TERA, "int8": 918 * TERA}, network=6.25e9,
         sources={"memory bandwidth vector cores torus link_bandwidth network": _cloud("v5p"),
                  "peak": _cloud("v5p") + "; int8: Google Cloud (2023), https://cloud.google.com/blog/"
                          "products/ai-machine-learning/introducing-cloud-tpu-v5p-and-ai-hypercomputer"}),
    _tpu("v6e", "TPU v6 lite", memory=32 * GiB, vmem=128 << 20, bandwidth=1638e9, cores=1, torus=2,
         link_bandwidth=400e9,
         peak={"bfloat16": 918 * TERA, "float8": 918 * TERA, "int8": 1836 * TERA}, network=12.5e9,
         sources={"memory bandwidth peak vector cores torus link_bandwidth network": _cloud("v6e")}),
    _tpu("tpu7x", "TPU7x", memory=192 * GiB, vmem=128 << 20, bandwidth=7380e9, cores=2, torus=3,
         link_bandwidth=600e9, peak={"bfloat16": 2307 * TERA, "float8": 4614 * TERA}, network=12.5e9,
         aliases=("7x", "v7x"),
         sources={"memory bandwidth peak vector cores torus link_bandwidth network":
                  _cloud("tpu7x")}),
    _gpu("v100", "Tesla V100-SXM2-16GB", memory=16935682048, bandwidth=898048e6, cores=80,
         vector=15.7 * TERA, link_bandwidth=150e9, network=6.25e9,
         peak={"float64": 7.8 * TERA, "float32": 15.7 * TERA, "float16": 125 * TERA},
         cuda=Cuda(capability=(7, 0), lanes=64, clock_ghz=1.53, l2_bytes=6 << 20, shared_bytes=96 << 10,
                   block_shared_bytes=96 << 10),
         sources={"memory bandwidth cores cuda": _DEVICE,
                  "peak vector link_bandwidth torus":
                  "NVIDIA, V100 (2020), https://www.nvidia.com/en-us/data-center/v100/",
                  "network": "NVIDIA, DGX-1 (2018): four links of 100 Gb/s for eight GPUs, "
                             "https://docs.nvidia.com/dgx/dgx1-user-guide/"}),
    _gpu("a100-40gb", "NVIDIA A100-SXM4-40GB", memory=42331013120, bandwidth=1555.2e9, **_AMPERE),
    _gpu("a100-80gb", "NVIDIA A100-SXM4-80GB", memory=85100068864, bandwidth=2039.04e9, aliases=("a100",),
         **_AMPERE),
    _gpu("l4", "NVIDIA L4", memory=22731 << 20, bandwidth=300e9, cores=58, vector=30.3 * TERA,
         link_bandwidth=32e9, network=None,
         peak={"float64": .473 * TERA, "float32": 30.3 * TERA, "tf32": 60 * TERA, "bfloat16": 121 * TERA,
               "float16": 121 * TERA, "float8": 242.5 * TERA, "int8": 242.5 * TERA},
         cuda=Cuda(capability=(8, 9), lanes=128, clock_ghz=2.04, l2_bytes=48 << 20, core_threads=1536,
                   shared_bytes=100 << 10, block_shared_bytes=99 << 10),
         sources={"bandwidth peak vector link_bandwidth torus network":
                  "NVIDIA, L4 (2023), https://www.nvidia.com/en-us/data-center/l4/; float64: a 64th of "
                  "float32, " + _CUDA_GUIDE,
                  "cores": "7,424 CUDA cores (the data sheet), 128 of them a core, " + _CUDA_GUIDE,
                  "memory": "cudaGetDeviceProperties, as PyTorch reports it: 22,731 MiB (2025)",
                  "cuda": "limits by compute capability, " + _CUDA_GUIDE}),
    _gpu("h100", "NVIDIA H100 80GB HBM3", memory=84942979072, bandwidth=3352.32e9, aliases=("h100-80gb",),
         **_HOPPER),
    _gpu("h200", "NVIDIA H200", memory=151397597184, bandwidth=4800e9, **_HOPPER),
    _gpu("b200", "NVIDIA B200", memory=191514411008, bandwidth=7672.32e9, cores=148, vector=75 * TERA,
         link_bandwidth=900e9, network=50e9,
         peak={"float64": 37 * TERA, "float32": 75 * TERA, "tf32": 1125 * TERA, "bfloat16": 2250 * TERA,
               "float16": 2250 * TERA, "float8": 4500 * TERA, "int8": 4500 * TERA},
         cuda=Cuda(capability=(10, 0), lanes=128, clock_ghz=1.965, l2_bytes=132644864, shared_bytes=228 << 10,
                   block_shared_bytes=227 << 10),
         sources={"memory bandwidth cores cuda": _DEVICE,
                  "peak vector link_bandwidth torus":
                  "NVIDIA, HGX B200 (2025), https://www.nvidia.com/en-us/data-center/hgx/",
                  "network": _dgx("B200", 2024, 400)}),
)
CHIPS: dict[str, Chip] = {chip.name: chip for chip in _ALL}
_BY_NAME = CHIPS | {alias: chip for chip in _ALL for alias in chip.aliases}
_BY_KIND = {chip.kind: chip for chip in _ALL}


def find(name: str) -> Chip | None:
    """The chip of a name, in any case; None where there is none.

    >>> from hlotrace.runtime.devices import chips
    >>> chips.find("H100").memory, chips.find("a100").name
    (84942979072, 'a100-80gb')
    """
    return _BY_NAME.get(name.lower())


def of_device(device: Any) -> Chip | None:
    """The chip that a device is, its share of one where a chip is several devices; None for one unknown.

    Libtpu makes a device of each TensorCore of v2, v3, v4 and 7x, and one of both of v5p.
    """
    chip = _BY_KIND.get(device.device_kind)
    if chip is None or chip.platform != "tpu" or device.num_cores == chip.cores:
        return chip
    part = device.num_cores / chip.cores
    return replace(
        chip, memory=int(chip.memory * part), vmem=int(chip.vmem * part),
        bandwidth=chip.bandwidth * part, cores=device.num_cores,
        peak={dtype: rate * part for dtype, rate in chip.peak.items()},
        link_bandwidth=chip.link_bandwidth * part, network=chip.network and chip.network * part)
