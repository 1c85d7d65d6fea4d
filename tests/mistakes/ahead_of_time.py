"""Programs lowered and compiled ahead of time, and called otherwise."""
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp


def spec(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype)

def predict(params, x):
    return x @ params["w"] + params["b"]

PARAMS = {"w": jnp.ones((3, 2)), "b": jnp.ones(2)}

def compiled():
    return jax.jit(predict).lower(PARAMS, jnp.ones((4, 3))).compile()


@mistake(TypeError, "Compiled", "x: compiled for float32[4,3], called with float32[5,3]", advice="compile again")
def called_with_another_batch():
    model = compiled()
    return model(PARAMS, jnp.ones((5, 3)))  # <-


@mistake(TypeError, "Compiled", "x: compiled for float32[4,3], called with int32[4,3]", advice="convert")
def called_with_another_dtype():
    model = compiled()
    return model(PARAMS, jnp.ones((4, 3), "int32"))  # <-


@mistake(TypeError, "Compiled", "params['b']: compiled for float32[2], called with float32[3]", advice="compile again")
def called_with_other_params():
    model = compiled()
    return model({"w": jnp.ones((3, 2)), "b": jnp.ones(3)}, jnp.ones((4, 3)))  # <-


@mistake(TypeError, "predict", "at params", "2 keys", "3 keys", "only called has 'c'", advice="lower again")
def called_with_a_key_more():
    model = compiled()
    return model({**PARAMS, "c": 1.0}, jnp.ones((4, 3)))  # <-


@mistake(TypeError, "predict", "2 positional arguments", "1 positional argument", advice="as it was given to lower")
def called_with_one_argument_less():
    model = compiled()
    return model(PARAMS)  # <-


@mistake(TypeError, "predict", "2 positional arguments", "x by keyword", advice="as it was given to lower")
def called_by_keyword():
    model = compiled()
    return model(PARAMS, x=jnp.ones((4, 3)))  # <-


@mistake(TypeError, "predict", "argument x", "str", advice="expected an array")
def called_with_a_text():
    model = compiled()
    return model(PARAMS, "x")  # <-


@mistake(TypeError, "Compiled", "x: compiled for float32[], called with int32[]", advice="convert")
def called_with_a_weak_number():
    f = jax.jit(lambda x: x + 1).lower(spec()).compile()
    return f(1)  # <-


@mistake(TypeError, "sin", "Tracer", advice="Transform and trace sin itself")
def called_under_a_transformation():
    f = jax.jit(jnp.sin).lower(spec()).compile()
    return jax.grad(f)(1.0)  # <-


@mistake(TypeError, "sin", "x: float32[3]", "Tracer", advice="Transform and trace sin itself")
def called_under_jit():
    f = jax.jit(jnp.sin).lower(spec(3)).compile()
    return jax.jit(lambda x: f(x))(jnp.ones(3))  # <-


@mistake(TypeError, "sin", "Tracer", advice="Transform and trace sin itself")
def called_under_vmap():
    f = jax.jit(jnp.sin).lower(spec()).compile()
    return jax.vmap(f)(jnp.ones(3))  # <-


@mistake(TypeError, "f: compiled for", "1 positional argument", "2 positional arguments",
         advice="static arguments are not given again")
def called_with_statics():
    def f(x, n):
        return x * n
    g = jax.jit(f, static_argnums=1).lower(spec(3), 2).compile()
    return g(jnp.ones(3), 2)  # <-


@mistake(TypeError, "jit of sin", "x[1]", "str", advice="expected an array")
def lowered_with_a_shape():
    return jax.jit(jnp.sin).lower((3, "float32"))  # <-


@mistake(TypeError, "f()", "missing", advice="'x'")
def lowered_with_nothing():
    def f(x):
        return x
    return jax.jit(f).lower()  # <-


@mistake(TypeError, "jit of sin", "argument x", advice="jax.ShapeDtypeStruct(shape, dtype)")
def lowered_with_a_dtype():
    return jax.jit(jnp.sin).lower(jnp.float32)  # <-


@mistake(TypeError, "sin", "ShapeDtypeStruct", "position 0", advice="jax.eval_shape")
def spec_is_computed_with():
    return jnp.sin(spec(3))  # <-


