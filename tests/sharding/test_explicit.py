"""Types over Explicit mesh axes: each row of the op table with each axis split, and what the errors say."""
import pickle

import numpy as np
import pytest
from mesh8 import devices
from op_table.row import listed
from row_checks import assert_all_near, rows, rows_together
from together import compiled_together

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax, random
from hlotrace.core.primitive import fact_of
from hlotrace.errors import ShardingTypeError
from hlotrace.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, P

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def mesh(*types):
    return Mesh(np.array(devices()).reshape(2, 4), ("x", "y"), types or (AxisType.Explicit,) * 2)


def split(*spec, value=X):
    """`value` over the mesh of Explicit axes."""
    return jax.device_put(value, NamedSharding(mesh(), P(*spec)))


def kind(x):
    return jax.typeof(x).str_short(True)


# --- all primitives -------------------------------------------------------------------------------

def splits(args):
    """For each axis of each operand that divides by 2 the operands' specs, where it alone is split."""
    for i, x in enumerate(args):
        for axis, size in enumerate(x.shape):
            if size and size % 2 == 0:
                yield [P(*[None] * axis, "x") if i == j else P() for j in range(len(args))]


def can_be_split(row):
    return any(True for _ in splits(row.args))


OVER = Mesh(devices()[:2], "x", (AxisType.Explicit,))
# name of a row -> (operands, types of its results) where one operand is split; None: it names a mesh
SPLIT = {}


def split_operands(row):
    if row.name not in SPLIT:
        args = row.sample(row.base)
        if fact_of(jax.make_jaxpr(lambda *args: listed(row.fun(*args)))(*args).jaxpr, "meshes"):
            SPLIT[row.name] = None
            return None
        good = SPLIT[row.name] = []
        with jax.set_mesh(OVER):
            for specs in splits(args):
                operands = [jax.device_put(x, NamedSharding(OVER, spec)) for x, spec in zip(args, specs)]
                try:
                    good.append((operands, jax.eval_shape(lambda *xs: listed(row.fun(*xs)), *operands)))
                except ShardingTypeError as error:
                    assert "split" in str(error) and "auto_axes" in str(error)
    return SPLIT[row.name]


def jit_over_two(fun):
    compiled = jax.jit(fun)

    def call(*args):
        with jax.set_mesh(OVER):
            return compiled(*args)
    return call


@rows_together(can_be_split, jit=jit_over_two)
def computed(row):
    cases = [operands for operands, _ in split_operands(row) or ()]
    return lambda cases: [listed(row.fun(*xs)) for xs in cases], (cases,)


@rows(can_be_split)
def test_a_split_operand_gives_the_same_numbers_and_a_true_type_or_an_error(row):
    good = split_operands(row)
    if good is None:
        pytest.skip("the row's program names a mesh of its own")
    results, = computed(row)
    want = row.expect(row.sample(row.base))
    for got, (_, types) in zip(results, good, strict=True):
        assert_all_near(got, want, row.rtol)
        for x, known in zip(got, types):
            stated = NamedSharding(OVER, P() if known.sharding is None else known.sharding.spec)
            assert x.sharding.is_equivalent_to(stated, x.ndim), (x.sharding, known)
            assert jax.typeof(x) == jax.typeof(jax.device_put(np.zeros(x.shape, x.dtype), stated)).update(
                dtype=x.dtype, weak_type=jax.typeof(x).weak_type)


# --- types ----------------------------------------------------------------------------------------

def test_types_say_which_explicit_axes_split_what():
    x = split(("x", "y"), None)
    aval = jax.typeof(x)
    assert str(aval) == "float32[8@(x,y),8]" and aval.sharding.spec == P(("x", "y"), None)
    assert jax.typeof(split()) == jax.typeof(X).update(sharding=mesh().abstract_mesh) != jax.typeof(X)
    assert jax.typeof(split()).sharding.mesh == mesh().abstract_mesh
    assert aval != jax.typeof(X) and aval == jax.typeof(split(("x", "y")))
    assert aval.update(dtype="int32").sharding == aval.sharding and aval.update(shape=(8,)).explicit is None
    assert aval.update(sharding=NamedSharding(mesh(), P(None, "y"))).str_short() == "float32[8,8@y]"
    assert jax.core.ShapedArray((8, 8), "float32", sharding=NamedSharding(mesh(), P(("x", "y")))) is aval
    with jax.set_mesh(mesh()):      # however it was made
        made = [split(), jnp.zeros((8, 8)), jnp.array(X), jnp.ones((8, 8)) + jnp.array(X), X]
        traced = []
        jax.jit(lambda *xs: traced.extend(map(jax.typeof, xs)))(*made)
        assert {*map(jax.typeof, made), *traced} == {jax.typeof(split())}
    assert pickle.loads(pickle.dumps(aval)) is aval
    with pytest.raises(ValueError, match="partitioned 2 times, but the dimension size is 3"):
        jax.core.ShapedArray((3,), "float32", sharding=NamedSharding(mesh(), P("x")))
    mixed = jax.device_put(X, NamedSharding(mesh(AxisType.Explicit, AxisType.Auto), P("x", "y")))
    assert kind(mixed) == kind(mixed * 2) == "f32[8@x,8]"
    one = jax.device_put(X, NamedSharding(Mesh(devices()[:1], "z", (AxisType.Explicit,)), P("z")))
    assert kind(one) == kind(jnp.sin(one)) == "f32[8@z,8]"


