"""Reductions, running reductions, sorting and windows: the public functions over those primitives."""
import operator

from ..core import dtypes
from ..core.avals import ShapedArray, aval_of
from ..core.caches import cached
from ..core.jaxpr_trace import trace_to_jaxpr
from ..core.programs import embed_constants
from ..core.pytrees import pytree
from ..core.symbolic.dimension import as_size
from ..core.trace import Tracer
from ..placement.out_sharding import over_auto_axes, unreduced_axes, with_out_sharding
from ..primitives.arrays import reduce as _reduce, sort as _sort, window
from ..primitives.arrays.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from ..primitives.arrays.elementwise import convert, max_p, min_p
from ..primitives.arrays.reduce import (
    argmax_p, argmin_p, reduce_and_p, reduce_max_p, reduce_min_p, reduce_or_p, reduce_p, reduce_prod_p,
    reduce_xor_p)
from ..primitives.arrays.shape import broadcast_in_dim, move_axis, reduce_sum_p, unreduced_sum_p
from ..primitives.arrays.sort import approx_top_k_p, top_k_p
from ..primitives.arrays.window import reduce_window_p
from ..primitives.common import canonical_axes, canonical_axis, np, shape_of
from .convolution import padtype_to_pads

__all__ = ["approx_max_k", "approx_min_k", "argmax", "argmin", "cumlogsumexp", "cummax", "cummin", "cumprod",
           "cumsum", "reduce", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod",
           "reduce_sum", "reduce_window", "reduce_window_shape_tuple", "reduce_xor", "sort", "sort_key_val",
           "top_k"]


def _axes_from_the_front(axes, ndim, what, name="axes"):
    """`axes`, where none counts from the end: reductions of lax refuse that, those of numpy take it."""
    for axis in axes:
        if operator.index(axis) < 0:
            raise ValueError(f"{what}: XLA operations do not allow negative axes, got {axis}; axis "
                             f"{axis + ndim} of {ndim} is it" if axis >= -ndim else
                             f"{what}: axis {axis} is out of bounds for an array of dimension {ndim}")
    return canonical_axes(tuple(axes), ndim, name)


# --- reductions by one operation ------------------------------------------------------------------

def _reduction(primitive, words, result, note=""):
    what = f"lax.{primitive.name}"

    def function(operand, axes):
        return primitive.bind(operand, axes=_axes_from_the_front(axes, aval_of(operand).ndim, what))

    def placed(operand, axes, *, out_sharding=None):
        if out_sharding is None:
            return function(operand, axes)
        unreduced = unreduced_axes(out_sharding, what, *[operand] * (primitive is reduce_sum_p))
        if not unreduced:
            return with_out_sharding(function(*over_auto_axes(operand), axes), out_sharding, what)
        if primitive is not reduce_sum_p:
            raise NotImplementedError(f"{what}: out_sharding={out_sharding} is unreduced, and that is for "
                                      "sums: reduce_sum and products")
        axes = _axes_from_the_front(axes, aval_of(operand).ndim, what)
        return with_out_sharding(unreduced_sum_p.bind(operand, axes=axes, unreduced=unreduced), out_sharding,
                                 what)
    public = placed if primitive in (reduce_sum_p, reduce_max_p, reduce_min_p) else function
    public.__name__ = public.__qualname__ = primitive.name
    public.__doc__ = (f"The {words} of `operand` over `axes`, a sequence of ints.  The dtype stays{note}.\n\n"
                      f">>> lax.{primitive.name}(jnp.array([[1, 3], [5, 7]]), (1,))\nArray({result}, "
                      "dtype=int32)\n")
    return public


