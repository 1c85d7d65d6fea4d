"""Functions of lax: dimension numbers, windows, starts and sizes that do not go together."""
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

IMAGES, KERNEL = jnp.ones((2, 3, 8, 8)), jnp.ones((16, 3, 3, 3))


@mistake(TypeError, "lax.conv", "2 and 4", "(8, 8)", "KERNEL: float32[16,3,3,3]", advice="to be equal")
def conv_of_two_axes():
    return lax.conv(jnp.ones((8, 8)), KERNEL, (1, 1), "SAME")  # <-


@mistake(ValueError, "lax.conv", "window_strides", "(1,)", advice="each of the 2 spatial axes")
def conv_of_one_stride():
    return lax.conv(IMAGES, KERNEL, (1,), "SAME")  # <-


@mistake(TypeError, "lax.conv_general_dilated", "window_strides", "got 1", advice="one for each axis")
def conv_stride_as_a_number():
    return lax.conv_general_dilated(IMAGES, KERNEL, 1, "SAME")  # <-


@mistake(ValueError, "lax.conv_general_dilated", "window_strides", "(0, 1)", advice="positive")
def conv_stride_zero():
    return lax.conv_general_dilated(IMAGES, KERNEL, (0, 1), "SAME")  # <-


@mistake(RuntimeError, "lax.conv_general_dilated", "padding", "'SMAE'", advice="did you mean 'SAME'")
def conv_padding_misspelt():
    return lax.conv_general_dilated(IMAGES, KERNEL, (1, 1), "SMAE")  # <-


@mistake(ValueError, "lax.conv_general_dilated", "padding=1", advice="(low, high) pairs")
def conv_padding_as_in_another_library():
    return lax.conv_general_dilated(IMAGES, KERNEL, (1, 1), padding=1)  # <-


@mistake(ValueError, "lax.conv_general_dilated", "padding", "2 and 1", advice="same number")
def conv_padding_of_one_axis():
    return lax.conv_general_dilated(IMAGES, KERNEL, (1, 1), [(1, 1)])  # <-


@mistake(ValueError, "lax.conv_general_dilated", "padding", "[1, 1]", advice="(low, high) pairs")
def conv_padding_of_numbers():
    return lax.conv_general_dilated(IMAGES, KERNEL, (1, 1), [1, 1])  # <-


@mistake(TypeError, "lax.conv", "float32", "float16", advice=".astype")
def conv_of_different_types():
    return lax.conv(IMAGES, KERNEL.astype("float16"), (1, 1), "SAME")  # <-


@mistake(TypeError, "lax.conv_general_dilated", "x: float32[2,8,8,3]", "8 channels", "takes 3", advice="dimension_numbers")
def conv_in_another_layout():
    x = jnp.ones((2, 8, 8, 3))

    @jax.jit
    def net(x):
        return lax.conv_general_dilated(x, KERNEL, (1, 1), "SAME")  # <-
    return net(x)


@mistake(TypeError, "lax.conv_general_dilated", "'NCHV'", "spatial", advice="('NHWC', 'HWIO', 'NHWC')")
def conv_dimension_numbers_of_a_wrong_letter():
    return lax.conv_general_dilated(IMAGES, KERNEL, (1, 1), "SAME", dimension_numbers=("NCHV", "OIHW", "NCHW"))  # <-


@mistake(TypeError, "lax.conv_general_dilated", "'NHC'", "(2, 3, 8, 8)", advice="len equal to the ndim")
def conv_dimension_numbers_of_a_wrong_length():
    return lax.conv_general_dilated(IMAGES, KERNEL, (1, 1), "SAME", dimension_numbers=("NHC", "OIH", "NHC"))  # <-


@mistake(ValueError, "lax.conv_general_dilated", "feature_group_count", "2 does not divide 3",
         advice="each group takes as many")
def conv_groups():
    return lax.conv_general_dilated(IMAGES, KERNEL, (1, 1), "SAME", feature_group_count=2)  # <-


@mistake(ValueError, "lax.conv_general_dilated", "5 is not a multiple of 2", "rhs output", advice="each group gives as many")
def conv_groups_of_outputs():
    x, kernel = jnp.ones((2, 4, 8, 8)), jnp.ones((5, 2, 3, 3))
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", feature_group_count=2)  # <-