def test_programs_show_types():
    text = str(jax.make_jaxpr(lambda x: jnp.sin(x).sum(0))(split("x", "y")))
    assert "a:f32[8@x,8@y]" in text and "b:f32[8@x,8@y] = sin a" in text and ":f32[8@y] = reduce_sum" in text
    lowered = jax.jit(jnp.sin).lower(split("x", "y")).as_text()
    assert 'sdy.sharding_constraint %0 <@mesh, [{"x"}, {"y"}]>' in lowered
    mixed = jax.device_put(X, NamedSharding(mesh(AxisType.Explicit, AxisType.Auto), P("x", "y")))
    assert '<@mesh, [{"x", ?}, {?}]>' in jax.jit(jnp.sin).lower(mixed).as_text()
    mixed = jax.device_put(X, NamedSharding(mesh(AxisType.Explicit, AxisType.Auto), P(None, "y")))
    replicated = jax.jit(lambda x: jax.reshard(x, NamedSharding(mixed.sharding.mesh, P(None, None))))
    assert '[{?}, {?}], replicated={"x"}>' in replicated.lower(mixed).as_text()


def test_results_over_auto_axes_beside_explicit_ones_are_as_the_compiler_divided_them():
    over = mesh(AxisType.Explicit, AxisType.Auto)
    with jax.set_mesh(over):
        x = jax.device_put(X, P("x", "y"))
        found = jax.jit(lambda x: x * 2)(x), jax.jit(lambda x: lax.with_sharding_constraint(x * 2, P(None, "y")))(x)
        assert [f.sharding.spec for f in found] == [P("x", "y")] * 2 and {kind(f) for f in found} == {"f32[8@x,8]"}
        assert jax.jit(lambda x: x.sum(0))(jax.device_put(X, P("x"))).sharding.spec == P(None)
        nested = jax.jit(lambda x: jax.jit(lambda x: x * 2, out_shardings=P("y"))(x))
        assert kind(nested(X)) == "f32[8,8]" and nested(X).sharding.spec == P("y")
        for spec in P("x"), P("y", "x"):        # where the input is does not change the type of the result
            assert kind(jax.jit(jnp.sin, in_shardings=spec)(X)) == "f32[8,8]"


def test_a_type_within_shard_map_does_not_name_its_axes():
    with jax.set_mesh(mesh(AxisType.Explicit, AxisType.Auto)):
        made = jax.jit(jax.shard_map(lambda x: jnp.ones((4, 8), out_sharding=P()) * x, in_specs=P("x"),
                                     out_specs=P("x"), axis_names={"x"}))
        np.testing.assert_array_equal(made(jax.device_put(X, P("x"))), X)


def test_a_program_goes_from_mesh_to_mesh():
    other = Mesh(np.array(devices()).reshape(4, 2), ("a", "b"), (AxisType.Explicit,) * 2)
    with jax.set_mesh(mesh()):
        found = jax.jit(lambda x: jax.reshard(x, P("x")))(jax.device_put(X, NamedSharding(other, P("a"))))
        assert kind(found) == "f32[8@x,8]" and found.sharding == NamedSharding(mesh(), P("x", None))
        over = NamedSharding(other, P("a"))
        found = jax.jit(lambda x: jax.reshard(x, over))(split("x"))
        assert kind(found) == "f32[8@a,8]" and found.sharding == NamedSharding(other, P("a", None))
        np.testing.assert_array_equal(found, X)
        twice = jax.sharding.auto_axes(lambda x: x * 2, out_sharding=P("y"))        # whole to the mesh in use
        value, back = jax.vjp(twice, jax.device_put(X, over))
        assert kind(value) == "f32[8@y,8]" and kind(back(value)[0]) == "f32[8@a,8]"
        np.testing.assert_array_equal(back(value)[0], X * 4)


def test_what_is_traced_ahead_has_types():
    struct = jax.ShapeDtypeStruct((8, 8), "float32", sharding=NamedSharding(mesh(), P("x")))
    assert jax.eval_shape(lambda x: x.T, struct).sharding.spec == P(None, "x")
    assert jax.eval_shape(lambda: jnp.zeros(3)).sharding is None
    with jax.set_mesh(mesh()):
        assert jax.eval_shape(lambda: jnp.zeros(3)).sharding.spec == P(None)
    lowered = jax.jit(lambda x: x.T).lower(struct)
    assert lowered.out_info.sharding.spec == P(None, "x") and isinstance(lowered.out_info.sharding.mesh, Mesh)
    out = lowered.compile()(split("x"))
    assert kind(out) == "f32[8,8@x]"
    np.testing.assert_array_equal(out, X.T)


