"""Arrays as Python objects: NumPy, DLPack, pickle, repr, conversions, deletion, small dtypes.

Indexing and operators are tested elsewhere.
"""
import copy
import math
import operator
import pickle
import sys

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.jaxpr_trace import JaxprTrace
from hlotrace.runtime.array_impl import as_array, signature_of

a = jnp.array
SMALL = [jnp.bfloat16, jnp.float16, jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.int4, jnp.uint4, jnp.int8, jnp.bool_]


def small(dtype):
    return jnp.array([1, 0, 1] if dtype is jnp.bool_ else [1, 2, 3], dtype)


# --- NumPy ------------------------------------------------------------------------------------------------------

def test_numpy_sees_the_buffer_without_a_copy():
    x = jnp.arange(4.0)
    view = np.asarray(x)
    assert np.shares_memory(view, np.asarray(x)) and not view.flags.writeable
    if jax.default_backend() == "cpu":
        assert view.ctypes.data == x.unsafe_buffer_pointer()
    assert np.array(x).flags.writeable and np.asarray(x, copy=True).flags.writeable
    assert np.asarray(x, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="without a copy|avoid copy"):      # in NumPy's words, or in ours
        np.asarray(x, np.int32, copy=False)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    assert (
        np.shares_memory(x._value, view)
        and x.__array_priority__ < jax.jit(lambda x: x.__array_priority__)(x) == 1000
    )
    del x
    np.testing.assert_array_equal(view, np.arange(4.0))      # the view keeps the buffer
    if sys.version_info >= (3, 12):
        assert bytes(memoryview(a([1, 2], jnp.int8))) == b"\1\2"


def test_input_is_copied():
    n = np.zeros(64, np.float32)
    made = [jnp.asarray(n), jnp.array(n), jax.device_put(n), jax.jit(lambda x: x)(n), jnp.add(n, 0)]
    n[:] = 7
    assert [float(x.sum()) for x in made] == [0] * 5


@pytest.mark.quick
@pytest.mark.parametrize("place", [0, 1 << 18, (3 << 18) - 1], ids=["first", "in the middle", "last"])
def test_a_numpy_array_that_is_rewritten_is_another(place):
    """Three MiB, of which one number changes: a program that has seen the array takes it for another one then."""
    n = np.zeros(3 << 18, np.float32)
    before = JaxprTrace.held(n)
    assert JaxprTrace.held(n, before) is before and JaxprTrace.held(n.reshape(3, -1), before) is not before
    n[place] = 7
    assert JaxprTrace.held(n, before) is not before and np.asarray(JaxprTrace.held(n, before))[place] == 7
    n[place] = 0
    assert JaxprTrace.held(n, before) is before


def test_our_operators_win_over_numpys():
    n, x = np.ones(3, np.float32), jnp.ones(3)
    for y in (n + x, n * x, np.float32(2) * x, n == x, n @ x, n - x, n < x):
        assert isinstance(y, jax.Array)
    assert isinstance(np.sin(x), np.ndarray) and isinstance(np.stack([x, x]), np.ndarray)
    assert isinstance(1.0, jax.Array) is False and not isinstance(n, jax.Array)


@pytest.mark.parametrize("dtype", SMALL)
def test_small_dtypes_end_to_end(dtype):
    x = small(dtype)
    n = np.asarray(x)
    assert n.dtype == x.dtype == np.dtype(dtype) and n.dtype != object
    assert isinstance(x.tolist()[0], (int, float)) and float(x[0]) == 1
    wide = n.astype(np.float32)
    for y, want in ((x[::-1], wide[::-1]), (jnp.where(x == x, x, x), wide), (jnp.concatenate([x, x]), np.tile(wide, 2)),
                    (x.at[0].set(x[2]), wide[[2, 1, 2]]), (x.reshape(3, 1).T, wide[None]), (x.astype(jnp.float32), wide),
                    (jax.jit(lambda x: x * x)(x) if dtype is not jnp.bool_ else x, wide if dtype is jnp.bool_ else
                     (wide ** 2).astype(n.dtype).astype(np.float32)), (jax.vmap(lambda x: x)(x), wide),
                    (jax.lax.scan(lambda c, v: (v, c), x[0], x)[1], wide[[0, 0, 1]]), (jnp.sort(x), np.sort(wide)),
                    (pickle.loads(pickle.dumps(x)), wide), (copy.deepcopy(x), wide)):
        np.testing.assert_array_equal(np.asarray(y).astype(np.float32), want)
    assert jax.make_jaxpr(lambda x: x)(x).in_avals[0].dtype == x.dtype


