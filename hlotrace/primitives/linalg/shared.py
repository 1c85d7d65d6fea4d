"""What linear algebra shares: batches of matrices, their checks, products and triangles, and kernels.

A batch of matrices has any number of leading axes.  A kernel is compiled code that is called by name
(LAPACK's on the CPU, cuSOLVER's and cuBLAS's on CUDA); `by_kernels` makes lowering rules of Python
functions that call them.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...core.axes import AxisMap, AxisRule
from ...core.errors import ShapeError
from ...core.primitive import Primitive as Unlisted
from ..arrays.contract import dot_general_p
from ..arrays.elementwise import add, conj_p, convert, eq, ge, real, select, sub
from ..arrays.gather import gather_p
from ..arrays.gather_numbers import PROMISE, GatherDimensionNumbers
from ..arrays.precision import Precision
from ..arrays.shape import batch_by_axes, broadcast_in_dim, full, move_axis, reduce_sum, reshape, transpose
from ..arrays.slicing import concatenate_p, iota_p, slice_along, slice_p, zero_padded
from ..common import ShapedArray, dtype_of, dtypes, kind_of, ndim_of, np, prod, same_dtype, shape_of

if TYPE_CHECKING:
    from ...core.jaxpr import Eqn
    from ...core.primitive import Primitive
    from ...core.symbolic_zeros import MappedAxis

INT32 = dtypes.int32
PREFIXES: dict[Any, str] = {dtypes.float32: "s", dtypes.float64: "d",
                            dtypes.complex64: "c", dtypes.complex128: "z"}


# --- checks ---------------------------------------------------------------------------------------

def check_dtypes(name: str, *avals: ShapedArray, kinds: str = "fc") -> None:
    """Have all one dtype, of one of the kinds?  TypeError if they have not."""
    for i, a in enumerate(avals):
        if kind_of(a.dtype) not in kinds:
            taken = " and ".join(dtype.name for dtype in PREFIXES if kind_of(dtype) in kinds)
            raise TypeError(f"{name} does not accept dtype {dtypes.short_name(a.dtype)} at position {i}: it "
                            f"takes {taken}; cast with .astype(dtype)")
    same_dtype(name, *avals)


def check_ranks(name: str, *pairs: tuple[ShapedArray, int]) -> None:
    """Have the avals, each beside how many axes one of its batch has, equal batch axes before these?
    TypeError if they have not."""
    for i, (a, own) in enumerate(pairs):
        if a.ndim < own:
            raise TypeError(f"Input {i} to {name} must have rank at least {own}, but got shape={a.shape}: it "
                            f"is a batch of {'vectors' if own == 1 else 'matrices'}")
    batches = [a.shape[:a.ndim - own] for a, own in pairs]
    if any(b != batches[0] for b in batches):
        raise TypeError(f"All inputs to {name} must have the same batch dimensions, the axes before the last "
                        f"{' or '.join(map(str, sorted({own for _, own in pairs})))}, but got "
                        f"{', '.join(map(str, batches))} for inputs of shapes "
                        f"{', '.join(str(a.shape) for a, _ in pairs)}: broadcast them")


def check_square(name: str, x: ShapedArray) -> None:
    """Is `x` a batch of square matrices?  ShapeError if it is not."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"The input to {name} must have shape [..., n, n], got shape {x.shape}")


def check_matrices(name: str, x: ShapedArray, square: bool = False) -> None:
    check_dtypes(name, x)
    if square:
        check_square(name, x)
    else:
        check_ranks(name, (x, 2))


def matrices(x: ShapedArray, rows: Any, columns: Any, dtype: Any = None) -> ShapedArray:
    """The aval of as many matrices as there are in `x`, of this size."""
    return ShapedArray((*x.shape[:-2], rows, columns), dtype or x.dtype)


def vectors(x: ShapedArray, size: Any, dtype: Any = None) -> ShapedArray:
    return ShapedArray((*x.shape[:-2], size), dtype or x.dtype)


