"""Making arrays: values as NumPy's, dtypes and weak types as JAX's."""
import array as buffers
import functools
import warnings

import ml_dtypes
import numpy as np
import pytest

import hlotrace
import hlotrace.numpy as jnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)
V = np.array([3, 1, 2], np.float32)


class JaxArray:
    def __jax_array__(self):
        return jnp.asarray(X)


class NumpyArray:
    def __array__(self, dtype=None, copy=None):
        return np.arange(3)


class Lookalike:
    shape, dtype = (3,), np.dtype("int8")


def is_array(x, value, dtype, weak=False):
    assert isinstance(x, hlotrace.Array)
    assert (x.dtype.name, x.weak_type) == (dtype, weak)
    np.testing.assert_allclose(np.asarray(x, x.dtype if x.dtype.kind != "V" else np.float32), value, 1e-6)


# --- array ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("value, dtype, expected, weak", [
    (1, None, "int32", True), (1.0, None, "float32", True), (True, None, "bool", False), (1j, None, "complex64", True),
    ([1.0, 2.0], None, "float32", False), ([True, 2], None, "int32", False), ([1, 2.5], None, "float32", False),
    ([], None, "float32", False), ([[], []], None, "float32", False), ([1j, 2], None, "complex64", False),
    ([np.int8(1), 2], None, "int8", False), ([np.int8(1), 2.5], None, "float32", False), (range(3), None, "int32", False),
    (1, "float32", "float32", False), ([1.5], int, "int32", False), (np.float64(1.5), None, "float32", False),
    (np.array(1.5), None, "float32", False), (np.array([1, 2]), "bfloat16", "bfloat16", False),
    (buffers.array("i", [1, 2]), None, "int32", False), (bytearray(b"abc"), None, "uint8", False),
    (np.ones(2, ml_dtypes.float8_e4m3fn), None, "float8_e4m3fn", False), (2.0**64, None, "float32", True),
])
def test_array_has_jax_dtype_and_weakness(value, dtype, expected, weak):
    plain = list(value) if isinstance(value, (range, bytearray, buffers.array)) else value
    wanted = np.asarray(plain, np.float32 if expected in ("bfloat16", "float8_e4m3fn") else expected)
    is_array(jnp.array(value, dtype), wanted, expected, weak)


def test_array_of_arrays_tracers_and_protocols():
    x = jnp.asarray(X)
    is_array(jnp.array([x, X]), [X, X], "float32")
    is_array(jnp.array([x[0, 1], 2]), [1, 2], "float32")
    is_array(jnp.array([jnp.int8(1), 2]), [1, 2], "int8")
    is_array(jnp.array([JaxArray(), x]), [X, X], "float32")
    is_array(jnp.array([NumpyArray()] * 2), [[0, 1, 2]] * 2, "int32")
    is_array(hlotrace.jit(lambda a: jnp.array([[a, 1], [2, a]]))(3.0), [[3, 1], [2, 3]], "float32")
    is_array(jnp.from_dlpack(V), V, "float32")
    is_array(jnp.frombuffer(V.tobytes(), np.float32, offset=4), V[1:], "float32")
    is_array(jnp.frombuffer(jnp.asarray(V), np.float32, offset=4), V[1:], "float32")


@pytest.mark.parametrize("value, kwargs, error, words", [
    (None, {}, ValueError, "None is not a valid value"), ([1, None], {}, ValueError, "None is not a valid value"),
    ("a", {}, TypeError, "not a valid JAX array type"), (["a"], {}, TypeError, "not a valid JAX array type"),
    ({1: 2}, {}, TypeError, "not a valid JAX array type"), (object(), {}, TypeError, "not a valid JAX array type"),
    (np.datetime64("2020"), {}, TypeError, "not a valid JAX array type"),
    ([[1, 2], [3]], {}, ValueError, "same length"), (2**31, {}, OverflowError, "too large"),
    ([2**31], {}, OverflowError, "too large"), (np.inf, {"dtype": "uint8"}, OverflowError, "float inf is too large"), (-1, {"dtype": "uint8"}, OverflowError, "too large"),
    (1, {"dtype": object}, TypeError, "not a numeric dtype"), (X, {"order": "F"}, NotImplementedError, "order"),
])
def test_array_refuses(value, kwargs, error, words):
    with pytest.raises(error, match=words):
        jnp.array(value, **kwargs)


