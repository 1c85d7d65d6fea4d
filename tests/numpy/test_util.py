"""Promotion and broadcasting of arguments: NumPy's rules for shapes, weak numbers, words for what is no array."""
import enum
import itertools
import warnings

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.config import override
from hlotrace.numpy import util

pytestmark = pytest.mark.quick
SHAPES = [((), ()), ((3,), ()), ((), (2, 3)), ((3,), (2, 3)), ((2, 1), (3,)), ((4, 1, 3), (2, 1)), ((0,), (1,)), ((0, 1), (3,))]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_shapes_are_broadcast_as_numpy_does(shapes):
    program = jax.make_jaxpr(lambda *xs: util.broadcast_args(*xs))(*[np.ones(shape, np.float32) for shape in shapes])
    assert {aval.shape for aval in program.out_avals} == {np.broadcast_shapes(*shapes)}


@pytest.mark.parametrize("old, target", [((3,), (2,)), ((2, 3), (3,)), ((2, 1), (3, 3)), ((3,), ()), ((2,), (0,))])
def test_what_cannot_be_repeated_names_both_shapes(old, target):
    with pytest.raises(ValueError) as caught:
        util.broadcast_to_shape(np.ones(old), target)
    assert str(old) in str(caught.value) and str(target) in str(caught.value)


def test_constants_of_rank_0_stay_beside_arrays():
    row = np.ones((2, 3), np.float32)
    one, other = util.broadcast_args(*util.promote_dtypes(2, row))
    assert np.shape(one) == () and one.dtype == np.float32 and other is row


@pytest.mark.parametrize("args, dtype, inexact", [
    ((1, np.int8(2)), "int8", "float32"), ((1.5, np.int8(2)), "float32", "float32"), ((True, 2), "int32", "float32"),
    ((1, np.float16(2)), "float16", "float16"), ((1j, np.float32(2)), "complex64", "complex64"),
    ((np.uint8(1), np.int8(1)), "int16", "float32"), ((np.float16(1), np.int32(1)), "float16", "float16"),
    ((True, False), "bool", "float32")])
def test_numbers_promote_together(args, dtype, inexact):
    program = jax.make_jaxpr(lambda *xs: (util.promote_dtypes(*xs), util.promote_dtypes_inexact(*xs)))(*args)
    assert [aval.dtype.name for aval in program.out_avals] == [dtype] * 2 + [inexact] * 2
    assert util.result_type(*args) == dtype


def test_result_type_says_whether_it_is_weak():
    assert util.result_type(1, 2.0, return_weak_type_flag=True) == (np.float32, True)
    assert util.result_type(1, np.int8, return_weak_type_flag=True) == (np.int8, False)
    with pytest.raises(ValueError, match="at least one"):
        util.result_type()


@pytest.mark.parametrize("value, words", [
    ([1, 2], "use jnp.array"), ("3", r"float\(text\) reads one"), ({"a": 1}, "jax.tree.map"), (len, "call it"),
    (None, "is a return missing"), (jax.ShapeDtypeStruct((2,), np.float32), "jax.eval_shape"), (object(), "converts what holds")])
def test_what_is_no_array_is_named_with_its_place(value, words):
    with pytest.raises(TypeError, match=rf"add requires ndarray or scalar arguments, got .* at position 1: .*{words}"):
        util.check_arraylike("add", 1.0, value)


def test_ranks_are_promoted_as_the_option_says():
    row, table = np.ones(3, np.float32), np.ones((2, 3), np.float32)
    both = lambda: jax.make_jaxpr(lambda *xs: util.broadcast_args(*xs))(row, table)
    with override("jax_numpy_rank_promotion", "raise"), pytest.raises(ValueError, match=r"\(3,\) \(2, 3\)"):
        both()
    with override("jax_numpy_rank_promotion", "raise"), pytest.raises(ValueError, match=r"for add on shapes \(2, 3\)"):
        util.promote_args("add", table, row)
    with override("jax_numpy_rank_promotion", "warn"), pytest.warns(UserWarning, match="automatic rank promotion on shapes"):
        both()
    with override("jax_numpy_rank_promotion", "allow"), warnings.catch_warnings():
        warnings.simplefilter("error")
        both()


@pytest.mark.parametrize("n", [1, util.MANY, util.MANY + 1, 3 * util.MANY, util.MANY * util.PIECE + 1])
def test_very_many_are_joined_in_pieces(n):
    sizes = []

    def first(numbers):
        sizes.append(len(numbers))
        return list(numbers)

    def join(lists):
        sizes.append(len(lists))
        return [number for some in lists for number in some]
    assert util.in_pieces(first, join, list(range(n))) == list(range(n))
    assert max(sizes) <= util.MANY


NOT_OF_NUMBERS = {"save", "savez", "load", "fromfile", "printoptions", "set_printoptions"}  # files and texts


class Choice(enum.IntEnum):
    TWO = 2


class Weight(float):
    """A number of a class of the user's."""


def _types_of(call, f, number, x):
    """The types of a call's results; None where it is refused."""
    try:
        results = jax.eval_shape(lambda x: call(f, number, x), x)
    except Exception:
        return None
    return [(x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(results)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", [jnp, jax.lax, jax.nn, jax.scipy.special], ids=lambda m: m.__name__)
def test_an_object_of_a_class_derived_from_a_number_is_that_number(module):
    """In every function, beside an array of floats, one of integers, and alone."""
    calls = [lambda f, v, x: f(x, v), lambda f, v, x: f(v, x), lambda f, v, x: f(v, v),
             lambda f, v, x: f(x > 0, v, x), lambda f, v, x: f([v, v])]
    functions = [(name, f) for name in module.__all__ if callable(f := getattr(module, name))
                 and not isinstance(f, type) and name not in NOT_OF_NUMBERS]
    seen = 0
    for (name, f), (number, plain), x, call in itertools.product(
            functions, [(Choice.TWO, 2), (Weight(0.5), 0.5)], [jnp.ones(3), jnp.arange(3)], calls):
        if (want := _types_of(call, f, plain, x)) is not None:
            seen += 1
            assert want == _types_of(call, f, number, x), (name, number)
    assert seen > 20
