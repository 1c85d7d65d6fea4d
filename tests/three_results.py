"""A program of three results, of which one depends on each argument alone, and how it is run."""
import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.extend.core import eval_jaxpr

X, Y = 0.5, 2.0


def three(x, y):
    return jnp.sin(x) * y, x + 1, y * 2


PROGRAM = jax.make_jaxpr(three)(X, Y)


def run(jaxpr, *args):
    return [float(v) for v in eval_jaxpr(jaxpr, jaxpr.consts, *args)]
