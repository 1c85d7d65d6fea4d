"""Derivatives, mapping, control flow, custom rules, callbacks and options."""
import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import hlotrace as jax
from hlotrace import checkpoint, custom_jvp, custom_vjp, grad, jit, lax, numpy as jnp, random as jr, vmap


def energy(x: jax.Array, k: float = 1.0) -> jax.Array:
    return 0.5 * k * jnp.sum(x ** 2)


force: Callable[[jax.Array], jax.Array] = grad(lambda x: -energy(x))
stiffness = jax.hessian(energy)
jacobians = jax.jacfwd(jnp.sin), jax.jacrev(jnp.cos)
batched = jit(vmap(grad(energy), in_axes=(0, None)))
remembered = checkpoint(energy)
policed = jax.checkpoint(policy=jax.checkpoint_policies.nothing_saveable)(energy)


@jit
def walk(key: jax.Array, n: jax.Array | int = 10) -> jax.Array:
    def step(carry: tuple[jax.Array, jax.Array], _: Any) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        key, x = carry
        key, sub = jr.split(key)
        x = x + jr.normal(sub)
        return (key, x), x
    (key, last), path = lax.scan(step, (key, jnp.zeros(())), None, length=10)
    return jnp.append(path, last)


def controls(x: jax.Array, n: int) -> jax.Array:
    total, outs = lax.scan(lambda c, v: (c + v, c * v), 0.0, x)
    y = lax.fori_loop(0, n, lambda i, v: v * i, x)
    z = lax.while_loop(lambda v: jnp.all(v < 10), lambda v: v + 1.0, y)
    a = lax.cond(z.sum() > 0, lambda v: v, lambda v: -v, z)
    b = lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)
    c = lax.switch(n, [jnp.sin, jnp.cos, lambda v: v], x)
    d: jax.Array = lax.map(lambda v: v * 2, x)
    running = lax.associative_scan(jnp.add, x)
    return total + outs.sum() + a + b + c + d + lax.select(x > 0, running, -running)


@custom_jvp
def softplus(x: jax.Array) -> jax.Array:
    return jnp.log1p(jnp.exp(x))


@softplus.defjvp
def softplus_jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    x, = primals
    t, = tangents
    return softplus(x), t * jax.nn.sigmoid(x)


@custom_vjp
def clipped(x: jax.Array, limit: float) -> jax.Array:
    return x


def clipped_fwd(x: jax.Array, limit: float) -> tuple[jax.Array, float]:
    return x, limit


def clipped_bwd(limit: float, ct: jax.Array) -> tuple[jax.Array, None]:
    return jnp.clip(ct, -limit, limit), None


clipped.defvjp(clipped_fwd, clipped_bwd)


def derivatives(x: jax.Array) -> None:
    y, tangent = jax.jvp(energy, (x,), (jnp.ones_like(x),))
    value, pullback = jax.vjp(energy, x)
    (g,) = pullback(jnp.ones(()))
    out, linear = jax.linearize(jnp.sin, x)
    both, gradient = jax.value_and_grad(energy)(x, k=2.0)
    (loss, aux), gs = jax.value_and_grad(lambda v: (v.sum(), {"n": v.size}), has_aux=True)(x)
    print(y.item(), tangent + value, g.shape, linear(x), out, both.dtype, gradient, loss, aux, gs)
    print(force(x), stiffness(x), batched(x, 2.0), remembered(x), policed(x, 3.0), softplus(x), clipped(x, 1.0))
    print(jax.make_jaxpr(energy)(x), jax.eval_shape(energy, x).shape, walk(jr.key(0)), walk(jr.PRNGKey(1), n=3))
    print([jacobian(x).shape for jacobian in jacobians])


@partial(custom_jvp, nondiff_argnums=(1,))
def powered(x: jax.Array, n: int) -> jax.Array:
    return x ** n


@powered.defjvp
def powered_jvp(n: int, primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    return powered(primals[0], n), n * primals[0] ** (n - 1) * tangents[0]


@jax.tree_util.register_pytree_node_class
class Pair:
    def __init__(self, a: jax.Array, b: jax.Array) -> None:
        self.a, self.b = a, b

    def tree_flatten(self) -> tuple[tuple[jax.Array, jax.Array], None]:
        return (self.a, self.b), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: tuple[jax.Array, jax.Array]) -> "Pair":
        return cls(*children)


def containers(x: jnp.ndarray) -> jax.Array:
    doubled: Pair = jax.tree.map(lambda v: 2 * v, Pair(x, x))
    scaled = jax.tree_util.Partial(jnp.multiply, 3.0)
    named = jax.tree_util.tree_map_with_path(lambda path, v: jax.tree_util.keystr(path), {"a": x})
    total = sum(jax.tree.leaves({"x": x, "y": [x, None]}))
    if isinstance(x, jax.Array) and x.ndim and named:
        return scaled(doubled.a + doubled.b) + total
    return functools.reduce(jnp.add, [x, x]) + powered.fun(x, 2)


def outside(x: jax.Array) -> Any:
    result = jax.pure_callback(lambda v: np.sin(v), jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    jax.debug.print("x is {x}", x=x)
    with jax.named_scope("outside"), jax.debug_nans(True), jax.default_matmul_precision("float32"):
        y = result * 2
    with jax.disable_jit():
        z = jnp.where(y > 0, y, 0)
    jax.config.update("jax_debug_infs", False)
    return jax.device_put(z, jax.devices()[0])
