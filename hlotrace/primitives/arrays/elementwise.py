"""Elementwise primitives, a table row each: the StableHLO or CHLO operation, the dtypes, the derivative."""
from ...core import jaxpr
from ...core.avals import physical
from ...core.axes import AxisMap, same_axes
from ...core.config import state
from ...core.jaxpr_trace import as_constant, literal_number
from ...core.symbolic.dimension import Dimension
from ..common import (
    ShapedArray, aval_of, dtype_of, dtypes, is_undefined_primal, kind_of, np, number, shape_of)
from .elementwise_rules import (
    accumulate, addition, elementwise, full_operands, if_linear, lower_op, unary_with_params)
from .shape import Mapped, broadcast_in_dim, full, in_memory_of, instantiate, zeros_of

# --- small functions over the primitives, for rules -----------------------------------------------

def pair(a, b):
    """A Python number beside an array becomes a constant of the array's dtype."""
    if type(b) in dtypes.python_scalars:
        b = number(b, aval_of(a))
    elif type(a) in dtypes.python_scalars:
        a = number(a, aval_of(b))
    elif type(b) is Dimension:
        b = b.as_value(dtype_of(a))
    elif type(a) is Dimension:
        a = a.as_value(dtype_of(b))
    return a, b


def add(a, b): return add_p.bind(*pair(a, b))
def sub(a, b): return sub_p.bind(*pair(a, b))
def mul(a, b): return mul_p.bind(*pair(a, b))
def div(a, b): return div_p.bind(*pair(a, b))
def eq(a, b): return eq_p.bind(*pair(a, b))
def ne(a, b): return ne_p.bind(*pair(a, b))
def lt(a, b): return lt_p.bind(*pair(a, b))
def le(a, b): return le_p.bind(*pair(a, b))
def gt(a, b): return gt_p.bind(*pair(a, b))
def ge(a, b): return ge_p.bind(*pair(a, b))
def maximum(a, b): return max_p.bind(*pair(a, b))
def minimum(a, b): return min_p.bind(*pair(a, b))
def neg(x): return neg_p.bind(x)
def real(x): return real_p.bind(x)
def square(x): return square_p.bind(x)


def convert(x, dtype, weak_type=False):
    """`x` with the given dtype (np.dtype) and weakness."""
    aval = aval_of(x)
    if aval.dtype == dtype and aval.weak_type == weak_type and hasattr(x, "aval"):
        return x
    if state.trace.staging and not (aval.shape or aval.marked) and (known := literal_number(x)) is not None:
        converted = _converted(known, aval, dtype, weak_type)
        if converted is not None and (constant := as_constant(converted)) is not None:
            return constant
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type)


_PAIRS_OF_BITS = tuple(d for d in dtypes.PACKED if d.name in ("int2", "uint2"))


def in_bytes(lower, narrow=_PAIRS_OF_BITS, wider=dtypes.PACKED):
    """A lowering rule that computes with numbers of `narrow` dtypes in the `wider` ones, bytes of their own.

    XLA orders integers of two bits wrongly where they share one, refuses to order those of four on a GPU; its
    compiler for the CPU has no products of those of two, and ends the process at a concatenation.
    """
    def lower_in_bytes(ctx, eqn, *names):
        if not any(v.aval.dtype in narrow for v in eqn.invars):
            return lower(ctx, eqn, *names)

        def wide(*xs):
            params = {name: wider.get(value, value) if isinstance(value, np.dtype) else value
                      for name, value in eqn.params.items()}
            found = eqn.primitive.bind(*[convert(x, wider.get(dtype_of(x), dtype_of(x))) for x in xs],
                                       **params)
            listed = found if eqn.primitive.multiple_results else [found]
            return [convert(x, v.aval.dtype) for x, v in zip(listed, eqn.outvars)]
        return ctx.lower_fun(wide, eqn, *names)
    return lower_in_bytes


