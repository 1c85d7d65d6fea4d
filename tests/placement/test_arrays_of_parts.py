"""Arrays made of parts on eight devices: by a callback, of arrays on one device each, of a process's own
data."""
import numpy as np
import pytest
from mesh8 import PLACES, UNEVEN, backwards, counting, high, lies, low, on, on_device, one, put, whole

import hlotrace as jax
import hlotrace.numpy as jnp

A = counting((8, 4))
BOTH_DTYPES = "(?s)int32.*float32|float32.*int32"
of_callback = lambda *args, **kw: jax.make_array_from_callback(*args, **kw)
of_parts = lambda *args: jax.make_array_from_single_device_arrays(*args)
of_local = lambda *args: jax.make_array_from_process_local_data(*args)


@pytest.mark.parametrize("place", PLACES)
def test_make_array_from_callback(place):
    x = of_callback((8, 4), PLACES[place](), lambda index: A[index])
    whole(x, A)
    assert x.sharding == PLACES[place]() and x.committed


def test_the_callback_sees_the_index_of_each_shard():
    seen = []
    of_callback((8, 4), on("data"), lambda index: seen.append(index) or A[index])
    assert {(rows.start, rows.stop) for rows, _ in seen} == {(0, 2), (2, 4), (4, 6), (6, 8)}
    assert all(columns.indices(4) == (0, 4, 1) for _, columns in seen)


def test_the_callback_gives_numpy_or_arrays_of_any_dtype():
    for dtype in ("bfloat16", "int8", "bool", "complex64"):
        values = counting((8,)).astype(jnp.dtype(dtype))
        whole(of_callback((8,), on("data"), values.__getitem__), values)
    whole(of_callback((8, 4), on("data"), lambda i: jnp.asarray(A[i])), A)
    assert of_callback((8,), on("data"), lambda i: np.arange(8.0)[i]).dtype == np.float32
    whole(of_callback((), on(), lambda i: np.float32(3)), np.float32(3))
    whole(of_callback((8, 4), on("data"), lambda i: A[i], dtype=jnp.float32), A)


def parts(n=8, size=1):
    """Row k of the array on device k."""
    return [on_device(A[k:k + size], k) for k in range(n)]


@pytest.mark.parametrize("shape, where, arrays, want", [
    ((8, 4), lambda: on(("data", "model")), parts, A),
    ((8, 4), lambda: on(("data", "model")), lambda: parts()[::-1], A),
    ((8, 4), lambda: on(("data", "model")), lambda: tuple(parts()), A),
    ((8, 4), lambda: on("x", mesh=backwards), parts, A[::-1]),
    ((4, 4), lambda: on("x", mesh=low), lambda: parts(4), A[:4]),
    ((8, 4), lambda: on(), lambda: [on_device(A, k) for k in range(8)], A),
    ((8, 4), lambda: one(0), lambda: [jnp.asarray(A)], A),
    ((0, 4), lambda: on("data"), lambda: [on_device(A[:0], k) for k in range(8)], A[:0]),
])
def test_make_array_from_single_device_arrays(shape, where, arrays, want):
    x = of_parts(shape, where(), arrays())
    whole(x, want)
    assert x.sharding == where() and x.committed


def test_keys_are_put_together_from_single_device_arrays():
    keys = jax.random.split(jax.random.key(0), 8)
    pieces = [on_device(keys[k:k + 1], k) for k in range(8)]
    x = of_parts((8,), on(("data", "model")), pieces)
    assert x.dtype == keys.dtype
    np.testing.assert_array_equal(jax.random.key_data(x), jax.random.key_data(keys))


@pytest.mark.parametrize("make, error, text", [
    (lambda: of_callback((8, 4), on("data"), lambda i: A), ValueError,
     r"(?s)\(2, 4\).*\(8, 4\)"),
    (lambda: of_callback((6, 4), on("data"), lambda i: A[i]), ValueError, UNEVEN),
    (lambda: of_callback((8, 4), on("data"), lambda i: 1 / 0), ZeroDivisionError, "zero"),
    (lambda: of_callback((8, 4), on("data"), lambda i: A[i], dtype=jnp.int32), ValueError,
     BOTH_DTYPES),
    (lambda: of_callback((8,), on("data"), lambda i: A[i][:, 0].astype("fi"[i[0].start > 0])),
     ValueError, BOTH_DTYPES),
    (lambda: of_parts((8, 4), each(), parts(7)), ValueError, "(?s)8.*7|7.*8"),
    (lambda: of_parts((8, 4), each(), []), ValueError, "(?i)array|device"),
    (lambda: of_parts((8, 4), on("data"), parts()), ValueError, r"(?s)\(2, 4\).*\(1, 4\)"),
    (lambda: of_parts((16, 4), on("data"), parts()), ValueError, r"(?s)\(4, 4\).*\(1, 4\)"),
    (lambda: of_parts((6, 4), on("data"), parts()), ValueError, UNEVEN),
    (lambda: of_parts((4, 4), on("x", mesh=high), parts(4)), ValueError, "(?i)device"),
    (lambda: of_parts((8, 4), each(), [on_device(A[:1], 0)] * 8), ValueError, "(?i)device"),
    (lambda: of_parts((8, 4), each(), parts(7) + [on_device(A[7:].astype(np.int32), 7)]),
     ValueError, BOTH_DTYPES),
    (lambda: of_parts((8, 4), each(), [A[k:k + 1] for k in range(8)]), TypeError, "ndarray"),
    (lambda: of_parts((8, 4), each(), [put(A)] * 8), ValueError, "(?s)shard|device"),
    (lambda: of_parts((8, 4), on("data"), put(A)), TypeError, "(?s)list|sequence"),
    (lambda: of_parts((8, 4), each(), deleted_first(parts())), (RuntimeError, ValueError),
     "deleted|shard"),
    (lambda: of_local(on("data"), A, (16, 4)), ValueError, r"(?s)16"),
    (lambda: of_local(on("data"), A, (8,)), ValueError, r"\(8,"),
    (lambda: of_local(on("data"), A[:6]), ValueError, UNEVEN),
])
def test_parts_that_do_not_fit_are_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


def each():
    """One row on each device."""
    return on(("data", "model"))


def deleted_first(arrays):
    arrays[0].delete()
    return arrays


def test_make_array_from_process_local_data_of_one_process():
    for x in (of_local(on("data"), A),
              of_local(on("data"), A, (8, 4))):
        whole(x, A)
        assert x.sharding == on("data") and x.committed
    assert of_local(on(), np.arange(8)).dtype == np.int32
    tree = of_local(on("data"), {"a": A, "b": (A,)})
    assert lies(tree["a"], "data") and lies(tree["b"][0], "data")
