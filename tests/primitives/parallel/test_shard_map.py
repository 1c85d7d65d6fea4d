"""shard_map: which values vary between devices, derivatives taken inside, and rules of the user's own."""

import numpy as np
import pytest
from equal import same
from mapped import LINE, RING, A, both_modes, on_grid, on_line, raises, varying

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.sharding import NamedSharding, PartitionSpec as P

# --- which values vary ---


@pytest.mark.parametrize("f, axes", [
    (lambda x, w: x, "x"),
    (lambda x, w: w, ""),
    (lambda x, w: x + w[0], "x"),
    (lambda x, w: jnp.zeros_like(x), "x"),
    (lambda x, w: jnp.zeros(3), ""),
    (lambda x, w: lax.axis_index("y"), "y"),
    (lambda x, w: lax.axis_index(("x", "y")), "xy"),
    (lambda x, w: x + lax.axis_index("y"), "xy"),
    (lambda x, w: lax.psum(x, "x"), ""),
    (lambda x, w: lax.pmean(x, "x"), ""),
    (lambda x, w: lax.pmax(x, "x"), ""),
    (lambda x, w: lax.psum(x + lax.axis_index("y"), "y"), "x"),
    (lambda x, w: lax.all_gather(x, "x"), "x"),
    (lambda x, w: lax.all_gather(x, "x", to="invarying"), ""),
    (lambda x, w: lax.ppermute(x, "x", RING), "x"),
    (lambda x, w: lax.psum_scatter(lax.all_gather(x, "x"), "x"), "x"),
    (lambda x, w: lax.all_to_all(lax.all_gather(x, "x"), "x", 0, 0), "x"),
    (lambda x, w: lax.pcast(w, "y", to="varying"), "y"),
    (lambda x, w: lax.pcast(1.0, ("x", "y"), to="varying"), "xy"),
    (lambda x, w: lax.psum(w, "x"), ""),
    (lambda x, w: jax.jit(jnp.sin)(x), "x"),
    (lambda x, w: lax.cond(x[0, 0] > 0, lambda: x, lambda: 2 * x), "x"),
    (lambda x, w: jax.grad(lambda w: (w * x.sum()).sum())(w), ""),
    (lambda x, w: jax.vmap(jnp.sin)(x), "x"),
])
def test_the_type_says_over_which_axes_a_value_varies(f, axes):
    seen = []

    def body(x, w):
        seen.append(varying(f(x, w)))
        return x
    on_grid(body, (P("x"), P()))(A(4, 2), A(3))
    assert seen == [frozenset(axes)] * len(seen)


def test_unchecked_types_say_nothing():
    seen = []
    on_line(lambda x: (seen.append(varying(x + lax.axis_index("x"))), x)[1], check_vma=False)(A(4))
    assert set(seen) == {frozenset()}


def test_types_show_the_axes():
    seen = []
    on_line(lambda x: (seen.extend([str(jax.typeof(x)), str(jax.typeof(lax.psum(x, "x")))]), x)[1])(A(4))
    assert seen[:2] == ["float32[1]{V:x}", "float32[1]"]


@pytest.mark.parametrize("f, spec", [
    (lambda x: x, P()),
    (lambda x: lax.axis_index("x"), P()),
    (lambda x: lax.psum(x, "x") * x, P()),
    (lambda x: lax.all_gather(x, "x", tiled=True), P()),
    (lambda x: lax.ppermute(x, "x", [(0, 1)]), P(None)),
])
def test_a_varying_value_is_not_replicated(f, spec):
    with raises(ValueError, "out_specs", "check_vma"):
        on_line(f, out_specs=spec)(A(4))
    with raises(ValueError, "out_specs", "check_vma"):
        jax.jit(on_line(f, out_specs=spec))(A(4))


def test_unchecked_results_are_those_of_the_first_device():
    same(on_line(lambda x: lax.all_gather(x, "x", tiled=True), out_specs=P(), check_vma=False)(A(4)), A(4))
    same(on_line(lambda x: x, out_specs=P(), check_vma=False)(A(4)), np.float32([0]))


def test_sums_of_replicated_values_count_each_device():
    for check in (True, False):
        same(on_line(lambda w: lax.psum(w, "x"), P(), P(), check_vma=check)(A(2)), 4 * A(2))


def test_pcast():
    out = on_line(lambda x: lax.pcast((1.0, jnp.ones(1)), ("x",), to="varying")[1] * x)(A(4))
    same(out, A(4))
    with raises(ValueError, "varying"):
        on_line(lambda x: lax.pcast(x, "x", to="varying"))(A(4))
    with raises(ValueError, "to"):
        on_line(lambda x: lax.pcast(x, "x", to="elsewhere"))(A(4))


