"""FLOPs of the calls of libraries in an optimized HLO: products, convolutions, factorizations.

XLA's own analysis knows nothing of them.  Factorizations are counted by leading terms, as in Golub and Van
Loan, "Matrix computations" (4th edition, 2013): LU in section 3.2.6, Cholesky 4.2.5, QR and its Q 5.2.2 and
5.1.6, eigenvalues 7.5.6 and 8.3.3, singular values 8.6.3.  Those that iterate are counted so too, whatever
the library does.  A product of complex numbers is four of real ones.
"""
import math
import re

from .. import costs
from ..hlo_text import arrays, integers, modules


def library_flops(module, line):
    """FLOPs of a custom call; None for one that is not known, 0 for what only moves or compares.

    Args:
        module: a Module of hlo_text.
        line: its Instruction.
    """
    target = call_target(line)
    count = next((count for names, count in _COUNTS if re.search(names, target)), None)
    if count is None:
        return None
    lines = module.computations[line.computation]
    operands = [arrays(lines[name].shape)[0] for name in line.operands]
    results = arrays(line.shape)
    complex_too = count is not _convolution and results[0].dtype.startswith("c")
    return count(line, operands, results) * (4 if complex_too else 1)


def call_target(line):
    """The name of what a custom call calls."""
    found = re.search(r'custom_call_target="([^"]*)"', line.rest)
    return found[1] if found else "?"


def convolution_flops(line, x, w, y):
    """Two for each element that is multiplied and added; padding and gaps are left out.

    Args:
        line: the Instruction, with `dim_labels` and `window`.
        x: the Array of the image of the forward convolution.
        w: that of its kernel.
        y: that of its result.
    """
    image, kernel, result = re.match(r"(\w+)_(\w+)->(\w+)", line.attribute("dim_labels")).groups()
    window = dict(part.split("=") for part in (line.attribute("window") or "").split() if "=" in part)
    dims = sum(map(str.isdigit, image))

    def numbers(name, default):
        given = window[name].split("x") if name in window else [str(default)] * dims
        return [int(n.partition("_")[0]) for n in given]
    return costs.convolution(
        costs.Window(image, kernel, result, numbers("stride", 1), numbers("pad", 0), numbers("lhs_dilate", 1),
                     numbers("rhs_dilate", 1)), x.dims, w.dims, y.dims, y.dtype)


# Each: (the call, the Arrays of its operands and of its results) -> FLOPs.

def _gemm(line, operands, results):
    found = re.search(r'"lhs_contracting_dimensions":\[([^\]]*)\]', line.rest)
    dims = integers(found[1]) if found else [len(operands[0].dims) - 1]
    return 2 * results[0].size * math.prod(operands[0].dims[dim] for dim in dims)


def _solve(_line, operands, _results):
    """The triangular matrix has a FLOP for each of its entries and each column."""
    return operands[0].dims[-1] * operands[1].size


def _tridiagonal(_line, operands, _results):
    """Elimination of one entry below the diagonal, 3, and 5 for each right-hand side."""
    _, diagonal, _, columns = operands
    return 3 * diagonal.size + 5 * columns.size


def _of_matrix(formula):
    """A count by the size of the first operand: batches of (m, n)."""
    def count(line, operands, _results):
        *batch, m, n = operands[0].dims
        return math.prod(batch) * round(formula(line, m, n))
    return count


def _lu(m, n):
    k = min(m, n)
    return 2 * m * n * k - (m + n) * k * k + 2 * k ** 3 / 3


def _reflections(m, n, k):
    """Of k reflections, each one element shorter than the one before, and a matrix of m by n."""
    return 4 * m * n * k - 2 * (m + n) * k * k + 4 * k ** 3 / 3


def _make_q(_line, operands, _results):
    *batch, m, n = operands[0].dims
    return math.prod(batch) * round(_reflections(m, n, operands[1].dims[-1]))


def _svd(line, m, n):
    m, n = max(m, n), min(m, n)
    if _says(line, "compute_uv"):
        return 4 * m * m * n + 22 * n ** 3 if _says(line, "full_matrices") else 6 * m * n * n + 20 * n ** 3
    return 4 * m * n * n - 4 * n ** 3 / 3


def _says(line, option):
    return f"{option} = true" in line.rest


def _convolution(line, operands, results):
    target = call_target(line)
    if "BackwardInput" in target:
        return convolution_flops(line, results[0], operands[1], operands[0])
    if "BackwardFilter" in target:
        return convolution_flops(line, operands[0], results[0], operands[1])
    return convolution_flops(line, operands[0], operands[1], results[0])


_COUNTS = [
    (r"triangularSolve|trsm", _solve),
    (r"^__cublas", _gemm),
    (r"^__cudnn\$conv", _convolution),
    (r"potrf|cholesky", _of_matrix(lambda line, m, n: n ** 3 / 3)),
    (r"getrf", _of_matrix(lambda line, m, n: _lu(m, n))),
    (r"geqrf", _of_matrix(lambda line, m, n: _reflections(m, n, min(m, n)))),
    (r"orgqr|ungqr", _make_q),
    (r"gesvd|gesdd", _of_matrix(_svd)),
    (r"syev|heev", _of_matrix(lambda line, m, n: 9 * n ** 3)),
    (r"sytrd|hetrd", _of_matrix(lambda line, m, n: 4 * n ** 3 / 3)),
    (r"hybrid_eig|geev", _of_matrix(
        lambda line, m, n: (25 if _says(line, "left") or _says(line, "right") else 10) * n ** 3)),
    (r"gtsv", _tridiagonal),
    (r"\$TopK|lu_pivots_to_permutation|\$DeviceRadixSort|python_gpu_callback", lambda *_: 0),
]


def cost_of_gpu(found, text):
    """XLA's analysis of a program for a GPU, `found`, with what its calls of libraries take.

    XLA counts each call as minus one of everything.  Bytes are those of operands and results.
    """
    total = dict(found)
    total.pop("optimal_seconds", None)      # it is minus the number of calls
    for module in modules(text):
        for line in module.lines:
            if line.opcode != "custom-call":
                continue
            lines = module.computations[line.computation]
            read = sum(a.bytes for name in line.operands for a in arrays(lines[name].shape))
            written = sum(a.bytes for a in arrays(line.shape))
            counts = {"flops": library_flops(module, line) or 0, "bytes accessed": read + written,
                      "bytes accessedout{}": written}
            for name, count in counts.items():
                total[name] = total.get(name, 0) + 1 + count
    return total
