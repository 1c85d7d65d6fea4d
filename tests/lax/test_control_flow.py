"""scan, while_loop, fori_loop, cond, switch, map: the oracle is the loop written out in Python."""
import functools

import numpy as np
import pytest
from equal import same
from reference import evaluated

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax


def A(*shape):
    return np.arange(float(np.prod(shape)), dtype=np.float32).reshape(shape)


def python_scan(f, init, xs, length=None, reverse=False):
    """`lax.scan` as a Python loop."""
    leaves, tree = jax.tree.flatten(xs)
    n = len(leaves[0]) if leaves else length
    carry, ys = init, []
    for i in reversed(range(n)) if reverse else range(n):
        carry, y = f(carry, jax.tree.unflatten(tree, [x[i] for x in leaves]))
        ys.append(y)
    return carry, jax.tree.map(lambda *rows: jnp.stack(rows), *(ys[::-1] if reverse else ys))


# --- scan ---------------------------------------------------------------------------------------------------

W = np.array([[0.5, -0.3], [0.2, 0.4]], np.float32)


def rnn(scan, reverse=False, **options):
    """A loss with every kind of operand: a carry, xs, and a matrix that the body closes over."""
    def loss(init, xs, w):
        carry, ys = scan(lambda c, x: (jnp.tanh(c @ w + x), {"y": jnp.sin(c) * x, "const": 1.0}), init, xs,
                         reverse=reverse, **options)
        return (carry * ys["y"]).sum() + ys["const"].sum()
    return loss


POINT = (np.full(2, 0.3, np.float32), A(3, 2) / 5, W)


@pytest.mark.parametrize("options", [{}, {"reverse": True, "unroll": 2}, {"unroll": True}])
def test_derivatives_of_scan_are_those_of_the_loop(options):
    loop, ref = rnn(lax.scan, **options), rnn(python_scan, reverse=options.get("reverse", False))
    argnums = (0, 1, 2)
    same(loop(*POINT), evaluated(ref)(*POINT))
    slope = evaluated(jax.grad(ref, argnums))
    want = slope(*POINT)
    same(jax.grad(loop, argnums)(*POINT), want)
    same(jax.jit(jax.grad(loop, argnums))(*POINT), want)
    same(jax.jvp(loop, POINT, POINT), evaluated(lambda *p: jax.jvp(ref, p, p))(*POINT))
    same(jax.jit(jax.hessian(loop, argnums))(*POINT), evaluated(jax.hessian(ref, argnums))(*POINT))
    if not options:
        same(jax.jacrev(jax.grad(loop, 2), 1)(*POINT), evaluated(jax.jacfwd(jax.grad(ref, 2), 1))(*POINT))
        batch = np.stack([W, 2 * W, -W])
        slopes = np.stack([slope(*POINT[:2], w)[2] for w in batch])
        same(jax.vmap(jax.grad(loop, 2), (None, None, 0))(*POINT[:2], batch), slopes)
        same(jax.grad(lambda w: jax.vmap(loop, (None, None, 0))(*POINT[:2], w).sum())(batch), slopes)


def test_scan_of_pytrees():
    def f(c, x):
        return {"a": c["a"] + x["v"], "n": c["n"] + 1}, (c["a"] * x["v"], None, {"q": x["w"]})
    init, xs = {"a": 0.0, "n": 0}, {"v": A(3), "w": A(3, 2)}
    want = ({"a": 3.0, "n": 3}, (np.array([0.0, 0.0, 2.0]), None, {"q": A(3, 2)}))
    same(lax.scan(f, init, xs), want)
    same(jax.jit(lambda: lax.scan(f, init, xs))(), want)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [0, 1, 2, 3, 5, 9, True])
def test_unroll_and_reverse(unroll, reverse):
    f = lambda c, x: (c * 2 + x, c)
    loop = evaluated(functools.partial(python_scan, f, reverse=reverse))
    same(lax.scan(f, 1.0, A(5), reverse=reverse, unroll=unroll), loop(1.0, A(5)))


def test_a_scan_that_is_unrolled_whole_updates_nothing_in_place():
    """XLA fuses slices and a concatenation; a chain of updates it makes one by one."""
    text = jax.jit(lambda xs: lax.scan(lambda c, x: (c + x, c), 0.0, xs, unroll=True)).lower(A(5)).as_text()
    assert "while" not in text and "dynamic" not in text and text.count("concatenate") == 1


