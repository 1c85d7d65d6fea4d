"""jit: what goes in and out, when it traces again, static and donated arguments, how it is applied."""
import collections
import copy
import functools
import threading

import forked
import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.tree_util import Partial

Pair = collections.namedtuple("Pair", "a b")


def counted(fun):
    """`fun`, and the list of calls of its Python body."""
    calls = []

    @functools.wraps(fun)
    def wrapper(*args, **kwargs):
        calls.append(args)
        return fun(*args, **kwargs)
    return wrapper, calls


@pytest.mark.parametrize("fun, args, kwargs, want", [
    (lambda d, *rest, k=None: {"x": [d["a"] * 2, None, rest], "k": k}, ({"a": 1.0}, 2, (3, 4)), {},
     {"x": [2.0, None, (2, (3, 4))], "k": None}),
    (lambda p: Pair(p.b, [p.a]), (Pair(1, 2.0),), {}, Pair(2.0, [1])),
    (lambda x, y=2.0, *, z=3.0: x + y * z, (1.0,), {}, 7.0),
    (lambda x, y=2.0, *, z=3.0: x + y * z, (1.0,), {"z": 1.0}, 3.0),
    (lambda x, y=2.0, *, z=3.0: x + y * z, (), {"y": 1.0, "x": 1.0}, 4.0),
    (lambda **k: k["a"] - k["b"], (), {"b": 1.0, "a": 5.0}, 4.0),
    (lambda: (3, 2.5, True, np.arange(2), None), (), {}, (3, 2.5, True, np.arange(2), None)),
    (lambda x: (x, x, ()), (np.ones(2),), {}, (np.ones(2), np.ones(2), ())),
    (lambda x: (x + 1, x.sum()), (np.zeros((0, 3)),), {}, (np.zeros((0, 3)), 0.0)),
    (lambda *a: sum(a), tuple(range(40)), {}, 780),
    (lambda x, y: x, (1.0, None), {}, 1.0),
    (functools.partial(lambda a, b, c=1: a * 100 + b * 10 + c, 1, c=5), (2,), {}, 125),
    (lambda f, x: f(x), (Partial(lambda a, b: a * b, np.full(2, 2.0)), 3.0), {}, np.full(2, 6.0)),
])
def test_arguments_and_results_are_pytrees(fun, args, kwargs, want):
    same(jax.jit(fun)(*args, **kwargs), want)


@pytest.mark.parametrize("x, dtype, weak", [
    (1.0, "float32", True), (1, "int32", True), (1j, "complex64", True), (True, "int32", True),
    (np.float32(1), "float32", False), (np.float64(1), "float32", False), (np.arange(2), "int32", False)])
def test_python_scalars_are_weak(x, dtype, weak):
    y = jax.jit(lambda x: x + 1)(x)
    assert (y.dtype, y.weak_type) == (dtype, weak)


def test_one_trace_for_each_type():
    fun, calls = counted(lambda x: x * 2)
    f = jax.jit(fun)
    for x in (1.0, 2.0, jnp.float32(1), np.float32(3), jnp.ones(2), np.ones(2, np.float32), [1.0], [2.0],
              (1.0,)):
        f(x)
    assert len(calls) == 5      # weak, strong, vector, list, tuple
    jax.jit(fun)(3.0)
    f.lower(4.0)
    f.trace(5.0)
    assert len(calls) == 5
    f.clear_cache()
    f(1.0)
    assert len(calls) == 6 and f._cache_size() == 1


def test_transformations_do_not_trace_again():
    inner, calls = counted(lambda x: jnp.sin(x) * 2)
    f = jax.jit(inner)
    outer = jax.jit(lambda x: f(f(x)) + f(x))
    for _ in range(2):
        outer(jnp.float32(1))
        jax.grad(outer)(jnp.float32(1))
        jax.vmap(outer)(jnp.ones(3))
    assert len(calls) == 1


