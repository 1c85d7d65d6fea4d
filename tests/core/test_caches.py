"""What is kept between calls never serves where what a trace depends on has changed, is bounded, and can be
forgotten."""
import gc
import re
import sys
import threading

import numpy as np
import pytest
from golden_programs import FAMILIES
from mesh8 import auto_mesh
from option_changes import CHANGES

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.api.composite import composite
from hlotrace.core.caches import ContextCache, LRUCache, WeakCache, cached, clear_caches
from hlotrace.core.config import TRACING, override, state
from hlotrace.core.primitive import Primitive
from hlotrace.runtime.executables import compilation


def custom_jvp(f):
    function = jax.custom_jvp(f)
    function.defjvp(lambda primals, tangents: (function(*primals), f(*tangents)))
    return function


def custom_vjp(f):
    function = jax.custom_vjp(f)
    function.defvjp(lambda x: (f(x), None), lambda _, ct: (f(ct),))
    return function


class Rule:
    """`f` as the jvp rule of a primitive that copies its operand."""

    def __init__(self, f):
        self.primitive = Primitive("with_a_rule", abstract_eval=lambda x: x, lower=lambda ctx, eqn, x: x,
                                   batching=lambda axis, args, dims: (self.primitive.bind(*args), *dims))
        self.primitive.jvp = lambda primals, tangents: (self.primitive.bind(*primals), f(*tangents))

    def __call__(self, x):
        return self.primitive.bind(x)


# Every road on which something is kept: from a function that multiplies by a number to the same function, or
# its slope.
ROADS = {
    "jit": jax.jit,
    "jit of jit": lambda f: jax.jit(jax.jit(f)),
    "grad": lambda f: lambda x: jax.grad(f)(x),
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "grad of jit": lambda f: jax.grad(jax.jit(f)),
    "jvp of jit": lambda f: lambda x: jax.jvp(jax.jit(f), (x,), (x,))[1],
    "linearize of jit": lambda f: lambda x: jax.linearize(jax.jit(f), x)[1](x),
    "vmap of jit": lambda f: lambda x: jax.vmap(jax.jit(f))(jnp.stack([x, x]))[0],
    "named vmap of jit": lambda f: lambda x: jax.vmap(jax.jit(f), axis_name="j")(jnp.stack([x, x]))[0],
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "grad of scan": lambda f: jax.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]),
    "cond": lambda f: lambda x: lax.cond(jnp.abs(x) > 0, f, lambda y: y, x),
    "while": lambda f: lambda x: lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1])), (0, x))[1],
    "fori": lambda f: lambda x: lax.fori_loop(0, 1, lambda _, c: f(c), x),
    "map": lambda f: lambda x: lax.map(f, jnp.stack([x, x]))[0],
    "checkpoint": jax.checkpoint,
    "grad of checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
    "jit of grad of checkpoint": lambda f: jax.jit(jax.grad(jax.checkpoint(f))),
    "custom_jvp": custom_jvp,
    "grad of custom_jvp": lambda f: jax.grad(custom_jvp(f)),
    "grad of custom_vjp": lambda f: jax.grad(custom_vjp(f)),
    "jit of custom_vjp": lambda f: jax.jit(custom_vjp(f)),
    "jit of composite": lambda f: (lambda g: lambda x: jax.jit(lambda y: g(y))(x))(composite(f)),
    "rule under jit of grad": lambda f: (lambda rule: lambda x: jax.jit(jax.grad(lambda y: rule(y)))(x))(
        Rule(f)),
    "make_jaxpr": lambda f: lambda x: jax.make_jaxpr(f)(x).eqns[-1].invars[1].val,
    "lower": lambda f: lambda x: jax.jit(f).lower(x).compile()(x),
}

OTHER = {      # for each option that changes programs, a value that it does not have
    "jax_enable_x64": True, "jax_numpy_dtype_promotion": "strict", "jax_numpy_rank_promotion": "raise",
    "jax_default_matmul_precision": "highest", "jax_threefry_partitionable": False, "jax_debug_nans": True,
    "jax_debug_infs": True, "hlotrace_outline": False, "jax_check_static_indices": True,
    "hlotrace_blocks_on_chips": True, "hlotrace_check_bounds": True, "jax_error_checking_behavior_nan": "raise",
    "jax_error_checking_behavior_divide": "raise", "jax_error_checking_behavior_oob": "raise",
}


