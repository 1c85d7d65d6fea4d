"""Programs over eight devices: their text, collectives and shardings; many launches; what would crash or hang."""
import re

import numpy as np
import pytest
from mesh8 import ON_JAX, UNEVEN, backwards, counting, grid, lies, line, low, on, on_device, put, whole

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.sharding import NamedSharding, PartitionSpec as P, PositionalSharding

A = counting((8, 4))
W = counting((4, 6)) - 8

constrain = lambda *args, **kw: lax.with_sharding_constraint(*args, **kw)
not_on_jax = pytest.mark.skipif(ON_JAX, reason="some version of JAX crashes or hangs")


# --- lowered and compiled ---


def described(spec, shape=(8, 4)):
    """A type with a sharding over the grid, without values."""
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(grid(), spec))


def product():
    """The compiled product of rows on "data" with columns on "model"."""
    operands = described(P("data")), described(P(None, "model"), (4, 6))
    return jax.jit(lambda a, b: a @ b).lower(*operands).compile()


def test_text_names_the_mesh_and_the_shardings():
    def text():
        operands = put(A, "data"), described(P(None, "model"), (4, 6))
        return jax.jit(lambda a, b: constrain(a @ b, on())).lower(*operands).as_text()

    for words in ("sdy.mesh", '"data"=4', '"model"=2', "sdy.sharding", '[{"data"}, {}]',
                  '[{}, {"model"}]', "sdy.sharding_constraint", "mhlo.num_partitions = 8"):
        assert words in text(), words
    assert text() == text()
    assert "sdy.mesh" not in jax.jit(lambda a: a).lower(A).as_text()


def test_out_shardings_stand_in_the_text():
    f = jax.jit(lambda x: 2 * x, in_shardings=on("data"), out_shardings=on("model", "data"))
    text = f.lower(A).as_text()
    assert '[{"data"}, {}]' in text and '[{"model"}, {"data"}]' in text


@not_on_jax
def test_the_names_of_many_arguments_are_written_once(monkeypatch):
    from hlotrace.api.flat import FlatFunction
    written, paths = [], FlatFunction.paths
    monkeypatch.setattr(FlatFunction, "paths", lambda self: written.append(self) or paths(self))
    arrays = {f"x{i}": put(A, "data") for i in range(20)}
    jax.jit(lambda d: sum(d.values()), in_shardings=on("data")).lower(arrays).compile()
    assert len(written) < 3


def test_compiled_for_types_runs_on_values():
    compiled = product()
    for a, b in ((put(A, "data"), put(W, None, "model")), (A, W), (jnp.asarray(A), jnp.asarray(W)),
                 (put(A, "data", None), W)):
        y = compiled(a, b)
        whole(y, A @ W)
        assert lies(y, "data", "model")


def test_compiled_says_its_shardings():
    compiled = product()
    (a, b), kwargs = compiled.input_shardings
    assert a.is_equivalent_to(on("data"), 2) and b.is_equivalent_to(on(None, "model"), 2)
    assert kwargs == {}
    assert compiled.output_shardings.is_equivalent_to(on("data", "model"), 2)
    x = put(A, "data")
    nested = jax.jit(lambda a, b: (a + b, {"q": a.sum()})).lower(x, b=x).compile()
    (a,), kwargs = nested.input_shardings
    assert a.is_equivalent_to(on("data"), 2) and kwargs["b"].is_equivalent_to(on("data"), 2)
    first, rest = nested.output_shardings
    assert first.is_equivalent_to(on("data"), 2) and rest["q"].is_equivalent_to(on(), 0)


@pytest.mark.parametrize("operands, error, text", [
    (lambda: (put(A, None, "model"), W), ValueError, "(?s)sharding"),
    (lambda: (on_device(A, 2), W), ValueError, "(?s)sharding|device"),
    (lambda: (put(A, "x", mesh=low), W), ValueError, "(?s)sharding|device"),
    (lambda: (put(A, "x", mesh=backwards), W), ValueError, "(?s)sharding|device"),
    (lambda: (A[:4], W), TypeError, r"(?s)8,4.*4,4"),
    (lambda: (A.astype(np.int32), W), TypeError, r"(?s)float32\[8,4\].*int32\[8,4\]"),
    (lambda: (A,), TypeError, "(?s)2.*1"),
    (lambda: (A, W, A), TypeError, "(?s)2.*3"),
])
def test_compiled_refuses_what_it_was_not_compiled_for(operands, error, text):
    compiled = product()
    with pytest.raises(error, match=text):
        compiled(*operands())
    whole(compiled(put(A, "data"), W), A @ W)


