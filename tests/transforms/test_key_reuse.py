"""Keys used twice, as jax_debug_key_reuse finds them: from call to call, inside of programs, through what holds programs."""
import contextlib

import numpy as np
import pytest
from not_compiled import ones_for_results

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax, random
from hlotrace.errors import KeyReuseError
from hlotrace.experimental import key_reuse

uniform, split = random.uniform, random.split


def halve(key, _):
    key, sub = split(key)
    return key, uniform(sub)


def keep(key, _):
    return key, uniform(key)


def never(_, key):
    return lax.cond(False, uniform, lambda key: 0.0, key)


def down(key):
    return jax.jit(lambda key: (key, key))(key)


# functions of one key that use it up twice, and where that is found
TWICE = {
    "two draws": lambda k: (uniform(k), uniform(k)),
    "a draw after a split": lambda k: (split(k), uniform(k)),
    "a draw that differs": lambda k: (random.normal(k), random.permutation(k, 5)),
    "inside jit and outside": lambda k: (jax.jit(uniform)(k), uniform(k)),
    "in a function that closes over it": lambda k: (jax.jit(lambda: uniform(k))(), uniform(k)),
    "handed through": lambda k: (uniform(k), uniform(down(k)[0])),
    "handed through twice": lambda k: [uniform(x) for x in jax.jit(lambda k: down(k))(k)],
    "an element": lambda k: (lambda ks: (uniform(ks[0]), uniform(ks[0])))(split(k, 3)),
    "an element and all": lambda k: (lambda ks: (uniform(ks[0]), jax.vmap(uniform)(ks)))(split(k, 3)),
    "unpacked twice": lambda k: (lambda ks: ([uniform(x) for x in ks], [uniform(x) for x in ks]))(split(k, 2)),
    "compiled, all and all": lambda k: (lambda ks: [jax.vmap(jax.jit(uniform))(ks) for _ in range(2)])(split(k, 3)),
    "all and all": lambda k: (lambda ks: (jax.vmap(uniform)(ks), jax.vmap(uniform)(ks)))(split(k, 3)),
    "broadcast": lambda k: (uniform(k), uniform(jnp.broadcast_to(k, (3,))[0])),
    "a branch": lambda k: (never(0, k), uniform(k)),
    "a scan that closes over it": lambda k: lax.scan(lambda c, _: (c + uniform(k), None), 0.0, length=2),
    "a scan that hands it on": lambda k: lax.scan(keep, k, length=2),
    "scanned twice": lambda k: (lambda ks: [lax.scan(lambda c, k: (c, uniform(k)), 0, ks) for _ in range(2)])(split(k, 2)),
    "a loop that closes over it": lambda k: lax.fori_loop(0, 3, lambda i, x: x + uniform(k), 0.0),
    "the condition of a loop": lambda k: lax.while_loop(lambda s: uniform(s[1]) < 0.5, lambda s: (s[0] + 1, s[1]), (0, k)),
    "in the function that is differentiated": lambda k: jax.grad(lambda x: x * uniform(k) + random.normal(k))(1.0),
    "an element, and another shape's": lambda k: (
        lambda ks: (uniform(ks[1]), uniform(ks.reshape(2, 2)[0, 1])))(split(k, 4)),
    "gamma values": lambda k: (random.gamma(k, 1.0), uniform(k)),
    "other generators": lambda k: (lambda k: (uniform(k), uniform(k)))(random.wrap_key_data(
        jnp.tile(random.key_data(k), 2), impl="rbg")),
}
ONCE = {
    "folds, then a draw": lambda k: (random.fold_in(k, 1), random.fold_in(k, 2), uniform(k), random.fold_in(k, 3)),
    "data and comparison": lambda k: (random.key_data(k), uniform(k), random.key_data(k), k == k),
    "clones": lambda k: (uniform(random.clone(k)), uniform(k), uniform(random.clone(k))),
    "elements": lambda k: (lambda ks: (uniform(ks[0]), uniform(ks[1]), uniform(ks[-1])))(split(k, 3)),
    "unpacked": lambda k: [uniform(x) for x in split(k)],
    "a scan": lambda k: lax.scan(halve, k, length=2),
    "scanned": lambda k: lax.scan(lambda c, k: (c, uniform(k)), 0, split(k, 2)),
    "a loop": lambda k: lax.fori_loop(0, 3, lambda i, k: split(k)[0], k),
    "a loop that does not use it": lambda k: (lax.fori_loop(0, 3, lambda i, s: (s[0], s[1] + 1), (k, 0))[1], uniform(k)),
    "branches": lambda k: lax.cond(True, uniform, random.normal, k),
    "mapped folds": lambda k: (jax.vmap(lambda i: uniform(random.fold_in(k, i)))(np.arange(2)), uniform(k)),
    "not mapped": lambda k: jax.vmap(lambda x: x + uniform(k))(np.ones(2, np.float32)),
    "computed again": lambda k: jax.grad(jax.checkpoint(lambda x: jnp.sin(x) * uniform(k)))(1.0),
    "algorithms that draw both": lambda k: (lambda a, b: (random.poisson(a, 2.0), random.binomial(b, 9, 0.5)))(*split(k)),
    "elements of what a scan stacks": lambda k: (lambda ks: (uniform(ks[0]), uniform(ks[1])))(
        lax.scan(lambda c, _: (random.fold_in(c, 1), c), k, length=3)[1]),
    "the last of those scanned over": lambda k: (lambda ks: (uniform(lax.scan(lambda c, x: (x, None), k, ks)[0]),
                                                             uniform(ks[0])))(split(k, 3)),
    "reshaped": lambda k: (lambda ks: (ks.reshape(4, 1), ks[:, None], uniform(ks.reshape(2, 2)[0, 0]),
                                       uniform(ks.reshape(2, 2)[1, 1]), uniform(ks[1])))(split(k, 4)),
    "data wrapped again": lambda k: (uniform(random.wrap_key_data(random.key_data(k))), uniform(k)),
}


