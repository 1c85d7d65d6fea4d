"""Functions of numpy: subscripts, modes, options and keywords that are not what the function takes."""
import numpy as np
from mistakes import CHECKED, mistake

import hlotrace as jax
import hlotrace.numpy as jnp


@mistake(ValueError, "jnp.einsum", "'ij->jk->k'", advice="one arrow")
def einsum_repeated_arrow():
    return jnp.einsum("ij->jk->k", jnp.ones((2, 3)))  # <-


@mistake(ValueError, "jnp.einsum", "'ij,jk-ik'", advice="one arrow '->'")
def einsum_half_an_arrow():
    return jnp.einsum("ij,jk-ik", jnp.ones((2, 3)), jnp.ones((3, 4)))  # <-


@mistake(ValueError, "jnp.einsum", "'l'", "'ij,jk->il'", advice="axes of its operands, 'i', 'j', 'k'")
def einsum_output_unknown():
    return jnp.einsum("ij,jk->il", jnp.ones((2, 3)), jnp.ones((3, 4)))  # <-


@mistake(ValueError, "jnp.einsum", "'i'", "more than once", advice="once")
def einsum_output_twice():
    return jnp.einsum("ij->ii", jnp.ones((2, 2)))  # <-


@mistake(ValueError, "jnp.einsum", "subscripts, 2", "operands, 1", advice="commas")
def einsum_operand_too_few():
    return jnp.einsum("ij,jk->ik", jnp.ones((2, 3)))  # <-


@mistake(ValueError, "jnp.einsum", "a: float32[2,3]", "b: float32[3]", "operands, 2", advice="commas")
def einsum_operand_too_many():
    @jax.jit
    def f(a, b):
        return jnp.einsum("ij->i", a, b)  # <-
    return f(jnp.ones((2, 3)), jnp.ones(3))


@mistake(ValueError, "jnp.einsum", "'..ij'", advice="'...' once")
def einsum_two_dots():
    return jnp.einsum("..ij->..ji", jnp.ones((2, 3)))  # <-


@mistake(TypeError, "jnp.einsum", "float32[2,3]", advice="einsum('ij,jk->ik', a, b)")
def einsum_without_subscripts():
    return jnp.einsum(jnp.ones((2, 3)), jnp.ones((3, 4)))  # <-


@mistake(ValueError, "jnp.interp", "(3,)", "(4,)", "xp and fp", advice="equal size")
def interp_lengths():
    return jnp.interp(jnp.ones(2), jnp.arange(3.0), jnp.arange(4.0))  # <-


@mistake(ValueError, "jnp.interp", "(2, 2)", "xp and fp", advice="one-dimensional")
def interp_of_two_axes():
    return jnp.interp(0.5, jnp.ones((2, 2)), jnp.ones((2, 2)))  # <-


@mistake(ValueError, "jnp.interp", "left", "'extrapolat'", advice="'extrapolate'")
def interp_left():
    return jnp.interp(0.5, jnp.arange(3.0), jnp.arange(3.0), left="extrapolat")  # <-


@mistake(ValueError, "jnp.interp", "complex64[]", "xp float32[3]", advice="only fp may be complex")
def interp_of_complex():
    return jnp.interp(1j, jnp.arange(3.0), jnp.arange(3.0))  # <-


@mistake(ValueError, "jnp.searchsorted", "side", "'rigth'", advice="did you mean 'right'")
def searchsorted_side():
    return jnp.searchsorted(jnp.arange(3), 1, side="rigth")  # <-


@mistake(ValueError, "jnp.searchsorted", "method", "'binary'", advice="'scan'")
def searchsorted_method():
    return jnp.searchsorted(jnp.arange(3), 1, method="binary")  # <-


@mistake(ValueError, "jnp.searchsorted", "(2, 2)", "1-dimensional", advice="vmap")
def searchsorted_of_two_axes():
    return jnp.searchsorted(jnp.ones((2, 2)), 1.0)  # <-