HALVES = dict.fromkeys((dtypes.bfloat16, dtypes.float16), dtypes.float32)


def in_single(lower, *narrow):
    """A lowering rule that computes with half precision, or the `narrow` of it, in float32.

    Each step would round, and XLA's formulas cancel and overflow in float16.
    """
    return in_bytes(lower, narrow or tuple(HALVES), HALVES)


def _converted(known, aval, dtype, weak_type):
    """A known number in another type, as a Python number if that is weak; None if it does not fit there."""
    if dtype.kind not in "biuf" and dtype != dtypes.bfloat16:
        return None
    found = np.asarray(known, aval.dtype)
    if found.dtype.kind not in "biuf" or found.dtype.kind == "f" and dtype.kind in "biu":
        return None
    result = found.astype(dtype)[()]
    if dtype.kind in "iu" and int(result) != int(found):
        return None
    if not weak_type:
        return result
    result = result.item()
    return result if aval_of(result).dtype == dtype else None


jaxpr.convert = convert


def select(mask, on_true, on_false):
    """Elementwise choice; a Python number is as an array of it."""
    template = on_false if type(on_true) in dtypes.python_scalars else on_true
    shape, dtype = shape_of(mask), dtype_of(template)
    if shape == ():
        shape = shape_of(on_true) or shape_of(on_false)

    def fill(x):
        if type(x) in dtypes.python_scalars:
            return in_memory_of(aval_of(mask), full(shape, x, dtype))
        return broadcast_in_dim(x, shape, ()) if shape_of(x) == () != shape else x
    return select_n_p.bind(mask, fill(on_false), fill(on_true))


def nonzero_or_one(x):
    return select(eq(x, 0), 1, x)


# --- the table ------------------------------------------------------------------------------------

neg_p = elementwise("neg", "stablehlo.negate", "fciu", lambda g, o, x: neg(g),
                    transpose=lambda ct, x: [neg(ct)], of_bools="~x is the opposite of a bool",
                    makes_nan=False, linear="first")


add_p = addition("add")
sub_p = elementwise("sub", "stablehlo.subtract", "fciu", lambda g, o, x, y: g, lambda g, o, x, y: neg(g),
                    transpose=lambda ct, x, y: [if_linear(x, lambda: ct), if_linear(y, lambda: neg(ct))],
                    of_bools="x ^ y tells where bools differ", linear="all")
mul_p = elementwise("mul", "stablehlo.multiply", "fciu", lambda g, o, x, y: mul(g, y),
                    lambda g, o, x, y: mul(x, g), linear="each",
                    transpose=lambda ct, x, y: [if_linear(x, lambda: mul(ct, y)),
                                                if_linear(y, lambda: mul(x, ct))])


def _quotient(by_zero):
    """The lowering of what divides, of integers so that XLA never divides by zero, which is `by_zero(x)`.

    The XLA of jaxlib 0.10 divides known numbers itself while it compiles, and by zero that ends the process.
    """
    def lower(ctx, eqn, x, y):
        divisor = eqn.invars[1]
        if kind_of(divisor.aval.dtype) not in "iu" or np.all(getattr(divisor, "val", 0)):
            return lower_op(ctx, eqn, x, y)
        avals = [v.aval for v in eqn.invars]
        out = lower_op(ctx, eqn, x, ctx.lower_fun(lambda y: select(eq(y, 0), 1, y), eqn, y, avals=avals[1:]))
        return ctx.lower_fun(lambda x, y, out: select(eq(y, 0), by_zero(x), out), eqn, x, y, out,
                             avals=[*avals, eqn.outvars[0].aval])
    return lower


div_p = elementwise("div", "stablehlo.divide", "fciu", lambda g, o, x, y: div(g, y),
                    lambda g, o, x, y: mul(neg(g), div(o, y)), transpose=lambda ct, x, y: [div(ct, y), None],
                    lower=_quotient(lambda x: not_p.bind(full((), 0, dtype_of(x)))), linear="first")
