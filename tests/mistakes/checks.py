"""Checks that are not checks, and checks where nobody looks."""
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.config import override
from hlotrace.experimental import checkify


def positive(x):
    checkify.check(x > 0, "not positive: {}", x)
    return x


@mistake(ValueError, "checkify.check", "not functionalized", "jit", advice="write jit(checkify(f))")
def check_that_is_compiled():
    return jax.jit(positive)(1.0)  # <-


@mistake(TypeError, "check", "scalar pred", "bool[3]", advice="jnp.all or jnp.any")
def check_of_an_array():
    x = jnp.arange(3)
    checkify.check(x > 0, "not positive")  # <-


@mistake(TypeError, "check", "format string", "type bool", advice="write check(pred, ")
def check_with_its_arguments_exchanged():
    checkify.check("not positive", True)  # <-


@mistake(TypeError, "check", "PyTrees of arrays", "'x'", advice="write it into the message")
def check_that_shows_a_string():
    checkify.check(True, "not positive: {}", "x")  # <-


@mistake(TypeError, "checkify", "errors must be a set", "nan", advice="checkify.user_checks | checkify.nan_checks")
def errors_by_name():
    return checkify.checkify(positive, errors="nan")  # <-


@mistake(TypeError, "checkify", "callable", "float", advice="pass the function itself")
def checkify_of_a_result():
    return checkify.checkify(positive(1.0))  # <-


@mistake(TypeError, "check_error", "takes an Error", "tuple", advice="error, result = ")
def check_error_of_the_pair():
    checkify.check_error(checkify.checkify(positive)(1.0))  # <-


@mistake(jax.errors.TracerBoolConversionError, "Error.get", "jit of f", "bool[]", advice="lax.cond")
def message_of_an_error_that_is_traced():
    @jax.jit
    def f(x):
        error, y = checkify.checkify(positive)(x)
        return y if error.get() is None else 0.0  # <-
    return f(1.0)


@mistake(IndexError, "x: float32[3]", "index 3", "axis 0", "size 3", advice='mode="fill"')
def index_out_of_bounds():
    x, i = jnp.ones(3), jnp.array(3)
    with override("hlotrace_check_bounds", True):
        return x[i]  # <-


@mistake(FloatingPointError, "log", "nan", "positive_part", advice="jax_debug_nans")
def nan_in_a_compiled_function():
    def positive_part(x):
        return jnp.log(x)
    with jax.debug_nans(True):
        return jax.jit(lambda x: positive_part(x) * 2)(-1.0)  # <-
