"""Python functions called from compiled programs: order, exceptions, wrong results, transformations."""
import forked
import numpy as np
import pytest
from mesh8 import auto_mesh

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.experimental import io_callback

SCALAR = jax.ShapeDtypeStruct((), jnp.float32)
PAIR = jax.ShapeDtypeStruct((2,), jnp.float32)
eager_and_jit = pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])


def A(*shape):
    return np.arange(float(np.prod(shape)), dtype=np.float32).reshape(shape)


class Log(list):
    """A callback that records what it gets and gives it back, plus one."""

    def __call__(self, x=0.0):
        self.append(float(x))
        return np.float32(x) + np.float32(1)


@pytest.fixture(autouse=True)
def settle():
    """What a test left running does not reach the next one."""
    yield
    jax.effects_barrier()


# --- debug.print --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("run, printed", [
    (lambda p: p("a {} {b} {c[0]} {d:.2f}", 1, b=np.arange(2), c=[2], d=1.5), "a 1 [0 1] 2 1.50"),
    (lambda p: p("{{}} plain"), "{} plain"),
    (lambda p: jax.jit(lambda x: p("x={x}", x=x))(A(2)), "x=[0. 1.]"),
    (lambda p: jax.grad(lambda x: (p("g {}", x), jnp.sin(x))[1])(1.0), "g 1.0"),
    (lambda p: jax.jit(jax.grad(lambda x: (p("g {}", x), jnp.sin(x))[1]))(2.0), "g 2.0"),
    (lambda p: jax.jvp(lambda x: (p("j {}", x), jnp.sin(x))[1], (3.0,), (1.0,)), "j 3.0"),
    (lambda p: jax.vmap(lambda x: (p("v {}", x), x)[1])(A(2)), "v 0.0\nv 1.0"),
    (lambda p: jax.jit(jax.vmap(lambda x: (p("v {}", x), x)[1]))(A(2)), "v 0.0\nv 1.0"),
    (lambda p: lax.scan(lambda c, x: ((p("s {}", c), c + x)[1], None), 0.0, A(2)), "s 0.0\ns 0.0"),
    (lambda p: jax.jit(lambda x: lax.while_loop(lambda c: c < 3, lambda c: (p("w {}", c), c + 1)[1], x))(1.0),
     "w 1.0\nw 2.0"),
    (lambda p: lax.cond(True, lambda x: (p("t {}", x), x)[1], lambda x: x, 1.0), "t 1.0"),
    (lambda p: jax.jit(jax.grad(lambda x: lax.scan(lambda c, _: ((p("c {}", c), c * 2)[1], None), x, None,
                                                   length=2)[0]))(
        1.0), "c 1.0\nc 2.0"),
])
@pytest.mark.parametrize("ordered", [False, True])
def test_print(run, printed, ordered, capfd):
    run(lambda *a, **k: jax.debug.print(*a, ordered=ordered, **k))
    jax.effects_barrier()
    assert capfd.readouterr().out == printed + "\n"


@pytest.mark.parametrize("args, error",
                         [(("{} {}", 1), IndexError), (("{}", 1, 2), ValueError), (("{b}",), KeyError),
                                         ((3,), TypeError)])
def test_print_checks_its_format_when_it_is_traced(args, error):
    with pytest.raises(error):
        jax.jit(lambda: jax.debug.print(*args))()


def test_vmapped_branches_and_loops_print(capfd):
    jax.vmap(lambda x: lax.cond(x > 0, lambda x: (jax.debug.print("{}", x), x)[1], lambda x: x, x))(A(2))
    jax.effects_barrier()
    assert capfd.readouterr().out == "0.0\n1.0\n"      # a mapped predicate runs both branches
    with pytest.raises(NotImplementedError, match="mapped predicate"):
        jax.vmap(lambda x: lax.cond(x > 0, lambda x: io_callback(Log(), SCALAR, x), lambda x: x, x))(A(2))


# --- order, repetition, dead code ---------------------------------------------------------------------------

