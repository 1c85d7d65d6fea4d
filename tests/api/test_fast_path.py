"""The second call of a compiled function, which is found by the types of its arguments, does what the first
one does."""
import functools
import importlib.util
import threading
from typing import NamedTuple

import forked
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp


def warm(f, *args, **kwargs):
    """Called until it is warm, without a trace of the later calls."""
    for _ in range(3):
        f(*args, **kwargs)
    return f


@pytest.fixture
def add():
    x = jnp.arange(4.0)
    f = jax.jit(lambda x, y: x + y)
    return warm(f, x, x)


KINDS = {"float": 2.0, "int": 2, "bool": True, "complex": 2j, "zero": 0.0, "minus zero": -0.0,
         "nan": float("nan"),
         "float32": np.float32(2), "int8": np.int8(2), "bool_": np.bool_(True), "0-d": np.array(2.0),
         "0-d int": np.array(2),
         "vector": np.arange(4, dtype=np.float32), "float64": np.arange(4.0), "int64": np.arange(4),
         "rows": np.ones((2, 4)),
         "Fortran": np.asfortranarray(np.ones((3, 4))), "strided": np.arange(8.0)[::2],
         "empty": np.zeros((0, 4)),
         "weak": jnp.asarray(2.0) * 1, "bfloat16": jnp.arange(4, dtype="bfloat16")}


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("how", ["position", "keyword"])
@pytest.mark.parametrize("x", [jnp.arange(4.0), np.arange(4, dtype=np.float32)], ids=["jax", "numpy"])
def test_every_kind_of_argument_is_told_from_the_others(first, how, x, capfd):
    """All kinds after each other, those of one type as NumPy and as Python among them."""
    f = jax.jit(lambda x, y: x + y)
    call = (lambda y: f(x, y)) if how == "position" else (lambda y: f(x, y=y))
    warm(call, KINDS[first])
    for y in KINDS.values():
        for _ in range(2):
            got, want = call(y), jnp.add(x, y)
            assert (got.dtype, got.shape, got.weak_type) == (want.dtype, want.shape, want.weak_type)
            assert np.asarray(got).tobytes() == np.asarray(want).tobytes()
    assert not capfd.readouterr().err       # where XLA says what it was wrongly given


def test_keys_are_not_their_words():
    f = jax.jit(lambda x: x.dtype.itemsize * jnp.ones(x.shape))
    key = jax.random.key(0)
    words = jax.random.key_data(key)
    warm(f, words)
    assert f(key).shape == () and f(words).shape == (2,) and f(key).shape == ()


def test_keyword_arguments_in_any_order():
    f = jax.jit(lambda x, *, b, a: x + 10 * a + 100 * b)
    x, a, b = jnp.float32(1), jnp.float32(2), jnp.float32(3)
    for _ in range(3):
        assert f(x, a=a, b=b) == f(x, b=b, a=a) == f(b=b, a=a, x=x) == 321


class Pair(NamedTuple):
    x: float
    y: float


@pytest.mark.parametrize(
    "statics", [(1, 1.0, True), (0.0, -0.0), ((1,), (1.0,), (True,)), ((0.0,), (-0.0,)), ("a", "b"),
                                     (None, 0), (2j, complex(-0.0, 2)),
                                     (Pair(1, 0.0), Pair(1.0, 0.0), Pair(1, -0.0)),
                                     (frozenset([1]), frozenset([1.0])), (np.float32(0.0), np.float32(-0.0))],
                                     ids=str)
def test_static_values_are_told_apart_by_type_and_sign(statics):
    seen = []
    f = jax.jit(lambda x, n, *, m: seen.append((n, m)) or x, static_argnums=1, static_argnames="m")
    x = jnp.ones(2)
    for _ in range(3):
        for n in statics:
            for m in statics:
                f(x, n, m=m)
    assert [repr(s) for s in seen] == [repr((n, m)) for n in statics for m in statics]


@pytest.mark.parametrize("options",
                         [{"static_argnums": (1, 3)},
                          {"static_argnames": ("n", "m")},
                          {"static_argnums": 1},
                          {"static_argnames": "m"}])
def test_static_values_may_be_left_out_or_named(options):
    def plain(x, n=1, y=0.5, m=2):
        return x * n + y * m
    f, x = jax.jit(plain, **options), jnp.arange(3.0)
    for _ in range(3):
        for args in ((), (1,), (3,), (1, 0.25), (3, x), (3, x, 1), (1, x, 4)):
            for named in ({}, {"n": 2}, {"m": 4}, {"y": 2.0, "m": 3}, {"y": x, "n": 3}):
                if not any(name in named for name in ("n", "y", "m")[:len(args)]):
                    np.testing.assert_array_equal(f(x, *args, **named), plain(x, *args, **named))


