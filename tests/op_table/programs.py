"""Rows of the primitives that hold programs or functions, through the public functions that make them."""
import functools

import numpy as np

import hlotrace
from hlotrace import export, ffi, lax
from hlotrace.core.primitive import PRIMITIVES
from hlotrace.custom_batching import custom_vmap, sequential_vmap
from hlotrace.custom_derivatives import linear_call
from hlotrace.experimental.buffer_callback import buffer_callback
from hlotrace.experimental.compute_on import compute_on
from hlotrace.experimental.hijax import VJPHiPrimitive

from .row import Row, between, fixed, op

sin, cos, mul, add, exp, div = (op(name) for name in ("sin", "cos", "mul", "add", "exp", "div"))
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

row("checkpoint", lambda x: hlotrace.linear_transpose(hlotrace.checkpoint(lambda x: add(x, x)), x)(x)[0],
    lambda x: 2 * x, X, variant="transpose")
name = op("name", name="h")
row("name", lambda x: mul(name(sin(x)), x), lambda x: np.sin(x) * x, X)
row("name", lambda x: hlotrace.linear_transpose(name, x)(x)[0], lambda x: x, X, variant="transpose")

# --- tagged_call ------------------------------------------------------------------------------------------------

row("tagged_call", compute_on(lambda x, y: [mul(sin(mul(x, y)), y), x], compute_type="device_host", out_memory_spaces="any"),
    lambda x, y: [np.sin(x * y) * y, x], X, Y, bad=[
        (lambda: compute_on(sin, compute_type="moon", out_memory_spaces="any"), ValueError, "Invalid compute type")])

# --- cond -------------------------------------------------------------------------------------------------------

BRANCHES = [lambda x, y: mul(x, y), lambda x, y: sin(x), lambda x, y: y]


def branch(index):
    return lambda i, x, y: [x * y, np.sin(x), y][int(i)] if index is None else [x * y, np.sin(x)][int(i)]


row("cond", lambda p, x, y: lax.cond(p, BRANCHES[1], BRANCHES[0], x, y), branch(2), fixed(True, bool), X, Y, bad=[
    (lambda: lax.cond(True, lambda x: x, lambda x: (x, x), X), TypeError, "same pytree structure|structure"),
    (lambda: lax.cond(np.array([True]), sin, cos, X), TypeError, "scalar")])
row("cond", lambda i, x, y: lax.switch(i, BRANCHES, x, y), branch(None), fixed(2), X, Y, variant="switch")

# --- systems that the user solves ---------------------------------------------------------------------------------

row("custom_linear_solve", lambda a, b: lax.custom_linear_solve(
    lambda x: mul(a, x), b, lambda _, b: div(b, a), symmetric=True),
    lambda a, b: b / a, between(1, 2, 3), X, kinds="fc", bad=[
        (lambda: lax.custom_linear_solve(lambda x: x, np.ones(2), lambda _, b: b[:1]), ValueError, "must match b, and dtypes")])

# --- what a platform knows by name ------------------------------------------------------------------------------

row("composite", lambda x, y: lax.composite(lambda x, y, *, k: [mul(sin(x), y), x], "my.op")(x, y, k=2),
    lambda x, y: [np.sin(x) * y, x], X, Y, bad=[
        (lambda: hlotrace.jit(lax.composite(sin, "sin"))(np.ones(3)), ValueError, "name space")])
row("composite", lambda x: hlotrace.linear_transpose(lax.composite(lambda x: add(x, x), "my.double"), x)(x)[0],
    lambda x: 2 * x, X, variant="transpose")
row("cond", lambda x, y: lax.platform_dependent(x, y, tpu=BRANCHES[0], default=BRANCHES[1]), lambda x, y: np.sin(x), X, Y,
    variant="platforms")

# --- rules of the user's ------------------------------------------------------------------------------------------

def _double(x, y):
    return [mul(sin(x), y), x]