def real_dtype(dtype: Any) -> Any:
    return dtypes.real_of(dtype)


# --- batching -------------------------------------------------------------------------------------

def batched(operands: Sequence[int], results: Sequence[int] | Callable[..., Sequence[int]]) -> AxisRule:
    """The rule `axes` of a primitive on batches, which all its operands and results have in front.

    Args:
        operands: how many last axes of each operand it computes with.
        results: as `operands`, of the results; or a function of the parameters that gives it.
    """
    def labels(*avals: ShapedArray, **params: Any) -> AxisMap:
        lead = tuple(range(avals[0].ndim - operands[0]))
        made = results(**params) if callable(results) else results
        return AxisMap(*(tuple((*lead, *[None] * own) for own in owns) for owns in (operands, made)))
    return AxisRule(labels)


def columns_together(
        primitive: Primitive, rows: Callable[[dict[str, Any]], bool] = lambda params: False,
) -> Callable[..., tuple[Any, int]]:
    """The batching rule of a solver: where only the right-hand sides, its last operand, are mapped, they
    become columns of one matrix (or rows, as `rows` says of the parameters), and nothing is factored twice.
    """
    def batch(axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], /,
              **params: Any) -> tuple[Any, int]:
        *fixed, b = args
        if any(d is not None for d in dims[:-1]):
            return batch_by_axes(primitive, axis, args, dims, **params)
        # the axis of right-hand sides, as b is without the mapped one
        many = ndim_of(b) - 2 - rows(params)
        b = move_axis(b, dims[-1], many)
        shape = shape_of(b)
        merged = reshape(b, (*shape[:many], shape[many] * shape[many + 1], *shape[many + 2:]))
        return reshape(primitive.bind(*fixed, merged, **params), shape), many
    return batch


# --- matrices -------------------------------------------------------------------------------------

def matmul(x: Any, y: Any) -> Any:
    """The product of matrices, batch by batch, as exact as the device can."""
    n = ndim_of(x)
    batch = tuple(range(n - 2))
    return dot_general_p.bind(x, y, dimension_numbers=(((n - 1,), (n - 2,)), (batch, batch)),
                              precision=(Precision.HIGHEST,) * 2, preferred_element_type=None)


def conj(x: Any) -> Any:
    return conj_p.bind(x) if dtypes.is_complex(dtype_of(x)) else x


def transposed(x: Any) -> Any:
    n = ndim_of(x)
    return transpose(x, (*range(n - 2), n - 1, n - 2))


def adjoint(x: Any) -> Any:
    return conj(transposed(x))


def place(shape: Sequence[Any], axis: int) -> Any:
    """The index along the last axis but one (-2) or the last (-1), everywhere in an array of this shape."""
    return iota_p.bind(dtype=INT32, shape=tuple(shape), dimension=len(shape) + axis)


def triangle(x: Any, lower: bool = True, inset: int = 0) -> Any:
    """The lower or the upper triangle of `x`, without `inset` of its diagonals, and zeros elsewhere."""
    shape = shape_of(x)
    row, column = place(shape[-2:], -2), place(shape[-2:], -1)
    less, more = (column, row) if lower else (row, column)
    kept = ge(more, add(less, inset) if inset else less)
    return select(broadcast_in_dim(kept, shape, (len(shape) - 2, len(shape) - 1)), x, 0)


def eye_like(x: Any) -> Any:
    """Identities of the shape and dtype of `x`."""
    shape = shape_of(x)
    one = convert(eq(place(shape[-2:], -2), place(shape[-2:], -1)), dtype_of(x))
    return broadcast_in_dim(one, shape, (len(shape) - 2, len(shape) - 1))


def diagonal(x: Any) -> Any:
    """The main diagonals of square matrices."""
    return reduce_sum(mul_exactly(x, eye_like(x)), (ndim_of(x) - 1,))


