"""Arrays, programs and training over 2 and 4 real processes on loopback.

A job of each size runs once. Its processes run this file: each function that is `in_every_process`,
in order.
"""

import copy
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import sized_by_values
from job_of_processes import Job, mesh, on, run_task, table

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.config import override
from hlotrace.experimental import multihost_utils
from hlotrace.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

SIZES = [(2, 1), (4, 2)]  # processes, devices of each
CHECKS = {}


def in_every_process(check):
    """Have the processes of a job run it; its name is that of a test."""
    CHECKS[check.__name__] = check
    return check


# --- arrays and programs: these run in each process of a job ---


def lies(x, sharding, want):
    """`x` lies as the sharding says, and this process's parts are those of `want`."""
    want = np.asarray(want)
    assert x.sharding.is_equivalent_to(sharding, x.ndim), x.sharding
    assert (x.shape, x.dtype) == (want.shape, want.dtype)
    assert {s.device for s in x.addressable_shards} == sharding.addressable_devices
    for shard in x.addressable_shards:
        assert shard.data.devices() == {shard.device}
        np.testing.assert_allclose(np.asarray(shard.data), want[shard.index], rtol=1e-6)


@in_every_process
def a_host_value_is_laid_over_the_devices_of_all_processes():
    x = jax.device_put(table(), on(("p", "d")))
    lies(x, on(("p", "d")), table())
    assert not x.is_fully_addressable and not x.is_fully_replicated
    assert len(x.global_shards) == jax.device_count() == len(x.devices())
    held = [s.data is not None for s in x.global_shards]
    assert held == [d.process_index == jax.process_index() for d in jax.devices()]
    first = 2 * jax.local_device_count() * jax.process_index()
    assert x.addressable_shards[0].index[0] == slice(first, first + 2)


@in_every_process
def a_value_that_others_hold_in_part_is_not_given():
    x = jax.device_put(table(), on("p"))
    for read in (np.asarray, jax.device_get, lambda v: v.tolist()):
        with pytest.raises(RuntimeError, match="non-addressable"):
            read(x)
    assert str(x) == repr(x) == f"Array(shape={x.shape}, dtype=float32)"


@in_every_process
def a_value_that_each_process_holds_whole_is_given():
    x = jax.device_put(table(), on())
    assert x.is_fully_replicated and not x.is_fully_addressable
    np.testing.assert_array_equal(np.asarray(x), table())
    assert str(x) == str(table())
    assert float(jax.jit(jnp.sum)(jax.device_put(table(), on("p")))) == table().sum()


@in_every_process
def arrays_are_made_of_what_each_process_has():
    rows = np.split(table(), jax.process_count())[jax.process_index()]
    for shape in (None, table().shape):
        made = jax.make_array_from_process_local_data(on(("p", "d")), rows, shape)
        lies(made, on(("p", "d")), table())
    lies(jax.make_array_from_process_local_data(on(), table()), on(), table())
    asked = []
    x = jax.make_array_from_callback(table().shape, on("p"), lambda i: asked.append(i) or table()[i])
    lies(x, on("p"), table())
    assert len(asked) == 1
    parts = [s.data for s in jax.device_put(table(), on(("p", "d"))).addressable_shards]
    x = jax.make_array_from_single_device_arrays(table().shape, on(("p", "d")), parts[::-1])
    lies(x, on(("p", "d")), table())
    with pytest.raises(ValueError, match="this process's part of"):
        jax.make_array_from_process_local_data(on("p"), table()[:1], table().shape)


@in_every_process
def a_program_runs_over_all_processes():
    x = jax.device_put(table(), on(("p", "d")))
    lies(jax.jit(lambda v: v * 2 + 1)(x), on(("p", "d")), table() * 2 + 1)
    lies(jax.jit(lambda v: v.T @ v, out_shardings=on())(x), on(), table().T @ table())
    lies(jax.jit(lambda v: v.T, out_shardings=on(None, "p"))(x), on(None, "p"), table().T)
    lies(jax.jit(lambda v: v[::-1], in_shardings=on("p"), out_shardings=on("p"))(table()), on("p"),
         table()[::-1])
    lies((x * 3).sum(axis=0), on(), (table() * 3).sum(0))


