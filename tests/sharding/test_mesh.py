"""Meshes as data, and which one is in use."""
import copy
import pickle
import threading

import numpy as np
import pytest
from mesh8 import ON_JAX, auto_mesh
from stand_ins import DEVICES, MESH, REVERSED, U, raises

import hlotrace as jax
from hlotrace.experimental.shard_map import shard_map
from hlotrace.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, P
from hlotrace.sharding.mesh import current_mesh

pytestmark = pytest.mark.quick


def test_what_a_mesh_says():
    assert (MESH.size, MESH.axis_names, MESH.axis_sizes) == (8, ("data", "model"), (4, 2))
    assert list(MESH.shape.items()) == [("data", 4), ("model", 2)]
    assert MESH.device_ids.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]] and MESH.devices[3, 1] is DEVICES[7]
    assert MESH.local_devices == DEVICES and not MESH.empty and AbstractMesh((), ()).empty
    assert str(MESH) == "Mesh('data': 4, 'model': 2, axis_types=(Auto, Auto))"
    assert str(MESH.abstract_mesh) == "AbstractMesh('data': 4, 'model': 2, axis_types=(Auto, Auto))"
    with pytest.raises(ValueError, match="read-only"):
        MESH.devices[0, 0] = DEVICES[1]


def test_equal_meshes_are_one_object():
    same = Mesh([DEVICES[i:i + 2] for i in (0, 2, 4, 6)], ["data", "model"], axis_types=(AxisType.Auto,) * 2)
    for mesh in (same, copy.copy(MESH), copy.deepcopy(MESH), pickle.loads(pickle.dumps(MESH))):
        assert mesh is MESH
    assert Mesh(DEVICES, "x") != Mesh(DEVICES[::-1], "x") and Mesh(DEVICES, "x") != Mesh(DEVICES, "y")
    assert Mesh(DEVICES, "x") != Mesh(DEVICES, "x", axis_types=AxisType.Manual)
    assert AbstractMesh((4, 2), ("data", "model")) is MESH.abstract_mesh
    assert pickle.loads(pickle.dumps(MESH.abstract_mesh)) is MESH.abstract_mesh is not MESH


def test_axis_types():
    mesh = Mesh(MESH.devices, MESH.axis_names, axis_types=(AxisType.Explicit, AxisType.Manual))
    assert (mesh.auto_axes, mesh.explicit_axes, mesh.manual_axes) == ((), ("data",), ("model",))
    assert MESH.auto_axes == ("data", "model")
    with raises(ValueError, "UNCONSTRAINED"):
        NamedSharding(mesh, P(U))


def test_types_of_some_axes_are_changed():
    mesh = AbstractMesh((2, 4), ("x", "y"), (AxisType.Explicit,) * 2)
    changed = mesh.update_axis_types({"y": AxisType.Auto})
    assert changed == AbstractMesh((2, 4), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    assert changed.explicit_axes == ("x",) and mesh.update_axis_types({}) == mesh and mesh.are_all_axes_explicit
    with pytest.raises(ValueError, match="has no axis 'z'; its axes are .'x', 'y'."):
        mesh.update_axis_types({"z": AxisType.Auto})


@pytest.mark.filterwarnings("ignore:.*with mesh:DeprecationWarning")
def test_the_mesh_entered_last_on_a_thread_is_the_current_one():
    seen = []
    with MESH as mesh:
        assert current_mesh() is mesh is MESH
        with REVERSED:
            assert current_mesh() is REVERSED
            thread = threading.Thread(target=lambda: seen.append(current_mesh()))
            thread.start()
            thread.join()
        with MESH:
            pass
        assert current_mesh() is MESH
    assert current_mesh() is None and seen == [None]


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda: Mesh(MESH.devices, ("data",)), ValueError, "but got devices.ndim == 2 and len(axis_names) == 1"),
    (lambda: Mesh(MESH.devices, ("x", "x")), ValueError, "axis name 'x' is used more than once"),
    (lambda: Mesh(MESH.devices, ("x", None)), ValueError, "axis names cannot be None"),
    (lambda: Mesh([DEVICES[1]] * 2, "x"), ValueError, "device CpuDevice(id=1) is used more than once"),
    (lambda: Mesh([1, 2], "x"), TypeError, "1 is not a device"),
    (lambda: Mesh([], "x"), ValueError, "holds no device"),
    (lambda: Mesh(DEVICES, "x", axis_types=("a",)), TypeError, "must be of type `jax.sharding.AxisType`"),
    (lambda: Mesh(MESH.devices, ("x", "y"), AxisType.Auto), ValueError, "should match the number"),
    (lambda: AbstractMesh((4, 2), ("x",)), ValueError, "2 axis sizes (4, 2) for 1 axis names"),
    (lambda: AbstractMesh((0,), ("x",)), ValueError, "axis 'x' has size 0"),
    (lambda: auto_mesh((4, 2), ("x",), devices=DEVICES), ValueError, "2 axis sizes (4, 2) for 1 axis names"),
    (lambda: auto_mesh((-1,), ("x",), devices=DEVICES), ValueError, "axis 'x' has size -1"),
    (lambda: auto_mesh((4, 4), ("x", "y"), devices=DEVICES), ValueError, "devices 8 must be >= the product"),
])
def test_a_wrong_mesh_is_refused_in_words(make, error, text):
    with raises(error, text):
        make()


