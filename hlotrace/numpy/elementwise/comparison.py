"""Comparisons of whole arrays, up to a tolerance or exactly, and of what they are."""
from ...api.composite import composite
from ...core import dtypes
from ...core.array import Array
from ...core.avals import is_arraylike
from ...primitives.arrays.elementwise import convert
from ...primitives.arrays.shape import full
from ...primitives.common import np, scalar
from ..arrays.creation import asarray
from ..reductions.reductions import all
from ..util import check_arraylike, dtype_of, joint_shape, promote_args, promote_dtypes_inexact, shape
from .ufuncs import abs, add, equal, isfinite, isnan, less_equal, logical_and, logical_or, multiply, subtract

__all__ = ["allclose", "array_equal", "array_equiv", "isclose", "iscomplexobj", "isrealobj", "isscalar"]


@composite(static=("equal_nan",))
def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """|a - b| <= atol + rtol * |b|, elementwise; infinities are close to themselves.

    Args:
        b: the reference, an array that broadcasts with `a`.
        equal_nan: NaN is close to NaN.

    >>> jnp.isclose(jnp.array([1., 1.1, jnp.inf]), jnp.array([1.000001, 1., jnp.inf]))
    Array([ True, False,  True], dtype=bool)
    >>> jnp.isclose(jnp.nan, jnp.nan), jnp.isclose(jnp.nan, jnp.nan, equal_nan=True)
    (Array(False, dtype=bool), Array(True, dtype=bool))
    """
    a, b = promote_args("isclose", a, b)
    if dtypes.is_extended(dtype_of(a)):
        return equal(a, b)
    if not dtypes.is_inexact(dtype_of(a)):
        a, b = promote_dtypes_inexact(a, b)
    limit = dtypes.real_of(dtype_of(a))
    rtol, atol = (convert(t, limit) if isinstance(t, Array) else scalar(t, limit) for t in (rtol, atol))
    near = less_equal(abs(subtract(a, b)), add(atol, multiply(rtol, abs(b))))
    result = logical_or(equal(a, b), logical_and(isfinite(b), near))
    return logical_or(result, logical_and(isnan(a), isnan(b))) if equal_nan else result


@composite(static=("equal_nan",))
def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """True where `isclose` holds for all elements, as a boolean scalar Array.

    >>> jnp.allclose(jnp.array([0.1 + 0.2, 1.]), jnp.array([0.3, 1.]))
    Array(True, dtype=bool)
    """
    return all(isclose(a, b, rtol, atol, equal_nan))


@composite(static=("equal_nan",))
def array_equal(a1, a2, equal_nan=False):
    """Have both arrays the same shape and the same elements?

    Lists and tuples are taken too; the result is a boolean scalar Array.

    >>> jnp.array_equal(jnp.arange(3), [0, 1, 2]), jnp.array_equal(jnp.arange(3), 0)
    (Array(True, dtype=bool), Array(False, dtype=bool))
    """
    a1, a2 = _sequences("array_equal", a1, a2)
    if shape(a1) != shape(a2):
        return full((), False, np.dtype(bool))
    same = equal(a1, a2)
    if equal_nan and not dtypes.is_extended(dtype_of(a1)):
        same = logical_or(same, logical_and(isnan(a1), isnan(a2)))
    return all(same)


@composite
def array_equiv(a1, a2):
    """Have both arrays, broadcast to one shape, the same elements?  False where they do not broadcast.

    >>> jnp.array_equiv(jnp.ones(3), 1), jnp.array_equiv(jnp.ones(3), jnp.ones(2))
    (Array(True, dtype=bool), Array(False, dtype=bool))
    """
    a1, a2 = _sequences("array_equiv", a1, a2)
    try:
        joint_shape(shape(a1), shape(a2))
    except ValueError:
        return full((), False, np.dtype(bool))
    return all(equal(a1, a2))


def _sequences(name, *args):
    arrays = [asarray(x) if isinstance(x, (list, tuple)) else x for x in args]
    check_arraylike(name, *arrays)
    return arrays


def iscomplexobj(x):
    """Is the dtype complex?  A Python bool, which under jit too is known from the type.

    >>> jnp.iscomplexobj(jnp.array([1, 0j])), jnp.iscomplexobj(1.5)
    (True, False)
    """
    return dtypes.is_complex(dtype_of(x)) if is_arraylike(x) else np.iscomplexobj(x)


def isrealobj(x):
    """Is the dtype not complex?

    >>> jnp.isrealobj(jnp.array([1, 0j])), jnp.isrealobj(1.5)
    (False, True)
    """
    return not iscomplexobj(x)


def isscalar(element):
    """Is it a Python or NumPy scalar, or an array of rank 0, NumPy's included?

    >>> jnp.isscalar(3.), jnp.isscalar(jnp.array(3.)), jnp.isscalar(jnp.array([3.]))
    (True, True, False)
    """
    return np.isscalar(element) or isinstance(element, (Array, np.ndarray)) and not element.shape
