"""Programs in pieces on the CPU: results, donated arguments, errors, other devices, what they tell of themselves."""
import functools

import forked
import numpy as np
import pytest
from equal import same
from piece_programs import PARAMS, X, block, in_pieces, loss, network, step, whole

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.config import override
from hlotrace.runtime.executables.blocks import MOST_BETWEEN, blocks_of, work


@pytest.fixture(scope="module")
def trained():
    return whole(step, PARAMS, X)


def state():
    return jax.tree.map(jnp.array, PARAMS)


# --- results ----------------------------------------------------------------------------------------------------

def test_a_training_step_is_few_executables_run_often_with_the_same_results(trained):
    compiled = in_pieces(step, PARAMS, X)
    same(compiled(PARAMS, X), trained)
    parts = compiled._executable.pieces
    assert sorted(n for _, n in parts)[-2:] == [12, 12] or max(n for _, n in parts) >= 11
    assert len(parts) < 12


def test_a_last_layer_that_differs_and_numbers_of_layers():
    def f(params, x, key):
        for i, p in enumerate(params[:-1]):
            x = block(p, x) + 0.1 * jax.random.normal(jax.random.fold_in(key, i), x.shape)
        return jnp.tanh(x @ params[-1]["w"])
    key = jax.random.key(3)
    same(in_pieces(f, PARAMS, X, key)(PARAMS, X, key), whole(f, PARAMS, X, key))


def test_outputs_are_buffers_of_their_own():
    def f(params, x):
        y = network(params, x)
        return x, y, y, x, params[0]["b"], 2, jnp.ones(3), network(params, y)
    x = jnp.array(X)
    outs = in_pieces(f, PARAMS, x)(PARAMS, x)
    same(outs, whole(f, PARAMS, X))
    assert len({a.unsafe_buffer_pointer() for a in (x, *outs)}) == 1 + len(outs)


def test_a_program_with_callbacks_or_with_too_much_between_its_blocks_is_left_in_one():
    def printing(params, x):
        jax.debug.print("{}", x[0, 0])
        return network(params, x)
    lowered = lambda f, *args: jax.jit(f).lower(*args)._lowered(True)
    assert blocks_of(lowered(printing, PARAMS, X)) is None

    def strewn(params, x):
        for i, p in enumerate(params):
            x = block(p, x) * (1 + i / 10)
        return x
    _, pieces = blocks_of(lowered(strewn, PARAMS[:3], X)) or (None, ())
    assert len(pieces) <= 3 + MOST_BETWEEN + 2
    assert blocks_of(lowered(lambda x: x + 1, X)) is None


def test_the_work_of_functions_that_call_functions_is_counted_once_each():
    f = lambda x: x + 1
    for _ in range(60):
        f = jax.jit(lambda x, f=f: f(x) * f(x))
    assert work(jax.jit(f).trace(X)._traced.closed) > 2 ** 60


# --- donated arguments ------------------------------------------------------------------------------------------

def test_donated_arguments_are_deleted_and_others_are_not(trained):
    params, x = state(), jnp.array(X)
    seen = np.asarray(params[3]["w"])           # a view of the buffer stays good
    same(jax.jit(lambda *a: step(*a), donate_argnums=0)(params, x), trained)
    assert all(p.is_deleted() for p in jax.tree.leaves(params)) and not x.is_deleted()
    np.testing.assert_array_equal(seen, PARAMS[3]["w"])
    with pytest.raises(RuntimeError, match="deleted"):
        params[0]["w"] + 1


def test_donated_arguments_are_counted_once(trained):
    kept, donated = (
        jax.jit(lambda *a: step(*a), donate_argnums=n).lower(state(), X).compile().memory_analysis()
        for n in ((), 0)
    )
    assert (kept.alias_size_in_bytes, donated.alias_size_in_bytes) == (
        0,
        sum(p.nbytes for p in jax.tree.leaves(PARAMS)),
    )
    assert kept.argument_size_in_bytes == donated.argument_size_in_bytes
    assert donated.peak_memory_in_bytes <= kept.peak_memory_in_bytes


def test_a_loop_of_steps_with_donated_state(trained):
    run = jax.jit(lambda *a: step(*a), donate_argnums=0)
    params = state()
    for _ in range(3):
        params, value = run(params, X)
    want = trained
    plain = in_pieces(step, PARAMS, X)
    for _ in range(2):
        want = plain(want[0], X)
    same((params, value), want)


def test_an_argument_that_is_donated_and_passed_twice_keeps_its_buffer(trained):
    params = state()
    params[4] = dict(params[5])
    want = whole(step, params, X)
    same(jax.jit(lambda *a: step(*a), donate_argnums=0)(params, X), want)
    assert params[0]["w"].is_deleted()
    np.testing.assert_array_equal(np.asarray(params[4]["w"]), PARAMS[5]["w"])


