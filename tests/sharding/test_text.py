"""Meshes and shardings as Shardy writes them."""
import pytest
from stand_ins import DEVICES, MESH, REVERSED, U, grid, raises

from hlotrace.runtime.mlir.bindings import parse_module
from hlotrace.sharding import Mesh, NamedSharding, P, SingleDeviceSharding
from hlotrace.sharding.named import as_named
from hlotrace.sharding.text import mesh_text, sharding_text

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(("sharding", "ndim", "text"), [
    (NamedSharding(MESH, P("data")), 2, '<@mesh, [{"data"}, {}]>'),
    (NamedSharding(MESH, P(None, ("model", "data"))), 3, '<@mesh, [{}, {"model", "data"}, {}]>'),
    (NamedSharding(MESH, P(U, "data")), 3, '<@mesh, [{?}, {"data"}, {}]>'),
    (NamedSharding(MESH, P()), 0, "<@mesh, []>"),
    (NamedSharding(MESH.abstract_mesh, P("model")), 1, '<@mesh, [{"model"}]>'),
    (grid.reshape(4, 2), 2, '<@mesh, [{"_0"}, {"_1"}]>'),
    (grid.reshape(4, 2).replicate(0), 2, '<@mesh, [{}, {"_1"}]>'),
    (grid.replicate(keepdims=False), 0, "<@mesh, []>"),
    (SingleDeviceSharding(DEVICES[3]), 1, "<@mesh, [{}]>"),
], ids=str)
def test_shardy_text(sharding, ndim, text):
    assert sharding_text(sharding, ndim) == text
    assert sharding_text(sharding, ndim, "m") == text.replace("@mesh", "@m")


def test_open_shardings_and_ranks():
    assert sharding_text(NamedSharding(MESH, P("model")), 2, open=True) == '<@mesh, [{"model", ?}, {?}]>'
    with raises(ValueError, "to a value of rank 1"):
        sharding_text(NamedSharding(MESH, P(None, "data")), 1)


def test_mesh_text():
    assert mesh_text(MESH) == mesh_text(MESH.abstract_mesh) == 'sdy.mesh @mesh = <["data"=4, "model"=2]>'
    assert mesh_text(MESH, "m", DEVICES) == 'sdy.mesh @m = <["data"=4, "model"=2]>'
    assert mesh_text(REVERSED, devices=DEVICES) == (
        'sdy.mesh @mesh = <["a"=2, "b"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>')
    assert mesh_text(as_named(grid.reshape(4, 2).replicate(0), 2).mesh, devices=DEVICES) == (
        'sdy.mesh @mesh = <["_1"=2, "_copies"=4], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>')


def test_jaxlib_reads_the_text():
    odd = Mesh(REVERSED.devices, ('a "b"', "c\n"))
    attribute = "#sdy.sharding" + sharding_text(NamedSharding(odd, P(('a "b"', "c\n"), U)), 3)
    module = parse_module(f"{mesh_text(odd, devices=DEVICES)}\nfunc.func private @f(tensor<8x4x2xf32> "
                                  f"{{sdy.sharding = {attribute}}})")
    assert attribute in str(module) and mesh_text(odd, devices=DEVICES) in str(module)
