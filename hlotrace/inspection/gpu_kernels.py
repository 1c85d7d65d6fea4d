"""The kernels that XLA makes of a program for an NVIDIA GPU: their PTX, and what each takes of the chip.

XLA writes PTX while it compiles, where it is asked for a dump; NVIDIA's ptxas makes machine code of it and
says how many registers that needs and how many bytes it spills.
"""
import re
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from .communication import aligned
from .hlo_text import instruction_sources


class Kernel(NamedTuple):
    """One kernel; sizes are bytes."""
    name: str
    registers: int          # of a thread
    spilled: int            # stores and loads of a thread where registers do not suffice
    stack: int              # of a thread, with what is spilled
    shared: int             # of a block of threads, beside what is requested when it starts
    code: int
    where: str | None       # "train.py:12"
    op: str | None          # the path of named scopes and the operation


def options_for(folder):
    """Compiler options under which XLA writes PTX into a folder."""
    return {"xla_dump_to": str(folder), "xla_dump_emitter_re": ".*"}


def dumped(folder):
    """The PTX in a folder, a text for each module of kernels, in order."""
    def number(path):
        return [int(n) for n in re.findall(r"\d+", path.name)]
    texts = [path.read_text() for path in sorted(Path(folder).glob("*.ptx"), key=number)]
    return [text for text in texts if ".entry" in text]


def kernels(ptx, ptxas, hlo_text=""):
    """The Kernels of texts of PTX.

    Args:
        ptxas: the path of NVIDIA's assembler.
        hlo_text: the optimized HLO, which knows the lines that kernels are for.
    Raises:
        RuntimeError: that has what ptxas says, where it fails.
    """
    sources = {as_kernel(name): source for name, source in instruction_sources(hlo_text).items()}
    found = []
    for text in ptx:
        target = re.search(r"^\.target\s+(\w+)", text, re.M)
        with tempfile.TemporaryDirectory() as folder:
            source, cubin = Path(folder, "kernels.ptx"), Path(folder, "kernels.cubin")
            source.write_text(text)
            done = subprocess.run([ptxas, "-v", "-arch", target[1], "-o", cubin, source], capture_output=True,
                                  text=True)
            if done.returncode:
                raise RuntimeError(f"{ptxas} failed: {done.stderr.strip()}")
            code = code_sizes(cubin.read_bytes())
        found += [Kernel(name, *taken, code.get(name, 0), *sources.get(as_kernel(name), (None, None)))
                  for name, taken in said(done.stderr).items()]
    return found


def said(text):
    """What `ptxas -v` says: {kernel: (registers, spilled, stack, shared)}."""
    found = {}
    for part in re.split(r"Compiling entry function '", text)[1:]:
        def number(pattern, part=part):
            return sum(map(int, re.findall(pattern, part)))
        found[part.partition("'")[0]] = (
            number(r"Used (\d+) registers"), number(r"(\d+) bytes spill"), number(r"(\d+) bytes stack frame"),
            number(r"(\d+) bytes smem"))
    return found


def code_sizes(elf):
    """{kernel: bytes of its machine code} of a cubin: the sections `.text.KERNEL` of a 64-bit ELF file."""
    (start,), (size, count, names) = struct.unpack_from("<Q", elf, 0x28), struct.unpack_from("<3H", elf, 0x3A)
    # of a section's header: where its name is, its offset and its size
    sections = [struct.unpack_from("<I20xQQ", elf, start + i * size) for i in range(count)]
    table = sections[names][1]
    found = {}
    for name, _, length in sections:
        text = elf[table + name:elf.index(b"\0", table + name)].decode()
        if text.startswith(".text."):
            found[text.removeprefix(".text.")] = length
    return found


def as_kernel(name):
    """An instruction's name as kernels have it."""
    return re.sub(r"\W", "_", name)


def table(found):
    """Kernels as an aligned table with a line of totals; "no kernels" if there are none."""
    if not found:
        return "no kernels"
    rows = [("kernel", "registers", "spilled", "stack", "shared", "code", "line", "operation")]
    rows += [(k.name, *(f"{n:,}" for n in k[1:6]), k.where or "-", k.op or "-") for k in found]
    spilling = sum(k.spilled > 0 for k in found)
    return "\n".join([*aligned(rows, right=range(1, 6)),
                      f"total: {len(found)} kernels, {sum(k.code for k in found):,} bytes of code; "
                      f"{spilling or 'none'} spill{'s' * (spilling == 1)}"])