@mistake(ValueError, "jnp.histogram", "bins", "(2, 3)", advice="1-dimensional array of edges")
def histogram_bins():
    return jnp.histogram(jnp.arange(10.0), bins=jnp.ones((2, 3)))  # <-


@mistake(NotImplementedError, "jnp.histogram", "bins", "'atuo'", advice="the number of bins")
def histogram_bins_by_a_name():
    return jnp.histogram(jnp.arange(10.0), bins="atuo")  # <-


@mistake(ValueError, "jnp.histogram", "range", "got 5", advice="(low, high)")
def histogram_range():
    return jnp.histogram(jnp.arange(10.0), range=5)  # <-


@mistake(ValueError, "jnp.histogram", "weights", "(9,)", "(10,)", advice="one for each element")
def histogram_weights():
    return jnp.histogram(jnp.arange(10.0), weights=jnp.ones(9))  # <-


@mistake(TypeError, "jnp.histogram", "bins=n: int32[]", "jit of f", advice="static_argnums")
def histogram_of_traced_bins():
    @jax.jit
    def f(x, n):
        return jnp.histogram(x, bins=n)  # <-
    return f(jnp.arange(10.0), 5)


@mistake(TypeError, "jnp.bincount", "x: int32[3]", "jit of f", advice="length")
def bincount_under_jit():
    @jax.jit
    def f(x):
        return jnp.bincount(x)  # <-
    return f(jnp.array([0, 1, 1]))


@mistake(TypeError, "jnp.bincount", "x argument", "float32", ".astype(int)", advice="integer")
def bincount_of_floats():
    return jnp.bincount(jnp.ones(3))  # <-


@mistake(NotImplementedError, "jnp.pad", "mode", "'zeros'", advice="'constant'")
def pad_mode():
    return jnp.pad(jnp.ones(3), 1, mode="zeros")  # <-


@mistake(NotImplementedError, "jnp.pad", "mode", "'refelct'", advice="did you mean 'reflect'")
def pad_mode_misspelt():
    return jnp.pad(jnp.ones(3), 1, mode="refelct")  # <-


@mistake(ValueError, "jnp.pad", "pad_width", "(3, 2)", "float32[2,3]", advice="one pair (before, after) for each")
def pad_width():
    return jnp.pad(jnp.ones((2, 3)), ((1, 1), (1, 1), (1, 1)))  # <-


@mistake(ValueError, "jnp.pad", "pad_width -1", advice="a slice")
def pad_negative():
    return jnp.pad(jnp.ones(3), -1)  # <-


@mistake(ValueError, "jnp.pad", "'edge'", "constant_values", advice="it takes none")
def pad_option_of_another_mode():
    return jnp.pad(jnp.ones(3), 1, mode="edge", constant_values=5)  # <-


@mistake(TypeError, "jnp.pad", "n: int32[]", "pad_width", "jit of f", advice="static_argnums")
def pad_traced():
    @jax.jit
    def f(x, n):
        return jnp.pad(x, n)  # <-
    return f(jnp.ones(3), 2)


@mistake(ValueError, "jnp.roll", "(1, 2, 3)", "(0, 1)", advice="equal lengths")
def roll_axes():
    return jnp.roll(jnp.ones((2, 3)), (1, 2, 3), axis=(0, 1))  # <-


@mistake(ValueError, "jnp.roll", "axis 2", "float32[2,3]", advice="-2 <= axis < 2")
def roll_axis():
    return jnp.roll(jnp.ones((2, 3)), 1, axis=2)  # <-


@mistake(ValueError, "jnp.meshgrid", "indexing", "'ji'", advice="'xy' or 'ij'")
def meshgrid_indexing():
    return jnp.meshgrid(jnp.arange(2), jnp.arange(3), indexing="ji")  # <-


@mistake(ValueError, "jnp.meshgrid", "(2, 2)", "(3,)", advice=".ravel()")
def meshgrid_of_two_axes():
    return jnp.meshgrid(jnp.ones((2, 2)), jnp.arange(3))  # <-


