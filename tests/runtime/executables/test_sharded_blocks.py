"""Programs over several devices, compiled in pieces: the results, the communication and the memory of one program."""
import collections

import mesh8  # noqa: F401  eight CPU devices
import numpy as np
import pytest
from piece_programs import PARAMS as LAYERS, X, block, loss, step

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import P
from hlotrace.core.config import override
from hlotrace.experimental import serialize_executable
from hlotrace.inspection.communication import collectives
from hlotrace.runtime.executables import blocks, spmd
from hlotrace.runtime.executables.sharded_blocks import SpmdBlockExecutable
from hlotrace.sharding import AxisType, NamedSharding

AUTO, EXPLICIT = (jax.make_mesh((4, 2), ("data", "model"), axis_types=(kind,) * 2)
                  for kind in (AxisType.Auto, AxisType.Explicit))


PARAMS = LAYERS[:8]
LINE = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))
COLUMNS, ROWS = P(None, "model"), P("data", None)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "LIGHTEST_EACH", 1e2)


def over(mesh, odd):
    """(shardings of PARAMS, of X): columns of the weights split, in each second block as `odd`."""
    even = {"w": COLUMNS, "b": P("model"), "scale": P()}
    specs = [even if i % 2 == 0 else even | {"w": odd} for i in range(len(PARAMS))]
    return [{k: NamedSharding(mesh, s) for k, s in each.items()} for each in specs], NamedSharding(mesh, P("data"))


def compiled(f, mesh, odd=COLUMNS, **options):
    params, x = over(mesh, odd)
    args = jax.device_put(PARAMS, params), jax.device_put(X, x)
    return jax.jit(lambda *a: f(*a), **options).lower(*args).compile(), args


def in_one(f, mesh, odd):
    with override("hlotrace_outline", False):
        return compiled(f, mesh, odd)[0]


def communicated(program, mesh):
    """{(kind, mesh axes, bytes): how often} of one run."""
    found = collections.Counter()
    for c in collectives(program.as_text(), mesh):
        found[c.kind, c.axes] += c.bytes * (c.trips or 1)
    return found