def test_static_arguments():
    fun, calls = counted(lambda x, n=2: x * n if isinstance(n, (int, float)) else None)
    for f in (jax.jit(fun, static_argnums=1), jax.jit(fun, static_argnames="n"),
              jax.jit(fun, static_argnums=-1)):
        same([f(1.0, 3), f(1.0, n=3), f(1.0)], [3.0, 3.0, 2.0])
    f = jax.jit(fun, static_argnums=(1,))
    calls.clear()
    for n in (11, 11, 11.0, True, 1):
        f(1.0, n)
    assert len(calls) == 4      # equal values of different types are different
    g = jax.jit(lambda a, b, c, d: (a, c) if (b, d) == (1, "two") else None, static_argnums=(1, 3))
    same(g(5, 1, 6, "two"), (5, 6))
    same(jax.jit(lambda *a: a[0] * len(a[1]), static_argnums=1)(2, "abc"), 6)
    same(jax.jit(jax.grad(lambda x, n: x ** n), static_argnums=1)(2.0, 3), 12.0)


@pytest.mark.parametrize("make, error, words", [
    (lambda: jax.jit(lambda x, n: x, static_argnums=1)(1.0, [1]), ValueError,
     "Non-hashable static .*argument 1"),
    (lambda: jax.jit(lambda x, n: x, static_argnames="n")(1.0, n=np.ones(2)), ValueError,
     "Non-hashable static"),
    (lambda: jax.jit(lambda x: x, static_argnums=3), ValueError,
     "Argument number 3 of <lambda> does not exist"),
    (lambda: jax.jit(lambda x: x, static_argnames="q"), ValueError, "'q'.*parameters of <lambda> are x"),
    (lambda: jax.jit(lambda x: x, donate_argnames="q"), ValueError, "'q'"),
    (lambda: jax.jit(lambda x: x, static_argnums="x"), TypeError, "static_argnums must be an int"),
    (lambda: jax.jit(lambda x: x, static_argnums=0, donate_argnums=0), ValueError, "cannot intersect"),
    (lambda: jax.jit(3), TypeError, "callable value"), (lambda: jax.jit(None), TypeError, "callable value"),
    (lambda: jax.jit(lambda x: x)({"a": object()}), TypeError, r"object[\s\S]*path x\[.a.\]"),
    (lambda: jax.jit(lambda x: x)("abc"), TypeError,
     "value is of type <class 'str'> and was passed to the function at path x"),
    (lambda: jax.jit(lambda x: {"q": "s"})(1), TypeError, r"\['q'\]"),
    (lambda: jax.jit(lambda x: x)(2 ** 40), OverflowError, "too large"),
    (lambda: jax.jit(lambda x: x, in_shardings=3), TypeError, "in_shardings.*got 3"),
])
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_donation():
    f = jax.jit(lambda x, y: x + y, donate_argnums=0)
    x, y = jnp.ones(4), jnp.ones(4)
    view = np.asarray(y)
    same(f(x, y), np.full(4, 2.0))
    assert x.is_deleted() and not y.is_deleted()
    for use in (lambda: x + 1, lambda: f(x, y), lambda: np.asarray(x), lambda: x[0], x.tolist,
                x.block_until_ready):
        with pytest.raises(RuntimeError, match="deleted"):
            use()
    assert "deleted" in repr(x)
    same(view, np.ones(4))


def test_donation_of_trees_and_names():
    f = jax.jit(lambda s, d, e: jax.tree.map(lambda x: x + s, d), donate_argnums=1, static_argnums=0)
    d, e = {"a": jnp.ones(3), "b": jnp.ones(2)}, jnp.ones(3)
    same(f(2, d, e), {"a": np.full(3, 3.0), "b": np.full(2, 3.0)})
    assert d["a"].is_deleted() and d["b"].is_deleted() and not e.is_deleted()
    g = jax.jit(lambda x, y: x + y, donate_argnames="y")
    x, y, z = jnp.ones(4), jnp.ones(4), jnp.ones(4)
    g(x, y=y)
    g(x, z)
    assert y.is_deleted() and z.is_deleted() and not x.is_deleted()
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        same(jax.jit(lambda x: x.sum(), donate_argnums=0)(jnp.ones(4)), 4.0)


def test_a_view_protects_a_donated_buffer():
    x = jnp.ones(4)
    view = np.asarray(x)
    same(jax.jit(lambda x: x + 1, donate_argnums=0)(x), np.full(4, 2.0))
    same(view, np.ones(4))