def test_lengths():
    same(lax.scan(lambda c, _: (c * 2, c), 1.0, None, length=3), (8.0, np.array([1.0, 2.0, 4.0])))
    same(lax.scan(lambda c, _: (c * 2, c), 1.0, None, 0), (1.0, np.zeros(0)))
    same(lax.scan(lambda c, x: (c + x, c), 0.0, np.zeros((0,), np.float32)), (0.0, np.zeros(0)))
    same(lax.scan(lambda c, x: (c + x, c), 0.0, np.zeros((0,), np.float32), unroll=True), (0.0, np.zeros(0)))
    same(lax.scan(lambda c, x: (c, x), None, A(2)), (None, A(2)))
    same(jax.grad(lambda x: lax.scan(lambda c, y: (c * y * x, c), x, np.zeros(0))[0])(2.0), 1.0)
    same(jax.grad(lambda x: lax.fori_loop(0, 0, lambda i, c: c * x, 1.0) + x)(3.0), 1.0)


def test_carries_that_move():
    same(lax.scan(lambda c, x: (c, c), A(2), A(2)), (A(2), np.stack([A(2)] * 2)))
    same(lax.scan(lambda c, _: ((c[1], c[0]), None), (1.0, 2.0), None, length=3), ((2.0, 1.0), None))
    same(jax.grad(lambda x: lax.scan(lambda c, _: ((c[1], c[0]), None), (x, 2 * x), None, length=3)[0][0])(
        1.0), 2.0)
    same(lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[2], c[1]), (0, 1.0, 2.0)), (3, 2.0, 1.0))


@pytest.mark.parametrize("loss, x, want", [
    (lambda x: lax.scan(lambda c, _: ((c[0] + 1, c[1] * jnp.where(c[0] > 0, x, 1.0)), c[0]), (0, 1.0), None,
                        length=3)[0][1],
     2.0, 4.0),
    (lambda x: lax.scan(lambda c, y: (c, y ** 2), None, x)[1].sum(), A(3), 2 * A(3)),
    (lambda x: lax.scan(lambda c, y: (c + 1, y ** 2 * c), 0, x)[1].sum(), A(3), 2 * A(3) ** 2),
    (lambda x: lax.scan(lambda c, y: (c + y, y), 0.0, x)[0], A(3), np.ones(3)),
    (lambda x: lax.scan(lambda c, _: (c, 3.0), x, None, length=2)[1].sum(), 1.0, 0.0),
    (lambda x: lax.scan(lambda c, y: (c + y, (c * 2, jnp.sin(c))), x, A(3))[1][0].sum(), 1.0, 6.0),
])
def test_gradients_of_part_of_a_scan(loss, x, want):
    same(jax.grad(loss)(x), want)
    same(jax.jit(jax.grad(loss))(x), want)
    same(jax.vmap(jax.grad(loss))(np.stack([x, x])), np.stack([want, want]))


def test_nested_loops():
    def f(x):
        def step(c, y):
            c = lax.cond(c > 1, lambda c: lax.fori_loop(0, 2, lambda i, s: jnp.sin(s) * 2 + y * x, c),
                         lambda c: c + y * x, c)
            return c, lax.scan(lambda a, z: (a * c, a + z), y, A(2))[0]
        c, ys = lax.scan(step, x, A(3))
        return c + ys.sum()

    def ref(x):
        c, total = x, 0.0
        for y in A(3):
            looped = c
            for _ in range(2):
                looped = jnp.sin(looped) * 2 + y * x
            c = jnp.where(c > 1, looped, c + y * x)
            total = total + y * c * c
        return c + total
    xs = np.array([0.3, 0.9, 1.7], np.float32)
    for derivative in (lambda h: h, jax.grad, jax.jacfwd, jax.hessian):
        want = evaluated(jax.vmap(derivative(ref)))(xs)
        same(derivative(f)(xs[0]), want[0])
        same(jax.jit(jax.vmap(derivative(f)))(xs), want)
    same(jax.grad(lambda x: jax.vmap(f)(x).sum())(xs), evaluated(jax.vmap(jax.grad(ref)))(xs))


def test_carry_types_settle():
    for init, xs, dtype in ((0, A(2), "float32"), (0.0, A(2), "float32"),
                            (0.0, jnp.ones(2, jnp.bfloat16), "bfloat16")):
        assert lax.scan(lambda c, x: (c + x, c), init, xs)[0].dtype == dtype
    # a weak int becomes a float
    assert lax.scan(lambda c, x: (c + 1.5, c), 0, A(2))[0].dtype == "float32"
    assert lax.while_loop(lambda c: c < 3, lambda c: c + 1.5, 0).dtype == "float32"
    assert lax.while_loop(lambda c: c < 3, lambda c: c + jnp.bfloat16(1), 0.0).dtype == "bfloat16"
    same(lax.scan(lambda c, x: ((c[1], x), None), (0, 0), A(3))[0], (1.0, 2.0))
    assert lax.fori_loop(0, 3, lambda i, c: c + i, jnp.int8(0)).dtype == "int8"     # the index is weak
    assert lax.scan(lambda c, x: (c + x, c), np.uint8(250), np.arange(8, dtype=np.uint8))[0] == (
        250 + 28) % 256
    same(lax.scan(lambda c, x: (c | x, c), False, np.array([False, True])), (True, np.array([False, False])))