@mistake(TypeError, "jnp.linspace", "num", "2.5", advice="jnp.arange(start, stop, step)")
def linspace_num():
    return jnp.linspace(0, 1, 2.5)  # <-


@mistake(ValueError, "linspace", "-5", advice="non-negative")
def linspace_negative():
    return jnp.linspace(0, 1, -5)  # <-


@mistake(TypeError, "jnp.linspace", "n: int32[]", "'num'", advice="static_argnums")
def linspace_traced():
    @jax.jit
    def f(n):
        return jnp.linspace(0, 1, n)  # <-
    return f(5)


@mistake(ValueError, "jnp.linspace", "(2,)", "(3,)", advice="must be equal")
def linspace_of_shapes():
    return jnp.linspace(jnp.zeros(2), jnp.ones(3), 5)  # <-


@mistake(ValueError, "jnp.arange", "(3,)", "scalars", advice="jnp.arange(x.size)")
def arange_of_an_array():
    return jnp.arange(jnp.ones(3))  # <-


@mistake(ZeroDivisionError, "jnp.arange", "step is 0", advice="jnp.full")
def arange_step_zero():
    return jnp.arange(0, 10, 0)  # <-


@mistake(TypeError, "jnp.arange", "jit of f", "argument n", "int32[]", advice="static_argnums")
def arange_traced():
    @jax.jit
    def f(n):
        return jnp.arange(n)  # <-
    return f(5)


@mistake(TypeError, "jnp.arange", "str", "position 0", advice="float(text)")
def arange_of_a_text():
    return jnp.arange("10")  # <-


@mistake(TypeError, "jnp.sort", "'bubblesort'", "'kind'", advice="stable=True")
def sort_kind():
    return jnp.sort(jnp.ones(3), kind="bubblesort")  # <-


@mistake(ValueError, "jnp.argsort", "axis 2", "float32[2,3]", advice="-2 <= axis < 2")
def argsort_axis():
    return jnp.argsort(jnp.ones((2, 3)), axis=2)  # <-


@mistake(ValueError, "jnp.quantile", "method", "'linaer'", advice="did you mean 'linear'")
def quantile_method():
    return jnp.quantile(jnp.arange(5.0), 0.5, method="linaer")  # <-


@mistake(TypeError, "jnp.quantile()", "'interpolation'", advice="did you mean 'method'")
def quantile_interpolation():
    return jnp.quantile(jnp.arange(5.0), 0.5, interpolation="linear")  # <-


@mistake(ValueError, "jnp.quantile", "(2, 2)", "rank <= 1", advice=".ravel()")
def quantile_of_two_axes():
    return jnp.quantile(jnp.arange(5.0), jnp.ones((2, 2)))  # <-


@mistake(ValueError, "jnp.percentile", "complex", advice="x.real")
def percentile_of_complex():
    return jnp.percentile(jnp.ones(5) * 1j, 50)  # <-


@mistake(TypeError, "jnp.unravel_index", "2.0", advice="must be an int")
def unravel_shape():
    return jnp.unravel_index(5, (2.0, 3))  # <-


@mistake(ValueError, "jnp.ravel_multi_index", "'clipp'", "mode", advice="did you mean 'clip'")
def ravel_modes():
    return jnp.ravel_multi_index((jnp.array([3]), jnp.array([1])), (3, 2), mode="clipp")  # <-


@mistake(ValueError, "jnp.ravel_multi_index", "2 arrays", "(3, 2, 4)", advice="one array for each axis")
def ravel_dims():
    return jnp.ravel_multi_index((jnp.array([1]), jnp.array([1])), (3, 2, 4), mode="clip")  # <-


@mistake(ValueError, "jnp.ravel_multi_index", "from 3 to 3", "size 3", advice="mode='clip' or mode='wrap'")
def ravel_outside():
    return jnp.ravel_multi_index((jnp.array([3]), jnp.array([1])), (3, 2))  # <-


