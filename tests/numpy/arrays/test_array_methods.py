"""The operators and methods of arrays."""

import collections.abc
import operator
import warnings

import ml_dtypes
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.api.autodiff import grad
from hlotrace.api.jit import jit
from hlotrace.core.array import Array

X = np.array([[1.5, -2.0, 3.0], [4.0, 5.5, -6.0]], "float32")
I = np.array([[5, -7, 3], [2, 9, -4]], "int32")

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]
BITS = [operator.and_, operator.or_, operator.xor]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize(("operators", "x", "others"), [
    (ARITHMETIC + COMPARISONS, X, (X[0], 2.0, 3)), (ARITHMETIC + COMPARISONS + BITS, I, (I[1], 3)),
], ids=["floats", "integers"])
def test_operators_agree_with_numpy_on_either_side(operators, x, others):
    """With NumPy arrays of other shapes and with Python numbers; traced and, for one of them, not."""
    a = jnp.asarray(x)
    found = jit(lambda a, *others: [[(op(a, b), op(b, a)) for b in others] for op in operators])(a, *others)
    for op, pairs in zip(operators, found, strict=True):
        for other, pair in zip(others, pairs, strict=True):
            np.testing.assert_allclose(pair[0], op(x, other), rtol=1e-6, err_msg=op.__name__)
            np.testing.assert_allclose(pair[1], op(other, x), rtol=1e-6, err_msg=op.__name__)
        for eager, traced in zip((op(a, other), op(other, a)), pair, strict=True):
            assert isinstance(eager, Array) and eager.dtype == traced.dtype
            np.testing.assert_array_equal(eager, traced, err_msg=op.__name__)


def test_other_operators():
    x, i = jnp.asarray(X), jnp.asarray(I)
    for found, wanted in [(i << 2, I << 2), (i >> 1, I >> 1), (1 << abs(i), 1 << abs(I)), (~i, ~I), (-x, -X), (+x, X),
                          (abs(x), abs(X)), (x**2, X**2), (x**-1, 1 / X), (i**3, I**3),
                          (2**abs(i), 2**abs(I)), (abs(x)**0.5, abs(X)**0.5), (x @ x.T, X @ X.T), (X @ x.T, X @ X.T),
                          (round(x), np.round(X).astype(int)), (round(x, 1), X), (divmod(i, 4)[0], I // 4),
                          (divmod(7, i)[1], 7 % I), (x @ jnp.ones(3), X @ np.ones(3)), (True & (x > 0), X > 0)]:
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5)
    x += 1
    np.testing.assert_allclose(x, X + 1)
    assert round(jnp.array(2.5)).dtype == "int32" and (np.float64(1) + x).dtype == "float32"
    bf16 = jnp.ones(2, ml_dtypes.bfloat16)
    assert (bf16 * 2).dtype == (1.5 - bf16).dtype == (bf16 / 3).dtype == "bfloat16"


def test_operators_leave_foreign_types_alone():
    class Foreign:
        def __radd__(self, other):
            return "radd"

        def __lt__(self, other):
            return "lt"
    x = jnp.ones(2)
    assert x + Foreign() == "radd" and (x > Foreign()) == "lt"
    assert (x == None) is False and (x != "a") is True  # noqa: E711
    for call in (lambda: x + [1, 2], lambda: [1] * jnp.array(2), lambda: x == [1, 1], lambda: (1, 2) @ x,
                 lambda: x + "a", lambda: x < None):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'ArrayImpl' and 'list'.*jnp.array"):
        x + [1, 2]


def test_arrays_are_immutable():
    x = jnp.ones(2)
    with pytest.raises(TypeError, match=r"x.at\[idx\].set\(y\)"):
        x[0] = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    assert not isinstance(x, collections.abc.Hashable)
    with pytest.raises(NotImplementedError, match="flatten"):
        x.flat  # noqa: B018


