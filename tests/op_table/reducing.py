"""Rows of reductions, windows, running and sorting operations, and products."""
import numpy as np

from hlotrace.core.avals import aval_of
from hlotrace.primitives.arrays.conv import ConvDimensionNumbers
from hlotrace.primitives.arrays.elementwise import ge_p, le_p
from hlotrace.primitives.arrays.reduce import scalar_program

from .row import BFLOAT16, Row, between, fails, integers, op

ROWS = []


def row(name, ref, *args, kinds="f", bad=(), **fields):
    params = fields.pop("params", {})
    ROWS.append(Row(name, op(name, **params), ref, args, kinds, bad=tuple(bad), **fields))


# --- reductions -------------------------------------------------------------------------------------------------

X = between(-2, 2, 3, 2, 2)


def reduction(name, ref, kinds, refused):
    bad = [fails(ValueError, "out-of-bounds", name, (2, 3), axes=(2,)) if kinds[0] == "f" else
           fails(ValueError, "out-of-bounds", name, np.zeros((2, 3), np.int32), axes=(2,)),
           fails(TypeError, "does not accept dtype", name, np.zeros(2, refused), axes=(0,))] if refused else [
           fails(ValueError, "duplicate value in 'axes'", name, (2, 3), axes=(1, 1))]
    x = X if kinds[0] == "f" else integers(-100, 100, 3, 2, 2)
    row(name, lambda x: ref(x, axis=(0, 2)), x, kinds=kinds, params={"axes": (0, 2)}, bad=bad)
    row(name, lambda x: x, x, kinds=kinds, params={"axes": ()}, variant="no axes")


reduction("reduce_sum", np.sum, "fciu", bool)
reduction("reduce_prod", np.prod, "fciu", bool)
reduction("reduce_max", np.max, "fciub", None)
reduction("reduce_min", np.min, "fciub", None)
reduction("reduce_and", np.bitwise_and.reduce, "iub", np.float32)
reduction("reduce_or", np.bitwise_or.reduce, "iub", np.float32)
reduction("reduce_xor", np.bitwise_xor.reduce, "iub", np.float32)
for name, value in {"reduce_sum": 0, "reduce_prod": 1, "reduce_max": -np.inf, "reduce_min": np.inf}.items():
    row(name, lambda x, v=value: np.full(3, v), np.zeros((3, 0)), params={"axes": (1,)}, variant="of nothing",
        derivative="twice" if np.isfinite(value) else "none")
row("reduce_prod", lambda x: np.prod(x, 0), np.array([[2.0, 0, 0], [3, 5, 0], [7, 2, 3]]), params={"axes": (0,)},
    variant="with zeros")
row("reduce_max", lambda x: np.max(x, 0), np.array([np.nan, 1, np.inf]), params={"axes": (0,)}, variant="nan",
    derivative="none")
for name, ref in {"argmax": np.argmax, "argmin": np.argmin}.items():
    params = {"axes": (1,), "index_dtype": np.dtype(np.int32)}
    row(name, lambda x, f=ref: f(x, axis=1), integers(-3, 4, 3, 5), kinds="fiub", params=params, derivative="none", bad=[
        fails(ValueError, "non-empty reduced dimension", name, (2, 0), **params),
        fails(TypeError, "complex values have no order", name, np.zeros((2, 2), np.complex64), **params),
        fails(TypeError, "index_dtype must be an integer type", name, (2, 2), axes=(0,),
              index_dtype=np.dtype(np.float32))])
    row(name, lambda x, f=ref: f(x), np.array([1, np.nan, 3, np.nan]), variant="nan",
        params={"axes": (0,), "index_dtype": np.dtype(np.int32)}, derivative="none")
    row(
        name,
        lambda x, f=ref: f(x, axis=1),
        np.repeat(integers(-3, 4, 40, 30), 4, axis=0),
        kinds="fiub",
        variant="of many",
        params=params,
        derivative="none",
    )  # CPUs take these as vectors
    row(
        name,
        lambda x, f=ref: f(x, axis=1),
        np.where(np.arange(4200) % 97 == 50, np.nan, 1.0).reshape(2, 2100),
        variant="nan among many",
        params=params,
        derivative="none",
    )


def log_add(x, y):
    """log(exp(x) + exp(y))"""
    return [op("log")(op("add")(op("exp")(x), op("exp")(y)))]


def sum_and_product(a, b, c, d):
    return [op("add")(a, c), op("mul")(b, d)]


def by_program(name, program, **params):
    """A reduction by a program on scalars of the operands' dtypes."""
    def fun(*operands):
        avals = tuple(aval_of(x).update(shape=()) for x in operands)
        return op(name, jaxpr=scalar_program(program, avals), **params)(*operands)
    return fun


