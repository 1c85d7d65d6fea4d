"""For each field of each key under which something is kept: what differs in it alone has an entry of its own."""
import inspect
import io
import re
import types

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core import config as options
from hlotrace.core.config import named_axes, state
from hlotrace.runtime import binding
from hlotrace.runtime.executables import compilation, disk_cache
from hlotrace.sharding import AxisType, Mesh, NamedSharding, P

X = np.arange(6, dtype=np.float32).reshape(2, 3)
EQUAL_BUT_NOT_ALIKE = (1, 1.0, True, np.int32(1), np.float32(1), np.float16(1), np.bool_(True))


# --- programs on disk -------------------------------------------------------------------------------------------

def cpu(**changes):
    """A device, as far as a key asks about it."""
    facts = {"platform": "cpu", "device_kind": "cpu", "platform_version": "1"} | changes
    client = types.SimpleNamespace(platform_version=facts.pop("platform_version"))
    return types.SimpleNamespace(**facts, client=client)


def bytes_of(data):
    return types.SimpleNamespace(SerializeAsString=lambda: data)


DISK = {     # field -> a change of it alone
    "_FORMAT": lambda patch: patch.setattr(disk_cache, "_FORMAT", b"hlotrace executable 0\n"),
    "jaxlib_version": lambda patch: patch.setattr(binding, "jaxlib_version", "0.0.1"),
    "_machine": lambda patch: patch.setattr(disk_cache, "_machine", lambda: b"another CPU"),
    "platform": lambda patch: {"device": cpu(platform="rocm")},
    "device_kind": lambda patch: {"device": cpu(device_kind="another")},
    "platform_version": lambda patch: {"device": cpu(platform_version="2")},
    "options": lambda patch: {"options": bytes_of(b"2")},
    "text": lambda patch: {"text": "module @b {}"},
}


def disk_key(text="module @a {}", device=None, options=None):
    return disk_cache.key_of(text, device or cpu(), options or bytes_of(b"1"))


@pytest.mark.quick
@pytest.mark.parametrize("field", DISK)
def test_a_field_of_the_key_on_disk(field, monkeypatch):
    before = disk_key()
    assert disk_key() == before
    assert disk_key(**(DISK[field](monkeypatch) or {})) != before


@pytest.mark.quick
def test_the_fields_of_the_key_on_disk_are_all_tried(monkeypatch):
    """Each is hashed with its length, in front of it: one cannot run over into the next."""
    hashed = []
    monkeypatch.setattr(disk_cache.hashlib, "sha256", lambda: types.SimpleNamespace(
        update=hashed.append, hexdigest=lambda: ""))
    disk_key()
    assert len(hashed) == len(DISK)
    assert all(int(part.partition(b":")[0]) == len(part.partition(b":")[2]) for part in hashed)


CPUINFO = {"vendor_id": "A", "cpu family": "6", "model": "85", "model name": "one", "flags": "avx avx2",
           "Features": "sve", "CPU implementer": "1", "CPU architecture": "8", "CPU variant": "0", "CPU part": "d"}


@pytest.mark.quick
@pytest.mark.parametrize("field", [*CPUINFO, "platform", "machine", "cores"])
def test_a_field_of_the_machine(field, monkeypatch):
    info = dict(CPUINFO)
    monkeypatch.setattr("builtins.open", lambda *_: io.StringIO("".join(f"{k}\t: {v}\n" for k, v in info.items()) + "\n"))
    before = disk_cache._machine.__wrapped__()
    assert disk_cache._machine.__wrapped__() == before
    if field in info:
        info[field] += " and more"
    elif field == "platform":
        monkeypatch.setattr(disk_cache.sys, "platform", "another")
    elif field == "machine":
        monkeypatch.setattr(disk_cache.platform, "machine", lambda: "another")
    else:
        monkeypatch.setattr(disk_cache.os, "sched_getaffinity", lambda _: range(1000))
    assert disk_cache._machine.__wrapped__() != before


def test_xla_flags_are_in_the_options(monkeypatch):
    """What the process was started with is in the bytes that are hashed."""
    flags = binding.compile_options(jax.devices()[:1]).SerializeAsString()
    other = binding.compile_options(jax.devices()[:1], {"xla_backend_optimization_level": 1}).SerializeAsString()
    assert flags != other
    assert binding.compile_options(jax.devices()[1:2]).SerializeAsString() != flags


# --- executables in memory --------------------------------------------------------------------------------------