_jvp_by_terms = div_p.jvp


def _div_jvp(primals, tangents, **params):
    """Of two tangents in one quotient: what it keeps, the result and the divisor, others need too."""
    if None in tangents:
        return _jvp_by_terms(primals, tangents, **params)
    out, (dx, dy) = div_p.bind(*primals, **params), tangents
    return out, div(sub(dx, mul(dy, out)), primals[1])


div_p.jvp = _div_jvp


rem_p = elementwise("rem", "stablehlo.remainder", "fiu", lambda g, o, x, y: g,
                    lambda g, o, x, y: mul(neg(g), round_toward_zero(div(x, y))),
                    lower=_quotient(lambda x: x))
atan2_p = elementwise("atan2", "stablehlo.atan2", "fc",
                      lambda g, o, x, y: mul(g, div(y, add(square(x), square(y)))),
                      lambda g, o, x, y: mul(neg(g), div(x, add(square(x), square(y)))))
nextafter_p = elementwise("nextafter", "chlo.next_after", "f", makes_nan=False)


def round_toward_zero(x):
    return mul(sign_p.bind(x), floor_p.bind(abs_p.bind(x)))


def _share(x, y, o):
    """The part of a tangent that goes to `x` in max(x, y): all, none, or half at a tie."""
    return select(eq(x, o), select(eq(y, o), full(shape_of(o), 0.5, dtype_of(o)), 1), 0)


def _extreme_lower(before):
    """Complex numbers are compared by real part, then by imaginary part: XLA looks at the real part only."""
    def choose(x, y):
        parts_before = or_p.bind(before(real(x), real(y)),
                                 and_p.bind(eq(real(x), real(y)), before(imag_p.bind(x), imag_p.bind(y))))
        return select(parts_before, x, y)

    def lower(ctx, eqn, *names):
        is_complex = dtypes.is_complex(eqn.outvars[0].aval.dtype)
        return ctx.lower_fun(choose, eqn, *names) if is_complex else lower_op(ctx, eqn, *names)
    return lower


max_p = elementwise("max", "stablehlo.maximum", "fciub", lambda g, o, x, y: mul(g, _share(x, y, o)),
                    lambda g, o, x, y: mul(g, _share(y, x, o)), lower=_extreme_lower(gt), makes_nan=False)
min_p = elementwise("min", "stablehlo.minimum", "fciub", lambda g, o, x, y: mul(g, _share(x, y, o)),
                    lambda g, o, x, y: mul(g, _share(y, x, o)), lower=_extreme_lower(lt), makes_nan=False)

and_p = elementwise("and", "stablehlo.and", "biu")
or_p = elementwise("or", "stablehlo.or", "biu")
xor_p = elementwise("xor", "stablehlo.xor", "biu")
not_p = elementwise("not", "stablehlo.not", "biu")
shift_left_p = elementwise("shift_left", "stablehlo.shift_left", "iu")
shift_right_arithmetic_p = elementwise("shift_right_arithmetic", "stablehlo.shift_right_arithmetic", "iu")
shift_right_logical_p = elementwise("shift_right_logical", "stablehlo.shift_right_logical", "iu")
population_count_p = elementwise("population_count", "stablehlo.popcnt", "iu")


def _clz_lower(ctx, eqn, x):
    """XLA folds a negative constant as a number of 64 bits."""
    found, aval = lower_op(ctx, eqn, x), eqn.outvars[0].aval
    return found if dtypes.is_unsigned(aval.dtype) else ctx.lower_fun(
        lambda x, out: select(lt(x, 0), 0, out), eqn, x, found, avals=(aval, aval))


clz_p = elementwise("clz", "stablehlo.count_leading_zeros", "iu", lower=_clz_lower)


