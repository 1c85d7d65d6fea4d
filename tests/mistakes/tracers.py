"""Values that are not known while tracing, used as if they were."""
import math

import numpy as np
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import errors, lax


@mistake(errors.TracerBoolConversionError, "bool(", "bool[]", "computed at", "jit of sign", advice="jnp.where or lax.cond")
def branching():
    def sign(x):
        if x > 0:  # <-
            return 1
        return -1
    return jax.jit(sign)(2.0)


@mistake(errors.TracerBoolConversionError, "bool(", "flag: bool[]", "jit of f", advice="static_argnums")
def branching_on_an_argument():
    def f(x, flag):
        return x if flag else -x  # <-
    return jax.jit(f)(1.0, True)


@mistake(errors.TracerBoolConversionError, "bool(", "jit of f", advice="&")
def logic():
    def f(x):
        return (x > 0) and (x < 1)  # <-
    return jax.jit(f)(0.5)


@mistake(errors.TracerBoolConversionError, "bool(", "scan", advice="lax.while_loop")
def branching_in_a_scan():
    def body(c, x):
        while c < 10:  # <-
            c = c + x
        return c, c
    return lax.scan(body, 0.0, jnp.ones(3))


@mistake(errors.TracerIntegerConversionError, "index(", "n: int32[]", advice="static_argnums")
def range_of_a_tracer():
    def power(x, n):
        for _ in range(n):  # <-
            x = x * x
        return x
    return jax.jit(power)(2.0, 3)


@mistake(errors.TracerIntegerConversionError, "index(", "i: int32[]", advice="jnp array")
def index_into_a_list():
    table = [1.0, 2.0, 3.0]
    return jax.jit(lambda i: table[i])(1)  # <-


@mistake(TypeError, "jnp.zeros", "n", advice="static_argnums")
def shape_from_a_tracer():
    def f(n):
        return jnp.zeros((n, 2))  # <-
    return jax.jit(f)(3)


@mistake(TypeError, "reshape", "n", advice="static_argnums")
def reshape_to_a_tracer():
    def f(x, n):
        return x.reshape(n, -1)  # <-
    return jax.jit(f)(jnp.ones(6), 2)


@mistake(TypeError, "jnp.arange", "int32[]", advice="static_argnums")
def arange_of_a_tracer():
    def f(n):
        return jnp.arange(n)  # <-
    return jax.jit(f)(3)


@mistake(errors.TracerArrayConversionError, "array(", "x: float32[3]", advice="hlotrace.numpy")
def numpy_on_a_tracer():
    def f(x):
        return np.sin(x)  # <-
    return jax.jit(f)(jnp.ones(3))


@mistake(errors.ConcretizationTypeError, "float(", "x: float32[]", advice="Keep")
def float_of_a_tracer():
    def f(x):
        return math.sqrt(x)  # <-
    return jax.jit(f)(2.0)


@mistake(errors.ConcretizationTypeError, "int(", "x: float32[]", advice="astype(int)")
def int_of_a_tracer():
    def f(x):
        return int(x) + 1  # <-
    return jax.jit(f)(2.0)


@mistake(errors.ConcretizationTypeError, "item", "x: float32[]", advice="debug.print")
def item_of_a_tracer():
    def f(x):
        return x.item()  # <-
    return jax.jit(f)(2.0)


@mistake(errors.ConcretizationTypeError, "tolist", "x: float32[3]", advice="debug.print")
def tolist_of_a_tracer():
    def f(x):
        return sum(x.tolist())  # <-
    return jax.jit(f)(jnp.ones(3))


@mistake(errors.NonConcreteBooleanIndexError, "(x: float32[3])[bool[3]]", "jit of f", advice="jnp.where")
def boolean_mask():
    def f(x):
        return x[x > 0].sum()  # <-
    return jax.jit(f)(jnp.ones(3))