def test_float0():
    g = jax.grad(lambda x, i: x * i, 1, allow_int=True)(2.0, 3)
    for z in (g, jax.jit(lambda: g)(), jax.jit(lambda x: x)(g), pickle.loads(pickle.dumps(jax.jit(lambda: g)()))):
        assert z.dtype == jax.dtypes.float0 and z.shape == () and np.asarray(z).dtype == jax.dtypes.float0
    z = jax.jit(lambda: jnp.zeros(2, jax.dtypes.float0))()
    for found, want in (z == z, True), (z != z, False), (np.zeros(2, jax.dtypes.float0) == z, True):
        assert np.asarray(found).tolist() == [want, want]


# --- text -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("x, text", [
    (lambda: a([1.0, 2.0]), "Array([1., 2.], dtype=float32)"),
    (lambda: jnp.float32(1), "Array(1., dtype=float32)"),
    (lambda: jnp.asarray(1.0), "Array(1., dtype=float32, weak_type=True)"),
    (lambda: jnp.asarray(3), "Array(3, dtype=int32, weak_type=True)"),
    (lambda: jnp.zeros((0,)), "Array([], shape=(0,), dtype=float32)"),
    (lambda: jnp.zeros((2, 0), jnp.int8), "Array([], shape=(2, 0), dtype=int8)"),
    (lambda: jnp.ones((2, 2)), "Array([[1., 1.],\n       [1., 1.]], dtype=float32)"),
    (lambda: a([True]), "Array([ True], dtype=bool)"),
    (lambda: a([1 + 2j]), "Array([1.+2.j], dtype=complex64)"),
    (lambda: a([1, 2], jnp.bfloat16), "Array([1, 2], dtype=bfloat16)"),
    (lambda: a([1, -2], jnp.int4), "Array([1, -2], dtype=int4)"),
    (lambda: a([1, 2], jnp.float8_e4m3fn), "Array([1, 2], dtype=float8_e4m3fn)"),
    (lambda: jnp.arange(2000), "Array([   0,    1,    2, ..., 1997, 1998, 1999], dtype=int32)"),
    (lambda: a([np.nan, np.inf]), "Array([nan, inf], dtype=float32)"),
    # the type is apart where the line has no room for it
    *[(lambda n=n: jnp.full(n, 2000, jnp.int16), f"Array([{', '.join(n * ['2000'])}],{gap}dtype=int16)")
      for n, gap in ((9, " "), (10, " "), (11, 6 * " "))],
    (lambda: jnp.full((2, 9), 2000), "Array([[{0}],\n       [{0}]],      dtype=int32, weak_type=True)"
     .format(", ".join(9 * ["2000"]))),
])
def test_repr(x, text):
    assert repr(x()) == text


def test_str_and_format():
    assert str(a([1.0, 2.0])) == "[1. 2.]" and str(a(1.5)) == "1.5"
    assert f"{a(1.5):.2f} {jnp.arange(2)} {a(3):03d}" == "1.50 [0 1] 003"
    assert repr(jax.random.key(0)).startswith("Array((), dtype=key<fry>) overlaying:")
    assert "float32[2]" in repr(jax.make_jaxpr(lambda x: [print(end=repr(x)[:0]), x][1])(jnp.ones(2)).in_avals[0])


# --- conversions ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("got, want", [
    (lambda: int(a(3)), 3), (lambda: float(a(2)), 2.0), (lambda: complex(a(1.0)), 1 + 0j), (lambda: bool(a(0)), False),
    (lambda: bool(a([[1]])), True), (lambda: operator.index(a(3)), 3), (lambda: [1, 2, 3][a(1)], 2),
    (lambda: list(range(a(2))), [0, 1]), (lambda: a([[1]]).item(), 1), (lambda: a([1, 2]).item(1), 2),
    (lambda: a([[1, 2]]).tolist(), [[1, 2]]), (lambda: hex(a(255)), "0xff"), (lambda: math.sqrt(a(4.0)), 2.0),
    (lambda: len(a([1, 2])), 2), (lambda: [int(x) for x in a([1, 2])], [1, 2]), (lambda: 1 in a([1, 2]), True),
    (lambda: sum(jnp.arange(3)).item(), 3), (lambda: [int(x) for x in reversed(jnp.arange(2))], [1, 0]),
    (lambda: [r.shape for r in jnp.ones((2, 3))], [(3,), (3,)]), (lambda: float(jnp.bfloat16(1.5)), 1.5),
    (lambda: a([1, 2], jnp.int8).tobytes(), b"\1\2"), (lambda: a([[1, 2], [3, 4]], jnp.int8).tobytes("F"), b"\1\3\2\4"),
    (lambda: a([[1, 2], [3, 4]]).item(1, 0), 3), (lambda: a([[1, 2], [3, 4]]).item((0, 1)), 2),
    (lambda: jax.device_get({"x": a(1)}), {"x": 1}),
])
def test_conversions(got, want):
    assert got() == want