def test_bodies_are_traced_once():
    traced = []

    def body(c, x):
        traced.append("scan")
        return c + x, c

    def step(i, c):
        traced.append("fori")
        return c + i
    for _ in range(3):
        lax.scan(body, jnp.float32(0), A(3))
        lax.fori_loop(0, 3, step, 0)
    assert sorted(traced) == ["fori", "scan"]


# --- while_loop and fori_loop -------------------------------------------------------------------------------

def test_while_loop():
    same(lax.while_loop(lambda c: c < 10, lambda c: c * 2, 1), 16)
    same(jax.jit(lambda n: lax.while_loop(lambda c: c["i"] < n, lambda c: {"i": c["i"] + 1, "x": c["x"] * 2},
                                          {"i": 0, "x": np.ones(2, np.float32)}))(3),
                                          {"i": 3, "x": np.full(2, 8.0)})
    same(lax.while_loop(lambda c: False, lambda c: c, {"a": 1, "b": None}), {"a": 1, "b": None})


def power(n, x):
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, x))[1]


def test_forward_derivatives_of_while():
    same(jax.jvp(lambda x: power(3, x), (2.0,), (1.0,)), (16.0, 32.0))
    same(jax.jit(jax.jacfwd(jax.jacfwd(lambda x: power(3, x))))(2.0), 48.0)
    same(jax.vmap(jax.jacfwd(lambda x: power(3, x)))(A(3)), 4 * A(3) ** 3)
    same(jax.linearize(lambda x: power(3, x), 2.0)[1](1.0), 32.0)
    same(jax.grad(lambda x: x * lax.stop_gradient(power(3, x)))(2.0), 16.0)
    same(jax.grad(lambda x: x * lax.while_loop(lambda i: i < 3, lambda i: i + 1, 0))(2.0), 3.0)
    for transform in (lambda f: f, jax.jit):
        with pytest.raises(ValueError,
                           match="Reverse-mode.*while_loop or lax.fori_loop with dynamic.*lax.scan"):
            transform(jax.grad(lambda x: power(3, x)))(2.0)


def test_mapped_predicates():
    n = np.array([0, 2, 5])
    same(jax.vmap(power)(n, A(3) + 1), (A(3) + 1) ** (n + 1))
    same(jax.vmap(power, (None, 0))(3, A(3)), A(3) ** 4)
    same(jax.vmap(power, (0, None))(n, 2.0), 2.0 ** (n + 1))
    same(jax.vmap(jax.vmap(power, (0, None)), (None, 0))(n, A(2)), A(2)[:, None] ** (n + 1))
    same(jax.vmap(lambda x: lax.while_loop(lambda c: (c < 10).all(), lambda c: c * 2, x))(A(2, 2) + 1),
         np.array([[8.0, 16.0], [12.0, 16.0]]))
    same(jax.vmap(lambda x: lax.while_loop(lambda c: c.sum() < x, lambda c: c + 1, np.zeros(2, np.float32)))(
        A(4)),
         np.array([[0.0] * 2, [1.0] * 2, [1.0] * 2, [2.0] * 2]))
    same(jax.vmap(lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[0] * x), (0.0, 0.0)))(
        A(2)),
         (np.full(2, 2.0), A(2)))


@pytest.mark.parametrize("lower, upper",
                         [(0, 5), (2, 5), (5, 2), (-2, 1), (np.int8(0), np.int8(3)), (0, np.int32(3))])
def test_fori_loop(lower, upper):
    want = sum(range(lower, upper))
    for bounds in ((lower, upper), (lower, jnp.asarray(upper))):
        same(lax.fori_loop(*bounds, lambda i, c: c + i, np.int32(0)), want)
    same(jax.jit(lambda a, b: lax.fori_loop(a, b, lambda i, c: c + i, np.int32(0)))(lower, upper), want)
    same(lax.fori_loop(lower, upper, lambda i, c: c + i, np.int32(0), unroll=2), want)


