"""Statistics of samples: the commonest value, ranks, the error of a mean."""
from typing import NamedTuple

from ... import lax, numpy as jnp
from ...api.composite import composite
from ...core.array import Array
from ...core.errors import check_choice
from ...numpy.util import check_arraylike, promote_dtypes_inexact, promotes
from ...primitives.common import canonical_axis

__all__ = ["mode", "rankdata", "sem"]
_POLICIES = ("propagate", "omit", "raise")
_METHODS = ("average", "min", "max", "dense", "ordinal")


class ModeResult(NamedTuple):
    """The commonest values and how often there are."""
    mode: Array
    count: Array


def _check(name, a, nan_policy, supported=("propagate",)):
    check_arraylike(f"scipy.stats.{name}", a)
    check_choice("nan_policy", nan_policy, _POLICIES)
    if nan_policy not in supported:
        raise NotImplementedError(f"scipy.stats.{name}: nan_policy={nan_policy!r} is not supported: "
                                  f"{' and '.join(map(repr, supported))} "
                                  f"{'are' if len(supported) > 1 else 'is'}")


def _runs(a):
    """Where runs of equal values begin along the last axis, which is sorted; NaN equals NaN."""
    before, after = a[..., :-1], a[..., 1:]
    change = (before != after) & ~((before != before) & (after != after))
    return jnp.concatenate([jnp.ones_like(a[..., :1], bool), change], -1)


@composite(static=("axis", "nan_policy", "keepdims"))
def mode(a, axis=0, nan_policy="propagate", keepdims=False):
    """The commonest value along `axis`, None for all, and how often it is there; the smallest of several.

    A pair (mode, count), of the dtype of `a` and of integers.  NaN counts as one value, the greatest, as in
    JAX; SciPy gives NaN where one is.  An empty axis has the mode NaN.

    Raises:
        NotImplementedError: for another `nan_policy`.

    >>> jax.scipy.stats.mode(jnp.array([3, 1, 2, 1, 3]))
    ModeResult(mode=Array(1, dtype=int32), count=Array(2, dtype=int32))
    """
    _check("mode", a, nan_policy)
    a = jnp.atleast_1d(a) if axis is not None else jnp.asarray(a)
    place = 0 if axis is None else canonical_axis(axis, a.ndim)
    shape = a.shape
    a = jnp.sort(a.reshape(-1) if axis is None else jnp.moveaxis(a, place, -1), -1)
    if a.shape[-1]:
        places = jnp.broadcast_to(jnp.arange(a.shape[-1]), a.shape)
        count = places - lax.cummax(jnp.where(_runs(a), places, 0), axis=a.ndim - 1) + 1
        last = jnp.argmax(count, -1, keepdims=True)
        most = jnp.take_along_axis(count, last, -1)
        found = [jnp.take_along_axis(a, last - most + 1, -1)[..., 0], most[..., 0]]
    else:
        found = [jnp.full(a.shape[:-1], jnp.nan, float), jnp.zeros(a.shape[:-1], int)]
    if keepdims:
        found = [x.reshape([1] * len(shape)) if axis is None else jnp.expand_dims(x, place) for x in found]
    return ModeResult(*found)


@composite(static=("method", "axis", "nan_policy"))
def rankdata(a, method="average", *, axis=None, nan_policy="propagate"):
    """The ranks of values, from 1; floats, NaN for all along an axis that has a NaN.

    Args:
        method: what equal values get: their mean rank "average", or the "min" or "max" of their ranks, or
            "dense", without gaps, or "ordinal", each its own in the order that they have.
        axis: the axis; None flattens the array.
        nan_policy: "propagate".
    Raises:
        NotImplementedError: for other policies.

    >>> jax.scipy.stats.rankdata(jnp.array([30, 10, 10, 20]))
    Array([4. , 1.5, 1.5, 3. ], dtype=float32)
    """
    _check("rankdata", a, nan_policy)
    check_choice("method", method, _METHODS)
    a = jnp.ravel(a) if axis is None else jnp.asarray(a)
    place = canonical_axis(-1 if axis is None else axis, a.ndim)
    a = jnp.moveaxis(a, place, -1)
    n, last = a.shape[-1], a.ndim - 1
    order = jnp.argsort(a, -1)
    begins = _runs(jnp.take_along_axis(a, order, -1))[..., :n]
    places = jnp.broadcast_to(jnp.arange(n), a.shape)
    first = lax.cummax(jnp.where(begins, places, 0), axis=last) + 1
    ends = jnp.concatenate([begins[..., 1:], jnp.ones_like(begins[..., :1])], -1)[..., :n]
    final = lax.cummin(jnp.where(ends, places, n), axis=last, reverse=True) + 1
    ranks = {"average": (first + final) / 2, "min": first, "max": final,
             "dense": lax.cumsum(begins.astype(int), axis=last), "ordinal": places + 1}[method]
    ranks = jnp.take_along_axis(ranks, jnp.argsort(order, -1), -1).astype(jnp.result_type(float))
    return jnp.moveaxis(jnp.where(jnp.isnan(a).any(-1, keepdims=True), jnp.nan, ranks), -1, place)


@composite(static=("axis", "ddof", "nan_policy", "keepdims"))
@promotes()
def sem(a, axis=0, ddof=1, nan_policy="propagate", *, keepdims=False):
    """The standard error of the mean: the standard deviation over the root of the number.

    The result is floating, or complex where the values are; NaN where there are not more than `ddof` values.

    Args:
        axis: the axis; None flattens the array.
        ddof: what is subtracted from the number in the variance.
        nan_policy: "propagate", or "omit", which leaves NaN out.
        keepdims: the axis stays at size 1.
    Raises:
        NotImplementedError: for the policy "raise".

    >>> jax.scipy.stats.sem(jnp.array([1., 2., 3., jnp.nan]), nan_policy="omit")
    Array(0.57735026, dtype=float32)
    """
    _check("sem", a, nan_policy, ("propagate", "omit"))
    kept = ~jnp.isnan(a) if nan_policy == "omit" else jnp.ones(jnp.shape(a), bool)
    deviation = jnp.std(a, axis, ddof=ddof, keepdims=keepdims, where=kept)
    dtype = promote_dtypes_inexact(a)[0].dtype
    return (deviation / jnp.sqrt(kept.sum(axis, keepdims=keepdims))).astype(dtype)
