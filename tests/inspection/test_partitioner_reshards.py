"""What a value that comes to be split in another way costs: as XLA compiles it."""
import functools

import numpy as np
import planned
import pytest
from mesh8 import auto_mesh, on

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.api.parallel.explain_sharding import plan_of
from hlotrace.inspection.partitioner_reshards import reshard, tiling
from hlotrace.runtime import binding
from hlotrace.runtime.mlir.shardy import SubAxis


@functools.cache
def grid():
    return auto_mesh((4, 2), ("d", "m"))


def at(x, spec):
    return lax.with_sharding_constraint(x, on(*spec, mesh=grid))


@pytest.mark.parametrize("before, after", [
    (["d", "m"], ["m", "d"]), (["d", "m"], [None, "d"]), (["d", "m"], ["m"]), (["d", "m"], [("m", "d")]), (["d", "m"], []),
    ([("d", "m")], ["m", "d"]), ([("d", "m")], [None, "d"]), ([("d", "m")], [("m", "d")]), ([("d", "m")], ["d"]),
    (["d"], ["m", "d"]), (["d"], ["m"]), (["d"], [None, "d"]), (["d"], [None, "m"]), (["d"], [("d", "m")]),
    ([None, "m"], [("m", "d")]), ([None, "m"], ["m", "d"]), ([None, "d"], ["d", "m"]), ([], ["d", "m"]),
    (["d", "m"], [None, "d", "m"]), ([None, None, ("d", "m")], [None, "d", "m"]), (["m", "d"], ["d"]),
    ([None, None, "d"], ["d", "m"]), (["m"], [None, "m", "d"]), ([None, "m"], ["m", None, "d"]),
    ([None, "m", "d"], ["m"]), (["d", None, "m"], [None, "m"]), ([None, None, ("d", "m")], ["m"])])
def test_predicted_is_compiled(before, after):
    x = jax.ShapeDtypeStruct((16, 8, 8), np.float32, sharding=on(*before, mesh=grid))
    lowered = jax.jit(lambda x: jnp.tanh(at(at(jnp.sin(x), before), after))).lower(x)
    # what Shardy takes apart, from jaxlib 0.11 on, is marked
    apart = binding.version >= (0, 11) and ("d", "m") in before and after not in ([("m", "d")], ["d"], ["m"])
    assert all(row.exact for row in plan_of(lowered)) is not apart
    if not apart:
        assert planned.predicted(lowered) == planned.compiled(lowered.compile().as_text(), grid())


@pytest.mark.quick
def test_tilings():
    mesh = grid()
    assert tiling([("d",), ()], mesh).tolist() == [[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]]]
    assert tiling([("m", "d")], mesh)[:, 0].tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert tiling([(SubAxis("d", 2, 2),), ("m",)], mesh).tolist() == [[[0, 4], [1, 5]], [[2, 6], [3, 7]]]
    first, second = tiling([("d",), ()], mesh), tiling([(), ("d",)], mesh)
    assert reshard((16, 8), 32, first, first) == []
    [(kind, groups, size)] = reshard((16, 8), 32, first, second)
    assert (kind, size, groups) == ("all-to-all", 128, [[0, 2, 4, 6], [1, 3, 5, 7]])
    assert reshard((16, 8), 32, first, tiling([(), ("m",)], mesh)) is None
