"""Write docs/chips.md, the page of the chips that programs can be compiled for, from their table.

    python tools/chips.py
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hlotrace.runtime.devices import gpu_targets  # noqa: E402 - after the path
from hlotrace.runtime.devices.chips import CHIPS  # noqa: E402

PAGE = ROOT / "docs" / "chips.md"
DTYPES = ("float64", "float32", "tf32", "bfloat16", "float16", "float8", "int8")
TEXT = """# GPUs and TPUs that are not here

Written by `tools/chips.py` from `hlotrace/runtime/devices/chips.py`; a test compares.

`hlotrace.topologies.get_topology_desc(NAME)` gives devices that programs are compiled for, by the real compilers, on a
machine that has none of them. They may be in meshes and shardings; what is compiled for them can be looked into
(`as_text()`, `memory_analysis()`, `cost_analysis()`), serialized for where the chips are, and not called.

| names | what | needs, of the version that belongs to jaxlib |
|---|---|---|
| `v5e:2x4`, `v5p:2x2x2`, ... | TPU chips in a torus of that shape; `8xv5e:16x16` are eight such slices | `libtpu` |
| `h100`, `h100:8`, `h100:2x8` | one GPU; GPUs of a host; hosts x GPUs | the CUDA plugin, `ptxas` and libdevice |

What is missing is said with the line to type. `make gpu` installs the wheels for GPUs into the environment:

```text
{install}
```

JAX's own spelling works too: `get_topology_desc(platform="cuda", target_config=TEXT, topology="1x2x8")`, partitions x hosts x
GPUs, where TEXT is XLA's `GpuTargetConfigProto`. From the shell, `hlotrace dump FUNCTION TYPES --platform h100:8` prints any
stage; `--stage ptx` the kernels, with the registers of each, the bytes that it spills, its shared memory and its code.

For GPUs the compiler is XLA's and NVIDIA's, whole: partitioning, fusion, Triton, LLVM, `ptxas`. What it cannot do without the
device is to try: no kernel is tuned, so nothing of it says how fast. A program whose arguments, results and temporaries are larger
than the memory of a chip is an error. `cost_analysis()` is XLA's count of the optimized HLO, with a formula for each call of
cuBLAS, cuDNN, cuSOLVER and cuSPARSE (`hlotrace/inspection/planning/library_calls.py`).

## The chips

Peak rates are those of dense products; FLOP/s, or operations/s of integers, in units of 10^12. A float32 product on a TPU is
six products of bfloat16 at full precision, one at the default. Links are of one chip and in one direction: to the chips of its pod or
host, all links together, and to other hosts. A dash: its maker does not say, or it has no such units.

{memory}

{peak}

## Where the figures are from

Every figure has a source; where it names one that a table above has a dash for, the source says nothing of it. On 25 and 26
November 2026 those from OpenXLA and from Google's pages of v3, v4, v5e, v5p, v6e and 7x were compared with the pages, which have two
bandwidths of v5e, 819 GB/s and 800 GiB/s. Rates of the V100, A100 and L4, and the bandwidths of their memory and links, are as others
quote NVIDIA's data sheets, without sparsity; of the B200, some quote 40 for float64, 80 for float32 and 8,000 GB/s. Networks of
GPUs, VMEM, and all of v2 were not compared. The memory of the L4 has no page: a device reported it.

{sources}
"""


def row(*cells):
    return f"| {' | '.join(map(str, cells))} |"


def number(value, unit=1.0):
    return "-" if value is None else f"{value / unit:,.4g}".replace("e+03", "000")


def links(chip):
    if not chip.torus:
        return "a switch" if chip.link_bandwidth > 1e11 else "PCIe"
    return f"torus, {chip.torus} dimensions"


def linked(source):
    return re.sub(r"https://[^\s;]+", r"<\g<0>>", source)


def page():
    chips = CHIPS.values()
    memory = [row("chip", "also", "its devices say", "cores", "memory, GiB", "VMEM, MiB", "bandwidth, GB/s", "links, GB/s", "they are",
                  "network, GB/s"), row(*["---"] * 10)]
    peak = [row("chip", *DTYPES, "float32 outside of matrix units"), row(*["---"] * (len(DTYPES) + 2))]
    for chip in chips:
        memory.append(row(
            f"`{chip.name}`", ", ".join(f"`{name}`" for name in chip.aliases) or "-", chip.kind, chip.cores,
            number(chip.memory, 1 << 30), number(chip.vmem or None, 1 << 20), number(chip.bandwidth, 1e9), number(chip.link_bandwidth, 1e9), links(chip),
            number(chip.network, 1e9)))
        peak.append(row(f"`{chip.name}`", *(number(chip.peak.get(dtype), 1e12) for dtype in DTYPES), number(chip.vector, 1e12)))
    sources = [f"* `{chip.name}`: " + "; ".join(
        f"{', '.join(figures.split()).replace('_', ' ')}: {linked(source)}" for figures, source in chip.sources.items()) + "."
        for chip in chips]
    return TEXT.format(install=gpu_targets.install_line(None).replace(gpu_targets.binding.jaxlib_version, "$JAXLIB"),
                       memory="\n".join(memory), peak="\n".join(peak), sources="\n".join(sources))


def main():
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