def test_the_carry_of_a_loop_varies_as_it_will():
    start = lambda: jnp.zeros(1)
    loops = [lambda x, c: lax.scan(lambda c, _: (c + x, None), c, None, length=2)[0],
             lambda x, c: lax.fori_loop(0, 2, lambda _, c: c + x, c),
             lambda x, c: lax.while_loop(lambda s: s[1] < 2, lambda s: (s[0] + x, s[1] + 1), (c, 0))[0]]
    for loop in loops:
        same(on_line(lambda x, loop=loop: loop(x, start()))(A(4)), 2 * A(4))       # JAX wants a pcast
        same(on_line(lambda x, loop=loop: loop(x, lax.pcast(start(), "x", to="varying")))(A(4)), 2 * A(4))
        same(on_line(lambda x, loop=loop: loop(x, jnp.zeros_like(x)))(A(4)), 2 * A(4))
        same(on_line(lambda x, loop=loop: loop(x, start()), check_vma=False)(A(4)), 2 * A(4))


# --- gradients taken inside the body ---


W, X = np.float32([2, 3]), np.arange(1, 9, dtype=np.float32)          # device k holds (2k + 1, 2k + 2) of X
TOTAL, BLOCKS = np.float32([16, 20]), X.reshape(4, 2)                 # TOTAL is the sum of the blocks
same_everywhere = lambda v: np.tile(np.float32(v), (4, 1))


@pytest.mark.parametrize("loss, checked, unchecked", [
    # a checked gradient of a replicated weight is summed over the devices; an unchecked one is each device's own,
    # and there psum transposes to psum
    (lambda w, x: (w * x).sum(), same_everywhere(TOTAL), BLOCKS),
    (lambda w, x: lax.psum((w * x).sum(), "x"), same_everywhere(TOTAL), 4 * BLOCKS),
    (lambda w, x: lax.pmean((w * x).sum(), "x"), same_everywhere(TOTAL / 4), BLOCKS),
    (lambda w, x: lax.psum((w * x).sum(), "x") ** 2, same_everywhere(2 * 92 * TOTAL), 4 * 2 * 92 * BLOCKS),
    (lambda w, x: (w**2).sum(), same_everywhere(2 * W), same_everywhere(2 * W)),
    (lambda w, x: lax.psum((w**2).sum(), "x"), same_everywhere(8 * W), same_everywhere(8 * W)),
    (lambda w, x: (w * x).sum() * lax.psum((w * x).sum(), "x"), same_everywhere([2944, 3680]),
     [[184, 368], [552, 736], [920, 1104], [1288, 1472]]),
    (lambda w, x: (lax.pcast(w, "x", to="varying") * x).sum(), same_everywhere(TOTAL), BLOCKS),
    (lambda w, x: (lax.all_gather(w * x, "x") ** 2).sum(), same_everywhere([1344, 2880]),
     [[16, 96], [144, 384], [400, 864], [784, 1536]]),
    (lambda w, x: (lax.ppermute(w * x, "x", RING) * x).sum(), same_everywhere([60, 96]),
     [[3, 8], [15, 24], [35, 48], [7, 16]]),
], ids=["local", "psum", "pmean", "square of psum", "no data", "psum, no data", "local times psum", "pcast", "all_gather",
        "ppermute"])
def test_gradient_of_a_replicated_weight(loss, checked, unchecked):
    for check, want in ((True, checked), (False, unchecked)):
        body = lambda w, x: jax.grad(loss)(w, x)[None]
        same(jax.jit(on_line(body, (P(), P("x")), P("x"), check_vma=check))(W, X), np.float32(want))


def test_a_checked_gradient_may_leave_replicated():
    loss = lambda w, x: (w**3 * x).sum()
    same(on_line(jax.value_and_grad(lambda w, x: lax.psum(loss(w, x), "x")), (P(), P("x")), P())(W, X),
         ((np.float32(W**3 * BLOCKS).sum()), 3 * W**2 * TOTAL))
    twice = lambda w, x: jax.grad(lambda w: jax.grad(loss)(w, x).sum())(w)
    same(on_line(twice, (P(), P("x")), P())(W, X), 6 * W * TOTAL)


def test_a_weight_cast_before_the_gradient_keeps_it_local():
    def body(w, x):
        return jax.grad(lambda w: (w * x).sum())(lax.pcast(w, "x", to="varying"))[None]
    same(on_line(body, (P(), P("x")), P("x"))(W, X), BLOCKS)


