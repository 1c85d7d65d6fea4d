"""experimental.custom_partitioning: functions of which the user says what each device does; shard_alike."""
import numpy as np
import pytest
from mesh8 import grid, line

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import NamedSharding, P, lax
from hlotrace.experimental.custom_partitioning import (
    BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule, custom_partitioning)
from hlotrace.experimental.shard_alike import shard_alike

X = np.arange(128, dtype=np.float32).reshape(16, 8)


def own_parts(function):
    """What `def_partition` takes where each device does `function` on what it has."""
    def partition(mesh, arg_shapes, result_shape):
        return (mesh, function, jax.tree.map(lambda s: s.sharding, result_shape),
                jax.tree.map(lambda s: s.sharding, arg_shapes))
    return partition


def partitioned(function, part=None, **rule):
    f = custom_partitioning(function)
    f.def_partition(own_parts(part or function), **rule)
    return f


def test_each_device_does_its_part():
    seen = []

    def normed(x):
        return x / jnp.sqrt((x * x).sum(-1, keepdims=True)), x.sum(-1)

    def part(x):
        seen.append(x.shape)
        return normed(x)
    f = partitioned(normed, part, sharding_rule="... i -> ... i, ...", need_replication_factors=("i",))
    x = jax.device_put(X, NamedSharding(line(), P("x")))
    compiled = jax.jit(f).lower(x).compile()
    for found, want in zip(compiled(x), normed(X)):
        np.testing.assert_allclose(found, want, rtol=1e-6)
        assert found.sharding == x.sharding
    assert {(2, 8)} == set(seen) and "all-gather" not in compiled.as_text()
    np.testing.assert_allclose(f(X)[1], X.sum(-1))       # one device: the function itself
    np.testing.assert_allclose(f(x)[0], normed(X)[0], rtol=1e-6)
    assert {(16, 8), (2, 8)} >= set(seen)


def test_shardings_that_are_wanted_and_collectives_over_the_mesh():
    def partition(mesh, arg_shapes, result_shape):
        x, y = arg_shapes
        assert x.shape == (16, 8) and isinstance(x.sharding, NamedSharding)
        cut = NamedSharding(mesh, P(None, "model")), NamedSharding(mesh, P("model"))
        return mesh, lambda x, y: lax.psum(x @ y, "model"), NamedSharding(mesh, P()), cut
    product = custom_partitioning(lambda x, y: x @ y)
    product.def_partition(partition, sharding_rule="i k, k j -> i j", reduction_factors=("k",))
    x, y = jax.device_put(X, NamedSharding(grid(), P("data", "model"))), np.ones((8, 3), np.float32)
    compiled = jax.jit(product).lower(x, y).compile()
    np.testing.assert_allclose(compiled(x, y), X @ y, rtol=1e-6)
    assert "all-reduce" in compiled.as_text()
    assert 'reduction={j}' in jax.jit(product).lower(x, y).as_text()


def test_trees_static_arguments_keywords_and_rules_by_functions():
    def f(x, power, more):
        return {"y": x["a"]**power + more}
    g = custom_partitioning(f, static_argnums=(1,))

    def rule(power, mesh, arg_shapes, result_shape):
        assert power == 2 and mesh.shape == {"x": 8} and result_shape["y"].shape == (16, 8)
        return SdyShardingRule(((BATCHING,), ()), ((BATCHING,),))

    def partition(power, mesh, arg_shapes, result_shape):
        return (mesh, lambda x, more: {"y": x["a"]**power + more}, {"y": result_shape["y"].sharding},
                tuple(jax.tree.map(lambda s: s.sharding, arg_shapes)))
    g.def_partition(partition, sharding_rule=rule)
    x = jax.device_put(X, NamedSharding(line(), P("x")))
    out = jax.jit(lambda x: g({"a": x}, 2, more=1.0))(x)["y"]
    np.testing.assert_allclose(out, X**2 + 1)
    assert out.sharding == x.sharding


