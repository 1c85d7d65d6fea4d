"""Python functions on the host of their arguments' devices, which is this process."""
import types

import numpy as np
import pytest
from mesh8 import auto_mesh

import hlotrace as jax
import hlotrace.experimental.colocated_python as module
import hlotrace.numpy as jnp
from hlotrace.experimental.colocated_python import (
    colocated_cpu_devices, colocated_python, colocated_python_class, serialization)
from hlotrace.extend import ifrt_programs

DEVICES = jax.devices("cpu")


@colocated_python
def twice(x, y=None):
    return {"twice": x * 2, "sum": x.sum(), "none": None}


@colocated_python_class
class Counter:
    step = 1

    def __init__(self, count):
        self.count = count

    def next(self, x):
        self.count += 1
        return x + self.count

    def fails(self, x):
        raise KeyError("user's")


def test_a_function_runs_where_its_arguments_lie():
    x = jax.device_put(np.arange(8, dtype=np.float32), DEVICES[1])
    seen = []
    known = twice.specialize(in_specs=((x,), {"y": x})).specialize(
        out_specs_fn=lambda x, y: seen.append((x, y))
        or {"twice": x, "sum": x.update(shape=()), "none": None})
    for call in twice, known:
        found = call(x, y=x)
        assert found["twice"].sharding == x.sharding and found["sum"] == 28 and found["none"] is None
    assert [spec.sharding for spec in seen[0]] == [x.sharding] * 2 and twice.__name__ == "twice"
    assert colocated_python(lambda: jnp.ones(2)).specialize(devices=DEVICES[:1])().shape == (2,)


def test_an_object_is_made_when_a_method_is_called():
    counter, x = Counter(5), jnp.zeros(2)
    assert (counter.next(x), counter.next(x))[1].tolist() == [7, 7] and Counter.__name__ == "Counter"
    with pytest.raises(KeyError, match="user's"):
        counter.fails(x)
    for name in "count", "step", "nothing":
        with pytest.raises(AttributeError, match=f"only its methods.*{name!r}"):
            getattr(counter, name)


def test_cpu_devices_beside_others(monkeypatch):
    mesh = auto_mesh((2, 2), ("a", "b"))
    assert colocated_cpu_devices(mesh) is mesh and colocated_cpu_devices(tuple(DEVICES[:2])) == DEVICES[:2]
    class Chip:
        platform, client, process_index = "chip", DEVICES[0].client, 0
    chips = [Chip() for _ in range(16)]
    local = module.client.local_devices
    monkeypatch.setattr(module, "client", types.SimpleNamespace(
        local_devices=lambda backend: chips if backend == "chip" else local(backend=backend)))
    assert colocated_cpu_devices(chips)[3] == DEVICES[3] and colocated_cpu_devices(chips)[9] == DEVICES[
        9 % len(DEVICES)]
    far = Chip()
    far.process_index = 3
    with pytest.raises(NotImplementedError, match="is of process 3"):
        colocated_cpu_devices([far])
    with pytest.raises(NotImplementedError, match="CPU devices of this process"):
        twice.specialize(devices=chips[:1])(jnp.ones(2))


x = jnp.ones(3)


@pytest.mark.parametrize("call, error, words", [
    (lambda: twice(np.ones(3)), TypeError, r"'twice': .*one argument is array\("),
    (lambda: jax.jit(twice)(x), TypeError, "one argument is a traced array.*outside of jit"),
    (lambda: jax.grad(lambda x: twice(x)["sum"])(x), TypeError, "a traced array"),
    (lambda: colocated_python(lambda x: 3)(x), ValueError, "one result is 3"),
    (lambda: twice(jax.device_put(x, DEVICES[0]), jax.device_put(x, DEVICES[1])), ValueError,
     "on different devices"),
    (lambda: colocated_python(lambda: x)(), ValueError, r"\.specialize\(devices="),
    (lambda: twice.specialize(in_specs=((x,), {})).specialize(in_specs=((x,), {})), ValueError,
     "has said in_specs before"),
    (lambda: twice.specialize(in_specs=((x,), {}))(x[:2]), ValueError,
     r"have a float32\[2\] where float32\[3\] was said"),
    (lambda: twice.specialize(out_specs_fn=lambda x: x)(x), ValueError, "the results have the structure"),
    (lambda: colocated_python(3), TypeError, "a function, not 3"),
    (lambda: colocated_python_class(3), TypeError, "a class, not 3"),
])
def test_what_cannot_be_run_there(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_what_libraries_take_for_other_runtimes():
    assert issubclass(serialization.DeviceList, object) and hasattr(
        ifrt_programs.ifrt_programs, "make_plugin_program")
