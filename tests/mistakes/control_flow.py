"""Loops and branches whose functions do not fit them."""
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax


@mistake(TypeError, "lax.fori_loop", "(i, val)", "takes 1 positional argument but 2", advice="lambda i, val")
def body_without_the_index():
    return lax.fori_loop(0, 3, lambda c: c, 1.0)  # <-


@mistake(TypeError, "lax.fori_loop of step", "The input carry x is a leaf", "a tuple of length 2",
         advice="returns the new value alone")
def body_of_a_scan_in_a_loop():
    def step(carry, x):
        return carry + x, x
    return lax.fori_loop(0, 3, step, 1.0)  # <-


@mistake(TypeError, "lax.fori_loop", "upper", "3.5", advice="int(3.5)")
def bound_that_is_a_float():
    return lax.fori_loop(0, 3.5, lambda i, c: c, 1.0)  # <-


@mistake(TypeError, "lax.fori_loop", "upper", "int32[3]", advice="give a Python int")
def bounds_that_are_arrays():
    return lax.fori_loop(0, jnp.arange(3), lambda i, c: c, 1.0)  # <-


@mistake(ValueError, "lax.fori_loop", "dynamic start/stop", advice="static_argnums")
def gradient_of_a_loop_of_unknown_length():
    def power(x, n):
        return lax.fori_loop(0, n, lambda i, c: c * x, 1.0)
    return jax.jit(jax.grad(power))(2.0, 3)  # <-


@mistake(ValueError, "lax.while_loop", "number of iterations", advice="forward mode")
def gradient_of_a_while_loop():
    def newton(x):
        return lax.while_loop(lambda y: y * y > x, lambda y: y / 2, x)
    return jax.grad(newton)(2.0)  # <-


@mistake(TypeError, "lax.scan of step", "c has type float32[3]", "has type float32[4]", advice="return it as y")
def carry_of_another_shape():
    def step(c, x):
        return jnp.append(c, x), None
    return lax.scan(step, jnp.zeros(3), jnp.ones(4))  # <-


@mistake(TypeError, "lax.scan of step", "state['mean'] has type bfloat16[]", "has type float32[]",
         advice="start with init['mean'] of dtype float32")
def carry_of_a_state():
    def step(state, x):
        return {"count": state["count"] + 1, "mean": state["mean"] + x}, None
    state = {"count": jnp.zeros((), "int32"), "mean": jnp.zeros((), "bfloat16")}
    return lax.scan(step, state, jnp.ones(4))  # <-


@mistake(TypeError, "lax.scan of step", "carry state is", "a tuple of length 2", "a tuple of length 1",
         advice="Return a carry of the structure")
def carry_that_lost_an_entry():
    def step(state, x):
        h, c = state
        return (h + x,), c
    return lax.scan(step, (0.0, 1.0), jnp.ones(4))  # <-


@mistake(TypeError, "lax.scan of step", "'c'", "'cell'", advice="Return a carry of the structure")
def carry_with_another_key():
    def step(state, x):
        return {"h": state["h"] + x, "cell": state["c"]}, None
    return lax.scan(step, {"h": 0.0, "c": 1.0}, jnp.ones(4))  # <-


@mistake(TypeError, "lax.scan", "pair", "float32[]", advice="Return (carry, y) from <lambda>, with None")
def scan_without_outputs():
    return lax.scan(lambda c, x: c + x, 0.0, jnp.ones(4))  # <-


@mistake(TypeError, "lax.scan", "from step", advice="a tuple for several")
def scan_body_of_three():
    def step(c, x):
        return c + x, x, x
    return lax.scan(step, 0.0, jnp.ones(4))  # <-


@mistake(TypeError, "lax.scan", "got None", "from step", advice="lack a `return`")
def scan_body_that_returns_nothing():
    def step(c, x):
        c + x
    return lax.scan(step, 0.0, jnp.ones(4))  # <-