@mistake(errors.ConcretizationTypeError, "jnp.nonzero", "float32[3]", advice="size=")
def nonzero():
    def f(x):
        return jnp.nonzero(x)[0]  # <-
    return jax.jit(f)(jnp.ones(3))


@mistake(errors.ConcretizationTypeError, "jnp.unique", "float32[3]", advice="size=")
def unique():
    def f(x):
        return jnp.unique(x)  # <-
    return jax.jit(f)(jnp.ones(3))


@mistake(errors.ConcretizationTypeError, "jnp.where", "bool[3]", advice="size=")
def where_with_one_argument():
    def f(x):
        return jnp.where(x > 0)  # <-
    return jax.jit(f)(jnp.ones(3))


@mistake(errors.ConcretizationTypeError, "jnp.repeat", "int32[3]", advice="total_repeat_length")
def repeat_by_a_tracer():
    def f(x, n):
        return jnp.repeat(x, n)  # <-
    return jax.jit(f)(jnp.ones(3), jnp.arange(3))


@mistake(errors.ConcretizationTypeError, "jnp.bincount", "int32[3]", advice="length=")
def bincount():
    def f(x):
        return jnp.bincount(x)  # <-
    return jax.jit(f)(jnp.arange(3))


@mistake(IndexError, "(x: float32[5])[", "its start is a traced int32[]", "argument start", advice="lax.dynamic_slice")
def slice_from_a_tracer():
    def f(x, start):
        return x[start:start + 2]  # <-
    return jax.jit(f)(jnp.ones(5), 1)


@mistake(errors.UnexpectedTracerError, "float32[]", "jit of leak", advice="Return it")
def leaked_through_a_list():
    kept = []

    def leak(x):
        kept.append(x * 2)
        return x
    jax.jit(leak)(1.0)
    return kept[0] + 1  # <-


@mistake(errors.UnexpectedTracerError, "float32[]", "scan", advice="Return it")
def leaked_from_a_scan():
    last = {}

    def body(c, x):
        last["c"] = c
        return c + x, None
    lax.scan(body, 0.0, jnp.ones(3))
    return last["c"] * 2  # <-


@mistake(errors.ConcretizationTypeError, "axis", "int32[]", "jnp.sum", advice="static_argnums")
def axis_from_a_tracer():
    def f(x, axis):
        return jnp.sum(x, axis=axis)  # <-
    return jax.jit(f)(jnp.ones((2, 3)), 0)


@mistake(ValueError, "bool(", "bool[3]", advice="a.any() or a.all()")
def truth_of_an_array():
    x = jnp.ones(3)
    if x == 1.0:  # <-
        return x


@mistake(TypeError, "float(", "float32[3]", advice="x[0]")
def float_of_an_array():
    x = jnp.ones(3)
    return float(x)  # <-


@mistake(TypeError, "index(", "float32[]", advice="astype(int)")
def index_that_is_a_float():
    i = jnp.float32(1)
    return [1, 2, 3][i]  # <-


@mistake(TypeError, "len(", "float32[]", advice="axes")
def length_of_a_scalar():
    x = jnp.float32(1)
    return len(x)  # <-


@mistake(TypeError, "iter", "float32[]", advice="no axis to take apart")
def unpacking_a_scalar():
    a, b = jnp.float32(1)  # <-
    return a + b


@mistake(
    errors.UnexpectedTracerError, "seen[0]: float32[]", "vmap of keep", "keep at", advice="Return it instead"
)
def leak_from_vmap():
    seen = []

    def keep(x):
        seen.append(x)
        return x
    jax.vmap(keep)(jnp.ones(3))
    return seen[0] + 1  # <-


@mistake(
    errors.UnexpectedTracerError, "seen[0]: float32[]", "grad of keep", "keep at", advice="Return it instead"
)
def leak_from_grad():
    seen = []

    def keep(x):
        seen.append(x * 2)
        return x
    jax.grad(keep)(1.0)
    return seen[0] + 1  # <-
