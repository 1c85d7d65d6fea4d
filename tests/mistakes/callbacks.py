"""Callbacks whose results, formats and functions do not fit."""
import numpy as np
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp


def like(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype)


@mistake(ValueError, "pure_callback", "callback host", "shape (2,)", "declares (3,)", advice="reshape what it returns")
def result_of_another_shape():
    def host(x):
        return x[:2]
    return jax.pure_callback(host, like(3), jnp.ones(3)).block_until_ready()  # <-


@mistake(ValueError, "callback host", "shape ()", "declares (3,)", advice="reshape what it returns")
def result_of_another_shape_under_jit():
    def host(x):
        return x.sum()
    f = jax.jit(lambda x: jax.pure_callback(host, like(3), x))
    return f(jnp.ones(3)).block_until_ready()  # <-


@mistake(ValueError, "callback host", "int32", "float32", advice="np.asarray(result, dtype='float32')")
def result_of_another_dtype():
    def host(x):
        return np.asarray(x, "int32")
    return jax.pure_callback(host, like(3), jnp.ones(3)).block_until_ready()  # <-


@mistake(ValueError, "callback host", "returned has None", advice="lack a `return`")
def result_that_is_missing():
    def host(x):
        np.sin(x)
    return jax.jit(lambda x: jax.pure_callback(host, like(3), x))(jnp.ones(3)).block_until_ready()  # <-


@mistake(ValueError, "callback host", "length 2", "length 3", advice="declare what is returned")
def result_of_one_more():
    def host(x):
        return x, x, x
    return jax.jit(lambda x: jax.pure_callback(host, (like(3), like(3)), x))(jnp.ones(3))[0].block_until_ready()  # <-


@mistake(TypeError, "callback <lambda>", "str", "float32[3]", advice="np.asarray")
def result_that_is_text():
    return jax.jit(lambda x: jax.pure_callback(lambda x: "hello", like(3), x))(jnp.ones(3)).block_until_ready()  # <-


@mistake(ValueError, "callback host", "result['all']", "(3,)", "(4,)", advice="reshape")
def result_in_a_dict_of_another_shape():
    def host(x):
        return {"mean": x.mean(), "all": x}
    f = jax.jit(lambda x: jax.pure_callback(host, {"mean": like(), "all": like(4)}, x))
    return f(jnp.ones(3))["all"].block_until_ready()  # <-


@mistake(TypeError, "pure_callback", "result_shape_dtypes", "3", advice="jax.ShapeDtypeStruct((3,), jnp.float32)")
def declared_by_a_shape():
    return jax.pure_callback(np.sin, (3,), jnp.ones(3))  # <-


@mistake(TypeError, "pure_callback", "result_shape_dtypes", "float32", advice="jax.ShapeDtypeStruct((3,), jnp.float32)")
def declared_by_a_dtype():
    return jax.pure_callback(np.sin, jnp.float32, jnp.ones(3))  # <-


@mistake(TypeError, "pure_callback", "sin is called with the 0 arguments", advice="come after result_shape_dtypes")
def declaration_left_out():
    return jax.pure_callback(np.sin, jnp.ones(3))  # <-


@mistake(ValueError, "pure_callback", "float64", advice="jax_enable_x64")
def declared_in_double_precision():
    return jax.pure_callback(np.sin, np.zeros(3), jnp.ones(3))  # <-


@mistake(TypeError, "pure_callback", "array([0.84", advice="the function itself")
def callback_called_already():
    x = jnp.ones(3)
    return jax.pure_callback(np.sin(x), like(3), x)  # <-


@mistake(TypeError, "pure_callback", "ShapeDtypeStruct(shape=(3,)", advice="the function itself")
def declaration_first():
    return jax.pure_callback(like(3), np.sin, jnp.ones(3))  # <-


@mistake(ValueError, "pure_callback", "JVP", advice="custom_jvp")
def gradient_of_a_callback():
    def f(x):
        return jax.pure_callback(np.sin, like(), x)  # <-
    return jax.grad(f)(1.0)


@mistake(ValueError, "io_callback", "JVP", advice="custom_jvp")
def jvp_of_an_io_callback():
    def f(x):
        return jax.experimental.io_callback(np.sin, like(), x)  # <-
    return jax.jvp(f, (1.0,), (1.0,))


@mistake(NotImplementedError, "pure_callback", "sin", advice="vmap_method='sequential'")
def mapped_callback():
    def f(x):
        return jax.pure_callback(np.sin, like(), x)  # <-
    return jax.vmap(f)(jnp.ones(3))


@mistake(ValueError, "io_callback", "ordered", advice="lax.map")
def mapped_ordered_callback():
    def f(x):
        return jax.experimental.io_callback(np.sin, like(), x, ordered=True)  # <-
    return jax.vmap(f)(jnp.ones(3))


@mistake(ValueError, "pure_callback", "vmap_method", "'loop'", advice="'sequential'")
def mapping_that_is_not_there():
    return jax.pure_callback(np.sin, like(3), jnp.ones(3), vmap_method="loop")  # <-