def test_make_mesh_takes_the_first_devices():
    mesh = auto_mesh((2, 2), ("x", "y"), devices=DEVICES[::-1])
    assert mesh.device_ids.tolist() == [[7, 6], [5, 4]] and mesh.axis_types == (AxisType.Auto,) * 2
    assert auto_mesh((8,), "x", devices=MESH.devices) is Mesh(DEVICES, "x")
    assert jax.make_mesh((8,), "x", (AxisType.Explicit,), devices=DEVICES).explicit_axes == ("x",)


@pytest.mark.parametrize("name", ["é", "a\\b", "a'b"])
def test_names_with_which_xla_crashes_are_refused(name):
    with raises(ValueError, "is not ASCII, a backslash or a quote"):
        AbstractMesh((2,), (name,))


@pytest.mark.skipif(ON_JAX, reason="JAX has one of the names, by its version")
def test_sizes_have_the_names_of_both_versions():
    assert jax.make_mesh(axis_sizes=(8,), axis_names="x") is jax.make_mesh(axis_shapes=(8,), axis_names="x")
    for given in ({}, {"axis_shapes": (8,), "axis_sizes": (8,)}):
        with pytest.raises(TypeError, match="give one of them"):
            jax.make_mesh(**given, axis_names="x")


def test_the_mesh_in_use():
    assert jax.sharding.get_mesh().empty and jax.sharding.get_abstract_mesh().empty
    assert repr(jax.sharding.get_mesh()) == "Mesh(axis_sizes=(), axis_names=())" and str(jax.sharding.get_mesh()) == "Mesh()"
    mesh = auto_mesh((4, 2), ("data", "model"))
    with jax.set_mesh(mesh), jax.sharding.use_abstract_mesh(AbstractMesh((8,), ("x",))):
        assert jax.sharding.get_mesh() is mesh and jax.sharding.get_abstract_mesh().axis_names == ("x",)
    with pytest.raises(KeyError), jax.sharding.use_mesh(mesh):
        assert jax.sharding.get_mesh() is mesh and jax.sharding.get_abstract_mesh() == mesh.abstract_mesh
        raise KeyError
    assert jax.sharding.get_mesh().empty


@pytest.mark.compiles
def test_an_abstract_mesh_is_in_use_inside_of_programs():
    mesh = auto_mesh((4, 2), ("data", "model"))
    abstract, seen = mesh.abstract_mesh, []

    def f(x):
        with jax.sharding.use_abstract_mesh(abstract):
            seen.append(jax.sharding.get_abstract_mesh())
            x = jax.lax.with_sharding_constraint(x * 2, P(None, "model"))
        seen.append(jax.sharding.get_abstract_mesh())
        return x
    value = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    x = jax.device_put(value, NamedSharding(mesh, P("data")))
    y = jax.jit(f)(x)
    assert seen[0] == abstract and seen[1].empty and y.sharding.is_equivalent_to(NamedSharding(mesh, P(None, "model")), 2)
    assert np.array_equal(y, value * 2)
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: (f(x) ** 2).sum()))(x), 8 * value)
    with raises(ValueError, "Expected mesh of type `jax.sharding.AbstractMesh`. Got type: <class 'int'>"):
        jax.sharding.use_abstract_mesh(3)
    with raises(ValueError, "set_mesh inside of a function that jit traces"):
        jax.jit(lambda x: jax.set_mesh(mesh) and x)(value)