def test_iteration_takes_an_array_apart():
    x = jnp.arange(12).reshape(4, 3)
    assert [row.tolist() for row in x] == np.arange(12).reshape(4, 3).tolist()
    assert all(isinstance(v, Array) and v.shape == () for v in x[0])
    assert [int(v) for v in reversed(x[0])] == [2, 1, 0]
    assert [int(v) for v in jnp.arange(120)] == list(range(120)) and list(jnp.ones((0, 2))) == []
    a, b, c = jit(lambda v: tuple(w * 2 for w in v))(x[0])
    assert (a, b, c) == (0, 2, 4)
    assert grad(lambda v: sum(w * w for w in v))(jnp.arange(3.0)).tolist() == [0, 2, 4]
    assert 7 in x and 70 not in x
    with pytest.raises(TypeError, match="holds no str"):
        "w" in x      # noqa: B015
    with pytest.raises(TypeError, match="0-d"):
        iter(jnp.array(1))


METHODS = [
    ("all", ()), ("any", ()), ("argmax", (1,)), ("argmin", ()), ("argsort", ()), ("clip", (-1, 2)), ("conj", ()),
    ("conjugate", ()), ("cumprod", (1,)), ("cumsum", ()), ("diagonal", ()), ("dot", (X.T,)), ("flatten", ()), ("max", (0,)),
    ("mean", ()), ("min", ()), ("nonzero", ()), ("prod", (0,)), ("ravel", ()), ("repeat", (2,)), ("reshape", (3, 2)),
    ("reshape", ((2, -1),)), ("round", ()), ("squeeze", ()), ("std", ()), ("sum", ((0, 1),)),
    ("swapaxes", (0, 1)), ("take", (np.array([0, 4]),)), ("trace", ()), ("transpose", ()), ("transpose", (1, 0)),
    ("transpose", ((0, 1),)), ("transpose", (np.array([1, 0]),)), ("transpose", (None,)), ("var", (1,)),
    ("compress", (np.array([True, False, True]), 1)), ("copy", ()),
]


def test_methods_agree_with_numpy():
    x = jnp.asarray(X)
    for name, args in METHODS:
        wanted = getattr(X, name)(*args)
        found = getattr(x, name)(*args)
        for f, w in zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]:
            np.testing.assert_allclose(f, w, rtol=1e-5, err_msg=name)
    assert x.sort(axis=0).tolist() == np.sort(X, axis=0).tolist()
    assert x.ptp() == np.ptp(X) and x.T.shape == (3, 2) and jnp.ones((4, 2, 3)).mT.shape == (4, 3, 2)
    assert x.sum(axis=0, keepdims=True).shape == (1, 3)
    assert jnp.array([1, 3, 5]).searchsorted(jnp.array([2, 3])).tolist() == [1, 1]
    assert jnp.array([1, 0]).choose([jnp.array([1, 2]), jnp.array([3, 4])]).tolist() == [3, 2]
    assert bytes(jnp.array([1, 256])) == np.int32([1, 256]).tobytes()
    z = jnp.array([1 + 2j])
    assert z.real == 1 and z.imag == 2 and x.imag.sum() == 0 and z.conj()[0] == 1 - 2j
    assert x.at[0, 1].set(9)[0, 1] == 9 and x[0, 1] == -2 and x.clone() is not x
    with pytest.raises(ValueError, match="matrix_transpose"):
        x[0].mT  # noqa: B018


def test_astype():
    x = jnp.array([1.7, -1.2])
    assert x.astype(int).dtype == "int32" and x.astype("int8").tolist() == [1, -1]
    assert x.astype(jnp.bfloat16).dtype == jnp.bfloat16 and x.astype(bool).dtype == bool
    assert x.astype(None).dtype == "float32" and x.astype("float32").tolist() == x.tolist()
    for cast in (lambda x: x.astype("float32"), lambda x: jnp.astype(x, "float32")):
        with pytest.warns(DeprecationWarning, match="Casting from complex to real dtypes"):
            assert cast(x + 1j).dtype == "float32"
    with pytest.warns(jnp.ComplexWarning, match="discards the imaginary part"):
        assert jax.lax.convert_element_type(x + 1j, "float32").tolist() == x.tolist()
    with pytest.warns(UserWarning, match="float64 requested in .* is not available, and will be truncated to dtype float32"):
        x.astype("float64")


Z = jnp.array([1j, 2.])


