"""A training step of ResNet-50 (He et al., "Deep residual learning for image recognition", 2016), for `hlotrace plan` and `profile`.

    hlotrace plan examples/resnet.py:step --args_from examples/resnet.py:types --in_spec examples/resnet.py:specs --on l4 --batch 2:0
"""
import math

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.sharding import P

RATE, MOMENTUM = 0.1, 0.9
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))        # blocks, channels inside of them; four times as many come out
CLASSES = 1000


def shapes():
    """The shape of each parameter: kernels [height, width, in, out], scale and offset of each norm."""
    made = {}

    def convolution(name, size, before, after):
        made[name] = {"kernel": (size, size, before, after), "scale": (after,), "offset": (after,)}
    convolution("stem", 7, 3, 64)
    before = 64
    for stage, (blocks, inside) in enumerate(STAGES):
        for block in range(blocks):
            name = f"stage{stage}.block{block}"
            convolution(f"{name}.reduce", 1, before, inside)
            convolution(f"{name}.middle", 3, inside, inside)
            convolution(f"{name}.widen", 1, inside, 4 * inside)
            if block == 0:
                convolution(f"{name}.project", 1, before, 4 * inside)
            before = 4 * inside
    return made | {"head": {"kernel": (before, CLASSES), "offset": (CLASSES,)}}


def types(batch=64, size=224):
    """The arguments of `step`: parameters, momentum, images, labels."""
    params = {name: {key: jax.ShapeDtypeStruct(shape, jnp.float32) for key, shape in one.items()}
              for name, one in shapes().items()}
    return params, params, jax.ShapeDtypeStruct((batch, size, size, 3), jnp.bfloat16), jax.ShapeDtypeStruct((batch,), jnp.int32)


def specs():
    """Images are split over "data", parameters are whole."""
    whole = {name: dict.fromkeys(one, P()) for name, one in shapes().items()}
    return whole, whole, P("data"), P("data")


def convolve(x, params, stride=1):
    """A convolution in bfloat16, and a norm over the batch in float32."""
    with jax.named_scope("conv"):
        x = jax.lax.conv_general_dilated(x, params["kernel"].astype(jnp.bfloat16), (stride, stride), "SAME",
                                         dimension_numbers=("NHWC", "HWIO", "NHWC"))
    with jax.named_scope("norm"):
        wide = x.astype(jnp.float32)
        mean, var = wide.mean((0, 1, 2)), wide.var((0, 1, 2))
        return ((wide - mean) * jax.lax.rsqrt(var + 1e-5) * params["scale"] + params["offset"]).astype(x.dtype)


def forward(params, images):
    """Scores of each class."""
    with jax.named_scope("stem"):
        x = jax.nn.relu(convolve(images, params["stem"], 2))
        x = jax.lax.reduce_window(x, jnp.array(-jnp.inf, x.dtype), jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for stage, (blocks, _) in enumerate(STAGES):
        for block in range(blocks):
            name = f"stage{stage}.block{block}"
            with jax.named_scope(name):
                stride = 2 if block == 0 and stage else 1
                y = jax.nn.relu(convolve(x, params[f"{name}.reduce"]))
                y = jax.nn.relu(convolve(y, params[f"{name}.middle"], stride))
                y = convolve(y, params[f"{name}.widen"])
                x = jax.nn.relu(y + (convolve(x, params[f"{name}.project"], stride) if block == 0 else x))
    with jax.named_scope("head"):
        return x.mean((1, 2)).astype(jnp.float32) @ params["head"]["kernel"] + params["head"]["offset"]


def loss(params, images, labels):
    scores = jax.nn.log_softmax(forward(params, images))
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], -1))


@jax.jit(donate_argnums=(0, 1))
def step(params, momentum, images, labels):
    value, grads = jax.value_and_grad(loss)(params, images, labels)
    momentum = jax.tree.map(lambda m, g: MOMENTUM * m + g, momentum, grads)
    return jax.tree.map(lambda p, m: p - RATE * m, params, momentum), momentum, value


def small():
    """Two small images: a step takes a second on a laptop."""
    return types(2, 32)


if __name__ == "__main__":
    count = sum(math.prod(shape) for one in shapes().values() for shape in one.values())
    print(f"{count:,} parameters")
