"""Effects happen in program order, whatever program holds them."""
import functools

import numpy as np
import pytest
from saying import HOLDERS, told

import hlotrace as jax
from hlotrace import lax
from hlotrace.core.effects import IO, Debug


@pytest.mark.parametrize("call", [
    lambda heard, x: jax.debug.callback(heard, x, ordered=True),
    lambda heard, x: jax.experimental.io_callback(heard, None, x, ordered=True)], ids=["debug", "io"])
def test_ordered_effects_happen_in_program_order(call):
    """All in one program: one after the other too."""
    heard = []

    def say(holder, x):
        call(lambda v: heard.append((holder, float(v))), x)
    jax.jit(lambda x: [function(functools.partial(say, holder), x)
                       for holder, (function, _) in HOLDERS.items()])(1.0)
    jax.effects_barrier()
    assert heard == [(holder, v) for holder, (_, expected) in HOLDERS.items() for v in expected]


def test_effects_are_equal_by_what_they_are():
    assert Debug() == Debug() != IO() and Debug(True) != Debug() and len({IO(), IO(), IO(True)}) == 2


def test_tokens_are_values_of_the_program():
    text = jax.jit(lambda x: told(lambda v: jax.debug.print("{}", v, ordered=True), x)).lower(1.0).as_text()
    assert text.count("stablehlo.create_token") == 1
    quiet = jax.jit(lambda x: told(lambda v: jax.debug.print("{}", v), x)).lower(1.0).as_text()
    assert "token" not in quiet


# --- mapped predicates: who is told, and who refuses --------------------------------------------------------

N = np.array([0, 1, 3])
TELL = {
    "debug": lambda say, x: jax.debug.callback(say, x),
    "ordered debug": lambda say, x: jax.debug.callback(say, x, ordered=True),
    "io": lambda say, x: jax.experimental.io_callback(say, None, x),
    "ordered io": lambda say, x: jax.experimental.io_callback(say, None, x, ordered=True),
}
# what holds a call of `tell` -> (of an element and its bound or predicate, what is heard where that is
# mapped, and where it is not, a 2)
MAPPED = {
    "condition": (lambda tell, x, n: lax.while_loop(lambda c: (tell(x + c), c < n)[1], lambda c: c + 1, 0),
                  [0, 1, 3, 0, 2, 4, 0, 2, 5, 0, 2, 6], [0, 1, 3, 1, 2, 4, 2, 3, 5]),
    "body": (lambda tell, x, n: lax.while_loop(lambda c: c < n, lambda c: (tell(x + c), c + 1)[1], 0),
             [0, 1, 3, 0, 2, 4, 0, 2, 5], [0, 1, 3, 1, 2, 4]),
    "branch": (lambda tell, x, n: lax.cond(n > 0, lambda x: (tell(x), x)[1], lambda x: x, x), [0, 1, 3],
               [0, 1, 3]),
    "switch": (lambda tell, x, n: lax.switch(n,
                                             [lambda x: (tell(x), x)[1], lambda x: x,
                                              lambda x: (tell(-x), x)[1]], x),
               [0, 1, 3, 0, -1, -3], [0, -1, -3]),
}


@pytest.mark.parametrize("jit", [lambda f: f, jax.jit])
@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("kind", TELL)
@pytest.mark.parametrize("holder", MAPPED)
def test_effects_under_a_mapped_predicate(holder, kind, mapped, jit):
    function, *expected = MAPPED[holder]
    heard = []
    tell = lambda x: TELL[kind](lambda v: heard.append(int(v)), x)
    run = jit(jax.vmap(lambda x, n: function(tell, x, n), (0, 0 if mapped else None)))
    n = N if mapped else 2
    if kind == "ordered io" or kind == "io" and mapped:
        with pytest.raises((ValueError, NotImplementedError),
                           match=r"(?s)vmap.*(io_callback|IO callback).*lax.map"):
            run(N, n)
        assert not heard
        return
    result = run(N, n)
    jax.effects_barrier()
    np.testing.assert_array_equal(result, N if holder in ("branch", "switch") or mapped else [2, 2, 2])
    expected = expected[not mapped]
    assert heard == expected if kind.startswith("ordered") else sorted(heard) == sorted(expected)