@pytest.mark.parametrize("lower, upper, known, traced", [
    (0, 2, "weak int32", "weak int32"), (0, np.int8(2), "weak int32", "int8"),
    (np.int8(0), 2, "weak int32", "int8"),
    (0, np.int32(2), "weak int32", "weak int32"), (np.int32(0), 2, "weak int32", "int32"),
    (np.uint8(0), np.uint8(2), "weak int32", "uint8"), (0.0, 2.0, "weak int32", "weak float32"),
    (0.0, np.float32(2), "weak int32", "weak float32"), (0, np.uint8(2), None, None),
    (np.uint32(0), 2, None, None),
    (np.int8(0), np.int32(2), None, None), (0.0, np.float16(2), None, None)])
def test_the_type_of_a_loops_index(lower, upper, known, traced):
    """Of known bounds it is that of a Python int, of others theirs."""
    def index_type(lower, upper):
        lax.fori_loop(lower, upper, lambda i, c: seen.append("weak " * i.weak_type + i.dtype.name) or c, 0)
    for way, want in (index_type, known), (jax.jit(index_type), traced):
        seen = []
        if want is None:
            with pytest.raises(TypeError, match="must have equal types"):
                way(lower, upper)
        else:
            way(lower, upper)
            assert seen[0] == want


def test_fori_loop_derivatives():
    f = lambda x: lax.fori_loop(0, 3, lambda i, c: c * jnp.sin(x) + i, x)
    ref = lambda x: ((x * jnp.sin(x)) * jnp.sin(x) + 1) * jnp.sin(x) + 2
    for derivative in (jax.grad, jax.hessian, jax.jacfwd):
        same(derivative(f)(1.0), evaluated(derivative(ref))(1.0))
        same(jax.vmap(derivative(f))(A(2)), evaluated(jax.vmap(derivative(ref)))(A(2)))
    dynamic = lambda x, n: lax.fori_loop(0, n, lambda i, c: c * x, x)
    same(jax.grad(dynamic)(2.0, 3), 32.0)      # outside jit the bounds are known
    same(jax.jit(lambda n, x: jax.jvp(lambda x: dynamic(x, n), (x,), (1.0,)))(3, 2.0), (16.0, 32.0))
    with pytest.raises(ValueError, match="Reverse-mode.*Python integers"):
        jax.jit(jax.grad(dynamic))(2.0, 3)
    same(jax.vmap(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0))(np.arange(4)), np.array([0, 0, 1, 3]))


# --- cond and switch ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("pred, want",
                         [(True, 2.0), (False, 0.0), (1, 2.0), (0.0, 0.0), (np.bool_(True), 2.0), (-3, 2.0)])
def test_cond(pred, want):
    f = lambda p, x: lax.cond(p, lambda x: x * 2, lambda x: x - 1, x)
    same([f(pred, 1.0), jax.jit(f)(pred, 1.0)], [want, want])


@pytest.mark.parametrize("call", [
    lambda p: lax.cond(p, lambda x: int(x is None), lambda x: 7, operand=None),
    lambda p: lax.cond(pred=p, true_fun=lambda x: int(x is None), false_fun=lambda x: 7, operand=None),
    lambda p: lax.cond(p, lambda x: int(x is None), lambda x: 7, None),
    lambda p: lax.cond(p, 1, lambda x: x, 3, lambda x: x + 4),
    lambda p: lax.cond(p, {"a": 1}, lambda x: x["a"], 3, lambda x: x + 4),
    lambda p: lax.cond(p, None, lambda x: int(x is None), 3, lambda x: x + 4),
    lambda p: lax.switch(jnp.int32(p), [lambda x: 7, lambda x: int(x is None)], operand=None),
])
def test_none_is_an_operand_and_each_branch_may_have_its_own(call):
    for transform in lambda f: f, jax.jit:
        assert int(transform(call)(True)) == 1 and int(transform(call)(False)) == 7


@pytest.mark.parametrize("call", [lambda: lax.cond(True, lambda x: 1, lambda x: 2, 3, operand=None),
                                  lambda: lax.switch(0, [lambda x: 1], 3, operand=4)])
def test_operands_by_position_and_by_name(call):
    with pytest.raises(TypeError, match="no positional operands can be passed, got operand="):
        call()


def test_cond_operands():
    same(lax.cond(True, lambda: 1, lambda: 2), 1)
    same(lax.cond(False, lambda a, b: {"s": a + b, "n": None}, lambda a, b: {"s": a * b, "n": None}, 2.0,
                  3.0),
         {"s": 6.0, "n": None})
    same(lax.cond(True, lambda t: t[0], lambda t: t[1], operand=(1.0, 2.0)), 1.0)
    same(lax.switch(5, [lambda x: x], 4.0), 4.0)


THREE = np.float32(3.0)


def piecewise(x, w=THREE):
    return lax.cond(x > 1, lambda x: jnp.sin(x) * w, lambda x: x ** 2 * w + w, x)