@pytest.mark.parametrize("road", ROADS)
def test_a_changed_option_is_seen_by_the_next_call(road):
    """The function says which option is set; every second call finds it as it was."""
    def f(x):
        return x * factor[0]() if callable(factor[0]) else x
    factor = [None]
    call = ROADS[road](f)
    x = jnp.float32(1)
    for i, (name, value) in enumerate(OTHER.items()):
        number = 2 + i % 2
        usual = getattr(jax.config, name)
        factor[0] = lambda name=name, usual=usual, number=number: np.float32(
            number if getattr(jax.config, name) != usual else 1)
        programs = compilation._loaded.entries.copy()
        clear_caches()
        compilation._loaded.entries.update(programs)       # of the same text they are the same
        assert float(call(x)) == 1
        with override(name, value):
            assert float(call(x)) == number, name
        assert float(call(x)) == 1


def test_every_option_that_changes_programs_is_tried():
    # nothing is kept under the first, the second needs devices, the third looks through the heap after every
    # trace
    left_out = {"jax_disable_jit", "jax_debug_key_reuse", "jax_default_device", "jax_check_tracer_leaks"}
    elsewhere = set(CHANGES)       # on one road each
    refused = {"jax_default_prng_impl", "jax_enable_custom_prng", "jax_softmax_custom_jvp",
               "jax_legacy_prng_key"}
    assert set(TRACING) - left_out - refused - elsewhere == set(OTHER)


@pytest.mark.parametrize(
    "road", [r for r in ROADS if "vmap" not in r and r not in ("lower", "map", "make_jaxpr")])
def test_a_named_axis_of_another_size_is_seen(road):
    call = ROADS[road](lambda x: x * np.float32(lax.axis_size("i")))
    for size in (2, 3, 2):
        assert jax.vmap(call, axis_name="i")(jnp.ones(size, jnp.float32)).tolist() == [size] * size


@pytest.mark.parametrize("road", ["jit", "scan", "cond", "checkpoint", "grad of jit", "custom_jvp"])
def test_zeros_of_either_sign_are_different_constants(road):
    for zero in (0.0, -0.0, np.float32(0.0), np.float32(-0.0), np.array(-0.0, np.float32)):
        call = ROADS[road](lambda x, zero=zero: jnp.copysign(x, zero))
        sign = -1 if np.signbit(zero) else 1
        assert float(call(jnp.float32(1))) == sign
        assert jnp.copysign(jnp.float32(1), zero) == sign
        assert np.signbit(jax.jit(lambda zero=zero: jnp.full(3, zero, jnp.float32))()).all() == (sign < 0)
        assert np.signbit(jnp.where(jnp.array([True, False]), zero, 1.0)[0]) == (sign < 0)


@pytest.mark.parametrize("road", [r for r in ROADS if r not in ("make_jaxpr", "lower")])
def test_a_scope_is_not_kept(road):
    """What is made of one function in one scope says nothing of it in the next."""
    call, found = ROADS[road](lambda x: x * 3), []
    for scope in ("first", "second"):
        def scoped(x, scope=scope):
            with jax.named_scope(scope):
                return jnp.hypot(call(x), x)
        found.append(jax.jit(scoped).lower(1.0).as_text(debug_info=True))
    assert "first" in found[0] and "first" not in found[1] and "second" in found[1]


def test_the_precision_of_matmul_is_part_of_what_is_kept():
    f = jax.jit(lambda x: jnp.einsum("ij,jk", x, x))
    x = jnp.ones((2, 2))
    assert "HIGHEST" not in f.lower(x).as_text()
    with jax.default_matmul_precision("highest"):
        assert "HIGHEST" in f.lower(x).as_text()
        assert "HIGHEST" in jax.jit(lambda x: jax.vmap(f)(x)).lower(jnp.ones((1, 2, 2))).as_text()
    assert "HIGHEST" not in f.lower(x).as_text()


@pytest.mark.parametrize("road", [r for r in ROADS if r not in ("make_jaxpr", "lower")])
def test_clear_caches_makes_every_road_trace_again(road):
    traces = []

    def f(x):
        traces.append(1)
        return x * 3
    call, x = ROADS[road](f), jnp.float32(1)
    call(x)
    call(x)
    before = len(traces)
    jax.clear_caches()
    call(x)
    assert len(traces) > before


def test_clear_caches_forgets_compiled_programs():
    f = jax.jit(lambda x: x + 1)
    f(1.0)
    assert f._cache_size() == 1
    jax.clear_caches()
    assert f._cache_size() == 0
    assert f(1.0) == 2


# --- texts that anything kept went into ---------------------------------------------------------------------

PROGRAMS = [(f"{family}: {title}", function if hasattr(function, "lower") else jax.jit(function), args)
            for family, programs in FAMILIES.items() for title, (function, *args) in programs.items()]


def texts():
    """All golden programs as they are lowered now, without the numbers that host functions have in this
    process."""
    found = {}
    for name, function, args in PROGRAMS:
        try:
            found[name] = re.sub("index = [0-9]+", "", function.lower(*args).as_text())
        except TypeError as error:      # some mix float32 with what is float64 where that is on
            found[name] = str(error)
    return found