def mul_exactly(x: Any, mask: Any) -> Any:
    """`x` where the mask is one and zero elsewhere, also where `x` is not finite."""
    return select(eq(mask, 0), 0, x)


def columns(vector: Any, n: Any) -> Any:
    """`x[..., i, j] = vector[..., j]`, of `n` rows: to scale the columns of a matrix."""
    shape = shape_of(vector)
    lead = len(shape) - 1
    return broadcast_in_dim(vector, (*shape[:-1], n, shape[-1]), (*range(lead), lead + 1))


def rows(vector: Any, n: Any) -> Any:
    """`x[..., i, j] = vector[..., i]`, of `n` columns: to scale the rows of a matrix."""
    shape = shape_of(vector)
    return broadcast_in_dim(vector, (*shape, n), tuple(range(len(shape))))


def block(x: Any, rows: tuple[Any, Any] = (0, None), cols: tuple[Any, Any] = (0, None)) -> Any:
    """`x[..., rows[0]:rows[1], cols[0]:cols[1]]`."""
    shape = shape_of(x)
    limits = [(a, n if b is None else b) for (a, b), n in zip((rows, cols), shape[-2:])]
    if limits == [(0, n) for n in shape[-2:]]:
        return x
    lead = shape[:-2]
    return slice_p.bind(x, start_indices=(*(0,) * len(lead), *(a for a, _ in limits)),
                        limit_indices=(*lead, *(b for _, b in limits)), strides=None)


def part(vector: Any, bounds: tuple[Any, Any]) -> Any:
    """`vector[..., bounds[0]:bounds[1]]`."""
    return slice_along(vector, -1, *bounds)


def shifted(x: Any, by: int, axis: int = -1) -> Any:
    """`x` moved along an axis by so many places, with zeros where nothing comes from."""
    config = [(0, 0, 0)] * ndim_of(x)
    config[axis] = (by, -by, 0)
    return zero_padded(x, config) if by else x


def joined(parts: Iterable[Any], axis: int = -1) -> Any:
    """Matrices beside each other (-1) or below each other (-2)."""
    parts = [p for p in parts if shape_of(p)[axis]] or list(parts)[:1]
    return parts[0] if len(parts) == 1 else concatenate_p.bind(*parts, dimension=ndim_of(parts[0]) + axis)


def taken_rows(x: Any, order: Any) -> Any:
    """The rows of each matrix in the order of its vector of indices, which are in bounds."""
    n, batch = ndim_of(x), tuple(range(ndim_of(x) - 2))
    if not prod(shape_of(x)):
        return x
    numbers = GatherDimensionNumbers((n - 1,), (n - 2,), (n - 2,), batch, batch)
    return gather_p.bind(x, broadcast_in_dim(order, (*shape_of(order), 1), tuple(range(n - 1))),
                         dimension_numbers=numbers, slice_sizes=(*(1,) * (n - 1), shape_of(x)[-1]),
                         fill_value=None, mode=PROMISE, indices_are_sorted=False, unique_indices=True)


def hermitian(x: Any, lower: bool = True) -> Any:
    """The Hermitian matrix that has this triangle of `x`; of its diagonal the real part."""
    strict = triangle(x, lower, 1)
    diag = mul_exactly(convert(real(x), dtype_of(x)) if dtypes.is_complex(dtype_of(x)) else x, eye_like(x))
    return add(add(strict, adjoint(strict)), diag)


def skew(x: Any) -> Any:
    """The skew-Hermitian matrix with the strictly lower triangle of `x` and its diagonal's imaginary part."""
    low = triangle(x, inset=1)
    result = sub(low, adjoint(low))
    if dtypes.is_complex(dtype_of(x)):
        result = add(result, mul_exactly(sub(x, convert(real(x), dtype_of(x))), eye_like(x)))
    return result


# --- kernels --------------------------------------------------------------------------------------

