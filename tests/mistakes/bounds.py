"""Indices that are out of bounds, too many or of the wrong kind."""
import numpy as np
from mistakes import CHECKED, mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax


@mistake(IndexError, "(x: int32[10])[10]", "index 10", "axis 0 with size 10", advice="mode=", **CHECKED)
def read_past_the_end():
    x = jnp.arange(10)
    return x[10]  # <-


@mistake(IndexError, "(x: float32[3,10])[:, -11]", "axis 1 with size 10", advice="mode=", **CHECKED)
def read_before_the_start():
    x = jnp.ones((3, 10))
    return x[:, -11]  # <-


@mistake(IndexError, "(x: float32[5])[5]", "axis 0 with size 5", advice="mode=", **CHECKED)
def read_under_jit():
    def last(x):
        return x[5]  # <-
    return jax.jit(last)(jnp.ones(5))


@mistake(IndexError, "(w: float32[3])[3]", "size 3", "from -3 to 2", advice="mode=", **CHECKED)
def read_under_grad_and_vmap():
    def loss(w):
        return w[3] ** 2  # <-
    return jax.vmap(jax.grad(loss))(jnp.ones((4, 3)))


@mistake(IndexError, "(x: float32[2])[2]", "size 2", advice="mode=", **CHECKED)
def read_in_a_scan():
    def step(c, x):
        return c + x[2], None  # <-
    return lax.scan(step, 0.0, jnp.ones((4, 2)))


@mistake(IndexError, "(x: float32[10]).at[10].set", "axis 0 with size 10", advice="drop", **CHECKED)
def write_past_the_end():
    x = jnp.zeros(10)
    return x.at[10].set(1.0)  # <-


@mistake(IndexError, "(x: float32[2,3]).at[0, 3].add", "axis 1 with size 3", advice="drop", **CHECKED)
def add_past_the_end():
    x = jnp.zeros((2, 3))
    return jax.jit(lambda x: x.at[0, 3].add(1.0))(x)  # <-


@mistake(IndexError, ".at[-5].get", "size 4", advice="fill", **CHECKED)
def get_past_the_end():
    return jnp.zeros(4).at[-5].get()  # <-


@mistake(IndexError, "(x: float32[0])[0]", "size 0", advice="an empty axis")
def read_of_an_empty_array():
    x = jnp.zeros(0)
    return x[0]  # <-


@mistake(IndexError, "(x: float32[3,0])[:, -1]", "axis 1 with size 0", advice="an empty axis")
def last_of_an_empty_array():
    x = jnp.zeros((3, 0))
    return x[:, -1]  # <-


@mistake(IndexError, "(x: float32[2,3])[0, 1, 2]", "2-dimensional", "3 were indexed", advice="leave out 1")
def too_many_indices():
    x = jnp.ones((2, 3))
    return x[0, 1, 2]  # <-


@mistake(IndexError, "(loss: float32[])[0]", "0-dimensional", advice="float(x)")
def index_of_a_scalar():
    loss = jnp.float32(1)
    return loss[0]  # <-


@mistake(IndexError, "(x: float32[2,3,4])[..., 0, ...]", "single ellipsis", advice="write ':'")
def two_ellipses():
    x = jnp.ones((2, 3, 4))
    return x[..., 0, ...]  # <-


@mistake(TypeError, "(x: int32[10])[5.0]", "float32", advice="int(i)")
def float_index():
    x = jnp.arange(10)
    return x[len(x) / 2]  # <-


@mistake(TypeError, "(x: int32[10])", "float32[2]", advice=".astype(int)")
def float_array_index():
    x = jnp.arange(10)
    return x[jnp.array([1.0, 2.0])]  # <-


@mistake(TypeError, "(x: int32[10])['loss']", "'loss'", advice="dict")
def text_index():
    x = jnp.arange(10)
    return x["loss"]  # <-


@mistake(TypeError, "(x: int32[10])[[0, 1]]", "sequence", advice="jnp.array")
def list_index():
    x = jnp.arange(10)
    return x[[0, 1]]  # <-


@mistake(TypeError, "(x: int32[10])[:5.0]", "stop", "5.0", advice="int(...)")
def float_slice():
    x = jnp.arange(10)
    return x[:len(x) / 2]  # <-


@mistake(ValueError, "(x: int32[10])[::0]", "zero", advice="-1 to reverse")
def slice_of_no_step():
    x = jnp.arange(10)
    return x[::0]  # <-


@mistake(IndexError, "(x: int32[10])[mask: bool[9]]", "got 9", "expected 10", advice="sizes of the axes")
def mask_of_another_size():
    x, mask = jnp.arange(10), np.ones(9, bool)
    return x[mask]  # <-


@mistake(IndexError, "(x: float32[3])[bool[3]]", "jit of positive", advice="jnp.where(mask, x, y)")
def traced_mask():
    def positive(x):
        return x[x > 0]  # <-
    return jax.jit(positive)(jnp.ones(3))


@mistake(IndexError, "(x: float32[3])[:int32[]]", "its stop", advice="lax.dynamic_slice_in_dim")
def traced_slice():
    def head(x, n):
        return x[:n]  # <-
    return jax.jit(head)(jnp.ones(3), 2)


@mistake(ValueError, "(x: float32[4,5])[int32[2], int32[3]]", "(2,)", "(3,)", advice="must be equal")
def index_arrays_of_other_shapes():
    x = jnp.ones((4, 5))
    return x[jnp.array([0, 1]), jnp.array([0, 1, 2])]  # <-


