"""x[...] and x.at[...]: values against NumPy, modes, derivatives, vmap, errors."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
I2, I3, COLUMN = np.array([1, -1]), np.array([2, 0, 1]), np.array([[0], [2]])
MASK = X[:, :, 0] % 3 == 0
S = slice

INDICES = {
    "int": 1, "negative int": -2, "ints": (1, -1), "all ints": (0, 1, 2), "numpy int": np.int64(2), "empty tuple": (),
    "slice": S(1, 3), "empty slice": S(3, 1), "step": (S(None), S(None, None, 2)), "clipped": (S(-9, 9), 1),
    "reversed": (S(None, None, -1), S(None), S(3, None, -2)), "None": (None, 1, None), "ellipsis": (..., 2),
    "ellipsis in the middle": (1, ..., S(1, 4)), "array": I3, "array and slice": (I2, S(1, 3)), "late": (S(None), I2),
    "steps around": (S(None, None, 2), I2, S(None, None, -2)), "two arrays": (I2, I2), "broadcast": (COLUMN, I3),
    "separated": (I2, S(None), I2), "separated by None": (S(0, 2), I2, None, I2), "int joins": (0, S(None), I3),
    "int beside": (S(None), 1, I3), "repeated": np.array([0, 0, 2, 0]), "no indices": np.zeros(0, np.int64),
    "mask": MASK, "mask of an axis": (S(None), np.array([True, False, True, True])), "mask and int": (MASK, 1),
    "true": True, "false": False, "true and array": (True, I3), "list in tuple": ([0, 2], S(2)),
    "uint8": np.uint8([1, 2]),
}


def test_places_outside_of_programs_share_a_program():
    """Reads at static places compile once for all places, also step by step: under grad, vmap, disable_jit."""
    def steps(x, i):
        return x[i].sum() + x[i, 1] + x[i:i + 2].sum() + x[:, i].sum() + x.at[i].set(2.0)[i - 1].sum()
    x, seen = jnp.array(X[..., 0] * X[..., 1]), []
    with jax.disable_jit():
        np.testing.assert_allclose(steps(x, 1), jax.jit(steps, static_argnums=1)(x, 1), rtol=1e-6)
    want = jax.jit(jax.grad(steps), static_argnums=1)(x, 1)
    jax.grad(steps)(x, 0), jax.vmap(steps, (0, None))(x[None], 0)
    jax.monitoring.register_event_duration_secs_listener(listener := lambda event, *_, **__: seen.append(event))
    try:
        np.testing.assert_allclose(jax.grad(steps)(x, 1), want)
        jax.vmap(steps, (0, None))(x[None], 1)
        with jax.disable_jit():
            steps(x, 0)
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)
    assert not seen


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES.keys())
def test_index_reads_and_writes_as_numpy(index):
    want = X[index]
    y = np.random.default_rng(0).random(want.shape, np.float32)
    added, filled = X.copy(), X.copy()
    np.add.at(added, index, y)
    filled[index] = 7
    x = jnp.array(X)
    got, *compiled = x[index], *jax.jit(lambda x, y: (x[index], x.at[index].add(y), x.at[index].set(7)))(x, y)
    for result, expected in zip((got, *compiled, x.at[index].set(7)), (want, want, added, filled, filled)):
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_traced_index_arrays_and_scalars():
    x = jnp.array(X)
    read = jax.jit(lambda x, i, j: (x[i], x[j], x[1, j], x[j, :, j], x[i, :, 1:3], x.at[i, 2].set(0)))
    for i in (0, -1):
        written = X.copy()
        written[i, 2] = 0
        for got, want in zip(read(x, i, I2), (X[i], X[I2], X[1, I2], X[I2, :, I2], X[i, :, 1:3], written)):
            np.testing.assert_array_equal(got, want)


def test_eager_ints_share_one_program():
    from hlotrace.runtime.executables import compilation
    x = jnp.arange(7.) * 2
    x[0], x.at[0].set(1.), x[1:3]
    before = compilation.compile_count
    assert [float(x[i]) for i in range(-7, 7)] == [*range(0, 14, 2)] * 2
    assert float(x.at[5].set(3.)[5]) == 3 and x[4:6].tolist() == [8, 10]
    assert compilation.compile_count == before


def test_basic_indexing_needs_no_gather():
    text = str(jax.make_jaxpr(lambda x, i: (x[1], x[1:, ::-2], x[i], x[i, :, 2:], x.at[1:, 2].set(0)))(X, 1))
    assert "gather" not in text and "scatter" not in text and "dynamic_slice" in text


OUT = np.array([11, -11, 3])
MODES = [
    (lambda x: x[OUT], [9, 0, 3]), (lambda x: x[np.array(11)], 9), (lambda x: x.at[OUT].get(), [9, 0, 3]),
    (lambda x: x.at[OUT].get(mode="clip"), [9, 0, 3]), (lambda x: x.at[OUT].get(mode="fill"), [np.nan, np.nan, 3]),
    (lambda x: x.at[OUT].get(mode="fill", fill_value=7), [7, 7, 3]), (lambda x: x.at[11].get(mode="fill"), np.nan),
    (lambda x: x.at[-1].get(mode="fill", wrap_negative_indices=False), np.nan),
    (lambda x: x.at[OUT].set(5)[[0, 3, 9],], [0, 5, 9]), (lambda x: x.at[11].set(5, mode="drop").sum(), 45),
    (lambda x: x.at[OUT].set(5, mode="clip")[[0, 3, 9],], [5, 5, 5]),
    (lambda x: x.at[11].add(5, mode="clip")[9], 14), (lambda x: x.at[OUT].max(99, mode="drop").max(), 99),
    (lambda x: x.astype(int).at[11].get(mode="fill"), -2**31), (lambda x: (x > 3).at[11].get(mode="fill"), True),
    (lambda x: x.astype("uint8").at[11].get(mode="fill"), 255),
    (lambda x: jnp.take(x, OUT), [np.nan, np.nan, 3]), (lambda x: jnp.take(x, OUT, mode="wrap"), [1, 9, 3]),
    (lambda x: jnp.take(x, OUT, mode="clip"), [9, 0, 3]), (lambda x: jnp.take(x, OUT, fill_value=-1), [-1, -1, 3]),
    (lambda x: lax.dynamic_slice(x, (8,), (4,)), [6, 7, 8, 9]), (lambda x: lax.dynamic_slice(x, (-3,), (2,)), [7, 8]),
    (lambda x: lax.dynamic_update_slice(x, jnp.zeros(2), (9,))[7:], [7, 0, 0]),
]


@pytest.mark.parametrize("function, want", MODES)
def test_out_of_bounds(function, want):
    x = jnp.arange(10.)
    np.testing.assert_array_equal(function(x), np.asarray(want))
    np.testing.assert_array_equal(jax.jit(function)(x), np.asarray(want))


AT = {
    "set": lambda old, y: y, "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "power": np.power, "min": np.minimum, "max": np.maximum,
}


@pytest.mark.parametrize("name", AT)
def test_at_methods(name):
    for dtype in (np.float32, jnp.bfloat16, np.int32):
        x, y = jnp.array([4, 1, 3, 2], dtype), jnp.array([2, 3, 1], dtype)
        got = getattr(x.at[np.array([0, 2, 3])], name)(y)
        want = AT[name](np.float32([4, 3, 2]), np.float32([2, 3, 1]))
        np.testing.assert_array_equal(np.float32(got), np.insert(want, 1, 1))
        assert got.dtype == dtype or (name, dtype) == ("divide", np.int32)


def test_apply():
    x = jnp.arange(4.)
    np.testing.assert_array_equal(x.at[np.array([1, 1, 3])].apply(lambda v: v * 3), [0, 9, 2, 9])
    np.testing.assert_array_equal(jax.jit(lambda x: x.at[1:3].apply(jnp.square))(x), [0, 1, 4, 3])
    np.testing.assert_allclose(jax.grad(lambda x: x.at[2].apply(jnp.square).sum())(x), [1, 1, 4, 1])


def test_dtypes():
    z = jnp.array([1 + 2j, 3j])
    np.testing.assert_array_equal(z.at[np.array([0, 0])].add(1j)[:1], [1 + 4j])
    flags = jnp.array([True, False])
    np.testing.assert_array_equal(flags.at[1].set(True)[np.array([1, 0, 1])], [True] * 3)
    with pytest.warns(FutureWarning, match="cannot safely cast value from dtype=float32 to dtype=int32"):
        assert jnp.arange(3).at[0].set(1.5).tolist() == [1, 1, 2]
    assert jnp.arange(3, dtype=jnp.int8).at[0].add(300).tolist() == [44, 1, 2]
    with jax.enable_x64():
        assert jnp.arange(3)[np.array([2, -1])].tolist() == [2, 2]
    keys = jax.random.split(jax.random.key(0), 3)
    swapped = keys.at[jnp.array([0, 1])].set(keys[np.array([1, 0])])
    np.testing.assert_array_equal(jax.random.key_data(swapped)[:2], jax.random.key_data(keys)[np.array([1, 0])])


# --- derivatives ------------------------------------------------------------------------------------------------

def check_derivatives(function, *args):
    """jvp against a central difference, vjp against jvp by inner products."""
    rng = np.random.default_rng(1)
    tangents = [rng.standard_normal(a.shape).astype(np.float32) for a in args]
    ct = rng.standard_normal(jax.eval_shape(function, *args).shape).astype(np.float32)
    eps = 1e-2

    @jax.jit
    def everything(*args):
        return *jax.jvp(function, args, tuple(tangents)), jax.vjp(function, *args)[1](ct)
    (_, tangent, cotangents), after, before = (everything(*[a + by * t for a, t in zip(args, tangents)])
                                               for by in (0, eps, -eps))
    slope = (np.asarray(after[0]) - np.asarray(before[0])) / (2 * eps)
    np.testing.assert_allclose(tangent, slope, atol=2e-2, rtol=2e-2)
    np.testing.assert_allclose(np.vdot(ct, tangent), sum(np.vdot(c, t) for c, t in zip(cotangents, tangents)),
                               rtol=1e-3, atol=1e-3)


UNIQUE, TWICE, BEYOND = np.array([2, 0]), np.array([1, 1, 3, 1]), np.array([1, 7, -9])
P = np.float32([[.5, 2], [3, 1], [2, -1], [.3, .7]])


@pytest.mark.parametrize("index, n", [(UNIQUE, 2), (TWICE, 4), (BEYOND, 3), (S(1, 3), 2), (1, 1)],
                         ids=["unique", "twice", "beyond", "slice", "int"])
@pytest.mark.parametrize("name", ["set", "add", "multiply", "min", "max", "get"])
def test_derivatives_of_updates(name, index, n):
    if name == "get":
        return check_derivatives(lambda x: x.at[index].get(mode="fill", fill_value=1), P)
    y = np.linspace(-2, 3.1, 2 * n, dtype=np.float32).reshape(n, 2)
    y = y[0] if n == 1 else y

    def function(x, y):
        return getattr(x.at[index], name)(y, unique_indices=index is UNIQUE)
    if name == "multiply" and (index is TWICE or index is BEYOND):
        with pytest.raises(NotImplementedError, match="unique_indices=True"):
            jax.grad(lambda y: function(jnp.array(P), y).sum())(y)
        return check_derivatives(lambda x: function(x, y), P)
    return check_derivatives(function, P, y)


def test_gradients_of_windows():
    check_derivatives(lambda x, y: lax.dynamic_update_slice(lax.dynamic_slice(x, (1, 2, 0), (2, 2, 5)), y, (0, 1, 3)),
                      X, np.ones((2, 1, 2), np.float32))
    check_derivatives(lambda x: jnp.take_along_axis(x, I3.reshape(3, 1, 1), 1) * x[:, ::-2][:, :1], X / 60)


# --- vmap -------------------------------------------------------------------------------------------------------

_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))
BATCHED = {
    "scalar": lambda x, i, y: x[i[0]], "array": lambda x, i, y: x[i], "column": lambda x, i, y: x[1:, i, None],
    "fill": lambda x, i, y: x.at[i + 2].get(mode="fill"), "pairs": lambda x, i, y: x[i, i],
    "dynamic_slice": lambda x, i, y: lax.dynamic_slice(x, (i[0], i[1]), (2, 4)),
    "dynamic_update": lambda x, i, y: lax.dynamic_update_slice(x, y[:, :2], (i[0], i[1])),
    "set": lambda x, i, y: x.at[i].set(y), "add": lambda x, i, y: x.at[i, 1:3].add(y[:, :2]),
    "max": lambda x, i, y: x.at[:, i].max(y[0, 0]), "clip": lambda x, i, y: x.at[i + 2].multiply(y, mode="clip"),
    "take_along_axis": lambda x, i, y: jnp.take_along_axis(x, i[:, None], 0),
    "apply": lambda x, i, y: x.at[i].apply(lambda v: v + 1),
    "lax.scatter": lambda x, i, y: lax.scatter_min(x, i[:, None], y, _ROWS),
    "static": lambda x, i, y: x.at[1].set(y[0])[:, ::2],
}


@pytest.mark.parametrize("name", BATCHED)
def test_vmap_equals_the_loop(name):
    function = BATCHED[name]
    rng = np.random.default_rng(2)
    x = rng.standard_normal((2, 3, 4)).astype(np.float32)
    i, y = np.array([[1, 0], [2, -1]], np.int32), rng.standard_normal((2, 2, 4)).astype(np.float32)
    one = jax.jit(function)
    choices = ((0, None, None), (None, 0, None), (0, 0, 0), (2, 1, None))
    operands = [[a[0] if d is None else np.moveaxis(a, 0, d) for a, d in zip((x, i, y), axes)] for axes in choices]
    mapped = [jax.vmap(function, axes) for axes in choices]
    found = jax.jit(lambda operands: [f(*args) for f, args in zip(mapped, operands)])(operands)
    for axes, f, args, got in zip(choices, mapped, operands, found):
        want = [one(*[a[n] if d is not None else a[0] for a, d in zip((x, i, y), axes)]) for n in range(2)]
        np.testing.assert_allclose(got, np.stack(want), rtol=1e-6)
        text = str(jax.make_jaxpr(f)(*args))
        assert text.count("= gather") + text.count("= scatter") <= 1, text


# --- errors -----------------------------------------------------------------------------------------------------

ERRORS = [
    (lambda x: x[[1, 2]], TypeError, "non-tuple sequence"), (lambda x: x[1.0], TypeError, "type float"),
    (lambda x: x[np.array([1.])], TypeError, "Indexer must have integer or boolean type"),
    (lambda x: x[0, 1, 2, 3], IndexError, "Too many indices: array is 3-dimensional, but 4 were indexed"),
    (lambda x: x["a"], TypeError, "string indexing"), (lambda x: x[..., ...], IndexError, "single ellipsis"),
    (lambda x: x[np.array([True, False])], IndexError, r"boolean index did not match.*got 2, expected 3"),
    (lambda x: x[object()], IndexError, "only integers"), (lambda x: x[1.5:3], TypeError, "start at position 0"),
    (lambda x: jax.jit(lambda x: x[x > 3])(x), jax.errors.NonConcreteBooleanIndexError, "jnp.where"),
    (lambda x: x[I2, I3], ValueError, r"\(2,\) and \(3,\)"),
    (lambda x: jnp.zeros((2, 0))[:, 0], IndexError, "axis 1 with size 0"),
    (lambda x: x.at[0].set(jnp.ones(3)), ValueError, r"\(3,\) does not broadcast to \(4, 5\)"),
    (lambda x: x.at[0, 0, 0].set(jnp.ones(1)), ValueError, "has more axes"),
    (lambda x: x.at[0].set("a"), TypeError, "not a valid JAX type"),
    (lambda x: x.at[0].get(mode="wrap"), ValueError, "gather mode"),
    (lambda x: (x > 3).at[0].add(True), TypeError, "does not accept dtype bool"),
    (lambda x: x.at[TWICE[:2]].apply(lambda v: v[None]), TypeError, "scalar to a scalar"),
]


@pytest.mark.parametrize("function, error, words", ERRORS)
def test_errors(function, error, words):
    with pytest.raises(error, match=words):
        function(jnp.array(X))


def test_large_numbers_for_unsigned_integers():
    x = jnp.zeros(3, jnp.uint32)
    assert x.at[0].set(4294967295)[0] == 4294967295 and x.at[1].max(3000000000)[1] == 3000000000
    assert jax.jit(lambda x: x.at[0].add(4294967295).at[0].add(2))(x)[0] == 1
    with pytest.raises(OverflowError, match="4294967296"):
        x.at[0].set(4294967296)
    ref = jax.new_ref(x)
    ref[0] = 4294967295
    jax.ref.addupdate(ref.at[1], ..., 3000000000)
    assert ref[...].tolist() == [4294967295, 3000000000, 0]
    with pytest.raises(OverflowError, match="4294967296"):
        ref[0] = 4294967296


def test_the_larger_of_complex_numbers():
    """By real part, then by imaginary part."""
    x = jnp.array([1 + 2j, 3 - 1j, -1 + 0j])
    assert x.at[jnp.array([0, 1])].max(jnp.array([1 + 1j, 3 + 5j])).tolist() == [1 + 2j, 3 + 5j, -1]
    assert x.at[:].min(1 + 1j).tolist() == [1 + 1j, 1 + 1j, -1]


@pytest.mark.parametrize("index", [S(10, None), np.zeros(0, int), np.zeros(6, bool)])
def test_nothing_is_selected_and_nothing_compared(index):
    assert jnp.arange(6.).at[index].set(np.ones(4, np.float32)).tolist() == list(range(6))


def test_take_along_axis_of_negative_indices():
    x, i = jnp.arange(3.), jnp.array([-1])
    for mode, wrap, want in ((None, None, 2), ("clip", False, 0), ("promise_in_bounds", None, 0), ("promise_in_bounds", True, 2)):
        assert jnp.take_along_axis(x, i, 0, mode=mode, wrap_negative_indices=wrap).tolist() == [want]


@pytest.mark.parametrize("start, size, stride, first", [
    (1, 4, 1, 1), (1, 3, 3, 1), (0, 5, 2, 0), (8, 4, 1, 6), (9, 3, 3, 3), (-2, 2, 1, 8), (-9, 3, 4, 1), (-20, 2, 1, 0),
    (3, 0, 1, 3)])
def test_windows(start, size, stride, first):
    """A window from a traced start is moved inside of the array where it is read, one from an int is a slice; nothing is
    written outside."""
    x, places = np.arange(10.0), [first + stride * i for i in range(size)]
    there = [i for i in (start + 10 * (start < 0) + stride * k for k in range(size)) if 0 <= i < 10]
    there = there if len(there) == size or stride > 1 else []
    rows = np.arange(20.0).reshape(2, 10)
    inside, written = rows.copy(), x.copy()
    inside[1, places] += 100
    written[there] = -1

    def add_to_ref(i):
        ref = jax.new_ref(rows)
        ref[1, jax.ds(i, size, stride)] += 100.0
        return ref[...]

    def read(i):
        window = jax.ds(i, size, stride)
        return jnp.asarray(x)[window], jnp.asarray(rows)[jnp.array([1, 0, 1]), window]
    for function, begin, want in (
            (read, jax.jit, (x[places], rows[[1, 0, 1]][:, places])),
            (read, lambda f: f, (x[start:start + size:stride], rows[[1, 0, 1]][:, start:start + size:stride])),
            *[(function, begin, want) for begin in (jax.jit, lambda f: f) for function, want in (
                (lambda i: jnp.asarray(x).at[jax.ds(i, size, stride)].set(-1.0), written),
                (lambda i: jnp.zeros(10).at[jax.ds(i, size, stride)].add(1.0), written != x))],
            (add_to_ref, jax.jit, inside)):
        jax.tree.map(np.testing.assert_array_equal, begin(function)(start), want)
    if first == start:
        np.testing.assert_array_equal(add_to_ref(start), inside)
    else:
        with pytest.raises(ValueError, match=f"Out of bound slice: start={start}, size={size}"):
            add_to_ref(start)


@pytest.mark.parametrize("window, words", [((0, 11), "size 11 "), ((0, 5, 3), "size 5 in steps of 3"),
                                           ((0, 2, 0), "must be positive"), ((0, 2.0), "a static int")])
def test_faulty_windows(window, words):
    with pytest.raises((TypeError, ValueError), match=words):
        jnp.arange(10)[jax.ds(jnp.int32(window[0]), *window[1:])]
    with pytest.raises((TypeError, ValueError), match=words):
        jnp.arange(10).at[jax.ds(*window)].set(0)