reduce_sum = _reduction(reduce_sum_p, "sum", "[ 4, 12]", "; bfloat16 sums in XLA's own way")
reduce_prod = _reduction(reduce_prod_p, "product", "[ 3, 35]")
reduce_max = _reduction(reduce_max_p, "maximum", "[3, 7]")
reduce_min = _reduction(reduce_min_p, "minimum", "[1, 5]")
reduce_and = _reduction(reduce_and_p, "bitwise and", "[1, 5]")
reduce_or = _reduction(reduce_or_p, "bitwise or", "[3, 7]")
reduce_xor = _reduction(reduce_xor_p, "bitwise exclusive or", "[2, 2]")


def _arg_reduction(primitive, result):
    def function(operand, axis, index_dtype):
        axes = _axes_from_the_front((axis,), aval_of(operand).ndim, f"lax.{primitive.name}", "axis")
        return primitive.bind(operand, axes=axes,
                              index_dtype=dtypes.check_user_dtype(index_dtype, primitive.name))
    function.__name__ = function.__qualname__ = primitive.name
    function.__doc__ = (f"The index ({primitive.name}) along `axis`, of dtype `index_dtype`.  The lowest one "
                        "at a tie; the first NaN where there is one.\n\n"
                        f">>> lax.{primitive.name}(jnp.array([2, 9, 1]), 0, int).item()\n{result}\n")
    return function


argmax, argmin = _arg_reduction(argmax_p, 1), _arg_reduction(argmin_p, 2)


# --- reductions by a function ---------------------------------------------------------------------

@cached(512)
def _traced(computation, structure, element_dtypes, name):
    """The program of a computation on scalars: two sets of operands to one."""
    n = len(element_dtypes)

    def flat(*scalars):
        halves = [pytree.tree_unflatten(structure, s) for s in (scalars[:n], scalars[n:])]
        leaves, out_structure = pytree.tree_flatten(computation(*halves))
        if out_structure != structure:
            raise TypeError(f"{name}: the computation must return the structure of the operands, "
                            f"{structure}, it returned {out_structure}")
        return leaves
    jaxpr = trace_to_jaxpr(flat, [ShapedArray((), d) for d in element_dtypes * 2], name)
    if any(isinstance(c, Tracer) for c in jaxpr.consts):
        raise NotImplementedError(f"{name}: the computation closes over a traced value. Pass the value as "
                                  "another operand, or combine it with the result.")
    return embed_constants(jaxpr)


def _only_primitive(jaxpr):
    """The primitive p of a program that is p(x, y) and nothing else, or None."""
    if len(jaxpr.eqns) == 1 and len(jaxpr.invars) == 2:
        eqn, = jaxpr.eqns
        if set(eqn.invars) == set(jaxpr.invars) and list(eqn.outvars) == jaxpr.outvars:
            return eqn.primitive
    return None


def _prepare(name, operands, init_values, computation):
    """What a reduction by a function reduces.

    (operands, initial values of their dtypes, structure, program, the primitive that it is alone, its neutral
    element if that is the initial value)
    """
    if not callable(computation):
        what = computation.aval.str_short() if hasattr(computation, "aval") else repr(computation)[:60]
        raise TypeError(f"{name}: computation must be a function of two values, such as lax.add or lax.max, "
                        f"got {what}")
    xs, structure = pytree.tree_flatten(operands)
    inits, init_structure = pytree.tree_flatten(init_values)
    if structure != init_structure:
        raise ValueError(f"{name}: Operands must have the same tree structure as init_values: "
                         f"{structure} vs. {init_structure}")
    if not xs:
        raise ValueError(f"{name} must have at least one operand.")
    element_types = tuple(aval_of(x).dtype for x in xs)
    jaxpr = _traced(computation, structure, element_types, name)
    combine = _only_primitive(jaxpr)
    identity = _reduce.reducer_of(combine)[1]
    neutral = identity and identity(element_types[0])
    if neutral is not None and _is(inits[0], neutral, combine in (max_p, min_p)):
        return xs, [neutral], structure, jaxpr, combine, True
    inits = [init if isinstance(init, Tracer) else np.asarray(init, aval_of(init).dtype)[()]
             for init in inits]
    given = [aval_of(init).dtype for init in inits]
    if given != list(element_types):
        raise TypeError(f"{name} operand dtypes should match corresponding initial value dtypes, got "
                        f"{', '.join(d.name for d in element_types)} and {', '.join(d.name for d in given)}: "
                        "give the initial value the operand's, as in jnp.zeros((), x.dtype)")
    return xs, inits, structure, jaxpr, combine, False


