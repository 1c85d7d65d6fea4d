"""Functions of neural networks: heads, masks, classes and initializers that do not fit."""
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import nn

Q = jnp.ones((2, 4, 6, 8))      # batch, length, heads, size of a head
KEY = jax.random.key(0)


@mistake(ValueError, "nn.dot_product_attention", "(4, 6, 8)", "(2, 4, 6, 8)", advice="same number of axes")
def attention_of_three_axes_and_four():
    return nn.dot_product_attention(Q[0], Q, Q)  # <-


@mistake(ValueError, "nn.dot_product_attention", "query", "(1, 4, 8)", advice="(batch, length, heads, head size)")
def attention_of_two_axes():
    return nn.dot_product_attention(jnp.ones((4, 8)), jnp.ones((4, 8)), jnp.ones((4, 8)))  # <-


@mistake(ValueError, "nn.dot_product_attention", "value", "(2, 3, 6, 8)", advice="(2, 4, 6, 8)")
def attention_values_of_another_length():
    return nn.dot_product_attention(Q, Q, Q[:, :3])  # <-


@mistake(ValueError, "nn.dot_product_attention", "key", "(1, 4, 6, 8)", advice="(2, length, heads, 8)")
def attention_batches():
    return nn.dot_product_attention(Q, Q[:1], Q[:1])  # <-


@mistake(ValueError, "nn.dot_product_attention", "6", "4", "axis 2", advice="must be a multiple")
def attention_grouped_heads():
    k = jnp.ones((2, 4, 4, 8))
    return nn.dot_product_attention(Q, k, k)  # <-


@mistake(ValueError, "nn.dot_product_attention", "mask", "float32", advice="mask > 0")
def attention_mask_of_floats():
    return nn.dot_product_attention(Q, Q, Q, mask=jnp.ones((4, 4)))  # <-


@mistake(ValueError, "nn.dot_product_attention", "mask: bool[2,1,4,5]", "(2, 6, 4, 4)",
         advice="(batch, heads, target, source)")
def attention_mask_of_another_size():
    @jax.jit
    def f(q, mask):
        return nn.dot_product_attention(q, q, q, mask=mask)  # <-
    return f(Q, jnp.ones((2, 1, 4, 5)) > 0)


@mistake(ValueError, "nn.dot_product_attention", "(2, 6, 4, 3)", "(2, 6, 4, 4)", advice="broadcast to")
def attention_bias_of_another_size():
    return nn.dot_product_attention(Q, Q, Q, bias=jnp.ones((2, 6, 4, 3)))  # <-


@mistake(ValueError, "nn.dot_product_attention", "flash", advice="'xla'")
def attention_implementation():
    return nn.dot_product_attention(Q, Q, Q, implementation="flash")  # <-


@mistake(ValueError, "nn.dot_product_attention", "float32", "bfloat16", advice=".astype(dtype)")
def attention_types():
    return nn.dot_product_attention(Q, Q.astype("bfloat16"), Q)  # <-


@mistake(ValueError, "nn.dot_product_attention", "key_value_seq_lengths", "(3,)", advice="(batch) = (2)")
def attention_lengths():
    return nn.dot_product_attention(Q, Q, Q, key_value_seq_lengths=jnp.ones(3, "int32"))  # <-


@mistake(ValueError, "nn.dot_product_attention", "local_window_size", "(1, 2, 3)", advice="a pair (left, right)")
def attention_window():
    return nn.dot_product_attention(Q, Q, Q, local_window_size=(1, 2, 3))  # <-


@mistake(TypeError, "nn.one_hot", "num_classes", "3.0", advice="must be an int")
def one_hot_of_a_float_count():
    return nn.one_hot(jnp.arange(3), 3.0)  # <-


@mistake(TypeError, "nn.one_hot()", "'num_classes'", advice="its parameters are x, num_classes")
def one_hot_without_classes():
    return nn.one_hot(jnp.arange(3))  # <-