def piecewise_reference(x, w=THREE):
    return jnp.where(x > 1, jnp.sin(x) * w, x ** 2 * w + w)


@pytest.mark.parametrize("derivative",
                         [lambda h: h, jax.grad, jax.hessian, lambda h: jax.grad(jax.grad(h)), jax.jacfwd,
                                        lambda h: lambda x: jax.grad(h, 1)(x, jnp.float32(3))])
def test_derivatives_of_cond(derivative):
    got, want = derivative(piecewise), evaluated(derivative(piecewise_reference))
    for x in (0.5, 2.0):
        same(got(x), want(x))
        same(jax.jit(got)(x), want(x))
    mapped = jax.vmap(derivative(piecewise_reference))
    same(jax.vmap(got)(A(3)), evaluated(mapped)(A(3)))
    same(jax.grad(lambda x: jax.vmap(got)(x).sum())(A(3)),
         evaluated(jax.grad(lambda x: mapped(x).sum()))(A(3)))


def test_branches_with_different_derivatives():
    f = lambda x, p: lax.cond(p, lambda x: (x, 3.0, x * 2, 1), lambda x: (2.0, x * x, x * 3, 2), x)[:3]
    same(jax.jit(jax.jacrev(f))(4.0, True), (1.0, 0.0, 2.0))
    same(jax.jit(jax.jacfwd(f))(4.0, False), (0.0, 8.0, 3.0))
    same(jax.grad(lambda x: lax.cond(True, lambda: x, lambda: 2.0))(1.0), 1.0)


def test_what_is_given_back_as_it_is_is_no_result():
    """It is not mapped where what decides is, a derivative does not keep it for each step; of a branch a NumPy
    array is an Array."""
    def branch(p, x, y):
        return lax.cond(p, lambda x, y: (x, y + 1, x), lambda x, y: (x, y * x, y), x, y)

    def repeat(n, x, y):
        return lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1], c[2] * c[1]), (n, x, y))

    def loop(x, y):
        return lax.scan(lambda c, _: ((c[0], jnp.sin(c[0] * c[1])), c[0]), (x, y), None, length=3)
    x, y = np.float32([1, 2]), np.float32([3, 4])
    flags, counts = np.array([True, False]), np.array([0, 1])
    got = jax.vmap(branch, (0, None, None), (None, 0, 0))(flags, x, y)
    same(got, (x, np.stack([y + 1, x * y]), np.stack([x, y])))
    assert isinstance(got[0], jax.Array)
    same(jax.vmap(repeat, (0, None, None), (0, None, 0))(counts, x, y),
         (np.array([2, 2]), x, np.stack([y * x * x, y * x])))
    (c, d), cs = loop(x, y)
    same((c, cs), (x, np.stack([x] * 3)))
    z = y
    for _ in range(3):
        z = np.sin(x * z)
    same(d, z)
    gradient = str(jax.make_jaxpr(jax.grad(lambda x, y: loop(x, y)[0][1].sum()))(x, y))
    assert "num_consts=1" in gradient and gradient.count("f32[3,2]") <= 4, gradient
    same(lax.while_loop(lambda c: False, lambda c: c, x), x)      # nothing else is carried
    with pytest.raises(ValueError,
                       match=r"at vmap out_axes\[2\], got axis spec None but output was batched on axis 0"):
        jax.vmap(branch, (0, None, None), (None, 0, None))(flags, x, y)


@pytest.mark.quick
def test_the_predicate_of_a_cond_is_an_index_in_programs():
    text = str(jax.make_jaxpr(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x))(True, 1.0))
    assert "c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a" in text and "] c b" in text
    for known in (True, 2, np.bool_(True)):
        chosen = functools.partial(lax.cond, known, jnp.sin, jnp.cos)
        assert "] 1:i32[] a" in str(jax.make_jaxpr(chosen)(1.0))


def test_vmap_of_cond():
    f = lambda p, x, y: lax.cond(p, lambda x, y: (x, y), lambda x, y: (y, y), x, y)
    p = np.array([True, False])
    same(jax.vmap(f, (None, 0, None))(True, A(2), 3.0), (A(2), np.full(2, 3.0)))
    same(jax.vmap(f, (None, 0, None))(False, A(2), 3.0), (np.full(2, 3.0), np.full(2, 3.0)))
    same(jax.vmap(f, (0, None, None))(p, 1.0, 2.0), (np.array([1.0, 2.0]), np.full(2, 2.0)))
    same(jax.vmap(f, (0, 0, None))(p, A(2, 2), np.ones(2, np.float32)),
         (np.array([[0.0, 1.0], [1.0, 1.0]]), np.ones((2, 2))))


