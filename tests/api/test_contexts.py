"""Contexts: of the user's own, those that forbid tracing or a bare mesh, those that do nothing or are
refused."""
import asyncio
import itertools
import pickle
from concurrent import futures

import pytest
from mesh8 import auto_mesh
from option_changes import X

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.config import override


def test_no_tracing():
    f, g = jax.jit(lambda x: x * 9), jax.jit(lambda x: x * 10)
    f(X)
    # of a shape that no other test has: traces are found by functions' text
    y, new = X + 0, jnp.zeros((3, 1, 7, 1, 2))
    with jax.no_tracing():
        assert f(y).tolist() == [0, 9, 18]
        for call in (lambda: g(new), lambda: f(new), lambda: jax.make_jaxpr(jnp.sin)(new),
                     lambda: jnp.sinh(new)):
            with pytest.raises(RuntimeError, match="re-tracing .* but 'no_tracing' is set"):
                call()


@pytest.mark.filterwarnings("ignore:.*with mesh:DeprecationWarning")
def test_a_bare_mesh_as_a_context_is_refused():
    mesh = auto_mesh((2,), ("i",))
    with override("jax_disallow_mesh_context_manager", True):
        with pytest.raises(RuntimeError, match="use jax.set_mesh"), mesh:
            pass
        with jax.set_mesh(mesh):
            pass
    with mesh:
        pass


def test_a_context_of_the_users():
    scale, seen = jax.make_user_context(3), []

    @jax.jit
    def f(x):
        seen.append(scale.value)
        return x * scale.value
    assert f(1.) == 3
    for _ in range(2):
        with scale(7):
            assert f(1.) == 7 and scale.value == 7
            with scale(3):
                assert f(1.) == 3
    assert seen == [3, 7, 3] and scale.value == 3
    with pytest.raises(TypeError, match="unhashable"):
        scale([])


def test_contexts_that_do_nothing_or_are_refused():
    for context in (jax.jax2tf_associative_scan_reductions, jax.auto_pcast, jax.allow_f16_reductions,
                    jax.enable_checks):
        with context(), context(True):
            assert (jnp.ones(2) + 1)[0] == 2
    with jax.check_tracer_leaks(False), jax.remove_size_one_mesh_axis_from_type(False):
        pass
    with pytest.raises(NotImplementedError, match="jax_remove_size_one_mesh_axis_from_type: the value True"):
        jax.remove_size_one_mesh_axis_from_type()


@pytest.mark.quick
@pytest.mark.parametrize("name, value", [
    ("enable_x64", True), ("debug_nans", True), ("numpy_rank_promotion", "raise"),
    ("default_prng_impl", "rbg"),
    ("default_matmul_precision", "float32"), ("legacy_prng_key", "error"), ("log_compiles", True),
    ("default_device", "cpu")])
def test_the_value_of_a_context_is_the_option_on_this_thread(name, value):
    context, outside = getattr(jax, name), jax.config.read(f"jax_{name}")
    assert context.value == outside and context.__name__ == name and pickle.loads(
        pickle.dumps(context)) is context
    with context(new_val=value):
        assert context.value == value and str(value) in repr(context)
        with futures.ThreadPoolExecutor(1) as threads:
            assert threads.submit(lambda: context.value).result() == outside
    assert context.value == outside
    with pytest.raises(TypeError, match=f"{name}"):
        context(value, value)


def test_a_context_may_be_entered_again_and_inside_of_itself():
    twice = jax.numpy_rank_promotion("raise")
    for _ in range(2):
        with twice, twice:
            assert jax.config.jax_numpy_rank_promotion == "raise"
        assert jax.config.jax_numpy_rank_promotion == "allow"

    @twice
    def option():
        return jax.config.jax_numpy_rank_promotion
    assert [option(), option()] == ["raise"] * 2


def test_blocks_of_coroutines_and_generators_overlap():
    """What began last may end last: what is left is what others set, and in the end nothing."""
    user = jax.make_user_context(0)

    def values():
        return jax.config.jax_numpy_rank_promotion, jax.config.jax_enable_x64, user.value

    def block(context):
        with context:
            yield
    outside = values()
    x64 = not outside[1]
    contexts = {"rank": lambda: jax.numpy_rank_promotion("raise"), "x64": lambda: jax.enable_x64(x64),
                "user": lambda: user(3)}
    inside = {"rank": ("raise", 0), "x64": (x64, 1), "user": (3, 2)}
    for order in itertools.permutations(contexts):
        for ends in itertools.permutations(order):
            open_ = {name: block(contexts[name]()) for name in order}
            for name in order:
                next(open_[name])
            for name in ends:
                assert all(values()[inside[other][1]] == inside[other][0] for other in open_)
                open_.pop(name).close()
            assert values() == outside

    async def task(i):
        with jax.numpy_rank_promotion("raise" if i % 2 else "warn"):
            await asyncio.sleep(0.001 * (i % 3))
            return float(jax.jit(lambda x: x + i)(1.0))

    async def tasks():
        return await asyncio.gather(*map(task, range(5)))
    assert asyncio.run(tasks()) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert values() == outside