@mistake(TypeError, "lax.conv_general_dilated", "image: float32[3,8,8]", "3 and 4", advice="image[None]")
def conv_one_image():
    def net(image):
        return lax.conv_general_dilated(image, KERNEL, (1, 1), "SAME").sum()  # <-
    return jax.vmap(jax.grad(net))(jnp.ones((2, 3, 8, 8)))


@mistake(TypeError, "lax.dot_general", "((1,), (0,))", advice="((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))")
def dot_general_of_one_tuple():
    return lax.dot_general(jnp.ones((2, 3)), jnp.ones((3, 4)), ((1,), (0,)))  # <-


@mistake(TypeError, "lax.dot_general", "lhs_contracting of (2,)", "(2, 3)", advice="0 to 1")
def dot_general_of_an_axis_that_is_not_there():
    return lax.dot_general(jnp.ones((2, 3)), jnp.ones((3, 4)), (((2,), (0,)), ((), ())))  # <-


@mistake(TypeError, "lax.dot_general", "lhs contracting", "(0, 0)", advice="once")
def dot_general_of_an_axis_twice():
    return lax.dot_general(jnp.ones((3, 3)), jnp.ones((3, 3)), (((0, 0), (0, 1)), ((), ())))  # <-


@mistake(TypeError, "lax.dot_general", "(2,) and (5,)", "axis 0 of lhs", advice="same shape")
def dot_general_of_different_batches():
    return lax.dot_general(jnp.ones((2, 3, 4)), jnp.ones((5, 4, 3)), (((2,), (1,)), ((0,), (0,))))  # <-


@mistake(TypeError, "lax.dot_general", "(0, 1) and (0,)", advice="in pairs")
def dot_general_of_different_numbers_of_axes():
    return lax.dot_general(jnp.ones((2, 3)), jnp.ones((3, 4)), (((0, 1), (0,)), ((), ())))  # <-


@mistake(TypeError, "lax.gather", "Offset dimension 0", "got 3", advice="should have been in [0, 2)")
def gather_offset_dims():
    numbers = lax.GatherDimensionNumbers(offset_dims=(3,), collapsed_slice_dims=(0,), start_index_map=(0,))
    return lax.gather(jnp.ones((5, 4)), jnp.zeros((2, 1), "int32"), numbers, (1, 4))  # <-


@mistake(TypeError, "lax.gather", "got 7", "index 1", "(5, 4)", advice="must be within")
def gather_slice_sizes():
    numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    return lax.gather(jnp.ones((5, 4)), jnp.zeros((2, 1), "int32"), numbers, (1, 7))  # <-


@mistake(ValueError, "lax.gather", "float32[2,1]", advice=".astype(int)")
def gather_indices_of_floats():
    numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    return lax.gather(jnp.ones((5, 4)), jnp.zeros((2, 1)), numbers, (1, 4))  # <-


@mistake(TypeError, "lax.gather", "start_index_map", "indices is 3", advice="numbers must be equal")
def gather_index_vector():
    numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    return lax.gather(jnp.ones((5, 4)), jnp.zeros((2, 3), "int32"), numbers, (1, 4))  # <-


@mistake(TypeError, "lax.scatter_add", "updates bound is 3", "is 2", advice="must be the same")
def scatter_updates():
    numbers = lax.ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,),
                                          scatter_dims_to_operand_dims=(0,))
    return lax.scatter_add(jnp.ones((5, 4)), jnp.zeros((2, 1), "int32"), jnp.ones((3, 4)), numbers)  # <-


@mistake(TypeError, "lax.scatter", "float32, int32", advice=".astype")
def scatter_of_different_types():
    numbers = lax.ScatterDimensionNumbers(update_window_dims=(), inserted_window_dims=(0,),
                                          scatter_dims_to_operand_dims=(0,))
    return lax.scatter(jnp.ones(5), jnp.zeros((2, 1), "int32"), jnp.ones(2, "int32"), numbers)  # <-


