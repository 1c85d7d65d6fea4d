"""Mistakes: each has JAX's exception class, names what it is about and the user's line, and says how to mend it."""
import functools
import re
import sys
import traceback

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

errors = jax.errors
HERE = "test_errors.py"
X = np.ones((2, 3), np.float32)


def message(call, error):
    """The text of the error with its notes."""
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


def if_(x):
    return x if jnp.sin(x) > 0 else -x


def while_(x):
    y = x * 2
    while y < 3:
        y = y + 1
    return y


@pytest.mark.parametrize("fun, error, words", [
    (if_, errors.TracerBoolConversionError, ["bool[]", "jnp.where", "lax.cond", "if_"]),
    (while_, errors.TracerBoolConversionError, ["lax.while_loop", "while_"]),
    (lambda x: x and x, errors.TracerBoolConversionError, ["float32[]"]),
    (lambda x: float(x + 1), errors.ConcretizationTypeError, ["`float` function", "float32[]"]),
    (lambda x: int(x + 1), errors.ConcretizationTypeError, ["`int` function"]),
    (lambda x: (x + 1).item(), errors.ConcretizationTypeError, ["`item` function", "x.reshape(())", "static_argnums"]),
    (lambda x: (x + 1).tolist(), errors.ConcretizationTypeError, ["`tolist` function", "index it", "static_argnums"]),
    (lambda x: f"{x + 1:.2f}", errors.ConcretizationTypeError, ["'.2f'", "float32[]", "debug.print('{x:.2f}', x=x)"]),
    (lambda x: jnp.nonzero(x[None]), errors.ConcretizationTypeError, ["nonzero", "size", "float32[1]"]),
    (lambda x: jnp.argwhere(x[None] + 1), errors.ConcretizationTypeError, ["argwhere", "size", "float32[1]"]),
    (lambda x: jnp.flatnonzero(x[None] + 1), errors.ConcretizationTypeError, ["flatnonzero", "size"]),
    (lambda x: jnp.where(x[None] > 1), errors.ConcretizationTypeError, ["where", "size", "bool[1]"]),
    (lambda x: jnp.unique(x[None] + 1), errors.ConcretizationTypeError, ["unique", "size"]),
    (lambda x: jnp.arange(x + 1), errors.ConcretizationTypeError, ["arange", "static_argnums"]),
    (lambda x: jnp.linspace(0, 1, x + 1), errors.ConcretizationTypeError, ["linspace", "num", "static_argnums"]),
    (lambda x: jnp.repeat(jnp.ones(2), (x + 1).astype(int)), errors.ConcretizationTypeError, ["repeat", "total_repeat_"]),
    (lambda x: jnp.bincount((x + 1).astype(int)[None]), errors.ConcretizationTypeError, ["bincount", "length"]),
    (lambda x: range((x + 1).astype(int)), errors.TracerIntegerConversionError, ["int32[]", "static_arg", "fori_loop"]),
    (lambda x: [1, 2][(x + 1).astype(int)], errors.TracerIntegerConversionError, ["integer"]),
    (lambda x: np.sin(x + 1), errors.TracerArrayConversionError, ["NumPy", "hlotrace.numpy", "pure_callback"]),
    (lambda x: jnp.arange(3)[jnp.arange(3) > x], errors.NonConcreteBooleanIndexError, ["jnp.where"]),
])
def test_python_on_a_tracer(fun, error, words):
    for transform in (jax.jit, lambda f: jax.jit(jax.grad(f))):
        text = message(functools.partial(transform(fun), 1.0), error)
        for word in words:
            assert word in text, text
        if "computed at" in text:
            assert HERE in text
    assert issubclass(errors.TracerBoolConversionError, errors.ConcretizationTypeError)
    assert issubclass(errors.ConcretizationTypeError, TypeError) and issubclass(error, (TypeError, IndexError))


