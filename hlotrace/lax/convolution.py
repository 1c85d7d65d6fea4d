"""Convolutions: conv_general_dilated and its kin, and what their padding and letters mean."""
import operator

from ..core.avals import aval_of
from ..core.errors import did_you_mean
from ..core.symbolic.dimension import as_size, max_dim
from ..placement.out_sharding import over_auto_axes, with_out_sharding
from ..primitives.arrays.contract import contract
from ..primitives.arrays.conv import ConvDimensionNumbers, conv_general_dilated_p, dilated
from ..primitives.arrays.precision import canonical_precision
from ..primitives.arrays.shape import transpose
from ..primitives.arrays.slicing import rev_p
from ..primitives.common import ndim_of, np, prod, shape_of
from .contraction import ints, preferred

ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]


def padtype_to_pads(in_shape, window_shape, window_strides, padding):
    """The (low, high) pads of each axis for 'SAME', 'SAME_LOWER' or 'VALID'.

    Raises:
        RuntimeError: for another string.

    >>> lax.padtype_to_pads((8, 8), (3, 2), (1, 2), "SAME")
    [(1, 1), (0, 0)]
    """
    kind = padding.upper() if isinstance(padding, str) else padding
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if kind not in ("SAME", "SAME_LOWER"):
        raise RuntimeError("Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got "
                           f"{padding}{did_you_mean(padding, ('VALID', 'SAME', 'SAME_LOWER'))}")
    totals = [max_dim(as_size((-(-n // stride) - 1) * stride + window - n), 0)
              for n, window, stride in zip(in_shape, window_shape, window_strides, strict=True)]
    return [(t // 2, t - t // 2) if kind == "SAME" else (t - t // 2, t // 2) for t in totals]


def conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers):
    """The ConvDimensionNumbers of a convolution.

    Args:
        dimension_numbers: None for (batch, feature, spatial...), strings such as ('NHWC', 'HWIO', 'NHWC'), or
            a ConvDimensionNumbers.
    Raises:
        TypeError: where the strings do not fit each other or the ranks.

    >>> lax.conv_dimension_numbers((1, 8, 8, 2), (3, 3, 2, 6), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return ConvDimensionNumbers(*map(tuple, dimension_numbers))
    ndim = len(lhs_shape)
    if len(rhs_shape) != ndim:
        batch = ": an image alone gets a batch axis by image[None]" if ndim + 1 == len(rhs_shape) else ""
        raise TypeError(f"convolution requires lhs and rhs ndim to be equal, got {ndim} and "
                        f"{len(rhs_shape)}: the image (lhs) has shape {tuple(lhs_shape)}, the kernel (rhs) "
                        f"{tuple(rhs_shape)}{batch}")
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(ndim))] * 3)
    if not isinstance(dimension_numbers, (list, tuple)):
        raise TypeError("convolution dimension_numbers must be a tuple of strings, ConvDimensionNumbers or "
                        f"None, got {type(dimension_numbers)}.")
    if len(dimension_numbers) != 3:
        raise TypeError("convolution dimension_numbers list/tuple must be length 3, got "
                        f"{len(dimension_numbers)}.")
    for i, (text, needed) in enumerate(zip(dimension_numbers, ("NC", "OI", "NC"))):
        if not isinstance(text, str) or len(text) != ndim:
            raise TypeError(f"convolution dimension_numbers[{i}] must have len equal to the ndim of lhs and "
                            f"rhs, got {text!r} for lhs and rhs shapes {tuple(lhs_shape)} and "
                            f"{tuple(rhs_shape)}.")
        if len(set(text)) != ndim:
            raise TypeError(f"convolution dimension_numbers[{i}] cannot have duplicate characters, got "
                            f"{text}.")
        if not set(needed) <= set(text):
            raise TypeError(f"convolution dimension_numbers[{i}] must contain {needed[0]!r} and "
                            f"{needed[1]!r}, got {text}.")
    lhs, rhs, out = dimension_numbers
    spatial = [c for c in rhs if c not in "OI"]
    if set(lhs) - set("NC") != set(spatial) or set(out) - set("NC") != set(spatial):
        raise TypeError("convolution dimension_numbers elements must each have the same set of spatial "
                        f"characters, got {tuple(dimension_numbers)}: such as ('NHWC', 'HWIO', 'NHWC')")
    return ConvDimensionNumbers(*(tuple(map(text.index, (*first, *spatial)))
                                  for text, first in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))))


def _pads(padding, name, sizes, windows, strides, rhs_dilation):
    if isinstance(padding, str):
        return tuple(padtype_to_pads(sizes, [dilated(k, d) for k, d in zip(windows, rhs_dilation)], strides,
                                     padding))
    try:
        return tuple((operator.index(low), operator.index(high)) for low, high in padding)
    except (TypeError, ValueError):
        raise ValueError(f"padding argument to {name} should be a string or a sequence of (low, high) pairs, "
                         f"got {padding}") from None


def conv_general_permutations(dimension_numbers):
    """The orders of axes that make ("NCHW", "OIHW", "NCHW") of strings such as ("NHWC", "HWIO", "NHWC").

    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    shape = (1,) * len(dimension_numbers[0])
    return tuple(conv_dimension_numbers(shape, shape, dimension_numbers))


def conv_shape_tuple(lhs_shape, rhs_shape, strides, pads, batch_group_count=1):
    """The shape of a convolution of (batch, feature, *spatial) with (out, in, *spatial).

    Args:
        strides: one for each spatial axis.
        pads: 'SAME', 'SAME_LOWER', 'VALID' or a (low, high) pair for each spatial axis.
        batch_group_count: the number of groups of the batch.
    Raises:
        TypeError: for another number of pads.
        ValueError: where `batch_group_count` does not divide the batch.

    >>> lax.conv_shape_tuple((4, 2, 8, 8), (6, 2, 3, 3), (1, 2), "SAME", 2)
    (2, 6, 8, 4)
    """
    space, window = lhs_shape[2:], rhs_shape[2:]
    if isinstance(pads, str):
        pads = padtype_to_pads(space, window, strides, pads) if len(space) == len(window) else ()
    if not len(space) == len(window) == len(pads):
        raise TypeError(f"conv_shape_tuple: {len(pads)} pads for lhs_shape {lhs_shape} and rhs_shape "
                        f"{rhs_shape}, of {len(space)} and {len(window)} spatial axes: give one pair for "
                        "each")
    if lhs_shape[0] % batch_group_count:
        raise ValueError(f"conv_shape_tuple: batch_group_count {batch_group_count} does not divide the batch "
                         f"{lhs_shape[0]}")
    sizes = [max(0, (n + low + high - k) // stride + 1)
             for n, k, stride, (low, high) in zip(space, window, strides, pads)]
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *sizes)


def conv_general_shape_tuple(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers):
    """`conv_shape_tuple` of shapes whose axes are ordered by `dimension_numbers`.

    >>> lax.conv_general_shape_tuple((1, 8, 8, 2), (3, 3, 2, 6), (1, 2), "VALID", ("NHWC", "HWIO", "NHWC"))
    (1, 6, 3, 6)
    """
    return _ordered_shape(lhs_shape, rhs_shape, dimension_numbers,
                          lambda x, k: conv_shape_tuple(x, k, window_strides, padding))


def conv_transpose_shape_tuple(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers):
    """The shape of a `conv_transpose`; `padding` is 'SAME', 'VALID' or the pairs of the dilated convolution.

    >>> lax.conv_transpose_shape_tuple((1, 8, 8, 2), (3, 3, 2, 5), (2, 2), "SAME", ("NHWC", "HWIO", "NHWC"))
    (1, 16, 16, 5)
    """
    def shape(x, k):
        pads = padding
        if isinstance(padding, str):
            pads = [_transpose_pads(window, stride, padding) for window, stride in zip(k[2:], window_strides)]
        wide = [dilated(n, stride) for n, stride in zip(x[2:], window_strides)]
        return conv_shape_tuple((*x[:2], *wide), k, (1,) * len(wide), pads)
    return _ordered_shape(lhs_shape, rhs_shape, dimension_numbers, shape)


def _ordered_shape(lhs_shape, rhs_shape, dimension_numbers, shape):
    lhs, rhs, out = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    found = shape(tuple(lhs_shape[i] for i in lhs), tuple(rhs_shape[i] for i in rhs))
    return tuple(found[out.index(i)] for i in range(len(out)))


def _dilation(dilation, rank, what):
    return (1,) * rank if dilation is None else ints(dilation, what)


def conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation=None, rhs_dilation=None,
                         dimension_numbers=None, feature_group_count=1, batch_group_count=1, precision=None,
                         preferred_element_type=None, out_sharding=None):
    """Convolution (the kernel is not flipped) with strides, padding, dilations of both operands, and groups.

    Args:
        lhs: the input, (batch, feature, *spatial) unless `dimension_numbers` orders the axes otherwise.
        rhs: the kernel, (out feature, in feature / feature_group_count, *spatial).
        window_strides: one for each spatial axis.
        padding: 'SAME', 'SAME_LOWER', 'VALID' or a (low, high) pair for each spatial axis.
        lhs_dilation: the distance of the input's elements, for each spatial axis or for all; 1 for None.
        rhs_dilation: the same of the kernel's elements.
        dimension_numbers: the orders of axes, as in `conv_dimension_numbers`.
        feature_group_count: the number of groups of features, each convolved with its part of the kernel.
        batch_group_count: the number of groups of the batch.
        precision: a `Precision` or a pair of them.
        preferred_element_type: the dtype of the result; that of the operands for None.
    Returns:
        An array (batch, feature, *spatial).

    >>> image, kernel = jnp.ones((1, 8, 8, 3)), jnp.ones((3, 3, 3, 6))
    >>> orders = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_general_dilated(image, kernel, (2, 2), "SAME", dimension_numbers=orders).shape
    (1, 4, 4, 6)
    """
    name = "conv_general_dilated"
    numbers = conv_dimension_numbers(aval_of(lhs).shape, aval_of(rhs).shape, dimension_numbers)
    rank = ndim_of(lhs) - 2
    strides = ints(window_strides, f"{name} window_strides")
    lhs_dilation, rhs_dilation = (
        (d,) * rank if isinstance(d, int) else _dilation(d, rank, f"{name} dilation")
        for d in (lhs_dilation, rhs_dilation))
    if isinstance(padding, str) and any(d != 1 for d in lhs_dilation):
        raise ValueError("String padding is not implemented for transposed convolution using this op. Please "
                         "either exactly specify the required padding or use conv_transpose.")
    sizes, windows = ([shape_of(x)[i] for i in spec[2:]]
                      for x, spec in ((lhs, numbers[0]), (rhs, numbers[1])))
    if len(strides) != rank:
        raise ValueError(f"{name} window and window_strides must have the same number of dimensions, but got "
                         f"{rank} and {len(strides)}: one for each of the {rank} spatial axes")
    if any(s < 1 for s in strides):
        raise ValueError(f"{name}: all window_strides must be positive, got {strides}")
    if out_sharding is not None:
        lhs, rhs = over_auto_axes(lhs, rhs)
    out = conv_general_dilated_p.bind(
        lhs, rhs, window_strides=strides, padding=_pads(padding, name, sizes, windows, strides, rhs_dilation),
        lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation, dimension_numbers=numbers,
        feature_group_count=operator.index(feature_group_count),
        batch_group_count=operator.index(batch_group_count),
        precision=canonical_precision(precision, algorithms=False),
        preferred_element_type=preferred(preferred_element_type, name))
    return with_out_sharding(out, out_sharding, f"lax.{name}")


def conv(lhs, rhs, window_strides, padding, precision=None, preferred_element_type=None):
    """conv_general_dilated of (batch, feature, *spatial) and (out, in, *spatial) without dilation.

    >>> lax.conv(jnp.array([[[1., 2., 3., 4.]]]), jnp.array([[[1., 10.]]]), (1,), "VALID")
    Array([[[21., 32., 43.]]], dtype=float32)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_with_general_padding(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=None,
                              preferred_element_type=None):
    """conv_general_dilated of (batch, feature, *spatial) and (out, in, *spatial).

    >>> x, kernel = jnp.array([[[1., 2., 3.]]]), jnp.array([[[1., 10.]]])
    >>> lax.conv_with_general_padding(x, kernel, (1,), [(1, 0)], None, None)
    Array([[[10., 21., 32.]]], dtype=float32)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation,
                                precision=precision, preferred_element_type=preferred_element_type)


def _transpose_pads(window, stride, padding):
    """The pads with which a convolution dilated by `stride` undoes one with that stride and `padding`."""
    if padding == "SAME":
        total = window + stride - 2
        low = window - 1 if stride > window - 1 else -(-total // 2)
    elif padding == "VALID":
        total = window + stride - 2 + max(window - stride, 0)
        low = window - 1
    else:
        raise ValueError("conv_transpose: padding must be 'SAME', 'VALID' or a sequence of (low, high) "
                         f"pairs, got {padding!r}")
    return low, total - low


def conv_transpose(lhs, rhs, strides, padding, rhs_dilation=None, dimension_numbers=None,
                   transpose_kernel=False, precision=None, preferred_element_type=None,
                   use_consistent_padding=False):
    """Convolution with fractional strides, "deconvolution".

    Args:
        lhs: the input; without `dimension_numbers`, its axes are N, spatial, C.
        rhs: the kernel; without `dimension_numbers`, its axes are spatial, I, O.
        strides: one for each spatial axis.
        padding: 'SAME', 'VALID' or a (low, high) pair for each spatial axis, of the dilated convolution, or
            with `use_consistent_padding` of the convolution undone.
        rhs_dilation: the distance of the kernel's elements, one for each spatial axis; 1 for None.
        dimension_numbers: the orders of axes, as in `conv_dimension_numbers`.
        transpose_kernel: flip the kernel and exchange its features: the gradient of a convolution.
        precision: a `Precision` or a pair of them.
        preferred_element_type: the dtype of the result; that of the operands for None.
        use_consistent_padding: what explicit pads mean.

    >>> image, kernel = jnp.ones((1, 4, 4, 2)), jnp.ones((3, 3, 2, 5))
    >>> lax.conv_transpose(image, kernel, (2, 2), "SAME").shape
    (1, 8, 8, 5)
    """
    ndim = aval_of(lhs).ndim
    if dimension_numbers is None:
        if not 2 <= ndim <= 5:
            raise ValueError(f"No 4+ dimensional dimension_number defaults: conv_transpose of rank {ndim} "
                             "needs dimension_numbers")
        space = "HWD"[:ndim - 2]
        dimension_numbers = (f"N{space}C", f"{space}IO", f"N{space}C")
    numbers = conv_dimension_numbers(shape_of(lhs), aval_of(rhs).shape, dimension_numbers)
    spatial = numbers.rhs_spec[2:]
    rhs_dilation = _dilation(rhs_dilation, len(spatial), "conv_transpose rhs_dilation")
    windows = [dilated(shape_of(rhs)[i], d) for i, d in zip(spatial, rhs_dilation)]
    if isinstance(padding, str):
        padding = [_transpose_pads(k, s, padding) for k, s in zip(windows, strides)]
    elif use_consistent_padding:
        padding = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(windows, padding)]
    if transpose_kernel:
        rhs = rev_p.bind(rhs, dimensions=tuple(spatial))
        order = list(range(ndim))
        i, j = numbers.rhs_spec[:2]
        order[i], order[j] = j, i
        rhs = transpose(rhs, order)
    return conv_general_dilated(lhs, rhs, (1,) * len(spatial), padding, strides, rhs_dilation, numbers,
                                precision=precision, preferred_element_type=preferred_element_type)


def conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, lhs_dilation=None,
                                 rhs_dilation=None, dimension_numbers=None, precision=None,
                                 preferred_element_type=None):
    """The windows that a convolution sees, as features.

    The features of the result are channel by channel, each with its prod(filter_shape) values.

    >>> lax.conv_general_dilated_patches(jnp.arange(4.).reshape(1, 1, 4), (2,), (1,), "VALID")
    Array([[[0., 1., 2.],
            [1., 2., 3.]]], dtype=float32)
    """
    filter_shape = ints(filter_shape, "conv_general_dilated_patches filter_shape")
    x = aval_of(lhs)
    numbers = conv_dimension_numbers(x.shape, (1, 1, *filter_shape), dimension_numbers)
    channels, window = x.shape[numbers.lhs_spec[1]], prod(filter_shape)
    one_hot = np.tile(np.eye(window, dtype=x.dtype).reshape(window, 1, *filter_shape),
                      (channels, 1, *[1] * len(filter_shape)))
    rhs = np.transpose(one_hot, np.argsort(numbers.rhs_spec))
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, numbers,
                                feature_group_count=channels, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_general_dilated_local(lhs, rhs, window_strides, padding, filter_shape, lhs_dilation=None,
                               rhs_dilation=None, dimension_numbers=None, precision=None):
    """Convolution with a kernel of its own at each place.

    The arguments are those of `conv_general_dilated`, but for these.

    Args:
        rhs: (out feature, in feature * prod(filter_shape), *spatial of the result), ordered by
            `dimension_numbers`.

    >>> x, kernel = jnp.array([[[1., 2., 3.]]]), jnp.array([[[1., 0.], [10., 1.]]])
    >>> lax.conv_general_dilated_local(x, kernel, (1,), "VALID", (2,))
    Array([[[21.,  3.]]], dtype=float32)
    """
    if aval_of(lhs).ndim < 2 or aval_of(rhs).ndim != aval_of(lhs).ndim:
        raise TypeError("conv_general_dilated_local: lhs and rhs must have equal ranks, of two or more, got "
                        f"shapes {aval_of(lhs).shape} and {aval_of(rhs).shape}")
    numbers = conv_dimension_numbers(aval_of(lhs).shape, aval_of(rhs).shape, dimension_numbers)
    patches = conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, lhs_dilation,
                                           rhs_dilation, numbers, precision)

    def letters(first, spec):
        names = dict(zip(spec, first + "abcdefgh"))
        return "".join(names[i] for i in range(len(spec)))
    return contract(patches, letters("NI", numbers.out_spec), rhs, letters("OI", numbers.rhs_spec),
                    letters("NO", numbers.out_spec), canonical_precision(precision))


__all__ = ["ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "conv", "conv_dimension_numbers",
           "conv_general_dilated", "conv_general_dilated_local", "conv_general_dilated_patches",
           "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose",
           "conv_transpose_shape_tuple", "conv_with_general_padding", "padtype_to_pads"]