def mended(mend):
    """The lowering of a function of a + bi that is not exact in XLA where a part is near 0, infinite or NaN.

    `mend(a, b, out)` gives the result from XLA's.
    """
    def lower(ctx, eqn, x):
        found, (operand,), (out,) = lower_op(ctx, eqn, x), eqn.invars, eqn.outvars
        if not dtypes.is_complex(operand.aval.dtype):
            return found
        return ctx.lower_fun(lambda z, out: mend(real(z), imag_p.bind(z), out), eqn, x, found,
                             avals=(operand.aval, out.aval))
    return lower


def infinite(a):
    return eq(abs_p.bind(a), np.inf)


def _square_lower(ctx, eqn, x):
    """Of a + bi as (a - b) (a + b) + 2 a b i, which neither cancels nor overflows where a*a - b*b does."""
    aval = eqn.outvars[0].aval
    if not dtypes.is_complex(aval.dtype):
        return ctx.emit(f"stablehlo.multiply {x}, {x} : {aval.mlir}")

    def of_parts(z):
        a, b = real(z), imag_p.bind(z)
        return complex_p.bind(mul(sub(a, b), add(a, b)), mul(mul(a, b), 2))
    return ctx.lower_fun(of_parts, eqn, x)


def _abs_of_infinite(a, b, out):   # also where the other part is NaN
    return select(or_p.bind(infinite(a), infinite(b)), np.inf, out)


square_p = elementwise("square", "chlo.square", "fciu", lambda g, o, x: mul(g, mul(x, 2)),
                       lower=_square_lower)
floor_p = elementwise("floor", "stablehlo.floor", "f", makes_nan=False)
ceil_p = elementwise("ceil", "stablehlo.ceil", "f", makes_nan=False)
round_p = elementwise("round", None, "f", lower=lambda ctx, eqn, x: ctx.emit(
    f"stablehlo.round_nearest_{'afz' if eqn.params['rounding_method'] == 0 else 'even'} {x} : "
    f"{eqn.outvars[0].aval.mlir}"),
    makes_nan=False)
is_finite_p = elementwise("is_finite", "stablehlo.is_finite", "f", result=lambda dtype: dtypes.bool_,
                          makes_nan=False)


def _sign_lower(ctx, eqn, x):
    aval = eqn.outvars[0].aval
    if not dtypes.is_unsigned(aval.dtype):
        return mended(lambda a, b, out: select(and_p.bind(eq(a, 0), eq(b, 0)), 0, out))(ctx, eqn, x)
    return ctx.lower_fun(lambda v: select(eq(v, 0), 0, full(shape_of(v), 1, aval.dtype)), eqn, x)


def _sign_dx(g, o, x):
    """Of a complex x / |x|, which turns with x; that of real numbers is constant."""
    if not dtypes.is_complex(dtype_of(x)):
        return None
    turn = div(imag_p.bind(mul(g, conj_p.bind(o))), nonzero_or_one(abs_p.bind(x)))
    return mul(o, complex_p.bind(full(shape_of(turn), 0, dtype_of(turn)), turn))


sign_p = elementwise("sign", "stablehlo.sign", "fciu", _sign_dx, lower=_sign_lower, makes_nan=False)


def _abs_dx(g, o, x):
    if dtypes.is_complex(dtype_of(x)):
        o = nonzero_or_one(o)
        return real(mul(g, complex_p.bind(div(real(x), o), neg(div(imag_p.bind(x), o)))))
    return select(ge(x, 0), g, neg(g))


abs_p = elementwise("abs", "stablehlo.abs", "fci", _abs_dx, result=dtypes.real_of,
                    lower=mended(_abs_of_infinite), makes_nan=False)
real_p = elementwise("real", "stablehlo.real", "c", lambda g, o, x: real(g), result=dtypes.real_of,
                     transpose=lambda ct, x: [complex_p.bind(ct, full(shape_of(ct), 0, dtype_of(ct)))],
                     makes_nan=False, linear="first")