def program_row(name, program, ref, *args, variant="", bad=(), derivative="twice", **params):
    ROWS.append(Row(name, by_program(name, program, **params), ref, args, "f", variant, bad=tuple(bad),
                    smooth=tuple(range(len(args) // 2)), mapped=tuple(range(len(args) // 2)), derivative=derivative))


def two_of(name, error, words, *operands, **params):
    return lambda: by_program(name, log_add, **params)(*operands), error, words


program_row("reduce", log_add, lambda x, v: np.logaddexp.reduce(x, (0, 2), initial=v), X, np.float64(0.5),
            dimensions=(0, 2), bad=[
                two_of("reduce", ValueError, "non-scalar initial value", np.zeros(3, np.float32),
                       np.zeros(1, np.float32), dimensions=(0,)),
                two_of("reduce", ValueError, "out-of-bounds", np.zeros(3, np.float32), np.float32(0), dimensions=(1,))])
program_row("reduce", sum_and_product, lambda x, y, v, w: [x.sum(1) + v, y.prod(1) * w], between(-2, 2, 2, 3),
            between(1, 2, 2, 3), np.float64(0.5), np.float64(2), dimensions=(1,), variant="of two operands")

# --- windows ----------------------------------------------------------------------------------------------------


def spread(x, gaps, padding, value):
    """`x` with `gap - 1` places between neighbours, padded (or cut, where the padding is negative)."""
    shape = [max((n - 1) * g + 1, 0) for n, g in zip(x.shape, gaps)]
    wide = np.full([n + max(lo, 0) + max(hi, 0) for n, (lo, hi) in zip(shape, padding)], value, x.dtype)
    wide[tuple(slice(max(lo, 0), max(lo, 0) + n, g) for n, (lo, _), g in zip(shape, padding, gaps))] = x
    return wide[tuple(slice(max(-lo, 0), n - max(-hi, 0)) for n, (lo, hi) in zip(wide.shape, padding))]


def windows(x, p, value):
    """The windows of `x` along new last axes."""
    x = spread(x, p["base_dilation"], p["padding"], value)
    extents = [(w - 1) * d + 1 for w, d in zip(p["window_dimensions"], p["window_dilation"])]
    seen = np.lib.stride_tricks.sliding_window_view(x, extents)
    steps = [slice(None, None, s) for s in p["window_strides"]]
    return seen[(*steps, *(slice(None, None, d) for d in p["window_dilation"]))]


def window(dimensions, strides=None, padding=None, base=None, dilation=None):
    ones = (1,) * len(dimensions)
    return dict(window_dimensions=dimensions, window_strides=strides or ones, padding=padding or ((0, 0),) * len(ones),
                base_dilation=base or ones, window_dilation=dilation or ones)


POOLS = {"": window((2, 2), (2, 1)),
         "padded": window((2, 3), (1, 2), ((1, 0), (1, 1))),
         "dilated base": window((2, 2), (2, 1), base=(1, 2))}
DILATED = window((2, 2), dilation=(2, 1))
IMAGE = between(-3, 3, 4, 5)


def over(function, low):
    """The reference of a windowed reduction of rank 2; the padding has the lowest of all values."""
    def ref(p):
        def reduced(x):
            value = low if x.dtype.kind == "f" or low == 0 else (
                low > 0 if x.dtype.kind == "b" else (np.iinfo(x.dtype).max if low > 0 else np.iinfo(x.dtype).min))
            return function(windows(x, p, value), axis=(-1, -2))
        return reduced
    return ref


for name, function, low in (("reduce_window_sum", np.sum, 0), ("reduce_window_max", np.max, -np.inf),
                            ("reduce_window_min", np.min, np.inf)):
    bad = [fails(TypeError, "wrong number of window_dimensions", name, (2, 2), **window((2,))),
           fails(TypeError, "window_strides must have every element be strictly positive", name, (2,),
                 **window((2,), (0,)))]
    for variant, p in POOLS.items():
        row(name, over(function, low)(p), IMAGE, params=p, variant=variant, bad=() if variant else bad,
            kinds=("fciu" if low == 0 else "fiu") if not variant else "f")
    row(name, over(function, low)(DILATED), IMAGE, params=DILATED, variant="dilated window",
        derivative="twice" if low == 0 else "forward")
    row(name, lambda x: np.full((3, 0), 0.0), np.zeros((4, 1)), params=window((2, 2)), variant="no window fits")
program_row("reduce_window", log_add, lambda x, v: np.logaddexp.reduce(
    windows(x, POOLS["padded"], v), (-2, -1), initial=v), IMAGE, np.float64(-np.inf), derivative="forward",
    **POOLS["padded"],
    bad=[two_of("reduce_window", TypeError, "inconsistent window_strides and window_dimensions",
                np.zeros((2, 2), np.float32), np.float32(0), **{**window((1, 1)), "window_strides": (1,)})])


def chosen(x, p, pick):
    """For each window of rank 2, the index into the padded operand of the element that `pick` finds."""
    value = np.nan if x.dtype.kind == "f" else 0
    places = windows(np.arange(1, x.size + 1).reshape(x.shape), p, 0)
    values = windows(x, p, value)
    flat = pick(values.reshape(*values.shape[:2], -1), -1)
    return np.take_along_axis(places.reshape(*places.shape[:2], -1), flat[..., None], -1)[..., 0] - 1


PICKS = {ge_p: np.nanargmax, le_p: np.nanargmin}
for select, pick in PICKS.items():
    for variant, p in POOLS.items():
        row("select_and_gather_add", lambda t, x, p=p, pick=pick: t.ravel()[chosen(x, p, pick)], between(-3, 3, 4, 5),
            IMAGE, params={"select_prim": select, **p}, variant=f"{select} {variant}".strip(), smooth=(0,), bad=[
                fails(TypeError, "do not fit the operand", "select_and_gather_add", (3,), (2,), select_prim=ge_p,
                      **window((1,)))])
    for variant in ("", "padded"):
        p = POOLS[variant]
        shape = windows(IMAGE, p, 0).shape[:2]
        params = {k: v for k, v in p.items() if k not in ("base_dilation", "window_dilation")}

        def ref(source, x, p=p, pick=pick):
            out = np.zeros(x.size)
            np.add.at(out, chosen(x, p, pick), source)
            return out.reshape(x.shape)
        row("select_and_scatter_add", ref, between(-3, 3, *shape), IMAGE, params={"select_prim": select, **params},
            variant=f"{select} {variant}".strip(), smooth=(0,), bad=[
                fails(TypeError, "must have one element for each window", "select_and_scatter_add", (3,), (4,),
                      select_prim=ge_p, window_dimensions=(2,), window_strides=(2,), padding=((0, 0),))])

# --- running operations -----------------------------------------------------------------------------------------

RUNNING = {"cumsum": (np.cumsum, "fciu"), "cumprod": (np.cumprod, "fciu"),
           "cummax": (np.maximum.accumulate, "fciu"),
           "cummin": (np.minimum.accumulate, "fciu"),
           "cumlogsumexp": (lambda x, axis: np.log(np.cumsum(np.exp(x), axis)), "fc")}
for name, (running, kinds) in RUNNING.items():
    row(name, lambda x, f=running: f(x, 1), between(-2, 2, 2, 5), kinds=kinds,
        params={"axis": 1, "reverse": False}, bad=[
            fails(ValueError, "axis 2 is out of bounds", name, (2, 2), axis=2, reverse=False),
            fails(TypeError, "does not accept dtype bool", name, np.zeros(2, bool), axis=0, reverse=False)])
    row(name, lambda x, f=running: f(x[::-1], 0)[::-1], between(-2, 2, 4, 2), variant="reverse",
        params={"axis": 0, "reverse": True})

# --- sorting ----------------------------------------------------------------------------------------------------

row("sort", lambda x: np.sort(x, 0), between(-3, 3, 5, 2), kinds="fciub",
    params={"dimension": 0, "is_stable": True, "num_keys": 1}, bad=[
        fails(TypeError, "must have equal shapes", "sort", (2,), (3,), dimension=0, is_stable=True, num_keys=1),
        fails(ValueError, "num_keys=3 must be between 1 and", "sort", (2,), dimension=0, is_stable=True, num_keys=3),
        fails(ValueError, "dimension 1 is out of bounds", "sort", (2,), dimension=1, is_stable=True, num_keys=1)])


def sorted_by_two(k, l, x):
    order = np.lexsort((l, k))
    return [k[order], l[order], x[order]]


row("sort", sorted_by_two, integers(0, 3, 8), between(-3, 3, 8), between(-3, 3, 8), variant="by two keys",
    params={"dimension": 0, "is_stable": True, "num_keys": 2}, smooth=(1, 2))
row("sort", np.sort, np.array([2, np.nan, -0.0, np.inf, -np.inf, 0.0, np.nan]), variant="special values",
    params={"dimension": 0, "is_stable": True, "num_keys": 1}, derivative="none")


def top(x):
    order = np.argsort(-x if x.dtype.kind == "f" else ~x, kind="stable")[..., :2]
    return [np.take_along_axis(x, order, -1), order]


row("top_k", top, between(-3, 3, 2, 5), kinds="fi", params={"k": 2}, bad=[
    fails(ValueError, "k must be between 0 and the size of the last axis", "top_k", (2, 3), k=4),
    fails(ValueError, "values have no order", "top_k", np.zeros(3, np.complex64), k=1),
    fails(TypeError, "must have >= 1 dimension", "top_k", (), k=0)])

# --- products ---------------------------------------------------------------------------------------------------


def dot(lhs, rhs, numbers, text, kinds="fciub", variant="", preferred=None, bad=()):
    row("dot_general", lambda x, y: np.einsum(text, x, y), between(-2, 2, *lhs), between(-2, 2, *rhs), kinds=kinds,
        variant=variant, bad=bad, params={
            "dimension_numbers": numbers, "precision": None, "preferred_element_type": preferred})


MATMUL = (((1,), (0,)), ((), ()))
NO_PREFERENCE = {"precision": None, "preferred_element_type": None}
dot((2, 3), (3, 2), MATMUL, "ij,jk->ik", bad=[
    fails(TypeError, "contracting dimensions to have the same shape", "dot_general", (2, 3), (2, 3),
          dimension_numbers=MATMUL, **NO_PREFERENCE),
    fails(TypeError, "less than the number of axes", "dot_general", (2, 3), (3,),
          dimension_numbers=(((2,), (0,)), ((), ())), **NO_PREFERENCE)])
dot((2, 2, 3, 2), (2, 2, 3), (((3, 0), (0, 1)), ((2,), (2,))), "abcd,dac->cb", "f", "batch, two contracted axes")
dot((2,), (3,), (((), ()), ((), ())), "i,j->ij", "f", "outer")
dot((2, 0), (0, 3), MATMUL, "ij,jk->ik", "f", "over nothing")
row("dot_general", lambda x, y: x @ y, between(-2, 2, 2, 3).astype(BFLOAT16), between(-2, 2, 3, 2).astype(BFLOAT16),
    kinds="", variant="summed as float32", derivative="none", rtol=1e-5, params={
        "dimension_numbers": MATMUL, "precision": None, "preferred_element_type": np.dtype(np.float32)})


def convolution(strides=(1,), padding=((0, 0),), lhs_dilation=(1,), rhs_dilation=(1,), features=1, batches=1):
    return dict(window_strides=strides, padding=padding, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation,
                feature_group_count=features, batch_group_count=batches, precision=None, preferred_element_type=None,
                dimension_numbers=ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2)))


def convolved(p):
    """A convolution along one axis: x is (batch, feature, n), y is (out feature, in feature, n)."""
    def ref(x, y):
        (step,), (gap,) = p["window_strides"], p["rhs_dilation"]
        if p["feature_group_count"] * p["batch_group_count"] > 1:
            n, axis = (p["feature_group_count"], 1) if p["batch_group_count"] == 1 else (p["batch_group_count"], 0)
            alone = convolved({**p, "feature_group_count": 1, "batch_group_count": 1})
            return np.concatenate([alone(a, b) for a, b in zip(np.split(x, n, axis), np.split(y, n, 0))], 1)
        x = spread(x, (1, 1, *p["lhs_dilation"]), ((0, 0), (0, 0), *p["padding"]), 0)
        seen = np.lib.stride_tricks.sliding_window_view(x, (y.shape[-1] - 1) * gap + 1, axis=-1)
        return np.einsum("bfnw,ofw->bon", seen[:, :, ::step, ::gap], y)
    return ref


def conv(lhs, rhs, variant="", kinds="f", bad=(), **how):
    p = convolution(**how)
    row("conv_general_dilated", convolved(p), between(-2, 2, *lhs), between(-2, 2, *rhs), kinds=kinds, variant=variant,
        params=p, bad=bad)


conv((2, 3, 5), (4, 3, 2), kinds="fci", bad=[
    fails(TypeError, "equal rank", "conv_general_dilated", (1, 1, 3), (1, 1), **convolution()),
    fails(ValueError, "must equal the rhs input feature dimension size", "conv_general_dilated", (1, 2, 3),
          (1, 1, 2), **convolution())])
conv((1, 2, 6), (2, 2, 2), "strides, padding, dilations", strides=(2,), padding=((1, 2),), lhs_dilation=(2,),
     rhs_dilation=(3,))
conv((2, 4, 5), (6, 2, 2), "feature groups", features=2)
conv((4, 2, 5), (6, 2, 2), "batch groups", batches=2)