def test_gradients_of_a_varying_value():
    body = lambda w, x: jax.grad(lambda x: lax.psum((w * x).sum(), "x"))(x)
    same(on_line(body, (P(), P("x")))(W, X), np.tile(W, 4))
    same(on_line(body, (P(), P("x")), check_vma=False)(W, X), np.tile(4 * W, 4))


@both_modes
def test_forward_mode_inside(check):
    body = lambda x: jax.jvp(lambda x: lax.psum(x, "x"), (x,), (2 * x,))
    same(on_line(body, out_specs=P(), check_vma=check)(A(4)), (np.float32([6]), np.float32([12])))


@both_modes
def test_a_training_step_equals_that_of_one_device(check):
    w, x, y = np.float32([1, -1]), A(8, 2) / 8, np.float32(np.arange(8) % 2)

    def step(w, x, y):
        grad = jax.grad(lambda w: lax.pmean(jnp.mean((x @ w - y) ** 2), "x"))(w)
        return w - 0.1 * (grad if check else lax.pmean(grad, "x"))

    want = w - 0.1 * 2 / 8 * (x @ w - y) @ x
    same(on_line(step, (P(), P("x"), P("x")), P(), check_vma=check)(w, x, y), want)


# --- derivative rules of the user's own ---


@jax.custom_vjp
def shared(w):
    """Identity forward; backward, the sum over devices (Megatron's f)."""
    return w


shared.defvjp(lambda w: (w, None), lambda _, ct: (lax.psum(ct, "x"),))


def product(total):
    """w * x, with a backward rule that gives each device's own part, or the sum of them."""
    rule = jax.custom_vjp(lambda w, x: w * x)
    rule.defvjp(lambda w, x: (w * x, (w, x)), lambda saved, ct: (total(ct * saved[1]), ct * saved[0]))
    return lambda w, x: rule(w, x).sum()


@jax.custom_jvp
def centred_rule(x):
    return x - lax.pmean(x, "x")


centred_rule.defjvp(lambda x, t: (centred_rule(*x), t[0] - lax.pmean(t[0], "x") * lax.axis_size("x") / 4))


def test_a_backward_rule_that_sums_is_not_summed_again():
    for total in (lambda ct: lax.psum(ct, "x"), lambda ct: ct):       # the second is refused by JAX
        same(on_line(jax.grad(product(total)), (P(), P("x")), P())(W, X), TOTAL)


@both_modes
def test_rules_see_the_axes_when_the_derivative_is_taken_outside(check):
    run = on_line(lambda w, x: lax.psum((lax.pcast(shared(w), "x", to="varying") * x).sum(), "x") if check
                  else (shared(w) * x).sum()[None], (P(), P("x")), P() if check else P("x"), check_vma=check)
    got = jax.grad(lambda w: run(w, X).sum())(W)
    np.testing.assert_array_equal(np.isfinite(got), True)
    centre = on_line(centred_rule, check_vma=check)
    for value in (jax.jvp(centre, (A(4),), (A(4) ** 2,))[1], jax.jit(jax.jacfwd(centre))(A(4)) @ A(4) ** 2,
                  jax.jacrev(centre)(A(4)) @ A(4) ** 2, jax.vmap(jax.jacfwd(centre))(A(1, 4))[0] @ A(4) ** 2):
        same(value, A(4) ** 2 - (A(4) ** 2).mean())


def test_other_meshes_ordered_effects_and_abstract_meshes_are_refused_inside():
    other = jax.sharding.Mesh(LINE.devices, ("z",))
    with raises(ValueError, "nested", "'z'"):
        on_line(lambda x: jax.shard_map(lambda x: x, mesh=other, in_specs=P("z"), out_specs=P("z"))(x))(A(4))
    with raises(ValueError, "ordered=False"):
        on_line(lambda x: (jax.debug.print("{}", x, ordered=True), x)[1])(A(4))
    with raises(ValueError, "AbstractMesh"):
        jax.shard_map(lambda x: x, mesh=LINE.abstract_mesh, in_specs=P("x"), out_specs=P("x"))(A(4))
    with raises(ValueError, "'x'", "manual"):
        on_line(lambda x: lax.with_sharding_constraint(x, NamedSharding(LINE, P("x"))))(A(4, 4))
    with raises(ValueError, "jit"):
        jax.jit(lambda x: (jax.set_mesh(LINE), x)[1])(A(4))


def test_integers_have_no_tangent_to_carry():
    f = on_line(lambda x, n: x * n, (P("x"), P()))
    tangent = np.zeros((), jax.dtypes.float0)
    same(jax.jvp(f, (A(4), np.int32(3)), (A(4), tangent)), (3 * A(4), 3 * A(4)))