@pytest.mark.filterwarnings("ignore:.*with mesh:DeprecationWarning")
def test_a_bare_mesh_gives_specs_a_meaning_and_is_not_in_use():
    mesh = auto_mesh((4, 2), ("data", "model"))
    other = auto_mesh((8,), ("x",))
    with mesh:
        assert jax.sharding.get_abstract_mesh().empty and jax.sharding.get_mesh().empty
        assert jax.typeof(np.ones(2)).sharding.mesh.empty
        assert jax.lax.with_sharding_constraint(np.ones(4), P("data")).sharding.mesh is mesh
        with jax.set_mesh(other):
            assert jax.sharding.get_mesh() is other
            with mesh:
                assert jax.sharding.get_mesh() is other
                assert jax.lax.with_sharding_constraint(np.ones(4), P("data")).sharding.mesh is mesh
    assert str(AbstractMesh((), ())) == "AbstractMesh((), axis_types=())"


def test_a_mesh_does_not_change_and_says_what_it_lacks():
    mesh = auto_mesh((4, 2), ("data", "model"))
    assert repr(mesh) == "Mesh(axis_sizes=(4, 2), axis_names=('data', 'model'), axis_types=(Auto, Auto))"
    for kind, name in ((mesh, "axis_names"), (mesh, "devices"), (mesh.abstract_mesh, "axis_types"), (mesh, "size")):
        with raises(AttributeError, f"cannot assign to field '{name}'"):
            setattr(kind, name, ("a",))
    for name in ("devices", "device_ids"):
        with raises(ValueError, f"AbstractMesh does not implement {name}"):
            getattr(mesh.abstract_mesh, name)
    assert not hasattr(mesh.abstract_mesh, "devices")


def test_what_is_no_mesh_to_be_in_use():
    mesh = auto_mesh((4, 2), ("data", "model"))
    with jax.set_mesh(mesh), jax.set_mesh(None):
        assert jax.sharding.get_abstract_mesh().empty
        assert jax.sharding.get_mesh().empty
        for mesh_of_no_axes in (AbstractMesh((), ()), mesh.abstract_mesh):
            with jax.sharding.use_abstract_mesh(mesh_of_no_axes):
                per_device = jax.shard_map(lambda x: x, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
                assert jax.eval_shape(per_device, np.ones(4)).shape == (4,)
    with raises(ValueError, "Expected mesh of type `jax.sharding.Mesh`. Got <class"):
        jax.set_mesh(mesh.abstract_mesh)
    with raises(ValueError, "`get_mesh` can only be used outside of `jax.jit`"):
        jax.make_jaxpr(lambda x: jax.sharding.get_mesh())(1.0)
    with jax.set_mesh(mesh), raises(ValueError, "cannot change the size of the mesh"):
        jax.sharding.use_abstract_mesh(AbstractMesh((2,), ("a",))).__enter__()


@pytest.mark.parametrize(("call", "words"), [
    (lambda: MESH.__enter__() and MESH.__exit__(), "jax.set_mesh"),
    (lambda: jax.jit(jax.numpy.sin, device=jax.devices()[1]), "jax.device_put"),
    (lambda: jax.jit(backend="cpu")(jax.numpy.sin), "jax.device_put"),
    (lambda: shard_map(jax.numpy.sin, MESH, P(), P()), "jax.shard_map")])
def test_what_is_deprecated_says_so_at_the_users_line(call, words):
    with pytest.warns(DeprecationWarning, match=words) as seen:
        call()
    assert [w.filename for w in seen] == [__file__]