def test_order_within_and_across_programs():
    log = Log()
    f = jax.jit(lambda x: (io_callback(log, SCALAR, x, ordered=True),
                           io_callback(log, SCALAR, x + 0.5, ordered=True)))
    g = jax.jit(lambda x: jax.debug.callback(log, x, ordered=True))
    for i in range(20):
        f(i)
        g(i + 0.75)
    jax.effects_barrier()
    assert log == [i + d for i in range(20) for d in (0, 0.5, 0.75)]


def test_values_may_be_kept():
    kept = []
    f = jax.jit(lambda x: jax.debug.callback(kept.append, x * 2, ordered=True))
    for i in range(8):
        f(np.full(1000, i, np.float32))
    jax.effects_barrier()
    for i, x in enumerate(kept):
        np.testing.assert_array_equal(x, np.full(1000, 2.0 * i))


def test_dead_code_goes_and_effects_stay():
    log = Log()
    jax.jit(lambda x: (jax.pure_callback(log, SCALAR, x), x)[1])(1.0)
    assert log == []
    jax.jit(lambda x: (io_callback(log, SCALAR, x), x)[1])(2.0)
    jax.jit(lambda x: (jax.jit(lambda x: (jax.debug.callback(log, x), x)[1])(x), 1)[1])(3.0)
    jax.jit(lambda x: jax.debug.callback(log, x))(4.0)
    jax.effects_barrier()
    assert log == [2.0, 3.0, 4.0]


def test_in_loops():
    log = Log()
    ordered = lambda x: io_callback(log, SCALAR, x, ordered=True)
    carry, ys = lax.scan(lambda c, _: (jax.pure_callback(log, SCALAR, c), c), 0.0, None, length=3)
    np.testing.assert_array_equal([carry, *ys], [3, 0, 1, 2])
    assert float(jax.jit(lambda x: lax.while_loop(lambda c: c < 3, ordered, x))(0.0)) == 3
    assert float(lax.cond(True, ordered, lambda x: x, 5.0)) == 6
    assert float(jax.jit(lambda x: lax.fori_loop(0, 2, lambda _, c: ordered(c), x))(1.0)) == 3
    jax.effects_barrier()
    assert log == [0, 1, 2, 0, 1, 2, 5, 1, 2]


# --- results ------------------------------------------------------------------------------------------------

@eager_and_jit
def test_results_are_arrays_of_the_declared_types(transform):
    spec = (SCALAR, {"a": PAIR})
    out = transform(lambda x: jax.pure_callback(lambda x, k: (x.sum(), {"a": x * k}), spec, x,
                                                k=np.float32(2)))(A(2))
    assert isinstance(out[0], jax.Array) and out[1]["a"].dtype == "float32"
    np.testing.assert_array_equal(out[1]["a"], [0, 2])
    for x in (jnp.ones(2, jnp.bfloat16), jnp.array([True, False]), jnp.arange(2, dtype=jnp.int8),
              jnp.ones(2) * 1j,
              jnp.zeros((0, 3)), jnp.ones(2, jnp.float8_e4m3fn), jnp.ones((2, 3)).T):
        y = transform(lambda x: jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(x.shape, x.dtype), x))(x)
        assert (y.dtype, y.shape) == (x.dtype, x.shape)
        np.testing.assert_array_equal(np.asarray(y), np.asarray(x))


@eager_and_jit
@pytest.mark.parametrize("result, spec, want", [
    (np.ones(2), PAIR, [1, 1]), (np.arange(4.0, dtype=np.float32)[::2], PAIR, [0, 2]), (1.5, SCALAR, 1.5),
    (np.int64(3), jax.ShapeDtypeStruct((), jnp.int32), 3), (jnp.ones(2), PAIR, [1, 1])])
def test_results_that_are_accepted(transform, result, spec, want):
    np.testing.assert_array_equal(transform(lambda: jax.pure_callback(lambda: result, spec))(), want)


