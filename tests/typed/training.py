"""A small network, trained: pytrees of parameters, jit with options, gradients with a loss beside them."""
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import Array, lax, random
from hlotrace.typing import ArrayLike, DTypeLike

Params = dict[str, Array]


class State(NamedTuple):
    params: list[Params]
    momentum: list[Params]
    step: Array


@partial(jax.tree_util.register_dataclass, data_fields=["inputs", "targets"], meta_fields=["name"])
@dataclass
class Batch:
    inputs: Array
    targets: Array
    name: str = "train"


def layer(key: Array, fan_in: int, fan_out: int, dtype: DTypeLike = jnp.float32) -> Params:
    w_key, b_key = random.split(key)
    scale = jnp.sqrt(2.0 / fan_in)
    return {"w": scale * random.normal(w_key, (fan_in, fan_out), dtype=dtype),
            "b": 0.01 * random.uniform(b_key, (fan_out,), minval=-1.0)}


def init(key: Array, sizes: list[int]) -> State:
    keys = random.split(key, len(sizes) - 1)
    params = [layer(k, m, n) for k, m, n in zip(keys, sizes[:-1], sizes[1:])]
    return State(params, jax.tree.map(jnp.zeros_like, params), jnp.zeros((), jnp.int32))


def apply(params: list[Params], x: Array, activation: Callable[[Array], Array] = jax.nn.relu) -> Array:
    for p in params[:-1]:
        x = activation(x @ p["w"] + p["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_fn(params: list[Params], batch: Batch) -> tuple[Array, Array]:
    logits = apply(params, batch.inputs)
    labels = jax.nn.one_hot(batch.targets, logits.shape[-1])
    loss = -jnp.mean(jnp.sum(labels * jax.nn.log_softmax(logits), axis=-1))
    accuracy = (logits.argmax(-1) == batch.targets).mean()
    return loss, accuracy


@partial(jax.jit, static_argnames=("rate",), donate_argnums=0)
def update(state: State, batch: Batch, rate: float = 0.1) -> tuple[State, Array]:
    (loss, accuracy), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params, batch)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, state.momentum, grads)
    params = jax.tree.map(lambda p, m: p - rate * m, state.params, momentum)
    return State(params, momentum, state.step + 1), jnp.stack([loss, accuracy])


@jax.jit
def predict(params: list[Params], x: Array) -> Array:
    return jnp.argmax(apply(params, x, jnp.tanh), axis=1)


@jax.jit(static_argnums=(1,))
def power(x: Array, n: int) -> Array:
    return x ** n


class Model:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    @partial(jax.jit, static_argnums=(0,))
    def scaled(self, x: Array) -> Array:
        return self.scale * x

    @jax.jit(static_argnums=0)
    def doubled(self, x: Array) -> Array:
        return 2 * x


def batches(inputs: np.ndarray[Any, Any], size: int) -> Iterator[Batch]:
    for start in range(0, len(inputs), size):
        part = jnp.asarray(inputs[start:start + size])
        yield Batch(part, jnp.zeros(part.shape[0], int))


def normalize(x: ArrayLike) -> Array:
    x = jnp.asarray(x)
    return (x - x.mean(0)) / (x.std(0) + 1e-6)


def main() -> None:
    state = init(random.key(0), [4, 16, 3])
    for batch in batches(np.ones((32, 4), np.float32), 8):
        state, metrics = update(state, batch)
        loss, accuracy = metrics
        print(f"{float(loss):.3f} {accuracy.item():.2f} {int(state.step)}")
    state, metrics = update(state, Batch(jnp.ones((2, 4)), jnp.zeros(2, jnp.int32)), rate=0.2)
    labels: Array = predict(state.params, normalize([[1.0, 2.0, 3.0, 4.0]]) if False else normalize(np.ones((2, 4))))
    lowered = predict.lower(state.params, jnp.ones((2, 4)))
    text: str = lowered.as_text()
    compiled = lowered.compile()
    again = compiled(state.params, jnp.ones((2, 4)))
    shapes = predict.eval_shape(state.params, jax.ShapeDtypeStruct((2, 4), jnp.float32))
    predict.clear_cache()
    squares: Array = power(jnp.arange(3.0), 2)
    doubled: Array = Model(2.0).doubled(squares)
    scaled = Model(2.0).scaled(squares)
    print(labels.tolist(), len(text), again, shapes, doubled.shape, scaled, lax.stop_gradient(squares).dtype)
    jax.block_until_ready(state)
    leaves, treedef = jax.tree.flatten(state)
    rebuilt = jax.tree.unflatten(treedef, [leaf + 1 for leaf in leaves])
    print(treedef.num_leaves, jax.tree.structure(rebuilt) == treedef)
