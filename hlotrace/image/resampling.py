"""Resampling: each pixel of a result is a weighted mean of those around the place that it comes from.

One matrix of weights for each axis.  The convention is that of half pixels: pixel i is the interval from i to
i + 1.  Where the image shrinks, kernels are widened against aliasing.  Source: K. Turkowski, "Filters for
common resampling tasks", Graphics Gems I, 1990.
"""
import enum

import numpy as np

from .. import lax, numpy as jnp
from ..api.composite import composite
from ..core.errors import ShapeError, did_you_mean
from ..core.symbolic.dimension import is_constant_shape, max_dim
from ..numpy.util import at_least_float32, check_arraylike, promote_dtypes_inexact, promotes
from ..primitives.common import canonical_axes, canonical_shape
from ..runtime.devices import transfer_guards

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """How the pixels of an image become those of another; functions take a member or one of its names.

    NEAREST 'nearest'; LINEAR 'linear', 'bilinear', 'trilinear', 'triangle'; CUBIC 'cubic', 'bicubic',
    'tricubic': the kernel of Keys with a = -0.5; CUBIC_PYTORCH 'cubic-pytorch', 'bicubic-pytorch': as
    PyTorch does it, without antialias with a = -0.75, and the image going on with its edges; LANCZOS3
    'lanczos3'; LANCZOS5 'lanczos5'; AREA 'area': the mean of the pixels that one covers.
    """
    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s):
        """The member of a name.  ValueError for what is none."""
        if s not in _NAMES:
            raise ValueError(f'Unknown resize method "{s}": it is one of {", ".join(_NAMES)}'
                             f"{did_you_mean(s, _NAMES)}")
        return ResizeMethod[_NAMES[s]]


_NAMES = dict(nearest="NEAREST", linear="LINEAR", bilinear="LINEAR", trilinear="LINEAR", triangle="LINEAR",
              cubic="CUBIC", bicubic="CUBIC", tricubic="CUBIC", lanczos3="LANCZOS3", lanczos5="LANCZOS5",
              area="AREA")
_NAMES["cubic-pytorch"] = _NAMES["bicubic-pytorch"] = "CUBIC_PYTORCH"


def _cubic(a):
    """R. G. Keys, "Cubic convolution interpolation for digital image processing", IEEE Trans. ASSP 29, 1981.
    """
    return lambda x: jnp.where(x < 1, ((a + 2) * x - a - 3) * x * x + 1,
                               jnp.where(x < 2, a * (((x - 5) * x + 8) * x - 4), 0))


def _lanczos(radius):
    return lambda x: jnp.where(x < radius, jnp.sinc(x) * jnp.sinc(x / radius), 0)


KERNELS = {        # the weight of a pixel at a distance x >= 0
    ResizeMethod.LINEAR: lambda x: jnp.maximum(1 - x, 0), ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.5), ResizeMethod.LANCZOS3: _lanczos(3),
    ResizeMethod.LANCZOS5: _lanczos(5)}


def _bordered(place, old):
    """Rows of sum 1 where the first and the last pixel go on outside."""
    weights = _cubic(-0.75)(abs(jnp.clip(place, -2, old + 1) - jnp.arange(-4, old + 4, dtype=place.dtype)))
    return weights[:, 4:-4].at[:, 0].add(weights[:, :4].sum(1)).at[:, -1].add(weights[:, -4:].sum(1))


def _weights(old, new, scale, translation, method, antialias):
    """The matrix (new, old): 0 for pixels whose middle is outside of the image, else rows of sum 1."""
    step = 1 / scale
    middle = ((jnp.arange(new, dtype=scale.dtype) + 0.5 - translation) * step)[:, None]
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _bordered(middle - 0.5, old)
    pixels = jnp.arange(old, dtype=scale.dtype)
    if method is ResizeMethod.AREA:
        half = abs(step) / 2
        weights = jnp.maximum(jnp.minimum(middle + half, pixels + 1) - jnp.maximum(middle - half, pixels), 0)
    else:
        weights = KERNELS[method](abs(middle - pixels - 0.5) / (jnp.maximum(step, 1) if antialias else 1))
    total = weights.sum(1, keepdims=True)
    used = (middle >= 0) & (middle <= old) & (abs(total) > 1e-4 * abs(weights).max(1, keepdims=True))
    return jnp.where(used, weights / jnp.where(used, total, 1), 0)


@composite(static=("sizes", "axes", "method", "antialias", "precision"))
@promotes()
def _resampled(image, scale, translation, *, sizes, axes, method, antialias, precision):
    image, = promote_dtypes_inexact(image)
    scale, translation = (jnp.asarray(x, at_least_float32(x.dtype)) for x in
                          promote_dtypes_inexact(scale, translation))
    wide = image.astype(at_least_float32(image.dtype))
    for k, axis in enumerate(axes):
        weights = _weights(wide.shape[axis], sizes[k], scale[k], translation[k], method,
                           antialias).astype(wide.dtype)
        wide = jnp.moveaxis(jnp.tensordot(wide, weights, (axis, 1), precision=precision), -1, axis)
    return wide.astype(image.dtype)