def _is(init, neutral, extreme):
    """Is an initial value, of any dtype, known to be the neutral one?  An infinity is that of extremes."""
    known = init.concrete() if isinstance(init, Tracer) else init
    if known is None or shape_of(known):
        return False
    known = np.asarray(known)
    if extreme and dtypes.is_float(known.dtype) and np.isinf(known) and not dtypes.is_float(neutral.dtype):
        known = (dtypes.max_value if known > 0 else dtypes.min_value)(neutral.dtype)
    return bool(known == neutral)


def reduce(operands, init_values, computation, dimensions, out_sharding=None):
    """Reduce arrays of one shape together over `dimensions`, by an associative function of scalars.

    Args:
        operands: a pytree of arrays of one shape.
        init_values: a pytree of scalars of the same structure and the operands' dtypes; the neutral
            element of an operation on one operand may be of any, and -inf is that of max, inf of min.
        computation: takes two pytrees of scalars (one scalar each for a single operand) and gives one.
            Addition, multiplication, max, min, and, or, xor are recognised and use their own primitives.

    >>> lax.reduce(jnp.array([[1, 2], [3, 4]]), 0, lax.add, (1,))
    Array([3, 7], dtype=int32)
    >>> larger = lambda a, b: jax.tree.map(lax.max, a, b)
    >>> value, index = lax.reduce((jnp.array([3, 9]), jnp.arange(2)), (0, 0), larger, (0,))
    """
    xs, inits, structure, jaxpr, combine, neutral = _prepare("reduce", operands, init_values, computation)
    if out_sharding is not None:
        xs = over_auto_axes(*xs)
    dimensions = _axes_from_the_front(dimensions, aval_of(xs[0]).ndim, "lax.reduce", "dimensions")
    primitive = _reduce.reducer_of(combine)[0]
    if primitive is None or shape_of(inits[0]):
        outs = reduce_p.bind(*xs, *inits, jaxpr=jaxpr, dimensions=dimensions)
    else:
        out = primitive.bind(xs[0], axes=dimensions)
        if not neutral:
            out = combine.bind(broadcast_in_dim(inits[0], shape_of(out), ()), out)
        outs = [out]
    outs = [with_out_sharding(convert(out, out.dtype, aval_of(x).weak_type and aval_of(init).weak_type),
                              out_sharding, "lax.reduce")
            for out, x, init in zip(outs, xs, pytree.tree_leaves(init_values))]
    return pytree.tree_unflatten(structure, outs)


# --- windows --------------------------------------------------------------------------------------