@mistake(TypeError, "nn.one_hot", "int32[]", "jit of f", advice="must be known when tracing")
def one_hot_of_a_traced_count():
    @jax.jit
    def f(x):
        return nn.one_hot(x, x.max() + 1)  # <-
    return f(jnp.arange(3))


@mistake(ValueError, "nn.one_hot", "axis 3", "int32[3]", advice="-2 <= axis < 2")
def one_hot_axis():
    return nn.one_hot(jnp.arange(3), 4, axis=3)  # <-


@mistake(ValueError, "nn.softmax", "where=bool[4]", "(4,)", "(2, 3)", advice="must be equal")
def softmax_mask():
    return nn.softmax(jnp.ones((2, 3)), where=jnp.ones(4) > 0)  # <-


@mistake(TypeError, "nn.log_softmax", "str", advice="a text is no number")
def softmax_of_a_text():
    return nn.log_softmax("logits")  # <-


@mistake(TypeError, "nn.softmax()", "'dim'", advice="did you mean 'axis'?")
def softmax_of_a_dim():
    return nn.softmax(jnp.ones((2, 3)), dim=1)  # <-


@mistake(AssertionError, "nn.glu", "axis 1", "(2, 3)", advice="divisible by 2")
def glu_of_an_odd_size():
    return nn.glu(jnp.ones((2, 3)))  # <-


@mistake(ValueError, "nn.logsumexp", "(3,)", "(4,)", advice="must be equal")
def logsumexp_weights():
    return nn.logsumexp(jnp.ones(3), b=jnp.ones(4))  # <-


@mistake(ValueError, "nn.standardize", "axis 2", "float32[2,3]", advice="-2 <= axis < 2")
def standardize_axis():
    return nn.standardize(jnp.ones((2, 3)), axis=2)  # <-


@mistake(TypeError, "nn.relu", "list", "position 0", advice="jnp.array(...)")
def relu_of_a_list():
    return nn.relu([1.0, -1.0])  # <-


@mistake(TypeError, "nn.relu", "dict", advice="jax.tree.map")
def relu_of_params():
    return nn.relu({"x": jnp.ones(3)})  # <-


@mistake(ValueError, "1-dimensional", "(128,)", "in_axis", advice="zeros or normal")
def glorot_of_a_bias():
    return nn.initializers.glorot_uniform()(KEY, (128,))  # <-


@mistake(TypeError, "init()", "missing", advice="'shape'")
def he_without_a_key():
    return nn.initializers.he_normal()((128, 64))  # <-


@mistake(TypeError, "0 of type int", "PRNG key", advice="random.key(0)")
def initializer_key_of_a_number():
    return nn.initializers.normal(0.02)(0, (128, 64))  # <-


@mistake(ValueError, "(128,)", "at least 2", advice="zeros or normal")
def initializer_shape_of_a_number():
    return nn.initializers.lecun_normal()(KEY, 128)  # <-


@mistake(ValueError, "'gaussian'", "distribution", advice="'normal' or 'uniform'")
def initializer_distribution():
    return nn.initializers.variance_scaling(1.0, "fan_in", "gaussian")(KEY, (3, 4))  # <-


@mistake(ValueError, "'fan'", "mode", advice="did you mean 'fan_in'")
def initializer_mode():
    return nn.initializers.variance_scaling(1.0, "fan", "normal")(KEY, (3, 4))  # <-


@mistake(ValueError, "normal", "int32", advice="float or complex")
def initializer_dtype():
    return nn.initializers.normal()(KEY, (3, 4), "int32")  # <-


@mistake(ValueError, "orthogonal", "(3,)", advice="use normal or zeros")
def orthogonal_of_a_vector():
    return nn.initializers.orthogonal()(KEY, (3,))  # <-


@mistake(AttributeError, "hlotrace.nn", "leaky_rulu", advice="did you mean 'leaky_relu'")
def activation_misspelt():
    return nn.leaky_rulu(jnp.ones(3))  # <-