@mistake(TypeError, "lax.reduce_window", "(2, 2)", "(2, 3, 8, 8)", advice="one for each axis")
def reduce_window_of_one_axis():
    return lax.reduce_window(IMAGES, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID")  # <-


@mistake(TypeError, "lax.reduce_window", "window_strides (2, 2)",
         advice="inconsistent window_strides and window_dimensions")
def reduce_window_strides():
    return lax.reduce_window(IMAGES, -jnp.inf, lax.max, (1, 1, 2, 2), (2, 2), "VALID")  # <-


@mistake(ValueError, "reduce_window", "(3,)", "initial value", advice="scalar")
def reduce_window_init():
    return lax.reduce_window(IMAGES, jnp.zeros(3), lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")  # <-


@mistake(TypeError, "lax.reduce_window", "float32[3]", "computation", advice="lax.max")
def reduce_window_of_no_function():
    return lax.reduce_window(IMAGES, 0.0, jnp.ones(3), (1, 1, 2, 2), (1, 1, 2, 2), "VALID")  # <-


@mistake(ValueError, "lax.reduce", "axis 2", advice="-2 <= dimensions < 2")
def reduce_axis():
    return lax.reduce(jnp.ones((2, 3)), 0.0, lax.add, (2,))  # <-


@mistake(ValueError, "lax.sort", "dimension 2", "float32[2,3]", advice="-2 <= dimension < 2")
def sort_axis():
    return lax.sort(jnp.ones((2, 3)), dimension=2)  # <-


@mistake(TypeError, "lax.sort", "(3,)", "(4,)", advice="must have equal shapes")
def sort_of_different_shapes():
    return lax.sort((jnp.ones(3), jnp.ones(4)))  # <-


@mistake(ValueError, "lax.sort", "num_keys=3", advice="between 1 and len(operand)=2")
def sort_num_keys():
    return lax.sort((jnp.ones(3), jnp.ones(3)), num_keys=3)  # <-


@mistake(ValueError, "lax.top_k", "k=5", "[2, 3]", "axis=1", advice="min(k, 3)")
def top_k_of_more_than_there_are():
    return lax.top_k(jnp.ones((2, 3)), 5)  # <-


@mistake(ValueError, "lax.top_k", "-1", advice="nonnegative")
def top_k_negative():
    return lax.top_k(jnp.ones(3), -1)  # <-


@mistake(ValueError, "lax.top_k", "float32[]", advice="it has no axes")
def top_k_of_a_scalar():
    return lax.top_k(jnp.float32(1), 1)  # <-


@mistake(TypeError, "lax.top_k", "k: int32[]", "jit of f", advice="static_argnums")
def top_k_of_a_traced_number():
    @jax.jit
    def f(x, k):
        return lax.top_k(x, k)  # <-
    return f(jnp.ones(5), 2)


@mistake(ValueError, "lax.pad", "((1, 1, 0),)", "(2, 3)", advice="(low, high, interior) for each axis")
def pad_of_one_axis():
    return lax.pad(jnp.ones((2, 3)), 0.0, [(1, 1, 0)])  # <-


@mistake(ValueError, "lax.pad", "((1, 1), (0, 0))", advice="(low, high, interior)")
def pad_of_pairs():
    return lax.pad(jnp.ones((2, 3)), 0.0, [(1, 1), (0, 0)])  # <-


@mistake(TypeError, "lax.pad", "float32, int32", advice=".astype")
def pad_value_of_another_type():
    return lax.pad(jnp.ones(3), 0, [(1, 1, 0)])  # <-


@mistake(ValueError, "lax.pad", "((1, 1, -1),)", advice="nonnegative")
def pad_interior_negative():
    return lax.pad(jnp.ones(3), 0.0, [(1, 1, -1)])  # <-


@mistake(TypeError, "lax.select", "(3,)", "(4,)", advice="jnp.where broadcasts")
def select_of_different_shapes():
    return lax.select(jnp.ones(3) > 0, jnp.ones(4), jnp.ones(4))  # <-


@mistake(TypeError, "lax.select", "()", "float32[3]", advice="jnp.where does so")
def select_of_a_scalar_case():
    return lax.select(jnp.ones(3) > 0, jnp.ones(3), 0.0)  # <-


@mistake(TypeError, "lax.select", "float32", "boolean or integer", advice="x > 0")
def select_by_floats():
    return lax.select(jnp.ones(3), jnp.ones(3), jnp.ones(3))  # <-


@mistake(ValueError, "lax.select_n", "int32[3]", advice="at least one case")
def select_n_by_numbers_of_no_case():
    return lax.select_n(jnp.ones(3, "int32"))  # <-


@mistake(TypeError, "lax.clamp", "min", "(3,)", "(2,)", advice="jnp.clip")
def clamp_of_shapes():
    return lax.clamp(jnp.zeros(2), jnp.ones(3), jnp.ones(3))  # <-


@mistake(TypeError, "lax.slice", "operand shape (4, 5)", "limit_indices (4, 9)", "(4, 5)",
         advice="x[start:limit]")
def slice_beyond():
    return lax.slice(jnp.ones((4, 5)), (0, 2), (4, 9))  # <-


@mistake(TypeError, "lax.slice", "start_indices (0,)", "(4, 5)", advice="one entry for each axis")
def slice_of_one_axis():
    return lax.slice(jnp.ones((4, 5)), (0,), (4,))  # <-


@mistake(TypeError, "lax.slice", "start_indices (4,)", "limit_indices (2,)",
         advice="greater than or equal to start_indices")
def slice_backwards():
    return lax.slice(jnp.ones(5), (4,), (2,))  # <-


@mistake(TypeError, "lax.slice", "i: int32[]", "jit of f", advice="static_argnums")
def slice_by_traced_places():
    @jax.jit
    def f(x, i):
        return lax.slice(x, (i,), (i + 2,))  # <-
    return f(jnp.ones(5), 1)


@mistake(ValueError, "lax.slice_in_dim", "axis 2", "float32[4,5]", advice="-2 <= axis < 2")
def slice_in_dim_axis():
    return lax.slice_in_dim(jnp.ones((4, 5)), 0, 2, axis=2)  # <-


@mistake(ValueError, "lax.dynamic_slice", "slice indices", "(4, 5)", "(1 vs (4, 5))",
         advice="must match number of operand dimensions")
def dynamic_slice_starts():
    return lax.dynamic_slice(jnp.ones((4, 5)), (0,), (2, 2))  # <-


@mistake(TypeError, "lax.dynamic_slice", "float32", advice=".astype(int)")
def dynamic_slice_start_of_floats():
    return lax.dynamic_slice(jnp.ones(5), (1.0,), (2,))  # <-


@mistake(TypeError, "lax.dynamic_slice", "n: int32[]", "jit of f", advice="static_argnums")
def dynamic_slice_of_a_traced_size():
    @jax.jit
    def f(x, n):
        return lax.dynamic_slice(x, (0,), (n,))  # <-
    return f(jnp.ones(5), 2)


@mistake(TypeError, "lax.dynamic_slice", "x: float32[6,3]", "axis 1", "4 for axis 1", "size 3",
         advice="it may be 0 to 3")
def dynamic_slice_in_a_loop():
    x = jnp.ones((6, 3))

    def body(c, i):
        return c + lax.dynamic_slice(x, (i, 0), (2, 4)), None  # <-
    return lax.scan(body, jnp.zeros((2, 4)), jnp.arange(3))


@mistake(TypeError, "lax.dynamic_update_slice", "(5,)", "(4, 5)", advice="the same rank")
def dynamic_update_of_another_rank():
    return lax.dynamic_update_slice(jnp.ones((4, 5)), jnp.ones(5), (0, 0))  # <-


@mistake(TypeError, "lax.dynamic_update_slice", "float32, int32", advice="cast the update with .astype")
def dynamic_update_of_another_type():
    return lax.dynamic_update_slice(jnp.ones(5), jnp.ones(2, "int32"), (0,))  # <-


@mistake(ValueError, "lax.dynamic_index_in_dim", "axis 3", "float32[4,5]", advice="-2 <= axis < 2")
def dynamic_index_axis():
    return lax.dynamic_index_in_dim(jnp.ones((4, 5)), 0, axis=3)  # <-


@mistake(TypeError, "lax.iota", "size", "(2, 3)", advice="lax.broadcasted_iota")
def iota_of_a_shape():
    return lax.iota("int32", (2, 3))  # <-


@mistake(TypeError, "lax.iota", "bool", advice="subtypes of integer, floating")
def iota_of_bools():
    return lax.iota(bool, 3)  # <-


@mistake(ValueError, "lax.broadcasted_iota", "dimension=2", "(2, 3)", advice="between 0 and len(shape)")
def broadcasted_iota_dimension():
    return lax.broadcasted_iota("int32", (2, 3), 2)  # <-


@mistake(ValueError, "lax.bitcast_convert_type", "int8", "int32", "(3,)",
         advice="the last axis must have size 4")
def bitcast_of_another_width():
    return lax.bitcast_convert_type(jnp.ones(3, "int8"), "int32")  # <-


@mistake(TypeError, "lax.bitcast_convert_type", "operand dtype=bool", advice=".astype")
def bitcast_of_bools():
    return lax.bitcast_convert_type(jnp.ones(3) > 0, "float32")  # <-


@mistake(TypeError, "lax.broadcast_in_dim", "(3,)", "(2, 3)", "broadcast_dimensions (0,)",
         advice="either be 1, or be equal")
def broadcast_in_dim_places():
    return lax.broadcast_in_dim(jnp.ones(3), (2, 3), (0,))  # <-


@mistake(TypeError, "lax.broadcast_in_dim", "(0,)", "ndim 2", advice="length equal to operand ndim")
def broadcast_in_dim_too_few():
    return lax.broadcast_in_dim(jnp.ones((3, 2)), (3, 2, 4), (0,))  # <-


@mistake(TypeError, "lax.transpose", "(0, 0)", "(2, 3)", advice="permutation of operand dimensions")
def transpose_permutation():
    return lax.transpose(jnp.ones((2, 3)), (0, 0))  # <-


@mistake(TypeError, "lax.reshape", "size 6", "size 7", advice="must multiply to 6")
def reshape_sizes():
    return lax.reshape(jnp.ones((2, 3)), (7,))  # <-


@mistake(TypeError, "lax.rev", "(2,)", "(2, 3)", advice="less than operand ndim")
def rev_axis():
    return lax.rev(jnp.ones((2, 3)), (2,))  # <-


@mistake(TypeError, "lax.concatenate", "dimension 1", "(3,)", advice="jnp.stack")
def concatenate_axis():
    return lax.concatenate([jnp.ones(3), jnp.ones(3)], 1)  # <-


@mistake(TypeError, "lax.concatenate", "float32, int32", advice=".astype")
def concatenate_of_types():
    return lax.concatenate([jnp.ones(3), jnp.ones(3, "int32")], 0)  # <-


@mistake(ValueError, "lax.squeeze", "axis 0", "(2, 1)", advice="equal to one")
def squeeze_axis():
    return lax.squeeze(jnp.ones((2, 1)), (0,))  # <-


@mistake(ValueError, "lax.expand_dims", "axis 5", "float32[2,1]", advice="-3 <= axis < 3")
def expand_dims_axis():
    return lax.expand_dims(jnp.ones((2, 1)), (5,))  # <-


@mistake(ValueError, "lax.cumsum", "axis 2", "float32[2,3]", advice="-2 <= axis < 2")
def cumsum_axis():
    return lax.cumsum(jnp.ones((2, 3)), axis=2)  # <-


@mistake(ValueError, "lax.argmax", "axis 2", "float32[2,3]", advice="-2 <= axis < 2")
def argmax_axis():
    return lax.argmax(jnp.ones((2, 3)), 2, "int32")  # <-


@mistake(TypeError, "lax.argmax", "index_dtype", "float32", advice="integer type")
def argmax_index_type():
    return lax.argmax(jnp.ones(3), 0, "float32")  # <-


@mistake(TypeError, "lax.integer_pow", "2.5", "exponent y", advice="lax.pow")
def integer_pow_by_a_float():
    return lax.integer_pow(jnp.ones(3), 2.5)  # <-


@mistake(TypeError, "lax.add", "float32, int32", advice=".astype(dtype)")
def add_of_types():
    return lax.add(jnp.ones(3), jnp.ones(3, "int32"))  # <-


@mistake(TypeError, "lax.add", "argument 0", "list", advice="jnp.array(...)")
def add_of_a_list():
    return lax.add([1.0, 2.0], [3.0, 4.0])  # <-


@mistake(TypeError, "lax.sin", "int32", "floating", advice=".astype(float)")
def sin_of_ints():
    return lax.sin(jnp.arange(3))  # <-


@mistake(TypeError, "lax.sqrt", "argument 0", "str", advice="expected an array")
def sqrt_of_a_text():
    return lax.sqrt("4")  # <-


@mistake(TypeError, "lax.shift_left", "float32", "integer", advice=".astype(int)")
def shift_of_floats():
    return lax.shift_left(jnp.ones(3), jnp.ones(3))  # <-


@mistake(TypeError, "lax.population_count", "float32", "integer", advice=".astype(int)")
def population_count_of_floats():
    return lax.population_count(jnp.ones(3))  # <-


@mistake(TypeError, "lax.convert_element_type", "'float31'", advice="did you mean 'float")
def convert_to_an_unknown_type():
    return lax.convert_element_type(jnp.ones(3), "float31")  # <-


@mistake(TypeError, "lax.complex", "int32", "floating", advice=".astype")
def complex_of_ints():
    return lax.complex(jnp.arange(3), jnp.arange(3))  # <-


@mistake(ValueError, "lax.split", "9", "(10,)", "dimension 0", advice="jnp.split")
def split_sizes():
    return lax.split(jnp.ones(10), (3, 3, 3))  # <-


@mistake(TypeError, "lax.conv_transpose", "4 and 2", "(3, 3)", advice="to be equal")
def conv_transpose_rank():
    return lax.conv_transpose(IMAGES, jnp.ones((3, 3)), (2, 2), "SAME")  # <-


@mistake(ValueError, "lax.reduce_precision", "exponent_bits", "0", advice="must be positive")
def reduce_precision_bits():
    return lax.reduce_precision(jnp.ones(3), 0, 7)  # <-


@mistake(ValueError, "associative_scan", "(3,)", "(4,)", "axis 0", advice="same size")
def associative_scan_of_sizes():
    return lax.associative_scan(jnp.add, (jnp.ones(3), jnp.ones(4)))  # <-


@mistake(TypeError, "lax.batch_matmul", "(2,) and (3,)", "axis 0", advice="same shape")
def batched_product_of_batches():
    return lax.batch_matmul(jnp.ones((2, 3, 4)), jnp.ones((3, 4, 5)))  # <-


@mistake(TypeError, "lax.full", "(3,)", "fill_value", advice="jnp.broadcast_to")
def filling_with_an_array():
    return lax.full((2, 3), jnp.ones(3))  # <-


@mistake(TypeError, "lax.polynomial", "(3,)", "(2, 3)", advice="give scalars or arrays of its rank")
def polynomial_of_matrices():
    return lax.polynomial(jnp.ones(3), [1.0, jnp.ones((2, 3))])  # <-


@mistake(ValueError, "lax.unstack", "axis 2", advice="-2 <= axis < 2")
def unstacked_along_no_axis():
    return lax.unstack(jnp.ones((2, 3)), 2)  # <-


@mistake(TypeError, "lax.mulhi", "float32", advice=".astype(int)")
def high_half_of_floats():
    x = jnp.ones(3)
    return lax.mulhi(x, x)  # <-


@mistake(ValueError, "lax.reshape", "x: float32[2,3]", "(-1,)", advice="nonnegative")
def reshape_to_what_is_left():
    x = jnp.ones((2, 3))
    return lax.reshape(x, (-1,))  # <-


@mistake(ValueError, "lax.ragged_all_to_all", "send_sizes", "float32[2]", advice="must be integer type")
def ragged_exchange_of_sizes_that_are_floats():
    starts = jnp.arange(2)
    sizes = starts * 0.5

    def exchange(x):
        return lax.ragged_all_to_all(x, x, starts, sizes, starts, starts, axis_name="i")  # <-
    return jax.vmap(exchange, axis_name="i")(jnp.ones((2, 3)))


@mistake(ValueError, "smap", advice="set_mesh(mesh)")
def smap_without_a_mesh():
    return jax.smap(jnp.sin, in_axes=0, out_axes=0, axis_name="x")(jnp.ones(3))  # <-


@mistake(TypeError, "lax.ragged_dot", "(3,) and (1, 3, 2)", advice="lhs must be a matrix (m, k)")
def ragged_product_of_a_vector():
    return lax.ragged_dot(jnp.ones(3), jnp.ones((1, 3, 2)), jnp.array([3]))  # <-


@mistake(TypeError, "lax.conv_general_dilated_local", "(4,)", advice="equal ranks, of two or more")
def local_convolution_of_vectors():
    return lax.conv_general_dilated_local(jnp.ones(4), jnp.ones(4), (1,), "VALID", (1,))  # <-
