"""NumPy arrays that are rewritten while programs are made of them."""
import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

SIZES = [1, 3, 500]      # a literal of the program, another, an input of it
DTYPES = ["float32", "float64", "int32", "bool", "bfloat16"]


def _rewriting(n, dtype):
    """A function that rewrites one buffer between its uses, and its matrix."""
    def f(x):
        b, total = np.zeros(n, dtype), jnp.float32(0)
        for i in range(3):
            b[...] = 0
            b[i % n] = 1
            total = total + x @ b * 10.**i
        return total
    return f


VALUE_ROADS = {
    "eager": lambda f, x: f(x),
    "jit": lambda f, x: jax.jit(f)(x),
    "jvp": lambda f, x: jax.jvp(f, (x,), (x,))[1],
    "linearize": lambda f, x: jax.linearize(f, x)[1](x),
    "vmap": lambda f, x: jax.vmap(f)(x[None])[0],
    "jit of vmap": lambda f, x: jax.jit(jax.vmap(f))(x[None])[0],
    "scan": lambda f, x: jax.lax.scan(lambda c, _: (c, f(c)), x, None, length=2)[1][1],
    "cond": lambda f, x: jax.lax.cond(True, f, lambda x: 0., x),
    "while": lambda f, x: jax.lax.while_loop(lambda c: c == 0, lambda c: f(x), 0.),
    "checkpoint": lambda f, x: jax.jit(jax.checkpoint(f))(x),
    "make_jaxpr": lambda f, x: jax.core.eval_jaxpr(program := jax.make_jaxpr(f)(x), program.consts, x)[0],
    "compile": lambda f, x: jax.jit(f).lower(x).compile()(x),
    "grad": lambda f, x: x @ jax.grad(f)(x),
    "jit of grad": lambda f, x: x @ jax.jit(jax.grad(f))(x),
    "grad of jit": lambda f, x: x @ jax.grad(jax.jit(f))(x),
    "grad of checkpoint": lambda f, x: x @ jax.grad(jax.checkpoint(f))(x),
    "vjp": lambda f, x: x @ jax.vjp(f, x)[1](1.)[0],
}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("road", VALUE_ROADS)
def test_each_use_of_a_buffer_has_the_numbers_of_its_time(road, dtype, n):
    x = jnp.arange(1., n + 1)
    same(VALUE_ROADS[road](_rewriting(n, jnp.dtype(dtype)), x), sum(x[i % n] * 10**i for i in range(3)))


def _with_residual(_, x, b):
    f = jax.custom_vjp(lambda x: x @ b)
    f.defvjp(lambda x: (x @ b, b), lambda b, ct: (ct * b,))
    return jax.vjp(f, x)[1]


LATE_ROADS = {      # what is made of a function before its buffer is rewritten, and how that is used afterwards
    "vjp": (lambda f, x, b: jax.vjp(f, x)[1], lambda pull, x: pull(1.)[0] @ x),
    "linearize": (lambda f, x, b: jax.linearize(f, x)[1], lambda push, x: push(x)),
    "trace": (lambda f, x, b: jax.jit(f).trace(x), lambda traced, x: traced.lower().compile()(x)),
    "lower": (lambda f, x, b: jax.jit(f).lower(x), lambda lowered, x: lowered.compile()(x)),
    "make_jaxpr": (lambda f, x, b: jax.make_jaxpr(f)(x), lambda p, x: jax.core.eval_jaxpr(p, p.consts, x)[0]),
    "closure_convert": (lambda f, x, b: jax.closure_convert(f, x), lambda found, x: found[0](x, *found[1])),
    "custom_vjp": (_with_residual, lambda pull, x: pull(1.)[0] @ x),
}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("road", LATE_ROADS)
def test_a_program_keeps_the_numbers_with_which_it_was_made(road, n):
    make, use = LATE_ROADS[road]
    b, x = np.ones(n, np.float32), jnp.arange(1., n + 1)
    made = make(lambda x: x @ b, x, b)
    b[...] = 7
    same(use(made, x), np.arange(1., n + 1).sum())


@pytest.mark.parametrize("n", SIZES)
def test_a_function_that_was_traced_keeps_the_numbers_of_the_trace(n):
    b = np.ones(n, np.float32)
    f = jax.jit(lambda x: {"product": x @ b, "buffer": b})
    first = f(jnp.ones(n))
    b[...] = 7
    same(f(jnp.ones(n)), first)
    same(f(np.ones(n, np.float32)), first)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("make", [jnp.asarray, jnp.array, jax.device_put, lambda b: jnp.stack([b])[0], lambda b: jnp.where(
    True, b, 0), lambda b: jnp.zeros(b.shape).at[:].set(b), lambda b: jnp.arange(500.)[b.astype(int)]])