imag_p = elementwise("imag", "stablehlo.imag", "c", lambda g, o, x: imag_p.bind(g), result=dtypes.real_of,
                     transpose=lambda ct, x: [complex_p.bind(full(shape_of(ct), 0, dtype_of(ct)), neg(ct))],
                     makes_nan=False, linear="first")
conj_p = elementwise("conj", "chlo.conj", "c", lambda g, o, x: conj_p.bind(g),
                     transpose=lambda ct, x: [conj_p.bind(ct)], makes_nan=False)


def _complex_result(dtype):
    if dtype.itemsize < 4:
        raise TypeError(f"complex does not accept dtype {dtype.name}; accepted dtypes are float32 and "
                        "float64.")
    return dtypes.complex_of(dtype)


complex_p = elementwise("complex", "stablehlo.complex", "f",
                        lambda g, o, x, y: complex_p.bind(g, full(shape_of(g), 0, dtype_of(g))),
                        lambda g, o, x, y: complex_p.bind(full(shape_of(g), 0, dtype_of(g)), g),
                        result=_complex_result,
                        transpose=lambda ct, x, y: [if_linear(x, lambda: real(ct)),
                                                    if_linear(y, lambda: imag_p.bind(neg(ct)))],
                        makes_nan=False)


# --- comparisons ----------------------------------------------------------------------------------

def _compare(name, direction, kinds, total=False):
    def lower(ctx, eqn, *names):
        out, dtype = eqn.outvars[0].aval, eqn.invars[0].aval.dtype
        operand = out.update(dtype=dtype)
        kind = {"f": "TOTALORDER" if total else "FLOAT", "c": "FLOAT",
                "i": "SIGNED"}.get(kind_of(dtype), "UNSIGNED")
        result = physical(operand).update(dtype=out.dtype)
        listed = ", ".join(full_operands(ctx, eqn, names))
        found = ctx.emit(f"stablehlo.compare {direction}, {listed}, {kind} : ({operand.mlir}, "
                         f"{operand.mlir}) -> {result.mlir}")
        if result.ndim == out.ndim:
            return found
        # keys are equal if all their words are
        init = ctx.constant(direction == "EQ")
        mnemonic = "stablehlo.and" if direction == "EQ" else "stablehlo.or"
        return ctx.emit(f"stablehlo.reduce({found} init: {init}) applies {mnemonic} across dimensions = "
                        f"{list(range(out.ndim, result.ndim))} : ({result.mlir}, tensor<i1>) -> {out.mlir}")
    return elementwise(name, f"stablehlo.compare {direction}", kinds, result=lambda dtype: dtypes.bool_,
                       lower=lower)


eq_p = _compare("eq", "EQ", "fciubk0")
ne_p = _compare("ne", "NE", "fciubk0")
lt_p = _compare("lt", "LT", "fiub")
le_p = _compare("le", "LE", "fiub")
gt_p = _compare("gt", "GT", "fiub")
ge_p = _compare("ge", "GE", "fiub")
lt_to_p = _compare("lt_to", "LT", "f", total=True)
le_to_p = _compare("le_to", "LE", "f", total=True)
eq_to_p = _compare("eq_to", "EQ", "f", total=True)


# --- conversions ----------------------------------------------------------------------------------

def _convert_abstract_eval(x, *, new_dtype, weak_type):
    for dtype, rule in ((x.dtype, "convert_from"), (new_dtype, "convert_to")):
        if not dtypes.is_extended(dtype):
            continue
        if not (dtype._rules and getattr(dtype._rules, rule)(x.dtype, new_dtype)):
            why = (f"{rule} of its rules says no" if dtype._rules else
                   "PRNG keys are not numbers; see random.key_data and random.wrap_key_data")
            raise TypeError(f"cannot convert {dtypes.short_name(x.dtype)} to {dtypes.short_name(new_dtype)}: "
                            f"{why}")
    return ShapedArray(x.shape, new_dtype, weak_type)


