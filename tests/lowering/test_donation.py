"""Donated arguments: whose memory results take, what is said where none can, numbers that are kept and donated."""
import re
import threading

import forked
import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp


def donated(f, *args):
    """(which arguments are deleted by the call, for each result whose memory it has taken), given as arrays."""
    pointers = [x.unsafe_buffer_pointer() for x in args]
    outs = jax.tree.leaves(jax.jit(f, donate_argnums=tuple(range(len(args))))(*args))
    return [x.is_deleted() for x in args], [pointers.index(p) if (p := x.unsafe_buffer_pointer()) in pointers else None
                                            for x in outs]


@pytest.mark.parametrize("f, shapes, taken", [
    (lambda x: x + 1, [(100,)], [0]),
    (lambda x: (jnp.int32(0), x + 1), [(100,)], [None, 0]),
    (lambda x: (x.sum(), x + 1), [(100,)], [None, 0]),
    (lambda x, y: (x.sum(), y + 1, x + 2), [(100,), (10, 10)], [None, 1, 0]),
    (lambda x, y: (x + 1, y + 1), [(100,), (100,)], [0, 1]),
    (lambda x: (x.reshape(10, 10) * 2, jnp.int32(0), x * 3), [(100,)], [None, None, 0]),
    (lambda x: x.astype(jnp.int32), [(100,)], [0]),
    (lambda x: (jnp.int32(0), x.reshape(10, 10) + 1), [(100,)], [None, 0]),
])
def test_a_result_takes_the_memory_of_a_donated_argument(f, shapes, taken):
    deleted, found = donated(f, *[jnp.ones(s) for s in shapes])
    assert all(deleted) and found == taken


@pytest.mark.quick
@pytest.mark.parametrize("f, written", [
    (lambda x: x + 1, "tf.aliasing_output = 0 : i32"), (lambda x: (jnp.int32(0), x + 1), "tf.aliasing_output = 1 : i32"),
    (lambda x: x.astype(jnp.int32), "jax.buffer_donor = true"),     # as large, of another type
    (lambda x: x.reshape(50, 2) + 1, "jax.buffer_donor = true"), (lambda x: (x.astype(jnp.int32), x + 1), "tf.aliasing_output = 1 : i32"),
])
def test_how_the_text_says_it(f, written):
    """An alias is of one type; memory of the right size is only offered."""
    text = jax.jit(f, donate_argnums=0).lower(jax.ShapeDtypeStruct((100,), np.float32)).as_text()
    assert written in text and len(re.findall("tf.aliasing_output|jax.buffer_donor", text)) == 1


def test_a_donated_number_of_one_result_among_several():
    x = jnp.float32(1) + 1
    same(jax.jit(lambda x: (jnp.int32(0), x + 1), donate_argnums=0)(x), (np.int32(0), np.float32(3)))
    assert x.is_deleted()


@pytest.mark.parametrize("f, args", [
    (lambda x: x * 2, (1.,)), (lambda x, y: x + y, (1., 1.)),
    (lambda s: jax.tree.map(lambda x: x * 2, s), ({"a": .1, "b": .1},)),
    (lambda x, y: (x, y), (np.float32(2), np.float32(2))), (lambda x, y: x + y, (True, True)), (lambda x: x[None], (3,)),
    (lambda x: x.sum(), (np.ones((), np.int32),)), (lambda x, y: x * y, (2j, 2j)),
])
def test_equal_numbers_are_donated_as_often_as_they_are_passed(f, args):
    g = jax.jit(f, donate_argnums=tuple(range(len(args))))
    compiled = g.lower(*args).compile()
    want = jax.jit(f)(*args)
    for call in (g, g, compiled, compiled, lambda *a: jax.vmap(g, in_axes=None, axis_size=2)(*a)):
        got = call(*args)
        same(jax.tree.map(lambda a, b: a[0] if a.ndim > b.ndim else a, got, want), want)
    same([jnp.zeros(2) + x for x in jax.tree.leaves(args)], [np.zeros(2) + x for x in jax.tree.leaves(args)])


@pytest.mark.parametrize("f", [
    lambda v: jax.jvp(lambda x: x, (v,), (v,)), lambda v: jax.vjp(lambda x: x, v)[0], jax.value_and_grad(lambda x: x),
    lambda v: jax.vjp(lambda x: x, v)[1](v), jax.grad(lambda x: 3. * x), jax.jit(lambda x: x), jax.device_put, jnp.asarray,
    lambda v: jax.device_put(v, jax.devices()[0]), lambda v: jax.linearize(lambda x: x, v)[0], jax.checkpoint(lambda x: x),
    lambda v: jax.lax.with_sharding_constraint(v, jax.sharding.SingleDeviceSharding(jax.devices()[0])),
    lambda v: jax.lax.scan(lambda c, _: (c, None), v, None, 1)[0], lambda v: jax.lax.cond(True, lambda: v, lambda: v),
    jax.custom_jvp(lambda x: x),
    jax.jit(lambda x: x, donate_argnums=0, out_shardings=jax.sharding.SingleDeviceSharding(jax.devices()[0])),
])
def test_a_result_made_of_a_number_is_nobody_elses(f):
    if isinstance(f, jax.custom_jvp):
        f.defjvp(lambda x, t: (x[0], t[0]))
    first, second = f(7.25), f(7.25)
    for x in jax.tree.leaves(first):
        if isinstance(x, jax.Array):
            x.delete()
    for x in jax.tree.leaves(second):
        assert float(x) in (7.25, 1., 3.)
    same((f(7.25), jnp.zeros(2) + 7.25)[1], [7.25, 7.25])


def test_threads_do_not_see_a_number_deleted_that_another_donated():
    step, errors = jax.jit(lambda x: x + 1, donate_argnums=0), []

    def work():
        try:
            for _ in range(200):
                step(3.)
                jnp.ones(2) * 3.
        except Exception as error:
            errors.append(error)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_a_buffer_that_is_donated_twice_is_an_error_that_names_the_argument():
    x = jnp.ones(3)
    for numbers in ((0,), (0, 1)):
        with pytest.raises(RuntimeError, match="argument 0 of add is donated and passed a second time in one call"):
            def add(x, y):
                return x + 1, y + 1
            jax.jit(add, donate_argnums=numbers)(x, x)
        assert not x.is_deleted()


OVER_DEVICES = """
import warnings
import hlotrace as jax, hlotrace.numpy as jnp
mesh = jax.sharding.Mesh(jax.devices(), ("x",))
lies = lambda *spec: jax.NamedSharding(mesh, jax.P(*spec))
def told(out, f=lambda x: x + 1):
    x = jax.device_put(jnp.ones((8, 100)), lies("x"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jax.jit(f, donate_argnums=0, out_shardings=out)(x)
    return x.is_deleted(), [str(w.message) for w in caught]
assert told(None) == told(lies("x")) == told(lies(None, "x")) == (True, [])
deleted, (text,) = told(lies())
assert not deleted and "x, float32[8,100]: the result has its shape and dtype but another sharding: " in text, text
assert "P()" in text and "P('x'" in text
deleted, (text,) = told(lies("x"), lambda x: x.astype(jnp.bfloat16))
assert not deleted and "another dtype: bfloat16[8,100]" in text, text
assert told(None, lambda x: (jnp.int32(0), x + 1)) == (True, [])
"""


def test_donated_arguments_over_devices():
    forked.run(OVER_DEVICES, check=True, XLA_FLAGS="--xla_force_host_platform_device_count=4")
