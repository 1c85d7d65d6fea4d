"""NumPy values as MLIR attributes: `dense<...>`."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes

_LIST_LIMIT = 64     # elements up to which a constant is listed rather than given as bytes


def dense(value: np.ndarray) -> str:
    """The text of a `dense` attribute (without its type) that holds `value` exactly."""
    flat = value.reshape(-1)
    if value.size == 0:
        return "dense<>"
    if value.ndim == 0 or value.size > 1 and _all_equal(flat):
        return f"dense<{element(flat[0], value.dtype)}>"
    byte_sized = not (value.dtype == np.bool_ or value.dtype in dtypes.SMALL_INTS
                      or value.dtype.name.startswith("float4"))
    if value.size > _LIST_LIMIT and byte_sized:
        return f'dense<"0x{np.ascontiguousarray(value).tobytes().hex().upper()}">'
    return f"dense<{_nested(value)}>"


def _all_equal(flat: np.ndarray) -> bool:
    data = np.ascontiguousarray(flat).view(np.uint8).reshape(flat.size, -1)
    return bool((data == data[0]).all())


def _nested(value: np.ndarray) -> str:
    if value.ndim == 0:
        return element(value[()], value.dtype)
    return f"[{', '.join(_nested(v) for v in value)}]"


def element(x: Any, dtype: Any) -> str:
    """The text of one number of a dtype."""
    if dtype == np.bool_:
        return "true" if x else "false"
    if dtype.kind == "c":
        part = dtypes.real_of(dtype)
        return f"({element(part.type(x.real), part)}, {element(part.type(x.imag), part)})"
    if dtypes.is_float(dtype):
        as_float = float(x)
        if not np.isfinite(as_float):
            return "0x" + np.array(x, dtype).tobytes()[::-1].hex().upper()
        text = repr(as_float)
        if "e" in text:
            mantissa, exponent = text.split("e")
            return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"
        return text
    return str(int(x))