@pytest.mark.parametrize("real", [
    lambda: jnp.asarray(Z, dtype=float), lambda: jnp.array(Z, dtype=int), lambda: jnp.full(2, Z[1], float),
    lambda: jnp.full_like(jnp.ones(2), Z[1]), lambda: jnp.sum(Z, dtype=float), lambda: jnp.float32(Z[1]),
    lambda: jnp.cumsum(Z, dtype=float), lambda: jnp.concatenate([Z], dtype=float),
    lambda: jax.jit(lambda z: jnp.asarray(z, dtype=float))(Z),
    lambda: jax.lax.full((2,), Z[1], float), lambda: jax.lax.convert_element_type(Z, float)])
def test_an_imaginary_part_is_lost_with_a_warning(real):
    with pytest.warns(jnp.ComplexWarning, match="discards the imaginary part") as found:
        assert not jnp.iscomplexobj(real())
    assert len(found) == 1


@pytest.mark.parametrize("write", [lambda x: x.set(1 + 1j), lambda x: x.add(Z[1]), lambda x: x.max(Z[1])])
def test_an_imaginary_part_that_is_written_is_lost_with_warnings(write):
    with pytest.warns(FutureWarning, match="cannot safely cast"), pytest.warns(jnp.ComplexWarning):
        write(jnp.zeros(2).at[0])


@pytest.mark.parametrize(
    "real",
    [
        lambda: jnp.full(2, 1j, float),
        lambda: jnp.full_like(jnp.ones(2), 1j),
        lambda: jax.lax.full((2,), 1j, float),
        lambda: jax.lax.convert_element_type(1j, float),
    ],
)
def test_a_complex_number_does_not_become_a_real_one(real):
    with pytest.raises(TypeError, match="must be a string or a real number, not 'complex'"):
        real()


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float32", "bfloat16", "float64", "complex64", "bool"])
def test_view_reads_the_same_bits(dtype):
    raw = np.arange(1, 33, dtype="uint8").reshape(2, 16) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")     # float64 is not available
        found = jnp.asarray(raw).view(dtype)
    wanted = raw.view("float32" if dtype == "float64" else ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    assert found.shape == wanted.shape and np.asarray(found).tobytes() == wanted.tobytes()
    assert np.asarray(found.view("uint8")).tobytes() == raw.tobytes()


def test_view_and_byteswap_edges():
    x = jnp.array([1.0, 2.0, 3.0])
    assert x.byteswap().tolist() == np.asarray(x).byteswap().tolist() and x.view() is x
    with pytest.raises(ValueError, match="last axis has 96 bits"):
        x.astype("int8")[:, None].repeat(12, 1).view("int8"), x.view("complex64")


def _two(x):
    a, b = x
    return a, b


def _four(x):
    a, b, c, d = x
    return a, b, c, d


@pytest.mark.parametrize("take", [_two, _four, lambda x: [(a, b) for a, b in [x]]])
@pytest.mark.parametrize("shape", [(3,), (3, 4), (1, 2)])
@pytest.mark.parametrize("road", [lambda f: f, jax.jit, lambda f: lambda x: jax.vmap(f)(x[None])])
def test_an_array_unpacked_into_the_wrong_number_says_its_shape(take, shape, road):
    few = "too many|not enough" if take is _four or shape[0] == 1 else "too many"
    with pytest.raises(ValueError, match=rf"({few}) values to unpack \(expected [24], got {shape[0]}\): an array of type "
                       rf"float32\[{','.join(map(str, shape))}\] is unpacked along axis 0, which has size {shape[0]}"):
        road(take)(jnp.ones(shape))


def test_an_array_is_unpacked_and_iterated_along_its_first_axis():
    x = jnp.arange(8.).reshape(4, 2)
    first, *rest = x
    assert len(rest) == 3 and len(_four(x)) == 4 and len(list(x)) == len([*x]) == len(tuple(iter(x))) == 4
    assert [float(a + b) for a, b in x] == [1., 5., 9., 13.]
    assert [float(a) for a, in x[:, :1]] == [0., 2., 4., 6.]
    for scalar in (jnp.float32(1), jnp.ones(())):
        with pytest.raises(TypeError, match=r"iteration over a 0-d array: one of type float32\[\]"):
            _two(scalar)