FUNCTIONS = [
    (lambda x: x.reshape(2, 4, 8), "f32[2@x,4,8@y]"),
    (lambda x: x.reshape(8, 1, 2, 4, 1), None),
    (lambda x: x.reshape(8, 1, 4, 2, 1), "f32[8@x,1,4@y,2,1]"),
    (lambda x: jnp.reshape(x, (64,), out_sharding=P("x")), "f32[64@x]"), (lambda x: x.reshape(64), "f32[64@(x,y)]"),
    (lambda x: x.reshape(64).reshape(2, 4, 8), "f32[2@x,4@y,8]"), (lambda x: x.reshape(4, 16), None),
    (lambda x: jnp.argmax(x), "i32[]"), (lambda x: jnp.median(jnp.stack([x, x], 2), 2), "f32[8@x,8@y]"),
    (lambda x: jnp.abs(jnp.fft.fftn(x)), "f32[8@x,8@y]"),
    (lambda x: lax.conv(x[None, None], np.ones((2, 1, 3, 3), np.float32), (1, 1), "SAME"), "f32[1,2,8@x,8@y]"),
    (lambda x: lax.reduce((x, x), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,))[1], "f32[8@y]"),
    (lambda x: jax.vmap(lambda v: jnp.zeros(3))(x), "f32[8@x,3]"), (jax.vmap(lambda v: jax.reshard(v, P())), "f32[8@x,8]"),
    (jax.vmap(lambda v: jnp.reshape(v, (2, 4), out_sharding=P(None, "y"))), "f32[8@x,2,4@y]"),
    (jax.vmap(jax.sharding.auto_axes(lambda v: v * 2, out_sharding=P("y"))), "f32[8@x,8@y]"),
    (lambda x: x[:4], "f32[4@x,8@y]"), (lambda x: x[:, None], "f32[8@x,1,8@y]"), (lambda x: x[::-1], "f32[8@x,8@y]"),
    (lambda x: x[:, 3], None), (lambda x: x.at[:, 3].get(out_sharding=P("x")), "f32[8@x]"),
    (lambda x: x.at[0].set(1), None), (lambda x: x.at[0].set(1, out_sharding=P("x", "y")), "f32[8@x,8@y]"),
    (lambda x: x.max(1).at[split("x", value=INTS)].set(1, out_sharding=P("x")), "f32[8@x]"),
    (lambda x: jnp.concatenate([x, x]), "f32[16@x,8@y]"), (lambda x: jnp.diag(x.max(1)), "f32[8@x,8]"),
    (lambda x: jax.random.gamma(jax.random.key(0), x.max(1)), "f32[8]"),
    (lambda x: jnp.stack([x, x], 1), "f32[8@x,2,8@y]"), (lambda x: jnp.cumsum(x, 0), None),
    (lambda x: jnp.sort(x, 0), None), (lambda x: x - x.mean(1, keepdims=True), "f32[8@x,8@y]"),
    (lambda x: x + np.ones(8, np.float32), "f32[8@x,8@y]"), (lambda x: x + x.T, None), (lambda x: x @ x, None),
    (lambda x: jnp.matmul(x, x, out_sharding=P("y", "x")), "f32[8@y,8@x]"),
    (lambda x: jnp.einsum("ij,kj->ik", x, x, out_sharding=P("x")), "f32[8@x,8]"),
    (lambda x: jax.reshard(x, P("y", None)), "f32[8@y,8]"), (lambda x: jax.device_put(x, P("y")), "f32[8@y,8]"),
    (lambda x: jnp.tile(jax.reshard(x, P("x")), (1, 2)), "f32[8@x,16]"),
    (lambda x: jnp.tile(x, (2, 1)), None),
    (lambda x: jnp.tile(x, (3, 1, 1)), "f32[3,8@x,8@y]"),
    (lambda x: x % jax.reshard(x + 1, P()), "f32[8@x,8@y]"),
    (lambda x: jnp.hypot(jax.reshard(x, P("x")), jax.reshard(x, P(None, "y"))), "f32[8@x,8@y]"),
    (lambda x: jnp.logaddexp(x, X), "f32[8@x,8@y]"), (lambda x: jnp.floor_divide(X, x + 1), "f32[8@x,8@y]"),
    (lambda x: jnp.where(jax.reshard(x[:4].max(0), P("y")) > 40, x, 0.0), "f32[8@x,8@y]"),
    (lambda x: jnp.sum(jax.reshard(x, P("x")), 1, where=jax.reshard(x > 3, P(None, "y"))), "f32[8@x]"),
    (lambda x: jnp.max(jax.reshard(x, P()), 0, where=x > 3, initial=0), "f32[8@y]"),
    (lambda x: jnp.select([x > 30, jax.reshard(x > 9, P())], [jax.reshard(x, P("x")), x * 2], 0.0), "f32[8@x,8@y]"),
    (lambda x: jnp.broadcast_arrays(x, jax.reshard(x[:4].max(0), P()))[1], "f32[8@x,8@y]"),
    (lambda x: jnp.zeros_like(x), "f32[8@x,8@y]"), (lambda x: jnp.where(x > 1, x, 0.0), "f32[8@x,8@y]"),
    (lambda x: jnp.fft.rfft(x), None), (lambda x: jnp.linalg.inv(x), None), (lambda x: jnp.pad(x, 1), None),
    (lambda x: lax.fori_loop(0, 2, lambda i, c: c * 2, x), "f32[8@x,8@y]"),
    (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), "f32[8@x,8@y]"),
    (lambda x: jax.checkpoint(jnp.sin)(x), "f32[8@x,8@y]"), (jax.jit(jnp.sin), "f32[8@x,8@y]"),
    (lambda x: lax.scan(lambda c, v: (c, v), 0, x)[1], None),
    (lambda x: jnp.zeros((8, 4), out_sharding=P(None, "y")), "f32[8,4@y]"),
    (lambda x: jax.random.normal(jax.random.key(0), (8,), out_sharding=P("y")), "f32[8@y]"),
    (lambda x: jax.vmap(jnp.sum)(x), "f32[8@x]"), (lambda x: jax.vmap(jnp.sum, 1)(x), "f32[8@y]"),
    (lambda x: jax.vmap(lambda v: lax.scan(lambda c, _: (c + v[0], c), v[1], None, 3)[1])(jax.reshard(x, P("x"))),
     "f32[8@x,3]"),
    (jax.grad(lambda x: (jnp.tanh(x) ** 2).sum()), "f32[8@x,8@y]"),
    (jax.jacfwd(lambda x: x.sum(0)), "f32[8@y,8,8]"), (jax.jacrev(lambda x: x.sum(0)), "f32[8,8@x,8@y]"),
    (jax.vmap(lambda v: jnp.where(v > 2, v, 0.0)), "f32[8@x,8@y]"),
    (lambda x: jax.vmap(lambda v: lax.concatenate([v, x.max(0)], 0))(x), "f32[8@x,16@y]"),
    (lambda x: jax.vmap(lambda v, m: lax.cond(v.sum() > 40, lambda: v, lambda: m), (0, None))(x, x.max(0)),
     "f32[8@x,8@y]"),
    (lambda x: jax.vmap(lambda v: lax.while_loop(lambda c: c.sum() < 1000, lambda c: c + v + 1, x.max(0)))(x),
     "f32[8@x,8@y]"),
    (lambda x: jax.vmap(lambda v: lax.pad(x.max(0), v.sum(), ((0, 8, 0),)))(x), "f32[8@x,16@y]"),
    (lambda x: jax.vmap(lambda v: lax.dynamic_update_slice(x.max(0), v, (0,)))(x), "f32[8@x,8@y]"),
    (jax.grad(lambda x: x[:4].sum() + x.reshape(2, 4, 8).max()), "f32[8@x,8@y]"),
    (lambda x: jnp.pad(x, ((3, 1), (2, 2))), "f32[12@x,12@y]"), (lambda x: jnp.pad(x, ((1, 0), (0, 0))), None),
    (lambda x: jax.shard_map(lambda v: v * 2, in_specs=P("x"), out_specs=P("x"))(jax.reshard(x, P("x"))), "f32[8@x,8]"),
    (lambda x: jax.shard_map(lambda v: lax.psum(v, "x"), in_specs=P("x", "y"), out_specs=P(None, "y"))(jax.reshard(x, P("x", "y"))),
     "f32[4,8@y]"),
    (lambda x: jax.shard_map(lambda v: v * 2, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(jax.reshard(x, P("x", "y"))),
     "f32[8@x,8@y]"),
    (jax.sharding.auto_axes(lambda x: x @ x, out_sharding=P("x", None)), "f32[8@x,8]"),
    (lambda x: jax.hessian(lambda v: (v ** 3).sum())(jax.reshard(x[0:2].max(0), P("y"))), "f32[8@y,8]")]

