"""Errors of array functions begin with the sentence that programs written for JAX look for."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

X, Y, V = (np.zeros(shape, np.float32) for shape in ((3, 4), (3, 5), (4,)))
INTS, FLAGS, COMPLEX = X.astype(np.int32), X > 0, X.astype(np.complex64)
KEY = jax.random.key(0)


@pytest.mark.parametrize("call, kind, words", [
    (lambda: lax.add(V, X), TypeError, "arrays must have the same number of dimensions, got {1, 2}"),
    (lambda: lax.add(Y, X), TypeError, "add got incompatible shapes for broadcasting: (3, 5), (3, 4)."),
    (lambda: lax.add(X, INTS), TypeError,
     "lax.add requires arguments to have the same dtypes, got float32, int32."),
    (lambda: lax.add(FLAGS, FLAGS), TypeError,
     "add does not accept dtype bool at position 0. Accepted dtypes at position 0 are subtypes of "
     "integer, floating, complexfloating"),
    (lambda: lax.bitwise_and(INTS, X), TypeError,
     "and does not accept dtype float32 at position 1. Accepted dtypes at position 1 are subtypes of "
     "integer, bool"),
    (lambda: lax.lt(COMPLEX, X), TypeError, "subtypes of integer, floating, bool"),
    (lambda: lax.sin(INTS), TypeError,
     "sin does not accept dtype int32. Accepted dtypes are subtypes of floating, complexfloating"),
    (lambda: lax.select(FLAGS, X, INTS), TypeError,
     "lax.select requires arguments to have the same dtypes, got"),
    (lambda: lax.select(FLAGS, Y, X), TypeError,
     "select cases must have the same shapes, got [(3, 4), (3, 5)]"),
    (lambda: lax.select(V > 0, X, X), TypeError,
     "must be scalar or have the same shape as cases, got `which` shape (4,) but case shape (3, 4)"),
    (lambda: lax.rev(X, (0, 0)), TypeError, "rev dimensions must be unique, got (0, 0)"),
    (lambda: lax.rev(X, (2,)), TypeError, "rev dimensions must all be less than operand ndim, got"),
    (lambda: lax.transpose(X, (0, 0)), TypeError,
     "transpose permutation isn't a permutation of operand dimensions, got permutation (0, 0) for operand "
     "shape (3, 4)"),
    (lambda: lax.squeeze(X, (0,)), ValueError,
     "cannot select an axis to squeeze out which has size not equal to one, got shape=(3, 4) and "
     "dimensions=(0,)"),
    (lambda: lax.broadcast_in_dim(X, (3, 4, 2), (0, 2)), TypeError,
     "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their corresponding "
     "dimensions in the target broadcast shape"),
    (lambda: lax.broadcast_in_dim(X, (3,), (0,)), TypeError,
     "broadcast_dimensions must have length equal to operand ndim"),
    (lambda: lax.pad(X, 0., [(0, 0, 0)]), ValueError,
     "length of padding_config must equal the number of axes of operand, got padding_config ((0, 0, 0),) "
     "for operand shape (3, 4)"),
    (lambda: lax.pad(X, 0., [(0, 0, -1), (0, 0, 0)]), ValueError,
     "interior padding in padding_config must be nonnegative, got padding_config ((0, 0, -1), (0, 0, 0))"),
    (lambda: lax.pad(X, 0., [(-5, 0, 0), (0, 0, 0)]), ValueError,
     "Dimension size after padding is not at least 0, got result shape (-2, 4)"),
    (lambda: lax.slice(X, (0, 0), (4, 4)), TypeError,
     "slice limit_indices must be less than or equal to operand shape, got limit_indices (4, 4) for "
     "operand shape (3, 4)"),
    (lambda: lax.slice(X, (0, 0), (1, 4), (0, 1)), TypeError, "slice strides must be positive, got (0, 1)"),
    (lambda: lax.dynamic_update_slice(X, V, (0, 0)), TypeError,
     "update must have the same rank as operand, got update shape (4,) for operand shape (3, 4)"),
    (lambda: lax.dynamic_slice(X, (0., 0.), (1, 1)), TypeError,
     "index arguments to dynamic_slice must be integers of the same type, got: float32, float32"),
    (lambda: lax.dynamic_slice(X, (np.int32(1), np.int16(2)), (1, 1)), TypeError,
     "index arguments to dynamic_slice must be integers of the same type, got: int32, int16"),
    (lambda: lax.dynamic_update_slice(X, X, (np.int32(1), np.int16(2))), TypeError,
     "index arguments to dynamic_update_slice must be integers of the same type, got: int32, int16"),
    (lambda: lax.dynamic_slice(X, (0, 0), (4, 1)), TypeError,
     "slice_sizes must be less than or equal to operand shape, got slice_sizes (4, 1) for operand shape (3, 4)"),
    (lambda: lax.clamp(V, X, V), TypeError,
     "clamp requires min.shape == operand.shape or min.shape == (), got min.shape=(4,), operand.shape=(3, 4)"),
    (lambda: lax.select(X, X, X), TypeError, "select `which` must be boolean or integer type, got float32"),
    (lambda: lax.pad(V, V, [(0, 0, 0)]), ValueError,
     "padding_value must be a scalar; got np.shape(padding_value)=(4,)"),
    (lambda: lax.concatenate([], 0), ValueError, "concatenate requires a non-empty sequences of arrays"),
    (lambda: lax.concatenate([X, Y], 0), TypeError,
     "Cannot concatenate arrays with shapes that differ in dimensions other than the one being "
     "concatenated: concatenating along dimension 0 for shapes (3, 4), (3, 5)"),
    (lambda: lax.concatenate([X], 2), TypeError,
     "concatenate dimension out of bounds: dimension 2 for shapes (3, 4)"),
    (lambda: lax.iota(bool, 3), TypeError, "iota does not accept dtype bool"),
    (lambda: lax.conv(np.zeros((1, 3, 8)), np.zeros((4, 2, 3)), (1,), "SAME"), ValueError,
     "lhs feature dimension size divided by feature_group_count must equal the rhs input feature "
     "dimension size, but 3 // 1 != 2"),
    (lambda: lax.conv(np.zeros((1, 3, 8)), np.zeros((4, 3, 3)), (1,), "x"), RuntimeError,
     "Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got x"),
    (lambda: lax.bitcast_convert_type(FLAGS, np.int32), TypeError,
     "lax.bitcast_convert_type does not support bool or complex values unless the operand and destination "
     "types match"),
    (lambda: lax.reduce((X, INTS), (0.,), lambda a, b: a, (0,)), ValueError,
     "Operands must have the same tree structure as init_values"),
    (lambda: jnp.dot(X, V[:3]), TypeError,
     "dot_general requires contracting dimensions to have the same shape, got (4,) and (3,)"),
    (lambda: jnp.reshape(X, (-1, -1)), TypeError, "can only specify one unknown axis size with a `-1` value"),
    (lambda: jnp.reshape(X, 12, order="x"), ValueError, "Unexpected value for 'order' argument: x"),
    (lambda: jnp.moveaxis(X, 0, 5), ValueError, "axis 5 is out of bounds for array of dimension 2"),
    (lambda: jnp.put(X, 0, 1), ValueError,
     "jax.numpy.put cannot modify arrays in-place, because JAX arrays are immutable"),
    (lambda: jnp.searchsorted(V, 1, side="x"), ValueError,
     "invalid argument side='x', expected 'left' or 'right'"),
    (lambda: jnp.gradient(X, V, axis=0), ValueError,
     "Spacing arrays must be 1D arrays or scalars, and must have the same length as the dimension along "
     "which the gradient is calculated"),
    (lambda: jnp.meshgrid(X), ValueError, "Arguments to jax.numpy.meshgrid must be 1D, got shapes [(3, 4)]"),
    (lambda: jnp.polyfit(X, V, 1), TypeError, "expected 1D vector for x"),
    (lambda: jnp.polyfit(V, V[:2], 1), TypeError, "expected x and y to have same length"),
    (lambda: jnp.polyfit(V, V, 1, w=V[:2]), TypeError, "expected w and y to have the same length"),
    (lambda: jnp.polyder(V, -1), ValueError, "Order of derivative must be positive"),
    (lambda: jnp.cov(X, fweights=np.ones((2, 2), int)), RuntimeError,
     "cannot handle multidimensional fweights"),
    (lambda: jnp.cov(X, aweights=V[:2]), RuntimeError, "incompatible numbers of samples and aweights"),
    (lambda: jnp.zeros(2, "x"), TypeError, "data type 'x' not understood"),
    (lambda: jnp.asarray(X).at[0].set(V[:3]), ValueError, "Incompatible types for broadcasting"),
    (lambda: jnp.fft.fft(X, n=0), ValueError, "Shape should be positive"),
    (lambda: jnp.fft.fft2(X, s=(1,)), ValueError, "Shape and axes have different lengths"),
    (lambda: jnp.fft.fft(X, norm="x"), ValueError, "Invalid norm value x; should be"),
    (lambda: jnp.linalg.inv(X), ValueError, "must have shape [..., n, n]"),
    (lambda: jnp.linalg.matrix_power(X, 2), TypeError, "Last 2 dimensions of the array must be square"),
    (lambda: jnp.linalg.lstsq(X, V), ValueError, "Leading dimensions of input arrays must match"),
    (lambda: jnp.linalg.tensorinv(X), ValueError,
     "only possible when the product of the first `ind` dimensions"),
    (lambda: jax.random.split(X), TypeError,
     "JAX encountered invalid PRNG key data: expected key_data.shape to end with (2,)"),
    (lambda: jax.random.uniform(V[:2]), TypeError, "invalid PRNG key data: expected key_data.dtype = uint32"),
    (lambda: jax.random.uniform(3), TypeError, "expected key_data to have ndim, shape, and dtype attributes"),
    (lambda: jax.random.gamma(KEY, X, shape=()), ValueError,
     "gamma parameter shapes must be broadcast-compatible with shape argument"),
    (lambda: jax.random.key(0, impl="x"), ValueError, 'unrecognized PRNG implementation "x"'),
    (lambda: jax.image.resize(X, (3,), "linear"), ValueError,
     "shape must have length equal to the number of dimensions of x;  (3,) vs (3, 4)"),
    (lambda: jax.image.resize(X, (3, 3), "x"), ValueError, 'Unknown resize method "x"'),
], ids=lambda value: value if isinstance(value, str) else "")
def test_words(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)