@mistake(TypeError, "jit of sin", "argument x", "ShapeDtypeStruct", advice="jnp.zeros")
def spec_is_given_to_jit():
    return jax.jit(jnp.sin)(spec(3))  # <-


@mistake(TypeError, "ShapeDtypeStruct", "missing", advice="'dtype'")
def spec_without_dtype():
    return jax.ShapeDtypeStruct((3,))  # <-


@mistake(ValueError, "ShapeDtypeStruct", "None", "(3,)", advice="jnp.float32")
def spec_with_a_dtype_of_none():
    return jax.ShapeDtypeStruct((3,), None)  # <-


@mistake(TypeError, "ShapeDtypeStruct", "shape", "got 3", advice="jax.ShapeDtypeStruct((3,), jnp.float32)")
def spec_with_an_int_shape():
    return jax.ShapeDtypeStruct(3, jnp.float32)  # <-


@mistake(TypeError, "ShapeDtypeStruct", "'float31'", advice="jnp.float32")
def spec_with_unknown_dtype():
    return jax.ShapeDtypeStruct((3,), "float31")  # <-


@mistake(TypeError, "ShapeDtypeStruct", "shape", "'float32'", advice="jax.ShapeDtypeStruct((3,), jnp.float32)")
def spec_swapped():
    return jax.ShapeDtypeStruct("float32", (3,))  # <-


@mistake(TypeError, "(x: float32[3,4]) @ (y: float32[5,6])", "size 4", "size 5", advice="must be equal")
def shapes_that_do_not_fit():
    def f(x, y):
        return x @ y  # <-
    return jax.eval_shape(f, spec(3, 4), spec(5, 6))


@mistake(TypeError, "float(x: float32[])", "eval_shape of f", advice="x.astype(float)")
def value_of_a_shape():
    def f(x):
        return x * float(x)  # <-
    return jax.eval_shape(f, spec())


@mistake(TypeError, "eval_shape", "Array(0.84", advice="the function itself")
def eval_shape_of_a_value():
    return jax.eval_shape(jnp.sin(1.0), spec())  # <-


@mistake(TypeError, "eval_shape of <lambda>", "mode", "str", advice="close over")
def eval_shape_of_a_text():
    return jax.eval_shape(lambda x, mode: x, spec(3), "train")  # <-


@mistake(TypeError, "sin", "tuple", "position 0", advice="jnp.array(...)")
def eval_shape_of_a_tuple():
    return jax.eval_shape(jnp.sin, (3, 4))  # <-


@mistake(ValueError, "as_text", "mhlo", advice="stablehlo")
def unknown_dialect():
    return jax.jit(jnp.sin).lower(spec(3)).as_text(dialect="mhlo")  # <-


@mistake(ValueError, "compiler_ir", "tosa", advice="stablehlo")
def unknown_dialect_ir():
    return jax.jit(jnp.sin).lower(spec(3)).compiler_ir("tosa")  # <-


@mistake(ValueError, "Non-hashable static", "argument 1 of f", "list", advice="tuple")
def unhashable_static():
    def f(x, sizes):
        return x
    return jax.jit(f, static_argnums=1).lower(spec(3), [1, 2])  # <-


@mistake(TypeError, "jit of f", "mode", "str", advice="static_argnums")
def traced_with_a_text():
    def f(x, mode):
        return x
    return jax.jit(f).trace(spec(3), "train")  # <-


@mistake(TypeError, "make_jaxpr", "Array(0.84", advice="the function itself")
def make_jaxpr_of_value():
    return jax.make_jaxpr(jnp.sin(1.0))(1.0)  # <-


@mistake(TypeError, "of f", "mode", "str", advice="static_argnums")
def make_jaxpr_text():
    def f(x, mode):
        return x
    return jax.make_jaxpr(f)(1.0, "train")  # <-


@mistake(RuntimeError, "Compiled(x: float32[3])", "donated", "float32[3]", advice="do not donate it")
def donated_twice():
    f = jax.jit(lambda x: x + 1, donate_argnums=0).lower(spec(3)).compile()
    x = jnp.ones(3)
    f(x)
    return f(x)  # <-