IN_MEMORY = {     # field -> what differs in it alone, of (program, number of its device, compiler options), and options
    "text": ((lambda x: x * 3, 0, {}), {}),
    "devices": ((lambda x: x * 2, 1, {}), {}),
    "compiler_options": ((lambda x: x * 2, 0, {"xla_cpu_enable_fast_math": True}), {}),
    "a value of compiler_options": ((lambda x: x * 2, 0, {"xla_cpu_enable_fast_math": False}), {}),
    "flags": ((lambda x: x * 2, 0, {}), {"jax_disable_most_optimizations": True}),
    "flags, remat": ((lambda x: x * 2, 0, {}), {"jax_compiler_enable_remat_pass": False}),
    "efforts, optimization": ((lambda x: x * 2, 0, {}), {"jax_optimization_level": "O1"}),
    "efforts, memory": ((lambda x: x * 2, 0, {}), {"jax_memory_fitting_level": "O3"}),
    "efforts, profile": ((lambda x: x * 2, 0, {}), {"jax_xla_profile_version": 5}),
    "with_lines": ((lambda x: x * 2, 0, {}), {"jax_compilation_cache_include_metadata_in_key": True}),
}


def executable(f, device, compiler_options):
    lowered = jax.jit(f).lower(X)._lowered(True)
    return compilation.compile_whole(lowered, jax.devices()[device], compiler_options).loaded


def test_a_field_of_the_key_in_memory():
    usual = (lambda x: x * 2, 0, {})
    first = executable(*usual)
    assert executable(*usual) is first
    found = [first]
    for field, (what, changes) in IN_MEMORY.items():
        with pytest.MonkeyPatch.context() as patch:
            for name, value in changes.items():     # alone: the text is that of the usual options
                patch.setitem(options.config._values, name, value)
            made = executable(*what)
        assert all(made is not other for other in found), field
        found.append(made)
    assert executable(*usual) is first


@pytest.mark.quick
def test_the_fields_of_the_key_in_memory_are_all_tried():
    source = inspect.getsource(compilation.compile_whole)
    key = source.partition("    key = (")[2].partition(")\n")[0]
    assert key == "lowered.text, devices, tuple(sorted(compiler_options.items())), efforts, with_lines"
    assert len(compilation._efforts()) == 3


# --- what a trace depends on besides its arguments -----------------------------------------------------------------

MESH, OTHER_MESH = (jax.make_mesh((8,), (name,), axis_types=(AxisType.Auto,)) for name in "xy")


@pytest.mark.quick
@pytest.mark.parametrize("name", options.TRACING)
def test_an_option_is_a_field_of_the_trace_key(name):
    """Whatever its value: it is looked at as it stands, so any two that differ will do."""
    before, values = state.trace_key, options.config._values
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(values, name, object())
        state.refresh()
        assert state.trace_key is not before
    state.refresh()
    assert state.trace_key is before


@pytest.mark.quick
@pytest.mark.parametrize("field, change", [
    ("the name", ("j", 2, "vmap")), ("the size", ("i", 3, "vmap")), ("the kind", ("i", 2, "manual")),
    ("another kind", ("i", 2, "checked"))])
def test_an_axis_is_a_field_of_the_trace_key(field, change):
    with named_axes(("i", 2, "vmap")):
        first = state.trace_key
    with named_axes(("i", 2, "vmap")):
        assert state.trace_key is first
    with named_axes(change):
        assert state.trace_key is not first
    with named_axes(("i", 2, "vmap"), ("k", 2, "vmap")):
        both = state.trace_key
    with named_axes(("k", 2, "vmap"), ("i", 2, "vmap")):
        assert state.trace_key is not both is not first


@pytest.mark.quick
@pytest.mark.filterwarnings("ignore:.*with mesh:DeprecationWarning")
def test_a_mesh_is_a_field_of_the_trace_key():
    keys = [state.trace_key]
    for mesh in MESH, OTHER_MESH, Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y")):
        with mesh:
            keys.append(state.trace_key)
        with jax.set_mesh(mesh):
            keys.append(state.trace_key)
        with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
            keys.append(state.trace_key)
    assert len({id(key) for key in keys}) == len(keys) and state.trace_key is keys[0]


@pytest.mark.quick
def test_a_context_of_the_users_is_a_field_of_the_trace_key():
    contexts = [jax.make_user_context(0), jax.make_user_context(0)]
    keys = [state.trace_key]
    for context in contexts:
        for value in EQUAL_BUT_NOT_ALIKE[:3]:
            with context(value):
                keys.append(state.trace_key)
    assert len({id(key) for key in keys}) == len(keys)


# --- arguments --------------------------------------------------------------------------------------------------

