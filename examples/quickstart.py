"""Differentiate a function, map it, compile it, and read what was compiled."""
import hlotrace as jax
import hlotrace.numpy as jnp


def loss(w, x, y):
    """The squared error of a linear model on one example."""
    return (jnp.dot(x, w) - y) ** 2


x = jnp.array([[1.0, 2.0], [3.0, -1.0], [-2.0, 1.0]])
y = x @ jnp.array([2.0, -3.0])
w = jnp.zeros(2)
print("gradient, one example: ", jax.grad(loss)(w, x[0], y[0]))
print("gradients, all of them:", jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, x, y).tolist())


@jax.jit
def step(w, x, y):
    gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, x, y)
    return w - 0.1 * gradients.mean(axis=0)


for _ in range(100):
    w = step(w, x, y)
print("fitted weights:        ", w)
print(step.lower(w, x, y).as_text())
