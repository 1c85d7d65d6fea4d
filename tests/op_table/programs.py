"""Rows of the primitives that hold programs or functions, through the public functions that make them."""
import numpy as np

import hlotrace
from hlotrace import lax

from .row import Row, between, fixed, op

sin, cos, mul, add, exp = (op(name) for name in ("sin", "cos", "mul", "add", "exp"))
ROWS = []


def row(primitive, fun, ref, *args, bad=(), **fields):
    ROWS.append(Row(primitive, fun, ref, args, fields.pop("kinds", "f"), bad=tuple(bad), **fields))


X, Y, XS = between(-2, 2, 3), between(-2, 2, 3), between(-2, 2, 4, 3)

# --- jit --------------------------------------------------------------------------------------------------------

row("jit", hlotrace.jit(lambda x, y: [mul(sin(x), y), x]), lambda x, y: [np.sin(x) * y, x], X, Y, kinds="fc",
    bad=[(lambda: hlotrace.jit(lambda x: x)([1]) and hlotrace.jit(sin)("x"), TypeError, "not a valid JAX type")])
row("jit", hlotrace.jit(lambda x: hlotrace.jit(sin)(hlotrace.jit(cos)(x))), lambda x: np.sin(np.cos(x)), X,
    variant="nested")

# --- checkpoint -------------------------------------------------------------------------------------------------

row("checkpoint", lambda x, y: hlotrace.checkpoint(lambda x, y: [mul(sin(mul(x, y)), y), x])(x, y),
    lambda x, y: [np.sin(x * y) * y, x], X, Y, bad=[(lambda: hlotrace.checkpoint(sin)("x"), TypeError, "not a valid")])
row("checkpoint", lambda x: hlotrace.checkpoint(lambda x: lax.fori_loop(0, 3, lambda _, c: sin(c), x))(x),
    lambda x: np.sin(np.sin(np.sin(x))), X, variant="loop")

# --- cond -------------------------------------------------------------------------------------------------------

BRANCHES = [lambda x, y: mul(x, y), lambda x, y: sin(x), lambda x, y: y]


def branch(index):
    return lambda i, x, y: [x * y, np.sin(x), y][int(i)] if index is None else [x * y, np.sin(x)][int(i)]


row("cond", lambda p, x, y: lax.cond(p, BRANCHES[1], BRANCHES[0], x, y), branch(2), fixed(True, bool), X, Y, bad=[
    (lambda: lax.cond(True, lambda x: x, lambda x: (x, x), X), TypeError, "same pytree structure|structure"),
    (lambda: lax.cond(np.array([True]), sin, cos, X), TypeError, "scalar")])
row("cond", lambda i, x, y: lax.switch(i, BRANCHES, x, y), branch(None), fixed(2), X, Y, variant="switch")

# --- loops ------------------------------------------------------------------------------------------------------


def recurrence(y, carry, xs):
    """carry <- sin(carry) * y + x, with exp(x) * carry beside it."""
    def step(carry, x):
        return add(mul(sin(carry), y), x), mul(exp(x), carry)
    return lax.scan(step, carry, xs)


def recurrence_ref(y, carry, xs):
    beside = []
    for x in xs:
        beside.append(np.exp(x) * carry)
        carry = np.sin(carry) * y + x
    return [carry, np.stack(beside)]


def backwards(carry, xs):
    carry, ys = lax.scan(lambda c, x: (mul(c, sin(x)), c), carry, xs, reverse=True, unroll=3)
    return [carry, ys]


def backwards_ref(carry, xs):
    ys = []
    for x in xs[::-1]:
        ys.append(carry)
        carry = carry * np.sin(x)
    return [carry, np.stack(ys[::-1])]


row("scan", lambda *args: list(recurrence(*args)), recurrence_ref, Y, X, XS, kinds="fc", bad=[
    (lambda: lax.scan(lambda c, x: (c, c), 0, np.ones(3), length=2), ValueError, "disagrees with leading axis sizes"),
    (lambda: lax.scan(lambda c, x: (np.ones(2), x), 0.0, np.ones(3)), TypeError, "must have equal types"),
    (lambda: lax.scan(lambda c, x: c, 0.0, np.ones(3)), TypeError, "must be a pair")])
row("scan", backwards, backwards_ref, X, XS, variant="backwards, unrolled")
row("scan", lambda x, xs: list(lax.scan(lambda c, x: (c, sin(x)), x, xs)), lambda x, xs: [x, np.sin(xs)], X,
    between(-2, 2, 0, 3), variant="no steps")


def powers(n, x, y):
    """x times y to the n."""
    return lax.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, mul(s[1], y)), (n, x))[1]


row("while", powers, lambda n, x, y: x * y ** n, fixed(3), X, Y, derivative="forward", bad=[
    (lambda: hlotrace.grad(lambda x: lax.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, sin(s[1])), (3, x))[1])(
        1.0), ValueError, "Reverse-mode differentiation does not work for lax.while_loop"),
    (lambda: lax.while_loop(lambda x: x, sin, 1.0), TypeError, "boolean|bool")])

# --- functions with derivatives given by the user ---------------------------------------------------------------


@hlotrace.custom_jvp
def product(x, y):
    return mul(sin(x), y)


@product.defjvp
def _(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return product(x, y), add(mul(dx, mul(cos(x), y)), mul(dy, sin(x)))


@hlotrace.custom_vjp
def product_backwards(x, y):
    return mul(sin(x), y)


product_backwards.defvjp(lambda x, y: (mul(sin(x), y), (x, y)),
                         lambda saved, ct: (mul(ct, mul(cos(saved[0]), saved[1])), mul(ct, sin(saved[0]))))

row("custom_jvp_call", product, lambda x, y: np.sin(x) * y, X, Y, bad=[
    (lambda: hlotrace.custom_jvp(sin)(X), AttributeError, "No JVP defined")])
row("custom_vjp_call", product_backwards, lambda x, y: np.sin(x) * y, X, Y, derivative="reverse", bad=[
    (lambda: hlotrace.jvp(product_backwards, (X, X), (X, X)), TypeError, "can't apply forward-mode differentiation"),
    (lambda: hlotrace.custom_vjp(sin)(X), AttributeError, "No VJP defined")])

# --- callbacks --------------------------------------------------------------------------------------------------


def doubled_on_host(x):
    return hlotrace.pure_callback(lambda x: np.asarray(x) * 2, hlotrace.ShapeDtypeStruct(x.shape, x.dtype), x,
                                  vmap_method="sequential")


row("callback", doubled_on_host, lambda x: x * 2, X, kinds="fi", derivative="refused", bad=[
    (lambda: hlotrace.jvp(doubled_on_host, (X,), (X,)), ValueError, "Pure callbacks do not support JVP"),
    (lambda: hlotrace.vmap(lambda x: hlotrace.pure_callback(np.sin, hlotrace.ShapeDtypeStruct((), np.float32), x))(
        np.ones(3, np.float32)), NotImplementedError, "vmap_method")])
