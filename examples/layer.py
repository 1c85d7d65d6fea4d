"""One layer of a network."""
import hlotrace.numpy as jnp


def layer(x, w):
    return jnp.tanh(x @ w)