@pytest.mark.parametrize("call, error, words", [
    (lambda: int(a([1, 2])), TypeError, "Only scalar arrays"), (lambda: int(a([3])), TypeError, "Only scalar arrays"),
    (lambda: float(a([[1.0]])), TypeError, "Only scalar arrays"), (lambda: float(a(1j)), TypeError, "complex"),
    (lambda: int(a(1j)), TypeError, "complex"), (lambda: bool(a([1, 2])), ValueError, "ambiguous"),
    (lambda: bool(a([])), ValueError, "ambiguous"), (lambda: operator.index(a(1.0)), TypeError, "integer scalar"),
    (lambda: operator.index(a([1])), TypeError, "integer scalar"), (lambda: operator.index(a(True)), TypeError, "integer"),
    (lambda: len(a(1)), TypeError, "len"), (lambda: iter(a(1)), TypeError, "0-d"),
    (lambda: a([1, 2]).item(), ValueError, "size 1"),
    (lambda: hash(a(1)), TypeError, "unhashable"), (lambda: {a(1): 1}, TypeError, "unhashable"),
    (lambda: a([1]).__setitem__(0, 2), TypeError, r"immutable.*\.at\["),
    (lambda: setattr(a(1), "shape", (2,)), AttributeError, ""),
    (lambda: a([1, 2]) + [1, 2], TypeError, "list"), (lambda: a(1) + "s", TypeError, "str"),
    (lambda: a(1) + None, TypeError, "None"), (lambda: float(jax.random.key(0)), TypeError, "key"),
    (lambda: np.asarray(jax.random.key(0)), TypeError, "key_data"),
    (lambda: jnp.asarray(2 ** 31), OverflowError, "too large"),
    (lambda: jnp.asarray("s"), TypeError, ""), (lambda: jnp.asarray(object()), TypeError, ""),
])
def test_errors_of_conversions(call, error, words):
    with pytest.raises(error, match=words or None):
        call()


def test_attributes():
    x = jnp.ones((2, 3))
    assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes, x.dtype, x.weak_type) == ((2, 3), 2, 6, 4, 24, "float32", False)
    assert x.devices() == {x.device} == {jax.devices()[0]} and x.sharding.device_set == x.devices()
    assert x.is_fully_addressable and x.is_fully_replicated and not x.committed
    assert x.block_until_ready() is x and x.is_ready() and jnp.asarray(x) is x
    assert jax.device_put(x, jax.devices()[0]).committed
    tree = {"a": x, "s": "text"}
    assert jax.block_until_ready(tree) is not None and a([1, 2], jnp.int4).nbytes in (1, 2)
    with pytest.raises(TypeError):
        jax.device_put("s")


# --- deletion, copies, exchange ---------------------------------------------------------------------------------

def test_deletion():
    x = jnp.ones(3)
    view = np.asarray(x)
    x.delete()
    x.delete()
    assert x.is_deleted() and x.shape == (3,) and x.dtype == "float32" and "deleted" in repr(x)
    np.testing.assert_array_equal(view, np.ones(3))
    for use in (lambda: x + 1, lambda: np.asarray(x), lambda: x[0], x.tolist, x.block_until_ready, lambda: pickle.dumps(x),
                lambda: copy.deepcopy(x), lambda: jax.device_get(x), lambda: jax.jit(lambda x: x)(x), x.__dlpack__,
                lambda: jax.grad(jnp.sum)(x), x.unsafe_buffer_pointer, lambda: jax.lax.scan(lambda c, x: (c, x), 0.0, x)):
        with pytest.raises(RuntimeError, match="deleted"):
            use()


@pytest.mark.parametrize("number", [2, 2.5, True, 1j, np.float32(2), np.int8(3), np.array(4.0, np.float32)], ids=repr)
def test_a_number_whose_array_was_deleted_is_a_number_still(number):
    """Arrays of numbers are shared among those who ask for them."""
    for _ in range(2):
        x = as_array(number)
        assert as_array(number) is x and x.item() == number
        x.delete()


@pytest.mark.parametrize("x", [lambda: jnp.arange(3.0), lambda: jnp.asarray(2.0), lambda: jnp.ones((0, 2)),
                               lambda: a([True])])
