"""Trains a small network to read hand-written digits (UCI's 1797 images of 8x8 pixels), and draws what it learned."""
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import hlotrace as jax
import hlotrace.numpy as jnp

SIZES = (64, 128, 64, 10)
EPOCHS, BATCH, RATE, MOMENTUM = 25, 64, 0.05, 0.9
PICTURE = Path(__file__).resolve().parent.parent / "out" / "digits.png"


def init(key):
    """A list of layers, each a dict of weights and bias: any pytree will do."""
    layers = zip(jax.random.split(key, len(SIZES) - 1), SIZES[:-1], SIZES[1:])
    return [{"w": jax.random.normal(k, (n, m)) * (2 / n) ** 0.5, "b": jnp.zeros(m)} for k, n, m in layers]


def scores(params, image):
    """The scores of the ten digits for one image of 64 pixels; vmap reads many."""
    *hidden, last = params
    for layer in hidden:
        image = jax.nn.relu(image @ layer["w"] + layer["b"])
    return image @ last["w"] + last["b"]


def loss(params, images, labels):
    log_p = jax.nn.log_softmax(jax.vmap(scores, in_axes=(None, 0))(params, images))
    return -jnp.mean(jnp.sum(log_p * jax.nn.one_hot(labels, 10), axis=-1))


@jax.jit
def step(params, velocity, images, labels):
    value, grads = jax.value_and_grad(loss)(params, images, labels)
    velocity = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, grads)
    return jax.tree.map(jnp.add, params, velocity), velocity, value


@jax.jit
def predict(params, images):
    return jnp.argmax(jax.vmap(scores, in_axes=(None, 0))(params, images), axis=-1)


def draw(images, truth, predicted, losses):
    """Save test images with their predictions, mistakes first and in red, beside the loss curve."""
    left, right = Figure(figsize=(11, 4), layout="constrained").subfigures(1, 2)
    for axes, i in zip(left.subplots(4, 8).flat, np.argsort(truth == predicted, stable=True)):
        axes.imshow(images[i].reshape(8, 8), cmap="gray_r")
        remark, color = ("", "black") if predicted[i] == truth[i] else (f" (a {truth[i]})", "red")
        axes.set_title(f"{predicted[i]}{remark}", color=color, fontsize=9)
        axes.set_axis_off()
    axes = right.subplots()
    axes.semilogy(losses)
    axes.set(xlabel="step", ylabel="training loss", title=f"test accuracy {np.mean(truth == predicted):.3f}")
    PICTURE.parent.mkdir(exist_ok=True)
    left.figure.savefig(PICTURE, dpi=120)


images, labels = load_digits(return_X_y=True)
images, labels = np.float32(images / 16), np.int32(labels)
key, init_key, split_key = jax.random.split(jax.random.key(0), 3)
test, train = np.split(np.asarray(jax.random.permutation(split_key, len(images))), [360])
params = init(init_key)
velocity, losses, start = jax.tree.map(jnp.zeros_like, params), [], time.perf_counter()
for epoch in range(1, EPOCHS + 1):
    order = np.asarray(jax.random.permutation(jax.random.fold_in(key, epoch), train))
    for batch in order[:len(order) // BATCH * BATCH].reshape(-1, BATCH):
        params, velocity, value = step(params, velocity, images[batch], labels[batch])
        losses.append(float(value))
    predicted = np.asarray(predict(params, images[test]))
    accuracy = np.mean(predicted == labels[test])
    print(f"epoch {epoch:2d}  loss {losses[-1]:.4f}  test accuracy {accuracy:.4f}", flush=True)
print(f"trained on {len(train)} images in {time.perf_counter() - start:.1f} s; test accuracy {accuracy:.4f}")
draw(images[test], labels[test], predicted, losses)
print("picture:", PICTURE)