@mistake(ValueError, "jnp.take", "mode", "'clamp'", advice="did you mean 'clip'")
def take_mode():
    return jnp.take(jnp.arange(5), 2, mode="clamp")  # <-


@mistake(NotImplementedError, "jnp.take", "mode='raise'", advice="'clip'")
def take_by_default_mode():
    return jnp.take(jnp.arange(5), 2, mode="raise")  # <-


@mistake(ValueError, "jnp.take_along_axis", "1 vs. 2", "int32[2]", advice="indices[..., None]")
def take_along_axis_ranks():
    return jnp.take_along_axis(jnp.ones((2, 3)), jnp.zeros(2, "int32"), axis=1)  # <-


@mistake(ValueError, "jnp.choose", "holds 3", "2 choices", advice="mode='clip' or 'wrap'")
def choose_mode():
    return jnp.choose(jnp.array([0, 3]), [jnp.ones(2), jnp.zeros(2)])  # <-


@mistake(NotImplementedError, "jnp.sum", "'out'", advice="use the result")
def sum_out():
    return jnp.sum(jnp.ones(3), out=np.empty(()))  # <-


@mistake(NotImplementedError, "jnp.add", "out argument", advice="jnp.where(mask, result, other)")
def add_out():
    out = np.empty(3)
    return jnp.add(jnp.ones(3), 1, out=out)  # <-


@mistake(NotImplementedError, "jnp.add", "where argument", advice="jnp.where(mask, result, other)")
def add_where():
    return jnp.add(jnp.ones(3), 1, where=jnp.ones(3) > 0)  # <-


@mistake(TypeError, "jnp.sum()", "'keepdim'", advice="did you mean 'keepdims'")
def sum_keepdim():
    return jnp.sum(jnp.ones(3), keepdim=True)  # <-


@mistake(TypeError, "jnp.sum()", "'dim'", advice="did you mean 'axis'")
def sum_dim():
    return jnp.sum(jnp.ones((3, 2)), dim=1)  # <-


@mistake(TypeError, "jnp.zeros()", "'order'", advice="its parameters are shape, dtype")
def zeros_order():
    return jnp.zeros((2, 3), order="F")  # <-


@mistake(NotImplementedError, "jnp.array", "'F'", advice="leave it out")
def array_order():
    return jnp.array([1, 2], order="F")  # <-


@mistake(NotImplementedError, "jnp.reshape", "'K'", advice="'F' (columns first)")
def reshape_order():
    return jnp.reshape(jnp.ones((2, 3)), 6, order="K")  # <-


@mistake(TypeError, "jnp.sum", "list", "position 0", advice="jnp.array(...)")
def sum_of_a_list():
    return jnp.sum([1, 2, 3])  # <-


@mistake(TypeError, "jnp.mean", "tuple", "position 0", advice="jnp.array(...)")
def mean_of_a_tuple():
    return jnp.mean((1.0, 2.0))  # <-


@mistake(TypeError, "jnp.where", "list", "position 0", advice="jnp.array(...)")
def where_of_lists():
    return jnp.where([True, False], [1, 2], [3, 4])  # <-


@mistake(TypeError, "jnp.max", "axis must be an int", "float32[3]", advice="maximum")
def max_of_two():
    return jnp.max(jnp.ones(3), jnp.zeros(3))  # <-


@mistake(TypeError, "jnp.sin", "str", advice="float(text)")
def sin_of_a_text():
    return jnp.sin("0.5")  # <-


@mistake(TypeError, "jnp.sin", "NoneType", advice="is a return missing?")
def sin_of_none():
    return jnp.sin(None)  # <-


@mistake(TypeError, "jnp.sin", "dict", advice="jax.tree.map")
def sin_of_a_dict():
    return jnp.sin({"x": 1.0})  # <-


@mistake(TypeError, "jnp.array", "{'a': 1}", "dict", advice="jax.tree.map(jnp.asarray, x)")
def array_of_a_dict():
    return jnp.array({"a": 1})  # <-