# what each gives in a program for what is split and for what is whole
IN_PROGRAMS = compiled_together([fun for fun, want in FUNCTIONS if want],
                                lambda fun: (fun, (split("x", "y"),), (split(),)))


@pytest.mark.parametrize("fun, want", FUNCTIONS)
def test_functions_over_explicit_axes(fun, want):
    """Eagerly and in jit: the numbers of one device and the type, or the error."""
    x = split("x", "y")
    with jax.set_mesh(mesh()):
        if want is None:
            for f in (fun, jax.jit(fun)):
                with pytest.raises(ShardingTypeError):
                    f(x)
            return
        compiled, expected = IN_PROGRAMS(fun)
        for out in (fun(x), compiled):
            assert kind(out) == want
            assert out.sharding.is_equivalent_to(jax.typeof(out).sharding.update(mesh=mesh()), out.ndim)
            np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("call", [
    lambda keys: keys, random.key_data, random.clone, lambda keys: random.wrap_key_data(random.key_data(keys)),
    lambda keys: keys == keys, lambda keys: keys[:, None], jax.vmap(jax.vmap(random.bits)),
    jax.vmap(jax.vmap(lambda key: random.fold_in(key, 1))), jax.vmap(jax.vmap(random.split))])
def test_keys_are_split_eagerly_as_in_programs(call):
    keys = random.split(random.key(0), (8, 8))
    want = call(keys)
    for spec in (P("x", "y"), P(None, "x"), P()):
        types = []
        for way in (call, jax.jit(call)):
            found = way(split(*spec, value=keys))
            assert [*jax.typeof(found).sharding.spec][:2] == [*found.sharding.spec, None, None][:2]
            types.append(kind(found))
            np.testing.assert_array_equal(*[random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
                                            else x for x in (found, want)])
        assert types[0] == types[1] and types[0].count("@") == sum(axis is not None for axis in spec)


def test_the_words_of_a_key_are_on_one_device():
    data = split(None, None, "x", value=random.key_data(random.split(random.key(0), (8, 8))))
    for way in (random.wrap_key_data, jax.jit(random.wrap_key_data)):
        with pytest.raises(ShardingTypeError, match="dimension 2 of operand 0, which is split over mesh axis 'x'"):
            way(data)


def test_exported_functions_keep_types():
    x = split("x", "y")
    exported = jax.export.export(jax.jit(lambda x: (x * 2, x.sum(1))))(x)
    again = jax.export.deserialize(exported.serialize(vjp_order=1))
    assert str((again.in_avals, again.out_avals)) == str((exported.in_avals, exported.out_avals))
    for call in (exported.call, again.call, jax.jit(again.call)):
        assert [kind(y) for y in call(x)] == ["f32[8@x,8@y]", "f32[8@x]"]
        np.testing.assert_array_equal(call(x)[0], 2 * X)
    assert kind(jax.grad(lambda x: again.call(x)[0].sum())(x)) == "f32[8@x,8@y]"


