"""Memory as TPUs have it: arrays in tiles, values beside the cores."""
from types import SimpleNamespace

import pytest

from hlotrace.inspection.planning import tpu_memory

pytestmark = pytest.mark.quick
LAYOUTS = {(12576, 12): "{0,1:T(8,128)}", (50304, 768): "{1,0:T(8,128)}",
           (12, 3, 64, 12): "{2,3,1,0:T(8,128)}",
           (768,): "{0:T(1024)}", (): "{:T(128)}", (1, 1025): "{1,0:T(1,128)}"}


def tiles():
    client = SimpleNamespace(get_default_layout=lambda dtype, shape, device: LAYOUTS[shape])
    return tpu_memory.Tiles(SimpleNamespace(client=client))


@pytest.mark.parametrize("shape, whole, elements", [
    ((12576, 12), None, 16 * 12672), ((12576, 12), (50304, 768), 12576 * 128),
    ((12, 3, 64, 12), None, 36 * 16 * 128),
    ((768,), None, 1024), ((), None, 128), ((1, 1025), None, 1152)])
def test_the_fastest_axes_are_filled_up_to_whole_tiles(shape, whole, elements):
    assert tiles().bytes("float32", 32, shape, whole) == 4 * elements


class Value:
    def __init__(self, mebibytes):
        self.bytes = mebibytes << 20


@pytest.mark.parametrize("loops, vmem, kept",
                         [([7], 128, "short"), ([], 128, "short long over"), ([], 80, "short over"),
                          ([], 79, "over")])
def test_the_shortest_lived_values_are_beside_the_cores(loops, vmem, kept):
    names = {Value(40): "long", Value(40): "short", Value(1): "over", Value(80): "large"}
    spans = dict(zip(names, [(0, 9), (3, 4), (6, 8), (1, 2)]))
    found = tpu_memory.in_vmem(spans, loops, vmem << 20)
    assert {names[value] for value in found} == set(kept.split())