@pytest.mark.parametrize("fun, error, words", [
    (lambda x: x + jnp.ones(4), ValueError, [r"\(2, 3\).*\(4,\)"]),
    (lambda x: x @ x, (TypeError, ValueError), ["3", "2"]),
    (lambda x: x.reshape(4), TypeError, [r"\(2, 3\)", r"\(4,\)"]),
    (lambda x: jnp.concatenate([x, jnp.ones((2, 4))]), (TypeError, ValueError), ["3", "4"]),
    (lambda x: x.sum(axis=2), ValueError, ["axis 2 is out of bounds.*dimension 2"]),
    (lambda x: jnp.transpose(x, (0, 0)), ValueError, [r"duplicate value in axis.*\(0, 0\)"]),
    (lambda x: lax.add(x, jnp.ones(3)), TypeError, ["add"]),
    (lambda x: lax.add(x, x.astype(jnp.int32)), TypeError, ["add", "same dtypes", "float32", "int32"]),
    (lambda x: x[0, 0, 0], IndexError, ["[Tt]oo many indices"]),
    (lambda x: x["a"], TypeError, ["str"]),
    (lambda x: jnp.sin([1.0, 2.0]), TypeError, ["sin.*list"]),
    (lambda x: x | x, TypeError, ["or does not accept dtype float32"]),
    (lambda x: jnp.einsum("ij,jk->ik", x, x), (TypeError, ValueError), ["j"]),
    (lambda x: jnp.broadcast_to(x, (3, 3)), ValueError, [r"\(2, 3\).*\(3, 3\)"]),
    (lambda x: jnp.zeros(3, dtype="nope"), TypeError, ["nope"]),
    (lambda x: jnp.zeros((2, -1)), (TypeError, ValueError), ["-1"]),
])
def test_shapes_and_dtypes(fun, error, words):
    for transform in (lambda f: f, jax.jit, jax.vmap):
        with pytest.raises(error) as caught:
            transform(fun)(jnp.stack([X, X]) if transform is jax.vmap else jnp.asarray(X))
        text = str(caught.value)
        for word in words:
            assert re.search(word, text, re.S), text


def test_errors_of_traced_code_name_the_line():
    def f(x):
        return lax.add(x, jnp.ones(4))
    line = f.__code__.co_firstlineno + 1
    with pytest.raises(TypeError) as caught:
        jax.jit(f)(X)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert last.filename.endswith(HERE) and last.lineno == line


@pytest.mark.parametrize("transform", [
    lambda f: jax.jit(f)(1.0), lambda f: jax.grad(f)(1.0), lambda f: jax.vmap(f)(np.ones(2, np.float32)),
    lambda f: jax.jvp(f, (1.0,), (1.0,)), lambda f: lax.scan(lambda c, x: (f(c), None), 1.0, None, length=2),
    lambda f: lax.cond(True, f, f, 1.0)])
def test_leaked_tracers(transform):
    leaked = []

    def f(x):
        leaked.append(x * 2)
        return x
    transform(f)
    for use in (lambda: leaked[0] + 1, lambda: jax.jit(lambda y: y * leaked[0])(1.0),
                lambda: jax.grad(lambda y: y * leaked[0])(1.0),
                lambda: jax.vmap(lambda y: y * leaked[0])(np.ones(2, np.float32)), lambda: float(leaked[0])):
        text = message(use, errors.UnexpectedTracerError)
        assert "return value" in text and "float32" in text


def test_a_tracer_of_an_inner_function_leaks_too():
    leaked = []

    def inner(x):
        leaked.append(x + 1)
        return x

    def outer(x):
        jax.jit(inner)(x)
        return leaked[0] + x
    assert HERE in message(lambda: jax.jit(outer)(1.0), errors.UnexpectedTracerError)


class Unregistered:
    def __init__(self):
        self.w = np.ones(2)


def test_unregistered_containers():
    for call in (lambda: jax.jit(lambda p: p)({"model": [Unregistered()]}), lambda: jax.grad(lambda p: 0.0)(
            {"model": [Unregistered()]})):
        text = message(call, TypeError)
        assert "p['model'][0]" in text and "Unregistered" in text and "pytree" in text
    text = message(lambda: jax.jit(lambda x: {"out": Unregistered()})(1.0), TypeError)
    assert "['out']" in text and "Unregistered" in text


