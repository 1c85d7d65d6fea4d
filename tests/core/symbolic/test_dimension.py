"""Symbolic sizes: their arithmetic and comparisons, shapes as texts, and functions exported for all sizes."""
import math
import operator

import numpy as np
import pytest
from equal import same
from places import DATA

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import export, lax, nn, random
from hlotrace.errors import InconclusiveDimensionOperation
from hlotrace.export import symbolic_dim_bounds, symbolic_shape

f32 = np.float32
A, B = symbolic_shape("a, b")


# --- sizes --------------------------------------------------------------------------------------------------

@pytest.mark.quick
@pytest.mark.parametrize("made, text", [
    (lambda a, b: a + b, "b + a"), (lambda a, b: a * b + 2 * a - 3, "a*b + 2*a - 3"),
    (lambda a, b: a * a * a, "a^3"),
    (lambda a, b: a ** 2, "a^2"), (lambda a, b: (a + b) * (a - b), "- b^2 + a^2"),
    (lambda a, b: 3 - a, "- a + 3"),
    (lambda a, b: -a, "- a"), (lambda a, b: +a, "a"), (lambda a, b: a - a, "0"),
    (lambda a, b: a // 2, "floordiv(a, 2)"),
    (lambda a, b: a % b, "mod(a, b)"), (lambda a, b: (2 * a + 3) // 2, "a + 1"),
    (lambda a, b: a * b // a, "b"),
    (lambda a, b: (a * b) % a, "0"), (lambda a, b: (a * b + 2 * a) // (b + 2), "a"),
    (lambda a, b: 5 % a, "mod(5, a)"),
    (lambda a, b: 7 // a, "floordiv(7, a)"), (lambda a, b: divmod(4 * a, 2), "(2*a, 0)"),
    (lambda a, b: divmod(7, a)[1], "mod(7, a)"),
    (lambda a, b: (a // 2) % 3 + b % 4 - 1, "mod(floordiv(a, 2), 3) + mod(b, 4) - 1"),
    (lambda a, b: (a % 2) % 5, "mod(a, 2)"),
    (lambda a, b: jax.core.max_dim(a, b), "max(a, b)"), (lambda a, b: jax.core.min_dim(a, 2), "min(a, 2)"),
    (lambda a, b: jax.core.max_dim(a, 1), "a"), (lambda a, b: jax.core.min_dim(a, 1), "1"),
    (lambda a, b: np.prod((a, 2, b)), "2*a*b"), (lambda a, b: math.prod((a, 3)), "3*a"),
    (lambda a, b: max(a, 1), "a"),
])
def test_arithmetic(made, text):
    """As JAX writes it."""
    assert str(made(A, B)) == text
    if "(" not in text and "-" not in text:
        assert symbolic_shape(text, scope=A.scope)[0] == made(A, B)
    def value(d, a, b):
        return tuple(value(x, a, b) for x in d) if type(d) is tuple else (
            d.evaluate({"a": a, "b": b}) if export.is_symbolic_dim(d) else d)
    for a, b in ((1, 1), (2, 5), (7, 3)):
        assert value(made(A, B), a, b) == made(a, b)


@pytest.mark.quick
def test_comparisons():
    assert A >= 1 and A > 0 and not A < 1 and A + B >= 2 and A - B < A and 2 * A >= A + 1 and A // 2 <= A and A % 3 < 3
    assert (A == A) and A != B and A != 3 and not A + 1 == A and A == A + 0 and hash(A) == hash(A + 0) and {
        A: 1}[A * 1] == 1
    assert B - A % B >= 1 and A // 2 * 2 + 1 >= A and jax.core.max_dim(A, B) >= B and jax.core.min_dim(
        A, B) <= A and bool(A)
    for undecided in (lambda: A >= 2, lambda: A < B, lambda: A * B <= A, lambda: sorted([A, 2]),
                      lambda: int(A)):
        with pytest.raises(InconclusiveDimensionOperation):
            undecided()
    with pytest.raises(InconclusiveDimensionOperation, match="'a' >= '2' is inconclusive.*constraints="):
        operator.ge(A, 2)
    for error, wrong in ((TypeError, lambda: float(A)), (TypeError, lambda: range(A)),
                         (TypeError, lambda: A < "x"),
                         (ZeroDivisionError, lambda: A // 0), (NotImplementedError, lambda: jnp.asarray(A))):
        with pytest.raises(error):
            wrong()
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
        operator.add(A, symbolic_shape("a")[0])
    assert A != symbolic_shape("a")[0]
    assert jax.extend.core.InconclusiveDimensionOperation is InconclusiveDimensionOperation


@pytest.mark.quick
def test_bounds_and_constraints():
    a, b = symbolic_shape("a, b", constraints=["a<=10", "b >= 3"])
    assert [symbolic_dim_bounds(d) for d in (a, b, a + b, a * b, a - b, a // 2, a % 3, 5)] == [
        (1, 10), (3, math.inf), (4, math.inf), (3, math.inf), (-math.inf, 7), (0, 5), (0, 2), (5, 5)]
    a, b = symbolic_shape("a, b", constraints=("a >= 2*b", "mod(a, 2) == 0"))
    assert a >= b and a - b >= 1 and a // 2 * 2 == a and a % 2 == 0
    a, b = symbolic_shape("a, b", constraints=["a == 2*b + 1"])
    assert str(a - b) == "b + 1"
    scope = export.SymbolicScope(["n >= 4"])
    assert symbolic_shape("n", scope=scope)[0] >= 4 and "n >= 4" in repr(scope)
    for constraints in (["a > 3"], ["a <= 0"], ["3 >= 4"], ["a == a + 1"]):
        with pytest.raises(ValueError, match="onstraint"):
            symbolic_shape("a", constraints=constraints)
    with pytest.raises(TypeError):
        symbolic_dim_bounds("a")


OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
              "%": operator.mod,
              "max": jax.core.max_dim, "min": jax.core.min_dim}


@pytest.mark.quick
@pytest.mark.parametrize("constraints, known", [
    ([], lambda a, b: True), (["a <= 4", "b <= 4"], lambda a, b: max(a, b) <= 4),
    (["2*a >= 5"], lambda a, b: 2 * a >= 5),
    (["a >= 2*b"], lambda a, b: a >= 2 * b), (["a >= b", "a + b <= 7"], lambda a, b: a >= b and a + b <= 7),
    (["3*a <= 2*b + 4"], lambda a, b: 3 * a <= 2 * b + 4), (["mod(a, 3) == 0"], lambda a, b: a % 3 == 0),
    (["floordiv(a, 2) >= 2"], lambda a, b: a // 2 >= 2), (["a == 2*b"], lambda a, b: a == 2 * b),
])
def test_operations_and_bounds_hold_for_all_sizes(constraints, known):
    """A result has the value of the same operation on numbers, and is between its bounds; these are integers.
    """
    a, b = symbolic_shape("a, b", constraints=constraints)
    sizes = [{"a": i, "b": j} for i in range(1, 8) for j in range(1, 8) if known(i, j)]
    def value(d, at):
        return d.evaluate(at) if export.is_symbolic_dim(d) else d
    operands = [a, b, 2 * a - b, a * b, a // 2, b % 3, 4]
    for x in operands:
        for y in operands:
            for name, operation in OPERATIONS.items():
                # a divisor is positive
                if not (export.is_symbolic_dim(x) or export.is_symbolic_dim(y)) or name in (
                    "//", "%") and any(
                        value(y, at) < 1 for at in sizes):
                    continue
                result = operation(x, y)
                low, high = symbolic_dim_bounds(result)
                for at in sizes:
                    number = operation(value(x, at), value(y, at))
                    assert value(result, at) == number and low <= number <= high, (name, x, y, at)


@pytest.mark.quick
@pytest.mark.parametrize("constraints, text, bounds", [
    (["2*a >= 5"], "a", (3, math.inf)), (["2*a <= 7"], "a", (1, 3)),
    (["3*a >= 2*b + 2", "b >= 4"], "a", (4, math.inf)),
    (["a <= 4"], "mod(a, 4)", (0, 3)), (["a <= 4"], "mod(a, 5)", (1, 4)),
    (["a <= 3"], "floordiv(a, 4)", (0, 0)),
    (["a <= 4"], "floordiv(a, 4)", (0, 1)),
    (["a >= b"], "max(a, b) - a", (0, 0)), (["a >= b"], "min(a, b) - b", (0, 0)),
    ([], "a - b", (-math.inf, math.inf)),
])
def test_bounds_are_the_closest_integers(constraints, text, bounds):
    scope = export.SymbolicScope(constraints)
    assert symbolic_dim_bounds(symbolic_shape(f"{text}, a, b", scope=scope)[0]) == bounds


@pytest.mark.quick
def test_shapes_as_texts():
    for text, like, want in (("a, ...", (2, 3, 4), "(a, 3, 4)"), ("_, b", (2, 3), "(2, b)"), ("", None, "()"),
                             (None, (2,), "(2,)"), ("(a, 3)", None, "(a, 3)"), ("a,", None, "(a,)"),
                             ("(a + 1)*2", None, "(2*a + 2,)"),
                             ("max(a, b), min(a, 2), floordiv(a, 2), mod(a, -b + 9), a^2", None,
                              "(max(a, b), min(a, 2), floordiv(a, 2), mod(a, - b + 9), a^2)")):
        assert str(symbolic_shape(text, like=like)) == want
    for text, like in (("a b", None), ("a, b*", None), ("2, b", (3, 3)), ("a, ?", None), ("max(a)", None),
                       ("...", None),
                       ("..., a", (2, 3)), ("a, _", (1,)), ("_", (None,)), ("a^b", None), ("-1", None)):
        with pytest.raises(ValueError, match="shape"):
            symbolic_shape(text, like=like)
    with pytest.raises(ValueError, match="both a `scope` and `constraints`"):
        symbolic_shape("a", scope=A.scope, constraints=["a >= 2"])
    specs = export.symbolic_args_specs((np.ones((2, 3)), {"x": np.ones(4, np.int32)}),
                                       ("a, ...", {"x": None}))
    assert str(specs[0].shape) == "(a, 3)" and specs[1]["x"].shape == (4,) and specs[1]["x"].dtype == np.int32
    x, y = export.symbolic_args_specs((np.ones((2, 3)), np.ones((2, 4))), "b, ...", constraints=["b >= 2"])
    assert x.shape[0] == y.shape[0] and x.shape[0] >= 2 and (x.shape[1], y.shape[1]) == (3, 4)


# --- exported functions -------------------------------------------------------------------------------------

def elementwise(x, y):
    centered = (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5)
    return jnp.tanh(x) * y + jnp.where(x > 0, x, 1.0), centered, x - x.max(1, keepdims=True), x / x.shape[
        0], lax.erf(x)


def shapes(x, y):
    n = x.shape[0]
    return (x.reshape(-1), x.reshape(2, -1), x.reshape(n * 2, 2), x.T, x[None],
            jnp.broadcast_to(y, (n, 3, 4)),
            jnp.tile(x, (2, 1)), jnp.stack([x, x]), jnp.concatenate([x, x, x[:1]]), jnp.repeat(x, 2, axis=0),
            jnp.pad(x, ((1, n), (0, 2))),
            jnp.roll(x, 1, 0), x.swapaxes(0, 1), jnp.diff(x, axis=0), jnp.full((n, 2), n),
            np.prod(x.shape) * y)


def places(x, y):
    i = jnp.array([0, 2, 1])
    return (x[0], x[-1], x[1:], x[:-1], x[::2], x[::-1], x[:, 1], x[i], jnp.take(x, i, axis=0),
            x.at[0].set(1.0),
            x.at[i].add(2.0), x.at[:, 1].mul(2.0), lax.dynamic_slice(x, (1, 0), (2, 4)),
            lax.dynamic_slice_in_dim(x, 1, 2, 1),
            lax.dynamic_update_slice(x, jnp.ones((1, 4)), (1, 0)), x[jnp.argmax(x[:, 0])],
            jnp.take_along_axis(x, jnp.zeros((x.shape[0], 1), int), 1), nn.one_hot(jnp.argmax(x, 1), 4))


def counting(x, y):
    n = x.shape[0]
    return (jnp.arange(n), jnp.arange(1, n + 1), jnp.arange(0, n, 2), jnp.eye(n), jnp.tril(jnp.ones((n, n))),
            lax.iota(np.int32, n), jnp.zeros(x.shape), x + n, n * 2.0, 1 / jnp.asarray(n),
            jnp.arange(n)[:, None] + x,
            random.normal(random.key(0), x.shape), random.bernoulli(random.key(1), 0.5, (n,)))


def reduced(x, y):
    return (x.sum(), x.sum(1), x.prod(0), x.max(0), jnp.argmax(x, 0), jnp.argmin(x, 1), (x > 0).all(0),
            jnp.sort(x, 0),
            lax.top_k(x, 2), jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 0, reverse=True),
            nn.dot_product_attention(*[x[None, :, None]] * 3, is_causal=True), nn.softmax(x, 0),
            nn.logsumexp(x, axis=1), nn.gelu(x), x @ y, jnp.einsum("bi,bj->ij", x, x),
            ((x[:, None] - x[None]) ** 2).sum(-1))


def loops(x, y):
    def step(c, row):
        c = jnp.tanh(c * y + row)
        return c, c.sum()
    last, sums = lax.scan(step, y, x)
    doubled = lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 2), (0, x))
    return (last, sums, doubled, lax.fori_loop(0, 3, lambda i, c: c + i, x), lax.map(jnp.sum, x),
            lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], y),
            lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, x), jax.vmap(lambda r: r @ y)(x),
            jax.jit(lambda x: jax.jit(jnp.sin)(x) + 1)(x), jax.checkpoint(jnp.sin)(x),
            jax.vmap(jax.grad(lambda r: (r @ y) ** 2))(x))


KEY = jax.random.key(3)


def sizes_in_numbers(x, y):
    n = x.shape[0]
    return ([jnp.pad(x, ((1, 2), (0, 1)), mode=mode) for mode in ("edge", "reflect", "symmetric", "wrap")],
            jnp.median(x, 0), jnp.quantile(x, 0.3), jnp.linspace(0, 1, n), jnp.nonzero(x > 0, size=4),
            jnp.unique(x, size=4),
            jnp.nonzero(x > 0, size=2 * n), jnp.argwhere(x[:, 0] < 1, size=n, fill_value=n),
            jnp.repeat(x, 2, axis=0, total_repeat_length=2 * n), jax.ops.segment_sum(x, jnp.arange(n) // 2, n),
            jax.ops.segment_max(x, jnp.arange(n) // 2, n + 1), jnp.bincount(jnp.arange(n) % 3, length=n - 2),
            jnp.einsum("ij,kj,kl->il", x, x, x), jax.jacrev(lambda x: x[:, 0] * 2)(x),
            jax.jacfwd(lambda x: (x[:, 0], x * 2))(x),
            jax.hessian(lambda v: (v ** 3).sum())(x[:, 0]), x.at[jnp.arange(n), 0].max(9.0),
            x.at[7].get(mode="fill"),
            jnp.fill_diagonal(x @ x.T, 0.0, inplace=False), jax.random.normal(KEY, (n, 2)),
            jax.random.key_data(
                jax.random.split(KEY, n)), jax.random.key_data(KEY))


def specs(*texts, constraints=()):
    scope = export.SymbolicScope(constraints)
    return [jax.ShapeDtypeStruct(symbolic_shape(text, scope=scope), f32) for text in texts]


def numbers(*shape):
    return jnp.asarray(np.random.default_rng(0).standard_normal(shape).astype(f32))


@pytest.mark.parametrize("fun", [elementwise, shapes, places, counting, reduced, loops, sizes_in_numbers],
                         ids=lambda f: f.__name__)
def test_one_program_for_all_sizes(fun):
    e = export.export(jax.jit(fun))(*specs("b, 4", "4", constraints=["b >= 3"]))
    assert e.uses_global_constants and "?x4xf32" in e.mlir_module() and export.is_symbolic_dim(
        e.in_avals[0].shape[0])
    x, y = numbers(5, 4), numbers(4)
    same(export.deserialize(e.serialize()).call(x, y), jax.jit(fun)(x, y), slack=4)


def undecided(x, y):
    """What depends on how large a size is that may be 1, and is clamped or cut when the program runs."""
    square = jax.jacobian(lambda v: v ** 2)(x[:, 0])
    return (x[2], x[-3], x[7], x[2:4], x[-3:], x[:-2], x[1:-1], x[np.array([0, 2])], x[np.array([0, -2])],
            x.at[2].set(0.0),
            x.at[-3].add(1.0), lax.dynamic_index_in_dim(x, 1), *jnp.split(x, [1, -1]),
            jnp.delete(x, 1, axis=0), jnp.trace(x),
            jnp.pad(x, ((2, 1), (0, 1)), mode="edge"), jnp.nonzero(x, size=3), jnp.unique(x, size=3),
            jnp.median(x, axis=0),
            jnp.quantile(x, 0.3), jnp.take_along_axis(x, jnp.zeros((x.shape[0], 1), int), 1), square,
            jnp.compress(jnp.array([True, False]), x, axis=0, size=1),
            jax.image.resize(x, (2 * x.shape[0], 8), "cubic"))


def test_one_program_for_sizes_of_which_nothing_is_known():
    e = export.export(jax.jit(undecided))(*specs("b, 4", "4"))
    for n in (5, 3):
        same(e.call(numbers(n, 4), numbers(4)), jax.jit(undecided)(numbers(n, 4), numbers(4)), slack=4)


def attention(x, w):
    q, k, v = (h.reshape(*x.shape[:2], 2, 4).transpose(0, 2, 1, 3) for h in jnp.split(x @ w, 3, axis=-1))
    t = x.shape[1]
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), q @ k.swapaxes(-1, -2) / 2, -1e9)
    mixed = (nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
    return nn.gelu(mixed, approximate=False)[1:]


def convolutions(x, k):
    def conv(padding, strides):
        return lax.conv_general_dilated(x, k, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    y = nn.relu(conv("VALID", (1, 1)))
    return y.mean((1, 2)), lax.reduce_window(y, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), conv(
        "SAME", (1, 1)) ** 2


def recurrent(xs, w):
    def step(c, x):
        c = jnp.tanh(c @ w + x)
        return c, c.sum(-1)
    return lax.scan(step, jnp.zeros(xs.shape[1:]), xs)


@pytest.mark.parametrize("fun, texts, constraints, sizes", [
    (attention, ("b, t, 8", "8, 24"), ["b >= 2"], [(2, 3, 8), (8, 24)]),
    (convolutions, ("b, h, w, 2", "3, 3, 2, 3"), ["h >= 4", "w >= 4"], [(2, 6, 5, 2), (3, 3, 2, 3)]),
    (recurrent, ("t, b, 3", "3, 3"), [], [(4, 2, 3), (3, 3)]),
], ids=["attention", "convolutions", "recurrent"])
def test_networks_and_their_gradients(fun, texts, constraints, sizes):
    e = export.export(jax.jit(fun))(*specs(*texts, constraints=constraints))

    def loss(call):
        return jax.value_and_grad(
            lambda *args: sum(jnp.sum(out ** 2) for out in jax.tree.leaves(call(*args))), (0, 1))
    args = [numbers(*shape) for shape in sizes]
    same(loss(export.deserialize(e.serialize(vjp_order=1)).call)(*args), jax.jit(loss(fun))(*args), slack=40)


def test_sizes_that_do_not_fit():
    e = export.export(jax.jit(lambda x, y: (x + y, x.shape[0])))(
        *specs("b, 2*n + 1", "2*n + 1", constraints=["b >= 2"]))
    same(e.call(numbers(3, 5), numbers(5)), (numbers(3, 5) + numbers(5), 3))
    for x, y, words in (((3, 4), (4,), "Division had remainder 1 when computing the value of 'n'"),
                        ((3, 1), (1,), "Expected value >= 1 for dimension variable 'n'"),
                        ((3, 5), (3,), r"inconsistency .* args\[1\].shape\[0\] \(= 3\).*'2\*n \+ 1' \(= 5\)"),
                        ((1, 5), (5,), "symbolic shape constraint b >= 2"), ((3,), (5,), "Rank mismatch")):
        with pytest.raises(ValueError, match=words):
            e.call(jnp.ones(x), jnp.ones(y))
    # what an artifact says of its sizes is in its program alone
    with pytest.raises(ValueError,
                       match="symbolic shape constraint b >= 2. Expected 'b - 2' to be greater or equal to 0, but found -1"):
        export.deserialize(e.serialize()).call(jnp.ones((1, 5)), jnp.ones(5))
    with pytest.raises(ValueError, match=r"Cannot solve for values of dimension variables \{'b'\}"):
        export.export(jax.jit(jnp.sin))(*specs("b*b"))
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
        export.export(jax.jit(lambda x, y: (x, y)))(*specs("b"), *specs("b"))
    with pytest.raises(ValueError, match="b \\+ 1|incompatible|broadcast"):
        export.export(jax.jit(lambda x: x[1:] + x))(*specs("b + 1"))
    with pytest.raises(InconclusiveDimensionOperation):
        export.export(jax.jit(lambda x: x if x.shape[0] > 4 else -x))(*specs("b"))


def test_an_index_that_is_traced():
    e = export.export(jax.jit(lambda x, i: (x[i], x.at[i].set(0.0), x[0])))(
        *specs("b"), jax.ShapeDtypeStruct((), np.int32))
    for n, i in ((4, 2), (1, 0), (3, -1)):
        x = numbers(n)
        same(e.call(x, np.int32(i)), (x[i], np.where(np.arange(n) == i % n, f32(0), x), x[0]))
    with pytest.raises(InconclusiveDimensionOperation, match=r"constraints=\['a >= 2'\]"):
        operator.gt(A, 1)


def test_kernels_of_linear_algebra():
    def f(x):
        return [jnp.linalg.cholesky(x), jnp.linalg.inv(x), jnp.abs(jnp.linalg.qr(x)[1]),
                jnp.linalg.eigvalsh(x)]

    def total(g):
        return lambda x: sum(jnp.sum(y) for y in g(x))
    a = 2 * np.eye(3, dtype=f32) + f32(0.5)
    for shape, x in (("b, 3, 3", np.stack([a, 3 * a])), ("b, b", a)):
        e = export.deserialize(export.export(jax.jit(f))(*specs(shape)).serialize(vjp_order=1))
        same(e.call(x), f(x), 4)
        if shape == "b, b":
            same(jax.grad(total(e.call))(x), jax.grad(total(f))(x), 40)


def test_unused_arguments_and_platforms():
    e = export.export(jax.jit(lambda x, y: y * x.shape[0]), platforms=("tpu", "cpu"))(*specs("b", "3"))
    for it in (e, export.deserialize(e.serialize(vjp_order=1))):
        assert it.module_kept_var_idx == (0, 1)
        same(it.call(numbers(4), numbers(3)), numbers(3) * 4)
        same(jax.grad(lambda y, it=it: it.call(numbers(4), y).sum())(numbers(3)), np.full(3, 4, f32))


def test_exported_in_exported():
    inner = export.export(jax.jit(lambda x: nn.softmax(x, 0)[1:]))(*specs("n, 2"))
    outer = export.export(jax.jit(lambda x: inner.call(x * 2) + 1))(*specs("2*k + 1, 2"))
    assert str(outer.out_avals[0].shape) == "(2*k, 2)"
    x = numbers(5, 2)
    same(outer.call(x), nn.softmax(x * 2, 0)[1:] + 1)
    same(jax.vmap(inner.call)(numbers(3, 4, 2)), jax.vmap(lambda x: nn.softmax(x, 0)[1:])(numbers(3, 4, 2)))


def test_a_program_of_jax():
    """softmax(x.reshape(b, -1) @ w)[:-1] for b >= 2."""
    e = export.deserialize((DATA / "symbolic_jax_0.10.2.bin").read_bytes())

    def want(x, w):
        return nn.softmax(x.reshape(x.shape[0], -1) @ w)[:-1]
    x, w = numbers(4, 2, 3), numbers(6, 4)
    same(e.call(x, w), want(x, w))
    same(jax.grad(lambda w: jnp.sum(e.call(x, w) ** 2))(w), jax.grad(lambda w: jnp.sum(want(x, w) ** 2))(w),
         slack=4)
    with pytest.raises(ValueError, match="symbolic shape constraint b >= 2"):
        e.call(x[:1], w)


@pytest.mark.quick
@pytest.mark.parametrize("use, words", [
    (lambda a, b: a + b, "for linear combination"), (lambda a, b: a >= b, "when comparing 'a' >= 'b'"),
    (lambda a, b: b * a - 1, "for linear combination")])
def test_sizes_of_two_scopes_name_both(use, words):
    (a,), (b,) = symbolic_shape("a"), symbolic_shape("b")
    with pytest.raises(ValueError,
                       match=rf"(?s)Invalid mixing of symbolic scopes {words}.\nExpected  scope \d+ created at .*"
                                         r"test_dimension.py.*\nand found for '\w' \(unknown\) scope \d+ created at"):
        use(a, b)


@pytest.mark.quick
def test_what_is_inconclusive_says_what_is_known_of_the_scope():
    a, = symbolic_shape("a", constraints=["a >= 4"])
    with pytest.raises(jax.core.InconclusiveDimensionOperation,
                       match=r"(?s)'a' >= '5' is inconclusive.\nUsing symbolic scope "
                                                                      r"\d+ created at .* with constraints:\n  a >= 4\n"):
        bool(a >= 5)
    with pytest.raises(ValueError, match=r"cannot be raised to negative powers: 'a' \*\* '-1'"):
        a ** -1
    with pytest.raises(ValueError, match="cannot be raised to non-integer powers"):
        a ** 0.5


def test_sizes_as_exponents_are_values():
    exported = jax.export.export(jax.jit(lambda x: (2 ** x.shape[0], x.shape[0] ** x.shape[0])))(
        jax.ShapeDtypeStruct(symbolic_shape("a"), np.float32))
    assert tuple(map(int, exported.call(np.ones(3, np.float32)))) == (8, 27)


@pytest.mark.quick
@pytest.mark.parametrize("f, shape, want", [
    (lambda x: x[::2], "a", "(floordiv(a + 1, 2),)"),
    (lambda x: x[::3, 1:], "a, b", "(floordiv(a + 2, 3), b - 1)"),
    (lambda x: x[::-2], "a", "(floordiv(a + 1, 2),)")])
def test_sizes_of_slices_with_steps(f, shape, want):
    got = jax.eval_shape(f, jax.ShapeDtypeStruct(symbolic_shape(shape), np.float32)).shape
    assert [size.evaluate({"a": 5, "b": 4}) for size in got] == list(f(np.ones((5, 4)[:len(got)])).shape)
    assert str(got) == want


@pytest.mark.parametrize("f, sizes, x, types, want", [
    (lambda x: jnp.unique(x, size=3), "a", [3, 1, 3, 2], "(3,)", [1, 2, 3]),
    (lambda x: jnp.linalg.qr(x)[1] ** 2, "a, b", [[3, 0, 4], [4, 0, 3]], "(min(a, b), b)",
     [[25, 0, 23.04], [0, 0, 1.96]]),
    (lambda x: jnp.arange(0, x.shape[0], 2), "a", [1, 1, 1, 1, 1], "(floordiv(a + 1, 2),)", [0, 2, 4]),
    (lambda x: jnp.arange(x.shape[0], 0, -2), "a", [1, 1, 1, 1, 1], "(floordiv(a + 1, 2),)", [5, 3, 1]),
    (lambda x: x[:3], "a", [1, 2, 3, 4], "(min(a, 3),)", [1, 2, 3]),
])
def test_functions_whose_results_have_sizes_of_their_own(f, sizes, x, types, want):
    x = np.array(x, np.float32)
    exported = jax.export.export(jax.jit(f))(jax.ShapeDtypeStruct(symbolic_shape(sizes), x.dtype))
    assert str(exported.out_avals[0].shape) == types
    np.testing.assert_allclose(exported.call(x), want, atol=1e-5)


def test_sizes_that_may_not_fulfil_a_constraint_of_an_exported_function():
    inner, outer = (jax.export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct(shape, np.float32))
                    for shape in (
        symbolic_shape("a", constraints=["a >= 3"]), symbolic_shape("b", constraints=["b >= 4"])))
    jax.eval_shape(inner.call, jax.ShapeDtypeStruct(outer.in_avals[0].shape, np.float32))
    with pytest.raises(ValueError, match="constraint a >= 3. Expected 'a - 3' to be greater or equal to 0"):
        jax.eval_shape(inner.call, jax.ShapeDtypeStruct(symbolic_shape("c"), np.float32))
