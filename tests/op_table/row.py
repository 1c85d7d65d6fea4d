"""What a row of the op table says, and how its samples take a dtype."""
import dataclasses
from collections.abc import Callable

import ml_dtypes
import numpy as np

from hlotrace.core.dtypes import is_inexact
from hlotrace.core.primitive import PRIMITIVES

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {"f": (np.float16, BFLOAT16, np.float32, np.float64), "F": (np.float32, np.float64),
          "c": (np.complex64, np.complex128), "i": (np.int8, np.int32, np.int64), "u": (np.uint8, np.uint32),
          "b": (np.bool_,)}
BASE = {"f": np.float32, "F": np.float32, "c": np.complex64, "i": np.int32, "u": np.uint32, "b": np.bool_}


@dataclasses.dataclass(frozen=True)
class Row:
    """One use of a primitive.

    primitive: its name; `variant` tells the rows of one primitive apart
    fun: a function of arrays, to an array or a list of arrays
    ref: the same with NumPy.  Floating-point samples come as float64 or complex128, unless `native`
    args: samples.  Those of float64 take each dtype of `kinds` in turn, others keep theirs
    kinds: letters of `DTYPES`; the first gives the dtype of most checks
    smooth: the operands to differentiate with respect to; None means all that are inexact
    derivative: what is checked: "twice", "forward" (jvp only), "reverse" (vjp only), "zero" (rules stop it),
        "refused" (with an error) or "none"
    smooth_kinds: the letters of `kinds` for which it is
    linear: is it linear in its smooth operands, taken together?
    mapped: the operands that vmap may map; None means all
    rtol: relative error allowed to float64 results
    bad: calls that must fail, as (function of nothing, exception class, words)
    """
    primitive: str
    fun: Callable
    ref: Callable
    args: tuple
    kinds: str = "f"
    variant: str = ""
    smooth: tuple | None = None
    mapped: tuple | None = None
    derivative: str = "twice"
    smooth_kinds: str = "fFc"
    linear: bool = False
    native: bool = False
    rtol: float = 1e-12
    bad: tuple = ()

    @property
    def name(self):
        return f"{self.primitive}-{self.variant}" if self.variant else self.primitive

    @property
    def dtypes(self):
        """The dtypes that the samples take; (None,) if they keep theirs."""
        return [np.dtype(d) for kind in self.kinds for d in DTYPES[kind]] or [None]

    @property
    def base(self):
        return np.dtype(BASE[self.kinds[0]]) if self.kinds else None

    def sample(self, dtype):
        """The operands, those of float64 as `dtype`."""
        return [cast(x, dtype) if x.dtype == np.float64 and dtype is not None else x for x in self.args]

    def expect(self, args):
        """The reference results, as a list."""
        return listed(self.ref(*(x if self.native else widened(x) for x in args)))

    def smooth_operands(self, args):
        where = range(len(args)) if self.smooth is None else self.smooth
        return [i for i in where if is_inexact(args[i].dtype)]


def widened(x):
    """Floating-point values at full width, others as they are."""
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) if is_inexact(x.dtype) else x


def cast(x, dtype):
    """Samples as another dtype: complex numbers lie beside the real line, integers are rounded."""
    if dtype.kind == "c":
        return (x * (1 + 0.5j)).astype(dtype)
    if dtype.kind == "b":
        return np.rint(x) % 2 != 0
    if dtype.kind in "iu":
        return (np.abs(np.rint(x)) if dtype.kind == "u" else np.rint(x)).astype(dtype)
    return x.astype(dtype)


def listed(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


# --- what rows are written with ---------------------------------------------------------------------------------

_rng = np.random.default_rng(0)


def between(low, high, *shape):
    """Different numbers, spread over the interval."""
    n = int(np.prod(shape))
    places = (np.arange(n) + _rng.uniform(0.2, 0.8, n)) / max(n, 1)
    return (low + (high - low) * _rng.permutation(places)).reshape(shape)


def integers(low, high, *shape):
    """Whole numbers, as float64: they take the dtype of the row."""
    return _rng.integers(low, high, shape).astype(np.float64)


def fixed(values, dtype=np.int32):
    """An operand that keeps its dtype."""
    return np.array(values, dtype)


def op(name, /, **params):
    """The primitive as a function of its operands."""
    primitive = PRIMITIVES[name]
    return lambda *args: primitive.bind(*args, **params)


def fails(error, words, name, *args, **params):
    """A call of a primitive that must fail.  A tuple stands for zeros of that shape."""
    operands = [np.zeros(a, np.float32) if type(a) is tuple else a for a in args]
    return (lambda: PRIMITIVES[name].bind(*operands, **params)), error, words
