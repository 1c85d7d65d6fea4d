"""Of what one block makes for another, what is cheap is computed where it is used."""
import numpy as np

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.jaxpr import check_jaxpr, eval_jaxpr
from hlotrace.lowering.handed_over import hand_over_little
from hlotrace.primitives.programs.calls import jit_p

X, W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), np.full((4, 4), 0.3, np.float32)


@jax.jit
def layer(x, w):
    y = x @ w
    return jnp.tanh(y), y > 0, y * 2 + 1, y


@jax.jit
def derivative(g, mask, scaled, y):
    return jnp.where(mask, g * scaled, jnp.sin(y) * g)


def step(x, w, others=lambda *made: 0.0, layers=4):
    """Layers, then the derivative of each from the last to the first; what `others` gives of the first one's
    values."""
    kept = []
    for _ in range(layers):
        x, *made = layer(x, w)
        kept.append(made)
    g = x
    for made in kept[:0:-1]:
        g = derivative(g, *made)
    g = derivative(g, *kept[0]) if others is None else g + others(*kept[0])
    return g


def thinned(f):
    """(the program of f, that with less between its blocks, its blocks)."""
    jaxpr = jax.make_jaxpr(f)(X, W)
    blocks = list(dict.fromkeys(e.params["jaxpr"] for e in jaxpr.eqns if e.primitive is jit_p))
    found, became = hand_over_little(jaxpr, blocks)
    check_jaxpr(found)
    for a, b in zip(eval_jaxpr(found, found.consts, X, W), eval_jaxpr(jaxpr, jaxpr.consts, X, W), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    return jaxpr, found, {block.name: became[block] for block in blocks}


def results(block):
    return [(v.aval.dtype.name, v.aval.shape) for v in block.outvars]


def test_masks_and_products_are_computed_where_they_are_used():
    _, _, blocks = thinned(lambda x, w: step(x, w, None))
    assert results(blocks["layer"]) == [("float32", (3, 4))] * 2        # the next x, and y
    assert len(blocks["derivative"].invars) == 2                        # y, and the cotangent


def test_what_another_consumer_needs_is_computed_in_front_of_it():
    _, found, blocks = thinned(lambda x, w: step(x, w, lambda mask, scaled, y: jnp.where(mask, scaled, y)))
    assert results(blocks["layer"]) == [("float32", (3, 4))] * 2
    assert {"gt", "mul"} <= {e.primitive.name for e in found.eqns}


def test_what_a_program_gives_is_a_result_still():
    def f(x, w):
        made = [layer(x, w), layer(x + 1, w)]
        return [derivative(x, *rest) for _, *rest in made], [m for _, m, *_ in made]
    _, _, blocks = thinned(f)
    assert ("bool", (3, 4)) in results(blocks["layer"])


def test_a_block_that_is_called_with_other_values_too_is_left_as_it_is():
    def f(x, w):
        _, *made = layer(x, w)
        _, *again = layer(x + 1, w)
        return derivative(x, *made), derivative(x, *again), derivative(x, x > 1, x, x)
    jaxpr, found, blocks = thinned(f)
    assert found is jaxpr
    assert len(results(blocks["layer"])) == 4


def test_nothing_that_is_dear_is_computed_twice():
    @jax.jit
    def dear(x, w):
        y = x @ w
        return y, jnp.exp(y), jnp.sum(y, 0)

    def f(x, w):
        made = [dear(x, w) for x in (x, x + 1)]
        return [derivative(a, a > 0, b, a * c) for a, b, c in made]
    _, _, blocks = thinned(f)
    assert len(results(blocks["dear"])) == 3
