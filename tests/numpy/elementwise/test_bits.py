"""packbits and unpackbits: values as NumPy's, errors."""
import numpy as np
import pytest
from equal import same_as_numpy

import hlotrace.numpy as jnp

BITS = np.array([[1, 0, 1, 1, 0, 0, 0, 1, 1], [0, 1, 1, 0, 0, 1, 0, 1, 0]], np.int32)
BYTES = np.array([[177, 3], [128, 9]], np.uint8)


V = np.array([3, 1, 2, 5, 4], np.float32)
I3 = np.arange(3, dtype=np.int32)


SAME = [
    *(lambda xp, order=order, axis=axis: xp.packbits(BITS, axis, order)
      for order, axis in (("big", None), ("little", 1), ("big", 0))),
    lambda xp: [xp.unpackbits(BYTES, axis, count, order) for axis in (None, 0, -1) for count in (None, 0, 5, 40, -3)
                for order in ("big", "little")],
]


@pytest.mark.parametrize("function", SAME)
def test_result_is_that_of_numpy(function):
    same_as_numpy(function(jnp), function(np))


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.packbits(V), TypeError, "integer or boolean"),
    (lambda: jnp.unpackbits(I3), TypeError, "unsigned byte"),
])
def test_packing_refuses(call, error, words):
    with pytest.raises(error, match=words):
        call()