@eager_and_jit
@pytest.mark.parametrize("result, spec, words", [
    (np.ones(3, np.float32), PAIR, r"shape \(3,\).*declares \(2,\)"),
    (np.ones((2, 1), np.float32), PAIR, "shape"),
    (np.float32(1), PAIR, "shape"), (np.ones(2, np.int32), PAIR, "dtype int32.*declares float32"),
    (np.ones(2, np.float16), PAIR, "dtype float16"), ([1.0, 2.0], PAIR, "structure"),
    (None, PAIR, "structure"),
    ((), PAIR, "structure"), ({"a": 1}, PAIR, "shape"), ({"a": 1, "b": 2}, PAIR, "structure"),
    ("s", PAIR, ""), (object(), PAIR, "")])
def test_wrong_results_are_clear_errors(transform, result, spec, words):
    with pytest.raises((TypeError, ValueError), match=words or None):
        jax.block_until_ready(transform(lambda: jax.pure_callback(lambda: result, spec))())


@eager_and_jit
@pytest.mark.parametrize("call", [
    lambda f, x: jax.pure_callback(f, SCALAR, x), lambda f, x: io_callback(f, SCALAR, x),
    lambda f, x: io_callback(f, None, x), lambda f, x: io_callback(f, None, x, ordered=True),
    lambda f, x: jax.debug.callback(f, x), lambda f, x: jax.debug.callback(f, x, ordered=True),
    lambda f, x: lax.scan(lambda c, _: (jax.pure_callback(f, SCALAR, c), None), x, None, length=2)[0],
    lambda f, x: jax.vmap(lambda x: jax.pure_callback(f, SCALAR, x, vmap_method="sequential"))(
        jnp.stack([x, x]))])
def test_an_exception_comes_out_as_the_same_object(transform, call):
    error = KeyError("mine")

    def fail(x):
        raise error
    with pytest.raises(KeyError) as caught:
        jax.block_until_ready(transform(lambda x: call(fail, x))(jnp.float32(1)))
        jax.effects_barrier()
    assert caught.value is error
    while True:      # the barrier reports the same failure to whoever else waits
        try:
            jax.effects_barrier()
            break
        except KeyError as again:
            assert again is error
    assert float(jax.jit(lambda x: x + 1)(1.0)) == 2


def test_a_callback_may_compute():
    def inner(x):
        return np.asarray(jax.jit(lambda y: y * 2)(x))
    with jax.set_mesh(auto_mesh((8,), ("x",))):     # what it computes with is on one device
        for transform in (lambda f: f, jax.jit):
            assert float(transform(lambda x: jax.pure_callback(inner, SCALAR, x))(2.0)) == 4
    assert float(jax.jit(lambda x: jax.pure_callback(inner, SCALAR, x))(2.0)) == 4


CALLBACKS_THAT_COMPUTE = """
import numpy as np, hlotrace as jax, hlotrace.numpy as jnp
shape, call = jax.ShapeDtypeStruct((64, 64), jnp.float32), sys.argv[1]
invert = jax.jit(lambda a: jnp.linalg.inv(a @ a.T + jnp.eye(64)))

def host(x):
    return np.asarray(jax.random.normal(jax.random.key(0), (64, 64)) + invert(jnp.asarray(x)))

@jax.jit
def step(x):
    if call == "pure_callback":
        return jax.pure_callback(host, shape, x) @ x
    jax.debug.callback(host, x, ordered=call == "ordered")
    return x @ x

x = jnp.ones((64, 64))
for _ in range(40):
    x = step(x) / 64
print(x.shape)
"""


@pytest.mark.parametrize("call", ["pure_callback", "debug.callback", "ordered"])
def test_many_programs_may_be_started_that_wait_for_a_callback_that_computes(call):
    """They took all places where the CPU computes, and the callback waited for one."""
    done = forked.run("import sys" + CALLBACKS_THAT_COMPUTE, call, timeout=100, XLA_FLAGS="")
    assert done.stdout == "(64, 64)\n", done


# --- vmap and grad ------------------------------------------------------------------------------------------

@eager_and_jit
@pytest.mark.parametrize("method, shapes", [("sequential", [((), ())] * 3), ("expand_dims", [((3,), (1,))]),
                                            ("broadcast_all", [((3,), (3,))])])