@mistake(TypeError, "jnp.array", "'a'", "<U1", "str", advice="Number the texts first")
def array_of_texts():
    return jnp.array(["a", "b"])  # <-


@mistake(ValueError, "jnp.array", "None", advice="jnp.nan")
def array_of_none():
    return jnp.array([1, None, 3])  # <-


@mistake(TypeError, "jnp.asarray", "object[2]", advice=".astype(float)")
def array_of_objects():
    return jnp.asarray(np.array([1, "a"], dtype=object))  # <-


@mistake(TypeError, "jnp.zeros", "'flaot32'", advice="did you mean 'float32'")
def dtype_misspelt():
    return jnp.zeros(3, dtype="flaot32")  # <-


@mistake(TypeError, "Array.astype", "'float42'", "float32[3]", advice="did you mean 'float")
def astype_misspelt():
    return jnp.ones(3).astype("float42")  # <-


@mistake(TypeError, "jnp.argmax", "(0, 1)", advice="axis must be an int")
def argmax_keepdims():
    return jnp.argmax(jnp.ones((2, 3)), axis=(0, 1))  # <-


@mistake(TypeError, "jnp.nonzero", "bool[3]", "jit of f", advice="size=")
def nonzero_under_jit():
    @jax.jit
    def f(x):
        return jnp.nonzero(x > 0)  # <-
    return f(jnp.ones(3))


@mistake(TypeError, "jnp.unique", "x: float32[3]", advice="size=")
def unique_under_jit():
    @jax.jit
    def f(x):
        return jnp.unique(x)  # <-
    return f(jnp.ones(3))


@mistake(TypeError, "jnp.repeat", "n: int32[3]", advice="total_repeat_length")
def repeat_under_jit():
    @jax.jit
    def f(x, n):
        return jnp.repeat(x, n)  # <-
    return f(jnp.ones(3), jnp.array([1, 2, 3]))


@mistake(ValueError, "jnp.repeat", "(2,)", "3 entries of axis 0", advice="one for each")
def repeat_counts():
    return jnp.repeat(jnp.ones(3), jnp.array([1, 2]))  # <-


@mistake(TypeError, "jnp.tile", "2.0", advice="sequence of ints")
def tile_of_floats():
    return jnp.tile(jnp.ones(3), 2.0)  # <-


@mistake(ValueError, "jnp.clip", "(2,)", "(3,)", advice="must be equal")
def clip_without_bounds():
    return jnp.clip(jnp.ones(3), min=jnp.ones(2))  # <-


@mistake(ValueError, "jnp.clip", "complex64[3]", advice="real and imaginary")
def clip_of_complex():
    return jnp.clip(jnp.ones(3) * 1j, 0, 1)  # <-


@mistake(ValueError, "jnp.cross", "4", "(4,)", advice="2 or 3")
def cross_of_fours():
    return jnp.cross(jnp.ones(4), jnp.ones(4))  # <-


@mistake(ValueError, "jnp.gradient", "axis 0", "(1,)", advice="at least 2")
def gradient_of_one():
    return jnp.gradient(jnp.ones(1))  # <-


@mistake(ValueError, "jnp.diff", "-1", advice="how often")
def diff_n():
    return jnp.diff(jnp.ones(3), n=-1)  # <-


@mistake(ValueError, "jnp.diag", "(2, 2, 2)", advice="jnp.diagonal")
def diag_of_three_axes():
    return jnp.diag(jnp.ones((2, 2, 2)))  # <-


@mistake(ValueError, "jnp.trace", "axis 1", "float32[3]", advice="-1 <= axis < 1")
def trace_of_a_vector():
    return jnp.trace(jnp.ones(3))  # <-


@mistake(TypeError, "jnp.tensordot", "size 3", "size 4", "axis 1", advice="must be equal")
def tensordot_axes():
    return jnp.tensordot(jnp.ones((2, 3)), jnp.ones((4, 5)), axes=1)  # <-


