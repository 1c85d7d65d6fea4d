"""SciPy's interpolation on a rectangular grid."""
import itertools

from .. import numpy as jnp
from ..api.composite import composite
from ..core.errors import ShapeError, check_choice
from ..core.pytrees import pytree
from ..core.surface.boundary import boundaries
from ..core.surface.public import export_names as _offer
from ..numpy.util import check_arraylike, promote_dtypes_inexact

__all__ = ["RegularGridInterpolator"]


@pytree.register_pytree_node_class
@boundaries(but="tree_flatten tree_unflatten")
class RegularGridInterpolator:
    """Values on a grid, as a function of places between its points.

    It is a pytree of its points, values and fill_value.  A call takes places, an array (..., d) or a tuple of
    d arrays that broadcast, and perhaps another method; it gives (..., *values.shape[d:]), floating.

    Args:
        points: a strictly increasing vector (m_i,) for each of the d axes; the order is not checked.
        values: (m_1, ..., m_d, ...).
        method: 'linear', of the 2**d points around, or 'nearest'.
        bounds_error: False, as places may be traced.
        fill_value: the value outside of the grid, None to extrapolate.
    Raises:
        ShapeError: for points that do not fit the values.
        NotImplementedError: for `bounds_error=True`.

    >>> points, values = (jnp.array([1., 2., 4.]),), jnp.array([0., 10., 30.])
    >>> f = jax.scipy.interpolate.RegularGridInterpolator(points, values)
    >>> f(jnp.array([[1.5], [3.], [9.]]))
    Array([ 5., 20., nan], dtype=float32)
    """

    def __init__(self, points, values, method="linear", bounds_error=False, fill_value=jnp.nan):
        name = "scipy.interpolate.RegularGridInterpolator"
        if bounds_error:
            raise NotImplementedError(f"{name}: bounds_error=True is not supported, as places may be traced: "
                                      "outside of the grid there is fill_value")
        check_arraylike(name, values, *points)
        shapes = tuple(map(jnp.shape, points))
        if shapes != tuple((n,) for n in jnp.shape(values)[:len(shapes)]):
            raise ShapeError(f"{name}: points must be a vector for each of the first axes of values, of "
                             f"their sizes, got points of shapes {shapes} and values of shape "
                             f"{jnp.shape(values)}")
        self.grid, self.values = tuple(jnp.asarray(p) for p in points), jnp.asarray(values)
        self.method, self.bounds_error = self._checked(method), bounds_error
        if fill_value is not None:
            check_arraylike(name, fill_value)
            if jnp.iscomplexobj(fill_value) and not jnp.iscomplexobj(values):
                raise ValueError(f"{name}: fill_value must be None or of a type compatible with values, got "
                                 f"{fill_value!r} for {self.values.dtype}")
        self.fill_value = fill_value

    @staticmethod
    def _checked(method):
        check_choice("scipy.interpolate.RegularGridInterpolator: method", method, ("linear", "nearest"))
        return method

    def __call__(self, xi, method=None):
        method, d = self._checked(self.method if method is None else method), len(self.grid)
        if isinstance(xi, (tuple, list)):
            check_arraylike("RegularGridInterpolator", *xi)
            xi = jnp.stack(jnp.broadcast_arrays(*promote_dtypes_inexact(*xi)), -1)
        else:
            check_arraylike("RegularGridInterpolator", xi)
            if jnp.ndim(xi) == 1 and len(xi) % d == 0:
                xi = jnp.reshape(xi, (-1, d))
        if jnp.shape(xi)[-1:] != (d,):
            raise ShapeError(f"RegularGridInterpolator: places must have shape (..., {d}), as the grid has "
                             f"{d} axes, got {jnp.shape(xi)}")
        return _evaluated(self.grid, self.values, jnp.asarray(xi), self.fill_value, method=method)

    def tree_flatten(self):
        return (self.grid, self.values, self.fill_value), self.method

    @classmethod
    def tree_unflatten(cls, method, children):
        self = object.__new__(cls)
        (self.grid, self.values, self.fill_value), self.method, self.bounds_error = children, method, False
        return self


@composite(static=("method",))
def _evaluated(grid, values, xi, fill_value, *, method):
    values, = promote_dtypes_inexact(values)
    axes, outside, missing = [], False, False
    for p, x in zip(grid, jnp.moveaxis(xi, -1, 0)):
        p, x = promote_dtypes_inexact(p, x)
        low = jnp.clip(jnp.searchsorted(p, x, side="right") - 1, 0, max(len(p) - 2, 0))
        high = jnp.minimum(low + 1, len(p) - 1)
        share = (x - p[low]) / jnp.where(high > low, p[high] - p[low], 1)
        axes.append([(low, 1 - share), (high, share)] if method == "linear"
                    else [(jnp.where(share > 0.5, high, low), 1)])
        outside, missing = outside | (x < p[0]) | (x > p[-1]), missing | jnp.isnan(x)
    total, spread = 0, (..., *[None] * (values.ndim - len(grid)))
    for corner in itertools.product(*axes):
        value = values[tuple(i for i, _ in corner)]
        for _, weight in corner if method == "linear" else ():
            value = value * weight[spread]
        total = total + value
    if fill_value is not None:
        total = jnp.where(outside[spread], fill_value, total)
    return jnp.where(missing[spread], jnp.nan, total)


_offer(globals())