def test_vmap_methods(transform, method, shapes):
    seen = []

    def callback(a, b):
        seen.append((a.shape, b.shape))
        return a * b
    f = jax.vmap(lambda x: jax.pure_callback(callback, SCALAR, x, jnp.float32(2), vmap_method=method))
    np.testing.assert_array_equal(transform(f)(A(3)), 2 * A(3))
    assert seen == shapes


def test_vmap_needs_a_method_and_io_is_sequential():
    with pytest.raises(NotImplementedError, match="vmap_method"):
        jax.vmap(lambda x: jax.pure_callback(Log(), SCALAR, x))(A(2))
    with pytest.raises(ValueError, match="vmap_method must be on of"):
        jax.pure_callback(Log(), SCALAR, 1.0, vmap_method="bogus")
    np.testing.assert_array_equal(jax.vmap(jax.vmap(lambda x: io_callback(Log(), SCALAR, x)))(A(2, 2)),
                                  A(2, 2) + 1)
    with pytest.raises(ValueError, match="ordered"):
        jax.vmap(lambda x: io_callback(Log(), None, x, ordered=True))(A(2))


@eager_and_jit
def test_derivatives(transform):
    f = lambda x: jax.pure_callback(lambda x: np.sin(x), SCALAR, x)
    g = jax.custom_jvp(f)
    g.defjvp(lambda p, t: (g(p[0]), jax.pure_callback(lambda x: np.cos(x), SCALAR, p[0]) * t[0]))
    np.testing.assert_allclose(transform(jax.grad(g))(1.0), np.cos(1), rtol=1e-6)
    np.testing.assert_allclose(transform(jax.grad(lambda x: x * f(lax.stop_gradient(x))))(1.0), np.sin(1),
                               rtol=1e-6)
    with pytest.raises(ValueError, match="Pure callbacks do not support JVP.*custom_jvp"):
        transform(jax.grad(f))(1.0)
    with pytest.raises(ValueError, match="IO callbacks do not support JVP"):
        transform(jax.grad(lambda x: io_callback(Log(), SCALAR, x)))(1.0)


@pytest.mark.parametrize("call", [
    lambda: jax.pure_callback(3, SCALAR, 1.0), lambda: jax.pure_callback(Log(), 3, 1.0),
    lambda: jax.pure_callback(Log(), SCALAR, "s"), lambda: jax.debug.callback(3)])
def test_wrong_arguments(call):
    with pytest.raises(TypeError):
        call()


HOLDERS = {     # what holds the calls: f twice, the second time on a larger number
    "plain": lambda f: lambda x: [f(x), f(x + 1)],
    "jit": lambda f: (lambda g: lambda x: [g(x), g(x + 1)])(jax.jit(f)),
    "jit in jit": lambda f: (lambda g: lambda x: [jax.jit(g)(x), jax.jit(g)(x + 1)])(jax.jit(f)),
    "scan, its results": lambda f: lambda x: lax.scan(lambda c, i: (c, f(x + i)), 0.0, A(2)),
    "scan, what it carries": lambda f: lambda x: lax.scan(lambda c, i: (f(x + i) * 0 + c, None), 0.0, A(2)),
    "scan in reverse": lambda f: lambda x: lax.scan(lambda c, i: (c, f(x + 1 - i)), 0.0, A(2),
                                                    reverse=True)[1] * 2,
    "scan unrolled": lambda f: lambda x: lax.scan(lambda c, i: (c, f(x + i)), 0.0, A(2), unroll=2),
    "fori": lambda f: lambda x: lax.fori_loop(0, 2, lambda i, c: (f(x + i), c)[1], x),
    "while": lambda f: lambda x: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, f(x + s[0])),
                                                (0, x)),
    "cond": lambda f: lambda x: [lax.cond(x + i < 9, f, lambda y: y, x + i) for i in (0, 1)],
    "checkpoint": lambda f: lambda x: jax.checkpoint(lambda y: [f(y), f(y + 1)])(x),
    "jit in scan": lambda f: (lambda g: lambda x: lax.scan(lambda c, i: (c, g(x + i)), 0.0, A(2)))(
        jax.jit(f)),
}


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("holder", HOLDERS)
def test_calls_whose_results_nobody_needs_happen_once_and_in_order(holder, ordered):
    def f(x):
        return io_callback(log, SCALAR, x, ordered=ordered)
    log = Log()
    held = HOLDERS[holder](f)
    for run in (jax.jit(lambda x: (held(x), x)[1]), jax.jit(lambda x: (jax.jit(held)(x), x)[1])):
        log.clear()
        run(jnp.float32(5))
        jax.effects_barrier()
        assert (log if ordered else sorted(log)) == [5, 6]


