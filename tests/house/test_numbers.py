"""Numbers and their types: which Python ints fit, which dtypes they lead to, what gives way, values at
infinity."""
import re

import numpy as np
import pytest
from places import TESTS

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.dtypes import short_name

U = jnp.arange(3, dtype="uint8")
BINARY = ["add", "bitwise_and", "bitwise_or", "bitwise_xor", "copysign", "divide", "divmod", "float_power",
          "floor_divide",
          "fmax", "fmin", "fmod", "gcd", "heaviside", "hypot", "isclose", "lcm", "left_shift", "logaddexp",
          "logical_and",
          "maximum", "minimum", "multiply", "nextafter", "outer", "remainder", "right_shift", "subtract"]
LAX = ["add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "div", "eq", "ge", "lt", "max", "min",
       "mul",
       "mulhi", "rem", "shift_left", "shift_right_logical", "sub"]
OPERATORS = ["u + n", "n + u", "u - n", "u * n", "u / n", "u // n", "n // u", "u % n", "divmod(u, n)",
             "u & n", "n | u",
             "u ^ n", "u << n", "n >> u", "n ** u"]
PLACES = ["append(u, n)", "arange(n, n + 2, dtype=u.dtype)", "arange(0, 3, n, dtype=u.dtype)",
          "array(n, u.dtype)",
          "asarray([[n, 1]], u.dtype)", "astype(n, u.dtype)", "choose(u, [1, n, 2], mode='clip')",
          "clip(u, 0, n)",
          "clip(u, n)", "diff(u, prepend=n)", "ediff1d(u, to_end=n)",
          "fill_diagonal(jnp.stack([u, u]), n, inplace=False)", "full(3, n, u.dtype)", "full_like(u, n)",
          "insert(u, 0, n)", "max(u, initial=n)", "pad(u, 1, constant_values=n)",
          "pad(u, 1, constant_values=(0, n))",
          "pad(u, 1, 'linear_ramp', end_values=n)", "place(u, u > 0, n, inplace=False)", "polyval(u, n)",
          "put(u, 0, n, inplace=False)", "select([u > 0], [u], n)", "stack([u[0], n])", "sum(u, initial=n)",
          "take(u, 9, mode='fill', fill_value=n)", "take_along_axis(u, u + 9, 0, mode='fill', fill_value=n)",
          "unique(u, size=5, fill_value=n)", "where(u > 0, u, n)", "where(u > 0, n, u)"]
METHODS = ["u.at[0].set(n)", "u.at[0].add(n)", "u.at[u > 0].multiply(n)", "u.at[0].max(n)",
           "u.at[9].get(mode='fill', fill_value=n)", "u.clip(0, n)", "lax.full((3,), n, u.dtype)",
           "lax.full_like(u, n)", "lax.clamp(0, u, n)", "lax.convert_element_type(n, u.dtype)",
           "jnp.add.at(u, 0, n, inplace=False)", "jnp.add.outer(u, n)", "jnp.add.reduce(u, initial=n)"]
EXPRESSIONS = [*OPERATORS, *(f"jnp.{name}(u, n)" for name in BINARY), *(f"lax.{name}(u, n)" for name in LAX),
               *(f"lax.{name}(n, u)" for name in LAX), *(f"jnp.{place}" for place in PLACES), *METHODS]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_int_that_neither_its_dtype_nor_the_default_one_holds_is_refused(expression):
    f = eval(f"lambda u, n: {expression}")
    for n in (2**40, -2**40, 10**400):
        for run in (f, lambda u, n, f=f: jax.jit(lambda u: f(u, n))(u)):
            with pytest.raises(OverflowError, match="Python int .* is too large to convert to u?int"):
                run(U, n)


def test_an_int_that_fits_the_default_dtype_wraps():
    assert (U - 1).tolist() == [255, 0, 1] and (U & -1).tolist() == [0, 1, 2] and (U + 300).tolist() == [
        44, 45, 46]
    assert jnp.full(1, 300, "uint8") == lax.full((1,), 300, "uint8") == lax.full_like(U[:1], 300) == 44
    assert jnp.astype(300, "uint8") == 44 and jnp.where(True, 300, U[0]) == 44