ARGUMENTS = {     # pairs that differ in one field of a type, or in the structure around it
    "shape": (jnp.ones((2, 3)), jnp.ones((3, 2))),
    "rank": (jnp.ones(3), jnp.ones((3, 1))),
    "dtype": (jnp.ones(3, jnp.int32), jnp.ones(3, jnp.uint32)),
    "width": (jnp.ones(3, jnp.float32), jnp.ones(3, jnp.float16)),
    "weak type": (jnp.asarray(1.0), jnp.float32(1)),
    "kind of number": (1, 1.0),
    "truth": (1, True),
    "a number of NumPy's": (np.float32(1), np.float16(1)),
    "a key": (jax.random.key(0), jax.random.key(0, impl="rbg")),
    "list or tuple": ([1.0, 2.0], (1.0, 2.0)),
    "names": ({"a": 1.0}, {"b": 1.0}),
    "order": ((1.0, [2.0]), ([1.0], 2.0)),
    "nothing": ((1.0, None), (None, 1.0)),
}


@pytest.mark.parametrize("pair", ARGUMENTS)
def test_arguments_that_differ_in_a_field_are_traced_each(pair):
    """By a jitted function, by one differentiated and one called, and by the body of a loop."""
    seen = []

    def f(x):
        seen.append((jax.tree.structure(x), *[jax.typeof(leaf) for leaf in jax.tree.leaves(x)]))
        return jax.tree.leaves(x)[0]
    jitted = jax.jit(f)
    for x in (*ARGUMENTS[pair], *ARGUMENTS[pair]):
        jitted(x)
    assert len(seen) == 2 and seen[0] != seen[1]
    outer = jax.jit(lambda x: jitted(x))
    for x in ARGUMENTS[pair]:
        assert jax.tree.leaves(jax.eval_shape(outer, x))[0].dtype == jax.eval_shape(f, x).dtype


@pytest.mark.parametrize("way", ["position", "name"])
def test_static_arguments_that_are_equal_are_not_alike(way):
    seen = []

    def f(x, kind):
        seen.append(type(kind))
        return x * kind
    jitted = jax.jit(f, static_argnames="kind")
    x = jnp.ones(3, jnp.int8)
    for _ in range(2):
        found = [(jitted(x, value) if way == "position" else jitted(x, kind=value)).dtype for value in EQUAL_BUT_NOT_ALIKE]
    assert seen == [type(value) for value in EQUAL_BUT_NOT_ALIKE]
    assert found == [(x * value).dtype for value in EQUAL_BUT_NOT_ALIKE]


def test_where_an_argument_is_committed_is_a_field():
    first, last = jax.devices()[0], jax.devices()[-1]
    f = jax.jit(lambda x: x + 1)
    for device in (first, last, first):
        assert f(jax.device_put(X, device)).devices() == {device}
        assert jnp.sin(jax.device_put(X, device)).devices() == {device}
    for spec in (P("x"), P(None), P("x"), P(None, None)):
        x = jax.device_put(np.ones((8, 2), np.float32), NamedSharding(MESH, spec))
        assert f(x).sharding.is_equivalent_to(x.sharding, 2)
        assert jnp.sin(x).sharding.is_equivalent_to(x.sharding, 2)


@pytest.mark.parametrize("changes", [
    {"donate_argnums": 0}, {"keep_unused": True}, {"out_shardings": NamedSharding(MESH, P())}, {"static_argnums": 1},
    {"in_shardings": (NamedSharding(MESH, P()), None, None)}], ids=lambda changes: [*changes][0])
def test_options_of_jit_are_fields(changes):
    """One function, jitted with and without: in turn, each as if it were alone."""
    def f(x, y, unused):
        return x + y
    with_it, without = jax.jit(f, **changes), jax.jit(f)
    texts = [[g.lower(X, np.float32(1), 2.0).as_text() for g in (with_it, without)] for _ in range(2)]
    assert texts[0] == texts[1] and texts[0][0] != texts[0][1]


# --- constants --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("road", ["composite", "grad", "vmap", "scan", "eager"])
def test_constants_that_are_equal_are_not_alike(road):
    """1, 1.0, True and numbers of NumPy's are equal and hash alike: what is kept for one must not serve another."""
    x = jnp.arange(3, dtype=jnp.int8)
    roads = {
        "composite": lambda c: jnp.hypot(x, c) if type(c) is not bool else jnp.add(x, c),
        "grad": lambda c: jax.vjp(lambda x: x * c + lax.convert_element_type(c, x.dtype), x.astype(jnp.float16))[0],
        "vmap": lambda c: jax.vmap(lambda x: x + c)(x),
        "scan": lambda c: lax.scan(lambda s, y: (s, y + c), 0, x)[1],
        "eager": lambda c: x + c,
    }
    first = [roads[road](c).dtype for c in EQUAL_BUT_NOT_ALIKE]
    assert [roads[road](c).dtype for c in reversed(EQUAL_BUT_NOT_ALIKE)] == first[::-1]
    jax.clear_caches()
    alone = []
    for c in EQUAL_BUT_NOT_ALIKE:
        jax.clear_caches()
        alone.append(roads[road](c).dtype)
    assert first == alone