def test_in_a_process_for_jax_an_exception_is_that_of_jax():
    """Libraries catch JaxRuntimeError and look for the class's name in its text."""
    def fail(x):
        raise KeyError("mine")
    calls = (lambda x: jax.pure_callback(fail, SCALAR, x), lambda x: io_callback(fail, None, x),
             lambda x: jax.debug.callback(fail, x))
    jax.config.update("hlotrace_callback_errors", "jax")
    try:
        for call in calls:
            for transform in lambda f: f, jax.jit:
                own = call is calls[2] and transform is not jax.jit     # eager debug.callback is a call
                with pytest.raises(KeyError if own else jax.errors.JaxRuntimeError,
                                   match="mine" if own else r"in fail(.|\n)*KeyError: 'mine'$"):
                    jax.block_until_ready(transform(call)(jnp.float32(1)))
                    jax.effects_barrier()
    finally:
        jax.config.update("hlotrace_callback_errors", "own")
    with pytest.raises(KeyError):
        calls[0](jnp.float32(1))


@pytest.mark.parametrize("returned, words", [
    (np.zeros(3, "float32"), r"Incorrect output shape for return value #0: Expected: \(\), Actual: \(3,\)"),
    (np.int32(0), "Incorrect output dtype for return value #0: Expected: float32, Actual: int32"),
    (None, "Mismatched number of outputs from callback. Expected: 1, Actual: 0"),
    ((np.float32(1), np.float32(2)), "Mismatched number of outputs from callback. Expected: 1, Actual: 2")])
def test_what_is_returned_and_was_not_declared_is_said_in_jaxs_words(returned, words):
    for transform in lambda f: f, jax.jit:
        with pytest.raises(ValueError, match=words):
            jax.block_until_ready(
                transform(lambda x: jax.pure_callback(lambda x: returned, SCALAR, x))(jnp.float32(1)))


@pytest.mark.parametrize("over", ["pmap", "shard_map"])
def test_ordered_calls_on_several_devices(over):
    """Each device calls in its order; prints, which would be mixed, are refused."""
    def each(effect):
        return jax.pmap(effect) if over == "pmap" else jax.jit(jax.shard_map(
            lambda x: effect(x[0])[None], mesh=jax.make_mesh((2,), ("i",)), in_specs=jax.P("i"),
            out_specs=jax.P("i")))
    log = []

    def twice(x):
        for _ in range(2):
            x = io_callback(lambda x: (log.append(float(x)), x * 10)[1], SCALAR, x, ordered=True)
        return x
    np.testing.assert_array_equal(each(twice)(jnp.array([1., 2.])), [100, 200])
    jax.effects_barrier()
    assert sorted(log) == [1, 2, 10, 20] and log.index(1) < log.index(10) and log.index(2) < log.index(20)
    with pytest.raises(ValueError, match="ordered effects are not supported for more than 1 device"):
        each(lambda x: (jax.debug.print("{}", x, ordered=True), x)[1])(jnp.array([1., 2.]))


def test_what_is_returned_may_have_another_structure_of_as_many_leaves():
    one = jax.ShapeDtypeStruct((), jnp.float32)
    for declared, returned in (((one, one), list),
                               ([one, one], tuple),
                               (((one,), one), lambda x: [[x[0]], x[1]]),
                               ({"a": one, "b": one}, lambda x: {"c": x[0], "d": x[1]}),
                               ([one, [one]], tuple)):
        got = jax.jit(lambda x, d=declared, r=returned: jax.pure_callback(lambda x: r((x, x)), d, x))(2.)
        assert jax.tree.structure(got) == jax.tree.structure(declared) and jax.tree.leaves(got) == [2., 2.]


