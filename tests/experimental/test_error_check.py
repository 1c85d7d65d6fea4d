"""experimental.error_check: the first error that a program notes is the one that is raised, wherever it is noted."""
import threading
from functools import partial

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.config import override
from hlotrace.experimental import error_check
from hlotrace.sharding import AxisType, NamedSharding, PartitionSpec as P


def positive(x):
    error_check.set_error_if(x <= 0, "not positive")
    return x * 2.


def found():
    """What is raised, and that nothing is raised again."""
    try:
        error_check.raise_if_error()
    except error_check.JaxValueError as error:
        error_check.raise_if_error()
        return str(error)
    return None


def in_scan(x):
    return lax.scan(lambda c, _: (positive(c) / 2 - 1, None), x + 1, None, length=2)[0]


def in_condition(x):
    def go_on(c):
        error_check.set_error_if(c < 0, "not positive")
        return c > 0
    return lax.while_loop(go_on, lambda c: c - 1, x * 2 - .5)


PLACES = {
    "eager": positive, "jit": jax.jit(positive), "grad": jax.grad(positive), "grad of jit": jax.grad(jax.jit(positive)),
    "jvp": lambda x: jax.jvp(positive, (x,), (x,)), "checkpoint": jax.grad(jax.checkpoint(positive)),
    "scan": jax.jit(in_scan), "cond": jax.jit(lambda x: lax.cond(x <= 0, positive, lambda x: x, x)),
    "while": jax.jit(lambda x: lax.fori_loop(0, 2, lambda i, c: (positive(x), c)[1], x)),
    "array": lambda x: positive(jnp.stack([x, 3.])),
}


@pytest.mark.parametrize("name", PLACES)
def test_an_error_is_noted_wherever_it_is(name):
    for value, want in (2., None), (-1., "not positive"), (2., None):
        PLACES[name](jnp.float32(value))
        assert found() == want, value


def test_the_condition_of_a_loop_notes_too():
    jax.jit(in_condition)(jnp.float32(1.))
    assert found() == "not positive"


def test_the_first_error_is_kept_and_says_where_it_is():
    error_check.set_error_if(jnp.array([False, True]), "first")
    error_check.set_error_if(np.array(True), "second")
    with pytest.raises(error_check.JaxValueError, match="first") as raised:
        error_check.raise_if_error()
    assert str(raised.value) == "first" and "test_error_check.py" in raised.value.__notes__[0]


def test_each_thread_has_its_own():
    there = []
    thread = threading.Thread(target=lambda: (positive(jnp.float32(0)), there.append(found())))
    thread.start()
    thread.join()
    assert there == ["not positive"] and found() is None


def test_over_a_mesh():
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,))
    with jax.set_mesh(mesh), error_check.error_checking_context():
        x = jax.device_put(jnp.arange(4.), NamedSharding(mesh, P("x")))
        assert jax.jit(positive)(x).sharding.spec == P("x")
        assert found() == "not positive"
        with pytest.raises(ValueError, match="must be on the same mesh"):
            jax.shard_map(positive, in_specs=P("x"), out_specs=P("x"))(x)
        positive(x)
    assert found() is None      # it was noted in the context


def test_exported_functions_give_what_they_note():
    exported = jax.export.export(jax.jit(error_check.wrap_for_export(jax.jit(positive))))(jnp.float32(1))
    read = jax.jit(error_check.unwrap_from_import(jax.export.deserialize(exported.serialize()).call))
    for value, want in (2., None), (-1., "not positive"):
        assert read(jnp.float32(value)) == value * 2
        assert found() == want


def test_where_it_cannot_be():
    with pytest.raises(ValueError, match="should not be called within a traced context"):
        jax.jit(error_check.raise_if_error)()
    with pytest.raises(ValueError, match="mapped value"):
        jax.vmap(positive)(jnp.arange(3.))


X, Z = np.array([1., np.nan], "f"), np.array([0., 2.], "f")
# kind of the option, function, its arguments: what notes an error, and what does not
NOTED = [
    ("nan", jnp.log, -Z - 1), ("nan", jnp.sqrt, -Z), ("nan", jnp.sin, X), ("nan", jnp.add, X, 1),
    ("nan", lambda x: x - 1, X), ("nan", jnp.power, X, 2.), ("nan", jnp.divide, Z, Z), ("nan", jnp.arccos, Z),
    ("divide", lambda x: 1 / x, Z), ("divide", jnp.floor_divide, 1, Z.astype(int)),
    ("divide", jnp.divmod, Z, Z), ("divide", jnp.remainder, 1, Z), ("oob", lambda x: x[jnp.array([1, 2])], Z),
    ("oob", lambda x: x[np.array([-3])], Z), ("oob", lambda x: x.at[np.uint8([7])].get(mode="clip"), Z)]
QUIET = [
    ("nan", jnp.log, Z + 1), ("nan", jnp.multiply, X, 1), ("nan", jnp.floor_divide, 1, 2),
    ("nan", jnp.negative, X),
    ("divide", jnp.log, -X), ("divide", lambda x: x / 2, Z), ("oob", lambda x: x[np.array([1, -2])], Z),
    ("oob", jnp.take, Z, np.array([4])),
    ("oob", lambda x: x[Z > 0], Z), ("oob", lambda x: x.at[np.array([3])].set(0), Z)]
WORDS = {"nan": "NaN encountered", "divide": "Division by zero encountered",
         "oob": "Out of bounds encountered before calling `lax.gather`"}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("cases, wanted", [(NOTED, WORDS), (QUIET, {})], ids=["noted", "quiet"])
def test_numpy_functions_note_what_the_options_ask_for(cases, wanted, compiled):
    for kind, function, *args in cases:
        args = [jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in args]
        call = partial(jax.jit(partial(function)) if compiled else function, *args)
        for option in "ignore", "raise":
            with override(f"jax_error_checking_behavior_{kind}", option):
                call()
                assert found() == (wanted.get(kind) if option == "raise" else None), (kind, function, args)