def test_lowering_refuses_a_type_that_does_not_divide():
    with pytest.raises(ValueError, match=UNEVEN):
        jax.jit(lambda x: 2 * x).lower(described(P("data"), (6, 4)))


def collectives(fun, *operands):
    """How many of each collective stand in the optimized program."""
    text = jax.jit(fun).lower(*operands).compile().as_text()
    kinds = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
    found = {kind: len(re.findall(rf" {kind}(?:-start)?\(", text)) for kind in kinds}
    return {kind: n for kind, n in found.items() if n}


def test_collectives_are_those_that_the_program_needs():
    assert collectives(jnp.sin, put(A, "data", "model")) == {}
    assert collectives(jnp.sum, put(A, "data")) == {"all-reduce": 1}
    assert collectives(jnp.matmul, put(A, "data"), put(W, None, "model")) == {}
    assert collectives(jnp.matmul, put(A, None, "model"), put(W, "model")) == {"all-reduce": 1}
    assert collectives(lambda x: constrain(x, on()), put(A, "data")) == {"all-gather": 1}


def test_a_data_parallel_step_sums_each_gradient_once():
    params = {"w1": put(W, None, None), "b1": put(np.zeros(6, np.float32)), "w2": put(W.T.copy())}

    def loss(p, x):
        return (jnp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"]).sum()

    def step(p, x):
        return jax.tree.map(lambda p, g: p - 0.1 * g, p, jax.grad(loss)(p, x))
    found = collectives(step, params, put(A, "data"))
    assert set(found) == {"all-reduce"} and found["all-reduce"] <= len(params)


def test_a_tensor_parallel_mlp_sums_once_forward_and_once_backward():
    columns, rows = put(W, None, "model"), put(W.T.copy(), "model", None)

    def mlp(x, w1, w2):
        return constrain(jnp.tanh(x @ w1) @ w2, on("data"))

    def pullback(x, w1, w2):     # of the result itself: the two sums cannot become one
        y, vjp = jax.vjp(lambda x: mlp(x, w1, w2), x)
        return constrain(vjp(y)[0], on("data"))
    x = put(A, "data")
    assert collectives(mlp, x, columns, rows) == {"all-reduce": 1}
    assert collectives(pullback, x, columns, rows) == {"all-reduce": 2}


# --- many launches ---


@not_on_jax
def test_a_long_stream_of_collectives_ends():
    f = jax.jit(lambda x: x.sum() - 7 * x)
    x = put(np.ones(8, np.int32), ("data", "model"))
    results = [f(x) for _ in range(300)]
    whole(results[-1], np.ones(8, np.int32))
    for _ in range(300):
        x = f(x)
    whole(x, np.ones(8, np.int32))


def test_how_a_value_inside_lies_is_told_when_the_program_is_compiled(capsys):
    seen = []

    def f(x, w):
        y = x @ w
        jax.debug.inspect_array_sharding(y, callback=seen.append)
        jax.debug.visualize_array_sharding(y)
        return y.sum()
    compiled = jax.jit(f)
    for _ in range(2):
        compiled(put(A, "data"), put(W, None, "model"))
    assert len(seen) == 1 and seen[0].is_equivalent_to(on("data", "model"), 2)
    assert capsys.readouterr().out.count("CPU 7") == 1
    jax.debug.inspect_array_sharding(put(A, "data"), callback=seen.append)
    assert seen[1] == on("data")
    jax.jit(f)(A, W)
    assert len(seen[2].device_set) == 1


# --- what would crash or hang ---


@not_on_jax
def test_memory_that_two_arrays_share_is_donated_once():
    x = put(A, "data")
    again = jax.device_put(x, on("data", None))       # the same memory under another name
    f = jax.jit(lambda x, y: x + y, donate_argnums=0)
    for sharding in (x.sharding, again.sharding):       # calls that are found by their signatures
        for _ in range(2):
            f(jax.device_put(A, sharding), x), f(jax.device_put(A, sharding), again)
    for operands in ((x, again), (again, x), (x, x)):
        with pytest.raises(jax.errors.JaxRuntimeError, match="donated and passed a second time"):
            f(*operands)
    kept = jax.device_put(x, on("x", mesh=backwards))
    whole(f(put(A, "data"), x), 2 * A)
    whole(kept, A)


@not_on_jax
def test_an_array_that_lost_a_part_is_refused():
    x = put(A, "data")
    x.addressable_shards[3].data.delete()
    pieces = [on_device(A[k:k + 1], k) for k in range(8)]
    y = jax.make_array_from_single_device_arrays((8, 4), on(("data", "model")), pieces)
    jax.jit(lambda p: p + 1, donate_argnums=0)(pieces[2])
    for lost in (x, y):
        for use in (lambda v: jax.jit(jnp.sin)(v), lambda v: v + 1, np.asarray):
            with pytest.raises(RuntimeError, match="lost a part"):
                use(lost)


@not_on_jax
@pytest.mark.parametrize("inside", [False, True])
def test_a_callback_that_fails_on_one_device_ends_the_call_on_all(inside):
    def check(x):
        if 0 in np.asarray(x):
            raise KeyError("zero")
        return x

    def f(x):
        y = jax.pure_callback(check, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return jax.lax.psum(y, "x") if inside else y.sum() + y
    run = jax.jit(jax.shard_map(f, mesh=line(), in_specs=P("x"), out_specs=P()) if inside else f)
    for _ in range(2):
        with pytest.raises(KeyError, match="zero"):
            run(put(A[:, 0], "x", mesh=line)).block_until_ready()
    run(put(A[:, 0] + 1, "x", mesh=line)).block_until_ready()


@not_on_jax
@pytest.mark.parametrize("how", ["pure_callback", "ordered"])
@pytest.mark.parametrize("place, shape", [
    ("result", ()), ("result", (8, 4)), ("result", (0,)), ("loop", ()), ("branch", (3,)), ("operand", ())])
def test_what_a_callback_returns_is_on_all_devices(shape, place, how):
    from hlotrace.experimental import io_callback
    call = {"pure_callback": jax.pure_callback, "io_callback": io_callback,
            "ordered": lambda *args: io_callback(*args, ordered=True)}[how]

    def ask(x):
        return call(lambda v: np.full(shape, v.sum(), np.float32), jax.ShapeDtypeStruct(shape, jnp.float32), x)
    f = jax.jit({"result": ask, "operand": lambda x: ask(x) + 0,
                 "loop": lambda x: lax.fori_loop(0, 2, lambda i, y: ask(x), jnp.zeros(shape)),
                 "branch": lambda x: lax.cond(x[0, 0] < 1, ask, lambda x: jnp.zeros(shape), x)}[place])
    tiles = jax.device_put(A, PositionalSharding(jax.devices()).reshape(8, 1))
    for x in (put(A, "data", "model"), put(A, "x", mesh=backwards), tiles)[:3 if place == "result" else 1]:
        whole(f(x), np.full(shape, A.sum(), np.float32))


@not_on_jax
def test_a_callback_may_not_wait_for_the_devices_that_wait_for_it():
    def look(x):
        np.asarray(jnp.sin(held))
    held = put(A, "data")
    f = jax.jit(lambda x: (jax.debug.callback(look, x), x.sum())[1])
    with pytest.raises(RuntimeError, match="host callback called"):
        f(held).block_until_ready()
        jax.effects_barrier()


@not_on_jax
def test_threads_launch_in_one_order():
    import threading
    programs = [jax.jit(lambda x, k=k: (x * k).sum() + x) for k in range(4)]
    x, results = put(A, "data"), []

    def work():
        for _ in range(20):
            y = [f(x) for f in programs]
        results.append([np.asarray(v) for v in y])
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 3
    for got in results:
        for k, value in enumerate(got):
            np.testing.assert_allclose(value, (A * k).sum() + A, rtol=1e-6)
