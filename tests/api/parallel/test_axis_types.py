"""auto_axes, explicit_axes, smap; what meshes, shardings, stages and the classes of arrays say of themselves.
"""
import numpy as np
import pytest
from mesh8 import auto_mesh

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.experimental.serialize_executable import deserialize_and_load, serialize
from hlotrace.sharding import (
    AbstractDevice, AbstractMesh, AxisType, ManualAxisType, Mesh, NamedSharding, P, UnreducedKind, auto_axes,
    explicit_axes, make_single_device_sharding, no_collectives, reshard)

MESH = auto_mesh((2, 2), ("x", "y"), devices=jax.devices()[:4])
X = np.arange(8, dtype=np.float32).reshape(4, 2)


def double(x):
    return x * 2


def test_axes_of_either_type():
    with jax.set_mesh(MESH.update(axis_types=(AxisType.Explicit,) * 2)):
        for call in (auto_axes(double, axes="x", out_sharding=P("x")),
                     lambda x: auto_axes(double)(x, out_sharding=P("x")),
                     explicit_axes(axes=("x",), in_sharding=P("x"))(double),
                     lambda x: double(reshard(x, P("x")))):
            for f in (call, jax.jit(call)):
                out = f(X)
                np.testing.assert_array_equal(out, X * 2)
            assert call(X).sharding.spec[0] == "x"
        ones = explicit_axes(lambda: jnp.ones(4, out_sharding=P("x")))
        assert ones(in_sharding=None).sharding.spec == P("x")
        for bad, error in ((lambda: auto_axes(double)(X), TypeError),
                           (lambda: explicit_axes(double)(X), TypeError),
                           (lambda: auto_axes(double, axes="z", out_sharding=P())(X), ValueError),
                           (lambda: auto_axes(3), TypeError)):
            with pytest.raises(error):
                bad()
    with no_collectives(frozenset()):
        pass
    for axes, error in ((("x",), TypeError), ({"x"}, NotImplementedError)):
        with pytest.raises(error, match="no_collectives"), no_collectives(axes):
            pass


def test_the_sharding_of_results_is_over_the_mesh_in_use():
    call = jax.sharding.auto_axes(double, out_sharding=NamedSharding(auto_mesh((2, 2), ("x", "y")), P("x")))
    with jax.set_mesh(EXPLICIT), pytest.raises(
        ValueError, match="Context mesh .* must match the mesh passed"):
        call(jnp.ones((4, 2)))


def test_smap():
    with jax.set_mesh(MESH):
        out = jax.smap(lambda x, rest: (x - lax.pmean(x, "x"), rest["a"]), in_axes=(1, None),
                       out_axes=(1, None), axis_name="x")(X, {"a": 2.0})
        np.testing.assert_array_equal(out[0], X - X.mean(1, keepdims=True))
        assert out[1] == 2
        for options, error in (({"out_axes": 0}, TypeError), ({"in_axes": -1, "out_axes": 0}, ValueError),
                               ({"in_axes": "x", "out_axes": 0}, TypeError),
                               ({"in_axes": 0, "out_axes": 0, "axis_name": ("x", "y")}, TypeError)):
            with pytest.raises(error, match="smap"):
                jax.smap(double, **{"axis_name": "x", **options})(X)
    with pytest.raises(ValueError, match="no mesh"):
        jax.smap(double, in_axes=0, out_axes=0, axis_name="x")(X)


def test_what_meshes_say():
    assert MESH.are_all_axes_auto and not MESH.are_all_axes_explicit and not MESH.are_all_axes_manual
    assert MESH.update(axis_types=(AxisType.Explicit, AxisType.Manual)).are_all_axes_explicit_or_manual
    assert MESH.local_mesh is MESH and not MESH.is_multi_process and not MESH.is_scalar
    assert MESH.local_devices == list(MESH.devices.flat)
    assert MESH.update(devices=MESH.devices[:, 0], axis_names=("x",),
                       axis_types=(AxisType.Auto,)).axis_sizes == (2,)
    assert AbstractMesh((2,), ("x",)).update(axis_sizes=(4,)).size == 4
    for name in ("axis_sizes", "axis_names", "local_devices"):
        assert hasattr(Mesh, name)
    sharding = NamedSharding(MESH, P("x"))
    assert sharding.replicated_axes == {"y"} and sharding.has_addressable_devices
    assert sharding.check_compatible_aval((4,)) is None
    with pytest.raises(ValueError, match="rank"):
        sharding.check_compatible_aval(())
    assert make_single_device_sharding(jax.devices()[0]).num_devices == 1
    assert AbstractDevice("cpu", None, "cpu").platform == "cpu" and UnreducedKind.sum.value == 1


def test_what_types_do_not_say():
    spec = P("x")
    assert spec.to_ct_spec() == spec.to_tangent_spec() == spec.to_lo()[0] and spec.unreduced_kind is None
    assert P(unreduced={"x"}).unreduced_kind is UnreducedKind.sum
    for make in (lambda: P(unreduced_kind=UnreducedKind.max), lambda: ManualAxisType(reduced={"x"})):
        with pytest.raises(NotImplementedError):
            make()
    struct = jax.ShapeDtypeStruct((2,), "float32", manual_axis_type=ManualAxisType(varying={"x"}))
    assert struct.manual_axis_type == ManualAxisType(varying={"x"}) and struct.vma == {"x"}
    assert jax.ShapeDtypeStruct((), "float32", is_ref=True).is_ref
    assert not struct.is_ref and struct.format.sharding is None
    assert jax.ShapeDtypeStruct((2,), "float32").manual_axis_type is None