def test_pickle_and_copies(x):
    x = x()
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x), x.copy()):
        assert type(y) is type(x) and (y.dtype, y.shape, y.weak_type) == (x.dtype, x.shape, x.weak_type)
        np.testing.assert_array_equal(y, x)
    y = copy.deepcopy({"x": x})["x"]
    x.delete()
    assert not y.is_deleted()


def test_dlpack_to_another_device_is_refused():
    x = jnp.ones(3)
    assert np.from_dlpack(x, device="cpu").sum() == 3
    for other in ((2, 1), (2, 0), (1, 1)):
        with pytest.raises(BufferError, match=rf"array is on \(1, 0\).*\({other[0]}, {other[1]}\)"):
            x.__dlpack__(dl_device=other)


def test_dlpack():
    x = jnp.arange(4.0)
    n = np.from_dlpack(x)
    np.testing.assert_array_equal(n, np.arange(4.0))
    assert np.shares_memory(n, np.asarray(x)) and x.__dlpack_device__()[1] == 0
    for how, shared in ((None, True), (False, True), (True, False)):
        again = np.from_dlpack(x, copy=how)
        assert np.shares_memory(again, np.asarray(x)) is shared and again.tolist() == [0, 1, 2, 3]
    for source in (np.arange(3.0, dtype=np.float32), np.array([True, False]), np.arange(6, dtype=np.int32).reshape(2, 3),
                   np.arange(6, dtype=np.float32).reshape(2, 3).T, x):
        y = jnp.from_dlpack(source)
        assert isinstance(y, jax.Array)
        np.testing.assert_array_equal(y, source)
        np.testing.assert_array_equal(y + 0 if y.dtype != bool else y, source)
    assert jnp.from_dlpack(jnp.ones(2, jnp.bfloat16)).dtype == jnp.bfloat16
    with pytest.raises(BufferError, match="int4"):
        a([1], jnp.int4).__dlpack__()
    with pytest.raises(TypeError):
        jnp.from_dlpack(3)


def test_arrays_of_other_devices_come_by_dlpack():
    class Foreign:
        """An array of another library on a device that this process does not have."""
        kind = 7

        def __dlpack_device__(self):
            return self.kind, 0

        def __dlpack__(self, **options):
            raise AssertionError("not asked where the device is not here")
    for make in (jnp.from_dlpack, jnp.asarray, jnp.array):
        with pytest.raises(BufferError, match="DLPack's kind 7"):
            make(Foreign())


def test_zeros_keep_their_sign_and_ints_their_type():
    assert math.copysign(1, float(jnp.asarray(-0.0))) == -1 and math.copysign(1, float(jnp.asarray(0.0))) == 1
    assert math.copysign(1, float(jnp.ones(()) * -0.0)) == -1
    assert jnp.asarray(True).dtype == bool and jnp.asarray(1).dtype == "int32" and jnp.asarray(1.0).dtype == "float32"


def test_arrays_as_text_with_options():
    x = jnp.arange(12.) / 7
    assert jnp.array_repr(x) == repr(x) and jnp.array_str(x) == str(x)
    assert jnp.array_repr(x[:2], precision=2) == "Array([0.  , 0.14], dtype=float32)"
    assert jnp.array_str(x * 1e-9, precision=3, suppress_small=True) == np.array_str(np.asarray(x) * 1e-9, None, 3, True)
    assert max(map(len, jnp.array_repr(x, max_line_width=30).splitlines()[:-1])) <= 30
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(jnp.array_str)(x)


def test_where_an_array_lies_and_what_its_class_tells_of():
    x = jnp.ones(3)
    assert x.platform() == jax.default_backend() and "test_array_impl" in str(x.traceback)
    for name in ("addressable_data", "addressable_shards", "committed", "device", "item", "sharding", "delete"):
        assert getattr(jax.Array, name) and hasattr(x, name)
    for name in ("format", "device", "platform"):
        with pytest.raises(AttributeError, match="concrete arrays have it"):
            jax.jit(lambda x, name=name: getattr(x, name))(x)
    with pytest.raises(AttributeError, match="CUDA"):
        x.__cuda_array_interface__      # noqa: B018


def test_a_signature_is_of_one_type_in_one_place():
    first, second = (jax.sharding.SingleDeviceSharding(d) for d in jax.devices()[:2])
    one, other = jax.typeof(jnp.ones(2)), jax.typeof(jnp.ones(3))
    kept = signature_of(one, first)
    assert kept is signature_of(one, jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    assert len({kept, signature_of(one, second), signature_of(other, first)}) == 3
    x, y = jax.device_put(np.ones(2, np.float32), first), jnp.ones(2)
    assert x._signature is kept and y._signature is y.aval