@in_every_process
def host_values_and_uncommitted_arrays_follow_a_committed_one():
    x = jax.device_put(table(), on(("p", "d")))
    for other in (table(), jnp.asarray(table()), 2.0, np.float32(2)):
        lies(jax.jit(jnp.multiply)(x, other), on(("p", "d")), table() * np.asarray(other, np.float32))
    with pytest.raises(ValueError, match="incompatible devices"):
        jax.jit(jnp.add)(x, jax.device_put(table(), jax.local_devices()[0]))


@in_every_process
def an_array_is_laid_otherwise_over_the_same_devices():
    backwards = Mesh(np.array(jax.devices())[::-1], ("q",))
    places = [
        on(),
        on("p"),
        on(("p", "d")),
        on(("d", "p")),
        NamedSharding(backwards, P("q")),
        NamedSharding(backwards, P()),
    ]
    x = jax.device_put(table(), places[-1])
    for new in (*places, *places[::2]):
        x = jax.device_put(x, new)
        lies(x, new, table())
    lies(jax.lax.with_sharding_constraint(x, on("p")), on("p"), table())


@in_every_process
def only_an_array_that_is_held_whole_goes_to_one_device():
    here = jax.local_devices()[0]
    lies(jax.device_put(jax.device_put(table(), on()), here), SingleDeviceSharding(here), table())
    with pytest.raises(ValueError, match="other processes hold parts of it"):
        jax.device_put(jax.device_put(table(), on("p")), here)


@in_every_process
def an_array_that_lies_elsewhere_altogether_is_seen_but_not_read():
    device = jax.local_devices(process_index=1)[0]
    for value in (table(), jnp.asarray(table()), jnp.asarray(table()) + 0):
        far = jax.device_put(value, device)
        assert (far.sharding.memory_kind, far.committed) == ("device", True)
        if jax.process_index() == 1:
            np.testing.assert_array_equal(np.asarray(far), table())
            continue
        assert far.addressable_shards == [] and "shape=" in str(far)
        with pytest.raises(RuntimeError, match="non-addressable"):
            np.asarray(far)
    with pytest.raises(RuntimeError,
                       match=r"process 0 calls device_put of float32.* that is not in process 0 at "):
        jax.device_put(far, on())
    lies(jax.device_put(table(), on()), on(), table())      # and they still agree about the next


@in_every_process
def what_a_process_has_of_an_array_may_be_in_pieces():
    """One device of each process after the other along "q": no process holds a block."""
    devices = np.array(jax.devices()).reshape(jax.process_count(), -1).T
    apart = NamedSharding(Mesh(devices.ravel(), ("q",)), P("q"))
    mine = np.concatenate(np.split(table(), devices.shape[0])).reshape(*devices.shape, 2, 3)[
        :, jax.process_index()
    ]
    for shape in (None, table().shape):
        lies(jax.make_array_from_process_local_data(apart, mine.reshape(-1, 3), shape), apart, table())
    lies(jax.make_array_from_process_local_data(apart, table(), table().shape), apart, table())
    x = multihost_utils.host_local_array_to_global_array(mine.reshape(-1, 3), mesh(), P(("d", "p")))
    lies(x, on(("d", "p")), table())
    assert jax.make_array_from_process_local_data(on(), {"a": None, "b": np.ones(2)})["a"] is None
    for words, given in (("Nones", (mine.reshape(-1, 3), (None, 3))),
                         ("has 1 dimensions", (mine.reshape(-1, 3), (6,)))):
        with pytest.raises(ValueError, match=words):
            jax.make_array_from_process_local_data(apart, *given)
    with pytest.raises(TypeError):
        jax.make_array_from_process_local_data(on(), np.array(["a"]))


