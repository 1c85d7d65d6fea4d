"""Donated arguments that no result takes over: the warning says which, and why."""
import re
import warnings

import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp

STATE = {"w": (4, 25), "m": (4, 25), "count": (2,)}


@pytest.mark.parametrize("f, lines", [
    (lambda s: (s["w"] + s["m"] + s["count"][0]).astype(jnp.bfloat16), [
        "s['count'], float32[2]: the result has another shape and dtype: bfloat16[4,25]",
        "s['m'], float32[4,25]: the result has another dtype: bfloat16[4,25]",
        "s['w'], float32[4,25]: the result has another dtype"]),
    (lambda s: {"w": s["w"] + s["m"] + s["count"][0], "loss": s["w"].sum()}, [
        "s['count'], float32[2]: the nearest result, result['loss'], has another shape: float32[]",
        "s['w'], float32[4,25]: the nearest result, result['w'], takes the memory of s['m']"]),
    (lambda s: [s["w"][:2] + s["m"][:2], s["count"] + 1, s["m"]], [
        "s['w'], float32[4,25]: the nearest result, result[2], takes the memory of s['m']"]),
    (lambda s: jax.debug.callback(lambda *_: None, s), ["s['w'], float32[4,25]: there is no result"]),
])
def test_a_donated_argument_that_no_result_fits_is_told_of(f, lines):
    for run in (lambda g, s: g(s), lambda g, s: g.lower(s).compile()(s)):
        def step(s):
            return f(s)
        state = {k: jnp.ones(shape) for k, shape in STATE.items()}
        g = jax.jit(step, donate_argnums=0)
        with pytest.warns(UserWarning, match="^Some donated buffers were not usable: arguments of step") as caught:
            run(g, state)
        jax.effects_barrier()
        text, = [str(w.message) for w in caught]
        assert caught[0].filename == __file__
        for line in lines:
            assert line in text
            name = re.match(r"s\['(\w+)'\]", line)[1]
            assert not state[name].is_deleted()
        with warnings.catch_warnings():
            warnings.simplefilter("error")      # said once
            g({k: jnp.ones(shape) for k, shape in STATE.items()})


def test_what_is_not_used_up_stays_as_it_was():
    x = jnp.ones(4)
    f = jax.jit(lambda x: x.sum(), donate_argnums=0)
    with pytest.warns(UserWarning, match=r"x, float32\[4\]: the result has another shape: float32\[\]"):
        f(x)
    assert not x.is_deleted() and not x.committed
    same(f(x) + x, np.full(4, 5.))


def test_many_are_told_of_by_the_first():
    with pytest.warns(UserWarning, match="and 12 more"):
        jax.jit(lambda xs: sum(xs)[0], donate_argnums=0)([jnp.ones(3) + i for i in range(20)])