# --- what callbacks get, and where they run -----------------------------------------------------------------

CALLS = {
    "pure": lambda f, *args: jax.pure_callback(f, SCALAR, *args),
    "io": lambda f, *args: io_callback(f, SCALAR, *args),
    "debug": lambda f, *args: jax.debug.callback(f, *args),
    **{method: lambda f, *args, method=method: jax.vmap(
        lambda *args: jax.pure_callback(f, SCALAR, *args, vmap_method=method))(
            *(jnp.stack([x, x]) for x in args))
       for method in ("sequential", "expand_dims", "broadcast_all")}}


@eager_and_jit
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_callbacks_get_arrays(call, transform):
    seen = []

    def callback(*args):
        seen.extend(args)
        return np.asarray(args[1], np.float32)
    args = jnp.arange(3.), jnp.float32(2), jnp.array(True), jax.random.key(3)
    transform(lambda *args: call(callback, *args))(*args)
    jax.effects_barrier()
    assert seen and all(isinstance(x, jax.Array) for x in seen)
    assert [x.dtype for x in seen[:4]] == [x.dtype for x in args]
    assert seen[0].at[..., 0].set(5).sum() in (8, 16) and jax.random.key_data(seen[3])[..., 1].max() == 3


def test_what_callbacks_keep_stays():
    kept = []
    f = jax.jit(lambda x: jax.debug.callback(kept.append, x))
    for i in range(20):
        f(jnp.full(1000, i))
    jax.effects_barrier()
    assert sorted(int(x.min()) for x in kept) == sorted(int(x.max()) for x in kept) == list(range(20))


@pytest.mark.parametrize("call", [jax.pure_callback, io_callback])
def test_callbacks_run_in_the_process_of_a_device(call):
    here = jax.sharding.SingleDeviceSharding(jax.devices()[-1])
    assert jax.jit(lambda x: call(lambda x: x + 1, SCALAR, x, sharding=here))(1.) == 2
    with pytest.raises(NotImplementedError, match="SingleDeviceSharding of one of that process"):
        call(lambda x: x, SCALAR, 1., sharding=jax.sharding.NamedSharding(jax.make_mesh((1,), "x"), jax.P()))


def test_each_device_calls_with_its_part():
    seen = []

    def f(x):
        jax.debug.callback(lambda x: seen.append(x.shape), x, partitioned=True)
        return x
    jax.jit(f)(A(4))
    over = jax.make_mesh((2,), "x", devices=jax.devices()[:2], axis_types=(jax.sharding.AxisType.Auto,))
    jax.jit(jax.shard_map(f, mesh=over, in_specs=jax.P("x"), out_specs=jax.P("x")))(A(4))
    jax.effects_barrier()
    assert seen == [(4,), (2,), (2,)]
    with pytest.raises(NotImplementedError, match="inside shard_map"):
        jax.jit(f)(jax.device_put(A(4), jax.sharding.NamedSharding(over, jax.P("x"))))


@pytest.mark.parametrize("dtype, wide",
                         [("int4", "i8"), ("uint2", "ui8"), ("float4_e2m1fn", "f32"), ("int8", None)])
def test_on_gpus_what_is_packed_goes_to_the_host_in_bytes(dtype, wide):
    """NumPy has no packed elements: the callback has those of the type that was said all the same."""
    function = lambda x: jax.pure_callback(lambda x: x, x, x)
    traced = jax.jit(function).trace(jax.ShapeDtypeStruct((5,), dtype))
    lowered = traced.lower(lowering_platforms=("cuda",))
    text = lowered.as_text()
    assert text.count("stablehlo.convert") == 2 * bool(wide)
    assert f"tensor<5x{wide or 'i8'}>) -> tensor<5x{wide or 'i8'}>" in text
    x = jnp.array([1, 0, 1, 1, 0], "int8").astype(dtype)
    np.testing.assert_array_equal(jax.jit(function)(x).astype("int32"), [1, 0, 1, 1, 0])