def test_programs_are_what_they_are_when_nothing_is_kept():
    """Made under one state, then under others, each time under the first again: all as in a fresh process."""
    def changed(option):
        with override(option, OTHER[option]):
            return texts()
    clear_caches()
    usual, fresh = texts(), {}
    for option in ("jax_enable_x64", "jax_default_matmul_precision", "jax_threefry_partitionable"):
        clear_caches()
        fresh[option] = changed(option)
        assert fresh[option] != usual
    clear_caches()
    assert_same(texts(), usual)
    for option, wanted in fresh.items():
        assert_same(changed(option), wanted)
        assert_same(texts(), usual)


def assert_same(found, wanted):
    assert not [name for name in wanted if found[name] != wanted[name]]


def test_where_programs_run_is_part_of_what_is_kept():
    f = jax.jit(lambda x: x + 1)
    x = np.arange(8, dtype=np.float32)
    meshes = [auto_mesh((n,), ("data",), devices=jax.devices()[:n]) for n in (8, 4)]
    for _ in range(2):
        assert len(f(x).devices()) == 1
        for mesh in meshes:
            with jax.set_mesh(mesh):
                assert f(x).devices() == set(mesh.devices.flat)


def test_where_operands_lie_is_part_of_what_is_kept():
    """Eagerly, under jit, of one operand and of two: results are where operands are, whatever was there
    before."""
    def compiled(x):
        return x * 2
    functions = {"x + 1": lambda x: x + 1, "x * x": lambda x: x * x, "sum": jnp.sum, "jit": jax.jit(compiled),
                 "cond": lambda x: lax.cond(True, lambda y: y, lambda y: -y, x)}
    mesh = auto_mesh((4,), ("data",), devices=jax.devices()[:4])
    places = [None, *jax.devices()[:3],
              *(jax.sharding.NamedSharding(mesh, jax.P(*s)) for s in (("data",), ()))]
    value = np.arange(8, dtype=np.float32)
    for _ in range(2):
        for place in places:
            x = jnp.asarray(value) if place is None else jax.device_put(value, place)
            for name, function in functions.items():
                got = function(x)
                assert got.devices() == x.devices() and got.committed == x.committed, (name, place)
                np.testing.assert_array_equal(got, functions[name](value) if name != "cond" else value)


# --- state that ends with its block -------------------------------------------------------------------------

def in_force():
    names = ("trace", "source", "name_stack", "axis_env", "meshes", "mesh_to_run_on", "x64", "disable_jit",
             "check_floats",
             "check_bounds", "overrides", "trace_key")
    return {name: getattr(state, name) for name in names}


def within(context):
    def road(f):
        def call(x):
            with context():
                return f(x)
        return call
    return road


SCOPES = {
    **ROADS,
    "named vmap": lambda f: lambda x: jax.vmap(f, axis_name="i")(jnp.stack([x, x]))[0],
    "shard_map": lambda f: lambda x: jax.shard_map(
        lambda v: f(v[0])[None], mesh=auto_mesh((2,), ("i",), devices=jax.devices()[:2]), in_specs=jax.P("i"),
        out_specs=jax.P("i"))(jnp.stack([x, x]))[0],
    "pmap": lambda f: lambda x: jax.pmap(f, axis_name="i")(jnp.stack([x, x]))[0],
    "inlined jit": lambda f: lambda x: jax.jit(jax.jit(f, inline=True))(x),
    "eval_shape": lambda f: lambda x: jax.eval_shape(f, x),
    "disable_jit": within(jax.disable_jit),
    "set_mesh": within(lambda: jax.set_mesh(auto_mesh((1,), ("i",), devices=jax.devices()[:1]))),
    "mesh": within(lambda: auto_mesh((1,), ("i",), devices=jax.devices()[:1])),
    "default_device": within(lambda: jax.default_device(jax.devices()[1])),
    "enable_x64": within(jax.enable_x64), "debug_nans": within(jax.debug_nans),
}


@pytest.mark.filterwarnings("ignore:.*with mesh:DeprecationWarning")
@pytest.mark.parametrize("road", SCOPES)
def test_nothing_stays_in_force(road):
    """Whether the function returns or raises."""
    def scoped(x):
        with jax.named_scope("scope"):
            return x * 2

    def fails(x):
        with jax.named_scope("scope"):
            jnp.sin(x)
            raise KeyError("mine")
    x, before = jnp.float32(1), in_force()
    # these are not traced
    alone = road in ("make_jaxpr", "lower", "eval_shape", "default_device", "set_mesh")
    for outer in [lambda g: g] if alone else [lambda g: g, jax.jit]:
        outer(SCOPES[road](scoped))(x)
        assert in_force() == before
        with pytest.raises(KeyError, match="mine"):
            outer(SCOPES[road](fails))(x)
        assert in_force() == before