@pytest.mark.parametrize("spec, given", [(("x",), P()), (("x", "y"), P("y", "x")), (("x", "y"), P("x"))])
def test_shard_map_refuses_in_specs_that_the_type_does_not_say(spec, given):
    for way in (lambda f: f, jax.jit):
        with pytest.raises(ValueError, match="in_specs passed to shard_map: .* does not match the specs of the input"):
            way(jax.shard_map(lambda v: v * 2, mesh=mesh(), in_specs=given, out_specs=given))(split(*spec))


def test_in_specs_of_what_is_known_to_be_whole_and_beside_auto_axes():
    f = jax.shard_map(lambda v: v * 2, mesh=mesh(), in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ValueError, match="does not match the specs of the input: P\\(None, None\\)"):
        f(split())
    assert kind(f(jnp.asarray(X))) == "f32[8@x,8]"
    one = jax.shard_map(lambda v: v * 2, mesh=mesh(), in_specs=P(None, "x"), out_specs=P(None, "x"), axis_names={"x"})
    mixed = mesh(AxisType.Explicit, AxisType.Auto)
    both = jax.shard_map(lambda v: v * 2, mesh=mixed, in_specs=P(None, "x"), out_specs=P(None, "x"))
    for g, x in ((one, split("x")), (both, jax.device_put(X, NamedSharding(mixed, P("x"))))):
        assert kind(jax.jit(g)(x)) == "f32[8,8@x]"
        np.testing.assert_array_equal(jax.jit(g)(x), 2 * X)


def test_iteration_is_over_arrays_on_one_device():
    for row, want in zip(split("x", "y"), X, strict=True):
        assert kind(row) == "f32[8]" and len(row.devices()) == 1
        np.testing.assert_array_equal(row, want)


def test_shard_map_without_in_specs_takes_those_of_the_types():
    with jax.set_mesh(mesh()):
        f = jax.shard_map(lambda v: v * 2, out_specs=P("x", "y"))
        for out in (f(split("x", "y")), jax.jit(f)(split("x", "y"))):
            np.testing.assert_array_equal(out, X * 2)


def test_tangents_and_cotangents_are_split_as_their_primals_are():
    x, seen = split("x"), []
    assert jax.typeof(x).to_tangent_aval() is jax.typeof(x)
    assert jax.typeof(split("x", value=X.astype(int))).to_tangent_aval().sharding.spec == P("x", None)
    held = jax.custom_vjp(lambda x: x)
    held.defvjp(lambda x: (x, None), lambda _, ct: (seen.append(kind(ct)) or ct,))
    for fun in (lambda x: (held(x)[:4] ** 2).sum(), lambda x: (held(x).T @ X).sum(), lambda x: held(x).reshape(2, 4, 8).max()):
        for grad in (jax.grad(fun), jax.jit(jax.grad(fun))):
            assert kind(grad(x)) == "f32[8@x,8]"
    assert seen == ["f32[8@x,8]"] * 6
    for fun in (lambda x: jnp.sin(x) * 2, jnp.round, lax.stop_gradient):        # of zeros too
        for jvp in (jax.jvp, jax.jit(jax.jvp, static_argnums=0)):
            assert kind(jvp(fun, (x,), (x,))[1]) == "f32[8@x,8]"


def test_gradients_of_examples_are_split_as_these():
    x = split("x")
    for loss in (lambda w, v: (jnp.tanh(w @ v) ** 2).sum(), lambda w, v: jnp.round(w @ v).sum()):
        for grads in (
            f(g)
            for f in (lambda f: f, jax.jit)
            for g in (
                jax.vmap(jax.grad(loss), (None, 0)),
                jax.vmap(lambda w, v, f=loss: jax.vjp(f, w, v)[1](1.0)[0], (None, 0)),
            )
        ):
            for w in split(), X:
                with jax.set_mesh(mesh()):
                    assert kind(grads(w, x)) == "f32[8@x,8,8]"
            np.testing.assert_allclose(grads(w, x), jax.vmap(jax.grad(loss), (None, 0))(X, X), rtol=1e-4)


def test_gradients_over_data_are_summed():
    w, x, t = (np.random.RandomState(i).randn(*shape).astype(np.float32)
               for i, shape in enumerate([(4, 3), (8, 4), (8, 3)]))

    def loss(w, x, t):
        return ((jnp.tanh(x @ w) - t) ** 2).mean()
    want = jax.grad(loss)(w, x, t)
    data = [split("x", value=v) for v in (x, t)]
    with jax.set_mesh(mesh()):
        for f in (jax.grad(loss), jax.jit(jax.grad(loss))):
            got = f(split(value=w), *data)
            assert kind(got) == "f32[4,3]"
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


