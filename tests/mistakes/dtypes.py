"""Dtypes that do not exist, do not fit, or cannot hold what is given."""
import numpy as np
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import errors, lax


@mistake(TypeError, "jnp.zeros", "'float23'", advice="did you mean 'float32'?")
def name_that_is_no_dtype():
    return jnp.zeros(3, "float23")  # <-


@mistake(TypeError, "Array.astype", "x: float32[3]", "'flaot16'", advice="did you mean 'float16'?")
def cast_to_what_is_no_dtype():
    x = jnp.ones(3)
    return x.astype("flaot16")  # <-


@mistake(TypeError, "nn.one_hot", "'folat32'", "int32[3]", advice="did you mean 'float32'?")
def one_hot_of_no_dtype():
    return jax.nn.one_hot(jnp.arange(3), 3, dtype="folat32")  # <-


@mistake(TypeError, "jnp.asarray", "object", advice="give numbers")
def array_of_objects():
    column = np.array([1, "a"], object)
    return jnp.asarray(column)  # <-


@mistake(ValueError, "jnp.array", "None", advice="jnp.nan")
def array_with_none():
    return jnp.array([1.0, None, 3.0])  # <-


@mistake(TypeError, "jnp.array", "generator", advice="jnp.array(list(x))")
def array_of_a_generator():
    return jnp.array(i * i for i in range(3))  # <-


@mistake(TypeError, "jnp.asarray", "datetime64[D]", advice="subtract a start")
def array_of_dates():
    days = np.array(["2020-01-01"], "datetime64[D]")
    return jnp.asarray(days)  # <-


@mistake(TypeError, "jnp.array", "('a', '<i8')", advice="x['name']")
def array_of_records():
    rows = np.array([(1, 2.0)], [("a", "<i8"), ("b", "<f8")])
    return jnp.array(rows)  # <-


@mistake(TypeError, "jnp.sin", "'str'", "position 0", advice="float(text)")
def sine_of_text():
    return jnp.sin("1.0")  # <-


@mistake(TypeError, "jnp.dot", "NoneType", "x: float32[3]", "position 1", advice="return")
def product_with_what_was_not_returned():
    def weights():
        jnp.ones(3)
    x = jnp.ones(3)
    return jnp.dot(x, weights())  # <-


@mistake(TypeError, "jnp.where", "<class 'dict'>", "position 2", advice="jax.tree.map")
def choice_of_a_dict():
    params = {"w": jnp.ones(3)}
    return jnp.where(params["w"] > 0, params["w"], params)  # <-


@mistake(TypeError, "jnp.exp", "function", "position 0", advice="call it")
def exponential_of_a_function():
    return jnp.exp(jnp.ones)  # <-


@mistake(TypeError, "+", "'str'", "x: float32[3]", advice="float(...)")
def adding_text():
    x = jnp.ones(3)
    return x + "1.0"  # <-


@mistake(TypeError, "*", "'NoneType'", "x: float32[3]", advice="default None")
def multiplying_none():
    def scaled(x, scale=None):
        return x * scale  # <-
    return jax.jit(scaled)(jnp.ones(3))


@mistake(TypeError, "@", "'list'", "x: float32[3]", advice="jnp.array(...)")
def product_with_a_list():
    x = jnp.ones(3)
    return x @ [1.0, 2.0, 3.0]  # <-


@mistake(TypeError, "<", "'NoneType'", "loss: float32[]", advice="return nothing")
def comparing_with_none():
    best, loss = None, jnp.float32(1)
    return loss < best  # <-


@mistake(TypeError, "&", "float32", "x: float32[3]", advice="x > 0")
def bits_of_floats():
    def f(x):
        return x & (x > 0)  # <-
    return jax.jit(f)(jnp.ones(3))


@mistake(TypeError, "~", "float32", advice="compare first")
def opposite_of_a_float_mask():
    mask = jnp.ones(3)
    return ~mask  # <-


@mistake(TypeError, "-", "bool", "mask: bool[2]", advice="~x")
def negative_of_a_mask():
    mask = jnp.array([True, False])
    return -mask  # <-


@mistake(TypeError, "-", "bool", "a: bool[2]", advice="x ^ y")
def difference_of_masks():
    a = jnp.array([True, False])
    return a - a  # <-


@mistake(TypeError, "(x: float32[4])[", "float32", advice="//")
def index_by_a_quotient():
    x = jnp.arange(4.0)
    return x[len(x) / 2]  # <-