def test_promotion():
    with jax.numpy_dtype_promotion("strict"):
        text = message(lambda: jnp.ones(2) + jnp.ones(2, jnp.int32), errors.TypePromotionError)
        assert "float32" in text and "int32" in text and "astype" in text
        assert (jnp.ones(2) + 1).dtype == "float32"
    text = message(lambda: jnp.ones(2, jnp.float8_e4m3fn) + jnp.ones(2), errors.TypePromotionError)
    assert "float8_e4m3fn" in text


def test_debug_nans_names_the_line():
    def f(x):
        return jnp.log(x) * 2
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError, match="nan"):
            jax.jit(f)(-1.0)
        with pytest.raises(FloatingPointError, match="nan"):
            f(jnp.float32(-1))
        assert float(f(jnp.float32(1))) == 0
    assert np.isnan(f(-1.0))


def test_options():
    with pytest.raises(AttributeError, match="jax_enable_x64"):
        jax.config.update("jax_enable_x46", True)
    with pytest.raises(ValueError, match="jax_numpy_dtype_promotion"):
        jax.config.update("jax_numpy_dtype_promotion", "sometimes")
    with pytest.raises(RuntimeError, match="nope"):
        jax.devices("nope")


def test_an_error_leaves_no_trace_behind():
    for transform in (jax.jit, jax.grad, jax.vmap, lambda f: lambda x: lax.scan(lambda c, y: (f(c), y), x, x)):
        with pytest.raises(ZeroDivisionError):
            transform(lambda x: 1 / 0)(np.ones(2, np.float32) if transform is not jax.grad else 1.0)
        assert float(jnp.sin(0.0)) == 0 and isinstance(jnp.ones(2) + 1, jax.Array)


def test_deep_recursion_is_an_ordinary_error():
    def f(x):
        return f(jnp.sin(x))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(500)
    try:
        with pytest.raises(RecursionError):
            jax.jit(f)(1.0)
    finally:
        sys.setrecursionlimit(limit)
    assert float(jax.jit(jnp.cos)(0.0)) == 1


@pytest.mark.parametrize("draw", [
    lambda key: jax.random.normal(key, (3,)), jax.random.uniform, jax.random.bits, jax.random.split, jax.random.exponential,
    lambda key: jax.random.fold_in(key, 1), lambda key: jax.random.randint(key, (2,), 0, 3), jax.random.gumbel,
    lambda key: jax.random.permutation(key, 3), lambda key: jax.random.choice(key, 3), jax.random.bernoulli,
    lambda key: jax.random.categorical(key, jnp.ones(3)), jax.random.key_data])
def test_numbers_in_the_place_of_a_key(draw):
    for wrong, words in ((0, "random.key(0)"), (7, "random.key(7)"), (1.5, "1.5 of type float"), ([0, 1], "of type list"),
                         (None, "None of type NoneType"), ("key", "'key' of type str"), (np.arange(2), "int32[2]"),
                         (np.zeros(3, np.uint32), "uint32[3] (the data of keys has shape (..., 2))"),
                         (jnp.ones(2), "float32[2]")):
        text = message(functools.partial(draw, wrong), TypeError)
        assert words in text and "make a key with random.key(" in text, text


def test_formats_of_arrays():
    assert f"{jnp.float32(1.5):.2f} {jnp.arange(2)} {jnp.int32(7):>3}" == "1.50 [0 1]   7"
    assert "array_str" in message(lambda: f"{jnp.arange(2.0):.2f}", TypeError)


def mapped_over(f):
    return lambda x, y, z: jax.vmap(f, (0, None, None))(jnp.full(2, x), y, z)