# --- other threads ------------------------------------------------------------------------------------------

def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


@pytest.fixture
def x64_afterwards():
    yield
    jax.config.update("jax_enable_x64", False)


def test_an_option_set_by_another_thread_is_seen_by_the_next_operation(x64_afterwards):
    x = jnp.arange(3)
    assert (jnp.zeros(2).dtype, (x + 1.5).dtype, jnp.arange(2).dtype) == ("float32", "float32", "int32")
    in_thread(lambda: jax.config.update("jax_enable_x64", True))
    assert jnp.zeros(2).dtype == "float64"
    assert jnp.arange(2).dtype == "int64"
    assert (jnp.asarray(1.5) + x).dtype == "float64"
    in_thread(lambda: jax.config.update("jax_enable_x64", False))
    assert (1.5 + x).dtype == "float32"
    assert lax.mul(jnp.float32(2), 3.0).dtype == "float32"


def test_a_thread_that_traces_finishes_under_the_options_it_began_with(x64_afterwards):
    def f(x):
        before = jnp.zeros(2).dtype
        in_thread(lambda: jax.config.update("jax_enable_x64", True))
        return x + (jnp.zeros(2).dtype == before)
    assert jax.jit(f)(jnp.float32(1)) == 2
    assert jnp.zeros(2).dtype == "float64"


def test_a_thread_keeps_what_it_set_for_itself(x64_afterwards):
    with jax.enable_x64(False):
        in_thread(lambda: jax.config.update("jax_enable_x64", True))
        assert jnp.zeros(2).dtype == "float32"
    assert jnp.zeros(2).dtype == "float64"


# --- bounds -------------------------------------------------------------------------------------------------

@pytest.mark.quick
def test_a_table_lets_go_of_what_was_made_longest_ago():
    table = LRUCache(3)
    for i in range(3):
        table.keep(i, str(i))
    assert table.use(0) == "0"
    table.keep(3, "3")
    assert [table.get(i) for i in range(4)] == ["0", None, "2", "3"]
    clear_caches()
    assert table.values() == []


@pytest.mark.quick
def test_a_kept_entry_holds_under_what_was_in_force():
    table = ContextCache(10)
    table.keep("x", 1)
    with jax.enable_x64(not state.x64):
        assert table.get("x") is None
        table.keep("x", 2)
    assert table.get("x") == 1
    with jax.enable_x64(not state.x64):
        assert table.get("x") == 2


@pytest.mark.quick
def test_kept_functions_run_once_for_each_state():
    calls = []

    @cached(10)
    def function(x):
        calls.append(x)
    for _ in range(2):
        function(1)
        with jax.enable_x64(not state.x64):
            function(1)
    assert calls == [1, 1]


@pytest.mark.quick
def test_an_owner_has_a_cache_for_each_key():
    caches, owner, other = WeakCache(dict), threading.Thread(), threading.Thread()
    places = [(who, key) for who in (owner, other) for key in (None, "a", 1)]
    for i, place in enumerate(places):
        caches.of(*place)["made"] = i
    assert [caches.of(*place)["made"] for place in places] == list(range(6)) and caches.of(
        owner) is caches.of(owner, None)
    assert caches.of([]) is not caches.of([])      # a list cannot be referred to weakly
    del other, place, places
    assert list(caches.tables) == [owner]


def test_eager_loops_with_new_bodies_do_not_pile_up():
    from hlotrace.runtime import evaluate
    for i in range(20):
        lax.scan(lambda c, _, i=i: (c * i, None), 1.0, None, length=2)
    assert 0 < evaluate._programs.limit <= 1024
    assert len(evaluate._programs.entries) <= evaluate._programs.limit
    assert not any("scan" in repr(key[0]) for key in evaluate._applications.entries)


def test_what_is_kept_of_a_function_goes_with_it():
    from hlotrace.api.compiled_calls import CACHES
    before = len(CACHES.tables)
    functions = [lambda x, i=i: x + i for i in range(5)]
    for f in functions:
        jax.jit(f)(1.0)
    assert len(CACHES.tables) >= before + 5
    del functions, f
    gc.collect()
    assert len(CACHES.tables) <= before + 1


def test_many_threads_fill_one_cache():
    """What one evicts another may be keeping, or using."""
    cache, errors = LRUCache(8), []

    def fill(n):
        try:
            for i in range(3000):
                cache.keep((n, i), i)
                cache.use((n, i - 3))
        except Exception as error:
            errors.append(error)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=fill, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors
