"""Window functions: values as NumPy's."""
import numpy as np
import pytest
from equal import same_as_numpy

import hlotrace.numpy as jnp

SAME = [
    lambda xp: xp.kaiser(6, 14.0), lambda xp: xp.hanning(1),
]


@pytest.mark.parametrize("function", SAME)
def test_result_is_that_of_numpy(function):
    same_as_numpy(function(jnp), function(np))