@mistake(TypeError, "lax.scan calls <lambda> with 2 arguments", "takes 1", advice="two parameters")
def scan_body_of_one_argument():
    return lax.scan(lambda c: (c, None), 0.0, jnp.ones(4))  # <-


@mistake(ValueError, "lax.scan", "xs['x']: 4", "xs['y']: 5", advice="must be equal")
def scan_over_arrays_of_other_lengths():
    def step(c, batch):
        return c + batch["x"] * batch["y"], None
    return lax.scan(step, 0.0, {"x": jnp.ones(4), "y": jnp.ones(5)})  # <-


@mistake(ValueError, "scan", "`length` argument of 5", "xs: 4", advice="leave length out")
def scan_of_another_length():
    return lax.scan(lambda c, x: (c + x, None), 0.0, jnp.ones(4), length=5)  # <-


@mistake(ValueError, "scan", "no values", advice="length=n")
def scan_of_nothing():
    return lax.scan(lambda c, _: (c + 1, None), 0.0, None)  # <-


@mistake(ValueError, "lax.scan", "xs has shape ()", advice="length=5")
def scan_over_a_scalar():
    return lax.scan(lambda c, x: (c + x, None), 0.0, 5)  # <-


@mistake(TypeError, "lax.scan of <lambda>", "argument x", "range", advice="jnp.arange")
def scan_over_a_range():
    return lax.scan(lambda c, x: (c + x, None), 0.0, range(5))  # <-


@mistake(TypeError, "scan", "length", "int32[]", "jit of roll", "argument n", advice="static_argnums")
def scan_length_that_is_traced():
    def roll(n):
        return lax.scan(lambda c, _: (c + 1, c), 0.0, None, length=n)  # <-
    return jax.jit(roll)(5)


@mistake(TypeError, "scan", "length", "'5' of type str", advice="int(...)")
def scan_length_first():
    return lax.scan(lambda c, x: (c, x), 0.0, length="5")  # <-


@mistake(TypeError, "lax.while_loop", "cond_fun", "int32[]", advice="compare the value")
def while_condition_that_is_a_number():
    return lax.while_loop(lambda c: c, lambda c: c - 1, 5)  # <-


@mistake(TypeError, "lax.while_loop", "cond_fun", "bool[3]", advice=".all()")
def while_condition_that_is_an_array():
    return lax.while_loop(lambda c: c < 3, lambda c: c + 1, jnp.zeros(3))  # <-


@mistake(TypeError, "lax.while_loop", "cond_fun", "pytree PyTreeDef((*, *))", advice="one comparison")
def while_condition_that_is_a_pair():
    return lax.while_loop(lambda c: (c < 3, c), lambda c: c + 1, 0.0)  # <-


@mistake(TypeError, "lax.while_loop of body", "state[1] has type float32[3]", "has type float32[1,3]", advice="keeps its shape")
def while_body_that_widens():
    def body(state):
        i, x = state
        return i + 1, x[None]
    return lax.while_loop(lambda s: s[0] < 3, body, (0, jnp.ones(3)))  # <-


@mistake(TypeError, "lax.while_loop", "with 1 argument", "missing 1", advice="one parameter")
def while_functions_of_two_arguments():
    return lax.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x), (0, 1.0))  # <-


@mistake(TypeError, "lax.while_loop", "a tuple of length 2", "a leaf",
         advice="Return a carry of the structure that init_val has")
def while_body_that_loses_the_counter():
    return lax.while_loop(lambda s: s[0] < 3, lambda s: s[1], (0, 1.0))  # <-


@mistake(TypeError, "lax.cond", "true_fun has type float32[]", "false_fun has type int32[]", advice=".astype(...)")
def branches_of_other_dtypes():
    return lax.cond(True, lambda x: x, lambda x: x.astype(int), 1.0)  # <-


@mistake(TypeError, "lax.cond", "true_fun has type float32[]", "false_fun has type float32[3]", advice="broadcast")
def branches_of_other_shapes():
    return lax.cond(True, lambda x: x.sum(), lambda x: x, jnp.ones(3))  # <-


