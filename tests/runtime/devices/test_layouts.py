"""Layouts of buffers: what jaxlib says of them, and copies in another one."""
import numpy as np

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.runtime.devices import layouts
from hlotrace.sharding.layout import Layout

COLUMNS = Layout((1, 0))


def test_a_layout_that_is_the_devices_own_is_none():
    x = jnp.ones((2, 3))
    own = layouts.settled(x.sharding.in_layout(Layout((0, 1))), x.aval, "test")
    assert own is x.sharding and own._layout is None
    other = x.sharding.in_layout(COLUMNS)
    assert layouts.settled(other, x.aval, "test") is other != x.sharding
    assert other.in_layout(None) is x.sharding and not other.same_placement(x.sharding, 2)


def test_a_buffer_is_copied_into_a_layout_and_back():
    x = jnp.arange(6.0).reshape(2, 3)
    buffer = layouts.moved(x, x.sharding.in_layout(COLUMNS))
    assert Layout.parse(str(buffer._pjrt_layout)) == COLUMNS == buffer._sharding._layout
    y = type(x)(x.aval, buffer, True)
    assert layouts.of_array(y).layout == COLUMNS and layouts.of_array(y).sharding is x.sharding
    again = layouts.moved(y, x.sharding)
    assert again._sharding._layout is None
    np.testing.assert_array_equal(type(x)(x.aval, again, True), np.arange(6.0).reshape(2, 3))


def test_texts_of_layouts():
    for text in ("{}", "{0,1}", "{1,0:T(8,128)(2,1)E(4)}", "{2,1,0:T(*,8)}"):
        assert Layout.parse(text).text == text
    assert Layout((1, 0)).is_met_by(Layout((1, 0), ((8, 128),))) and not Layout((1, 0), ()).is_met_by(
        Layout((1, 0), ((8, 128),)))
    assert jax.devices()