def test_array_copies_and_asarray_does_not():
    x = jnp.asarray(X)
    assert jnp.asarray(x) is x and jnp.array(x, copy=False) is x and jnp.astype(x, "float32") is x
    for made in (jnp.array(x), jnp.copy(x), jnp.asarray(x, copy=True)):
        assert made is not x and made.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert jnp.array(x, ndmin=4).shape == (1, 1, 2, 3)
    source = V.copy()
    made = jnp.asarray(source)
    source[:] = 0
    np.testing.assert_array_equal(made, V)
    device = hlotrace.devices()[0]
    assert jnp.zeros(2, device=device).committed and not jnp.zeros(2).committed


def test_a_lossy_dtype_is_reported():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="int64 requested in .*array is not available, and will be truncated to dtype int32"):
            jnp.array([1], "int64")


# --- one value ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("make, value, dtype, weak", [
    (lambda: jnp.zeros(2), [0, 0], "float32", False), (lambda: jnp.zeros([1, 2], int), [[0, 0]], "int32", False),
    (lambda: jnp.ones(np.array([1, 2]), "complex64"), [[1, 1]], "complex64", False),
    (lambda: jnp.zeros(jnp.int32(2)), [0, 0], "float32", False),
    (lambda: jnp.empty((0, 2)), np.zeros((0, 2)), "float32",
                                                                  False),
    (lambda: jnp.full(2, 1), [1, 1], "int32", True), (lambda: jnp.full(2, 1, "int8"), [1, 1], "int8", False),
    (lambda: jnp.full((2, 3), V), [V, V], "float32", False), (lambda: jnp.full(2, True), [1, 1], "bool", False),
    (lambda: jnp.full((1,), jnp.float16(2)), [2], "float16", False),
    (lambda: jnp.zeros_like(1.0), 0, "float32", True),
    (lambda: jnp.ones_like(X, shape=(2,)), [1, 1], "float32", False),
    (lambda: jnp.full_like(np.arange(2), 2.7), [2, 2], "int32", False),
    (lambda: jnp.full_like(1, 2.5), 2, "int32", True),
    (lambda: jnp.full_like(X, np.arange(3)), [[0, 1, 2]] * 2, "float32", False),
    (lambda: jnp.zeros_like(Lookalike()), [0, 0, 0], "int8", False),
    (lambda: hlotrace.jit(lambda: jnp.full((2,), 1.0))(), [1, 1], "float32", True),
    (lambda: jnp.zeros((600, 600))[::599, 0], [0, 0], "float32", False),
])
def test_values_dtype_and_weakness(make, value, dtype, weak):
    is_array(make(), value, dtype, weak)


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.zeros((2, -3)), ValueError, "nonnegative"), (lambda: jnp.zeros(2.0), TypeError, "shape"),
    (lambda: jnp.zeros(2, "S3"), TypeError, "not a numeric dtype"), (lambda: jnp.full(2, [1, 2]), TypeError, "full"),
    (lambda: jnp.full((2, 3), V[:2]), ValueError, "broadcasting"),
    (lambda: jnp.zeros_like([1]), TypeError, "full_like"),
])
def test_creation_refuses(call, error, words):
    with pytest.raises(error, match=words):
        call()


# --- text, files, printing -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("value, dtype, expected", [
    ("1.5", float, 1.5), (b"2", "int8", 2), (["1", "2"], complex, [1, 2]), (np.array(["3"]), "uint8", [3]),
    ("", bool, False),
    (np.array([1, 2.5], object), "float16", [1, 2.5])])
def test_texts_and_objects_are_read_where_a_dtype_is_given(value, dtype, expected):
    result = jnp.array(value, dtype)
    assert result.dtype == jnp.ones(1, dtype).dtype
    np.testing.assert_array_equal(result, expected)
    assert jnp.float32("1.5") == 1.5
    with pytest.raises(ValueError, match="could not convert string to float"):
        jnp.float32("a")


def test_arrays_from_text_iterators_and_files(tmp_path):
    is_array(jnp.fromstring("1 2 3", dtype=np.float32, sep=" "), [1, 2, 3], "float32")
    is_array(jnp.fromiter((i * i for i in range(4)), np.int8), [0, 1, 4, 9], "int8")
    is_array(jnp.fromiter(iter([]), np.float32), [], "float32")
    V.tofile(tmp_path / "v")
    is_array(jnp.fromfile(tmp_path / "v", np.float32, count=2), V[:2], "float32")