def _arguments(name, image, shape, method):
    check_arraylike(f"image.{name}", image)
    shape = canonical_shape(shape)
    if len(shape) != jnp.ndim(image):
        raise ShapeError(f"image.{name}: shape must have length equal to the number of dimensions of x;  "
                         f"{shape} vs {jnp.shape(image)}")
    return shape, method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def scale_and_translate(image, shape, spatial_dims, scale, translation, method, antialias=True,
                        precision=lax.Precision.HIGHEST):
    """An image scaled and then moved: what is at position x along an axis comes to `scale * x + translation`.

    Pixels from outside of the image are 0.  Integers become floats.

    Args:
        shape: of the result; axes not in `spatial_dims` keep their sizes.
        scale: an array (len(spatial_dims),), which may be traced and differentiated.
        translation: an array (len(spatial_dims),), which may be traced and differentiated.
        method: a ResizeMethod or its name, not nearest.
        antialias: widen kernels where the image shrinks.
    Raises:
        ValueError: for nearest.
        ShapeError: for shapes that do not fit (JAX ignores sizes of other axes).

    >>> x = jnp.array([1., 2., 3.])
    >>> jax.image.scale_and_translate(x, (4,), (0,), jnp.array([1.]), jnp.array([0.5]), 'linear')
    Array([1. , 1.5, 2.5, 3. ], dtype=float32)
    """
    shape, method = _arguments("scale_and_translate", image, shape, method)
    if method is ResizeMethod.NEAREST:
        raise ValueError("Nearest neighbor resampling is not currently supported for scale_and_translate: "
                         "use image.resize or another method")
    check_arraylike("image.scale_and_translate", scale, translation)
    axes = canonical_axes(tuple(spatial_dims), len(shape), "spatial_dims")
    for what, x in (("scale", scale), ("translation", translation)):
        if jnp.shape(x) != (len(axes),):
            raise ShapeError(f"image.scale_and_translate: {what} must have one element for each of "
                             f"spatial_dims, shape {(len(axes),)}, got shape {jnp.shape(x)}")
    for axis, (old, new) in enumerate(zip(image.shape, shape)):
        if axis not in axes and old != new:
            raise ShapeError(f"image.scale_and_translate: axis {axis} has size {old} in the image and {new} "
                             "in shape: other sizes are for axes in spatial_dims alone")
    return _resampled(image, scale, translation, sizes=tuple(shape[i] for i in axes), axes=axes,
                      method=method, antialias=bool(antialias), precision=precision)


def resize(image, shape, method, antialias=True, precision=lax.Precision.HIGHEST):
    """An image with another shape; axes that keep their sizes are not touched.

    Integers become floats, but for nearest, which only picks.

    Args:
        method: a ResizeMethod or its name.
        antialias: widen kernels where the image shrinks.
    Raises:
        ValueError: for axes without elements.
        ShapeError: for another rank.

    >>> jax.image.resize(jnp.array([[1., 2.]]), (1, 4), 'linear')
    Array([[1.  , 1.25, 1.75, 2.  ]], dtype=float32)
    >>> jax.image.resize(jnp.arange(6), (3,), method='nearest')
    Array([1, 3, 5], dtype=int32)
    """
    shape, method = _arguments("resize", image, shape, method)
    axes = tuple(i for i, (old, new) in enumerate(zip(jnp.shape(image), shape)) if old != new)
    if any(not image.shape[i] for i in axes):
        raise ValueError("image.resize: an axis without elements cannot be resized, from shape "
                         f"{image.shape} to {shape}")
    if method is ResizeMethod.NEAREST:
        image = jnp.asarray(image)
        for axis in axes:
            new, old = shape[axis], image.shape[axis]
            positions = (np if is_constant_shape((new, old)) else jnp).arange(new)
            with transfer_guards.unasked():     # numbers that the user did not give
                image = image.take((2 * positions + 1) * old // max_dim(2 * new, 1), axis)
        return image
    scale = [shape[i] / image.shape[i] for i in axes]       # arrays, where sizes are symbolic
    of = np if all(isinstance(x, float) for x in scale) else jnp
    scale = of.array(scale, np.float32 if image.dtype != "float64" else None)
    scale = of.where(scale == 0, 1, scale)
    with transfer_guards.unasked():
        scale, translation = jnp.asarray(scale), jnp.asarray(0 * scale)
    return _resampled(image, scale, translation, sizes=tuple(shape[i] for i in axes),
                      axes=axes, method=method, antialias=bool(antialias), precision=precision)