def test_a_kept_program_knows_the_type_of_its_constant():
    """The program of one primitive, which derivatives are made of: each constant as it was first."""
    from hlotrace.core.programs import constant_key
    values = (*EQUAL_BUT_NOT_ALIKE, 0.0, -0.0, np.float32(0.0), np.float32(-0.0), float("nan"), np.float32("nan"), 0, False)
    keys = [constant_key(value) for value in values]
    assert len(set(keys)) == len(keys) and None not in keys
    assert [constant_key(value) for value in values] == keys
    assert constant_key(np.ones(2)) is None


# --- programs derived from programs ----------------------------------------------------------------------------

@jax.jit
def product(x, y):
    return jnp.sin(x) * jnp.cos(y) + x @ y


SQUARE = np.random.default_rng(0).standard_normal((2, 3, 3)).astype(np.float32)
A, B = SQUARE
DERIVED = {     # field -> functions of the same jitted function that differ in it alone
    "what is differentiated": [lambda i=i: jax.grad(lambda x, y: product(x, y).sum(), i)(A, B) for i in (0, 1, (0, 1))],
    "tangents that are zero": [
        lambda: jax.jvp(lambda x: product(x, B), (A,), (A,)), lambda: jax.jvp(lambda y: product(A, y), (B,), (A,)),
        lambda: jax.jvp(product, (A, B), (A, A))],
    "linearized": [lambda: jax.linearize(lambda x: product(x, B), A)[1](A),
                   lambda: jax.linearize(lambda y: product(A, y), B)[1](A)],
    "mapped operands": [lambda: jax.vmap(product, (0, None))(SQUARE, B), lambda: jax.vmap(product, (None, 0))(B, SQUARE),
                        lambda: jax.vmap(product)(SQUARE, SQUARE)],
    "mapped axis": [lambda i=i: jax.vmap(product, (i, None))(np.stack([SQUARE] * 3)[:, 0], B) for i in (0, 1, 2)],
    "out axis": [lambda i=i: jax.vmap(product, (0, None), i)(SQUARE, B) for i in (0, 1, 2)],
    "size of an axis": [lambda n=n: jax.vmap(product, axis_size=n)(np.stack([A] * n), np.stack([B] * n)) for n in (1, 2, 3)],
    "scan, its length": [lambda n=n: lax.scan(lambda c, _: (product(c, B), None), A, length=n)[0] for n in (1, 2, 3)],
    "scan, its direction": [lambda r=r: lax.scan(lambda c, x: (product(c, x), c), A, SQUARE, reverse=r)[1] for r in (0, 1)],
    "checkpoint, its policy": [
        lambda p=p: str(jax.make_jaxpr(jax.grad(lambda x: jax.checkpoint(product, policy=p)(x, B).sum()))(A))
        for p in (jax.checkpoint_policies.everything_saveable, jax.checkpoint_policies.nothing_saveable,
                  jax.checkpoint_policies.dots_saveable)],
}


def numbers(found):
    return found if isinstance(found, str) else [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(found)]


@pytest.mark.parametrize("field", DERIVED)
def test_a_field_of_a_derived_program(field):
    """In turn, and in the other order, each is what it is when nothing is kept."""
    alone = []
    for f in DERIVED[field]:
        jax.clear_caches()
        alone.append(numbers(f()))
    assert all(alone[i] != alone[j] for i in range(len(alone)) for j in range(i))
    assert [numbers(f()) for f in DERIVED[field]] == alone
    assert [numbers(f()) for f in reversed(DERIVED[field])] == alone[::-1]


def test_a_function_is_written_once_for_each_set_of_manual_axes():
    """One program called within shard_map, and outside of it where it places what cannot be split: two functions."""
    inner = jax.jit(lambda x: jnp.linalg.eigh(x)[0] + jnp.sort(x, 1)[:, 0])
    x = np.diag(np.arange(3, dtype=np.float32))
    program = jax.make_jaxpr(inner)(x)
    call = jax.core.jaxpr_as_fun(program)

    def f(x):
        mapped = jax.shard_map(lambda x: call(x)[0], mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False)
        return mapped(jnp.concatenate([x] * 8)), call(x)[0]
    jitted = jax.jit(f, in_shardings=NamedSharding(MESH, P()))
    assert len(set(re.findall(r"(?<!_)call @(\w+)\(", jitted.lower(x).as_text()))) == 2
    within, outside = jitted(x)
    np.testing.assert_allclose(within, np.concatenate([inner(x)] * 8), rtol=1e-5)
    np.testing.assert_allclose(outside, inner(x), rtol=1e-5)