def test_an_int_that_its_dtype_holds_is_taken():
    big = jnp.uint32(2**32 - 1)
    assert jnp.uint32(7) & (2**32 - 1) == 7 and jnp.maximum(
        jnp.uint32(7), 2**32 - 1) == big and big == 2**32 - 1
    assert jnp.full(1, 2**32 - 1, "uint32") == jnp.array([2**32 - 1], "uint32") == big
    assert jnp.float32(1) + 2**40 == 2.0**40 and jnp.bfloat16(1) * 2**40 == 2.0**40
    with jax.enable_x64():
        assert jnp.int8(1) + 2**40 == 1 and jnp.uint64(1) * (2**64 - 1) == 2**64 - 1
        with pytest.raises(OverflowError):
            jnp.int8(1) + 2**64
    with pytest.raises(OverflowError):
        jnp.int8(1) + 2**40          # what x64 allowed is not kept


@pytest.mark.parametrize("make, words", [
    (lambda: jnp.uint32(1) + 2**32,
     "4294967296 .* uint32, which holds 0 to 4294967295; int64 does: enable 64-bit types"),
    (lambda: jnp.uint8(-1), "-1 .* uint8, which holds 0 to 255; int32 does: jnp.int32"),
    (lambda: jnp.array([[1, 300]], "uint8"), "300 .* uint8, which holds 0 to 255; int32 does"),
    (lambda: jnp.array([1, 2**40]), "1099511627776 .* int32, .*; int64 does: enable"),
    (lambda: jnp.asarray(2**31), "2147483648 .* int32, .*; uint32 does"),
    (lambda: jax.jit(lambda x: x)(2**70), "int32, .*; no integer dtype does: write it as a float"),
    (lambda: jnp.int8(1) + 10**400, "of 1329 bits is too large to convert to int8"),
    (lambda: jnp.float16(1) + 2**40, "float16, which holds -65504.0 to 65504.0"),
])
def test_the_words_name_the_int_the_dtype_its_range_and_one_that_holds_it(make, words):
    with pytest.raises(OverflowError) as caught:
        make()
    assert re.search(words, str(caught.value)), caught.value


def test_numpy_integers_wrap_as_arrays_do():
    assert jnp.int32(1) + np.int64(2**40) == 1 and jnp.uint8(np.int64(300)) == 44


# --- dtypes with x64 on -------------------------------------------------------------------------------------

WIDTHS = {"bool": "float32", "int8": "float32", "uint8": "float32", "int16": "float32", "int32": "float32",
          "uint32": "float32", "int64": "float64", "uint64": "float64", "float16": "float16",
          "float32": "float32"}
INEXACT = ["arctan", "average", "cbrt", "cos", "deg2rad", "exp", "expm1", "i0", "log1p", "log2", "mean",
           "median", "nanmean",
           "nanmedian", "nanstd", "nanvar", "sin", "sinc", "sqrt", "std", "tanh", "var"]
TWO = ["arctan2", "copysign", "divide", "float_power", "heaviside", "hypot", "linspace", "logaddexp",
       "nextafter"]


@pytest.mark.parametrize("name", INEXACT + TWO)
def test_integers_of_64_bits_alone_become_float64(name):
    f = getattr(jnp, name) if name in INEXACT else lambda x: getattr(jnp, name)(x, x)
    with jax.enable_x64():
        for dtype, wanted in WIDTHS.items():
            for make in (np, jnp):
                assert jax.eval_shape(f, make.ones(3, dtype)).dtype == wanted, (name, dtype)
        assert jax.eval_shape(f, 2).dtype == "float64"
    assert {jax.eval_shape(f, np.ones(3, d)).dtype for d in WIDTHS if d[0] != "f"} == {np.dtype("float32")}


def test_places_and_triangles_keep_their_dtype_with_x64():
    with jax.enable_x64():
        v = jnp.arange(3.0)
        assert jnp.searchsorted(v, v).dtype == jnp.digitize(v, v).dtype == jnp.argpartition(
            v, 1).dtype == "int32"
        assert jnp.argsort(v).dtype == jnp.nonzero(v)[0].dtype == "int64" and jnp.tri(2).dtype == "float32"
        assert jnp.sort_complex(jnp.arange(3)).dtype == "complex128"
        assert jnp.unwrap(jnp.arange(3, dtype="int8")).dtype == "float64"


def test_python_booleans_beside_python_numbers_are_numbers():
    assert jnp.add(2, True) == 3 and jnp.maximum(True, 0.5) == 1.0 and jnp.array_equal(1, True)
    assert jax.vmap(lambda x: jnp.add(2, True) * x)(np.arange(2)).tolist() == [0, 3]


def test_the_first_operand_decides_the_dtype_of_quantiles_and_bins():
    half, x, n = jnp.arange(3, dtype="bfloat16"), jnp.arange(3.0), jnp.arange(3)
    for name in ("quantile", "nanquantile", "percentile", "nanpercentile"):
        f = getattr(jnp, name)
        for a, q, dtype in ((half, x[1], "bfloat16"), (n, half[1], "float32"), (x, np.float64(1), "float32"),
                            (half, 1, "bfloat16"), (WEAK[2], half[1], "float32")):
            assert f(a, q).dtype == dtype, (name, a.dtype)
    for a, bins, weights, dtype in ((half, x, None, "bfloat16"), (x, half, None, "float32"),
                                    (n, half, None, "float32"),
                                    (half, 2, x, "float32"), (x, 2, n, "float32"),
                                    (x, 2, x + 1j, "complex64")):
        assert {y.dtype for y in jnp.histogram(a, bins, weights=weights)} == {np.dtype(dtype)}
        assert jnp.histogram_bin_edges(a, bins).dtype == jnp.result_type(
            a.dtype, "bfloat16" if a is half else "float32")


def test_complex_numbers_fall_into_bins_by_their_real_part_then_by_the_imaginary_one():
    edges = jnp.array([0, 1, 1 + 1j, 2])
    z = jnp.array([0.5, 1 + 0.5j, 1 + 2j, 3, -1, complex(np.nan, 0), 1 + 1j])
    for side, places in (("left", [1, 2, 3, 4, 0, 4, 2]), ("right", [1, 2, 3, 4, 0, 4, 3])):
        for method in ("scan", "compare_all"):
            assert jnp.searchsorted(edges, z, side, method=method).tolist() == places
        assert jnp.digitize(z, edges, right=side == "left").tolist() == places
    assert jnp.digitize(z, edges[::-1]).tolist() == [3, 2, 1, 0, 4, 0, 1]
    counts, found = jnp.histogram(z[:5], edges)
    assert counts.tolist() == [1, 1, 1] and found.tolist() == edges.tolist() and counts.dtype == "complex64"
    with pytest.raises(TypeError, match="range must be two real numbers"):
        jnp.histogram(jnp.arange(3.0), 3, range=(0, 1j))


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_lengths_of_windows_may_be_floats(name):
    f = getattr(jnp, name)
    for length in (4.5, np.float32(4), jnp.float32(4.5), np.uint8(4)):
        np.testing.assert_array_equal(f(length), f(4))
    assert f(0.5).shape == (0,) and jnp.kaiser(4.5, 2).shape == (4,)
    assert jnp.triu_indices(np.uint8(3))[0].tolist() == jnp.triu_indices(3)[0].tolist()


@pytest.mark.parametrize("name, value, dtype", [
    ("leaky_relu", np.int8(-100), "float32"), ("hard_silu", np.float16(2), "float16"),
    ("sparse_plus", np.float16(0.3), "float16"), ("hard_sigmoid", np.arange(3, dtype=np.int16), "float32"),
    ("soft_sign", np.int8(-127), "float32"), ("relu6", 2j, "complex64"),
    ("elu", np.array([2j, -1]), "complex64"),
    ("sparse_sigmoid", np.float64(0.3), "float32")])
def test_activations_of_numpy_values_are_those_of_arrays(name, value, dtype):
    f = getattr(jax.nn, name)
    for out in (f(value), jax.jit(lambda: f(value))(), jax.jit(f)(value)):
        assert out.dtype == dtype
        np.testing.assert_allclose(out, f(jnp.asarray(value)), 2e-3 if dtype == "float16" else 1e-6)


# --- weak types ---------------------------------------------------------------------------------------------

WEAK = [jnp.asarray(2.5), jnp.broadcast_to(2.5, (3,)), jnp.broadcast_to(2, (3,)), 2.5, 2j]
STRONG = [np.float32(2.5), np.ones(3), jnp.ones(3, "int8"), np.int64(2)]


@pytest.mark.parametrize("name", ["equal", "greater", "greater_equal", "less", "less_equal", "not_equal"])
def test_comparisons_are_weak_where_both_operands_give_way(name):
    f = getattr(jnp, name)
    for x in WEAK:
        assert jax.eval_shape(f, x, 1.0).weak_type and jax.eval_shape(f, x, x).weak_type
        assert not any(jax.eval_shape(f, x, y).weak_type for y in STRONG if np.asarray(y).dtype.kind == "f")
    assert not jax.eval_shape(f, True, True).weak_type and f(WEAK[1], 1.0).weak_type


def test_what_is_made_of_weak_comparisons_is_strong():
    w = WEAK[1] < 1
    for out in (w & w, w | True, ~w, w.any(), w.astype(bool), jnp.where(w, w, w), jnp.stack([w, w]),
                jnp.maximum(w, w)):
        assert out.dtype == bool and not out.weak_type
    assert (w + jnp.int8(1)).dtype == "int8" and jnp.isnan(WEAK[0]).weak_type and lax.is_finite(
        WEAK[1]).weak_type
    assert lax.while_loop(lambda c: ~c, lambda c: c | (WEAK[0] > 1), False)
    assert lax.cond(True, lambda: WEAK[0] > 1, lambda: jnp.asarray(False))
    assert lax.scan(lambda c, x: (x > 1, c), jnp.asarray(False), WEAK[1])[0]


# Functions made of several operations: what a weak scalar and a weak vector give, w for weak and s for
# strong.
KEPT = {"ww": ["abs", "cbrt", "diff", "exp", "fabs", "flip", "negative", "nn.relu", "nn.sigmoid", "sin",
               "sqrt",
               "square", "tanh", "trunc"],
        "ws": ["deg2rad", "rad2deg", "sinc"], "ss": ["frexp", "log10", "log2", "spacing"],
        "ww2": ["add", "arctan2", "divide", "float_power", "fmax", "fmod", "logaddexp", "maximum", "multiply",
                "remainder", "where"],
        "ws2": ["heaviside", "hypot", "logaddexp2"], "w": ["diag", "ediff1d"], "s": ["diagflat"]}


@pytest.mark.parametrize("kept, name", [(kept, name) for kept, names in KEPT.items() for name in names])
def test_results_of_weak_operands_are_weak_unless_constants_hinder_it(kept, name):
    f = getattr(jax.nn, name[3:]) if name.startswith("nn.") else getattr(jnp, name)
    operands = WEAK[1:2] if len(kept) == 1 or name in ("diff", "flip") else WEAK[:2]
    for x, wanted in zip(operands, kept[-1:] if len(operands) == 1 else kept):
        args = (True, x, x) if name == "where" else (x,) * (2 if "2" in kept else 1)
        for result in (jax.tree.leaves(jax.eval_shape(f, *args)), jax.tree.leaves(f(*args))):
            assert {y.weak_type for y in result} == {wanted == "w"}, name


@pytest.mark.parametrize("scalars, vectors, names", [
    ("w", "w", ["isnan", "isfinite"]), ("w", "s", ["iscomplex", "isreal", "logical_not"]),
    ("s", "s", ["isinf", "isneginf", "isposinf", "signbit"])])
def test_predicates_are_weak_of_scalars_that_give_way_unless_constants_hinder_it(scalars, vectors, names):
    for name in names:
        f = getattr(jnp, name)
        for x, wanted in ((2.5, scalars), (WEAK[0], scalars), (WEAK[1], vectors)):
            assert f(x).weak_type == jax.eval_shape(f, x).weak_type == (wanted == "w"), name
        assert not any(f(x).weak_type for x in (True, np.float32(2), jnp.ones(3), jnp.arange(3)))


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logic_of_scalars_gives_way_as_their_sum_would(name):
    f = getattr(jnp, name)
    for x, y in ((2, 2.5), (True, 2), (np.bool_(1), 2j), (np.int32(1), 2.5), (WEAK[0], np.int8(1))):
        assert f(x, y).weak_type and jnp.add(x, y).weak_type
    for x, y in ((True, True), (2, np.int32(1)), (2.5, np.float32(1)), (WEAK[1], 2), (2, WEAK[2])):
        assert not f(x, y).weak_type


def test_a_spacing_of_1_decides_no_dtype_and_angles_of_small_scalars_are_float32():
    assert not jnp.gradient(np.arange(3)).weak_type and jnp.gradient(WEAK[2]).weak_type
    assert jnp.gradient(np.arange(3), 2.0).weak_type and jnp.gradient(
        jnp.arange(3, dtype="bfloat16")).dtype == "bfloat16"
    assert jnp.angle(jnp.float16(1)).dtype == "float32" and jnp.angle(
        jnp.ones(1, "float16")).dtype == "float16"
    assert jnp.angle(WEAK[1]).weak_type and not jnp.angle(2.5).weak_type and jnp.angle(2j).weak_type
    with jax.enable_x64():
        assert jnp.angle(np.ones(3, np.int8)).dtype == jnp.rint(np.int8(1)).dtype == "float64"
        assert jnp.square(True).dtype == jnp.power(True, 2).dtype == "int32"


@pytest.mark.parametrize("name", ["add", "atan2", "div", "max", "mul", "pow", "rem", "sub", "eq", "lt"])
def test_a_number_beside_a_weak_array_is_weak_in_lax_too(name):
    f = getattr(lax, name)
    assert f(WEAK[1], 2.0).weak_type and f(2.0, WEAK[1]).weak_type and not f(jnp.ones(3), 2.0).weak_type


def test_powers_take_the_dtype_of_integers_that_are_given():
    assert not jnp.power(2.0, jnp.arange(3)).weak_type and (2.0 ** jnp.int8(2)).dtype == "float32"
    assert (jnp.int8(2) ** np.int64(3)).dtype == "int8" and jnp.power(2, np.int32(3)).weak_type


def transposed(f):
    return lambda x: jax.linear_transpose(lambda y: y * f(1.0), x)(x)[0]


def test_derivatives_have_the_weakness_of_what_they_belong_to():
    w = 2.0
    for f in (lambda x: x * 2, jnp.sin, lambda x: x + 1, lambda x: 1 / x):
        assert [y.weak_type for y in jax.jvp(f, (w,), (1.0,))] == [True, True]
        assert [y.weak_type for y in jax.jvp(f, (np.float32(w),), (1.0,))] == [False, False]
        assert [y.weak_type for y in jax.jit(lambda x, f=f: jax.jvp(f, (x,), (x,)))(w)] == [True, True]
        for d in (jax.grad, jax.jacfwd, jax.jacrev, transposed):
            assert d(f)(w).weak_type and not d(f)(np.float32(w)).weak_type
    assert jax.jacfwd(jnp.sin)(WEAK[1]).weak_type
    for f in (lambda z: z.real * 2, jnp.abs, lambda z: (z * z).real):
        assert not jax.grad(f)(2j).weak_type


@pytest.mark.parametrize(
    "name", ["relu6", "elu", "celu", "selu", "leaky_relu", "hard_sigmoid", "hard_silu", "sparse_plus"])
def test_activations_of_integers_are_floats_that_give_way(name):
    f = getattr(jax.nn, name)
    out = jax.eval_shape(f, np.arange(3, dtype=np.int32))
    assert out.dtype == "float32" and out.weak_type and jax.eval_shape(
        f, jnp.ones(3, "bfloat16")).dtype == "bfloat16"


# --- the whole table ----------------------------------------------------------------------------------------

TABLE = (TESTS / "result_types.txt").read_text().split("## ")[1:]
NUMBERS = {"bool": True, "int": 2, "float": 2.5, "complex": 2j}
OPERANDS = {"py": NUMBERS.get, "nps": lambda d: np.dtype(d).type(1), "np1": lambda d: np.ones(3, d),
            "j1": lambda d: jnp.ones(3, d), "w0": lambda d: jnp.asarray(NUMBERS[d]),
            "w1": lambda d: jnp.broadcast_to(NUMBERS[d], (3,))}


def operands(kind):
    return [OPERANDS[place](dtype) for place, dtype in (word.split("_") for word in kind.split(","))]


def types_of_results(f, args):
    leaves = jax.tree.leaves(jax.eval_shape(lambda: f(*args)))
    return ",".join(short_name(x.dtype) + "*" * x.weak_type for x in leaves) or "()"