def test_arrays_are_saved_and_loaded_as_numpys(tmp_path):
    for x in (jnp.asarray(X), jnp.zeros((0, 2), bool), jnp.array(-0.0), jnp.arange(3, dtype="bfloat16")):
        jnp.save(tmp_path / "x.npy", x)
        found = jnp.load(tmp_path / "x.npy")
        assert isinstance(found, hlotrace.Array) and found.dtype == x.dtype and found.shape == x.shape
        assert np.asarray(found).tobytes() == np.asarray(x).tobytes()
    jnp.savez(tmp_path / "x.npz", a=jnp.asarray(X), b=jnp.arange(3))
    with jnp.load(tmp_path / "x.npz") as found:
        np.testing.assert_array_equal(found["a"], X)
        np.testing.assert_array_equal(found["b"], np.arange(3))


def test_printing_is_numpys():
    x = jnp.array([1 / 3])
    before = jnp.get_printoptions()
    with jnp.printoptions(precision=2):
        assert str(x) == "[0.33]" and jnp.get_printoptions()["precision"] == 2
    try:
        jnp.set_printoptions(precision=3)
        assert str(x) == "[0.333]"
    finally:
        jnp.set_printoptions(**before)
    assert jnp.iterable(jnp.ones(0)) and not jnp.iterable(3.0)
    assert jnp.euler_gamma == np.euler_gamma and 0.57721 < jnp.euler_gamma < 0.57722


# --- constants -----------------------------------------------------------------------------------------------------------

BITS = {      # values that a careless comparison, or a decimal, would lose
    **{dtype: [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1 / 3, 1e-3, 448.0] for dtype in (
        "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")},
    "complex64": [complex(a, b) for a in (0.0, -0.0, np.nan, np.inf) for b in (0.0, -0.0, -np.inf, 1 / 3)],
    "int8": [-128, -1, 0, 127], "uint32": [0, 1, 2**31, 2**32 - 1], "int32": [-2**31, 2**31 - 1, 0], "bool": [True, False],
}
SMALLEST = {"float32": 2**-126 * 1.5, "float16": 2**-24, "bfloat16": 2**-126 * 1.5}


@pytest.mark.parametrize("dtype", BITS)
def test_constants_of_programs_keep_every_bit(dtype):
    """Alone, repeated, beside the value that equals them, in long arrays, and each in one program with all others."""
    values = np.array([*BITS[dtype], *filter(None, [SMALLEST.get(dtype)])], getattr(ml_dtypes, dtype, dtype))
    arrays = [values, values[:0], values.repeat(30), np.tile(values, 30), *values[:, None], *values,
              *(np.full((2, 3), v, values.dtype) for v in values), *(np.array([v, values[0], v]) for v in values)]
    found = hlotrace.jit(lambda: [jnp.asarray(a) for a in arrays])()
    for x, want in zip(found, arrays, strict=True):
        assert x.dtype == want.dtype and x.shape == want.shape
        assert np.asarray(x).tobytes() == want.tobytes(), want