@mistake(TypeError, "lax.cond", "true_fun is yes at", "false_fun is no at", "'aux'", advice="Return the same structure")
def branches_of_other_structures():
    def yes(x):
        return {"loss": x, "aux": x}
    def no(x):
        return {"loss": x}
    return jax.jit(lambda x: lax.cond(x > 0, yes, no, x))(1.0)  # <-


@mistake(TypeError, "lax.cond", "false_fun output is None", advice="lack a `return`")
def branch_that_forgets_to_return():
    def no(x):
        x + 1
    return lax.cond(True, lambda x: x, no, 1.0)  # <-


@mistake(TypeError, "lax.cond", "bool[3]", advice="jnp.where")
def predicate_that_is_an_array():
    x = jnp.arange(3)
    return lax.cond(x > 1, lambda x: x, lambda x: -x, x)  # <-


@mistake(TypeError, "lax.cond", "'train'", advice="give a bool")
def predicate_that_is_a_text():
    return lax.cond("train", lambda x: x, lambda x: -x, 1.0)  # <-


@mistake(TypeError, "lax.cond", "float32[]", "callable", advice="jnp.where(pred, a, b)")
def values_for_branches():
    x = jnp.float32(1)
    return lax.cond(x > 0, x, -x)  # <-


@mistake(TypeError, "lax.cond calls <lambda> with 1 argument", "takes 0", advice="one parameter for each operand")
def branches_that_take_no_operand():
    return lax.cond(True, lambda: 1.0, lambda: 2.0, 3.0)  # <-


@mistake(TypeError, "lax.cond", "1.0 and 2.0", advice="lax.cond(pred, f, g, x)")
def branch_called_already():
    def f(x):
        return x
    return lax.cond(True, f(1.0), f(2.0), 1.0)  # <-


@mistake(TypeError, "lax.switch", "must be an integer", "1.0", advice=".astype(int)")
def switch_by_a_float():
    return lax.switch(1.0, [lambda x: x, lambda x: -x], 1.0)  # <-


@mistake(TypeError, "lax.switch", "int32[2]", advice="vmap")
def switch_by_a_vector():
    return lax.switch(jnp.arange(2), [lambda x: x, lambda x: -x], 1.0)  # <-


@mistake(ValueError, "lax.switch", "Empty", advice="at least one function")
def switch_of_no_branches():
    return lax.switch(0, [], 1.0)  # <-


@mistake(TypeError, "lax.switch", "branch 0 has type float32[]", "branch2 has type bool[]", advice=".astype(...)")
def switch_branches_that_differ():
    return lax.switch(0, [lambda x: x, lambda x: -x, lambda x: x > 0], 1.0)  # <-


@mistake(TypeError, "lax.switch", "the function <lambda>", advice="into one list")
def switch_over_one_function():
    return lax.switch(0, lambda x: x, 1.0)  # <-


@mistake(TypeError, "lax.switch", "the function <lambda>", advice="into one list")
def switch_with_branches_as_arguments():
    return lax.switch(0, lambda x: x, lambda x: -x, 1.0)  # <-


@mistake(TypeError, "lax.select", "float32[3]", "float32[4]", advice="reshape or broadcast")
def select_of_other_shapes():
    return lax.select(jnp.ones(3) > 0, jnp.ones(3), jnp.ones(4))  # <-


@mistake(ValueError, "lax.map", "xs[0]: 3", "xs[1]: 4", advice="slice the longer one to 3")
def map_over_other_lengths():
    return lax.map(lambda ab: ab[0] + ab[1], (jnp.ones(3), jnp.ones(4)))  # <-


@mistake(TypeError, "lax.map calls <lambda> with 1 argument", "'b'", advice="lambda ab")
def map_of_a_pair():
    return lax.map(lambda a, b: a + b, (jnp.ones(3), jnp.ones(3)))  # <-


@mistake(ValueError, "lax.map", "xs has shape ()", advice="[None]")
def map_of_a_scalar():
    return lax.map(lambda a: a, 3.0)  # <-