def test_stages_say_what_is_donated_and_closed_over():
    table = jnp.arange(3.0)
    traced = jax.jit(lambda x, y: {"a": x * 2 + table.sum()}, donate_argnums=0).trace(1.0, y=2.0)
    lowered = traced.lower()
    for stage in (traced, lowered, lowered.compile(), deserialize_and_load(*serialize(lowered.compile()))):
        (first,), rest = stage.args_info
        assert stage.donate_argnums == (0,) and first == jax.stages.ArgInfo(first._aval, True) and not rest[
            "y"].donated
        assert first.shape == () and first.dtype == "float32"
    assert traced.out_avals["a"].shape == () and traced.lojax is traced
    consts, open_ = traced.with_consts_as_arg()
    assert consts[0].tolist() == [0, 1, 2]
    assert open_.lower().compile()([table + 1], 1.0, y=2.0)["a"] == 8
    consts, fun = traced.closure_convert()
    assert jax.grad(lambda c: fun(c, 1.0, y=2.0)["a"])(consts)[0].tolist() == [1, 1, 1]
    assert jax.stages.CompilerOptions.__origin__ is dict


def test_what_the_class_of_arrays_has():
    for name in ("addressable_data", "addressable_shards", "committed", "copy_to_host_async", "device",
                 "global_shards", "is_fully_addressable", "is_fully_replicated", "item", "platform",
                 "sharding"):
        assert hasattr(jax.Array, name) and hasattr(jnp.ones(2), name)
    assert jnp.ones(2).platform() == "cpu"
    with pytest.raises(AttributeError, match="concrete arrays have it"):
        jax.jit(lambda x: x.sharding)(1.0)

    @jax.custom_jvp
    def f(x):
        return x

    @f.defjvp
    def f_jvp(primals, tangents):
        return primals[0], tangents[0]
    assert f.jvp is f_jvp and not f.symbolic_zeros


# --- types in the place of arrays
# -------------------------------------------------------------------------------

EXPLICIT = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2, devices=jax.devices()[:4])


def arrays():
    """One of each kind: uncommitted, weakly typed, of keys, on a device, over Auto axes, over Explicit ones.
    """
    x = jnp.ones((4, 2), jnp.bfloat16)
    return [x, jnp.asarray(2.5), jax.random.split(jax.random.key(0), 3), jax.device_put(x, jax.devices()[1]),
            jax.device_put(x, NamedSharding(MESH, P("x"))),
            jax.device_put(x, NamedSharding(EXPLICIT, P("x")))]


@pytest.mark.parametrize("x", arrays(), ids="uncommitted weak keys device auto explicit".split())
def test_an_array_like_a_type(x):
    kind = jax.typeof(x)
    makers = [jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda t: jnp.full_like(t, 1),
              lambda t: lax.full_like(t, 1)]
    for make in makers[:1] if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else makers:
        for given in (kind, jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=kind.sharding)):
            made = make(given)
            assert (made.shape, made.dtype) == (x.shape, x.dtype)
            assert made.sharding.device_set == {jax.devices()[0]}
        assert jax.typeof(make(kind)) == jax.typeof(make(x)) or x._committed
    program = jax.make_jaxpr(lambda v: v)(x)
    assert jnp.zeros_like(program.in_avals[0]).shape == x.shape
    if not jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        assert (np.asarray(lax.full_like(kind, 3), float) == 3).all()
        assert jax.jit(lambda v: jnp.ones_like(jax.typeof(v)) + v)(x).dtype == x.dtype


def test_an_array_like_a_type_over_the_mesh_in_use():
    x = jax.device_put(jnp.ones((4, 2)), NamedSharding(EXPLICIT, P("x")))
    kind = jax.typeof(x)
    with jax.set_mesh(EXPLICIT):
        for made in (jnp.zeros_like(kind), lax.full_like(kind, 2.), jnp.full_like(kind, 2)):
            assert made.sharding.is_equivalent_to(x.sharding, 2)
        assert jnp.zeros_like(kind, shape=(3,)).shape == (3,)
        compiled = jax.jit(lambda v: 2 * v).lower(jax.ShapeDtypeStruct((4, 2), "float32",
                                                                       sharding=kind.sharding)).compile()
        assert (np.asarray(compiled(x)) == 2).all()


def test_a_struct_with_the_sharding_of_a_type_is_lowered_and_compiled():
    x = jnp.arange(3.)
    struct = jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=jax.typeof(x).sharding)
    lowered = jax.jit(lambda v: v + 1).lower(struct)
    assert "sdy" not in lowered.as_text()
    np.testing.assert_array_equal(lowered.compile()(x), [1, 2, 3])
    assert jax.eval_shape(jnp.sin, struct).shape == (3,)
    over_four = jax.ShapeDtypeStruct((4,), x.dtype, sharding=NamedSharding(AbstractMesh((4,), ("z",)),
                                                                           P("z")))
    # of which nothing says the devices
    with pytest.raises(ValueError, match="lowered for an AbstractMesh"):
        jax.jit(lambda v: v + 1).lower(over_four).compile()


@pytest.mark.parametrize("several", [False, True])
def test_a_primitive_whose_type_is_that_of_an_array(several):
    x = jax.device_put(jnp.ones((4, 2)), NamedSharding(EXPLICIT, P("x")))
    same = jax.extend.core.Primitive("same_as_x")
    same.multiple_results = several
    same.def_abstract_eval(lambda v: [jax.typeof(x)] if several else jax.typeof(x))
    same.def_impl(lambda v: [v] if several else v)
    program = jax.make_jaxpr(lambda v: same.bind(v))(x)
    assert type(program.out_avals[0]) is type(jax.typeof(jnp.ones(1)))
    assert [a.shape for a in program.out_avals] == [(4, 2)]
    same.def_abstract_eval(lambda v: [3] if several else 3)
    with pytest.raises(TypeError, match="must give a"):
        jax.eval_shape(same.bind, x)
