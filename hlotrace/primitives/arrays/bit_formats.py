"""What looks at the bits of numbers: as another type, or with fewer of them."""
from ...core import errors
from ...core.axes import leading_axes
from ..common import ShapedArray, dtypes
from .elementwise_rules import unary_with_params


def _widens(old, new):
    return dtypes.itemsize_bits(old) < dtypes.itemsize_bits(new)


def _bitcast_abstract_eval(x, *, new_dtype):
    if dtypes.is_extended(x.dtype) or dtypes.is_extended(new_dtype):
        raise ValueError(f"bitcast_convert_type cannot convert {x.dtype} to {new_dtype}: see "
                         "random.key_data")
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    if any(kind(x.dtype) != kind(new_dtype) for kind in (dtypes.is_bool, dtypes.is_complex)):
        raise errors.ShapeError("lax.bitcast_convert_type does not support bool or complex values unless "
                                f"the operand and destination types match. Got operand dtype={x.dtype}, "
                                f"{new_dtype=}: it reads the same bits as another type; .astype converts "
                                "values")
    if old == new:
        return ShapedArray(x.shape, new_dtype)
    if old > new:
        return ShapedArray((*x.shape, old // new), new_dtype)
    if x.ndim == 0 or x.shape[-1] != new // old:
        raise ValueError(f"Attempting to convert array of shape {x.shape} from {x.dtype} of size {old} bits "
                         f"to {new_dtype} of size {new} bits: the last axis must have size {new // old}")
    return ShapedArray(x.shape[:-1], new_dtype)


bitcast_convert_type_p = unary_with_params(
    "bitcast_convert_type", _bitcast_abstract_eval, lambda ctx, eqn, x: ctx.emit(
        f"stablehlo.bitcast_convert {x} : ({eqn.invars[0].aval.mlir}) -> {eqn.outvars[0].aval.mlir}"),
    axes=leading_axes(lambda x, *, new_dtype: (_widens(x.dtype, new_dtype), _widens(new_dtype, x.dtype)),
                      computed="gone"),
    makes_nan=False)


def _reduce_precision_abstract_eval(x, *, exponent_bits, mantissa_bits):
    if not dtypes.is_float(x.dtype):
        raise TypeError(f"reduce_precision does not accept dtype {x.dtype}; it must be floating point")
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError("reduce_precision: exponent_bits must be positive and mantissa_bits non-negative, "
                         f"got {exponent_bits} and {mantissa_bits}")
    return x


reduce_precision_p = unary_with_params(
    "reduce_precision", _reduce_precision_abstract_eval, lambda ctx, eqn, x: ctx.emit(
        f"stablehlo.reduce_precision {x}, format = "
        f"e{eqn.params['exponent_bits']}m{eqn.params['mantissa_bits']} : {eqn.outvars[0].aval.mlir}"),
    lambda primals, tangents, **params: [reduce_precision_p.bind(x, **params)
                                         for x in (*primals, *tangents)],
    lambda ct, x, **params: [reduce_precision_p.bind(ct, **params)], makes_nan=False)
