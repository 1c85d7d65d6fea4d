"""SciPy's images of any rank: interpolation at given places."""
import functools
import itertools

from .. import lax, numpy as jnp
from ..api.composite import composite
from ..core import dtypes
from ..core.errors import ShapeError
from ..core.surface.public import export_names as _offer
from ..numpy.util import at_least_float32, check_arraylike
from ..primitives.common import static_int

__all__ = ["map_coordinates"]


def _mirrored(i, n):
    """Where the index i comes from in 0, 1, ..., n - 1, n - 2, ..., 1, again and again."""
    period = max(2 * (n - 1), 1)
    return n - 1 - abs(i % period - (n - 1))


_PLACES = {     # an index outside, by the mode: where in 0 ... n - 1 it comes from
    "constant": lambda i, n: i, "nearest": lambda i, n: jnp.clip(i, 0, n - 1), "wrap": lambda i, n: i % n,
    "mirror": _mirrored, "reflect": lambda i, n: _mirrored(2 * i + 1, 2 * n + 1) // 2}


def map_coordinates(input, coordinates, order, mode="constant", cval=0.0):
    """The array `input` at the places `coordinates`.

    The dtype is that of input; integers are rounded.

    Args:
        coordinates: as many arrays as input has axes, which broadcast.
        order: 0 takes the nearest element, 1 interpolates linearly.
        mode: beyond the edges, 'constant' `cval`, 'nearest' the last element, 'wrap' the array again (SciPy's
            grid-wrap), 'mirror' and 'reflect' backwards, with the last element once or twice.  As JAX, and
            other than SciPy, 'constant' interpolates between the edge and cval (SciPy's grid-constant).
    Raises:
        NotImplementedError: for other orders and modes.

    >>> x, places = jnp.array([[1., 2.], [3., 5.]]), [jnp.array([0., 0.5, 3.]), jnp.array([1., 0.5, 0.])]
    >>> jax.scipy.ndimage.map_coordinates(x, places, order=1, mode='nearest')
    Array([2.  , 2.75, 3.  ], dtype=float32)
    """
    input, coordinates = jnp.asarray(input), [jnp.asarray(c) for c in coordinates]
    check_arraylike("scipy.ndimage.map_coordinates", cval)
    if len(coordinates) != input.ndim:
        raise ShapeError("scipy.ndimage.map_coordinates: coordinates must be a sequence of length "
                         f"input.ndim, an array for each axis, but there are {len(coordinates)} for input "
                         f"of shape {input.shape}")
    order = static_int(order, "scipy.ndimage.map_coordinates: order")
    if order not in (0, 1):
        raise NotImplementedError(f"scipy.ndimage.map_coordinates: order={order} is not supported, 0 and 1 "
                                  "are")
    if mode not in _PLACES:
        raise NotImplementedError(f"scipy.ndimage.map_coordinates: mode={mode!r} is not supported, "
                                  f"{', '.join(_PLACES)} are")
    return _interpolated(input, coordinates, jnp.asarray(cval, input.dtype), order=order, mode=mode)


@composite(static=("order", "mode"))
def _interpolated(x, coordinates, cval, *, order, mode):
    wide = jnp.result_type(x.dtype, jnp.float32)
    axes = []       # for each, the neighbours of a place: (index, is it inside?, weight)
    for c, n in zip(coordinates, x.shape):
        c = c.astype(at_least_float32(c.dtype))
        low = lax.round(c) if order == 0 else jnp.floor(c)       # halves away from zero
        share = c - low
        neighbours = [(0, 1)] if order == 0 else [(0, 1 - share), (1, share)]
        found = []
        for more, weight in neighbours:
            place = _PLACES[mode](low.astype("int32") + more, n)
            found.append((jnp.clip(place, 0, max(n - 1, 0)), (place >= 0) & (place < n), weight))
        axes.append(found)
    total = jnp.zeros((), wide)
    for corner in itertools.product(*axes):
        value = x[tuple(i for i, _, _ in corner)].astype(wide)
        if mode == "constant":
            value = jnp.where(functools.reduce(jnp.logical_and, [inside for _, inside, _ in corner]), value,
                              cval.astype(wide))
        for _, _, weight in corner:
            value = value * weight
        total = total + value
    return (lax.round(total) if not dtypes.is_inexact(x.dtype) else total).astype(x.dtype)


_offer(globals())
