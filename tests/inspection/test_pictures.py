"""Pictures of shardings; the text is what JAX prints."""
import numpy as np
import pytest
from stand_ins import MESH, Device, grid, raises

import hlotrace as jax
from hlotrace.inspection.pictures import as_svg, as_text
from hlotrace.sharding import NamedSharding, P, PositionalSharding

pytestmark = pytest.mark.quick
PICTURES = {
    "rows": ((8, 4), P("data"), """
┌──────────┐
│ CPU 0,1  │
├──────────┤
│ CPU 2,3  │
├──────────┤
│ CPU 4,5  │
├──────────┤
│ CPU 6,7  │
└──────────┘"""),
    "tiles": ((8, 4), P("model", "data"), """
┌───────┬───────┬───────┬───────┐
│       │       │       │       │
│       │       │       │       │
│ CPU 0 │ CPU 2 │ CPU 4 │ CPU 6 │
│       │       │       │       │
├───────┼───────┼───────┼───────┤
│       │       │       │       │
│       │       │       │       │
│ CPU 1 │ CPU 3 │ CPU 5 │ CPU 7 │
│       │       │       │       │
└───────┴───────┴───────┴───────┘"""),
    "vector": ((8,), P("data"), """
┌───────┬───────┬───────┬───────┐
│CPU 0,1│CPU 2,3│CPU 4,5│CPU 6,7│
└───────┴───────┴───────┴───────┘"""),
    "copies": ((8,), P(), """
┌───────────────────┐
│CPU 0,1,2,3,4,5,6,7│
└───────────────────┘"""),
}


@pytest.mark.parametrize("name", PICTURES)
def test_text_picture(name, capsys):
    shape, spec, picture = PICTURES[name]
    jax.debug.visualize_sharding(shape, NamedSharding(MESH, spec))
    assert capsys.readouterr().out == picture[1:] + "\n"


def test_pictures_keep_to_the_width():
    many = PositionalSharding([Device(i) for i in range(16)])
    lines = as_text((16,), many).splitlines()
    assert max(map(len, lines)) <= 80 and lines[1].endswith("│ 14│ 15│")
    wide = as_text((8, 400), NamedSharding(MESH, P("data", "model"))).splitlines()
    assert {len(line) for line in wide} == {79} and "CPU 3" in wide[3]
    assert "\x1b[30;48;5;154m CPU 0 \x1b[0m" in as_text((8,), grid, color=True)


def test_svg_picture(tmp_path):
    sharding = NamedSharding(MESH, P("data", "model"))
    svg = jax.debug.visualize_sharding((8, 4), sharding, as_svg=True)
    assert svg == as_svg((8, 4), sharding) and svg.count("<rect") == 8 and ">CPU 7</text>" in svg
    jax.debug.visualize_sharding((8, 4), sharding, as_svg=tmp_path / "mesh.svg")
    assert (tmp_path / "mesh.svg").read_text("utf-8") == svg


def test_what_cannot_be_drawn_is_refused_in_words():
    for shape in ((), (8, 8, 8)):
        with raises(ValueError, "draws arrays of 1 and 2 dimensions"):
            jax.debug.visualize_sharding(shape, NamedSharding(MESH, P()))
    with raises(TypeError, "an array is needed whose sharding there is to see, got ndarray"):
        jax.debug.visualize_array_sharding(np.zeros(3))