def test_inline_writes_no_call():
    f = jax.jit(lambda x: x * 2, inline=True)
    assert [e.primitive.name for e in jax.make_jaxpr(lambda x: f(x))(1.0).eqns] == ["mul"]
    assert [e.primitive.name for e in jax.make_jaxpr(lambda x: jax.jit(lambda y: y * 2)(x))(1.0).eqns] == [
        "jit"]


def test_decorators_in_any_order():
    class Model:
        k = 3

        @staticmethod
        @jax.jit
        def static(x):
            return x + 1

        @jax.jit
        @staticmethod
        def static2(x):
            return x + 2

        @functools.partial(jax.jit, static_argnums=0)
        def method(self, x):
            return x * self.k

        @property
        @functools.partial(jax.jit, static_argnums=0)
        def value(self):
            return jnp.float32(self.k)

        @jax.jit
        def forgot(self, x):
            return x

        def __call__(self, x):
            return x - self.k

    m = Model()
    same([Model.static(1), m.static(1), Model.static2(1), m.method(2), m.value, jax.jit(m.method)(3),
          jax.jit(m)(5)],
         [2, 2, 3, 6, 3.0, 9, 2])
    with pytest.raises(TypeError, match=r"Model[\s\S]*path self[\s\S]*static_argnums"):
        m.forgot(1)


def test_wrapper_keeps_name_doc_and_original():
    @jax.jit
    def foo(x):
        """doc"""
        return x
    assert (foo.__name__, foo.__doc__, foo.__wrapped__(3)) == ("foo", "doc", 3)

    def noted(x):
        return x
    noted.note, noted.lower, noted.rule = "kept", None, "another's"
    for transform in jax.jit, jax.pmap, jax.custom_jvp, jax.custom_vjp, jax.custom_batching.custom_vmap, jax.vmap:
        assert transform(transform(noted)).note == "kept"
    assert jax.jit(noted).lower(1.0).compile()(1.0) == 1 and jax.custom_jvp(noted).rule is None


def test_closures():
    n, j = np.arange(3.0), jnp.arange(3.0)
    f = jax.jit(lambda x: x + n + j)
    np.testing.assert_allclose(f(1.0), [1, 3, 5])
    n[0] = 100      # what is compiled is compiled
    np.testing.assert_allclose(f(1.0), [1, 3, 5])
    big = np.arange(5000.0)      # passed as an input rather than written into the program
    np.testing.assert_allclose(jax.jit(lambda x: x + big.sum() + big[:3])(1.0), 12497501.0 + np.arange(3),
                               rtol=1e-6)


def test_closing_over_tracers():
    def f(x):
        g = jax.jit(lambda y: y * x)
        return g(2.0) + g(3.0)
    same([f(2.0), jax.grad(f)(2.0), jax.jit(f)(2.0), jax.vmap(f)(np.ones(3)), jax.jit(jax.grad(f))(1.0),
          jax.grad(jax.grad(lambda x: f(x) * f(x)))(1.0)], [10.0, 5.0, 10.0, np.full(3, 5.0), 5.0, 50.0])
    same(jax.vmap(lambda i: jax.jit(lambda y: y * i)(2.0))(np.arange(3)), np.array([0.0, 2.0, 4.0]))


def test_disable_jit_runs_python():
    def f(x):
        return x if x > 0 else -x
    with jax.disable_jit():
        same(jax.jit(f)(-1.0), 1.0)
        same(jax.jit(lambda x, n: x * n, static_argnums=1)(2.0, 3), 6.0)
        same(jax.grad(jax.jit(f))(-3.0), -1.0)
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(f)(1.0)


def test_threads():
    f, results = jax.jit(lambda x: x * 2), {}

    def run(i):
        results[i] = float(f(jnp.float32(i)) + jax.grad(jax.jit(lambda x: x * i))(1.0))
    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {i: 3.0 * i for i in range(8)}


def test_x64():
    with jax.enable_x64(True):
        y = jax.jit(lambda x: x * 2)(np.arange(2.0))
        assert y.dtype == "float64" and jax.grad(lambda x: x * x)(3.0).dtype == "float64"
    assert jax.jit(lambda x: x * 2)(np.arange(2.0)).dtype == "float32"


def test_scalars_do_not_share_a_buffer_that_can_be_deleted():
    a, b = jax.device_put(2.5), jax.device_put(2.5)
    a.delete()
    assert not b.is_deleted() and float(jax.jit(lambda x: x)(2.5)) == 2.5