@in_every_process
def what_depends_on_values_takes_those_of_all_processes():
    sized_by_values.check(table().astype(int), on, lies)


@in_every_process
def a_donated_array_whose_memory_stays_is_alive():
    x = jax.device_put(table(), on("p"))
    explicit = mesh().update(axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    y = jax.device_put(x, NamedSharding(explicit, P("p")), donate=True)
    lies(y, NamedSharding(explicit, P("p")), table())


@in_every_process
def a_result_is_said_in_the_axes_of_a_mesh_that_can_say_it():
    flat = Mesh(np.array(jax.devices()), ("q",))
    x = jax.device_put(table(), NamedSharding(flat, P("q")))
    y = jax.jit(lambda v: jax.lax.with_sharding_constraint(v + 1, on("p")))(x)
    assert jax.local_device_count() == 1 or y.sharding == on("p")
    lies(y, on("p"), table() + 1)


@in_every_process
def a_donated_array_is_gone_in_every_process():
    x = jax.device_put(table(), on("p"))
    y = jax.jit(lambda v: v + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    lies(y, on("p"), table() + 1)
    lies(copy.copy(y), on("p"), table() + 1)


@in_every_process
def values_that_differ_between_processes_are_not_laid_over_them():
    me = jax.process_index()
    mine = {"a": table(), "b": np.float32(me > 0)}
    lies(jax.device_put(mine, {"a": on(), "b": None})["a"], on(), table())
    for sharding in (on(), {"a": on("p"), "b": on()}):
        words = r"device_put of float32\[\d+,3\], float32\[\] at .*in `x\['b'\] of digest \w+` of process 0"
        with pytest.raises(RuntimeError, match=words):
            jax.device_put(mine, sharding)
    with pytest.raises(RuntimeError,
                       match=r"process 0 calls .*float64\[2\].*process \d calls .*float64\[3\]"):
        jax.device_put(np.zeros(2 + (me > 0)), on())
    with pytest.raises(RuntimeError, match="digest"):
        jax.device_put(jnp.asarray(mine["b"]), on())
    with override("hlotrace_check_processes", False):
        lies(jax.device_put(mine["b"], on()), on(), mine["b"])


@in_every_process
def programs_that_differ_between_processes_are_not_run():
    other = jax.process_index() > 0
    x = jax.device_put(table(), on(("p", "d")))
    with pytest.raises(RuntimeError, match=r"process 0 runs <lambda>\(float32.*dense<0.0>.*dense<1.0>"):
        jax.jit(lambda v: (v + np.float32(other)).sum())(x)
    rows = np.zeros((2 + other, 3), np.float32)
    y = jax.make_array_from_process_local_data(on("p"), rows, (len(rows) * jax.process_count(), 3))
    with pytest.raises(RuntimeError, match=r"process 0 runs .*process \d runs "):
        jax.jit(lambda v: v.sum() * 5)(y)
    with pytest.raises(RuntimeError, match=r"process 0 runs max.*process \d runs min"):
        jax.jit(jnp.min if other else jnp.max)(x)
    devices = np.array(jax.devices())
    turned = NamedSharding(Mesh(devices[::-1] if other else devices, ("q",)), P("q"))
    z = jax.make_array_from_callback(table().shape, turned, lambda index: table()[index])
    with pytest.raises(RuntimeError, match=r"over devices 0, .*over devices \d\d+, "):
        jax.jit(lambda v: v.sum() * 7)(z)
    lies(jax.jit(jnp.cos, out_shardings=on())(x), on(), np.cos(table()))


# --- multihost_utils ---


def tree_of(i):
    """What process i has: types that a sum would spoil among them."""
    return {
        "wide": np.array([2**40 + i, -i]),
        "exact": np.array([-0.0, np.nan, i], np.float64),
        "flag": np.array(i % 2 == 0),
        "half": jnp.full((2, 2), i, jnp.bfloat16),
        "none": np.zeros((0, 3), np.int8),
        "number": i,
    }


def identical(found, want):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        b = np.asarray(b)
        assert isinstance(a, np.ndarray) and (a.shape, a.dtype, a.tobytes()) == (b.shape, b.dtype,
                                                                                 b.tobytes())


@in_every_process
def one_process_tells_all():
    last = jax.process_count() - 1
    mine = tree_of(jax.process_index())
    identical(multihost_utils.broadcast_one_to_all(mine), tree_of(0))
    identical(multihost_utils.broadcast_one_to_all(mine, is_source=jax.process_index() == last),
              tree_of(last))
    with pytest.raises(ValueError, match="one process must have is_source=True"):
        multihost_utils.broadcast_one_to_all(mine, is_source=False)


@in_every_process
def every_process_is_told_what_all_have():
    everyone = [tree_of(i) for i in range(jax.process_count())]
    mine = everyone[jax.process_index()]
    identical(multihost_utils.process_allgather(mine), jax.tree.map(lambda *xs: np.stack(xs), *everyone))
    joined = jax.tree.map(lambda *xs: np.concatenate([np.atleast_1d(x) for x in xs]), *everyone)
    identical(multihost_utils.process_allgather(mine, tiled=True), joined)


@in_every_process
def a_global_array_is_gathered_whole():
    x = jax.device_put(table(), on("p", None))
    identical(multihost_utils.process_allgather({"x": x}, tiled=True), {"x": table()})
    with pytest.raises(ValueError, match="pass tiled=True"):
        multihost_utils.process_allgather(x)


@in_every_process
def processes_that_differ_are_told_so_in_each():
    me = jax.process_index()
    with pytest.raises(ValueError, match=r"float32\[1\].*float32\[2\]"):
        multihost_utils.process_allgather(np.zeros(1 + me, np.float32))
    with pytest.raises(ValueError,
                       match=r"process 0 calls process_allgather.*process 1 broadcast_one_to_all"):
        (multihost_utils.broadcast_one_to_all if me else multihost_utils.process_allgather)(1.0)
    multihost_utils.sync_global_devices("together")
    with pytest.raises(AssertionError, match="'step 0'.*'step 1'"):
        multihost_utils.sync_global_devices(f"step {me}")
    multihost_utils.assert_equal({"a": np.float32(3), "b": None})
    with pytest.raises(AssertionError, match=r"my rates .*\[?array"):
        multihost_utils.assert_equal([0.5, me], "my rates")


@in_every_process
def local_values_become_global_arrays_and_come_back():
    for spec, across in [
        (P("p"), True),
        (P("p", "d"), True),
        (P(None, "d"), False),
        (P(), False),
        (P(None, "p"), True),
    ]:
        mine = np.float32(np.arange(16).reshape(4, 4)) + (100 * jax.process_index() if across else 0)
        x = multihost_utils.host_local_array_to_global_array(mine, mesh(), spec)
        times = [jax.process_count() if "p" in spec.axes(dim) else 1 for dim in (0, 1)]
        assert x.shape == (4 * times[0], 4 * times[1]) and x.sharding == NamedSharding(mesh(), spec)
        assert multihost_utils.host_local_array_to_global_array(x, mesh(), spec) is x
        back = multihost_utils.global_array_to_host_local_array({"x": x}, mesh(), spec)["x"]
        assert back.is_fully_addressable and back.devices() == set(jax.local_devices())
        np.testing.assert_array_equal(np.asarray(back + 1), mine + 1)
        made = multihost_utils.host_local_array_to_global_array_impl(mine, global_mesh=mesh(), pspec=spec)
        local = multihost_utils.global_array_to_host_local_array_impl(made, global_mesh=mesh(), pspec=spec)
        there = multihost_utils.ltg_abstract_eval(back.aval, global_mesh=mesh(), pspec=spec)
        assert there == made.aval == x.aval and local.aval == back.aval
        assert multihost_utils.gtl_abstract_eval(there, global_mesh=mesh(), pspec=spec) == back.aval
    with pytest.raises(ValueError, match=r"write PartitionSpec\(\)"):
        multihost_utils.host_local_array_to_global_array(table(), mesh(), None)


@in_every_process
def the_processes_that_live_are_all_or_this_one_ends():
    with multihost_utils.live_devices(jax.devices()) as alive:
        assert alive == jax.devices()
        assert issubclass(multihost_utils.ProcessFailureError, Exception)
    for wrong in ([], jax.devices() * 2):
        with pytest.raises(ValueError, match="each once"), multihost_utils.live_devices(wrong):
            pass


@in_every_process
def steps_go_on_until_all_save_after_one_was_told_to_end():
    reached = multihost_utils.reached_preemption_sync_point
    assert not reached(0)
    multihost_utils.sync_global_devices("all listen")
    if jax.process_index() == 0:
        os.kill(os.getpid(), signal.SIGTERM)
    multihost_utils.assert_equal(next(step for step in range(1, 500) if reached(step) or time.sleep(0.02)))


# --- training ---


def scores(params, images):
    hidden = jnp.tanh(images @ params["up"] + params["shift"])
    return hidden @ params["down"]


def loss(params, images, labels):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(scores(params, images)) * jax.nn.one_hot(labels, 10),
                             axis=-1))