def _convert_lower(ctx, eqn, x):
    source, target = eqn.invars[0].aval, eqn.outvars[0].aval
    if source.mlir == target.mlir:
        return x
    if dtypes.is_bool(target.dtype):
        return ctx.lower_fun(lambda v: ne(v, 0), eqn, x)
    if dtypes.is_complex(source.dtype) and not dtypes.is_complex(target.dtype):
        return ctx.lower_fun(lambda v: convert(real(v), target.dtype), eqn, x)
    found = {source.dtype.name, target.dtype.name} & _MENDED
    if found and source.dtype in dtypes.SMALL_FLOATS and target.dtype != dtypes.float32:
        return ctx.lower_fun(lambda v: convert(convert(v, dtypes.float32), target.dtype), eqn, x)
    if target.dtype.name == "float4_e2m1fn" and kind_of(source.dtype) == "f":
        x = ctx.lower_fun(lambda v: select(ne(v, v), -0.0, maximum(minimum(v, 6), -6)), eqn, x)
    out = ctx.emit(f"stablehlo.convert {x} : ({source.mlir}) -> {target.mlir}")
    if "float8_e8m0fnu" not in found:
        return out
    known = (lambda v: gt(v, 0)) if target.dtype.name in found else lambda v: eq(v, v)
    return ctx.lower_fun(lambda v, out: select(known(v), out, np.nan), eqn, x, out, avals=(source, target))


# XLA folds NaN of float8_e8m0fnu to infinity, and what is not above 0 to a number of it; of float4_e2m1fn it
# folds infinities to 0 and computes 6 as an integer to be its largest
_MENDED = {"float8_e8m0fnu", "float4_e2m1fn"}


def _convert_jvp(primals, tangents, *, new_dtype, weak_type):
    x, g = primals[0], tangents[0]
    out = convert_element_type_p.bind(x, new_dtype=new_dtype, weak_type=weak_type)
    if not dtypes.is_inexact(new_dtype) or not dtypes.is_inexact(dtype_of(x)):
        return out, None
    return out, convert_element_type_p.bind(g, new_dtype=new_dtype, weak_type=weak_type)


convert_element_type_p = unary_with_params(
    "convert_element_type", _convert_abstract_eval, _convert_lower, _convert_jvp,
    lambda ct, x, *, new_dtype, weak_type: [convert(ct, x.aval.dtype, x.aval.weak_type)], makes_nan=False,
    linear="first")


# --- select_n and clamp ---------------------------------------------------------------------------

def _select_abstract_eval(which, *cases):
    if kind_of(which.dtype) not in "biu":
        raise TypeError(f"select `which` must be boolean or integer type, got {which.dtype}: compare it, as "
                        "in x > 0")
    if dtypes.is_bool(which.dtype) and len(cases) > 2:
        raise TypeError(f"select with boolean `which` cannot have > 2 cases, got {len(cases)}")
    first = cases[0]
    for c in cases:
        if c.shape != first.shape:
            raise TypeError("select cases must have the same shapes, got "
                            f"[{', '.join(str(c.shape) for c in cases)}]: reshape or broadcast them; "
                            "jnp.where does so by itself")
        if c.dtype != first.dtype:
            raise TypeError("lax.select requires arguments to have the same dtypes, got "
                            f"{', '.join(c.dtype.name for c in cases)}: cast with .astype; jnp.where "
                            "promotes by itself")
    if which.shape and which.shape != first.shape:
        raise TypeError("select `which` must be scalar or have the same shape as cases, got `which` shape "
                        f"{which.shape} but case shape {first.shape}; jnp.where broadcasts")
    return ShapedArray(first.shape, first.dtype, first.dtype != dtypes.bool_
                       and all([c.weak_type for c in cases]))


