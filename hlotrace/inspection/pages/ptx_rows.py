"""PTX as rows: a kernel, and under it its lines."""
import re

from ..gpu_kernels import as_kernel
from ..hlo_text import modules
from .document import Row

_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_OPERATION = re.compile(r"(?:@!?%\w+\s+)?([.\w]+)")


def ptx_rows(texts, kernels, hlo_text):
    """The Rows of texts of PTX; a kernel's line is that of the instruction which is it.

    Args:
        texts: PTX, a text for each module of kernels.
        kernels: the Kernels of `gpu_kernels`, for what each takes.
        hlo_text: the optimized HLO.
    """
    taken = {k.name: k for k in kernels}
    sources = {as_kernel(line.name): module.location(line)
               for module in modules(hlo_text) for line in module.lines}
    rows, inside = [], False
    for line in "\n".join(texts).splitlines():
        if entry := _ENTRY.search(line):
            source, path = sources.get(as_kernel(entry[1]), (None, None))
            rows.append(Row(0, "kernel", f"kernel {entry[1]}", holds="fusion", source=source, path=path or "",
                            note=_words(taken.get(entry[1]))))
            inside = True
        text = line.strip()
        if inside and text:
            operation = _OPERATION.match(text)
            rows.append(Row(1, operation[1] if operation else "", text))
        inside = inside and not line.startswith("}")
    return rows


def _words(kernel):
    """What a Kernel takes."""
    if kernel is None:
        return ""
    return (f"{kernel.registers} registers, {kernel.spilled} bytes spilled, {kernel.shared} of shared "
            f"memory, {kernel.code} of code")