@mistake(ValueError, "lax.map", "batch_size", "-1", advice="positive")
def map_batch_size():
    return lax.map(lambda a: a, jnp.ones(3), batch_size=-1)  # <-


@mistake(TypeError, "lax.associative_scan", "(2,)", "()", advice="whole arrays")
def associative_scan_of_another_shape():
    return lax.associative_scan(lambda a, b: (a + b).sum(), jnp.ones(4))  # <-


@mistake(ValueError, "associative_scan", "(4,)", "(5,)", "axis 0", advice="one size")
def associative_scan_of_other_lengths():
    return lax.associative_scan(lambda a, b: (a[0] + b[0], a[1] + b[1]), (jnp.ones(4), jnp.ones(5)))  # <-


@mistake(TypeError, "lax.associative_scan", "float32[4]", advice="lax.associative_scan(fn, elems)")
def associative_scan_of_a_value():
    return lax.associative_scan(jnp.ones(4), jnp.ones(4))  # <-


@mistake(ValueError, "lax.associative_scan", "at a", "a tuple of length 2", "a leaf", advice="must return the structure")
def associative_scan_structure():
    return lax.associative_scan(lambda a, b: a[0] + b[0], (jnp.ones(4), jnp.ones(4)))  # <-


@mistake(TypeError, "checkpoint", "0.84", advice="pass the function itself")
def checkpoint_of_a_value():
    return jax.checkpoint(jnp.sin(1.0))(1.0)  # <-


@mistake(TypeError, "bool(train", "checkpoint of f", advice="static_argnums")
def checkpoint_static():
    def f(x, train):
        return x if train else -x  # <-
    return jax.checkpoint(f)(1.0, True)


@mistake(TypeError, "bool", "lax.fori_loop of body", advice="lax.cond")
def if_in_a_loop():
    def body(i, c):
        if i > 1:  # <-
            return c
        return c + 1
    return lax.fori_loop(0, 3, body, 0)


@mistake(TypeError, "index(i: int32[])", "lax.fori_loop of <lambda>", advice="jnp array rather than a list")
def list_in_a_loop():
    xs = [1.0, 2.0, 3.0]
    return lax.fori_loop(0, 3, lambda i, c: c + xs[i], 0.0)  # <-


@mistake(IndexError, "(xs: float32[3])[:int32[]]", "its stop", advice="lax.dynamic_slice_in_dim")
def slice_in_a_loop():
    xs = jnp.ones(3)
    return lax.fori_loop(0, 3, lambda i, c: c + xs[:i].sum(), 0.0)  # <-


@mistake(TypeError, "lax.fori_loop", "carry c is", "a tuple of length 2", advice="returns the new value alone")
def loop_in_a_gradient():
    def f(x):
        return lax.fori_loop(0, 3, lambda i, c: (c, x), x)  # <-
    return jax.jit(jax.grad(f))(1.0)


@mistake(TypeError, "lax.scan", "c has type float32[]", "has type int32[]", advice="start with init of dtype int32")
def scan_under_vmap():
    def f(x):
        return lax.scan(lambda c, _: (c.astype(int), None), x, length=3)  # <-
    return jax.vmap(f)(jnp.ones(4))


@mistake(TypeError, "lax.scan of <lambda>", "c['name']", "str", advice="close over")
def carry_that_holds_text():
    return lax.scan(lambda c, x: (c, x), {"name": "adam", "h": 0.0}, jnp.ones(3))  # <-


@mistake(TypeError, "lax.scan", "output component [1]", "str", advice="return arrays")
def output_that_is_text():
    return lax.scan(lambda c, x: (c, "hello"), 0.0, jnp.ones(3))  # <-


@mistake(TypeError, "lax.fori_loop of body", "The input carry x is a leaf", "None", advice="lack a `return`")
def body_that_leaves_none():
    def body(i, x):
        x.at[i].set(1.0)
    return lax.fori_loop(0, 3, body, jnp.zeros(3))  # <-