def _window_parameters(shape, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    ones = (1,) * len(shape)
    dimensions, strides, base_dilation, window_dilation = (
        ones if v is None else tuple(map(as_size, v))
        for v in (window_dimensions, window_strides, base_dilation, window_dilation))
    if isinstance(padding, str) and len(dimensions) == len(strides) == len(shape) and 0 not in strides:
        padding = padtype_to_pads(shape, [window.dilated(n, d) for n, d in zip(dimensions, window_dilation)],
                                  strides, padding)
    padding = () if isinstance(padding, str) else tuple((as_size(lo), as_size(hi)) for lo, hi in padding)
    return dict(window_dimensions=dimensions, window_strides=strides, padding=padding,
                base_dilation=base_dilation, window_dilation=window_dilation)


def reduce_window_shape_tuple(operand_shape, window_dimensions, window_strides, padding, base_dilation=None,
                              window_dilation=None):
    """The shape of `reduce_window`'s results.

    >>> lax.reduce_window_shape_tuple((8, 8), (2, 3), (2, 1), "VALID")
    (4, 6)
    """
    shape = tuple(operand_shape)
    return window.window_shape("reduce_window", shape, **_window_parameters(
        shape, window_dimensions, window_strides, padding, base_dilation, window_dilation))


def reduce_window(operand, init_value, computation, window_dimensions, window_strides=None, padding="VALID",
                  base_dilation=None, window_dilation=None):
    """Reduce each window of arrays of one shape by an associative function of scalars.

    Sums, max and min can be differentiated, other computations only forwards.

    Args:
        operand: a pytree of arrays, as in `reduce`.
        init_value: a pytree of scalars, as in `reduce`.
        computation: as in `reduce`.
        window_dimensions: the size of the window along each axis.
        window_strides: one for each axis; 1 for None.
        padding: 'SAME', 'VALID', 'SAME_LOWER' or (low, high) for each axis; it reads as the initial value.
            The names go by the sizes of the operand without `base_dilation`.
        base_dilation: the distance of the operand's elements along each axis; 1 for None.
        window_dilation: the distance of the window's elements along each axis; 1 for None.

    >>> lax.reduce_window(jnp.array([1., 5., 2., 3.]), -jnp.inf, lax.max, (2,), (2,))
    Array([5., 3.], dtype=float32)
    """
    xs, inits, structure, jaxpr, combine, neutral = _prepare("reduce_window", operand, init_value,
                                                             computation)
    params = _window_parameters(aval_of(xs[0]).shape, window_dimensions, window_strides, padding,
                                base_dilation, window_dilation)
    primitive = window.REDUCERS.get(combine)
    # Counting the initial value of an extreme once or often is the same.
    if primitive is not None and (neutral or combine in (max_p, min_p) and not shape_of(inits[0])):
        out = primitive.bind(xs[0], **params)
        out = out if neutral else combine.bind(broadcast_in_dim(inits[0], shape_of(out), ()), out)
        return pytree.tree_unflatten(structure, [out])
    return pytree.tree_unflatten(structure, reduce_window_p.bind(*xs, *inits, jaxpr=jaxpr, **params))


# --- running reductions ---------------------------------------------------------------------------

def _cumulative(primitive, what, result):
    def function(operand, axis=0, reverse=False):
        axis, = _axes_from_the_front((axis,), aval_of(operand).ndim, f"lax.{primitive.name}", "axis")
        return primitive.bind(operand, axis=axis, reverse=bool(reverse))
    function.__name__ = function.__qualname__ = primitive.name
    function.__doc__ = (f"The running {what} along `axis`, from the end if `reverse`.  ValueError where "
                        f"there is no such axis.\n\n>>> lax.{primitive.name}(jnp.array([2., 3., "
                        f"1.]))\n{result}\n")
    return function


cumsum = _cumulative(cumsum_p, "sum", "Array([2., 5., 6.], dtype=float32)")
cumprod = _cumulative(cumprod_p, "product", "Array([2., 6., 6.], dtype=float32)")
cummax = _cumulative(cummax_p, "maximum", "Array([2., 3., 3.], dtype=float32)")
cummin = _cumulative(cummin_p, "minimum", "Array([2., 2., 1.], dtype=float32)")
cumlogsumexp = _cumulative(cumlogsumexp_p, "log-sum-exp", "Array([2. , 3.31..., 3.40...], dtype=float32)")


# --- sorting --------------------------------------------------------------------------------------

def sort(operand, dimension=-1, is_stable=True, num_keys=1):
    """Sort one array, or several of one shape together, along `dimension`.

    NaN comes last, -0.0 and 0.0 are equal, complex numbers go by real part, then by imaginary part.

    Args:
        operand: an array or a sequence of arrays, which gives a tuple.
        is_stable: equal elements keep their order.
        num_keys: how many of the arrays are compared, the first ones, in order.

    >>> lax.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    >>> lax.sort((jnp.array([1, 0, 1]), jnp.array([5, 4, 3])), num_keys=2)
    (Array([0, 1, 1], dtype=int32), Array([4, 3, 5], dtype=int32))
    """
    several = isinstance(operand, (tuple, list))
    operands = tuple(operand) if several else (operand,)
    if not operands:
        raise TypeError("Sort requires at least one operand")
    dimension = canonical_axis(dimension, aval_of(operands[0]).ndim, "dimension")
    results = _sort.sort(*operands, dimension=dimension, num_keys=operator.index(num_keys),
                         is_stable=bool(is_stable))
    return tuple(results) if several else results[0]


def sort_key_val(keys, values, dimension=-1, is_stable=True):
    """`keys` in order along `dimension`, and `values` moved with them.

    >>> lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([30, 10, 20]))
    (Array([1, 2, 3], dtype=int32), Array([10, 20, 30], dtype=int32))
    """
    return sort((keys, values), dimension, is_stable)


def top_k(operand, k, *, axis=-1, is_stable=True):
    """The k greatest values along an axis in descending order, and their int32 indices: [values, indices].

    Of equal ones the first come first, also where `is_stable=False` allows any.

    >>> lax.top_k(jnp.array([1, 4, 4, 2]), 2)
    [Array([4, 4], dtype=int32), Array([1, 2], dtype=int32)]
    """
    if not isinstance(is_stable, bool):
        raise TypeError(f"top_k: is_stable must be a bool, got {is_stable!r}")
    aval, k = aval_of(operand), as_size(k)
    axis = canonical_axis(axis, aval.ndim)
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}: it is how many are taken")
    if k > aval.shape[axis]:
        raise ValueError(f"k argument to top_k must be no larger than size along axis; got k={k} with "
                         f"shape={list(aval.shape)} and axis={axis}: take min(k, {aval.shape[axis]})")
    last = aval.ndim - 1
    return [move_axis(x, last, axis) for x in top_k_p.bind(move_axis(operand, axis, last), k=k)]


