"""What is ready is found by types alone: the second run of an operation or a function is as the first."""

import functools

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.runtime import evaluate
from hlotrace.runtime.executables.ready import look_at
from hlotrace.sharding import Mesh, NamedSharding, P, SingleDeviceSharding

X = np.arange(8, dtype=np.float32).reshape(4, 2)


def over_devices(*spec):
    return jax.device_put(X, NamedSharding(Mesh(np.array(jax.devices()[:4]), ("x",)), P(*spec)))


def test_types_and_operands_of_what_a_program_takes():
    x, types = jnp.ones(3), []
    buffer, copied, number = look_at([x, None, X, 2.0], types)
    assert buffer is x._buf and number == 2.0 and np.shares_memory(copied, X) is False
    assert types == [x.aval, None, X.dtype, X.shape, jax.typeof(2.0)]
    for other in ([x], {"a": x}, "text", object()):
        assert look_at([x, other], []) is None


# how operands are placed -> such an operand
PLACES = {
    "uncommitted": lambda: jnp.asarray(X), "committed": lambda: jax.device_put(X, jax.devices()[0]),
    "elsewhere": lambda: jax.device_put(X, jax.devices()[3]), "split": lambda: over_devices("x"),
    "whole": lambda: over_devices(), "NumPy": lambda: X,
}
OPERATIONS = {
    "one result": lambda x: lax.sin(x),
    "two operands": lambda x: lax.add(x, x),
    "a number": lambda x: lax.mul(x, 2.0),
    "several results": lambda x: jax.lax.top_k(x, 1)[0],
    "parameters": lambda x: lax.slice(x, (0, 0), (4, 1)),
    "a function": jax.jit(lambda x: (x + 1, [x * 2])),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_third_run_gives_what_the_first_gave_wherever_operands_are(operation):
    f = OPERATIONS[operation]
    for place, make in PLACES.items():
        x = make()
        runs = [jax.tree.leaves(f(x)) for _ in range(3)]
        for found in zip(*runs):
            assert len({(y.aval, y.committed, y.sharding) for y in found}) == 1, place
            assert len({np.asarray(y).tobytes() for y in found}) == 1, place
    first, second = (f(PLACES[place]()) for place in ("elsewhere", "committed"))      # in any order
    for a, b in zip(*map(jax.tree.leaves, (first, second))):
        assert (a.devices(), b.devices()) == ({jax.devices()[3]}, {jax.devices()[0]})


@pytest.mark.parametrize("place", PLACES)
def test_what_was_deleted_is_refused_when_it_is_ready(place):
    if place == "NumPy":
        return
    x = PLACES[place]()
    lax.cos(x), lax.cos(x)
    x.delete()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="deleted"):
            lax.cos(x)


def test_a_part_that_was_deleted_is_seen():
    x = over_devices("x")
    lax.tan(x), lax.tan(x)
    x.addressable_shards[1].data.delete()
    with pytest.raises(RuntimeError, match="has lost a part"):
        lax.tan(x)


def test_options_that_change_what_happens_are_heeded_by_what_is_ready():
    x = jnp.zeros(3) - 1
    for _ in range(3):
        assert np.isnan(np.asarray(lax.log(x))).all()
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
        lax.log(x)
    with jax.no_execution(), pytest.raises(RuntimeError, match="no_execution"):
        lax.log(x)
    with jax.default_device(jax.devices()[2]):
        assert lax.log(jnp.ones(3)).devices() == {jax.devices()[2]}
    assert lax.log(jnp.ones(3)).devices() == {jax.devices()[0]}


def test_programs_that_are_new_on_each_call_are_not_kept():
    x = jnp.ones(3)
    before = len(evaluate._ready.entries)
    for n in range(3):
        lax.cond(True, lambda x, n=n: x + n, lambda x: x, x)
    after = [key for key in evaluate._ready.entries if key[0].name == "cond"]
    assert after == [] and len(evaluate._ready.entries) >= before


GIVEN = {"array": lambda: jnp.ones(4), "numpy": lambda: np.ones(4, np.float32), "number": lambda: 1.0,
         "committed elsewhere": lambda: jax.device_put(jnp.ones(4), jax.devices()[2])}


def add_one(x):
    return x + 1


@functools.cache
def first():
    """An array on the first device."""
    return jnp.ones(4)


@functools.cache
def compiled():
    return jax.jit(lambda x: x + 1).lower(first()).compile()


ROADS = {
    "jit": jax.jit(lambda x: x + 1),
    "a closure": jax.jit(lambda x: x + first()),
    "grad": jax.grad(lambda x: (x * 2).sum()),
    "out_shardings": lambda x: jax.jit(add_one, out_shardings=SingleDeviceSharding(jax.devices()[2]))(x),
    "compiled": lambda x: compiled()(x),
    "an operation": lambda x: jnp.add(x, 1),
    "operands elsewhere": lambda x: x + first(),
    "given away": jax.jit(lambda x: x + 1, donate_argnums=0),
}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("road", ROADS)
def test_no_program_is_tried_on_what_is_elsewhere(road, given, capfd):
    """XLA would write a line for it on stderr, whatever becomes of it."""
    first(), compiled()
    for default in (None, jax.devices()[3], None):
        for here in (True, False) * 2:
            if (
                road == "grad"
                and given == "number"
                or road == "compiled"
                and given in ("number", "committed elsewhere")
            ):
                continue        # it takes no such value
            made_before = jnp.ones(4)
            with jax.default_device(default):
                out = ROADS[road](GIVEN[given]() if here else made_before)
            np.testing.assert_array_equal(out, np.full(np.shape(out), 2.0, np.float32))
            elsewhere = given == "committed elsewhere" and here or road == "out_shardings"
            assert road in ("compiled", "grad") or out.devices() == {
                jax.devices()[2] if elsewhere else default or jax.devices()[0]}
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("options", ["in_shardings", "out_shardings"])
@pytest.mark.parametrize("device", [0, 2])
def test_a_sharding_of_one_device_commits_results_on_every_road(options, device):
    place = SingleDeviceSharding(jax.devices()[device])
    for given in GIVEN:
        f = jax.jit(lambda x: x + 1, **{options: place})
        if given == "committed elsewhere" and (options, device) == ("out_shardings", 0):
            continue        # out_shardings does not move arguments
        runs = [f(GIVEN[given]()) for _ in range(3)]
        if given not in ("number", "committed elsewhere"):
            runs += [f.lower(first()).compile()(first()) for _ in range(2)]
        assert {(y.sharding, y.committed) for y in runs} == {(place, True)}, given
        assert f._quick or given == "committed elsewhere" or device, "a ready call is not found again"