# --- words ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("call, words", [
    (lambda: split("x") + split("y"), [
        "f32[8@x,8]", "f32[8@y,8]", "dimension 0 of operand 0 is split over mesh axis 'x'",
        "dimension 0 of operand 1 is split over mesh axis 'y'", "'x': 2, 'y': 4", "jax.reshard(operand_1, P('x', None))"]),
    (lambda: split("x") * split(None, "x"), ["mesh axis 'x' would split dimensions 0 and 1", "jax.reshard"]),
    (lambda: split(None, "x") @ split("x"), ["the sum runs over dimension 1 of operand 0 and 0 of operand 1",
                                             "`out_sharding` parameter, such as jax.P(None, None)"]),
    (lambda: split("x")[1:4], ["out dim (3) is not divisible by mesh axes (2)", "jax.reshard(x, P(None, None))"]),
    (lambda: split("x", "y")[0], ["would be split over mesh axis 'x'", "jax.reshard(x, P(None, 'y'))", "x.at[i].get"]),
    (lambda: jnp.tile(split("x", "y"), (1, 2)), ["dimension 2 of operand 0", "jax.reshard(x, P('x', None, None))"]),
    (lambda: jnp.cumsum(split("x", "y"), 1), ["dimension 1 of operand 0", "jax.reshard(x, P('x', None))"]),
    (lambda: lax.rng_bit_generator(split("x", value=np.arange(4, dtype=np.uint32)), (2,)), ["no rule", "auto_axes"]),
    (lambda: lax.with_sharding_constraint(split("x"), NamedSharding(mesh(), P("y"))), ["checks", "jax.reshard"]),
    (lambda: lax.scan(lambda c, v: (c, v), 0, split("x")),
     ["0th dimension of all xs should be replicated. Got P('x', None)", "jax.reshard(x, P(None, None))"]),
    (lambda: split("x") + jax.device_put(X, NamedSharding(Mesh(devices()[:2], "x", (AxisType.Explicit,)), P("x"))),
     ["Mesh for all inputs should be equal"])])
def test_errors_name_operands_and_what_mends_them(call, words):
    with pytest.raises(ShardingTypeError) as error:
        call()
    for word in words:
        assert word.replace("f32", "float32" if word == "f32" else "f32") in str(error.value), str(error.value)


# what JAX refuses: (the call, the class, the words that its errors have too)
INTS = np.arange(8, dtype=np.int32)
REFUSED = [
    (lambda: split("x") + split("y"), ShardingTypeError, "add got incompatible shardings for broadcasting"),
    (lambda: split("x") + split(None, "x"), ShardingTypeError, "add operation with inputs.*an illegally sharded"),
    (lambda: split(None, "x") @ split("y"), ShardingTypeError, "requires contracting dimensions to have consistent"),
    (lambda: split(None, "x") @ split("x"), ShardingTypeError, "Contracting dimensions are sharded and it is amb"),
    (lambda: jnp.matmul(split("x", value=X[None].repeat(2, 0)), X[None].repeat(2, 0)), ValueError, "matmul arguments"),
    (lambda: lax.select(split("x") > 0, split("x"), split("x", "y")), ShardingTypeError, "select cases must have"),
    (lambda: lax.select(split("x", "y") > 0, split("x"), split("x")), ShardingTypeError, "the same sharding as cases"),
    (lambda: jnp.concatenate([split("x"), split("x", "y")]), ShardingTypeError, "All operands should have the same"),
    (lambda: jnp.reshape(split("x", "y"), (2, 16, 2)), ShardingTypeError, "This reshape is not supported"),
    (lambda: jnp.reshape(split("x"), (2, 4, 2, 4)), ShardingTypeError, "This reshape is not supported"),
    (lambda: lax.sort((split("x"), split("x", "y")), dimension=1), ShardingTypeError, "Arguments to sort must"),
    (lambda: jnp.sort(split("x"), 0), ShardingTypeError, "must be unsharded over the sorting dimension"),
    (lambda: jnp.cumsum(split("x"), 0), ShardingTypeError, "Input should be unsharded over the axis being reduced"),
    (lambda: lax.top_k(split(None, "x"), 2), ShardingTypeError, "should be unsharded over the axis along which"),
    (lambda: jnp.unstack(split("x")), ShardingTypeError, "cannot be sharded on the unstacking axis"),
    (lambda: split("x")[:3], ShardingTypeError, r"out dim \(3\) is not divisible by mesh axes \(2\)"),
    (lambda: jnp.take(split("x"), INTS, 0), ShardingTypeError, r"Use `.at\[...\].get\(out_sharding=\)`"),
    (lambda: split()[split("x", value=INTS)], ShardingTypeError, r"Use `.at\[...\].get\(out_sharding=\)`"),
    (lambda: split("x").at[INTS].add(1.0), ShardingTypeError, r"Use `.at\[...\].set/add/mul/...\(out_sharding=\)`"),
    (lambda: split("x").at[0].set(1.0), ShardingTypeError, r"Use `.at\[...\].set/add/mul/...\(out_sharding=\)`"),
    (lambda: split().at[0].set(split("x", value=X[0])), ValueError, "Incompatible types for broadcasting"),
    (lambda: split().at[INTS].add(split(None, "x")), ValueError, "Incompatible types for broadcasting"),
    (lambda: lax.dynamic_update_slice(split("x"), X, (0, 0)), ShardingTypeError, "must be equal to update sharding"),
    (lambda: lax.conv(X[None], split("x", value=X[:, :, None]), (1,), "SAME"), ShardingTypeError, "`out_sharding`"),
    (lambda: lax.linalg.lu(split("x")), ShardingTypeError, "Input 0 to lu must be unsharded on non-batch dimensions"),
    (lambda: jnp.repeat(split("x"), 2, 0), ValueError, "pass sharding to `jnp.repeat` via `out_sharding`"),
    (lambda: lax.ragged_dot(split("x"), X[None], INTS[:1]), NotImplementedError, "Please specify out_sharding"),
    (lambda: jax.vmap(jnp.add)(split("x"), split("y")), ValueError, "Mapped away dimension of inputs passed to vmap"),
    (lambda: jax.vmap(jnp.add)(split("x"), X), ValueError, "Mapped away dimension of inputs passed to vmap"),
    (lambda: jax.vmap(jnp.add, (0, None))(split("x"), split(None, "x")), ValueError, "Unmapped values passed to vmap"),
    (lambda: jax.reshard(X, None), ValueError, "out_shardings which are non-None"),
    (lambda: lax.with_sharding_constraint(
        X, NamedSharding(mesh(AxisType.Auto, AxisType.Explicit), P("x", "y"))),
     ValueError, "can only refer to Auto axes of the mesh"),
    (lambda: jax.vmap(jnp.sin, spmd_axis_name="y")(split("x")), ValueError, "Only one of spmd_axis_name or arrays")]


