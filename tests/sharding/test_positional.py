"""PositionalSharding as a value."""
import pickle

import pytest
from stand_ins import grid

pytestmark = pytest.mark.quick


def test_positional_sharding_is_a_value():
    sharding = grid.reshape((4, -1))
    assert (sharding.shape, sharding.ndim, sharding.T.shape) == ((4, 2), 2, (2, 4))
    assert sharding == grid.reshape(4, 2) == sharding.T.T and hash(sharding) == hash(grid.reshape(4, 2))
    assert sharding != sharding.T and sharding != grid and sharding != sharding.with_memory_kind("pinned_host")
    assert sharding.replicate(-1).ids.tolist() == [[(0, 1)], [(2, 3)], [(4, 5)], [(6, 7)]]
    assert sharding.replicate((0, 1)).shape == (1, 1) and sharding.replicate(0, keepdims=False).shape == (2,)
    assert repr(sharding.replicate(0)) == "PositionalSharding([[{CPU 0,2,4,6} {CPU 1,3,5,7}]])"
    assert pickle.loads(pickle.dumps(sharding)) == sharding