@mistake(ValueError, "callback <lambda>", "()", "(3,)", advice="axis in front")
def mapped_result_without_the_axis():
    def f(x):
        return jax.pure_callback(lambda x: np.float32(x.sum()), like(), x, vmap_method="expand_dims")  # <-
    return jax.vmap(f)(jnp.ones(3)).block_until_ready()


@mistake(KeyError, "b", advice="b")
def callback_that_fails():
    def host(x):
        return {"a": 1}["b"]  # <-
    return jax.jit(lambda x: jax.pure_callback(host, like(3), x))(jnp.ones(3)).block_until_ready()


@mistake(ZeroDivisionError, "division", advice="zero")
def callback_that_fails_in_a_loop():
    def host(i):
        return np.float32(1 // (2 - int(i)))  # <-
    def body(i, c):
        return c + jax.pure_callback(host, like(), i)
    return jax.lax.fori_loop(0, 4, body, 0.0).block_until_ready()


@mistake(FileNotFoundError, "/there/is", advice="No such file")
def io_callback_that_fails():
    def log(x):
        open("/there/is/no/such/folder/log.txt")  # <-
    jax.jit(lambda x: jax.experimental.io_callback(log, None, x, ordered=True))(jnp.ones(3))
    jax.effects_barrier()


@mistake(TypeError, "unsupported operand", "float32", advice="makes a number of text")
def debug_callback_that_fails():
    def log(x):
        return x + "a"  # <-
    jax.jit(lambda x: jax.debug.callback(log, x))(jnp.ones(3))
    jax.effects_barrier()


@mistake(TypeError, "pure_callback", "host is called with the 2 arguments", "takes 1",
         advice="come after result_shape_dtypes")
def callback_of_too_few_arguments():
    def host(x):
        return x
    return jax.jit(lambda x, y: jax.pure_callback(host, like(3), x, y))(jnp.ones(3), jnp.ones(3)).block_until_ready()  # <-


@mistake(ValueError, "debug.print", "y: float32[]", "Unused positional arguments", advice="an f-string would")
def print_of_an_f_string():
    def f(x):
        y = x + 1
        jax.debug.print(f"loss {y}", y)  # <-
    jax.jit(f)(1.0)


@mistake(ValueError, "debug.print", "Unused positional arguments", "'loss'", advice="'x = {}'")
def print_like_pythons():
    jax.debug.print("loss", jnp.ones(3))  # <-


@mistake(IndexError, "debug.print", "'{} {}'", "1 positional value", advice="one for each {}")
def print_of_too_few():
    jax.debug.print("{} {}", jnp.ones(3))  # <-


@mistake(KeyError, "debug.print", "'loss'", "['losses']", advice="did you mean 'losses'")
def print_of_a_name():
    jax.debug.print("loss {loss}", losses=jnp.ones(3))  # <-


@mistake(TypeError, "debug.print", "float32[3]", advice="debug.print('{}', x)")
def print_of_a_value():
    jax.debug.print(jnp.ones(3))  # <-


@mistake(ValueError, "debug.print", "'loss %s'", "Unused positional arguments", advice="'x = {}'")
def print_with_percent():
    jax.debug.print("loss %s", jnp.ones(3))  # <-


@mistake(ValueError, "debug.print", "'loss {'", advice="twice")
def print_with_a_broken_format():
    jax.debug.print("loss {", jnp.ones(3))  # <-


@mistake(ValueError, "debug.print", "'loss {:.2q}'", "'q'", advice="does not fit")
def print_with_a_wrong_spec():
    jax.debug.print("loss {:.2q}", 1.0)  # <-
    jax.effects_barrier()


@mistake(TypeError, "debug.print", "'.2f'", "float32[3]", advice="print it with {}")
def print_array_with_spec():
    jax.debug.print("loss {:.2f}", jnp.ones(3))  # <-
    jax.effects_barrier()


@mistake(TypeError, "debug.callback", "'loss'", advice="the function itself")
def debug_callback_of_no_function():
    jax.debug.callback("loss", jnp.ones(3))  # <-


@mistake(ValueError, "io_callback", "print", "returned has None", advice="declared by None")
def io_callback_without_declaration():
    jax.experimental.io_callback(print, jnp.ones(3))  # <-


@mistake(TypeError, "pure_callback of <lambda>", "how", "str", advice="close over")
def argument_that_is_text():
    return jax.pure_callback(lambda x, how: x, like(3), jnp.ones(3), "sum")  # <-


@mistake(ValueError, "lax.scan", "callback <lambda>", "(2,)", "()", advice="reshape")
def callback_in_a_scan():
    def step(c, x):
        return c + jax.pure_callback(lambda x: np.ones(2, "float32"), like(), x), None
    return jax.lax.scan(step, 0.0, jnp.ones(3))[0].block_until_ready()  # <-


@mistake(TypeError, "NumPy", "x: float32[]", "jit of f", advice="hlotrace.numpy")
def numpy_on_a_tracer():
    def f(x):
        return np.sin(x)  # <-
    return jax.jit(f)(1.0)
