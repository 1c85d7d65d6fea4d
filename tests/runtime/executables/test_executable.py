"""Executables: which arguments they take, what donation forbids, side effects in order, what is waited for."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.config import override
from hlotrace.runtime.executables import executable

X = np.arange(4, dtype=np.float32)


def made(f, *args, **options):
    return jax.jit(f, **options).lower(*args).compile()._executable


def test_arguments_are_taken_from_anywhere_but_committed_to_another_device():
    run = made(lambda x, y: x + y, X, X)
    here, last = jax.device_put(X, jax.devices()[0]), jax.device_put(X, jax.devices()[-1])
    buffers, committed = run.take([X, jnp.asarray(X)])
    assert not committed and len(buffers) == 2 and run(buffers)[0].tolist() == (2 * X).tolist()
    assert run.take([here, X])[1] and run(*run.take([here, X]))[0].committed
    assert run.take([last, X]) is None
    gone = jnp.asarray(X) + 0
    gone.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        run.take([gone, X])


def test_a_buffer_is_donated_once():
    run = made(lambda x, y: (x + y, y), X, X, donate_argnums=0)
    a, b = jnp.asarray(X) + 0, jnp.asarray(X) + 1
    with pytest.raises(RuntimeError, match="argument 0 of .* is donated and passed a second time in one call"):
        run.take([a, a])
    assert not a.is_deleted() and run.take([a, b]) and not run.check_donated([a._buf, b._buf])
    f = jax.jit(lambda x, y: x + y, donate_argnums=1)
    with pytest.raises(RuntimeError, match="argument 1 of"):
        f(a, a)
    assert f(a, b).tolist() == (2 * X + 1).tolist() and b.is_deleted() and not a.is_deleted()
    three = jax.jit(lambda x, y, z: (x + y, z), donate_argnums=(0, 1))
    with pytest.raises(RuntimeError, match="argument 0 of"):
        three(a, a, a)
    plain = jax.jit(lambda x, y: x * y)
    assert plain(a, a).tolist() == (X * X).tolist()


def test_nothing_runs_where_that_is_forbidden():
    run = made(lambda x: x - 1, X)
    with override("jax_no_execution", True), pytest.raises(RuntimeError, match="was about to run where 'no_execution' is set"):
        run([jnp.asarray(X)._buf])


def test_what_it_says_of_itself():
    run = made(lambda x: (x + 1, x.sum()), X)
    device = jax.devices()[0]
    assert run.pieces == [(run, 1)] and run.placement_text() == str(device) and run.device is device
    assert [s.device_set for s in run.in_shardings + run.out_shardings] == [{device}] * 3
    assert run.memory().argument_size_in_bytes == X.nbytes and run.memory().output_size_in_bytes >= X.nbytes + 4


def test_ordered_effects_of_several_programs_happen_in_the_order_of_the_calls():
    seen = []

    def noted(number):
        def f(x):
            jax.debug.callback(lambda v: seen.append((number, float(v))), x, ordered=True)
            return x + 1
        return jax.jit(f)
    first, second = noted(1), noted(2)
    x = jnp.float32(0)
    for _ in range(10):
        x = second(first(x))
    jax.effects_barrier()
    assert seen == [(1 + i % 2, float(i)) for i in range(20)] and executable._pending == []


def test_what_a_callback_raised_is_raised_once_by_the_call_or_the_barrier():
    def fails(v):
        raise KeyError("in a callback")
    with pytest.raises(KeyError, match="in a callback"):
        jax.jit(lambda x: jax.debug.callback(fails, x))(jnp.float32(1))
        jax.effects_barrier()
    jax.effects_barrier()
