"""How exactly a contraction multiplies: `Precision`, `DotAlgorithm`, its presets, and how users write them;
and how exactly a function is computed: `AccuracyMode` and `Tolerance`.
"""
import enum
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...core import dtypes
from ...core.config import config


class _Named(enum.Enum):
    def __repr__(self):
        return f"{type(self).__name__}.{self.name}"

    def __str__(self):
        return self.name


class Precision(_Named):
    """How many passes an accelerator spends on a product of float32; a CPU always uses full float32."""
    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value):
        """By the strings that `precision=` takes, or None."""
        found = _BY_NAME.get("default" if value is None else str(value))
        return found if isinstance(found, cls) else None


class DotAlgorithm(NamedTuple):
    """The algorithm of a dot spelled out: dtypes of the products and of the sum, and how operands are split.

    Fields are those of StableHLO's `dot_algorithm`; the dtypes are anything that names a dtype.
    """
    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


# preset -> (element type of the products, element type of the sum, products per element, sum may be
# imprecise)
_PRESETS = {
    "DEFAULT": None,
    "ANY_F8_ANY_F8_F32": ("f8E5M2", "f32", 1, False),
    "ANY_F8_ANY_F8_F32_FAST_ACCUM": ("f8E5M2", "f32", 1, True),
    "ANY_F8_ANY_F8_ANY": ("f8E5M2", "f32", 1, False),
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM": ("f8E5M2", "f32", 1, True),
    "F16_F16_F16": ("f16", "f16", 1, False),
    "F16_F16_F32": ("f16", "f32", 1, False),
    "BF16_BF16_BF16": ("bf16", "bf16", 1, False),
    "BF16_BF16_F32": ("bf16", "f32", 1, False),
    "BF16_BF16_F32_X3": ("bf16", "f32", 3, False),
    "BF16_BF16_F32_X6": ("bf16", "f32", 6, False),
    "BF16_BF16_F32_X9": ("bf16", "f32", 9, False),
    "TF32_TF32_F32": ("tf32", "f32", 1, False),
    "TF32_TF32_F32_X3": ("tf32", "f32", 3, False),
    "F32_F32_F32": ("f32", "f32", 1, False),
    "F64_F64_F64": ("f64", "f64", 1, False),
}
DotAlgorithmPreset = _Named("DotAlgorithmPreset", list(_PRESETS), start=0, module=__name__)
DotAlgorithmPreset.__doc__ = ("Named dot algorithms: lhs type, rhs type, type of the sum, and the number of "
                              "products.")

_BY_NAME = {
    **dict.fromkeys(("highest", "float32"), Precision.HIGHEST),
    **dict.fromkeys(("high", "bfloat16_3x", "tensorfloat32"), Precision.HIGH),
    **dict.fromkeys(("default", "bfloat16", "fastest"), Precision.DEFAULT),
    **{preset.name: preset for preset in DotAlgorithmPreset},
}
_DTYPES = {mlir: dtype for dtype, mlir in dtypes.SUPPORTED.items()}


def canonical_precision(precision, algorithms=True):
    """None, a pair of Precision, a DotAlgorithmPreset or a DotAlgorithm, from what a user gave.

    None takes the option jax_default_matmul_precision.  With `algorithms=False` (convolutions, which have
    none) an algorithm is the default precision.

    Raises:
        ValueError: for anything else.
    """
    given = config.jax_default_matmul_precision if precision is None else precision
    if given is None:
        return None
    if type(given) in (tuple, list) and len(given) == 2:
        pair = tuple(_one(p, given) for p in given)
        if all(type(p) is Precision for p in pair):
            return pair
        raise _unknown(given)
    found = _one(given, given)
    if type(found) is Precision:
        return found, found
    if found is DotAlgorithmPreset.DEFAULT:
        return Precision.DEFAULT, Precision.DEFAULT
    return found if algorithms else None


def _one(value, given):
    if value is None:
        return Precision.DEFAULT
    found = _BY_NAME.get(value) if isinstance(value, str) else value
    if not isinstance(found, (Precision, DotAlgorithm, DotAlgorithmPreset)):
        raise _unknown(given)
    return found


def _unknown(given):
    return ValueError("Precision argument must be None, one of the strings "
                      f"{', '.join(map(repr, _BY_NAME))}, a lax.Precision, a pair of these, a "
                      f"lax.DotAlgorithmPreset or a lax.DotAlgorithm; got {given!r}")


def swapped(precision):
    """The precision of the product with its operands exchanged."""
    if type(precision) is tuple:
        return precision[::-1]
    if type(precision) is DotAlgorithm:
        p = precision
        return p._replace(lhs_precision_type=p.rhs_precision_type, rhs_precision_type=p.lhs_precision_type,
                          lhs_component_count=p.rhs_component_count,
                          rhs_component_count=p.lhs_component_count)
    return precision


def algorithm_of(precision):
    """(lhs type, rhs type, sum type, lhs components, rhs components, products, imprecise) or None.

    The types are MLIR element types.
    """
    if isinstance(precision, DotAlgorithmPreset) and _PRESETS[precision.name]:
        element, total, products, imprecise = _PRESETS[precision.name]
        return element, element, total, 1, 1, products, imprecise
    if type(precision) is DotAlgorithm:
        return (*(dtypes.SUPPORTED[dtypes.as_dtype(t)] for t in precision[:3]), *precision[3:])
    return None


def storage_dtype(element, dtype):
    """The dtype in which an operand of `dtype` is handed to an algorithm that multiplies `element`s.
    ValueError for an algorithm of float8 and another dtype, which would lose most of its digits."""
    if element.startswith("f8") and dtype in dtypes.SMALL_FLOATS:
        return dtype
    if element.startswith("f8"):
        raise ValueError("an algorithm of products of float8 requires both inputs to have float8 dtypes, got "
                         f"{dtype.name}: cast with .astype(jnp.float8_e4m3fn)")
    if element in ("bf16", "tf32") and (dtype == dtypes.float32 or dtypes.SUPPORTED[dtype] == element):
        return dtype
    return dtypes.float32 if element in ("bf16", "tf32") else _DTYPES[element]


def sum_dtype(element):
    return _DTYPES[element]


class AccuracyMode(enum.Enum):
    """How exactly a function is to be computed."""
    HIGHEST = 1
    DEFAULT = 2


@dataclass(frozen=True)
class Tolerance:
    """The largest error that a function may have: absolute, relative, in units in the last place.

    Raises:
        ValueError: for a negative one, or if all are 0.
    """
    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self):
        if min(self.atol, self.rtol, self.ulps) < 0:
            raise ValueError(f"Tolerances must be non-negative, got {self}")
        if not (self.atol or self.rtol or self.ulps):
            raise ValueError("At least one of atol, rtol, or ulps must be set.")


def result_accuracy(accuracy):
    """An operation's attribute for an accuracy that is not the default one: text, empty for None."""
    if accuracy is None or accuracy is AccuracyMode.DEFAULT:
        return ""
    mode, errors = "HIGHEST", ""
    if type(accuracy) is Tolerance:
        mode, errors = "TOLERANCE", (f"atol = {accuracy.atol:.17e}, rtol = {accuracy.rtol:.17e}, "
                                     f"ulps = {int(accuracy.ulps)}, ")
    return (f" {{result_accuracy = #stablehlo.result_accuracy<{errors}"
            f"mode = #stablehlo.result_accuracy_mode<{mode}>>}}")