mapped_alike = custom_vmap(_double)
mapped_alike.def_vmap(lambda size, batched, x, y: ([mul(sin(x), y), x], [any(batched), batched[0]]) if all(batched) else (
    hlotrace.vmap(_double, tuple(0 if b else None for b in batched))(x, y), [True, True]))
row("custom_vmap_call", mapped_alike, lambda x, y: [np.sin(x) * y, x], X, Y, bad=[
    (lambda: custom_vmap(sin)(X), AttributeError, "def_vmap")])
row("custom_vmap_call", sequential_vmap(_double), lambda x, y: [np.sin(x) * y, x], X, Y, variant="sequential")
row("custom_vmap_call", lambda x: hlotrace.linear_transpose(sequential_vmap(lambda x: add(x, x)), x)(x)[0],
    lambda x: 2 * x, X, variant="transpose")
row("linear_call", lambda x, y: linear_call(lambda r, x: mul(r, x), lambda r, ct: mul(r, ct), y, x), lambda x, y: x * y,
    X, Y, kinds="fc", bad=[(lambda: linear_call(X, sin, X, X), TypeError, "must be a function")])

row("remat_opt", lambda x, y: op("remat_opt", jaxpr=hlotrace.make_jaxpr(_double)(x, y), num_outs=1,
                                 primal=hlotrace.make_jaxpr(lambda x, y: [mul(sin(x), y)])(x, y))(x, y),
    lambda x, y: [np.sin(x) * y, x], X, Y)

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


row("bounded_while", lambda x, y: lax.while_loop(lambda s: s[0] < 2, lambda s: (add(s[0], 1), mul(sin(s[1]), y)), (0, x),
                                                 max_steps=5)[1],
    lambda x, y: np.sin(np.sin(x) * y) * y, X, Y, bad=[
        (lambda: lax.while_loop(lambda s: s < 2, lambda s: s + 1, 0, max_steps=-1), ValueError, "max_steps must be from 0")])
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
row("custom_jvp_call", lambda x, y: hlotrace.linear_transpose(lambda y: product(x, y), y)(y)[0], lambda x, y: np.sin(x) * y,
    X, Y, variant="transpose")