def test_loops_over_new_functions_do_not_keep_them():
    import gc
    import weakref
    alive = []
    for _ in range(3):
        def body(i, c):
            return c + i
        alive.append(weakref.ref(body))
        jax.lax.fori_loop(0, 2, body, 0)
        jax.lax.map(body.__get__(1), jnp.arange(2))
    del body
    gc.collect()
    assert [r() for r in alive] == [None] * 3


TWO_DEVICES = """
import hlotrace as jax, hlotrace.numpy as jnp
first, second = jax.devices()
f = jax.jit(lambda x: x * 2)
x = jnp.ones(3)
there = jax.device_put(x, second)
found = [f(v).devices() for v in (x, there, there, x, jax.device_put(x, first))]
assert found == [{first}, {second}, {second}, {first}, {first}] and f._cache_size() == 2, found
try:
    f.lower(x).compile()(there)
except ValueError as error:
    said = str(error)
    assert "Argument x with shape float32[3]:" in said and "Passed sharding:" in said and "device_put" in said
    print("done")
"""


def test_a_function_runs_where_its_arguments_are_committed():
    done = forked.run(TWO_DEVICES, XLA_FLAGS="--xla_force_host_platform_device_count=2")
    assert done.stdout.strip() == "done", done.stdout + done.stderr


def test_keywords_are_told_apart_by_their_names():
    f = jax.jit(lambda a, b=10.0, c=20.0: a + 2 * b + 3 * c)
    one, two = jnp.float32(1), jnp.float32(2)
    for _ in range(2):      # the second time by the short way
        assert f(one, b=two) == 65 and f(one, c=two) == 27 and f(a=one, b=two) == 65 and f(a=one, c=two) == 27
        assert f(one, b=two, c=one) == 8 and f(one, c=one, b=two) == 8 and f(one, two) == 65


def test_types_whose_values_are_not_read():
    """NetKet passes what its parameters look like to a compiled function, which makes arrays of these shapes.
    """
    spec = {"a": jax.ShapeDtypeStruct((3,), "float32"), "b": jax.ShapeDtypeStruct((), "int32")}
    traced = []

    @jax.jit
    def f(x, spec):
        traced.append(x)
        return x.reshape(spec["a"].shape) * spec["a"].size, jax.tree.map(jnp.ones_like, spec)
    x = jnp.arange(3.0)
    for outer in (f, jax.jit(lambda x, _: f(x, spec)), lambda x, s: jax.vmap(lambda x: f(x, s))(x[None])):
        out, ones = outer(x, spec)
        assert out.ravel().tolist() == [0, 3, 6] and ones["b"].dtype == "int32" and ones["a"].ravel()[
            :3].tolist() == [1, 1, 1]
    assert jax.grad(lambda x: f(x, spec)[0].sum())(x).tolist() == [3, 3, 3]
    calls = len(traced)
    f(x, {key: jax.ShapeDtypeStruct(s.shape, s.dtype) for key, s in spec.items()})
    assert len(traced) == calls


@pytest.mark.parametrize("call", [
    lambda s: jax.jit(lambda p: p + 1)(s), lambda s: jax.jit(lambda p: p)(s),
    lambda s: jax.jit(lambda p: 1, keep_unused=True)(s),
    lambda s: jax.jit(lambda x: jax.jit(lambda p: p * x)(s))(1.0), lambda s: jnp.sin(s)])
def test_types_whose_values_are_read(call):
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        call(jax.ShapeDtypeStruct((3,), "float32"))


@pytest.mark.filterwarnings("ignore:backend and device argument:DeprecationWarning")
def test_a_platform_that_is_not_there_matters_when_it_is_called():
    f = jax.jit(lambda x: x, backend="nope")
    for call in (lambda: f(1.0), lambda: f.lower(1.0), lambda: jax.jit(lambda x: f(x))(1.0)):
        with pytest.raises(RuntimeError, match="Unknown backend nope"):
            call()


def test_a_copy_of_what_holds_a_jitted_function_calls_it():
    f = jax.jit(lambda x: x * 2)
    assert float(f(1.0)) == 2 and float(copy.deepcopy({"f": f})["f"](2.0)) == 4 == float(copy.copy(f)(2.0))