@mistake(TypeError, "jnp.tensordot", "axes 3", "(2, 3)", advice="summed over")
def tensordot_number():
    return jnp.tensordot(jnp.ones((2, 3)), jnp.ones((2, 3)), axes=3)  # <-


@mistake(TypeError, "jnp.vstack", "(2, 3)", "(2, 4)", "dimension 0", advice="(2, 3), (2, 4)")
def vstack_of_an_array():
    return jnp.vstack([jnp.ones((2, 3)), jnp.ones((2, 4))])  # <-


@mistake(ValueError, "jnp.concatenate", "float32[3]", advice="concatenate([a, b])")
def concatenate_of_arrays():
    return jnp.concatenate(jnp.ones(3), jnp.ones(3))  # <-


@mistake(TypeError, "jnp.stack", "generator", advice="put them into a list")
def stack_of_a_generator():
    return jnp.stack(jnp.ones(3) for _ in range(3))  # <-


@mistake(ValueError, "jnp.average", "(2, 3)", "(4,)", advice="one for each entry")
def average_weights():
    return jnp.average(jnp.ones((2, 3)), axis=1, weights=jnp.ones(4))  # <-


@mistake(ValueError, "jnp.select", "1 vs 2", advice="one choice for each condition")
def select_lengths():
    return jnp.select([jnp.ones(3) > 0], [jnp.ones(3), jnp.zeros(3)])  # <-


@mistake(ValueError, "jnp.piecewise", "2 condition(s)", "got 4", advice="2 or 3 functions")
def piecewise_lengths():
    x = jnp.ones(3)
    return jnp.piecewise(x, [x > 0, x < 0], [1, 2, 3, 4])  # <-


@mistake(ValueError, "jnp.digitize", "(2, 2)", "bins", advice="vmap")
def digitize_of_two_axes():
    return jnp.digitize(jnp.ones(3), jnp.ones((2, 2)))  # <-


@mistake(ValueError, "jnp.moveaxis", "2 vs 1", "source and destination", advice="as many axes")
def moveaxis_lengths():
    return jnp.moveaxis(jnp.ones((2, 3)), (0, 1), 0)  # <-


@mistake(ValueError, "jnp.swapaxes", "axis 2", "float32[2,3]", advice="-2 <= axis2 < 2")
def swapaxes_axis():
    return jnp.swapaxes(jnp.ones((2, 3)), 0, 2)  # <-


@mistake(NotImplementedError, "jnp.fill_diagonal", "immutable", advice="inplace=False")
def fill_diagonal_inplace():
    return jnp.fill_diagonal(jnp.ones((3, 3)), 0)  # <-


@mistake(ValueError, "jnp.put", "immutable", advice="x.at[index].set(values)")
def put_inplace():
    return jnp.put(jnp.ones(3), 0, 5)  # <-


@mistake(TypeError, "x: float32[3]", "item assignment", advice="x.at[idx].set(y)")
def item_assignment():
    x = jnp.zeros(3)
    x[0] = 1  # <-


@mistake(IndexError, "jnp.insert", "index 5", "size 3", "Clip it", advice="ints from -3 to 3", **CHECKED)
def insert_outside():
    return jnp.insert(jnp.arange(3), 5, 1)  # <-


@mistake(IndexError, "jnp.delete", "index 5", "size 3", advice="ints from -3 to 2")
def delete_outside():
    return jnp.delete(jnp.arange(3), 5)  # <-


@mistake(TypeError, "jnp.block", "(2, 2)", "(3, 2)", "dimension 1",
         advice="shapes that differ in dimensions other")
def block_of_shapes():
    return jnp.block([[jnp.ones((2, 2)), jnp.ones((3, 2))]])  # <-


@mistake(ValueError, "jnp.trapezoid", "float32[3]", "float32[4]", advice="must be equal")
def trapezoid_lengths():
    return jnp.trapezoid(jnp.ones(3), jnp.ones(4))  # <-


@mistake(ValueError, "jnp.convolve", "mode", "'smae'", advice="did you mean 'same'")
def convolve_mode():
    return jnp.convolve(jnp.ones(3), jnp.ones(3), mode="smae")  # <-


