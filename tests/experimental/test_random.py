"""A generator that counts its draws, in and out of programs."""
import numpy as np
import pytest

import hlotrace as jax
from hlotrace import random
from hlotrace.experimental.random import StatefulPRNG, stateful_rng

ENDS = np.array([5, 9])


def test_a_generator_that_counts_its_draws():
    rng, base = stateful_rng(42), random.key(42)
    keys = (random.fold_in(base, i) for i in range(100))
    draws = [      # by the generator, by functions of keys
        (lambda: rng.key(), lambda key: key),
        (lambda: rng.key((2, 1)), lambda key: random.split(key, (2, 1))),
        (lambda: rng.random(3), lambda key: random.uniform(key, (3,))),
        (lambda: rng.uniform(), random.uniform),
        (lambda: rng.uniform(1, 3, (2,)), lambda key: random.uniform(key, (2,), minval=1, maxval=3)),
        (lambda: rng.normal(np.ones(2), 3), lambda key: 1 + 3 * random.normal(key, (2,))),
        (lambda: rng.normal(dtype="float16"), lambda key: random.normal(key, dtype="float16")),
        (lambda: rng.integers(5), lambda key: random.randint(key, (), 0, 5)),
        (lambda: rng.integers(2, ENDS, dtype="int8"), lambda key: random.randint(key, (2,), 2, ENDS, "int8")),
        (lambda: [child.key() for child in rng.spawn(2)],
         lambda key: [random.fold_in(k, 0) for k in random.split(key)]),
        (lambda: jax.jit(lambda g: g.uniform())(rng), random.uniform),
        (jax.jit(lambda: rng.uniform()), random.uniform)]
    for draw, want in draws:
        assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all() and a.dtype == b.dtype, draw(),
                                         want(next(keys))))
    several = rng.split(2)
    assert isinstance(several, StatefulPRNG) and jax.vmap(lambda g: g.uniform())(several).shape == (2,)
    with pytest.raises(ValueError, match="vmap"):
        several.key()
    assert stateful_rng(3, impl="rbg").key().dtype == random.key(3, impl="rbg").dtype
    assert stateful_rng().uniform() != stateful_rng().uniform()
    with pytest.raises(TypeError, match="seed"):
        jax.jit(lambda: stateful_rng().uniform())()