@pytest.mark.parametrize("call, error, words", REFUSED)
def test_what_jax_refuses_is_refused_with_its_words(call, error, words):
    for way in (call, jax.jit(call)):
        with pytest.raises(error, match=words):
            way()


def test_operands_that_are_split_alike_go_together():
    x, flags = split("x", "y"), split("x", "y") > 0
    for got, type_ in ((jnp.where(flags, x, 0.0), "f32[8@x,8@y]"), (jnp.concatenate([x, X]), "f32[16@x,8@y]"),
                       (x.at[:, :].set(x), "f32[8@x,8@y]"),
                       (lax.clamp(split("y"), x, split()), "f32[8@x,8@y]"), (split("x").at[:, 0].set(1.0), "f32[8@x,8]"),
                       (lax.linalg.triangular_solve(split(None), split(None, "x"), left_side=True), "f32[8,8@x]"),
                       (lax.dynamic_update_slice(x, split("x", "y", value=X[:4]), (0, 0)), "f32[8@x,8@y]")):
        assert kind(got) == type_


@pytest.mark.parametrize("letters,specs,want", [
    ("ij,ij->ij", (P("x"), P(None, "y")), "f32[8@x,8]"), ("ij,ij->ij", (P(), P("x")), "f32[8,8]"),
    ("ij,ij->ij", (P("x"), P(None, "x")), "f32[8@x,8]"),
    ("ij,ik->ijk", (P(None, "y"), P("y", "x")), "f32[8,8@y,8@x]"),
    ("ij,ij->i", (P(None, "y"), P("x")), "f32[8]"), ("ij,j->ij", (P("y", "x"), P()), "f32[8@y,8]"),
    ("ijk,ikl->ijl", (P(), P("x")), "f32[8,8,8]")])
def test_axes_that_both_operands_of_a_product_keep_are_split_as_those_of_the_first(letters, specs, want):
    """The first of dot_general, which einsum exchanges where the result has another order."""
    arrays = [np.arange(8 ** len(names), dtype=np.float32).reshape([8] * len(names)) / 64
              for names in letters.split("->")[0].split(",")]
    operands = [split(*spec, value=value) for spec, value in zip(specs, arrays)]
    for way in (lambda f: f, jax.jit):
        found = way(lambda x, y: jnp.einsum(letters, x, y))(*operands)
        assert kind(found) == want
        np.testing.assert_allclose(found, np.einsum(letters, *arrays), rtol=1e-4)
    gradients = jax.jit(jax.grad(lambda x, y: jnp.einsum(letters, x, y).sum(), (0, 1)))(*operands)
    assert [*map(kind, gradients)] == [*map(kind, operands)]


def test_a_constraint_over_explicit_axes_is_an_assertion():
    sharding = NamedSharding(mesh(), P("x", "y"))
    for call in (lambda x: lax.with_sharding_constraint(x, sharding),
                 jax.jit(lambda x: lax.with_sharding_constraint(x, sharding))):
        assert kind(call(split("x", "y"))) == "f32[8@x,8@y]"
        with pytest.raises(AssertionError, match="checks the type"):
            call(split("x"))
    # which axis splits what, not over which mesh
    other = Mesh(np.array(devices()), "x", (AxisType.Explicit,))
    assert kind(lax.with_sharding_constraint(split("x"), NamedSharding(other, P("x")))) == "f32[8@x,8]"


def test_a_carry_keeps_its_type():
    carry, _ = lax.scan(lambda c, _: (c + split("x"), None), jnp.zeros((8, 8)), None, 2)
    assert kind(carry) == "f32[8@x,8]"      # one that is not split is made to be
    assert kind(jnp.gcd(split("x", value=X.astype(int)), X.astype(int))) == "i32[8@x,8]"
    with pytest.raises(TypeError, match=r"start with jax.reshard\(init, P\('y', None\)\)"):
        lax.scan(lambda c, _: (jax.reshard(c, NamedSharding(mesh(), P("y"))), None), split("x"), None, 2)
    with pytest.raises(TypeError, match=r"start with jax.reshard\(init, P\('x', None\)\)"):
        lax.scan(lambda c, _: (c + split("x"), None), split(), None, 2)     # one that is known to be whole


