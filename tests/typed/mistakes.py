"""Mistakes, each in a line that ends with `# wrong`; a checker reports every one of them and no other line."""
from functools import partial

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import Array, lax, random
from hlotrace.sharding import NamedSharding
from hlotrace.typing import ArrayLike

x = jnp.ones((3, 4))
key = random.key(0)


def loss(w: Array, b: Array) -> Array:
    return jnp.sum(w) + b


@jax.jit
def compiled(a: Array, n: int) -> Array:
    return a * n


@partial(jax.jit, static_argnames="n")
def partly(a: Array, n: int) -> Array:
    return a * n


@jax.custom_jvp
def custom(a: Array) -> Array:
    return a


def names() -> None:
    jnp.concatinate([x, x])  # wrong
    jnp.arrange(3)  # wrong
    jnp.linalg_norm(x)  # wrong
    lax.dynamic_slise(x, (0, 0), (1, 1))  # wrong
    random.nomal(key, (3,))  # wrong
    jax.value_and_gradient(loss)  # wrong
    jax.tree.mop(jnp.sin, x)  # wrong
    jax.nn.rellu(x)  # wrong
    jax.debug.prnt("x")  # wrong
    jnp.np.sin(1.0)  # wrong
    jax.functools.partial(loss)  # wrong


def attributes() -> None:
    print(x.shapes)  # wrong
    x.means()  # wrong
    x.t()  # wrong
    x.numpy()  # wrong
    x.at[0].replace(1.0)  # wrong
    x.at.set(1.0)  # wrong
    x[0] = 1.0  # wrong
    x.shape = (4, 3)  # wrong
    compiled.lowered(x, 2)  # wrong
    compiled.lower(x, 2).as_txt()  # wrong
    jnp.add.reduced(x)  # wrong
    jnp.sin.accumulate(x)  # wrong
    print(NamedSharding(jax.make_mesh((1,), ("a",)), jax.P("a")).specs)  # wrong


def arguments() -> None:
    jnp.sin("x")  # wrong
    jnp.sin(None)  # wrong
    jnp.dot(x, "x")  # wrong
    jnp.sum(x, axis="rows")  # wrong
    jnp.sum([1.0, 2.0])  # wrong
    jnp.where(x > 0, x, "zero")  # wrong
    jnp.zeros("3")  # wrong
    jnp.zeros((3, 4.5))  # wrong
    jnp.ones(3, dtype=32)  # wrong
    jnp.concatenate(x, axis="a")  # wrong
    x + "a"  # wrong
    x @ [1.0, 2.0]  # wrong
    "a" - x  # wrong
    x["a"]  # wrong
    x[0.5]  # wrong
    x[[0, 1]]  # wrong
    x.at[0].add("one")  # wrong
    x.astype(3)  # wrong
    x.sum(axis="rows")  # wrong
    lax.add(x, "y")  # wrong
    random.normal(key, "shape")  # wrong
    jax.nn.softmax(x, axis="last")  # wrong
    compiled("a", 2)  # wrong
    compiled(x, "2")  # wrong
    partly(x, n="2")  # wrong for pyright
    custom("a")  # wrong
    jax.vmap(loss)(x, "b")  # wrong
    jax.grad(loss)(x, "b")  # wrong
    jax.value_and_grad(loss)(x, "b")  # wrong


def counts() -> None:
    jnp.sin(x, x, x, x)  # wrong
    jnp.sin()  # wrong
    jnp.add(x)  # wrong
    jnp.maximum(x)  # wrong
    jnp.arange()  # wrong
    x.reshape(3, 4, shape=(3, 4))  # wrong
    x.swapaxes(0)  # wrong
    jnp.sum(x, keep_dims=True)  # wrong
    lax.add(x)  # wrong
    lax.cond(x[0, 0] > 0)  # wrong
    random.normal()  # wrong
    compiled(x)  # wrong
    compiled(x, 2, 3)  # wrong
    compiled(x, m=2)  # wrong
    jax.grad(loss)(x)  # wrong
    jax.jit(loss)(x)  # wrong
    jax.jit(jax.vmap(loss))(x)  # wrong
    jax.checkpoint(loss)(x)  # wrong


def callables() -> None:
    jax.grad(1.0)  # wrong
    jax.jit(x)  # wrong
    jax.vmap(3)  # wrong
    jax.jit(loss, static_argnums="w")  # wrong
    jax.value_and_grad(loss(x, x))  # wrong
    jax.tree.map(1.0, x)  # wrong
    lax.scan(1.0, x, x)  # wrong
    lax.while_loop(True, jnp.sin, x)  # wrong
    lax.fori_loop(0, 3, x, x)  # wrong
    lax.switch(0, jnp.sin, x)  # wrong
    x()  # wrong


def results() -> None:
    shape: tuple[int, ...] = x.sum()  # wrong
    text: str = compiled(x, 2)  # wrong
    n: int = jnp.argmax(x)  # wrong
    count: int = x.shape  # wrong
    flag: str = jnp.ndim(x)  # wrong
    a, b, c = jnp.histogram(x)  # wrong
    value, gradient, more = jax.value_and_grad(loss)(x, x)  # wrong
    leaves, structure, rest = jax.tree.flatten(x)  # wrong
    like: ArrayLike = "x"  # wrong
    listed: ArrayLike = [1.0]  # wrong
    jnp.shape(x).sum()  # wrong
    print(shape, text, n, count, flag, a, b, c, value, gradient, more, leaves, structure, rest, like, listed)