@pytest.mark.parametrize("odd", [COLUMNS, ROWS])
def test_results_shardings_and_communication_are_those_of_one_program(odd, small_blocks):
    pieces, args = compiled(step, AUTO, odd)
    one = in_one(step, AUTO, odd)
    assert type(pieces._executable) is SpmdBlockExecutable and len(pieces._executable.pieces) < 16
    for a, b in zip(jax.tree.leaves(pieces(*args)), jax.tree.leaves(one(*args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
        assert a.sharding.is_equivalent_to(b.sharding, a.ndim)
    assert communicated(pieces, AUTO) == communicated(one, AUTO)


def test_over_explicit_axes(small_blocks):
    def f(params, x):
        for p in params:
            y = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(jnp.var(x, axis=-1, keepdims=True) + 1e-5) * p["scale"]
            x = x + 0.3 * jax.nn.gelu(jnp.dot(y, p["w"], out_sharding=P("data", None)) + p["b"].sum())
        return (x ** 2).sum()
    params = [{"w": NamedSharding(EXPLICIT, P("model", None)), "b": NamedSharding(EXPLICIT, P("model")),
               "scale": NamedSharding(EXPLICIT, P())}] * len(PARAMS)
    x = NamedSharding(EXPLICIT, P("data", "model"))
    args = jax.device_put(PARAMS, params), jax.device_put(X, x)
    g = jax.value_and_grad(lambda p, x: f(p, jax.sharding.reshard(x, P("data", None))))
    with jax.set_mesh(EXPLICIT):
        pieces = jax.jit(g).lower(*args).compile()
    with jax.set_mesh(EXPLICIT), override("hlotrace_outline", False):
        one = jax.jit(lambda *a: g(*a)).lower(*args).compile()
    assert type(pieces._executable) is SpmdBlockExecutable
    for a, b in zip(jax.tree.leaves(pieces(*args)), jax.tree.leaves(one(*args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=3e-6)     # sums of some hundred terms of size 1
        assert jax.typeof(a) == jax.typeof(b) and a.sharding == b.sharding


def test_donated_arguments_are_gone_and_memory_is_counted_for_each_device(small_blocks):
    pieces, args = compiled(step, AUTO, donate_argnums=0)
    memory = pieces.memory_analysis()
    shards = sum(x.addressable_shards[0].data.nbytes for x in jax.tree.leaves(args))
    assert memory.argument_size_in_bytes == shards
    assert 0 < memory.temp_size_in_bytes < 20 * memory.argument_size_in_bytes
    kept = jax.tree.map(lambda x: x + 0, args[0])
    new, value = pieces(*args)
    assert all(x.is_deleted() for x in jax.tree.leaves(args[0])) and not args[1].is_deleted()
    assert np.isclose(value, loss(PARAMS, X)) and not any(x.is_deleted() for x in jax.tree.leaves(new))
    with pytest.raises(RuntimeError, match="deleted"):
        pieces(*args)
    pieces(kept, args[1])


def test_it_is_written_and_read(small_blocks):
    pieces, args = compiled(step, AUTO)
    again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(pieces))
    assert type(again._executable) is SpmdBlockExecutable
    for a, b in zip(jax.tree.leaves(again(*args)), jax.tree.leaves(pieces(*args)), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.sharding == b.sharding
    assert again.memory_analysis() == pieces.memory_analysis()


def test_an_array_elsewhere_is_refused_by_the_program_and_moved_by_jit(small_blocks):
    pieces, args = compiled(step, AUTO)
    elsewhere = jax.device_put(X, NamedSharding(AUTO, P("model")))
    with pytest.raises(ValueError, match="disagree with the shardings of arguments"):
        pieces(args[0], elsewhere)
    np.testing.assert_allclose(jax.jit(step)(args[0], elsewhere)[1], pieces(*args)[1], rtol=1e-5)


def over_another_mesh(params, x):
    mesh = jax.sharding.Mesh(AUTO.devices.reshape(2, 4), ("a", "b"))
    return loss(params, jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("a"))))


def with_a_callback(params, x):
    jax.debug.callback(lambda v: None, x[0, 0])
    return loss(params, x)


@pytest.mark.parametrize("f", [over_another_mesh, with_a_callback])
def test_what_one_mesh_cannot_say_stays_one_program(f, small_blocks):
    program, args = compiled(f, AUTO)
    assert type(program._executable) is not SpmdBlockExecutable
    assert np.isclose(program(*args), loss(PARAMS, X), rtol=1e-5)


def test_a_result_that_other_blocks_gather_has_its_own_sharding(small_blocks):
    def f(params, x):
        seen = []
        for p in params:
            x = jax.lax.with_sharding_constraint(block(p, x), NamedSharding(AUTO, P("data", "model")))
            seen.append(x)
        return jnp.mean(x ** 2), seen
    g = jax.value_and_grad(f, has_aux=True)
    pieces, args = compiled(g, AUTO)
    one = in_one(g, AUTO, COLUMNS)
    assert type(pieces._executable) is SpmdBlockExecutable
    for a, b in zip(jax.tree.leaves(pieces(*args)), jax.tree.leaves(one(*args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
        assert a.sharding.is_equivalent_to(b.sharding, a.ndim)
    assert communicated(pieces, AUTO) == communicated(one, AUTO)


def test_rows_of_lighter_blocks_are_pieces_too(monkeypatch):
    def adam(params, x):
        return jax.tree.map(lambda p, g: p - 0.1 * g / (jnp.sqrt(g * g) + 1e-3) + jnp.sin(p) * jnp.cos(g) ** 2,
                            params, jax.grad(loss)(params, x))
    whole, args = compiled(adam, AUTO)
    assert type(whole._executable) is not SpmdBlockExecutable
    monkeypatch.setattr(blocks, "LIGHTEST_EACH", 2e4)      # the blocks of the network do more, the updates less
    pieces, _ = compiled(adam, AUTO)
    names = {e.lowered.jaxpr.name: n for e, n in pieces._executable.pieces}
    assert any("_x" in name and n > 1 for name, n in names.items()), names
    for a, b in zip(jax.tree.leaves(pieces(*args)), jax.tree.leaves(whole(*args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    assert communicated(pieces, AUTO) == communicated(whole, AUTO)


def test_what_shardy_decides_is_the_same_by_the_shorter_way(small_blocks, monkeypatch):
    from hlotrace.runtime.mlir import shardy
    texts = set()
    monkeypatch.setattr(shardy, "main_specs", lambda text, collectives=True, specs=shardy.main_specs: (
        texts.add(text), specs(text, collectives))[1])
    for odd in (COLUMNS, ROWS):
        compiled(step, AUTO, odd)
    short = [shardy.main_specs(text) for text in texts]
    monkeypatch.setattr(shardy, "_WITHOUT_CALLS", shardy.PROPAGATION)
    assert len(texts) > 4 and any(specs.exchanges for specs in short)
    for text, specs in zip(texts, short):
        assert shardy.main_specs(text) == specs
        assert shardy.main_specs(text, collectives=False)[:2] == specs[:2]


def by_device(f):
    return jax.shard_map(f, mesh=LINE, in_specs=P("i"), out_specs=P("i"))


@pytest.mark.parametrize(("waits", "f"), [
    (False, lambda x: x * 2 + 1),
    (False, by_device(lambda x: x.sum(0, keepdims=True))),
    (True, lambda x: x.sum()),
    (True, lambda x: jnp.roll(x, 1, 0)),
    (True, by_device(lambda x: jax.lax.all_gather(x, "i"))),
    (True, by_device(lambda x: jax.lax.all_to_all(x, "i", 1, 1))),
    (True, by_device(lambda x: jax.lax.psum_scatter(x, "i", scatter_dimension=1))),
    (True, by_device(lambda x: jax.lax.ppermute(x, "i", [(0, 1)])))])
def test_only_launches_with_collectives_may_starve(waits, f, monkeypatch):
    monkeypatch.setattr(spmd.binding, "version", (0, 10, 2))
    x = jax.device_put(jnp.ones((64, 8)), NamedSharding(LINE, P("i")))
    assert jax.jit(lambda x: f(x)).lower(x).compile()._executable.may_starve is waits
