"""The table of chips: figures that belong together agree, and each has a source."""
from dataclasses import fields
from types import SimpleNamespace

import pytest

from hlotrace.runtime.devices import chips

pytestmark = pytest.mark.quick
CHIPS = list(chips.CHIPS.values())
named = pytest.mark.parametrize("chip", CHIPS, ids=[chip.name for chip in CHIPS])


@named
def test_each_figure_has_a_source_of_a_year(chip):
    figures = {f.name for f in fields(chip)} - {"name", "kind", "platform", "aliases", "sources"} - (
        set() if chip.vmem else {"vmem"})
    for figure in figures - ({"cuda"} if chip.cuda is None else set()):
        assert "(20" in chip.source(figure), figure
    assert {name for names in chip.sources for name in names.split()} <= figures


@named
def test_figures_are_of_their_magnitudes(chip):
    """A thousandfold or eightfold slip (GB, Gb, GiB) leaves these bounds."""
    assert 15e9 < chip.memory < 300e9
    assert 200e9 < chip.bandwidth < 10e12
    assert 30e9 <= chip.link_bandwidth <= chip.bandwidth / 2
    assert chip.network is None or 3e9 <= chip.network < chip.link_bandwidth
    assert 40e12 < max(chip.peak.values()) < 5e15
    assert 20 < chip.peak_of("float16") / chip.bandwidth < 700       # FLOP a byte


@named
def test_narrower_types_are_no_slower(chip):
    rates = [chip.peak_of(dtype) for dtype in ("float32", "tf32", "float16", "float8_e4m3fn")]
    assert rates == sorted(rates)
    assert chip.peak_of("int8") >= chip.peak_of("bfloat16")


@pytest.mark.parametrize("chip", [chip for chip in CHIPS if chip.cuda], ids=lambda chip: chip.name)
def test_vector_rate_is_lanes_times_clock(chip):
    """Two FLOP a lane and cycle; the clock that data sheets reckon with is within a few percent."""
    reckoned = 2 * chip.cores * chip.cuda.lanes * chip.cuda.clock_ghz * 1e9
    assert chip.vector == pytest.approx(reckoned, rel=.03)


@pytest.mark.parametrize("name, found", [("h100", "h100"), ("H100", "h100"), ("a100", "a100-80gb"),
                                         ("v7x", "tpu7x"), ("v5litepod", "v5e"), ("h1000", None)])
def test_find(name, found):
    assert getattr(chips.find(name), "name", None) == found


def test_names_are_of_one_chip_each():
    names = [name for chip in CHIPS for name in (chip.name, *chip.aliases)]
    assert len(names) == len(set(names))
    assert len({chip.kind for chip in CHIPS}) == len(CHIPS)


@pytest.mark.parametrize("kind, num_cores, memory", [
    ("TPU v5 lite", 1, 16), ("TPU v5", 2, 95), ("TPU v3", 1, 16), ("TPU7x", 1, 96), ("TPU v4", 2, 32)])
def test_a_device_has_its_share_of_a_chip(kind, num_cores, memory):
    chip = chips.of_device(SimpleNamespace(device_kind=kind, num_cores=num_cores))
    assert chip.memory == memory << 30
    whole = chips.CHIPS[chip.name]
    assert chip.peak_of("bfloat16") / whole.peak_of("bfloat16") == num_cores / whole.cores


def test_of_a_gpu_and_of_what_is_not_known():
    assert chips.of_device(SimpleNamespace(device_kind="NVIDIA L4")).name == "l4"
    assert chips.of_device(SimpleNamespace(device_kind="cpu")) is None


def test_a_type_without_units():
    with pytest.raises(ValueError, match=r"v5e: no rate is known for products of float64; .* bfloat16, int8"):
        chips.CHIPS["v5e"].peak_of("float64")