def test_what_gives_an_array_is_an_operand():
    """Objects with __jax_array__, as Flax's variables are; those that are pytrees too hold tracers in compiled functions."""
    @hlotrace.tree_util.register_pytree_node_class
    class Variable:
        def __init__(self, value):
            self.value = value

        def __jax_array__(self):
            return self.value

        def __call__(self):
            raise AssertionError

        def tree_flatten(self):
            return (self.value,), None

        tree_unflatten = classmethod(lambda cls, _, values: cls(*values))
    class Plain(Variable):
        pass
    x, twos = jnp.arange(3.), np.array([2., 2, 2], np.float32)
    functions = [lambda v: x + v, lambda v: x == v, lambda v: 3 - x * v, lambda v: x @ v, lambda v: x ** v, jnp.sin,
                 lambda v: jnp.dot(x, v), lambda v: jnp.matmul(v, x), lambda v: jnp.add(v, v), jnp.sum, jnp.isnan,
                 lambda v: jnp.equal(v, v), lambda v: jnp.less(v, v), lambda v: jnp.array_equal(v, x),
                 lambda v: jnp.array_equiv([v], v),
                 lambda v: jnp.where(True, v, 0), lambda v: jnp.stack([v, v]), lambda v: jnp.einsum("i,i", x, v),
                 lambda v: jnp.clip(v, max=1), jnp.zeros_like, jnp.shape, lambda v: jnp.concatenate((x, v)),
                 hlotrace.nn.relu, lambda v: x.at[:].add(v), lambda v: jnp.reshape(v, (1, 3))]
    for kind in Variable, Plain:
        for function in functions:
            np.testing.assert_array_equal(function(kind(jnp.asarray(twos))), want := function(twos))
            np.testing.assert_array_equal(hlotrace.jit(lambda v, f=function, k=kind: f(k(v)))(twos), want)
    for make in hlotrace.jit, hlotrace.grad, hlotrace.vmap, hlotrace.make_jaxpr:
        with pytest.raises(hlotrace.errors.HoldsArrayError, match="Triggering __jax_array__"):
            make(lambda v: 1.0)(Plain(x))
    assert issubclass(hlotrace.errors.HoldsArrayError, ValueError)
    assert (x + Plain(2.)).tolist() == [2, 3, 4] and (hlotrace.grad(lambda x: jnp.dot(x, Plain(x)))(x) == 2 * x).all()
    with pytest.raises(TypeError, match="dot requires ndarray or scalar arguments, got <class 'object'> at position 1"):
        jnp.dot(x, object())


@pytest.mark.parametrize("dtype, ends",
                         [("int32", [-2**31, 2**31 - 1]), ("uint8", [0, 255]), ("int8", [-128, 127])])
def test_a_float_beyond_the_integers_becomes_the_nearest_one(dtype, ends):
    """As `astype` of an array has it, on the CPU."""
    for kind in float, np.float32:
        for value, want in ((-np.inf, ends[0]), (-3e10, ends[0]), (np.nan, 0), (3e10, ends[1]),
                            (np.inf, ends[1]),
                            (1.9, 1)):
            value = kind(value)
            for got in (jnp.full(1, value, dtype), jnp.full_like(jnp.ones(1, dtype), value),
                        hlotrace.lax.full((1,), value, dtype),
                        hlotrace.jit(functools.partial(jnp.full, 1, value, dtype))()):
                assert got.dtype == dtype and int(got[0]) == want


def test_full_of_keys():
    keys = jnp.full((2, 3), hlotrace.random.key(7))
    assert keys.shape == (2, 3) and (keys == hlotrace.random.key(7)).all()


def test_a_known_array_in_a_program_is_a_constant_of_it():
    """There is no equation for it, also under vmap and grad."""
    row = np.array([1, 2], np.float32)
    programs = {
        "{ lambda ; . let  in (1.0:f32[],) }": lambda: jnp.asarray(1.),
        "{ lambda ; . let  in (2:i8[],) }": lambda: jnp.int8(2),
        "{ lambda a:f32[2]; . let  in (a,) }": lambda: jnp.array(row),
        "{ lambda a:f32[2]; . let b:f32[2] = add a 1.0:f32[] in (b,) }": lambda: jnp.array([1., 2.]) + 1,
        # converted at once, where the number is one of the other type
        "{ lambda ; . let  in (1.0:bf16[],) }": lambda: jnp.asarray(1).astype(jnp.bfloat16),
        "{ lambda ; . let  in (2.0:f32[],) }": lambda: jnp.array(2).astype(jnp.float32),
        "{ lambda ; . let a:u8[] = convert_element_type[new_dtype=uint8 weak_type=False] 300:i32[] in (a,) }":
            lambda: jnp.asarray(300).astype("uint8"),
    }
    for text, fun in programs.items():
        assert " ".join(str(hlotrace.make_jaxpr(fun)()).split()) == " ".join(text.split())
    mapped = hlotrace.vmap(lambda x: hlotrace.grad(lambda y: y * jnp.asarray(3.))(x))
    assert "copy" not in str(hlotrace.make_jaxpr(mapped)(row))
    np.testing.assert_array_equal(hlotrace.jit(mapped)(row), [3, 3])
    chosen = hlotrace.jit(lambda x: hlotrace.lax.cond(x > 0, lambda: jnp.asarray(row),
                                                      lambda: 2 * jnp.array(row)))
    np.testing.assert_array_equal(chosen(-1.), 2 * row)
