"""`jax_transfer_guard` and its contexts: which transfers are let through, logged or refused."""
import contextlib
import threading

import forked
import numpy as np
import pytest
from mesh8 import low, on

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.runtime.devices import transfer_guards

N = np.ones((8, 8), np.float32)
TO_DEVICE = "Disallowed host-to-device transfer"
BETWEEN = "Disallowed device-to-device transfer"


def refused(words):
    return pytest.raises(jax.errors.JaxRuntimeError, match=words)


IMPLICIT = {
    "an operand": lambda x: x + N,
    "an argument of a compiled function": lambda x: jax.jit(lambda a: a * 2)(N),
    "an argument over devices": lambda x: jax.jit(lambda a: a * 2, in_shardings=on("data"))(N),
    "asarray": lambda x: jnp.asarray(N),
    "a large asarray": lambda x: jnp.asarray(np.ones((600, 600), np.float32)),
}


@pytest.mark.parametrize("level", ["disallow", "disallow_explicit"])
@pytest.mark.parametrize("guard", [jax.transfer_guard, jax.transfer_guard_host_to_device])
def test_implicit_transfers_from_the_host_are_refused(guard, level):
    x = jnp.asarray(N)
    for name, transfer in IMPLICIT.items():
        with guard(level), refused(TO_DEVICE):
            transfer(x)
            pytest.fail(name)
        transfer(x)


def test_device_put_is_asked_for():
    x, target = jnp.asarray(N), on("data", "model")
    with jax.transfer_guard("disallow"):
        assert (jax.device_put(N) == x).all() and jax.device_put(N, target).sharding == target
        assert jax.device_put(x, jax.devices()[3]).devices() == {jax.devices()[3]}
        assert (jax.device_get(jax.device_put({"x": N}))["x"] == N).all()
    with jax.transfer_guard("disallow_explicit"):
        for put in (lambda: jax.device_put(N), lambda: jax.device_put(N, target)):
            with refused(TO_DEVICE):
                put()
        with refused(BETWEEN):
            jax.device_put(x, jax.devices()[3])


@pytest.mark.parametrize("level", ["disallow", "disallow_explicit"])
def test_numbers_that_nobody_gave_are_no_transfer(level):
    x = jax.jit(lambda: jnp.arange(4))()
    with jax.transfer_guard(level):
        made = (jnp.arange(3), jnp.arange(0, 2, dtype="int8"), jnp.arange(2.5), x[1::2], x[::-2],
                jnp.roll(x, 1), jnp.median(x), jnp.nanmedian(x), jax.image.resize(x, (2,), "nearest"),
                jax.image.resize(x, (2,), "linear", antialias=False))
        for given in (lambda: jnp.arange(1, 3), lambda: jnp.arange(0, 3, 1)):
            with refused(TO_DEVICE):
                given()
    assert [a.tolist() for a in made] == [
        [0, 1, 2], [0, 1], [0., 1., 2.], [1, 3], [3, 1], [3, 0, 1, 2], 1.5, 1.5, [1, 3], [0.5, 2.5]]


@pytest.mark.filterwarnings("ignore:backend and device argument:DeprecationWarning")
def test_transfers_between_devices():
    x, far = jnp.asarray(N), jax.jit(lambda a: a + 1, device=jax.devices()[2])
    with jax.transfer_guard_device_to_device("disallow"):
        jnp.asarray(N)
        with refused(BETWEEN):
            far(x)
        with refused(BETWEEN):
            jax.lax.with_sharding_constraint(x, on("x", mesh=low))
        jax.device_put(x, jax.devices()[2])
    with jax.transfer_guard_host_to_device("disallow"):     # by way of the host, which is nobody's business
        np.testing.assert_array_equal(far(x), N + 1)


def test_what_a_program_exchanges_is_no_transfer():
    """`reshard` is an operation, also outside of jit."""
    mesh = jax.make_mesh((2,), ("x",), devices=jax.devices()[:2])
    x = jax.device_put(np.arange(4), jax.NamedSharding(mesh, jax.P("x")))
    with jax.transfer_guard("disallow_explicit"):
        assert jax.reshard(x, jax.NamedSharding(mesh, jax.P())).sharding.is_fully_replicated