@mistake(TypeError, "(x: float32[4])[", "float32", advice=".astype(int)")
def index_by_floats():
    def f(x, i):
        return x[i]  # <-
    return jax.vmap(f, in_axes=(None, 0))(jnp.arange(4.0), jnp.ones(2))


@mistake(TypeError, "(x: float32[3])['w']", advice="arrays in a dict")
def index_by_a_name():
    x = jnp.ones(3)
    return x["w"]  # <-


@mistake(TypeError, "(x: float32[3])[[0, 1]]", advice="wrap the list in jnp.array")
def index_by_a_list():
    x = jnp.ones(3)
    return x[[0, 1]]  # <-


@mistake(ValueError, "jnp.take", "float32", advice=".astype(int)")
def take_by_floats():
    return jnp.take(jnp.ones(3), jnp.ones(2))  # <-


@mistake(TypeError, "grad", "int32", "x of loss", advice="x.astype(float)")
def gradient_by_an_int():
    def loss(x):
        return x ** 2
    return jax.grad(loss)(3)  # <-


@mistake(TypeError, "grad", "int32", "errors", advice=".astype(float)")
def gradient_of_a_count():
    def errors(w):
        return jnp.sum(w > 0)
    return jax.grad(errors)(jnp.ones(3))  # <-


@mistake(TypeError, "grad", "complex64", "f", advice="holomorphic=True")
def gradient_of_a_complex_result():
    def f(x):
        return x * 1j
    return jax.grad(f)(1.0)  # <-


@mistake(TypeError, "lax.add", "float32", "int32", "x: float32[3]", advice=".astype(dtype)")
def lax_does_not_promote():
    x, n = jnp.ones(3), jnp.arange(3)
    return lax.add(x, n)  # <-


@mistake(TypeError, "lax.sqrt", "int32", advice=".astype(float)")
def root_of_an_int():
    return lax.sqrt(jnp.arange(3))  # <-


@mistake(TypeError, "jnp.floor", "complex64", advice=".real")
def rounding_a_complex_number():
    return jnp.floor(jnp.ones(3) * 1j)  # <-


@mistake(TypeError, "lax.cond", "int32[]", "float32[]", "true_fun", advice="Cast")
def branches_of_two_dtypes():
    return lax.cond(True, lambda: jnp.int32(1), lambda: jnp.float32(1.5))  # <-


@mistake(TypeError, "lax.conv_general_dilated", "float32", "int32", advice=".astype")
def convolution_of_two_dtypes():
    image, kernel = jnp.ones((1, 3, 8, 8)), jnp.ones((2, 3, 3, 3), int)
    return lax.conv_general_dilated(image, kernel, (1, 1), "SAME")  # <-


@mistake(OverflowError, "300", "uint8", "0 to 255", advice="int32")
def number_that_does_not_fit():
    return jnp.uint8(300)  # <-


@mistake(OverflowError, "jnp.array", "1099511627776", "int32", advice="jax_enable_x64")
def number_of_64_bits():
    return jnp.array([2**40])  # <-


@mistake(TypeError, "**", "int32[3]", "-1", advice="floating-point base")
def negative_power_of_an_int():
    return jnp.arange(3) ** -1  # <-


@mistake(errors.TypePromotionError, "+", "float8_e4m3fn", "float8_e5m2", advice=".astype(dtype)")
def small_floats():
    return jnp.ones(3, "float8_e4m3fn") + jnp.ones(3, "float8_e5m2")  # <-


@mistake(errors.TypePromotionError, "+", "float32", "int32", "x: float32[3]", advice=".astype(dtype)")
def strict_promotion():
    x = jnp.ones(3)
    with jax.numpy_dtype_promotion("strict"):
        return x + jnp.arange(3)  # <-


@mistake(ValueError, "Array.view", "float32", "complex64", "96 bits", advice="64")
def view_of_another_size():
    return jnp.ones(3).view("complex64")  # <-


@mistake(TypeError, ".at[0].set", "'a'", advice="expected an array")
def set_to_text():
    return jnp.zeros(3).at[0].set("a")  # <-


@mistake(ValueError, "jnp.gcd", "float32", advice=".astype(int)")
def divisor_of_floats():
    return jnp.gcd(jnp.ones(3), 2)  # <-


@mistake(TypeError, "jnp.eye", "'3'", advice="must be an int")
def size_that_is_text():
    return jnp.eye("3")  # <-