BRANCHES = [lambda x: x, lambda x: x * 2, lambda x: x * 3]


@pytest.mark.parametrize("kinds", ["ws", "sw", "ww", "ss", "wss", "sww"])
def test_a_result_is_weak_where_that_of_the_first_branch_is(kinds):
    branches = [{"w": lambda x: 2 * x, "s": lambda x: jnp.float32(3)}[kind] for kind in kinds]

    def choose(i, x):
        return lax.switch(i, branches, x) if len(kinds) > 2 else lax.cond(i > 0, *branches[::-1], x)
    assert {f(1, 2.).weak_type for f in (choose, jax.jit(choose))} == {kinds[0] == "w"}


def test_switch_clamps():
    index = np.array([-3, 0, 1, 2, 9])
    want = (np.clip(index, 0, 2) + 1) * 2.0
    same([lax.switch(int(i), BRANCHES, 2.0) for i in index], list(want))
    same([jax.jit(lambda i: lax.switch(i, BRANCHES, 2.0))(i) for i in index], list(want))
    same(jax.vmap(lambda i: lax.switch(i, BRANCHES, 2.0))(index), want)
    same(jax.vmap(jax.grad(lambda x, i: lax.switch(i, BRANCHES, x)))(np.ones(5, np.float32), index), want / 2)
    same(lax.switch(np.uint8(2), BRANCHES, 2.0), 6.0)


# --- map -----------------------------------------------------------------------------------

def test_map():
    same(lax.map(lambda t: (t[0] * t[1]["a"], t[0]), (A(3), {"a": A(3, 2)})), (A(3)[:, None] * A(3, 2), A(3)))
    for batch_size in (1, 2, 5, 7):
        same(lax.map(lambda x: x + 1, A(5), batch_size=batch_size), A(5) + 1)
    same(jax.grad(lambda x: lax.map(jnp.sin, x).sum())(A(3)), np.cos(A(3)))
    assert lax.map(lambda x: x, np.zeros((0, 2))).shape == (0, 2)


# --- other dtypes, effects, modes ---------------------------------------------------------------------------

def test_keys_in_loops():
    key, keys = jax.random.key(0), jax.random.split(jax.random.key(0), 3)
    uniform = jax.random.uniform
    same(lax.map(uniform, keys), np.stack([uniform(k) for k in keys]))
    same(lax.scan(lambda c, k: (c, uniform(k)), 0.0, keys)[1], np.stack([uniform(k) for k in keys]))
    same(jax.vmap(lambda k: lax.scan(lambda k, _: (jax.random.split(k)[0], uniform(k)), k, None,
                                     length=2)[1][0])(keys),
         np.stack([uniform(k) for k in keys]))
    assert lax.scan(lambda c, _: (c, jax.random.key(1)), 0.0, None, length=2)[1].shape == (2,)
    assert lax.fori_loop(0, 2, lambda i, k: jax.random.fold_in(k, i), key).dtype == key.dtype
    assert lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, jax.random.split(c[1])[1]), (0, key))[
        1].shape == ()
    same(jax.vmap(lambda p, k: lax.cond(p, uniform, lambda k: jnp.float32(0), k))(
        np.array([True, False]), keys[:2]),
         np.array([float(uniform(keys[0])), 0.0]))
    same(jax.grad(lambda x: lax.scan(lambda c, k: (c * uniform(k) * x, None), x, keys[:2])[0])(1.0),
         3 * float(uniform(keys[0]) * uniform(keys[1])))


def test_disable_jit():
    with jax.disable_jit():
        same(lax.scan(lambda c, x: (c + float(x), (c, None)), 0.0, A(3)),
             (3.0, (np.array([0.0, 0.0, 1.0]), None)))
        same(lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0), 3)
        same(lax.fori_loop(0, 3, lambda i, c: c + i, 0), 3)
        same(lax.cond(True, lambda x: x, lambda x: -x, 1.0), 1.0)
        same(lax.switch(1, BRANCHES, 1.0), 2.0)
        same(lax.map(lambda x: x * 2, A(2)), A(2) * 2)
        same(jax.grad(lambda x: lax.scan(lambda c, y: (c * y * x, None), x, A(2) + 1)[0])(1.0), 6.0)
        same(jax.vmap(lambda x: lax.cond(x > 0, lambda x: x, lambda x: -x, x))(-A(2)), A(2))


def test_disable_jit_where_something_else_is_traced():
    loop = lambda x: lax.while_loop(lambda x: x < 3, lambda x: x + 1, x)
    with jax.disable_jit():
        assert jax.vmap(loop)(jnp.arange(5)).tolist() == [3, 3, 3, 3, 4]
        assert jax.make_jaxpr(loop)(0).eqns[-1].primitive.name == "while"


