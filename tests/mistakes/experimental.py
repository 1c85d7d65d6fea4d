"""Functions of `experimental`, called with what does not fit."""
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.experimental import rnn, sparse
from hlotrace.experimental.compute_on import compute_on
from hlotrace.experimental.custom_partitioning import custom_partitioning
from hlotrace.experimental.jet import jet
from hlotrace.experimental.layout import Format, Layout, with_layout_constraint
from hlotrace.experimental.ode import odeint
from hlotrace.experimental.serialize_executable import deserialize_and_load, serialize


@mistake(ValueError, "jet", "of one length", "1, 2", advice="fill the shorter ones")
def series_of_two_lengths():
    jet(jnp.multiply, (1.0, 2.0), ([1.0], [1.0, 0.0]))  # <-


@mistake(TypeError, "jet", "primals[0]", "int32[]", advice="make it a float")
def series_of_an_integer():
    jet(jnp.sin, (3,), ([1.0, 0.0],))  # <-


@mistake(TypeError, "jet", "primals", "1.0", advice="write (primals,)")
def primal_alone():
    jet(jnp.sin, 1.0, [1.0, 0.0])  # <-


@mistake(ValueError, "Pure callbacks do not support JVP", advice="custom_jvp")
def series_through_a_callback():
    def host(x):
        return jax.pure_callback(abs, x, x)  # <-
    jet(host, (jnp.float32(1),), ([1.0],))


@mistake(TypeError, "odeint", "t must be an array of floats", "[0.0, 1.0]", advice="write jnp.array(")
def times_in_a_list():
    odeint(lambda y, t: -y, 1.0, [0.0, 1.0])  # <-


@mistake(TypeError, "odeint", "y0['n']", "3", advice="an array of floats")
def state_of_integers():
    odeint(lambda y, t: y, {"x": 1.0, "n": 3}, jnp.array([0.0, 1.0]))  # <-


@mistake(ValueError, "odeint", "shape (2,)", "y0 has ()", advice="the shape of the state")
def rate_of_another_shape():
    odeint(lambda y, t: jnp.ones(2), 1.0, jnp.array([0.0, 1.0]))  # <-


@mistake(ValueError, "device_put", "(0, 2)", "shape (2, 3)", advice="each of them once")
def array_by_columns():
    x = jnp.ones((2, 3))
    jax.device_put(x, Format(Layout((0, 2)), x.sharding))  # <-


@mistake(ValueError, "with_layout_constraint", "(1, 2)", "shape (2, 3)", advice="each of them once")
def layout_that_counts_from_one():
    with_layout_constraint(jnp.ones((2, 3)), Layout((1, 2)))  # <-


@mistake(ValueError, "compute_on", "compute type", "cpu", advice="`device_host`")
def computed_on_the_cpu():
    compute_on(jnp.sin, compute_type="cpu", out_memory_spaces="device")  # <-


@mistake(TypeError, "serialize", "not a compiled function", advice="jit(f).lower(...).compile()")
def bytes_of_a_function_that_is_not_compiled():
    serialize(jax.jit(jnp.sin))  # <-


@mistake(ValueError, "deserialize_and_load", "not the bytes", advice="serialize")
def program_of_other_bytes():
    deserialize_and_load(b"GIF89a", None, None)  # <-


@mistake(ValueError, "def_partition", "no -> in rule", "'i j'", advice="->")
def sharding_rule_without_results():
    custom_partitioning(jnp.sin).def_partition(None, sharding_rule="i j")  # <-


@mistake(NotImplementedError, "custom_partitioning", "not implemented", advice="Differentiation rule for")
def gradient_of_parts():
    f = custom_partitioning(jnp.sin)
    f.def_partition(lambda mesh, args, result: None, sharding_rule="... -> ...")
    jax.grad(f)(1.0)  # <-


@mistake(NotImplementedError, "add", "(2, 2)", "()", advice="explicitly cast")
def sparse_array_made_dense_by_a_number():
    sparse.eye(2) + 1  # <-


@mistake(ValueError, "BCOO.reshape", "(2, 2)", "(5,)", "size 4", advice="size 5")
def sparse_array_of_another_size():
    sparse.eye(2).reshape(5)  # <-


@mistake(ValueError, "bcoo_concatenate", "matching batch dimensions", "0 and 1", advice="bcoo_update_layout")
def sparse_arrays_of_two_layouts():
    sparse.bcoo_concatenate([sparse.eye(2), sparse.eye(2, n_batch=1)], dimension=0)  # <-


@mistake(NotImplementedError, "sparse rule for cos", "BCOO", advice="sparse.todense()")
def cosine_of_a_sparse_array():
    sparse.sparsify(jnp.cos)(sparse.eye(2))  # <-


@mistake(ValueError, "unpack_lstm_weights", "(83,)", "(84,)", advice="get_num_params_in_lstm")
def weights_that_are_too_few():
    rnn.unpack_lstm_weights(jnp.zeros(83), 2, 3, 1, False)  # <-


@mistake(TypeError, "jnp.dot", "BCOO(float32[3, 3], nse=3)", advice="It is sparse: use x @ y")
def sparse_array_for_a_dense_one():
    return jnp.dot(sparse.BCOO.fromdense(jnp.eye(3)), jnp.ones(3))  # <-


@mistake(TypeError, "lax.sin", "BCOO(float32[3, 3], nse=3)", advice="sparse.sparsify(function)")
def sparse_array_in_lax():
    return jax.lax.sin(sparse.BCOO.fromdense(jnp.eye(3)))  # <-
