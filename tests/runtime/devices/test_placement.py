"""Shardings as jaxlib sees them, and which arrays a sharding fits."""
import numpy as np
import pytest

import hlotrace as jax
from hlotrace.core.avals import ShapedArray
from hlotrace.runtime.devices import placement
from hlotrace.sharding import Mesh, NamedSharding, P, SingleDeviceSharding

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def mesh():
    return Mesh(np.array(jax.devices()[:8][::-1]).reshape(4, 2), ("x", "y"))


def test_jaxlib_is_told_the_devices_in_the_order_of_the_sharding(mesh):
    sharding = NamedSharding(mesh, P("x"))
    assert list(sharding._of_jaxlib._internal_device_list) == jax.devices()[:8][::-1]
    assert sharding._of_jaxlib is sharding._of_jaxlib
    device = jax.devices()[3]
    assert list(SingleDeviceSharding(device)._of_jaxlib._internal_device_list) == [device]
    assert placement.on_device(device) is placement.on_device(device) is not placement.on_device(
        jax.devices()[2])
    assert placement.on_device(device, "pinned_host").memory_kind == "pinned_host"


# spec -> the tiles that HLO has of a matrix, then those that share a tile along a last axis; None where all
# have the whole
TILES = {
    P(): None, P(None, None): None,
    P("x", "y"): (4, 2), P("y", "x"): (2, 4), P(("x", "y")): (8, 1), P(None, ("y", "x")): (1, 8),
    P("x"): (4, 1, 2), P(None, "y"): (1, 2, 4),
}


@pytest.mark.parametrize("spec", TILES, ids=str)
def test_tiles_of_hlo_hold_the_devices_that_have_each_part(spec, mesh):
    sharding, shape = NamedSharding(mesh, spec), (8, 8)
    hlo = sharding._to_xla_hlo_sharding(2)
    if TILES[spec] is None:
        assert hlo.is_replicated()
        return
    assert tuple(hlo.tile_assignment_dimensions()) == TILES[spec]
    assert hlo.replicate_on_last_tile_dim() == (len(TILES[spec]) == 3)
    order = np.reshape(hlo.tile_assignment_devices(), (*TILES[spec][:2], -1))
    parts = [index for index in sharding.devices_indices_map(shape).values()]
    for (i, j, _), number in np.ndenumerate(order):
        rows, columns = (slice(k * n // tiles, (k + 1) * n // tiles)
                         for k, n, tiles in zip((i, j), shape, TILES[spec]))
        held = [range(n)[s] for s, n in zip(parts[number], shape)]
        assert held == [range(8)[rows], range(8)[columns]]


@pytest.mark.parametrize("spec, shape, divides, fits", [
    (P("x"), (8,), True, True), (P("x"), (6,), False, True), (P(("x", "y")), (4,), False, True),
    (P("x"), (0,), True, True),
    (P("x", "y"), (4, 2), True, True), (P("x", "y"), (4,), False, False), (P(None, None), (4,), True, False),
    (P(), (), True, True)], ids=str)
def test_what_a_sharding_divides_and_fits(spec, shape, divides, fits, mesh):
    sharding, value, asked = NamedSharding(mesh, spec), ShapedArray(shape, "float32"), []

    def name():
        asked.append(1)
        return "argument x"
    for check, good in ((placement.check_divides, divides), (placement.check_fits, divides and fits)):
        if good:
            check(sharding, value, name)
        else:
            with pytest.raises(ValueError, match="^argument x"):
                check(sharding, value, name)
    assert bool(asked) != (divides and fits)        # to write the name of a value may take long
    if fits:
        placement.check_fits(sharding, value, name, divides=False)
    else:
        with pytest.raises(ValueError, match="^argument x is incompatible with its sharding annotation"):
            placement.check_fits(sharding, value, name, divides=False)


def test_a_number_has_no_axes(mesh):
    placement.check_divides(NamedSharding(mesh, P()), 3.0)
    with pytest.raises(ValueError, match="^a number: "):
        placement.check_divides(NamedSharding(mesh, P("x")), 3.0, lambda: "a number")
    assert placement.of_type("argument x", ShapedArray((2,), "int32")) == "argument x of type int32[2]"
