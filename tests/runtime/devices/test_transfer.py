"""Moving arrays: into another layout and over other devices at once."""
import numpy as np
from mesh8 import line

import hlotrace as jax
from hlotrace.runtime.devices import transfer
from hlotrace.sharding.layout import Layout

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def test_a_move_changes_devices_and_layout():
    columns = Layout((1, 0))
    lies = jax.NamedSharding(line(), jax.P("x"))
    one = jax.sharding.SingleDeviceSharding(jax.devices()[2])
    x = jax.device_put(X, one)
    for sharding in (lies.in_layout(columns), one.in_layout(columns), lies, one):
        x = transfer.move(x, sharding)
        assert x.sharding == sharding.in_layout(None) and x.committed
        assert x.format.layout == (sharding._layout or Layout((0, 1)))
        np.testing.assert_array_equal(x, X)