def test_what_stays_where_it_is_passes():
    x, w = jnp.asarray(N), np.ones((64, 8), np.float32)
    f = jax.jit(lambda a: jnp.sum((w @ a) ** 2))
    with jax.transfer_guard("disallow"):
        f(x), x @ x, jnp.sin(x), x.T, np.asarray(x), float(jnp.sum(x)), repr(x)      # w is a part of f
        jnp.sin(jax.device_put(x, on("data", "model")))


def test_levels_nest_and_end():
    x = jnp.asarray(N)
    with jax.transfer_guard("disallow"):
        assert jax.config.jax_transfer_guard == jax.config.jax_transfer_guard_host_to_device == "disallow"
        with jax.transfer_guard_host_to_device("allow"):
            x + N
        with refused(TO_DEVICE):
            x + N
    assert jax.config.jax_transfer_guard is None
    x + N


def test_a_context_is_for_its_thread_and_an_option_for_all():
    x, seen = jnp.asarray(N), []

    def elsewhere():
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            x + N
            seen.append("passed")
    with jax.transfer_guard("disallow"):
        for _ in range(2):
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
            jax.config.update("jax_transfer_guard", "disallow")
    assert seen == ["passed"]
    with refused(TO_DEVICE):
        x + N
    with jax.transfer_guard("allow"):
        x + N
    jax.config.update("jax_transfer_guard", None)
    x + N


@pytest.fixture(autouse=True)
def allowed_at_the_end():
    yield
    jax.config.update("jax_transfer_guard", None)


PROGRAM = """
import numpy as np, hlotrace as jax, hlotrace.numpy as jnp
x = jax.device_put(np.ones(3, np.float32))
with jax.transfer_guard({level!r}):
    jax.device_put(np.ones(4, np.float32))
    x + np.ones(3, np.float32)
    jax.jit(lambda a: a + 1, device=jax.devices()[1])(x)
"""


def run(program, **environment):
    return forked.run(program, XLA_FLAGS="--xla_force_host_platform_device_count=2", TF_CPP_MIN_LOG_LEVEL="0",
                      **environment)


@pytest.mark.parametrize("level, puts, operands", [("log", 0, 1), ("log_explicit", 1, 1)])
def test_transfers_are_logged(level, puts, operands):
    done = run(PROGRAM.format(level=level))
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "-to-device transfer: aval" in line]
    assert sum("host-to-device" in line and "float32[4]" in line for line in lines) == puts
    assert sum("host-to-device" in line and "float32[3]" in line for line in lines) == operands
    assert sum("device-to-device" in line for line in lines) == 1


def test_the_environment_sets_it():
    done = run("import numpy as np, hlotrace.numpy as jnp\njnp.asarray(np.ones(3)) ", JAX_TRANSFER_GUARD="disallow")
    assert TO_DEVICE in done.stderr


def test_an_unknown_level_is_refused():
    with pytest.raises(ValueError, match="jax_transfer_guard: new enum value.*got never"), jax.transfer_guard("never"):
        pass


def test_fetching_is_guarded_by_its_own_context():
    """On the CPU the host reads the device's memory: nothing is transferred, and nothing refused."""
    for level in ("allow", "disallow", "disallow_explicit"):
        with jax.transfer_guard_device_to_host(level):
            assert jax.config.jax_transfer_guard_device_to_host == level
            assert np.asarray(jnp.ones(3)).tolist() == [1, 1, 1]
    assert jax.config.jax_transfer_guard_device_to_host is None


@pytest.mark.quick
def test_a_guard_of_threads_inside_of_another_ends_alone():
    """The outer one is in force again: other threads may not start programs over several processes."""
    said = []

    def elsewhere():
        try:
            transfer_guards.check_thread("step")
            said.append(None)
        except RuntimeError as error:
            said.append(str(error))

    def ask():
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        transfer_guards.check_thread("step")        # this one may
        return said[-1]
    assert ask() is None
    with jax.thread_guard(True):
        assert "step runs over several processes and was called in a thread other than" in ask()
        with jax.thread_guard(True):
            assert ask()
        assert ask()
        with jax.thread_guard(False):
            assert ask() is None
        assert ask()
    assert ask() is None