@jax.jit(donate_argnums=0)
def step(params, images, labels):
    value, grads = jax.value_and_grad(loss)(params, images, labels)
    return jax.tree.map(lambda p, g: p - 0.5 * g, params, grads), value


def train(params, batches):
    """Parameters and losses after a step on each of the batches."""
    losses = []
    for images, labels in batches:
        params, value = step(params, images, labels)
        losses.append(float(value))
    return params, losses


def start():
    rng = np.random.default_rng(0)
    return {
        "up": np.float32(rng.normal(size=(64, 32)) / 8),
        "shift": np.zeros(32, np.float32),
        "down": np.float32(rng.normal(size=(32, 10)) / 6),
    }


@in_every_process
def a_network_is_trained_on_a_part_of_each_batch():
    data = np.load(FOLDER / "digits.npz")
    me, count = jax.process_index(), jax.process_count()

    def mine(values):
        part = np.split(values, count)[me]
        return jax.make_array_from_process_local_data(on(("p", "d")), part)

    params = jax.device_put(start(), on())
    params, losses = train(params, ((mine(x), mine(y)) for x, y in zip(data["images"], data["labels"])))
    assert all(p.sharding.is_equivalent_to(on(), p.ndim) for p in jax.tree.leaves(params))
    np.savez(FOLDER / f"trained{me}.npz", losses=losses, **jax.device_get(params))