def test_a_deleted_argument_is_an_error_again_and_again(add):
    x, y = jnp.ones(4), jnp.ones(4)
    y.delete()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="deleted"):
            add(x, y)
    assert add(x, x).tolist() == [2.0] * 4


def test_a_donated_argument_is_gone_after_every_call():
    f = jax.jit(lambda x, y: x + y, donate_argnums=0)
    x = jnp.ones(4)
    for n in range(1, 5):
        kept, x = x, f(x, 1.0)
        assert kept.is_deleted() and float(x.sum()) == 4 * (n + 1)


@pytest.mark.parametrize("stage", ["jitted", "compiled"])
def test_donated_arguments_beside_others_are_gone_and_results_stay_uncommitted(stage):
    f = jax.jit(lambda tree, y: {name: x + y for name, x in tree.items()}, donate_argnums=0)
    made = lambda: {"a": jnp.arange(4.0), "b": jnp.ones(4)}
    y = np.arange(4, dtype=np.float32)
    call = f if stage == "jitted" else f.lower(made(), y).compile()
    for _ in range(4):
        tree = made()
        found = call(tree, y)
        assert np.array_equal(found["a"], 2 * y) and np.array_equal(found["b"], 1 + y) and not found[
            "a"].committed
        for x in tree.values():
            assert x.is_deleted()
            with pytest.raises(RuntimeError, match="deleted"):
                call(tree, y)
    same = jnp.ones(4)
    with pytest.raises(jax.errors.JaxRuntimeError, match="donated and passed a second time"):
        f({"a": same, "b": same}, y)


def test_constants_and_unused_arguments():
    held = jnp.arange(3.0)
    f = jax.jit(lambda x, unused, y: (held + x, y))
    for _ in range(3):
        a, b = f(jnp.float32(1), jnp.ones(5), 2)
        assert a.tolist() == [1.0, 2.0, 3.0] and b == 2 and b.weak_type


def test_results_keep_their_structure():
    f = jax.jit(lambda x: {"a": (x, [x + 1]), "b": None})
    for _ in range(3):
        result = f(jnp.float32(1))
        assert result == {"a": (1.0, [2.0]), "b": None}


def test_effects_happen_on_every_call():
    heard = []
    f = jax.jit(lambda x: jax.debug.callback(lambda v: heard.append(float(v)), x) or x)
    for n in range(4):
        f(jnp.float32(n))
    jax.effects_barrier()
    assert sorted(heard) == [0.0, 1.0, 2.0, 3.0]


def test_a_warm_function_is_still_traced_by_other_transformations(add):
    x = jnp.arange(4.0)
    assert jax.grad(lambda x: add(x, x).sum())(x).tolist() == [2.0] * 4
    assert jax.vmap(add, (0, None))(jnp.stack([x, x]), x).shape == (2, 4)
    assert len(jax.make_jaxpr(lambda: add(x, x))().eqns) == 1
    with jax.disable_jit():
        assert add(x, x).tolist() == [0.0, 2.0, 4.0, 6.0]


def test_options_are_seen_by_a_warm_call(add):
    x = jnp.array([0.0, 1.0, 2.0, np.nan])
    add(x, x)
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        add(x, x)
    with jax.enable_x64(True):
        assert add(np.arange(4.0), np.arange(4.0)).dtype == "float64"
    assert add(np.arange(4.0), np.arange(4.0)).dtype == "float32"


def test_committed_arguments_give_committed_results(add):
    x = jnp.ones(4)
    there = jax.device_put(x, jax.devices()[0])
    for _ in range(2):
        assert not add(x, x).committed and add(there, x).committed and add(x, there).committed


def test_many_threads_call_one_function(add):
    wrong = []

    def work(n):
        x = jnp.full(4, float(n))
        for i in range(200):
            if add(x, i % 3).tolist() != [n + i % 3] * 4:
                wrong.append((n, i))
    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_wrong_argument_is_named_after_warm_calls(add):
    for _ in range(2):
        with pytest.raises(TypeError, match=r"(?s)of type <class 'str'>.*argument y"):
            add(jnp.ones(4), "2")
        with pytest.raises(OverflowError):
            add(jnp.arange(4), 2**40)


