"""Sums over devices that pieces of a program leave as terms: the results, and how often devices add."""
import mesh8  # noqa: F401  eight CPU devices
import numpy as np
import pytest
from piece_programs import PARAMS as LAYERS, X, loss, step

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import P
from hlotrace.core.config import override
from hlotrace.experimental import serialize_executable
from hlotrace.runtime.executables import blocks
from hlotrace.runtime.executables.sharded_blocks import SpmdBlockExecutable
from hlotrace.runtime.mlir import shardy
from hlotrace.sharding import AxisType, NamedSharding

MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
PARAMS = LAYERS[:8]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "LIGHTEST_EACH", 1e2)


def gradients(params, x):
    return jax.value_and_grad(loss)(params, x)


def clipped(params, x):
    value, grads = jax.value_and_grad(loss)(params, x)
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
    return jax.tree.map(lambda p, g: p - 0.5 * g / jnp.maximum(norm, 1.0), params, grads), value


def one_layer_is_used_at_once(params, x):
    value, grads = jax.value_and_grad(loss)(params, x)
    return (jax.tree.map(lambda p, g: p - 0.5 * g, params, grads), value,
            jnp.sum(grads[3]["w"] @ grads[4]["w"]))


def tied(params, x):
    """Each layer has its scale and bias and all have one matrix: each adds to the sum of those behind it."""
    return step([p | {"w": params[0]["w"]} for p in params], x)


def half(params, x):
    params = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
    return jax.value_and_grad(loss)(params, x.astype(jnp.bfloat16))


def compiled(f, specs, **options):
    params = [{k: NamedSharding(MESH, specs.get(k, P())) for k in p} for p in PARAMS]
    args = jax.device_put(PARAMS, params), jax.device_put(X, NamedSharding(MESH, P("data")))
    return jax.jit(lambda *a: f(*a), **options).lower(*args).compile(), args


def additions(program):
    """How often devices add in one run."""
    pieces = getattr(program._executable, "pieces", None) or [(program._executable, 1)]
    return sum(times * module.to_string().count(" all-reduce(")
               for executable, times in pieces for module in executable.loaded.hlo_modules())


@pytest.mark.parametrize("specs", [{}, {"w": P(None, "model"), "b": P("model")}, {"w": P("model", None)}],
                         ids=["whole", "columns", "rows"])
@pytest.mark.parametrize("f", [step, gradients, clipped, one_layer_is_used_at_once, tied, half])
def test_what_devices_add_is_added_once(f, specs):
    pieces, args = compiled(f, specs)
    with override("hlotrace_outline", False):
        one, _ = compiled(f, specs)
    assert type(pieces._executable) is SpmdBlockExecutable
    rtol, atol = (0.1, 2e-2) if f is half else (2e-5, 2e-6)
    for a, b in zip(jax.tree.leaves(pieces(*args)), jax.tree.leaves(one(*args)), strict=True):
        np.testing.assert_allclose(np.float32(a), np.float32(b), rtol=rtol, atol=atol)
        for each in a.addressable_shards:       # replicas are equal to the last bit
            np.testing.assert_array_equal(np.float32(each.data), np.float32(a)[each.index])
    if f in (step, gradients, clipped):
        assert additions(pieces) <= additions(one) + 2, (additions(pieces), additions(one))


def test_terms_are_donated_written_and_read():
    pieces, args = compiled(step, {}, donate_argnums=0)
    again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(pieces))
    others = jax.tree.map(lambda x: x + 0, args)
    new, value = pieces(*args)
    assert all(x.is_deleted() for x in jax.tree.leaves(args[0])) and np.isclose(value, loss(PARAMS, X))
    for a, b in zip(jax.tree.leaves(again(*others)), jax.tree.leaves((new, value)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_shardy_says_which_results_are_sums():
    split = [NamedSharding(MESH, s) for s in (P("data"), P("data", "model"))]
    x, y = (jax.device_put(np.ones((8, n), np.float32), s) for n, s in zip((6, 4), split))
    text = jax.jit(lambda x, y: (x.T @ y, (x.T @ y).T * 2, jnp.sum(x, 0), jnp.max(x, 0), (y.T @ x).T)
                   ).lower(x, y).as_text()
    sums = shardy.main_specs(text).sums
    assert {*sums} == {2, 4}        # the first is used twice, the fourth is no sum
    assert all(each.axes == {"data"} for each in sums.values())
    assert sums[4] == shardy.Sum(((("model",), ("data",)), (("data",), ())), (("model",), ()), (1, 0))
    assert sums[2] == shardy.Sum(((("data",), ()),), ((),), None)