@pytest.mark.quick
@pytest.mark.parametrize("fun, on", [
    (lambda x, y, z: int(x), "value of the argument x"),
    (lambda x, y, z: float(jnp.sin(y)), "value of the argument y"),
    (lambda x, y, z: bool(x > z), "values of the arguments x and z"),
    (lambda x, y, z: range(x + y * z), "values of the arguments x, y, and z"),
    (lambda x, y, z: [1, 2][jax.jit(lambda a: a + 1)(y)], "value of the argument y"),
    (lambda x, y, z: jnp.zeros(y), "value of the argument y"),
    (lambda x, y, z: np.asarray(x * 1), "value of the argument x"),
    (lambda x, y, z: jnp.arange(4)[:z], "value of the argument z"),
    (mapped_over(lambda x, y, z: int(x)), "value of the argument x"),
    (jax.grad(lambda x, y, z: x * int(y), allow_int=True), "value of the argument y"),
])
def test_what_is_not_known_names_the_arguments_that_it_depends_on(fun, on):
    def f(x, y, z):
        return fun(x, y, z)
    with pytest.raises((TypeError, IndexError), match=f"not available in Python because it depends on the {on}[.;]"):
        jax.jit(f)(1, 2, 3)


@pytest.mark.quick
def test_arguments_are_named_by_their_paths():
    def f(*xs, **k):
        return int(xs[1] + k["a"][0])
    with pytest.raises(errors.ConcretizationTypeError, match=re.escape("values of the arguments xs[1] and k['a'][0];")):
        jax.jit(f)(1, 2, a=(2,))


@pytest.mark.quick
@pytest.mark.parametrize("name, run", [
    ("jit", lambda f: jax.jit(f)(1.)), ("scan", lambda f: lax.scan(lambda c, x: (c, f(x)), 0., jnp.ones(3))),
    ("while_body", lambda f: lax.while_loop(lambda x: x < 0, lambda x: x * 1 + (f(x) is not None), -1.)),
    ("jit", lambda f: jax.eval_shape(f, 1.))])
def test_a_leaked_value_names_what_was_traced_and_for_what(name, run):
    leaked = []
    jax.jit(lambda: run(leaked.append)).trace()
    with pytest.raises(errors.UnexpectedTracerError, match=rf"when the value leaked was .* traced for {name}\."):
        leaked[0] + 1


@pytest.mark.quick
@pytest.mark.parametrize("transform", [jax.jit, jax.grad, jax.vmap, jax.jacfwd, lambda f: jax.vjp(f, 1.)])
def test_a_generator_function_is_refused(transform):
    def values(x):
        yield x
    with pytest.raises(TypeError, match="Expected a function, got a generator function: .*values"):
        transform(values)


@pytest.mark.quick
def test_an_integer_too_large_for_a_jitted_function_has_the_path_of_its_argument():
    with pytest.raises(OverflowError, match=r"whose argument path is y\['a'\]\. Python int .* too large to convert to int32"):
        jax.jit(lambda x, y: x)(1, {"a": 2 ** 40})


@pytest.mark.quick
def test_a_type_cannot_be_changed_where_it_is():
    spec = jax.ShapeDtypeStruct((3,), "float32")
    with pytest.raises(RuntimeError, match=r"Cannot reassign attributes \(shape\) of immutable ShapeDtypeStruct"):
        spec.shape = (2,)
    assert spec.update(shape=(2,)).shape == (2,)


@pytest.mark.quick
def test_a_pullback_takes_one_cotangent_for_all_results():
    _, pullback = jax.vjp(lambda x: (x, x), 1.)
    with pytest.raises(TypeError, match="must be called with a single argument corresponding to the single value"):
        pullback(1., 1.)


@pytest.mark.parametrize("name, make", [
    ("ones", lambda: jnp.ones(2, np.float64)), ("zeros", lambda: jnp.zeros(2, "int64")),
    ("astype", lambda: jnp.ones(2).astype("float64")), ("array", lambda: jnp.array(1., dtype="float64")),
    ("convert_element_type", lambda: lax.convert_element_type(1., np.float64))])
def test_a_dtype_of_64_bits_is_truncated_with_a_warning_each_time(name, make):
    for _ in range(2):
        with pytest.warns(UserWarning, match=rf"Explicitly requested dtype \w+64 requested in .*{name} is not available, and will "
                                             r"be truncated to dtype \w+32"):
            assert make().dtype.itemsize == 4
