"""auto_axes, explicit_axes, smap; what meshes, shardings, stages and the classes of arrays say of themselves."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.experimental.serialize_executable import deserialize_and_load, serialize
from hlotrace.sharding import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    ManualAxisType,
    Mesh,
    NamedSharding,
    P,
    UnreducedKind,
    auto_axes,
    explicit_axes,
    make_single_device_sharding,
    no_collectives,
    reshard,
)

MESH = jax.make_mesh((2, 2), ("x", "y"), devices=jax.devices()[:4])
X = np.arange(8, dtype=np.float32).reshape(4, 2)


def double(x):
    return x * 2


def test_axes_of_either_type():
    with jax.set_mesh(MESH.update(axis_types=(AxisType.Explicit,) * 2)):
        for call in (auto_axes(double, axes="x", out_sharding=P("x")), lambda x: auto_axes(double)(x, out_sharding=P("x")),
                     explicit_axes(axes=("x",), in_sharding=P("x"))(double), lambda x: double(reshard(x, P("x")))):
            for f in (call, jax.jit(call)):
                out = f(X)
                np.testing.assert_array_equal(out, X * 2)
            assert call(X).sharding.spec[0] == "x"
        for bad, error in ((lambda: auto_axes(double)(X), TypeError), (lambda: explicit_axes(double)(X), TypeError),
                           (lambda: auto_axes(double, axes="z", out_sharding=P())(X), ValueError),
                           (lambda: auto_axes(3), TypeError)):
            with pytest.raises(error):
                bad()
    with no_collectives(frozenset()):
        pass
    for axes, error in ((("x",), TypeError), ({"x"}, NotImplementedError)):
        with pytest.raises(error, match="no_collectives"), no_collectives(axes):
            pass


def test_smap():
    with jax.set_mesh(MESH):
        out = jax.smap(lambda x, rest: (x - lax.pmean(x, "x"), rest["a"]), in_axes=(1, None), out_axes=(1, None),
                       axis_name="x")(X, {"a": 2.0})
        np.testing.assert_array_equal(out[0], X - X.mean(1, keepdims=True))
        assert out[1] == 2
        for options, error in (({"out_axes": 0}, TypeError), ({"in_axes": -1, "out_axes": 0}, ValueError),
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
    assert MESH.update(devices=MESH.devices[:, 0], axis_names=("x",), axis_types=(AxisType.Auto,)).axis_sizes == (2,)
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
    for make in (lambda: P(unreduced={"x"}), lambda: P(unreduced_kind=UnreducedKind.max),
                 lambda: ManualAxisType(reduced={"x"}), lambda: jax.ShapeDtypeStruct((), "float32", is_ref=True)):
        with pytest.raises(NotImplementedError):
            make()
    struct = jax.ShapeDtypeStruct((2,), "float32", manual_axis_type=ManualAxisType(varying={"x"}))
    assert struct.manual_axis_type == ManualAxisType(varying={"x"}) and struct.vma == {"x"}
    assert not struct.is_ref and struct.format.sharding is None
    assert jax.ShapeDtypeStruct((2,), "float32").manual_axis_type is None


def test_stages_say_what_is_donated_and_closed_over():
    table = jnp.arange(3.0)
    traced = jax.jit(lambda x, y: {"a": x * 2 + table.sum()}, donate_argnums=0).trace(1.0, y=2.0)
    lowered = traced.lower()
    for stage in (traced, lowered, lowered.compile(), deserialize_and_load(*serialize(lowered.compile()))):
        (first,), rest = stage.args_info
        assert stage.donate_argnums == (0,) and first == jax.stages.ArgInfo(first._aval, True) and not rest["y"].donated
        assert first.shape == () and first.dtype == "float32"
    assert traced.out_avals["a"].shape == () and traced.lojax is traced
    consts, open_ = traced.with_consts_as_arg()
    assert consts[0].tolist() == [0, 1, 2]
    assert open_.lower().compile()([table + 1], 1.0, y=2.0)["a"] == 8
    consts, fun = traced.closure_convert()
    assert jax.grad(lambda c: fun(c, 1.0, y=2.0)["a"])(consts)[0].tolist() == [1, 1, 1]
    assert jax.stages.CompilerOptions.__origin__ is dict


def test_what_the_class_of_arrays_has():
    for name in ("addressable_data", "addressable_shards", "committed", "copy_to_host_async", "device", "global_shards",
                 "is_fully_addressable", "is_fully_replicated", "item", "platform", "sharding"):
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
