"""Shapes that do not fit."""
import numpy as np
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

PARAMS = {"w1": jnp.ones((784, 128)), "b1": jnp.ones(100), "w2": jnp.ones((128, 10))}


@mistake(TypeError, "+", "(5, 17)", "(19,)", "x: float32[5,17]", advice="reshape")
def adding():
    x, y = jnp.ones((5, 17)), jnp.ones(19)
    return x + y  # <-


@mistake(TypeError, "*", "(5, 17)", "(5,)", "axis -1", advice="x[..., None]")
def scaling_rows():
    x, s = jnp.ones((5, 17)), jnp.ones(5)
    return x * s  # <-


@mistake(TypeError, "-", "(3, 4)", "(4, 3)", advice="x.T")
def subtracting_the_transposed():
    a, b = np.ones((3, 4), "float32"), jnp.ones((4, 3))
    return a - b  # <-


@mistake(TypeError, "+", "(32, 128)", "(100,)", "params['b1']: float32[100]", advice="equal")
def bias():
    def predict(params, x):
        return x @ params["w1"] + params["b1"]  # <-
    return jax.jit(predict)(PARAMS, jnp.ones((32, 784)))


@mistake(TypeError, "@", "784", "785", "params['w1']: float32[784,128]", advice="must be equal")
def product_in_a_model():
    def loss(params, x):
        return (x @ params["w1"]).sum()  # <-
    return jax.grad(loss)(PARAMS, jnp.ones((32, 785)))


@mistake(TypeError, "@", "size 3", "size 2", "a: float32[2,3]", advice="must be equal")
def product():
    a = jnp.ones((2, 3))
    return a @ a  # <-


@mistake(TypeError, "jnp.dot", "size 3", "size 4", advice="must be equal")
def dot():
    return jnp.dot(jnp.ones((2, 3)), jnp.ones(4))  # <-


@mistake(ValueError, "jnp.matmul", "(5, 2, 3)", "(4, 3, 2)", advice="batch axes must be equal or 1")
def batched_product():
    return jnp.matmul(jnp.ones((5, 2, 3)), jnp.ones((4, 3, 2)))  # <-


@mistake(ValueError, "jnp.matmul", "operand 1", "float32[]", advice="is written *")
def product_with_a_scalar():
    return jnp.matmul(jnp.ones((2, 3)), jnp.float32(2))  # <-


@mistake(ValueError, "jnp.einsum", "'j'", "3", "4", "operand 1", advice="'ij,jk->ik'")
def einsum_sizes():
    return jnp.einsum("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((4, 5)))  # <-


@mistake(ValueError, "jnp.einsum", "'ijk", "(2, 3)", "operand 0", advice="one letter for each axis")
def einsum_ranks():
    return jnp.einsum("ijk,kl->ijl", jnp.ones((2, 3)), jnp.ones((4, 5)))  # <-


@mistake(ValueError, "jnp.where", "(3,)", "(4,)", "mask: bool[3]", advice="reshape")
def where():
    mask = jnp.ones(3) > 0
    return jnp.where(mask, jnp.ones(4), 0.0)  # <-


@mistake(TypeError, "jnp.concatenate", "(2, 3)", "(2, 4)", "dimension 0", advice="differ")
def concatenate():
    return jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 4))])  # <-


@mistake(ValueError, "jnp.stack", "(2,)", "(3,)", advice="same shape")
def stack():
    return jnp.stack([jnp.ones(2), jnp.ones(2), jnp.ones(3)])  # <-


@mistake(TypeError, "reshape", "(2, 3)", "6", "(4, 2)", "8", advice="-1")
def reshape():
    return jnp.ones((2, 3)).reshape(4, 2)  # <-


@mistake(TypeError, "jnp.reshape", "(10,)", "(3, -1)", "10", advice="divide")
def reshape_with_a_rest():
    return jnp.reshape(jnp.ones(10), (3, -1))  # <-


@mistake(ValueError, "jnp.sum", "axis 2", "float32[3,4]", advice="-2 <= axis < 2")
def axis_of_a_sum():
    return jnp.sum(jnp.ones((3, 4)), axis=2)  # <-


