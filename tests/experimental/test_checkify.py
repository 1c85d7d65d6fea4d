"""checkify: what failed first, as a value, whatever holds the check and whatever transforms it."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.experimental import checkify
from hlotrace.experimental.checkify import check, check_error, debug_check
from hlotrace.sharding import PartitionSpec as P

f32 = np.float32
X = jnp.arange(12.0).reshape(3, 4)


def positive(x):
    check(x > 0, "not positive: {x}", x=x)
    return x


def failed(f, *args, errors=checkify.user_checks):
    """The message of what failed in f(*args), without what `check` adds to it."""
    error, _ = checkify.checkify(f, errors=errors)(*args)
    message = error.get()
    return message and message.removesuffix(" (`check` failed)")


def over_devices(f, **options):
    mesh = jax.sharding.Mesh(jax.devices()[:2], ("d",))
    return jax.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P("d"), **options)


@jax.custom_jvp
def with_jvp(x):
    return positive(x) * x


@with_jvp.defjvp
def _(primals, tangents):
    return primals[0] ** 2, 100 * tangents[0]


@jax.custom_vjp
def with_vjp(x):
    return positive(x) * x


with_vjp.defvjp(lambda x: (x * x, x), lambda x, ct: ((check(x != 3, "backwards {}", x), 100 * ct)[1],))

# what holds checks -> (a function, its argument, the value that fails first or None)
HOLDERS = {
    "plain": (positive, -1.0, -1.0),
    "none fails": (positive, 1.0, None),
    "jit": (jax.jit(lambda x: positive(jax.jit(positive)(x + 2) - 4)), 1.0, -1.0),
    "scan": (lambda x: lax.scan(lambda c, y: (positive(c) - y, c), x, jnp.arange(4.0))[0], 2.0, -1.0),
    "fori_loop": (lambda x: lax.fori_loop(0, 5, lambda i, c: positive(c) - 1, x), 2.0, 0.0),
    "body of while": (lambda x: lax.while_loop(lambda c: c < 5, lambda c: positive(c) + 1, x), -2.0, -2.0),
    "condition of while": (lambda x: lax.while_loop(lambda c: positive(2 - c) < 5, lambda c: c + 1, x), -4.0,
                           None),
    "condition of while, later":
        (lambda x: lax.while_loop(lambda c: positive(2 - c) > -2, lambda c: c + 1, x), 0.0, 0.0),
    "branch": (lambda x: lax.cond(x < 0, positive, lambda x: x, x), -1.0, -1.0),
    "other branch": (lambda x: lax.cond(x > 0, positive, lambda x: x, x), -1.0, None),
    "switch": (lambda x: lax.switch(1, [lambda x: x, positive, lambda x: positive(x - 9)], x), -1.0, -1.0),
    "map": (lambda x: lax.map(positive, x), [3.0, -1.0, -2.0], -1.0),
    "vmap": (jax.vmap(positive), [3.0, -1.0, -2.0], -2.0),
    "vmap over nothing": (jax.vmap(positive), [], None),
    "mapped branch": (jax.vmap(lambda x: lax.cond(x < -1, positive, lambda x: x, x)), [3.0, -1.0, -2.0],
                      -2.0),
    "mapped branch, none goes there": (jax.vmap(lambda x: lax.cond(x > 9, positive, lambda x: x, x)),
                                       [3.0, -1.0], None),
    "mapped while": (jax.vmap(lambda x: lax.while_loop(lambda c: c < 2, lambda c: positive(c + 2) - 1, x)),
                     [5.0, -3.0],
                     -1.0),
    "mapped while, done":
        (jax.vmap(lambda x: lax.while_loop(lambda c: c < 2, lambda c: positive(3 - c) * 0 + c + 1, x)),
                           [7.0, 1.0], None),
    "mapped condition": (jax.vmap(lambda x: lax.while_loop(lambda c: positive(c) < 2, lambda c: c + 1, x)),
                         [5.0, -3.0],
                         -3.0),
    "grad": (jax.grad(lambda x: positive(x) ** 2), -1.0, -1.0),
    "grad of scan": (jax.grad(lambda x: lax.scan(lambda c, _: (positive(c) * c, None), x, None, length=3)[0]),
                     -2.0, -2.0),
    "checkpoint": (jax.grad(jax.checkpoint(lambda x: positive(x) * x)), -1.0, -1.0),
    "custom_jvp": (with_jvp, -1.0, -1.0),
    "grad of a check": (jax.jit(jax.grad(lambda x: with_jvp(positive(x)))), -1.0, -1.0),
    "custom_vjp": (with_vjp, -1.0, -1.0),
    "shard_map": (over_devices(lambda x: positive(x.sum())[None] * x), [1.0, 2.0, -3.0, 1.0], -2.0),
    "loop in shard_map":
        (over_devices(lambda x: lax.fori_loop(0, 3, lambda i, c: positive(c.max())[None] * 0 + c - 1, x)),
                          [9.0, 1.5], -0.5),
    "unchecked shard_map": (over_devices(lambda x: positive(x[0])[None] * x, check_vma=False), [1.0, -2.0],
                            -2.0),
    "shard_map in loop":
        (lambda x: lax.fori_loop(0, 3, lambda i, c: over_devices(lambda y: positive(y[0])[None] - 2)(c), x),
                          [5.0, 3.0], -1.0),
    "pmap": (jax.pmap(positive), [1.0, -2.0], -2.0),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_the_first_failure_is_a_value(holder):
    f, x, value = HOLDERS[holder]
    device = "at mapped index 1: " if "shard_map" in holder or holder == "pmap" else ""
    expected = value if value is None else f"{device}not positive: {value} (`check` failed)"
    error, _ = jax.jit(checkify.checkify(f))(jnp.asarray(x, f32))
    assert error.get() == expected
    if value is None:
        error.throw()
    else:
        with pytest.raises(checkify.JaxRuntimeError,
                           match=f"^not positive: {value} \\(`check` failed\\)(\n{device}|$)"):
            error.throw()


@pytest.mark.parametrize("over", ["pmap", "shard_map"])
def test_each_device_that_fails_is_named(over):
    def f(x):
        check(x < 3, "too large: {x}", x=x)
        return positive(x)
    on_devices = jax.pmap(f) if over == "pmap" else jax.shard_map(
        lambda x: f(x[0])[None], mesh=jax.make_mesh((3,), ("i",)), in_specs=jax.P("i"), out_specs=jax.P("i"))
    error, _ = checkify.checkify(on_devices, errors=checkify.all_checks)(jnp.array([5.0, 1.0, -2.0]))
    assert error.get() == ("at mapped index 0: too large: 5.0 (`check` failed)\n"
                           "at mapped index 2: not positive: -2.0 (`check` failed)")
    with pytest.raises(checkify.JaxRuntimeError, match="^not positive: -2.0"):
        error.throw()
    assert "-2.0" in failed(lambda e: check_error(e), error)


def test_what_is_no_array_is_given_as_it_is():
    def f(x, n, mode):
        check(x > n, f"{mode} {n}")
        return sum(x for _ in range(n))
    for g in checkify.checkify(f), jax.jit(checkify.checkify(f), static_argnums=(1, 2)):
        error, out = g(f32(2), 3, "up")
        assert (error.get(), out) == ("up 3 (`check` failed)", 6)


def test_results_are_those_of_the_function():
    for holder in ("none fails", "mapped branch, none goes there", "other branch", "jit"):
        f, x, value = HOLDERS[holder]
        error, out = checkify.checkify(f)(jnp.asarray(x, f32))
        np.testing.assert_array_equal(out, x if value is None else -1.0)
        assert (error.get() is None) == (value is None)


def test_mapped_and_differentiated_from_outside():
    """vmap, grad, scan and cond of functions that return errors: an error is a pytree, mapped like other
    results."""
    checked = checkify.checkify(positive)
    error, out = jax.vmap(jax.vmap(checked))(jnp.array([[1.0, -1.0], [-2.0, 3.0]]))
    assert error.get() == ("at mapped index 0, 1: not positive: -1.0 (`check` failed)\n"
                           "at mapped index 1, 0: not positive: -2.0 (`check` failed)")
    assert out.shape == (2, 2)
    with pytest.raises(ValueError, match=r"^not positive: -2.0 [^\n]*\nat mapped index 0, 1"):
        error.throw()
    assert failed(lambda e: check_error(e), error) == "not positive: -2.0"
    _, errors = lax.scan(lambda c, x: (c, checked(x)[0]), 0, jnp.array([1.0, -1.0]))
    assert errors.get() == "at mapped index 1: not positive: -1.0 (`check` failed)"
    assert "-3.0" in lax.cond(True, lambda x: checked(x)[0], lambda x: checked(x)[0], -3.0).get()
    for f, slope in ((positive, 1.0), (with_jvp, 100.0), (with_vjp, 100.0)):
        value, error = jax.grad(lambda x, f=f: checkify.checkify(f)(x)[::-1], has_aux=True)(-3.0)
        assert value == slope and "-3.0" in error.get()
    assert isinstance(error, checkify.Error) and "-3.0" in repr(error)
    assert jax.tree.map(lambda x: x, error).get() == error.get()


def test_rules_of_derivatives_are_checked_too():
    error, slope = checkify.checkify(jax.jit(jax.grad(with_vjp)))(3.0)
    assert slope == 100 and error.get() == "backwards 3.0 (`check` failed)"


def test_eager_checks_raise_at_once_and_compiled_ones_are_refused():
    assert positive(1.0) == 1.0
    with pytest.raises(checkify.JaxRuntimeError, match=r"^not positive: -1.0 \(`check` failed\)$"):
        positive(jnp.float32(-1))
    with pytest.raises(ValueError, match="not positive: -1.0"):
        jax.vmap(positive)(jnp.array([1.0, -1.0]))
    for run in (jax.jit(positive), lambda x: lax.fori_loop(0, 2, lambda i, c: positive(c), x)):
        with pytest.raises(ValueError, match="(?s)Cannot abstractly evaluate a checkify.check.*functionaliz"):
            run(1.0)
    assert jax.eval_shape(positive, 1.0).shape == ()


def test_debug_checks_are_only_for_checkify():
    def f(x):
        debug_check(x > 0, "not positive: {}", x)
        check(x > 0, "the same", debug=True)
        return x
    assert f(-1.0) == jax.jit(f)(-1.0) == -1.0
    assert failed(f, -1.0) == "not positive: -1.0"


def test_check_error_gives_back_what_checkify_took():
    def f(x):
        error, out = jax.jit(checkify.checkify(positive))(x)
        check_error(error)
        return out
    assert f(1.0) == 1.0
    with pytest.raises(checkify.JaxRuntimeError, match="not positive: -1.0"):
        f(-1.0)
    assert failed(f, -1.0) == failed(jax.jit(f), -1.0) == "not positive: -1.0"
    with pytest.raises(ValueError, match="not functionalized"):
        jax.jit(f)(1.0)
    check_error(checkify.init_error)
    assert checkify.init_error.get() is None and checkify.init_error.get_exception() is None


# what a first `checkify` took -> (function, argument, its category, its message)
TAKEN = {
    "user": (positive, -1.0, checkify.user_checks, "not positive: -1.0"),
    "nan": (jnp.log, -1.0, checkify.nan_checks, "nan generated by primitive: log."),
    "division": (lambda x: 1 / x, 0.0, checkify.div_checks, "division by zero"),
    "index": (lambda x: jnp.ones(3)[x.astype(int)], 7.0, checkify.index_checks, "out-of-bounds indexing"),
}


@pytest.mark.parametrize("fun, x, category, message", TAKEN.values(), ids=TAKEN)
def test_check_error_is_a_check_of_the_category_that_the_error_has(fun, x, category, message):
    error, _ = jax.jit(checkify.checkify(fun, errors=category))(x)
    again = jax.jit(lambda error: check_error(error))
    for fails in (check_error, jax.vmap(lambda error: check_error(error))):
        with pytest.raises(checkify.JaxRuntimeError, match=message):
            fails(error if fails is check_error else jax.tree.map(lambda x: x[None], error))
    with pytest.raises(ValueError, match="not functionalized"):
        again(error)
    assert message in checkify.checkify(again, errors=category)(error)[0].get()
    others = checkify.all_checks - category
    assert checkify.checkify(again, errors=others)(error)[0].get() is None


def test_messages():
    def f(x):
        check(x.sum() < 0, "{0:.2f} {tree[a]} {key}", x.sum(), tree={"a": x, "b": (2, None)},
              key=jax.random.key(7))
    error, _ = jax.jit(checkify.checkify(f))(jnp.array([1.0, 2.0]))
    assert error.get() == "3.00 [1. 2.] [0 7] (`check` failed)"
    found = error.get_exception()
    assert isinstance(
        found, next(iter(checkify.user_checks))) and "test_messages.<locals>.f" in found.__notes__[0]
    assert "do not go into this text" in failed(lambda x: check(x > 0, "{0:s} {1}", x), -1.0)
    assert failed(lambda x: check(x > 0, "{{}}"), -1.0) == "{}"


OOB = "out-of-bounds indexing for array of shape (3, 4): index {} is out of bounds for axis {} with size {}."
# what happens -> (function, arguments, categories in which it is an error, the message)
AUTOMATIC = {
    "nan": (jnp.sin, (jnp.inf,), "nan", "nan generated by primitive: sin."),
    "nan of two": (lambda x, y: jnp.log(x) + y, (1.0, jnp.nan), "nan", "nan generated by primitive: add."),
    "a nan that is moved": (lambda x: jnp.where(x > 2, x, jnp.nan)[None].T, (1.0,), "", None),
    "complex": (lambda x: jnp.exp(x), (complex(np.nan, 0),), "nan", "nan generated by primitive: exp."),
    "division": (lambda x, y: x / y, (1.0, 0.0), "div", "division by zero"),
    "division by some": (lambda x, y: x / y, (1.0, np.arange(3.0, dtype=f32)), "div", "division by zero"),
    "division of zeros": (lambda x, y: x / y, (0.0, 0.0), "nan", "nan generated by primitive: div."),
    "integers": (lambda x, y: x // y, (1, 0), "div", "division by zero"),
    "reading": (lambda i: X[i], (5,), "index", OOB.format(5, 0, 3)),
    "reading from the end": (lambda i: X[:, i], (-6,), "index", OOB.format(-2, 1, 4)),
    "reading inside": (lambda i: X[i, [0, -1]], (-3,), "", None),
    "reading many": (lambda i, j: X[i, j], (np.array([0, 2]), np.array([1, 7])), "index",
                     OOB.format(7, 1, 4)),
    "reading with a mode": (lambda i: X.at[i].get(mode="clip"), (5,), "index", OOB.format(5, 0, 3)),
    "writing": (lambda i: X.at[0, i].set(1.0), (4,), "index", OOB.format(4, 1, 4)),
    "adding": (lambda i: X.at[i].add(1.0), (np.array([0, 3]),), "index", OOB.format(3, 0, 3)),
    "a window": (lambda i: lax.dynamic_slice(X, (i, 0), (2, 4)), (2,), "index",
                 OOB.format(2, 0, 3) + " The window has shape (2, 4)."),
    "a window written": (lambda i: lax.dynamic_update_slice(X, X[:1], (i, 0)), (3,), "index",
                         OOB.format(3, 0, 3)),
    "taking": (lambda i: jnp.take_along_axis(X, i, 0), (np.full((1, 4), 3),), "index", OOB.format(3, 0, 3)),
    "in a loop": (lambda x: lax.while_loop(lambda x: x < 1, lambda x: jnp.log(x), x), (-1.0,), "nan",
                  "nan generated by primitive: log."),
    "in a mapped branch, which runs for all": (jax.vmap(lambda x: lax.cond(x > 0, jnp.log, lambda x: x, x)),
                                               (np.array([1, -1], f32),), "nan",
                                               "nan generated by primitive: log."),
    "in a derivative": (jax.grad(lambda x: jnp.where(x > 1, jnp.sqrt(x - 1), 0.0)), (1.0,), "div",
                        "division by zero"),
}
SETS = {"nan": checkify.nan_checks, "div": checkify.div_checks, "index": checkify.index_checks}


@pytest.mark.parametrize("case", AUTOMATIC)
def test_automatic_checks(case):
    f, args, category, message = AUTOMATIC[case]
    args = tuple(map(jnp.asarray, args))        # numbers would stay numbers
    wanted = SETS.get(category, checkify.automatic_checks)
    error, _ = checkify.checkify(f, errors=wanted)(*args)
    assert error.get() == message and (message is None or type(error.get_exception()) in wanted)


def test_sets_are_unions_and_leave_out_what_they_do_not_name():
    assert checkify.float_checks == checkify.nan_checks | checkify.div_checks
    assert checkify.automatic_checks == checkify.float_checks | checkify.index_checks
    assert checkify.all_checks == checkify.automatic_checks | checkify.user_checks
    assert issubclass(next(iter(checkify.all_checks)), Exception)
    assert next(iter(checkify.all_checks)).__mro__[1] in checkify.ErrorCategory.__args__

    def f(x):
        return jnp.log(positive(x))
    assert failed(f, -1.0, errors=checkify.all_checks) == "not positive: -1.0"
    assert failed(f, -1.0, errors=checkify.nan_checks) == "nan generated by primitive: log."
    assert failed(jax.jit(f), -1.0, errors=frozenset()) is None


def test_errors_that_are_not_known_yet_have_no_message():
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(lambda x: checkify.checkify(positive)(x)[0].get())(1.0)


def test_a_checked_function_is_traced_once():
    count = []

    def f(x):
        count.append(1)
        return positive(x)
    checked = checkify.checkify(f)
    for x in map(f32, (1.0, -1.0, 2.0)):
        assert (checked(x)[0].get() is None) == (x > 0)
    assert len(count) == 1