def test_an_array_made_of_a_buffer_is_not_rewritten_with_it(make, n):
    def f():
        b = np.zeros(n, np.float32)
        made = make(b)
        b[...] = 7
        return made, b
    same(jax.jit(f)(), f())


@pytest.mark.parametrize("index, two", [(lambda x, b: x[b], False), (jnp.take, False), (lambda x, b: x.at[b].add(1.), False),
                                        (lambda x, b: x[:, b].sum(0), True)])
def test_an_index_is_that_of_its_time(index, two):
    def f(x):
        b, found = np.zeros(400, int), []
        for i in range(3):
            b[...] = i
            found.append(index(x, b))
        return found
    x = jnp.arange(4.) * jnp.ones((4, 1)) if two else jnp.arange(4.)
    same(jax.jit(f)(x), f(x))


@pytest.mark.parametrize("n", SIZES)
def test_a_buffer_that_stays_as_it_is_is_one_constant(n):
    b = np.ones(n, np.float32)

    def f(x):
        return (x @ b + x @ b) * b.copy()
    program = jax.make_jaxpr(f)(jnp.ones(n))
    assert len(program.consts) == (2 if n == 500 else 0)


def test_zeros_and_nans_are_compared_by_their_bits():
    for n in SIZES:
        b = np.zeros(n, np.float32)

        def f(b=b):
            found = []
            for value in (0., -0., np.nan, np.nan):
                b[...] = value
                found.append(1 / jnp.asarray(b)[0])
            return jnp.stack(found)
        same(jax.jit(f)(), np.array([np.inf, -np.inf, np.nan, np.nan], np.float32))


def test_a_buffer_of_another_shape_is_another_constant():
    for n in (4, 400):
        b = np.arange(n, dtype=np.float32)
        view = b.reshape(n)

        def f(b=b, view=view, n=n):
            return jnp.sum(view * 1, 0) + jnp.sum(b.reshape(2, n // 2) * 1, 0)[0] + jnp.sum(b[::-1] * np.float32(2), 0)
        same(jax.jit(f)(), b.sum() * 3 + b[0] + b[n // 2])


def test_a_zero_cotangent_is_a_constant_too():
    with jax.ensure_compile_time_eval():
        zero = np.zeros((), jax.dtypes.float0)
    program = jax.make_jaxpr(lambda x: (x, zero, zero))(1.)
    assert [a.dtype for a in program.out_avals[1:]] == [jax.dtypes.float0] * 2


def _twice(road):
    """A function that is the same object in two uses, between which the array that it closes over is rewritten."""
    b = np.zeros(SIZE, np.float32)

    def mul(v):
        return v * b + b

    def run(x):
        b[:] = 0
        first = road(mul, x)
        b[:] = 1
        return first, road(mul, x)
    return run


SIZE = 3
SAME_FUNCTION = {
    "checkpoint": lambda f, x: jax.checkpoint(f)(x), "cond": lambda f, x: lax.cond(x[0] > 0, f, f, x),
    "switch": lambda f, x: lax.switch(x[0].astype(int), [f, f], x), "map": lambda f, x: lax.map(f, x[None])[0],
    "scan": lambda f, x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "checkpoint in checkpoint": lambda f, x: jax.checkpoint(jax.checkpoint(f))(x),
    "checkpoint in vmap": lambda f, x: jax.vmap(jax.checkpoint(f))(x[None])[0],
}


@pytest.mark.parametrize("around", [
    lambda f: lambda x: f(x[0]), lambda f: jax.jit(lambda x: f(x[0])), jax.vmap], ids=["eager", "jit", "vmap"])
@pytest.mark.parametrize("size", [3, 1000])
@pytest.mark.parametrize("road", SAME_FUNCTION)
def test_the_same_function_sees_each_value_of_its_array(road, size, around, monkeypatch):
    monkeypatch.setitem(globals(), "SIZE", size)
    x = jnp.ones((1, size))
    run = _twice(SAME_FUNCTION[road])
    first, second = around(run)(x)
    assert float(first.sum()) == 0 and float(second.sum()) == 2 * size