@in_every_process
def pmap_maps_over_the_devices_of_all_processes():
    me, devices, mine = jax.process_index(), jax.device_count(), jax.local_device_count()
    x = np.arange(devices * 3, dtype=np.float32).reshape(devices, 3)
    part = x[me * mine:(me + 1) * mine]
    for f, want in ((lambda v: v * 2, part * 2),
                    (lambda v: jax.lax.psum(v, "i"), np.broadcast_to(x.sum(0), part.shape)),
                    (lambda v: v * 0 + jax.lax.axis_index("i"),
                     part * 0 + np.arange(me * mine, (me + 1) * mine)[:, None]),
                    (jax.grad(lambda v: (v**2).sum()), 2 * part)):
        mapped = jax.pmap(f, "i")
        for value in (part, mapped(part) * 0 + part):
            out = mapped(value)
            assert out.is_fully_addressable and out.sharding.device_set == {*jax.local_devices()}
            np.testing.assert_array_equal(out, want)
    step = jax.pmap(lambda w, v: w - jax.lax.pmean(v, "i"), "i", in_axes=(None, 0), out_axes=None)
    np.testing.assert_allclose(step(np.ones(3, np.float32), part), 1 - x.mean(0), rtol=1e-6)
    sideways = jax.pmap(lambda v: {"v": v}, in_axes=1, out_axes=1, axis_size=devices)(part.T)
    np.testing.assert_array_equal(sideways["v"], part.T)
    assert jax.pmap(lambda v: v, devices=jax.local_devices())(part).sharding.mesh.size == mine
    with pytest.raises(ValueError, match=f"{mine} of the devices are of this process"):
        jax.pmap(lambda v: v)(np.ones((mine + 1, 3)))
    inside = jax.pmap(lambda v: jax.lax.psum(v, "i"),
                      "i")  # of another transformation: over the devices of this one
    total = np.broadcast_to(part.sum(0), part.shape)
    for f, want in ((jax.jit(inside), total),
                    (jax.vmap(inside, 1, 1), total),
                    (jax.grad(lambda v: inside(v).sum()), part * 0 + mine)):
        np.testing.assert_array_equal(f(part), want)