DEVICES = """
import itertools
import numpy as np
import hlotrace as jax, hlotrace.numpy as jnp
jax.config.update("jax_num_cpu_devices", 4)
f = jax.jit(lambda x, y: x + y)
x = jnp.arange(8.0)
for _ in range(3):
    f(x, x)
first, second = jax.devices()[:2]
mesh = jax.make_mesh((4,), ("d",))
there, spread = jax.device_put(x, second), jax.device_put(x, jax.NamedSharding(mesh, jax.P("d")))
for _ in range(3):
    assert f(x, x).devices() == {first}
    assert f(there, x).devices() == f(x, there).devices() == {second}
    assert len(f(spread, x).devices()) == 4
    with jax.default_device(second):
        assert f(2.0, 3.0).devices() == {second}
kinds = {"default": x, "there": there, "spread": spread, "numpy": np.arange(8, dtype=np.float32), "ints": np.arange(8),
         "number": 2.0}
wanted = {"there": {second}, "spread": set(jax.devices())}
for a, b in itertools.product(kinds, repeat=2):
    if {a, b} == {"there", "spread"}:
        continue
    jitted = jax.jit(lambda x, y: (x + y, y * 2))
    compiled = jitted.lower(kinds[a], kinds[b]).compile()
    for call in jitted, compiled:
        for _ in range(4):
            found = call(kinds[a], kinds[b])
            devices = wanted.get(a) or wanted.get(b) or {first}
            assert np.allclose(found[0], np.asarray(kinds[a]) + np.asarray(kinds[b])), (a, b)
            assert np.allclose(found[1], 2 * np.asarray(kinds[b])), (a, b)
            assert found[0].devices() == devices and found[0].committed == (devices != {first}), (a, b, found[0].sharding)
for lose in (lambda v: v.delete(), lambda v: v.addressable_shards[1].data.delete()):
    v = jax.device_put(x, spread.sharding)
    for _ in range(3):
        f(v, v)
    lose(v)
    for _ in range(2):
        try:
            f(v, v)
        except RuntimeError as error:
            assert "deleted" in str(error), error
        else:
            raise AssertionError("an array that is gone was read")
with jax.default_device(second):
    elsewhere = jnp.arange(8.0) + 1
for _ in range(3):
    assert np.allclose(f(elsewhere, x), 2 * np.arange(8.0) + 1)
try:
    f(there, jax.device_put(x, first))
except ValueError:
    print("ok")
"""


def run(program):
    return forked.run(program, check=True).stdout.strip()


def test_warm_calls_go_where_their_arguments_are():
    assert run(DEVICES) == "ok"


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs an installed jax beside hlotrace")
@pytest.mark.parametrize("order", ["import jax as other; import hlotrace as jax",
                                   "import hlotrace as jax; import jax as other"])
@pytest.mark.parametrize("x64", [False, True])
def test_warm_calls_beside_a_real_jax(order, x64):
    program = f"""{order}
import numpy as np
other.config.update("jax_enable_x64", {x64})
jax.config.update("jax_num_cpu_devices", 2)
split = jax.NamedSharding(jax.make_mesh((2,), ("d",)), jax.P("d"))
for there in split, jax.devices()[1]:
    assert jax.device_put(np.arange(4), there).tolist() == [0, 1, 2, 3]
f, g = jax.jit(lambda x, y: x + y), other.jit(lambda x, y: x + y)
for _ in range(4):
    a, b = f(np.arange(3.0), 1.5), g(np.arange(3.0), 1.5)
    assert a.dtype == "float32" and b.dtype == {"float64" if x64 else "float32"!r}
    assert a.tolist() == b.tolist() == [1.5, 2.5, 3.5]
with other.disable_jit():
    assert f(np.arange(3.0), 1.5).tolist() == [1.5, 2.5, 3.5]
print("ok")
"""
    assert run(program) == "ok"


def test_containers_are_not_put_into_words():
    """A call of containers tries first whether they are arrays: that must not print them."""
    f = jax.jit(lambda tree: tree["x"] + 1)

    class Told(dict):
        def __repr__(self):
            raise AssertionError("printed")
    jax.tree_util.register_pytree_node(Told, lambda t: ([t["x"]], None), lambda _, xs: Told(x=xs[0]))
    for _ in range(3):
        assert f(Told(x=jnp.float32(1))) == 2


def test_numbers_and_names_of_static_arguments_stand_alone_where_both_are_given():
    """The signature may be that of a function it wraps, which counts otherwise."""
    @functools.partial(jax.jit, static_argnums=(2, 0), static_argnames=["mode"])
    @functools.wraps(lambda tag, mode, flag, x: None)
    def f(tag, x, flag, mode):
        return x + len(tag) + flag + len(mode)
    assert f("ab", np.float32(1), 3, mode="xyz") == 9
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.jit(lambda x, n, m: x, static_argnums=1, static_argnames="m")(1.0, n="abc", m="")


def test_static_values_that_cannot_be_compared_are_named_by_the_second_call():
    class Odd:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            raise RuntimeError("no")
    f = jax.jit(lambda x, odd: x, static_argnums=1)
    f(1.0, Odd())
    with pytest.raises(ValueError, match=r"should be comparable using __eq__[\s\S]*RuntimeError: no"):
        f(1.0, Odd())