def approx_max_k(operand, k, reduction_dimension=-1, recall_target=0.95, reduction_input_size_override=-1,
                 aggregate_to_topk=True):
    """[values, int32 indices] of about the k greatest elements along an axis, in descending order.

    A TPU finds the expected part `recall_target` of them, other devices all (Chern et al., "TPU-KNN", 2022).

    Args:
        operand: floating point.
        recall_target: the part of them that is expected to be found.
        reduction_input_size_override: the size of the whole of which the operand is a part.
        aggregate_to_topk: False does not pick the k out of the more, in no order, that are found first.

    >>> lax.approx_max_k(jnp.array([1., 4., 3., 2.]), 2)
    [Array([4., 3.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    return _approximate(True, operand, k, reduction_dimension, recall_target, reduction_input_size_override,
                        aggregate_to_topk)


def approx_min_k(operand, k, reduction_dimension=-1, recall_target=0.95, reduction_input_size_override=-1,
                 aggregate_to_topk=True):
    """[values, int32 indices] of about the k least elements along an axis, ascending: see `approx_max_k`.

    >>> lax.approx_min_k(jnp.array([1., 4., 3., 2.]), 2)
    [Array([1., 2.], dtype=float32), Array([0, 3], dtype=int32)]
    """
    return _approximate(False, operand, k, reduction_dimension, recall_target, reduction_input_size_override,
                        aggregate_to_topk)


def _approximate(best, operand, k, axis, recall, size, aggregate):
    axis = canonical_axis(axis, aval_of(operand).ndim, "reduction_dimension")
    return approx_top_k_p.bind(operand, k=operator.index(k), reduction_dimension=axis,
                               recall_target=float(recall),
                               reduction_input_size_override=operator.index(size),
                               aggregate_to_topk=bool(aggregate), is_max_k=best)