def _select_lower(ctx, eqn, which, *cases):
    if len(cases) == 1:
        return cases[0]
    out, selector = eqn.outvars[0].aval, eqn.invars[0].aval
    if dtypes.is_bool(selector.dtype):
        return ctx.emit(f"stablehlo.select {which}, {cases[1]}, {cases[0]} : {selector.mlir}, {out.mlir}")

    def choose(index, *values):      # a binary tree of selects
        if len(values) == 1:
            return values[0]
        half = len(values) // 2
        return select_n_p.bind(ge(index, half), choose(index, *values[:half]),
                               choose(sub(index, half), *values[half:]))
    wide = selector.dtype.itemsize >= 4      # a narrower type may not have the number of cases
    return ctx.lower_fun(lambda index, *values: choose(
        index if wide else convert(index, dtypes.int32), *values), eqn, which, *cases)


def _select_jvp(primals, tangents):
    which, *cases = primals
    out = select_n_p.bind(which, *cases)
    if all(t is None for t in tangents[1:]):
        return out, None
    return out, select_n_p.bind(which, *[instantiate(t, aval_of(c)) for t, c in zip(tangents[1:], cases)])


def _select_transpose(ct, which, *cases):
    zeros = zeros_of(aval_of(ct))
    return [None, *(select_n_p.bind(which, *[ct if i == j else zeros for j in range(len(cases))])
                    if is_undefined_primal(c) else None for i, c in enumerate(cases))]


select_n_p = Mapped("select_n", abstract_eval=_select_abstract_eval, lower=_select_lower, jvp=_select_jvp,
                    transpose=_select_transpose, axes=same_axes(scalars=lambda n: (0,)), structural=True,
                    linear="rest", alike="select cases must have the same shardings, and `which` must be "
                    "scalar or have the same sharding as cases")


def _clamp_abstract_eval(low, x, high):
    for name, bound in (("min", low), ("max", high)):
        if bound.dtype != x.dtype:
            raise TypeError(f"clamp: {name} has dtype {bound.dtype}, the operand has {x.dtype}; they must be "
                            "equal; cast it with .astype, or use jnp.clip")
        if bound.shape and bound.shape != x.shape:
            raise TypeError(f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got "
                            f"{name}.shape={bound.shape}, operand.shape={x.shape}; jnp.clip broadcasts")
    return x


def _clamp_lower(ctx, eqn, *names):
    out = eqn.outvars[0].aval
    return ctx.emit(f"stablehlo.clamp {', '.join(names)} : ({', '.join(v.aval.mlir for v in eqn.invars)}) -> "
                    f"{out.mlir}")


def _clamp_jvp(primals, tangents):
    low, x, high = primals
    out = clamp_p.bind(low, x, high)
    shape = shape_of(x)
    low, high = (broadcast_in_dim(b, shape, ()) if shape_of(b) != shape else b for b in (low, high))
    masks = (and_p.bind(lt(x, low), lt(low, high)), and_p.bind(gt(x, low), lt(x, high)), gt(x, high))
    total = None
    for mask, t in zip(masks, tangents):
        if t is not None:
            t = broadcast_in_dim(t, shape, ()) if shape_of(t) != shape else t
            total = accumulate(total, select(mask, t, 0))
    return out, total


def _clamp_sharding(*avals):
    """As the operand is; of bounds each device uses what it needs."""
    axes = tuple(range(avals[1].ndim))
    low, high = (tuple((i, dim) for dim in range(avals[i].ndim)) for i in (0, 2))
    return AxisMap((low, axes, high), axes)


clamp_p = Mapped("clamp", abstract_eval=_clamp_abstract_eval, lower=_clamp_lower, jvp=_clamp_jvp,
                 axes=same_axes(scalars=lambda n: (0, 2)), sharding=_clamp_sharding, makes_nan=False)


# --- stop_gradient --------------------------------------------------------------------------------

stop_gradient_p = unary_with_params("stop_gradient", lambda x: x, lambda ctx, eqn, x: x, makes_nan=False,
                                    linear="first")
stop_gradient_p.impl_rule = lambda x: x