@mistake(TypeError, "__setitem__", "x: float32[3]", "immutable", "assignment", advice="x.at[idx].set(y)")
def assignment():
    x = jnp.zeros(3)
    x[0] = 1.0  # <-


@mistake(TypeError, "__setitem__", "x: float32[3]", "immutable", advice=".add")
def augmented_assignment():
    x = jnp.zeros(3)
    x[0] += 1.0  # <-


@mistake(ValueError, "unpack", "expected 2, got 3", "float32[3,2]", "axis 0", advice="transpose")
def unpacking_too_many():
    a, b = jnp.ones((3, 2))  # <-
    return a, b


@mistake(ValueError, "unpack", "expected 3, got 2", "float32[2]", advice="axis 0")
def unpacking_too_few():
    def f(x):
        a, b, c = x  # <-
        return a + b + c
    return jax.jit(f)(jnp.ones(2))


@mistake(TypeError, "iteration", "0-d", "float32[]", advice="no axis to take apart")
def unpacking_a_scalar():
    a, b = jnp.float32(1)  # <-
    return a, b


@mistake(ValueError, "(x: float32[4,3]).at[0].set(float32[4])", "(4,)", "(3,)", advice="broadcast")
def set_of_a_row_that_does_not_fit():
    x = jnp.zeros((4, 3))
    return x.at[0].set(jnp.ones(4))  # <-


@mistake(ValueError, "lax.dynamic_slice", "(3, 4)", "(1 vs (3, 4))",
         advice="must match number of operand dimensions")
def dynamic_slice_sizes():
    return lax.dynamic_slice(jnp.ones((3, 4)), (0,), (2, 2))  # <-


@mistake(TypeError, "lax.dynamic_slice", "axis 1", "5 for axis 1", "size 4", advice="it may be 0 to 4")
def dynamic_slice_too_large():
    x = jnp.ones((3, 4))
    return lax.dynamic_slice(x, (0, 0), (2, 5))  # <-


@mistake(TypeError, "lax.dynamic_slice", "float32", advice=".astype(int)")
def dynamic_slice_float_start():
    return lax.dynamic_slice(jnp.ones(3), (0.5,), (2,))  # <-


@mistake(TypeError, "lax.dynamic_slice", "n: int32[]", "argument n", advice="static_argnums")
def dynamic_slice_traced_size():
    def f(x, n):
        return lax.dynamic_slice(x, (0,), (n,))  # <-
    return jax.jit(f)(jnp.ones(3), 2)


@mistake(TypeError, "lax.slice", "limit_indices (4,)", "operand shape (3,)", advice="less than or equal")
def slice_past_the_end():
    return lax.slice(jnp.ones(3), (0,), (4,))  # <-


@mistake(TypeError, "lax.slice_in_dim", "start_indices (2,)", "limit_indices (1,)",
         advice="greater than or equal to start_indices")
def slice_in_dim_backwards():
    return lax.slice_in_dim(jnp.ones(3), 2, 1)  # <-


@mistake(ValueError, "lax.slice_in_dim", "axis 1", "dimension 1", advice="-1 <= axis < 1")
def slice_in_dim_axis():
    return lax.slice_in_dim(jnp.ones(3), 0, 1, axis=1)  # <-


@mistake(IndexError, "lax.index_in_dim", "index 3", "size 3", advice="axis 0")
def index_in_dim_past():
    return lax.index_in_dim(jnp.ones(3), 3)  # <-


@mistake(ValueError, "jnp.take", "float32", advice=".astype(int)")
def take_by_floats():
    return jnp.take(jnp.arange(3), jnp.array([0.0, 1.0]))  # <-


@mistake(ValueError, "jnp.take", "axis 2", "dimension 2", advice="-2 <= axis < 2")
def take_along_another_axis():
    return jnp.take(jnp.ones((3, 4)), jnp.array([0]), axis=2)  # <-


@mistake(ValueError, "jnp.take", "'clamp'", advice="'fill', 'clip' or 'wrap'")
def take_in_unknown_mode():
    return jnp.take(jnp.arange(3), jnp.array([5]), mode="clamp")  # <-


@mistake(ValueError, "jnp.take_along_axis", "float32[3,4]", "int32[2]", "1 vs. 2", advice="indices[..., None]")
def take_along_axis_rank():
    return jnp.take_along_axis(jnp.ones((3, 4)), jnp.array([0, 1]), axis=1)  # <-


@mistake(ValueError, ".at[5].set", "'ignore'", advice="'drop'")
def at_in_unknown_mode():
    return jnp.zeros(3).at[5].set(1.0, mode="ignore")  # <-


@mistake(IndexError, "(x: int32[3])[3]", "size 3", advice="mode=", **CHECKED)
def concrete_index_in_numpy():
    x, i = jnp.arange(3), 3
    return x[i]  # <-


@mistake(IndexError, "jnp.delete", "index 3", "size 3", advice="ints from -3 to 2")
def delete_past_the_end():
    return jnp.delete(jnp.arange(3), 3)  # <-


@mistake(TypeError, "(x: float32[3]).at[1.0].set", "float32", advice="int(i)")
def one_hot_float():
    x = jnp.ones(3)
    return x.at[1.0].set(2)  # <-


@mistake(ValueError, "jnp.ravel_multi_index", "3", "(3, 2)", advice="mode='clip'")
def unravel_past():
    return jnp.ravel_multi_index((jnp.array([3]), jnp.array([0])), (3, 2))  # <-


@mistake(TypeError, "(params['w']: float32[3])['b']", "'b'", advice="dict")
def tuple_key_dict():
    params = {"w": jnp.ones(3)}
    return params["w"]["b"]  # <-
