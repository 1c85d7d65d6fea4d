"""What elementwise primitives have in common: types, lowering, and derivatives by rows.

A derivative is a lambda of the tangent, the result and the operands; a row has one for each operand (None:
no derivative).  Operands have equal shapes and dtypes; a NumPy or Python constant of rank 0 may be an operand
beside arrays of any shape.
"""
from ...core.axes import same_axes
from ..common import (
    ShapedArray, dtype_of, dtypes, is_undefined_primal, kind_of, no_tangent_jvp, same_dtype, shape_of)
from .precision import result_accuracy
from .shape import Mapped, broadcast_in_dim

_CLASSES = {"i": "integer", "u": "integer", "f": "floating", "c": "complexfloating", "b": "bool"}


def elementwise_shape(name, avals):
    """The shape of the result.  TypeError unless all shapes are equal, constants of rank 0 apart."""
    shape = ()
    for a in avals:
        if a.ndim:
            if shape and a.shape != shape:
                _check_ranks(name, avals)
                raise TypeError(f"{name} got incompatible shapes for broadcasting: "
                                f"{', '.join(str(a.shape) for a in avals)}. lax functions need equal "
                                "shapes; the hlotrace.numpy function of the same name broadcasts.")
            shape = a.shape
    return shape


def _check_ranks(name, avals):
    ranks = {a.ndim for a in avals if a.ndim}
    if len(ranks) > 1:
        raise TypeError(f"{name}: arrays must have the same number of dimensions, got {ranks}: shapes "
                        f"{', '.join(str(a.shape) for a in avals)}; the hlotrace.numpy function of the "
                        "same name broadcasts.")


def accepted(kinds):
    """The dtypes of `kinds` as NumPy's classes."""
    return ", ".join(dict.fromkeys(_CLASSES.get(kind, kind) for kind in sorted(kinds, key="iufcb".find)))


def _cast_to(kind, kinds, of_bools):
    """What to do where operands of a kind are not among those that an operation takes."""
    if kind == "b" and of_bools:
        return of_bools
    if kind == "k":
        return "a PRNG key is not a number; see random.key_data"
    if "b" in kinds and kind in "fc":
        return "compare first, as in x > 0, for logic, or convert with .astype(int) for bits"
    if kind == "c":
        return "take .real, .imag or jnp.abs(x)"
    other = "int" if "i" in kinds else "complex"
    return f"convert with .astype({'float' if 'f' in kinds else other})"


def type_rule(name, kinds, result=lambda dtype: dtype, of_bools=None):
    """The rule of a type: all dtypes are one of `kinds`; `result(dtype)` is that of the result."""
    def abstract_eval(*avals, **_):
        dtype = avals[0].dtype
        same = all([a.dtype == dtype for a in avals])
        if not same:
            _check_ranks(name, avals)
        for i, a in enumerate(avals[:1] if same else avals):
            if kind_of(a.dtype) not in kinds:
                where = f" at position {i}" if len(avals) > 1 else ""
                raise TypeError(f"{name} does not accept dtype {a.dtype.name}{where}. Accepted dtypes{where} "
                                f"are subtypes of {accepted(kinds)}: "
                                f"{_cast_to(kind_of(a.dtype), kinds, of_bools)}")
        same_dtype(name, *avals)
        return ShapedArray(elementwise_shape(name, avals), result(dtype),
                           dtype != dtypes.bool_ and all([a.weak_type for a in avals]))
    return abstract_eval


def full_operands(ctx, eqn, names):
    """The names of the operands, constants of rank 0 broadcast to the shape of the result."""
    shape = eqn.outvars[0].aval.shape
    return [name if v.aval.ndim == len(shape) else ctx.emit(
        f"stablehlo.broadcast_in_dim {name}, dims = [] : ({v.aval.mlir}) -> "
        f"{v.aval.update(shape=shape).mlir}") for name, v in zip(names, eqn.invars)]


def lower_op(ctx, eqn, *names):
    out = eqn.outvars[0].aval
    mnemonic = eqn.primitive.mnemonic
    listed = ", ".join(full_operands(ctx, eqn, names))
    kind = eqn.invars[0].aval.dtype
    if kind == out.dtype:
        if mnemonic.startswith("chlo.") and len(names) > 1:
            return ctx.emit(f"{mnemonic} {listed} : {', '.join([out.mlir] * len(names))} -> {out.mlir}")
        if mnemonic.startswith("chlo."):
            return ctx.emit(f"{mnemonic} {listed} : {out.mlir} -> {out.mlir}")
        accuracy = result_accuracy(eqn.params.get("accuracy"))
        return ctx.emit(f"{mnemonic} {listed}{accuracy} : {out.mlir}")
    source = out.update(dtype=kind).mlir
    if mnemonic == "stablehlo.complex":
        return ctx.emit(f"{mnemonic} {listed} : {out.mlir}")
    return ctx.emit(f"{mnemonic} {listed} : ({', '.join([source] * len(names))}) -> {out.mlir}")


ELEMENTWISE = same_axes(constants=True)


def elementwise(name, mnemonic, kinds, *derivatives, result=lambda dtype: dtype, transpose=None, lower=None,
                of_bools=None, abstract_eval=None, **facts):
    """Make and register an elementwise primitive from its table row.  of_bools: what to write for booleans
    instead."""
    abstract_eval = abstract_eval or type_rule(name, kinds, result, of_bools)
    p = Mapped(name, mnemonic=mnemonic, abstract_eval=abstract_eval, lower=lower or lower_op,
               transpose=transpose, kinds=kinds, elementwise=True, axes=ELEMENTWISE, **facts)

    def jvp(primals, tangents, **params):
        out = p.bind(*primals, **params)
        params.pop("accuracy", None)        # of this function, not of its derivative
        total = None
        for rule, t in zip(derivatives, tangents):
            if t is not None and rule is not None:
                total = accumulate(total, rule(t, out, *primals, **params))
        shape = shape_of(out)
        if total is not None and shape_of(total) != shape:
            total = broadcast_in_dim(total, shape, ())
        return out, total

    p.jvp = jvp if derivatives else no_tangent_jvp(p)
    return p


def unary_with_params(name, abstract_eval, lower, jvp=None, transpose=None, axes=ELEMENTWISE, **facts):
    """An elementwise primitive of one operand whose result type depends on its parameters."""
    p = Mapped(name, abstract_eval=abstract_eval, lower=lower, transpose=transpose, elementwise=True,
               axes=axes, **facts)
    p.jvp = jvp or no_tangent_jvp(p)
    return p


def accumulate(a, b):
    """The sum of two cotangents, either of which may be None (zero): by the rule of a dtype of the user's."""
    if a is None or b is None:
        return b if a is None else a
    dtype = dtype_of(a)
    return dtype._rules.add(dtype, a, b) if dtypes.is_extended(dtype) else add_any_p.bind(a, b)


def if_linear(x, rule):
    return rule() if is_undefined_primal(x) else None


def addition(name):
    """Make and register a sum of two operands."""
    return elementwise(name, "stablehlo.add", "fciu", lambda g, o, x, y: g, lambda g, o, x, y: g,
                       transpose=lambda ct, x, y: [if_linear(x, lambda: ct), if_linear(y, lambda: ct)],
                       linear="all")


add_any_p = addition("add_any")      # of terms of derivatives