# --- the tests ---


@pytest.fixture(scope="module", params=SIZES, ids="{0[0]} processes x {0[1]}".format)
def job(request, tmp_path_factory):
    """(folder of a job that has run, its statuses, the output of each process)"""
    from light.sklearn.datasets import load_digits  # not in the processes

    folder = tmp_path_factory.mktemp("job")
    images, labels = load_digits(return_X_y=True)
    np.savez(folder / "digits.npz", images=np.float32(images[:640] / 16).reshape(10, 64, 64),
             labels=np.int32(labels[:640]).reshape(10, 64))
    with Job(__file__, folder, "checks", *request.param) as running:
        statuses = running.end(120)
        return folder, statuses, [running.said(i) for i in range(request.param[0])]


@pytest.mark.parametrize("name", CHECKS)
def test_in_every_process(job, name):
    _, statuses, outputs = job
    assert all(f"passed {name}\n" in said for said in outputs), "\n".join(outputs)
    assert set(statuses) == {0} or name != list(CHECKS)[-1], "\n".join(outputs)


def test_training_in_processes_gives_what_one_process_gives(job):
    folder, _, outputs = job
    data = np.load(folder / "digits.npz")
    want, losses = train(start(), zip(data["images"], data["labels"]))
    assert losses[-1] < 0.7 * losses[0]
    for i in range(len(outputs)):
        found = np.load(folder / f"trained{i}.npz")
        np.testing.assert_allclose(found["losses"], losses, rtol=1e-5)
        for name, value in want.items():
            np.testing.assert_allclose(found[name], np.asarray(value), atol=1e-5, err_msg=name)


# With one process, in this one.


def test_with_one_process_nothing_travels():
    identical(multihost_utils.broadcast_one_to_all(tree_of(7)), tree_of(7))
    identical(multihost_utils.process_allgather({"a": np.arange(3)}), {"a": np.arange(3)[None]})
    identical(multihost_utils.process_allgather([np.arange(3), 2], tiled=True), [np.arange(3), np.array(2)])
    multihost_utils.sync_global_devices("alone")
    multihost_utils.assert_equal(tree_of(7))
    assert multihost_utils.reached_preemption_sync_point(1) is False
    assert multihost_utils.batching is jax.interpreters.batching
    everywhere = Mesh(np.array(jax.devices()), ("x",))
    x = multihost_utils.host_local_array_to_global_array(np.arange(16), everywhere, P("x"))
    assert x.sharding == NamedSharding(everywhere, P("x"))
    assert multihost_utils.global_array_to_host_local_array(x, everywhere, P("x")) is x
    for there in (multihost_utils.host_local_array_to_global_array,
                  multihost_utils.global_array_to_host_local_array):
        assert (
            jax.jit(lambda x, there=there: there(x, everywhere, P("x")) * 2)(np.arange(16))
            == 2 * np.arange(16)
        ).all()
    with pytest.raises(TypeError, match="not a valid JAX type"):
        multihost_utils.process_allgather("words")


def checks():
    for name, check in CHECKS.items():
        check()
        print(f"passed {name}", flush=True)


if __name__ == "__main__":
    FOLDER = Path(sys.argv[-1])
    run_task(globals())