def test_within_shard_map_and_a_custom_vjp():
    f = partitioned(jnp.sin, sharding_rule="... -> ...")
    f_with_rule = jax.custom_vjp(f)
    f_with_rule.defvjp(lambda x: (f(x), x), lambda x, g: (g * jnp.cos(x),))
    x = jax.device_put(X, NamedSharding(line(), P("x")))
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: f_with_rule(x).sum()))(x), np.cos(X), rtol=1e-5)
    each = jax.shard_map(f, mesh=line(), in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_allclose(jax.jit(each)(X), np.sin(X), rtol=1e-5)
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'custom_partitioning'"):
        jax.grad(lambda x: f(x).sum())(X)
    with pytest.raises(NotImplementedError, match="Batching rule for 'custom_partitioning'"):
        jax.vmap(f)(X)


def error_of(function, part=None, x=X, **rule):
    """What compiling it over devices raises."""
    with pytest.raises(Exception) as caught:
        f = partitioned(function, part, **rule)
        jax.jit(f)(jax.device_put(x, NamedSharding(line(), P("x"))))
    return caught.value


def test_what_the_user_raises_while_xla_compiles_comes_out():
    def part(x):
        raise KeyError("mine")
    error = error_of(jnp.sin, part, sharding_rule="... -> ...")
    assert type(error) is KeyError and error.args == ("mine",)


@pytest.mark.parametrize("part, words", [
    (lambda x: x.sum(),
     r"part of result 0 on a device is float32\[2,8\] as result_shardings cut it, .* makes float32\[\]"),
    (lambda x: (x, x), "what a device does gives another structure"),
    (lambda x: jax.pure_callback(np.sin, x, x), "calls Python functions")])
def test_parts_that_do_not_fit(part, words):
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=words):
        raise error_of(jnp.sin, part, sharding_rule="... -> ...")


@pytest.mark.quick
@pytest.mark.parametrize("rule, words", [
    ("i j", "There is no -> in rule"), ("i -> i -> i", "more than one ->"),
    ("i+ -> i", r"Unknown character '\+'"),
    ("i ... -> i", "Ellipsis can only be used at the beginning"),
    ("(i j) k -> i", "Factor j is only used in compound"),
    ("(i) -> i", "at least two factors"), ("(i j -> i j", "not balanced")])
def test_rules_that_are_none(rule, words):
    with pytest.raises(ValueError, match=words):
        partitioned(jnp.sin, sharding_rule=rule)


@pytest.mark.quick
def test_rules_are_held_against_the_arrays():
    f = lambda rule, **more: jax.jit(partitioned(jnp.sin, sharding_rule=rule, **more)).lower(
        jax.ShapeDtypeStruct((16, 8), np.float32, sharding=NamedSharding(line(), P("x")))).as_text()
    assert "<([i, jk])->([i, jk]) {i=16, j=2, k=4} permutation={j}, custom>" in f(
        "i (j k) -> i (j k)", j=2, k=4, permutation_factors=("j",))
    both = CompoundFactor("j", "k")
    by_hand = SdyShardingRule((ArrayMapping("i", both),), (("i", both),), j=2, k=4)
    assert "<([i, jk])->([i, jk]) {i=16, j=2, k=4}, custom>" in f(by_hand)
    for rule, words in ("i -> i", "0th operand has rank 1, but the operation 0th operand has rank 2"), (
            "i j, k -> i j", "has 2 operands, but the operation has 1"), (
                "i j -> i", "0th result has rank 1"):
        with pytest.raises(ValueError, match=words):
            f(rule)
    with pytest.raises(ValueError, match=r"sizes of \(j k\) do not multiply to its size 8"):
        f("i (j k) -> i (j k)", j=2, k=2)
    assert "sdy.sharding_rule" not in f(None)


@pytest.mark.quick
def test_what_does_not_fit_is_refused():
    with pytest.raises(AttributeError, match="No partition defined for custom_partitioning function sin"):
        custom_partitioning(jnp.sin)(X)
    with pytest.raises(TypeError, match="sharding_rule must be a string, a SdyShardingRule or a function"):
        partitioned(jnp.sin, sharding_rule=3)
    with pytest.raises(ValueError, match="factors and their sizes go with a string"):
        partitioned(jnp.sin, sharding_rule=SdyShardingRule((), ()), reduction_factors=("i",))
    with pytest.raises(ValueError, match="Factor 'z', of which a reduction is said"):
        partitioned(jnp.sin, sharding_rule="i -> i", reduction_factors=("z",))
    with pytest.raises(ValueError, match="it closes over traced values"):
        jax.jit(lambda y: partitioned(lambda x: x + y, sharding_rule="... -> ...")(X))(1.0)


def test_values_that_lie_alike():
    x = jax.device_put(X, NamedSharding(line(), P("x")))
    f = jax.jit(lambda x, y: [z + 1 for z in shard_alike({"a": x * 2}, {"a": jnp.sin(y)})[1].values()])
    assert f(x, X)[0].sharding == x.sharding
    np.testing.assert_allclose(jax.vmap(lambda x, y: shard_alike(x, y)[1], (0, None))(X, X[0])[3], X[0])
    with pytest.raises(ValueError, match=r"leaf shape: \(16, 8\) and `y` leaf shape: \(8,\)"):
        shard_alike(X, X[0])
    with pytest.raises(ValueError, match="Trees should be equal. Got x_tree: .*, y_tree: "):
        shard_alike(X, (X,))