def test_constants_in_bodies():
    big = np.arange(1000.0, dtype=np.float32)
    same(lax.scan(lambda c, _: (c + big.sum() + jnp.asarray(big)[1], None), 0.0, None, length=2)[0],
         2 * (big.sum() + 1))
    same(lax.cond(True, lambda x: x + jnp.sum(big), lambda x: x - jnp.asarray(big)[0], 1.0), big.sum() + 1)
    same(jax.grad(lambda x: lax.scan(lambda c, _: ((c * big).sum() * x, None), x, None, length=1)[0])(1.0),
         2 * big.sum())


CARRY = "carry input and carry output must have"


@pytest.mark.parametrize("call, error, words", [
    (lambda: lax.scan(lambda c, x: c, 0.0, A(2)), TypeError, "pair"),
    (lambda: lax.scan(lambda c, x: (c, x, x), 0.0, A(2)), TypeError, "pair"),
    (lambda: lax.scan(lambda c, x: ((c, c), x), 0.0, A(2)), TypeError, CARRY + " the same pytree structure"),
    (lambda: lax.scan(lambda c, x: ({"b": c["a"]}, x), {"a": 0.0}, A(2)), TypeError,
     "The input carry c is a dict with 1 key but"),
    (lambda: lax.scan(lambda c, x: (c.astype(int), x), jnp.float32(0), A(2)), TypeError,
     r"The input carry c has type float32\[\] but .* has type int32\[\], so the dtypes do not match: cast"),
    (lambda: lax.scan(lambda c, x: ({"a": c["a"][:1]}, x), {"a": A(2)}, A(2)), TypeError,
     r"carry component c\['a'\] has type float32\[2\] but .* has type float32\[1\], so the shapes do not match"),
    (lambda: lax.scan(lambda c, x: (c, x), 0.0, (A(2), A(3))), ValueError, r"xs\[0\]: 2, xs\[1\]: 3"),
    (lambda: lax.scan(lambda c, x: (c, x), 0.0, A(2), length=3), ValueError, "disagrees"),
    (lambda: lax.scan(lambda c, x: (c, x), 0.0), ValueError, "`length` not provided"),
    (lambda: lax.scan(lambda c, x: (c, x), 0.0, 1.0), ValueError, "no leading axis"),
    (lambda: lax.scan(lambda c, x: (c, x), "s", A(2)), TypeError, r"scan of [\s\S]*it is argument c"),
    (lambda: lax.scan(3, 0.0, A(2)), TypeError, "callable"),
    (lambda: lax.scan(lambda c, x: (c, x), 0.0, A(2), unroll=-1), ValueError, "unroll"),
    (lambda: lax.scan(lambda c, x: (c, x), 0.0, None, length=-1), ValueError, "non-negative"),
    (lambda: jax.jit(lambda n: lax.scan(lambda c, x: (c, x), 0.0, None, length=n))(3),
     jax.errors.ConcretizationTypeError, "`length`"),
    (lambda: lax.while_loop(lambda c: c, lambda c: c, 1), TypeError,
     r"boolean scalar, but got output type\(s\) \[ShapedArray\(int32\[\]"),
    (lambda: lax.while_loop(lambda c: c > 0, lambda c: c, A(2)), TypeError, r"bool\[2\].*any\(\)"),
    (lambda: lax.while_loop(lambda c: (True,), lambda c: c, 1), TypeError, "pytree"),
    (lambda: lax.while_loop(lambda c: c < 0, lambda c: (c, c), 1), TypeError, CARRY),
    (lambda: lax.while_loop(lambda c: c < 0, lambda c: c * 1.5, np.int32(1)), TypeError,
     r"The input carry c has type int32\[\]"),
    (lambda: lax.while_loop(1, lambda c: c, 1), TypeError, "callable"),
    (lambda: lax.fori_loop(0.0, 3, lambda i, c: c, 0), TypeError, "lower must be an integer"),
    (lambda: lax.fori_loop(0, A(2).astype(int), lambda i, c: c, 0), TypeError, "upper must be an integer"),
    (lambda: lax.fori_loop(np.int8(0), np.int32(3), lambda i, c: c, 0), TypeError,
     "equal types.*int8 and int32"),
    (lambda: lax.fori_loop(0, np.uint8(3), lambda i, c: c, 0), TypeError, "equal types.*int32 and uint8"),
    (lambda: jax.jit(lambda n: lax.fori_loop(n, 3, lambda i, c: c, 0))(np.uint32(0)), TypeError,
     "equal types.*uint32 and int32"),
    (lambda: lax.fori_loop(0, 3, lambda i, c: (c, c), 0), TypeError, CARRY),
    (lambda: jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 0, unroll=2))(3), ValueError, "unroll"),
    (lambda: lax.cond(A(2) > 0, lambda: 1, lambda: 2), TypeError, r"scalar, got bool\[2\]"),
    (lambda: lax.cond("s", lambda: 1, lambda: 2), TypeError, "scalar"),
    (lambda: lax.cond(1j, lambda: 1, lambda: 2), TypeError, "boolean or number"),
    (lambda: lax.cond(True, 1, 2), TypeError, "callable"),
    (lambda: lax.cond(True, lambda: (1, 2), lambda: 1), TypeError,
     r"cond branch outputs must have the same pytree structure[\s\S]*true_fun output is a tuple.*false_fun output is a leaf, so their"),
    (lambda: lax.cond(True, lambda: {"a": 1}, lambda: {"a": 1.0}), TypeError,
     r"true_fun at path \['a'\] has type int32\[\] but the corresponding output of false_fun has type float32\[\]"),
    (lambda: lax.cond(True, lambda x: x, lambda x: x, "s"), TypeError, "str"),
    (lambda: lax.switch(0.5, BRANCHES, 1.0), TypeError, "must be an integer"),
    (lambda: lax.switch(0, [], 1.0), ValueError, "Empty branch"),
    (lambda: lax.switch(0, [lambda x: x, lambda x: (x,)], 1.0), TypeError,
     "branch 0 output is .* but branch1 output is"),
    (lambda: lax.map(lambda x: x, 1.0), ValueError, "leading axis"),
    (lambda: lax.map(lambda x: x, A(2), batch_size=-1), ValueError, "batch_size"),
    (lambda: lax.associative_scan(1, A(2)), TypeError, "callable"),
    (lambda: lax.associative_scan(jnp.add, (A(2), A(3))), ValueError, "same size"),
    (lambda: lax.associative_scan(jnp.add, A(2), axis=3), ValueError, "axis 3 is out of bounds"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_map_in_blocks_of_none_is_map():
    same(lax.map(lambda x: 2 * x, A(3), batch_size=0), 2 * A(3))


@pytest.mark.parametrize("init, xs", [(0., np.arange(3, dtype="float32")), (0, np.arange(3)),
                                      (0., np.arange(3, dtype="bfloat16"))])
def test_a_weak_carry_that_becomes_strong_is_traced_once_where_its_dtype_stays(init, xs):
    traced = []

    def body(carry, x):
        traced.append(carry)
        return carry + x, carry
    total, before = lax.scan(body, init, jnp.asarray(xs))
    stays = xs.dtype != "bfloat16"
    assert total.dtype == before.dtype == jnp.asarray(xs).dtype and not total.weak_type
    assert before.weak_type == stays and len(traced) == (1 if stays else 2)
    assert (total, *before) == (3, 0, 0, 1)
    one, other = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + jnp.asarray(xs)[1], c[0]), (init, init))
    assert (one, other) == (3, 2) and not one.weak_type and other.weak_type == stays