# Where an element is, its program says when it runs.
COMPILED = {"elements", "an element, and another shape's", "elements of what a scan stacks", "reshaped"}


@pytest.fixture
def not_compiled(name):
    """What is found is found before anything is compiled, or by what a call is given."""
    with contextlib.nullcontext() if name in COMPILED else ones_for_results():
        yield


@pytest.fixture
def watched():
    with jax.debug_key_reuse():
        yield


@pytest.mark.parametrize("name", TWICE)
@pytest.mark.parametrize("how", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_key_used_twice(watched, not_compiled, name, how):
    with pytest.raises(KeyReuseError, match="test_key_reuse.py:") as caught:
        how(TWICE[name])(random.key(0))
    assert isinstance(caught.value, TypeError)
    assert "in each round" in str(caught.value) or "used again by" in str(caught.value) or "the round before" in str(
        caught.value)


@pytest.mark.parametrize("name", ONCE)
@pytest.mark.parametrize("how", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_key_used_once(watched, not_compiled, name, how):
    how(ONCE[name])(random.key(0))


def test_both_lines_are_told(watched):
    @jax.jit
    def f(key):
        x = random.normal(key)
        return x + uniform(key)
    first = f.__wrapped__.__code__.co_firstlineno + 2
    with pytest.raises(KeyReuseError, match=rf"test_key_reuse.py:{first} .*test_key_reuse.py:{first + 1} "):
        f(random.key(0))


def test_without_the_option_nobody_looks():
    key = random.key(0)
    assert uniform(key) == uniform(key)
    with jax.debug_key_reuse():
        uniform(key)
        with pytest.raises(KeyReuseError):
            uniform(key)
        with jax.debug_key_reuse(False):
            uniform(key)
        uniform(random.PRNGKey(0)), uniform(old := random.PRNGKey(0)), uniform(old)


def test_a_compiled_function_is_looked_at_in_each_call(watched):
    f, key = jax.jit(lambda key, x: x * uniform(key)), random.key(0)
    f(key, 1.0), f(random.key(0), 1.0)
    with pytest.raises(KeyReuseError):
        f(key, 1.0)
    assert key_reuse.KeyReuseError is KeyReuseError
