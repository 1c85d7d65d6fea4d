"""Orbax: checkpoints saved, at once and in the background, and restored, also under another mesh of 8 devices."""
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


def tree():
    return {"w": jnp.arange(32.).reshape(8, 4), "b": [jnp.ones(3, jnp.bfloat16), np.arange(3)], "step": 7}


def mesh(*shape):
    return Mesh(np.array(jax.devices()[:np.prod(shape)]).reshape(shape), ("x", "y"))


def same(a, b):
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(np.asarray(x), np.asarray(y)), a, b)


def test_a_tree_is_saved_and_restored(tmp_path):
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "one", tree())
        checkpointer.wait_until_finished()
        same(checkpointer.restore(tmp_path / "one"), tree())
        same(checkpointer.restore(tmp_path / "one", jax.eval_shape(tree)), tree())
    with ocp.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "two", tree())
        same(checkpointer.restore(tmp_path / "two"), tree())


def test_an_array_is_restored_under_another_mesh(tmp_path):
    assert len(jax.devices()) == 8
    saved = jax.device_put(jnp.arange(64.).reshape(8, 8), NamedSharding(mesh(4, 2), P("x", "y")))
    with ocp.AsyncCheckpointer(ocp.StandardCheckpointHandler()) as checkpointer:
        checkpointer.save(tmp_path / "sharded", args=ocp.args.StandardSave({"w": saved}))
        checkpointer.wait_until_finished()
        for shape, spec in (((4, 2), P("x", "y")), ((2, 4), P("y")), ((1, 1), P())):
            sharding = NamedSharding(mesh(*shape), spec)
            target = {"w": jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=sharding)}
            read = checkpointer.restore(tmp_path / "sharded", args=ocp.args.StandardRestore(target))["w"]
            assert read.sharding == sharding
            same(read, saved)


def test_a_manager_keeps_the_newest(tmp_path):
    options = ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=True)
    with ocp.CheckpointManager(tmp_path / "run", options=options) as manager:
        for step in range(4):
            manager.save(step, args=ocp.args.Composite(params=ocp.args.StandardSave({"w": jnp.full(3, float(step))}),
                                                       notes=ocp.args.JsonSave({"loss": 1 / (step + 1)})))
        manager.wait_until_finished()
        assert manager.latest_step() == 3 and list(manager.all_steps()) == [2, 3]
    with ocp.CheckpointManager(tmp_path / "run") as again:
        read = again.restore(2, args=ocp.args.Composite(params=ocp.args.StandardRestore(), notes=ocp.args.JsonRestore()))
        same(read["params"], {"w": np.full(3, 2.)})
        assert read["notes"] == {"loss": 1 / 3}


def test_keys_and_what_does_not_fit(tmp_path):
    with ocp.Checkpointer(ocp.JaxRandomKeyCheckpointHandler()) as checkpointer:
        checkpointer.save(tmp_path / "key", args=ocp.args.JaxRandomKeySave(jax.random.key(3)))
        read = checkpointer.restore(tmp_path / "key", args=ocp.args.JaxRandomKeyRestore())
        same(jax.random.key_data(read), jax.random.key_data(jax.random.key(3)))
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "tree", {"w": jnp.ones(3)})
        checkpointer.wait_until_finished()
        with pytest.raises(ValueError):
            checkpointer.restore(tmp_path / "tree", {"other": jax.ShapeDtypeStruct((3,), jnp.float32)})