def test_fori_loop_over_floats():
    add = lambda i, total: total + i
    assert lax.fori_loop(0., 4., add, 0.) == lax.fori_loop(0., 4.5, add, 0., unroll=2) == 6
    assert jax.jit(lambda n: lax.fori_loop(0., n, add, 0.))(4.) == 6
    assert jax.grad(lambda a: lax.fori_loop(0., 3., lambda i, x: x * a, 1.))(2.) == 12


def test_branches_share_what_they_close_over_and_the_places_of_what_they_save():
    branches = [lambda x, w: jnp.sin(x) @ w, lambda x, w: jnp.tanh(x @ w),
                lambda x, w: jnp.sin(jnp.cos(x @ w)) * jnp.exp(x)]

    def f(i, x, w):
        return lax.switch(i, [lambda x, b=b: b(x, w) for b in branches], x).sum()
    x, w = jnp.arange(3.0), jnp.eye(3) + 0.5
    forward, backward = [[[v.aval.shape for v in atoms] for atoms in (eqn.invars, eqn.outvars)]
                         for eqn in jax.make_jaxpr(jax.grad(f, (1, 2)))(0, x, w).eqns
                         if eqn.primitive.name == "cond"]
    most = 4        # what the last branch saves
    assert forward == [[(), (3, 3), (3,)], [(3,)] * (1 + most)]
    assert backward == [[*forward[0], *[(3,)] * most, (3,)], [(3, 3), (3,)]]
    for i, branch in enumerate(branches):
        found = jax.grad(f, (1, 2))(i, x, w)
        expected = jax.grad(lambda *a, b=branch: b(*a).sum(), (0, 1))(x, w)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