@mistake(TypeError, "lax.scan", "callable", "0.0", advice="lax.scan(f, init, xs)")
def scan_arguments_swapped():
    return lax.scan(0.0, lambda c, x: (c, x), jnp.ones(3))  # <-


@mistake(TypeError, "lax.fori_loop", "body_fun", "got 3", advice="(lower, upper, body_fun, init_val)")
def fori_arguments_swapped():
    return lax.fori_loop(lambda i, c: c, 0, 3, 1.0)  # <-


@mistake(TypeError, "lax.while_loop", "k has type key<fry>[]", "has type key<fry>[2]", advice="keeps its shape")
def while_key_carry():
    return lax.while_loop(lambda k: True, lambda k: jax.random.split(k), jax.random.key(0))  # <-


@mistake(TypeError, "lax.scan", "key<fry>[]", "uint32[2]", advice="keeps its shape")
def scan_key_to_raw():
    return lax.scan(lambda k, x: (jax.random.key_data(k), x), jax.random.key(0), jnp.ones(3))  # <-


@mistake(ValueError, "lax.scan", "unroll", "-1", advice="`bool` or a non-negative `int`")
def scan_unroll():
    return lax.scan(lambda c, x: (c, x), 0.0, jnp.ones(3), unroll=-1)  # <-


@mistake(TypeError, "lax.while_loop", "carry c[1] is", "None", advice="Return a carry")
def while_carry_none():
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.ones(3)), (0, None))  # <-


@mistake(ValueError, "lax.custom_linear_solve", "matvec", "float32[2]", advice="output shapes must match b")
def product_of_another_shape():
    return lax.custom_linear_solve(lambda x: x[:2], jnp.ones(3), lambda f, b: b)  # <-


@mistake(TypeError, "transpose_solve", advice="symmetric=True")
def gradient_of_a_system_without_the_transposed_solver():
    def loss(b):
        return lax.custom_linear_solve(lambda x: 2 * x, b, lambda f, b: b / 2).sum()
    return jax.grad(loss)(jnp.ones(3))  # <-


@mistake(TypeError, "lax.custom_root", "int32", advice="1.0 for 1")
def root_that_starts_at_an_int():
    return lax.custom_root(lambda x: x * x - 2, 1, lambda f, x: x, lambda g, y: y / g(1.0))  # <-


@mistake(TypeError, "lax.custom_root", "tangent_solve", "a tuple of length 2", advice="structure must match initial_guess")
def tangent_solver_that_returns_a_pair():
    def root(a):
        return lax.custom_root(lambda x: x - a, 1.0, lambda f, x: x, lambda g, y: (y, y))  # <-
    return jax.grad(root)(2.0)


@mistake(NotImplementedError, "lax.platform_dependent", "no function for platform cpu", "tpu", advice="default=")
def platform_without_a_function():
    return lax.platform_dependent(jnp.ones(3), tpu=jnp.sin)  # <-


@mistake(TypeError, "lax.platform_dependent", "cpu= is sin", "output of default= has type float32[]", advice="Cast")
def platforms_that_do_not_agree():
    return lax.platform_dependent(jnp.ones(3), cpu=jnp.sin, default=jnp.sum)  # <-


@mistake(ValueError, "lax.composite", "'gelu'", advice="my_namespace.my_op")
def composite_without_a_name_space():
    return jax.jit(lax.composite(jnp.sin, "gelu"))(1.0)  # <-


@mistake(TypeError, "lax.while_loop", "max_steps must be a Python int", "int32[]", advice="when the program is traced")
def steps_that_are_traced():
    @jax.jit
    def run(n):
        return lax.while_loop(lambda c: c < n, lambda c: c + 1, 0, max_steps=n)  # <-
    return run(3)


@mistake(ValueError, "lax.fori_loop", "from 0 to 9 needs 9 steps", advice="max_steps=5")
def range_longer_than_max_steps():
    return lax.fori_loop(0, 9, lambda i, c: c + i, 0, max_steps=5)  # <-