def test_branches_have_one_type():
    for other in (lambda: jnp.zeros((8, 8)), lambda: X):
        assert kind(jax.jit(lambda x, other=other: lax.cond(True, lambda: x, other))(split("x"))) == "f32[8@x,8]"
    with pytest.raises(TypeError, match=r"float32\[8@x,8\]"):
        jax.jit(lambda x, y: lax.cond(True, lambda: x, lambda: y))(split("x"), split())


@pytest.mark.parametrize("function",
                         [lambda x, y: lax.select(x > 0, x, y), lambda x, y: lax.select(y > 0, x, x),
                          lambda x, y: jnp.where(x > 0, x, y), lambda x, y: lax.concatenate([x, y], 1),
                          lambda x, y: lax.concatenate([y, x], 0),
                          lambda x, y: lax.sort([x, y], dimension=1)])
def test_what_is_known_to_be_whole_is_refused_beside_what_is_split(function):
    for way in (lambda f: f, jax.jit):
        with pytest.raises(ShardingTypeError, match="is split over mesh axis 'x'|is whole"):
            way(function)(split("x"), split())
        for free in (X, jnp.asarray(X), jnp.zeros((8, 8))):
            assert jax.tree.leaves(way(function)(split("x"), free))[0].aval.splits[0] == ("x",)


def test_shardings_of_jit_say_where_and_types_say_what_is_split():
    """The program is traced for the types of its arguments; its results are those of the types, or as
    out_shardings says outside of programs."""
    def program(x):
        seen.append(kind(x))
        return x @ x        # with x split along both dimensions it would be an error
    with jax.set_mesh(mesh()):
        seen = []
        out = jax.jit(program, in_shardings=P("x", "y"))(X)
        assert seen == ["f32[8,8]"] and kind(out) == "f32[8,8]" and out.sharding.is_fully_replicated
        np.testing.assert_allclose(out, X @ X)
        assert kind(jax.jit(program, in_shardings=P("x"))(split("x"))) == "f32[8@x,8]"
        assert kind(jax.jit(program, out_shardings=P("y"))(X)) == "f32[8@y,8]"
        nested = jax.jit(lambda x: jax.jit(program, in_shardings=P("x"), out_shardings=P("y"))(x))
        assert kind(nested(X)) == "f32[8,8]" and kind(nested(split("x"))) == "f32[8@x,8]"
    # no mesh is in use: results are as the compiler divides them
    over = NamedSharding(mesh(), P("x", "y"))
    for call in jax.jit(jnp.sin, in_shardings=over), jax.jit(jnp.sin, in_shardings=over).lower(X).compile():
        assert kind(call(X)) == "f32[8@x,8@y]"
    nested = jax.jit(lambda x: jax.jit(lambda x: x * 2, in_shardings=over)(x) + 1)
    assert kind(nested(X)) == "f32[8@x,8@y]"        # its program is that of what in_shardings made of `x`
    np.testing.assert_array_equal(nested(X), X * 2 + 1)


def test_programs_over_auto_axes_are_what_they_were():
    auto = mesh(AxisType.Auto, AxisType.Auto)
    x = jax.device_put(X, NamedSharding(auto, P("x", "y")))
    assert jax.typeof(x) is jax.typeof(X)
    assert "sharding_constraint" not in jax.jit(lambda x: jnp.sin(x @ x)).lower(x).as_text()
    with jax.sharding.use_abstract_mesh(AbstractMesh((2, 4), ("x", "y"))), pytest.raises(ValueError, match="'x' of type Auto"):
        jax.reshard(X, P("x"))


def test_gradients_of_what_is_whole_are_over_explicit_axes_too():
    x = split("x")
    for way in (lambda f: f, jax.jit):
        gradient = way(jax.grad(lambda w: ((x @ w) ** 2).sum()))(split())
        assert gradient.sharding.mesh.explicit_axes == ("x", "y") and gradient.sharding.is_fully_replicated
        np.testing.assert_allclose(gradient, 2 * X.T @ X @ X)


def test_a_cotangent_of_another_sharding_is_refused():
    with pytest.raises(ValueError, match=r"got float32\[8@x,8\], but expected float32\[8@x,8@y\]"):
        jax.vjp(jnp.sin, split("x", "y"))[1](split("x"))


@pytest.mark.parametrize("rule", [
    lambda _, ct: (jax.reshard(ct, P("x")),), lambda _, ct: (jax.reshard(ct, P()),)])
def test_a_rule_gives_cotangents_of_the_types_of_its_arguments(rule):
    double = jax.custom_vjp(lambda x: 2 * x)
    double.defvjp(lambda x: (2 * x, x), rule)
    words = "bwd rule must produce .* so the shardings do not match"
    with jax.set_mesh(mesh()), pytest.raises(ValueError, match=words):
        jax.grad(lambda x: double(x).sum())(split("x", "y"))


def test_a_rule_gives_any_cotangents_for_what_is_over_no_mesh():
    times = jax.custom_vjp(jnp.multiply)
    times.defvjp(lambda w, x: (w * x, (w, x)), lambda kept, ct: (ct * kept[1], ct * kept[0]))
    with jax.set_mesh(mesh()):
        for grad in (f(jax.grad(lambda w, x: times(w, x).sum(), (0, 1))) for f in (lambda f: f, jax.jit)):
            assert [*map(kind, grad(X, split("x")))] == ["f32[8,8]", "f32[8@x,8]"]
            np.testing.assert_array_equal(grad(X, split("x"))[0], X)