def _call(ctx: Any, eqn: Eqn, *names: str) -> list[str]:
    p = eqn.params
    return ctx.custom_call(p["target"], names, [v.aval for v in eqn.invars], p["outs"],
                           aliases=dict(p["aliases"]), config=p["config"] if type(p["config"]) is str
                           else dict(p["config"]), batch=p["batch"],
                           layouts=() if p["api_version"] == 4 else None, api_version=p["api_version"])


kernel_p = Unlisted("kernel", multiple_results=True, says_sharding=True,
                    abstract_eval=lambda *avals, outs, **_: list(outs), lower=_call)


def kernel(target: str, operands: Sequence[Any], outs: Iterable[ShapedArray], *,
           aliases: Iterable[tuple[int, int]] = (), api_version: int = 4, config: str | None = None,
           row_major: bool = False, **settings: Any) -> list[Any]:
    """Call a kernel on batches of matrices and vectors.

    Args:
        aliases: pairs of operand and result that share memory.
        config: its configuration as text, for XLA's own kernels.
        row_major: are what has two axes of its own in row-major order?  Else they are in column-major order.
        settings: its configuration by name.
    Returns:
        A list of the kernel's results, of the types `outs`.
    """
    batch = None if row_major or config is not None else max(map(ndim_of, operands)) - 2
    return kernel_p.bind(*operands, target=target, outs=tuple(outs), batch=batch, aliases=tuple(aliases),
                         api_version=api_version, config=tuple(settings.items()) if config is None
                         else config)


def lapack(routine: str, dtype: Any) -> str:
    """The name of jaxlib's kernel for a routine; one that is named after orthogonal or symmetric matrices has
    another name for complex numbers."""
    if dtypes.is_complex(dtype):
        routine = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd",
                   "sytrd": "hetrd"}.get(routine, routine)
    return f"lapack_{PREFIXES[dtype]}{routine}_ffi"


def letter(c: str) -> np.uint8:
    """A letter as LAPACK's kernels take it."""
    return np.uint8(ord(c))


def by_kernels(rules: Mapping[str | None, Callable[..., Any]]) -> dict[str | None, Callable[..., Any]]:
    """A table {platform: function of values and parameters} as lowering rules.

    Where nothing is to be computed, no kernel is called.

    Raises:
        NotImplementedError: by a rule, if the platform's kernels lack the dtype.
    """
    def rule(platform: str | None, function: Callable[..., Any]) -> Callable[..., Any]:
        def lower(ctx: Any, eqn: Eqn, *names: str) -> Any:
            outs, dtype = [v.aval for v in eqn.outvars], eqn.invars[0].aval.dtype
            if not any(prod(a.shape) for a in outs):
                return ctx.lower_fun(lambda *_: [full(a.shape, 0, a.dtype) for a in outs], eqn, *names)
            if platform and dtypes.is_inexact(dtype) and dtype not in PREFIXES:
                raise NotImplementedError(f"{eqn.primitive.name}: dtype {dtype.name} has no kernel on "
                                          f"platform {platform}; cast with .astype(jnp.float32)")
            return ctx.lower_fun(lambda *values: function(*values, **eqn.params), eqn, *names)
        return lower
    return {platform: rule(platform, function) for platform, function in rules.items()}


def checked(info: Any, *results: Any) -> list[Any]:
    """Results of a kernel where it succeeded, NaN where `info` is not zero."""
    good, shape = eq(info, 0), shape_of(info)

    def masked(x: Any) -> Any:
        nan = full(shape_of(x), complex(np.nan, np.nan) if dtypes.is_complex(dtype_of(x)) else np.nan,
                   dtype_of(x))
        return select(broadcast_in_dim(good, shape_of(x), tuple(range(len(shape)))), x, nan)
    return [masked(x) for x in results]


def infos(x: ShapedArray) -> ShapedArray:
    """The aval of what LAPACK says about each matrix: 0 for success."""
    return ShapedArray(x.shape[:-2], INT32)

