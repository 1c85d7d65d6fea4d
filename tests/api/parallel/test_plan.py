"""Plans: figures counted by hand for programs over CPU devices, what is refused, what is printed."""
import dataclasses
import json
import re
from collections import Counter

import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.config import override
from hlotrace.inspection import hlo_text
from hlotrace.inspection.planning import estimates, hlo_costs
from hlotrace.runtime.devices import chips
from hlotrace.sharding import AxisType, NamedSharding, P

KEY = "float32" + hlo_costs.ONE_PASS
X, W = jax.ShapeDtypeStruct((64, 32), "float32"), jax.ShapeDtypeStruct((32, 16), "float32")


def layer(x, w):
    return jnp.tanh(x @ w)


def loop(x, ws):
    """As many layers as `ws` has, each x @ w @ w.T, and the gradient of their sum."""
    def loss(ws):
        def body(x, w):
            return jnp.tanh(x @ w) @ w.T, None
        return jnp.sum(jax.lax.scan(body, x, ws)[0])
    return jax.grad(loss)(ws)


def one(fun, *types, mesh, specs, **options):
    found = jax.plan(fun, *types, on="cpu:8", mesh=mesh, in_specs=specs, **options)
    assert len(found.rows) == 1
    return found.rows[0].estimate


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize(("mesh", "specs", "parts", "arguments"), [
    # rows of x in 8 parts; in 4, and columns of w in 2; the sum in 8 parts, then one all-reduce of 64 x 16
    ("data=8", (P("data"), P()), 8, (8 * 32 + 32 * 16) * 4),
    ("data=4,model=2", (P("data"), P(None, "model")), 8, (16 * 32 + 32 * 8) * 4),
    ("data=8", (P(None, "data"), P("data")), 8, (64 * 4 + 4 * 16) * 4)])
