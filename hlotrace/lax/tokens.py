"""Values as traces see them: dtype, shape_as_value, stage, dce_sink, tokens; and polynomial."""
import functools

from ..core import dtypes
from ..core.avals import ShapedArray, aval_of, is_arraylike, not_an_array
from ..core.config import state
from ..core.effects import ORDERED_TOKEN
from ..core.pytrees import pytree
from ..core.surface.jax_core_names import Token
from ..core.trace import EVAL, Tracer
from ..primitives.arrays.elementwise import add, convert, mul
from ..primitives.arrays.slicing import copy_p, dce_sink_p
from ..primitives.common import static_int
from ..primitives.programs.callbacks import after_all_p, create_token_p
from .control_flow import scan
from .shapes import broadcast_in_dim, checked_shape, full, joint_shape, stack

__all__ = ["after_all", "after_all_p", "create_token", "create_token_p", "dce_sink", "dce_sink_p", "dtype",
           "polynomial", "shape_as_value", "stage"]


def dtype(x):
    """The dtype that a value has in arrays, or that a type or a name of a dtype means; 64-bit ones need x64.

    Raises:
        ValueError: for None.
        TypeError: for other values.

    >>> lax.dtype(1.0), lax.dtype(int), lax.dtype("bfloat16")
    (dtype('float32'), dtype('int32'), dtype(bfloat16))
    """
    if x is None:
        raise ValueError("lax.dtype: None names no dtype and has none")
    return aval_of(x).dtype if is_arraylike(x) else dtypes.canonicalize(dtypes.as_dtype(x))


def shape_as_value(shape):
    """A shape as an int array of rank 1; symbolic sizes become values of the program.

    >>> lax.shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    sizes = [convert(stage(size), dtypes.canonicalize(dtypes.int64)) for size in shape]
    return stack(sizes) if sizes else full((0,), 0, dtypes.canonicalize(dtypes.int64))


def stage(x, /):
    """The same value as an array; while a program is traced, a value of that program.

    >>> lax.stage(np.float32(2))
    Array(2., dtype=float32)
    """
    checked_shape("stage", x)
    return copy_p.bind(x)


def dce_sink(val, *, prevent_mlir_dce=False):
    """What computes the arrays of the pytree `val` stays in the traced program, though nothing uses it.

    Args:
        val: a pytree of arrays.
        prevent_mlir_dce: not supported (it is to hold on to it in the compiler too); False.

    >>> jax.make_jaxpr(lambda x: lax.dce_sink(x * 2))(1.0).eqns[-1].primitive
    dce_sink
    """
    if prevent_mlir_dce:
        raise NotImplementedError("lax.dce_sink: prevent_mlir_dce=True is not supported: no kernel takes the "
                                  "values in; return them, or give them to a callback")
    for leaf in pytree.tree_leaves(val):
        checked_shape("dce_sink", leaf)
        dce_sink_p.bind(leaf)


def create_token(_=None):
    """A token, which has no data: what takes it follows what gave it.

    While a program is traced, it is a value of that program.

    >>> lax.create_token().block_until_ready()
    Token()
    """
    return Token() if state.trace is EVAL else create_token_p.bind()


def after_all(*operands):
    """A token that follows all of these tokens.

    Raises:
        TypeError: for other operands.

    >>> lax.after_all(lax.create_token(), lax.create_token())
    Token()
    """
    for x in operands:
        if not (isinstance(x, Token) or isinstance(x, Tracer) and x.aval is ORDERED_TOKEN.aval):
            raise TypeError("lax.after_all: an operand is no token" if is_arraylike(x) else not_an_array(x))
    traced = [x for x in operands if isinstance(x, Tracer)]
    return after_all_p.bind(*traced) if traced else create_token()


def polynomial(x, coeffs, *, unroll=None):
    """coeffs[0] + coeffs[1] x + coeffs[2] x**2 + ..., by Horner's rule (Knuth, TAOCP 2, section 4.6.4).

    Args:
        coeffs: converted to the dtype of `x`; scalars, or of its rank with sizes that broadcast.
        unroll: how many coefficients are written out, 8 for None; more are a loop.

    >>> lax.polynomial(jnp.array([0., 1., 3.]), [1., 5., 2.])
    Array([ 1.,  8., 34.], dtype=float32)
    """
    aval = aval_of(x)
    if dtypes.is_bool(aval.dtype):
        raise TypeError("lax.polynomial does not accept dtype bool: convert x with .astype(float)")
    avals = [aval_of(c) for c in coeffs]
    other = [a.shape for a in avals if a.ndim not in (0, aval.ndim) and aval.ndim]
    if other:
        raise TypeError(f"lax.polynomial: x has shape {aval.shape}, and a coefficient has {other[0]}: give "
                        "scalars or arrays of its rank")
    shape = joint_shape(aval.shape, *(a.shape for a in avals))
    spread = functools.partial(_spread, aval=ShapedArray(shape, aval.dtype, aval.weak_type))
    x, terms = spread(x), [spread(c) for c in reversed(list(coeffs))]
    if not terms:
        return mul(x, 0)
    total, *rest = terms
    if len(rest) < (8 if unroll is None else static_int(unroll, "unroll")):
        return functools.reduce(lambda total, c: add(mul(total, x), c), rest, total)
    return scan(lambda total, c: (add(mul(total, x), c), None), total, stack(rest))[0]


def _spread(x, aval):
    x = convert(x, aval.dtype, aval.weak_type)
    return broadcast_in_dim(x, aval.shape, range(aval.ndim) if aval_of(x).ndim else ())
