"""Values on devices and back: what is copied, moved, deleted or kept, and what is refused by its path."""
import gc

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.placement import device_put as module


def test_device_put_copies_where_it_may_not_alias():
    x = {"a": jnp.arange(3.0), "b": jnp.arange(2.0)}
    device = jax.devices()[0]
    for target in (None, device, jax.sharding.SingleDeviceSharding(device)):
        kept, copied = jax.device_put(x, target, src=device), jax.device_put(
            x, target, may_alias={"a": True, "b": False})
        pointers = jax.tree.map(lambda v: v.unsafe_buffer_pointer(), [x, kept, copied])
        assert pointers[0] == pointers[1] and pointers[0]["a"] == pointers[2]["a"] and pointers[0][
            "b"] != pointers[2]["b"]
        np.testing.assert_array_equal(copied["b"], x["b"])
    with pytest.raises(ValueError, match="may_alias and donate cannot"):
        jax.device_put(x, donate=True, may_alias=True)


def test_what_is_there_already_is_itself_and_what_moves_may_be_given_away():
    first, second = jax.devices()[:2]
    x = jax.device_put(np.arange(3.0, dtype=np.float32), first)
    assert jax.device_put(x, first) is x is jax.device_put(x) and x.committed
    moved = jax.device_put(x, second, donate=True)
    assert moved.devices() == {second} and moved.tolist() == [0, 1, 2] and x.is_deleted()
    kept = jax.device_put(moved, second, donate=True)       # it did not move
    assert kept is moved and not moved.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        jax.device_put(x, first)


def test_a_prefix_says_where_each_leaf_goes():
    first, second = jax.devices()[:2]
    found = jax.device_put({"a": (1, 2.0), "b": np.ones(2)}, {"a": first, "b": second})
    assert [x.devices() for x in jax.tree.leaves(found)] == [{first}, {first}, {second}]
    assert [x.dtype.name for x in jax.tree.leaves(found)] == ["int32", "float32", "float32"]


def test_the_leaf_that_does_not_fit_is_named():
    mesh = jax.make_mesh((2,), ("x",), devices=jax.devices()[:2])
    with pytest.raises(ValueError, match=r"^x\['b'\]: device_put: a value of type float32\[3\]"):
        jax.device_put({"a": np.ones(4), "b": np.ones(3)}, jax.NamedSharding(mesh, jax.P("x")))


def test_values_come_back_as_numpy_arrays_and_all_else_stays():
    tree = {"x": jnp.arange(3), "key": jax.random.key(0), "number": 5, "numpy": np.float32(2), "text": "a"}
    found = jax.device_get(tree)
    assert type(found["x"]) is np.ndarray and found["x"].tolist() == [0, 1, 2]
    assert found["key"] is tree["key"] and found["number"] == 5 and found["text"] == "a"
    assert type(found["numpy"]) is np.ndarray and found["numpy"].shape == ()


@pytest.mark.parametrize("wait", [jax.block_until_ready, jax.copy_to_host_async])
def test_waiting_gives_the_tree_itself(wait):
    tree = {"x": jnp.ones(2), "n": 3, "none": None}
    assert wait(tree) is tree


def test_live_arrays_of_a_platform():
    x, gone = jnp.ones(3), jnp.ones(4)
    gone.delete()
    for found in jax.live_arrays(), jax.live_arrays("cpu"):
        assert any(v is x for v in found) and not any(v is gone for v in found)
    with pytest.raises(RuntimeError, match="nothing_such"):
        jax.live_arrays("nothing_such")


def test_on_which_devices_live_arrays_are(monkeypatch):
    first, second = (jax.device_put(1, d) for d in jax.devices()[:2])
    monkeypatch.setattr(gc, "get_objects", lambda: [first, second, 3])
    monkeypatch.setattr(module.client, "local_devices", lambda backend: jax.devices()[1:])
    assert [x is second for x in jax.live_arrays("cpu")] == [True] and len(jax.live_arrays()) == 2


def test_a_program_shows_where_it_puts_values():
    device, mesh = jax.devices()[1], jax.make_mesh((2,), "x", devices=jax.devices()[:2])
    of = jax.NamedSharding(mesh, jax.P("x"))
    x = jax.device_put(np.ones(2, np.float32), of)
    for f, value, devices, sources in (
            (lambda x: jax.device_put(x, device), np.ones(2), repr(device), "None"),
            (lambda x: jax.device_put(x, jax.memory.Space.Host), np.ones(2), "MemorySpace.Host", "None"),
            (lambda x: jax.device_put(x, of), x, repr(of),
             f"{repr(x.aval.sharding)[:-1]}, memory_kind=device)")):
        text = " ".join(str(jax.make_jaxpr(f)(value)).split())
        assert (f"device_put[ copy_semantics=(ArrayCopySemantics.REUSE_INPUT,) devices=({devices},) srcs=({sources},) ] a"
                in text)