@mistake(ValueError, "Array.mean", "axis 1", "float32[3]", advice="-1 <= axis < 1")
def axis_of_a_method():
    return jnp.ones(3).mean(axis=1)  # <-


@mistake(ValueError, "jnp.max", "(0, 3)", "axis 0", advice="initial")
def maximum_of_nothing():
    return jnp.max(jnp.ones((0, 3)), axis=0)  # <-


@mistake(ValueError, "jnp.squeeze", "axis 1", "(3, 2)", "equal to one", advice="dimensions=")
def squeeze():
    return jnp.squeeze(jnp.ones((3, 2)), axis=1)  # <-


@mistake(TypeError, "jnp.transpose", "(0, 1)", "float32[2,3,4]", advice="permutation of operand dimensions")
def transpose():
    return jnp.transpose(jnp.ones((2, 3, 4)), (0, 1))  # <-


@mistake(ValueError, "jnp.broadcast_to", "(3,)", "(2, 4)", advice="equal")
def broadcast_to():
    return jnp.broadcast_to(jnp.ones(3), (2, 4))  # <-


@mistake(ValueError, "jnp.split", "10", "3", "axis 0", advice="array_split")
def split():
    return jnp.split(jnp.arange(10), 3)  # <-


@mistake(TypeError, "lax.add", "(5, 17)", "(17,)", advice="broadcasts")
def lax_does_not_broadcast():
    return lax.add(jnp.ones((5, 17)), jnp.ones(17))  # <-


@mistake(TypeError, "lax.dot_general", "3", "4", "axis 0 of rhs", advice="same shape")
def dot_general():
    return lax.dot_general(jnp.ones((2, 3)), jnp.ones((4, 5)), (((1,), (0,)), ((), ())))  # <-


@mistake(TypeError, "lax.conv_general_dilated", "3", "4", advice="channels")
def convolution_channels():
    image, kernel = jnp.ones((1, 3, 8, 8)), jnp.ones((2, 4, 3, 3))
    return lax.conv_general_dilated(image, kernel, (1, 1), "SAME")  # <-


@mistake(TypeError, "lax.dynamic_slice", "(5,)", "(7,)", advice="less than or equal to operand shape")
def dynamic_slice():
    return lax.dynamic_slice(jnp.ones(5), (0,), (7,))  # <-


@mistake(TypeError, "lax.dynamic_update_slice", "(5,)", "(7,)", advice="smaller than operand shape")
def dynamic_update():
    return lax.dynamic_update_slice(jnp.ones(5), jnp.ones(7), (0,))  # <-


@mistake(ValueError, "at[", "(4,)", "(3,)", advice="broadcast")
def set_of_another_size():
    return jnp.zeros(5).at[:3].set(jnp.ones(4))  # <-


@mistake(ValueError, "jnp.array", "object[0] has shape (2,)", "object[1] has shape (1,)", advice="same length")
def ragged():
    return jnp.array([[1, 2], [3]])  # <-


@mistake(ValueError, "jnp.zeros", "(3, -1)", advice="nonnegative")
def negative_size():
    return jnp.zeros((3, -1))  # <-


@mistake(TypeError, "jnp.ones", "(2.5,)", advice="int")
def size_that_is_no_int():
    return jnp.ones((2.5,))  # <-


@mistake(TypeError, "jnp.zeros", "4", advice="put the sizes into one tuple")
def sizes_without_brackets():
    return jnp.zeros(3, 4)  # <-


@mistake(TypeError, "jnp.outer", "'a'", advice="float(text)")
def outer_of_a_text():
    return jnp.outer(jnp.ones(3), "a")  # <-


@mistake(ValueError, "jnp.convolve", "(2, 3)", advice="1-dimensional")
def convolve():
    return jnp.convolve(jnp.ones((2, 3)), jnp.ones(3))  # <-


@mistake(ValueError, "nn.dot_product_attention",
         "8", "16", advice="must be")
def attention_heads():
    q, k = jnp.ones((1, 4, 2, 8)), jnp.ones((1, 4, 2, 16))
    return jax.nn.dot_product_attention(q, k, k)  # <-


@mistake(ValueError, "nn.softmax", "axis 3", advice="-2 <= axis < 2")
def softmax_axis():
    return jax.nn.softmax(jnp.ones((2, 3)), axis=3)  # <-