def test_a_deleted_argument_is_an_error_that_costs_no_other_argument(trained):
    run = jax.jit(lambda *a: step(*a), donate_argnums=0)
    params = state()
    params[11]["w"].delete()
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        run(params, X)
    assert [p.is_deleted() for p in jax.tree.leaves(params)].count(True) == 1
    params[11]["w"] = jnp.array(PARAMS[11]["w"])
    same(run(params, X), trained)


def test_constants_of_a_program_are_not_lost_to_who_donates_their_equals():
    def f(params, x, key):
        for i, p in enumerate(params):
            x = block(p, x) + 0.1 * jax.random.normal(jax.random.fold_in(key, np.int32(i)), x.shape)
        return x
    key = jax.random.key(0)
    run = in_pieces(f, PARAMS, X, key)
    want = run(PARAMS, X, key)
    spend = jax.jit(lambda i: i + 1, donate_argnums=0)
    for i in range(12):
        spend(i), spend(np.array(i)), spend(np.array(i, np.uint32)), spend(np.array(i, np.int32))
    same(run(PARAMS, X, key), want, 0)


# --- errors, devices --------------------------------------------------------------------------------------------

def test_debug_nans_finds_them():
    f = lambda params, x: jnp.log(network(params, x) - 100)
    with override("jax_debug_nans", True), pytest.raises(FloatingPointError, match="nan"):
        jax.jit(f)(PARAMS, X)


def test_arguments_of_the_wrong_kind_are_refused():
    compiled = in_pieces(network, PARAMS, X)
    with pytest.raises(TypeError, match="compiled for"):
        compiled(PARAMS, X[:5])
    x = jnp.array(X)
    x.delete()
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        compiled(PARAMS, x)


def test_on_a_second_device():
    code = """
from equal import same
from piece_programs import *
first, second = jax.devices()
key = jax.random.key(0)
def f(params, x, key):
    for i, p in enumerate(params):
        x = block(p, x) + 0.1 * jax.random.normal(jax.random.fold_in(key, i), x.shape)
    return x, 3
want = jax.jit(f)(PARAMS, X, key)
got = jax.jit(lambda *a: f(*a))(*jax.device_put((PARAMS, X, key), second))
same(got, want, 0)
assert got[0].devices() == got[1].devices() == {second} and want[0].devices() == {first}
run = jax.jit(f, donate_argnums=(0, 1))
params, x = jax.tree.map(jnp.array, (PARAMS, X))         # where a call is not at home
with jax.default_device(second):
    params[0] = jax.tree.map(jnp.array, PARAMS[0])
    same(run(params, jnp.array(X), key), want, 0)
in_pieces(f, PARAMS, X, key)
"""
    forked.run(code, check=True, XLA_FLAGS="--xla_force_host_platform_device_count=2")


# --- what it tells of itself ------------------------------------------------------------------------------------

def test_ahead_of_time_it_tells_the_sums_over_its_pieces():
    compiled = in_pieces(step, PARAMS, X)
    with override("hlotrace_outline", False):
        plain = jax.jit(lambda *a: step(*a)).lower(PARAMS, X).compile()
    flops, want = (c.cost_analysis()["flops"] for c in (compiled, plain))
    assert 0.8 < flops / want < 1.3
    text = compiled.as_text()
    assert "runs 12 times" in text or "runs 11 times" in text
    assert text.count("ENTRY") == len(compiled._executable.pieces) == len(compiled.runtime_executable())
    got, want = compiled.memory_analysis(), plain.memory_analysis()
    for name in "argument_size_in_bytes", "output_size_in_bytes":
        assert abs(getattr(got, name) / getattr(want, name) - 1) < 0.02
    assert 0 < got.temp_size_in_bytes < 3 * want.temp_size_in_bytes + 2 ** 20
    assert got.peak_memory_in_bytes > got.argument_size_in_bytes and got.generated_code_size_in_bytes >= 0


def test_a_block_that_two_programs_share_is_compiled_once():
    from hlotrace.runtime.executables import compilation as whole
    f = functools.partial(network)
    in_pieces(f, PARAMS, X)
    before = whole.compile_count
    in_pieces(f, PARAMS, X)
    assert whole.compile_count == before


def test_an_argument_on_a_mesh_of_one_device_is_taken():
    compiled = in_pieces(loss, PARAMS, X)
    mesh = jax.sharding.Mesh(jax.devices()[:1], "x")
    x = jax.device_put(X, jax.NamedSharding(mesh, jax.P("x")))
    same(compiled(PARAMS, x), whole(loss, PARAMS, X))