@mistake(TypeError, "jnp.eye", "(3, 3)", advice="jnp.eye(3, 4)")
def identity_of_a_shape():
    return jnp.eye((3, 3))  # <-


@mistake(ValueError, "jnp.vectorize", "'(n),(n)->('", advice="(n,k),(k)->(n)")
def vectorize_signature():
    return jnp.vectorize(jnp.dot, signature="(n),(n)->(")(jnp.ones(3), jnp.ones(3))  # <-


@mistake(ValueError, "'n'", "4 vs 3", "'(n),(n)->()'", advice="must be equal")
def vectorize_sizes():
    return jnp.vectorize(jnp.dot, signature="(n),(n)->()")(jnp.ones(3), jnp.ones(4))  # <-


@mistake(ValueError, "segment_sum", "shape (4, 2)", "shape (3,)", advice="one id for each row")
def too_few_segment_ids():
    return jax.ops.segment_sum(jnp.ones((4, 2)), jnp.arange(3))  # <-


@mistake(jax.errors.ConcretizationTypeError, "segment_max", "int32[3]", advice="num_segments=")
def a_number_of_segments_that_is_not_known():
    return jax.jit(lambda x, ids: jax.ops.segment_max(x, ids))(jnp.ones(3), jnp.arange(3))  # <-


@mistake(ValueError, "unravel", "3 elements", "(4,)", advice="as ravel_pytree gave it")
def a_vector_of_another_length():
    flat, unravel = jax.flatten_util.ravel_pytree({"w": jnp.ones(2), "b": jnp.ones(1)})
    return unravel(jnp.append(flat, 1.0))  # <-


@mistake(ValueError, "from_dlpack", "copy=False", advice="leave copy= out")
def memory_that_cannot_be_shared():
    x = np.arange(8, dtype="float32")[::2]
    return jax.dlpack.from_dlpack(x, copy=False)  # <-


@mistake(ValueError, "jnp.polymul", "(2, 2)", advice="jax.vmap")
def polynomials_in_a_matrix():
    return jnp.polymul(jnp.ones((2, 2)), jnp.ones(3))  # <-


@mistake(TypeError, "jnp.polyfit", "(4,)", "(3,)", advice="same length")
def a_fit_of_too_few_values():
    return jnp.polyfit(jnp.arange(4.0), jnp.ones(3), 1)  # <-


@mistake(jax.errors.ConcretizationTypeError, "jnp.roots", "float32[3]", advice="strip_zeros=False")
def roots_under_jit():
    return jax.jit(lambda p: jnp.roots(p))(jnp.ones(3))  # <-


@mistake(TypeError, "jnp.cov", "(3,)", "(4,)", advice="equally many observations")
def variables_of_different_lengths():
    return jnp.cov(jnp.ones(3), jnp.ones(4))  # <-


@mistake(ValueError, "jnp.histogramdd", "2 axes", "got 3", advice="one entry for each")
def bins_for_too_many_axes():
    return jnp.histogramdd(jnp.ones((5, 2)), (2, 3, 4))  # <-


@mistake(ValueError, "jnp.top_k", "complex64[3]", advice="no order")
def the_greatest_complex_numbers():
    return jnp.top_k(jnp.ones(3, complex), 2)  # <-


@mistake(TypeError, "_IndexUpdateHelper", advice="x = x.at[idx].set(y)")
def assignment_to_an_update():
    x = jnp.zeros(3)
    x.at[0] = 1.0  # <-


@mistake(AttributeError, "hlotrace.numpy", "'cat'", advice="use jnp.concatenate")
def name_of_pytorch():
    return jnp.cat([jnp.ones(2), jnp.ones(2)])  # <-


@mistake(AttributeError, "hlotrace.numpy", "'softmax'", advice="use jax.nn.softmax")
def name_of_another_module():
    return jnp.softmax(jnp.ones(2))  # <-