class SinTimes(VJPHiPrimitive):
    """sin(x) * y, with rules for both modes."""
    def __init__(self, x, y):
        self.in_avals, self.out_aval, self.params = (x, y), x, {}
        super().__init__()

    def expand(self, x, y):
        return mul(sin(x), y)

    def jvp(self, primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return self(x, y), add(mul(dx, mul(cos(x), y)), mul(dy, sin(x)))

    def vjp_fwd(self, perturbed, x, y):
        return self(x, y), (x, y)

    def vjp_bwd_retval(self, saved, ct):
        x, y = saved
        return mul(ct, mul(cos(x), y)), mul(ct, sin(x))


class Doubled(VJPHiPrimitive):
    """Twice its argument, with a rule for its transpose."""
    def __init__(self, x):
        self.in_avals, self.out_aval, self.params = (x,), x, {}
        super().__init__()

    def expand(self, x):
        return add(x, x)

    def jvp(self, primals, tangents):
        return self(*primals), of_types(Doubled)(*tangents)

    def transpose(self, ct, x):
        return (Doubled(hlotrace.typeof(ct))(ct),)


def of_types(primitive):
    """A primitive for its arguments' types, done to them."""
    return lambda *args: primitive(*map(hlotrace.typeof, args))(*args)


row("ruled_call", of_types(SinTimes), lambda x, y: np.sin(x) * y, X, Y, bad=[
    (lambda: of_types(SinTimes)(X)(), TypeError, "missing 1 required positional argument")])
row("ruled_call", lambda x: hlotrace.linear_transpose(of_types(Doubled), x)(x)[0], lambda x: 2 * x, X, variant="transpose")
row("custom_vjp_call", product_backwards, lambda x, y: np.sin(x) * y, X, Y, derivative="reverse", bad=[
    (lambda: hlotrace.jvp(product_backwards, (X, X), (X, X)), TypeError, "can't apply forward-mode autodiff"),
    (lambda: hlotrace.custom_vjp(sin)(X), AttributeError, "No VJP defined")])

# --- programs from elsewhere ------------------------------------------------------------------------------------


@functools.cache
def exported():
    return export.export(hlotrace.jit(lambda x, y: (mul(sin(x), y), x)))(X.astype(np.float32), Y.astype(np.float32))


row("call_exported", lambda x, y: list(exported().call(x, y)), lambda x, y: [np.sin(x) * y, x],
    X.astype(np.float32), Y.astype(np.float32), kinds="", derivative="none", rtol=1e-6, bad=[
        (lambda: PRIMITIVES["call_exported"].bind(XS, Y, exported=exported()), ValueError, "Rank mismatch")])

# --- callbacks --------------------------------------------------------------------------------------------------


def doubled_on_host(x):
    return hlotrace.pure_callback(lambda x: np.asarray(x) * 2, hlotrace.ShapeDtypeStruct(x.shape, x.dtype), x,
                                  vmap_method="sequential")


row("pure_callback", doubled_on_host, lambda x: x * 2, X, kinds="fi", derivative="refused", bad=[
    (lambda: hlotrace.jvp(doubled_on_host, (X,), (X,)), ValueError, "Pure callbacks do not support JVP"),
    (lambda: hlotrace.vmap(lambda x: hlotrace.pure_callback(np.sin, hlotrace.ShapeDtypeStruct((), np.float32), x))(
        np.ones(3, np.float32)), NotImplementedError, "vmap_method")])


def doubled_in_memory(x):
    def double(context, out, x):
        np.asarray(out)[...] = np.asarray(x) * 2
    return buffer_callback(double, x, vmap_method="expand_dims")(x)


row("buffer_callback", doubled_in_memory, lambda x: x * 2, X, kinds="fi", derivative="refused", bad=[
    (lambda: hlotrace.jvp(doubled_in_memory, (X,), (X,)), ValueError, "Buffer callbacks do not support JVP"),
    (lambda: hlotrace.vmap(buffer_callback(print, hlotrace.ShapeDtypeStruct((), np.float32)))(
        np.ones(3, np.float32)), NotImplementedError, "vmap_method")])

# --- kernels ----------------------------------------------------------------------------------------------------


def factored_by_lapack(x):
    """The Cholesky factor below the diagonal, `x` itself above it."""
    outs = hlotrace.ShapeDtypeStruct(x.shape, x.dtype), hlotrace.ShapeDtypeStruct((), np.int32)
    call = ffi.ffi_call("lapack_spotrf_ffi", outs, input_layouts=[(1, 0)],
                                 output_layouts=[(1, 0), None], input_output_aliases={0: 0}, vmap_method="broadcast_all")
    return call(x, uplo=np.uint8(ord("L")))[0]


row("ffi_call", factored_by_lapack, lambda x: np.tril(np.linalg.cholesky(x)) + np.triu(x, 1),
    fixed([[4, 1, 0.5], [1, 3, -1], [0.5, -1, 2]], np.float32), kinds="", derivative="refused", bad=[
    (lambda: hlotrace.jvp(factored_by_lapack, (np.eye(2, dtype=np.float32),), (np.eye(2, dtype=np.float32),)), ValueError,
     "cannot be differentiated"),
    (lambda: hlotrace.vmap(ffi.ffi_call("k", hlotrace.ShapeDtypeStruct((), np.float32)))(np.ones(3, np.float32)),
     NotImplementedError, "vmap_method")])

# --- checks -----------------------------------------------------------------------------------------------------


def checked(x):
    hlotrace.experimental.checkify.debug_check(lax.reduce_max(x, (0,)) < 9, "{}", x)
    return mul(x, x)


row("check", checked, lambda x: x * x, X, kinds="fi")