def test_a_product_by_hand(mesh, specs, parts, arguments, quick):
    e = one(layer, X, W, mesh=mesh, specs=specs, quick=quick)
    assert e.flops == {KEY: 2 * 64 * 32 * 16 // parts}
    assert e.memory["arguments"] == arguments
    assert e.source == ("traced" if quick else "compiled")
    summed = specs[1] == P("data")
    assert (("all-reduce", "data") in e.sent) == summed
    if summed and quick:        # a ring sends 2 (n - 1) / n of the result
        assert e.sent["all-reduce", "data"] == 64 * 16 * 4 * 2 * 7 // 8


@pytest.mark.parametrize(("fun", "spec", "sent"), [
    (layer, P("data"), 32 * 16 * 4 * 7 // 8),                    # split where it is summed, and x is not
    (layer, P(None, "data"), 32 * 16 * 4 * 7 // 8),              # split where the result is not: its rows are
    (lambda x, w: layer(x, w) @ w.T, P("data"), 32 * 16 * 4 * 7 // 8),      # read twice, gathered once
    (lambda x, w: layer(x, w.astype("bfloat16")) * (x @ w)[0, 0], P(None, "data"), 32 * 16 * 4 * 7 // 8),
    (lambda x, w: jnp.einsum("bi,bio->bo", x, jnp.zeros((64, 32, 16)) + w), P(None, "data"), 0),    # rows of both
    (layer, P(), 0)])
def test_what_products_gather_by_hand(fun, spec, sent):
    e = one(fun, X, W, mesh="data=8", specs=(P("data"), spec), quick=True)
    assert e.sent == ({("all-gather", "data"): sent} if sent else {})


def convolved(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


IMAGES, KERNELS = jax.ShapeDtypeStruct((16, 4, 4, 8), "float32"), jax.ShapeDtypeStruct((3, 3, 8, 8), "float32")


@pytest.mark.parametrize(("fun", "types", "specs", "sent"), [
    (convolved, (IMAGES, KERNELS), (P("data"), P(None, None, None, "data")), {"all-gather": 3 * 3 * 8 * 8 * 4 * 7 // 8}),
    (convolved, (IMAGES, KERNELS), (P(None, None, None, "data"), P(None, None, "data")),
     {"all-reduce": 16 * 4 * 4 * 8 * 4 * 2 * 7 // 8}),
    (jax.grad(lambda w, x: convolved(x, w).sum()), (KERNELS, IMAGES), (P(), P("data")),
     {"all-reduce": 3 * 3 * 8 * 8 * 4 * 2 * 7 // 8}),
    (lambda x: x.sum(0), (X,), (P("data"),), {"all-reduce": 32 * 4 * 2 * 7 // 8}),
    (lambda x: x.sum(1), (X,), (P("data"),), {}),
    (lambda w, i: jnp.zeros_like(w).at[i].add(1.0), (W, jax.ShapeDtypeStruct((64,), "int32")), (P(), P("data")),
     {"all-reduce": 32 * 16 * 4 * 2 * 7 // 8})])
def test_what_convolutions_and_sums_send_by_hand(fun, types, specs, sent):
    e = one(fun, *types, mesh="data=8", specs=specs, quick=True)
    assert e.sent == {(kind, "data"): size for kind, size in sent.items()}


@pytest.mark.parametrize("fun", [
    lambda x, i: jax.lax.cond(i > 0, lambda: x @ x, lambda: jnp.sin(x)),
    lambda x, i: jax.lax.fori_loop(0, 1, lambda j, y: jax.lax.cond(j > i, lambda: y @ x, lambda: y), x)])
def test_branches_may_take_values_from_outside(fun):
    types = jax.ShapeDtypeStruct((16, 16), "float32"), jax.ShapeDtypeStruct((), "int32")
    assert sum(jax.jit(fun).lower(*types).estimate(quick=True).flops.values()) == 2 * 16**3


@pytest.mark.parametrize("quick", [False, True])
def test_loops_count_with_their_lengths(quick):
    ws = jax.ShapeDtypeStruct((6, 32, 16), "float32")
    e = one(loop, X, ws, mesh="data=8", specs=(P("data"), P()), quick=quick)
    # 2 products a layer, 4 more in the backward pass; the first layer needs no derivative by x, and none is left out
    by_hand = 6 * 6 * (2 * 64 * 32 * 16) // 8
    assert abs(sum(e.flops.values()) - by_hand) <= by_hand / 18
    assert not any("length" in note for note in e.notes)


def test_a_loop_whose_length_depends_on_values_counts_once_and_is_noted():
    def until(x):
        return jax.lax.while_loop(lambda x: jnp.sum(x) < 100, lambda x: x @ x, x)
    for quick in (False, True):
        e = jax.jit(until).lower(jax.ShapeDtypeStruct((16, 16), "float32")).estimate(quick=quick)
        assert sum(e.flops.values()) == 2 * 16**3 and estimates.UNKNOWN_LOOPS in e.notes


def test_memory_is_the_compilers_and_names_what_is_alive():
    def fun(x):
        return jnp.sum(jnp.sort(x @ x.T, axis=0) @ x)
    lowered = jax.jit(fun).lower(jax.ShapeDtypeStruct((256, 64), "float32"))
    e, stats = lowered.estimate(), lowered.compile().memory_analysis()
    assert (e.memory["arguments"], e.memory["temporaries"]) == (stats.argument_size_in_bytes, stats.temp_size_in_bytes)
    largest = e.at_peak[0]
    assert (largest["bytes"], largest["type"], largest["kind"]) == (256 * 256 * 4, "f32[256,256]", "temporary")
    assert largest["where"].startswith("test_plan.py:")
    assert [(v["name"], v["bytes"]) for v in e.at_peak if v["kind"] == "argument"] == [("x", 256 * 64 * 4)]
    quick = lowered.estimate(quick=True)
    assert quick.at_peak[0]["bytes"] == 256 * 256 * 4
    assert abs(quick.memory["needed"] / e.memory["needed"] - 1) < .25


def test_meshes_are_ranked_and_what_does_not_divide_is_said():
    found = jax.plan(layer, jax.ShapeDtypeStruct((12, 32), "float32"), W, on="cpu:8", batch="0:0",
                     in_specs=(P("data"), P(None, "model")))
    assert [row.mesh for row in found.rows if row.error] == [{"data": 8, "model": 1}]
    assert "partitioned 8 times, but the dimension size is 12" in found.rows[-1].error
    times = [row.estimate.seconds for row in found.rows[:-1]]
    assert times == sorted(times) and found.best is found.rows[0] and found.per_step == 12
    text = str(found)
    assert text.splitlines()[0].startswith("cpu:8: 8 x cpu (nominal rates")
    assert "examples/s" in text and "nothing was autotuned" in text and "partitioned 8 times" in text
    assert json.loads(found.to_json())["rows"][0]["estimate"]["flops"] == {KEY: 2 * 12 * 32 * 16 // 8}
    page = found.to_html()
    assert page.startswith("<!doctype html>") and "data=4 model=2" in page and "http" not in page


@pytest.mark.parametrize(("specs", "near"), [
    ((P(None, "a"), P("a", "b")), "a"),     # the product is summed over "a"
    ((P(None, "b"), P("b", "a")), "b")])
def test_over_several_hosts_the_axis_that_sends_the_most_is_within_one(specs, near, monkeypatch):
    monkeypatch.setattr(estimates, "NOMINAL_CPU", dataclasses.replace(estimates.NOMINAL_CPU, network=1e6))
    monkeypatch.setattr(estimates, "groups", lambda chip, devices: Counter(d.id // 4 for d in devices))
    def orders(mesh):
        found = jax.plan(layer, X, W, on="cpu:8", mesh=mesh, in_specs=specs, quick=True)
        return [list(row.mesh)[-1] for row in found.rows if 1 not in row.mesh.values()]
    assert orders("a,b") == orders("b,a") == [near] * 2
    assert orders(["a=2,b=4", "b=2,a=4"]) in (["a", "b"], ["b", "a"])       # these are the user's


def test_shardings_of_the_types_say_the_axes():
    mesh = jax.make_mesh((2, 1), ("rows", "columns"), (AxisType.Auto,) * 2, devices=jax.devices("cpu")[:2])
    x = jax.ShapeDtypeStruct((64, 32), "float32", sharding=NamedSharding(mesh, P("rows")))
    found = jax.plan(layer, x, W, on=jax.devices("cpu")[:4])
    assert [row.mesh for row in found.rows] == [{"rows": 4}]


def test_what_was_compiled_once_is_not_compiled_again(tmp_path, monkeypatch):
    lines = []

    def run():
        with (override("jax_enable_compilation_cache", True),
              override("jax_compilation_cache_dir", str(tmp_path))):
            return jax.plan(layer, X, W, on="cpu:4", in_specs=(P("data"), P()), progress=lines.append)
    first = run()
    monkeypatch.setattr("hlotrace.api.stages.Lowered.compile", None)
    again = run()
    assert again.rows[0].estimate.as_dict() == first.rows[0].estimate.as_dict()
    assert lines == ["cpu:4 data=4 (1 of 1)"] * 2


@pytest.mark.quick
@pytest.mark.parametrize(("options", "words"), [
    ({"on": "cpu:9000"}, "there are 8 CPU devices"),
    ({"on": "cpu:x"}, "behind cpu: is a number of devices"),
    ({"on": []}, "names no chips"),
    ({"on": 3}, "on=3 is neither names of chips"),
    ({"on": [1]}, "1 is neither a name of chips"),
    ({"mesh": []}, "mesh=[] names no mesh"),
    ({"batch": 3}, "batch=3 is not of the form"),
    ({"on": "v9z:4"}, "v9z"),
    ({"mesh": "data=16"}, "needs 16 devices and there are 8"),
    ({"mesh": "data=4,data=2"}, "names an axis twice"),
    ({"mesh": "data/model"}, "neither auto nor names of axes"),
    ({"batch": "0"}, "not of the form ARGUMENT:DIMENSION with one of the 2 arguments"),
    ({"batch": "1:5"}, "argument 1 is of shape (32, 16)"),
    ({"mesh": "data=8", "in_specs": (P("data"), P("data", "model"))}, "'model'")])
def test_what_is_refused(options, words):
    options = {"on": "cpu:8", "in_specs": (P("data"), P()), **options}
    with pytest.raises((ValueError, RuntimeError, TypeError), match="(?s).*" + re.escape(words)):
        jax.plan(layer, X, W, **options)


@pytest.mark.quick
def test_times_are_those_of_the_table_of_chips():
    v5e = chips.CHIPS["v5e"]
    assert estimates.rate(v5e, KEY) == estimates.rate(v5e, "bfloat16") == 197e12
    assert estimates.rate(chips.CHIPS["h100"], KEY) == 494.7e12
    assert estimates.rate(chips.CHIPS["h100"], "float32") == chips.CHIPS["h100"].peak["float32"]
    assert [estimates.ring_share(kind, 4) for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")] == [
        1.5, .75, 3, .75]
    assert estimates.ring_share("all-reduce", 1) == 0


@pytest.mark.quick
@pytest.mark.parametrize(("shape", "bytes", "padded", "space"), [
    ("f32[8,128]{1,0:T(8,128)}", 4096, 4096, 0), ("bf16[12,3,64]{2,1,0:T(8,128)(2,1)}", 4608, 12 * 8 * 128 * 2, 0),
    ("f32[12576,192]{0,1:T(8,128)}", 9658368, 12672 * 192 * 4, 0), ("s32[]{:T(128)S(6)}", 4, 512, 6),
    ("bf16[256,64]{1,0:T(8,128)(2,1)S(1)}", 32768, 65536, 1), ("pred[5]", 5, 5, 0), ("s4[3]", 2, 2, 0)])
def test_arrays_of_a_shape(shape, bytes, padded, space):
    [array] = hlo_text.arrays(shape)
    assert (array.bytes, array.padded_bytes, array.space) == (bytes, padded, space)