@pytest.mark.filterwarnings("ignore:nn.one_hot of float", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("module", ["jnp", "lax", "nn"])
@pytest.mark.parametrize("block", TABLE, ids=lambda block: block.splitlines()[0][:13])
def test_types_of_results_are_those_of_jax(block, module):
    head, *rows = block.strip().splitlines()
    setting, kinds = head.split(", ", 1)
    with jax.enable_x64(setting == "x64 on"):
        args = {kind: operands(kind) for kind in kinds.split("; ")}
        for row in rows:
            name, wanted = row.split(": ")
            if name.startswith(module + "."):
                f = getattr({"jnp": jnp, "lax": lax, "nn": jax.nn}[module], name.split(".")[1])
                for (kind, operand), types in zip(args.items(), wanted.split(), strict=True):
                    assert types == "-" or types_of_results(f, operand) == types, (name, kind)


# --- complex numbers at infinity ----------------------------------------------------------------------------

PARTS = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("name", ["abs", "cos", "sin"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_values_on_the_axes_and_at_infinity_are_numpys(name, dtype):
    parts = PARTS if name == "abs" else PARTS[:4]
    z = np.array([complex(a, b) for a in parts for b in PARTS], dtype)
    with jax.enable_x64(), np.errstate(all="ignore"):
        found, wanted = np.asarray(getattr(jnp, name)(z)), getattr(np, name)(z)
    assert found.dtype == wanted.dtype
    for got, want in ((found.real, wanted.real), (found.imag, wanted.imag)):
        np.testing.assert_allclose(got, want, 1e-6)
        known = ~np.isnan(got)
        np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(want)[known])


# --- numbers beside mapped operands -------------------------------------------------------------------------

MAPPED = {"float": np.array([[1.5, 0.5, 2.0], [3.0, 0.25, 1.0]], np.float32),
          "int": np.array([[1, 2, 0], [3, 1, 2]], np.int32),
          "scalar": np.array([1.5, 0.5], np.float32), "index": np.array([1, 2], np.int32)}
ORDERS = {"after": lambda f, n: lambda a: f(a, n), "before": lambda f, n: lambda a: f(n, a)}
METHODS_OF_ROWS = [lambda a: a % 2, lambda a: 7 // (a + 1), lambda a: divmod(a, 2), lambda a: a ** 2,
                   lambda a: 2 ** a,
                   lambda a: jnp.arange(5.0)[a.astype(int) % 5], lambda a: jnp.clip(a, 1, 2),
                   lambda a: a.round(1),
                   lambda a: jnp.where(a > 1, 0, a),
                   lambda a: jnp.take(jnp.arange(4.0), a.astype(int), mode="wrap"),
                   lambda a: jnp.unravel_index(a.astype(int), (2, 3)),
                   lambda a: jnp.unwrap(jnp.atleast_1d(a)),
                   lambda a: jnp.choose(a.astype(int) % 2, [1, 2]),
                   lambda a: lax.clamp(0.0, a.astype(float), 1.0)]


def mapped_functions(row, order):
    """Functions of a row: each public one that takes the row and a number in this order and gives numbers."""
    makes = [ORDERS[order](f, 2) for module in (jnp, lax) for name in sorted(module.__dict__)
             if name[0] != "_"
             and callable(f := getattr(module, name)) and not isinstance(f, type) and not name.endswith("_p")]
    for f in [*makes, *(METHODS_OF_ROWS if order == "after" else [])]:
        try:
            leaves = jax.tree.leaves(jax.eval_shape(f, row))
        except Exception:
            continue        # it does not take them at all
        if leaves and all(hasattr(x, "dtype") and x.dtype.kind in "bifuc" for x in leaves):
            yield f


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", MAPPED)
def test_each_function_of_a_row_and_a_number_is_mapped_as_a_loop(kind, order):
    rows = MAPPED[kind]
    functions = list(mapped_functions(rows[0], order))
    assert len(functions) > 10
    together = jax.jit(lambda a: [jax.tree.leaves(f(a)) for f in functions])
    found = jax.jit(jax.vmap(lambda a: [jax.tree.leaves(f(a)) for f in functions]))(rows)
    wanted = jax.tree.map(lambda *xs: np.stack(xs), *[together(row) for row in rows])
    for f, results, expected in zip(functions, found, wanted, strict=True):
        for got, want in zip(results, expected, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, 2e-5, 1e-6,
                                       err_msg=repr(f.__closure__ and f.__closure__[0].cell_contents))
