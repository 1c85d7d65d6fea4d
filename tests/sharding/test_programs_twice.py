"""Five programs over Auto axes, where the compiler decides, and over Explicit axes: equal losses, gradients and no more
collectives, which are those that explain_sharding predicts.

What the two differ in is `over.at`: with_sharding_constraint, reshard; and `over.product`: einsum, whose result over
Explicit axes is divided as its caller says.
"""
import collections
import functools

import numpy as np
import planned
import pytest
from gpu_topologies import needs_wheels
from mesh8 import devices

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax, topologies
from hlotrace.inspection.communication import collectives
from hlotrace.runtime.devices import plugins
from hlotrace.sharding import AxisType, Mesh, NamedSharding, P


class Over:
    """A mesh of 2 x 4 devices with axes "data", "model" of one type, and the two operations that differ."""

    def __init__(self, kind):
        self.mesh = Mesh(np.array(devices()).reshape(2, 4), ("data", "model"), (kind,) * 2)
        self.explicit = kind is AxisType.Explicit

    def at(self, x, *spec):
        return (jax.reshard if self.explicit else lax.with_sharding_constraint)(x, NamedSharding(self.mesh, P(*spec)))

    def product(self, subscripts, *operands, out=()):
        if self.explicit:
            return jnp.einsum(subscripts, *operands, out_sharding=NamedSharding(self.mesh, P(*out)))
        return self.at(jnp.einsum(subscripts, *operands), *out)

    def put(self, x, *spec):
        return jax.device_put(x, NamedSharding(self.mesh, P(*spec)))

    @property
    def sizes(self):
        return self.mesh.axis_sizes


class OverTopology(Over):
    """Devices that are not here: arrays are types."""

    def __init__(self, kind, mesh):
        self.mesh, self.explicit = mesh.update(axis_types=(kind,) * 2), kind is AxisType.Explicit

    def put(self, x, *spec):
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(self.mesh, P(*spec)))


def normal(seed, *shape):
    return (np.random.RandomState(seed).randn(*shape) / 4).astype(np.float32)


def attention(over, x, w):
    """[batch, time, width] -> the same; heads over "model"."""
    q, k, v = (over.product("btd,dhk->bthk", x, w[name], out=("data", None, "model")) for name in "qkv")
    scores = over.product("bthk,bshk->bhts", q, k, out=("data", "model"))
    scores = jnp.where(np.tri(x.shape[1], dtype=bool), scores, -1e9)
    mixed = over.product("bhts,bshk->bthk", jax.nn.softmax(scores), v, out=("data", None, "model"))
    return over.product("bthk,hkd->btd", mixed, w["o"], out=("data",))


def gpt(over):
    """FSDP over "data", tensor parallel over "model"."""
    parts = {"q": (16, 4, 4), "k": (16, 4, 4), "v": (16, 4, 4), "o": (4, 4, 16), "up": (16, 32), "down": (32, 16)}
    specs = {"q": ("data", "model"), "k": ("data", "model"), "v": ("data", "model"), "o": ("model", None, "data"),
             "up": ("data", "model"), "down": ("model", "data")}
    w = {name: over.put(normal(i, *shape), *specs[name]) for i, (name, shape) in enumerate(parts.items())}

    def loss(w, x):
        whole = {name: over.at(v, *[a if a == "model" else None for a in specs[name]]) for name, v in w.items()}
        x = x + attention(over, x, whole)
        h = jax.nn.gelu(over.product("btd,df->btf", x, whole["up"], out=("data", None, "model")))
        x = x + over.product("btf,fd->btd", h, whole["down"], out=("data",))
        return (x ** 2).mean()
    return loss, w, over.put(normal(9, 2 * over.sizes[0], 8, 16), "data")


def experts(over):
    """A mixture of experts: experts over "model", a soft choice of them for each token."""
    w = {"gate": over.put(normal(0, 16, 8)), "up": over.put(normal(1, 8, 16, 32), "model"),
         "down": over.put(normal(2, 8, 32, 16), "model")}

    def loss(w, x):
        gates = jax.nn.softmax(over.product("td,de->te", x, w["gate"], out=("data",)))
        gates = over.at(gates, "data", "model")
        h = jax.nn.relu(over.product("td,edf->tef", x, w["up"], out=("data", "model")))
        y = over.product("tef,efd->ted", h, w["down"], out=("data", "model"))
        return (over.product("ted,te->td", y, gates, out=("data",)) ** 2).mean()
    return loss, w, over.put(normal(9, 16, 16), "data")


def pipeline(over):
    """Stages over "model", each on its device; activations go round by ppermute."""
    w = over.put(normal(0, 4, 16, 16), "model")

    @functools.partial(jax.shard_map, mesh=over.mesh, in_specs=(P("model"), P(None, "data")), out_specs=P(None, "data"))
    def run(w, x):
        stage, size = lax.axis_index("model"), 4
        held = lax.pcast(jnp.zeros_like(x[0]), "model", to="varying")
        outs = []
        for i in range(x.shape[0] + size - 1):
            held = jnp.where(stage == 0, x[min(i, x.shape[0] - 1)], held)
            held = jnp.tanh(held @ w[0])
            outs.append(lax.psum(jnp.where(stage == size - 1, held, 0.0), "model"))
            held = lax.ppermute(held, "model", [(j, (j + 1) % size) for j in range(size)])
        return jnp.stack(outs[size - 1:])
    return (lambda w, x: (run(w, x) ** 2).mean()), w, over.put(normal(9, 3, 2 * over.sizes[0], 16), None, "data")


def sequence(over):
    """Ring attention: time over "model", blocks of keys and values go round."""
    w = {name: over.put(normal(i, 16, 16)) for i, name in enumerate("qkv")}

    @functools.partial(jax.shard_map, mesh=over.mesh, in_specs=P("data", "model"), out_specs=P("data", "model"))
    def ring(q, k, v):
        total, weight = jnp.zeros_like(q), jnp.zeros_like(q[..., :1])
        for _ in range(4):
            scores = jnp.exp(jnp.einsum("btd,bsd->bts", q, k))
            total, weight = total + scores @ v, weight + scores.sum(-1, keepdims=True)
            k, v = (lax.ppermute(x, "model", [(j, (j + 1) % 4) for j in range(4)]) for x in (k, v))
        return total / weight

    def loss(w, x):
        q, k, v = (over.product("btd,de->bte", x, w[name], out=("data", "model")) for name in "qkv")
        return (ring(q, k, v) ** 2).mean()
    return loss, w, over.put(normal(9, over.sizes[0], 8, 16), "data", "model")


def resnet(over):
    """Data parallel: the batch over both axes."""
    w = {"stem": over.put(normal(0, 3, 3, 3, 8)), "block": over.put(normal(1, 3, 3, 8, 8)), "head": over.put(normal(2, 8, 4))}

    def conv(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def loss(w, x):
        x = jax.nn.relu(conv(x, w["stem"]))
        x = x + jax.nn.relu(conv((x - x.mean((0, 1, 2))) / (x.std((0, 1, 2)) + 1e-3), w["block"]))
        return (jax.nn.log_softmax(x.mean((1, 2)) @ w["head"]) ** 2).mean()
    return loss, w, over.put(normal(9, over.mesh.size, 4, 4, 3), ("data", "model"))


PROGRAMS = [gpt, experts, pipeline, sequence, resnet]


@pytest.mark.parametrize("program", PROGRAMS)
def test_explicit_and_auto(program):
    values, counts = [], []
    for kind in (AxisType.Auto, AxisType.Explicit):
        over = Over(kind)
        with jax.set_mesh(over.mesh):
            loss, w, x = program(over)
            lowered = jax.jit(jax.value_and_grad(loss)).lower(w, x)
            compiled = lowered.compile()
            values.append(compiled(w, x))
            counts.append(collections.Counter(c.kind for c in collectives(compiled.as_text(), over.mesh)))
            assert planned.predicted(lowered) == planned.compiled(compiled.as_text(), over.mesh)
            for primal, gradient in zip(jax.tree.leaves(w), jax.tree.leaves(values[-1][1])):
                assert jax.typeof(primal).explicit == jax.typeof(gradient).explicit
    (auto, auto_grad), (explicit, explicit_grad) = values
    np.testing.assert_allclose(explicit, auto, rtol=1e-6)
    for a, b in zip(jax.tree.leaves(auto_grad), jax.tree.leaves(explicit_grad)):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-6)
    assert sum(counts[1].values()) <= sum(counts[0].values()), counts


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("topology, sizes", [
    pytest.param("v5e:4x4", (4, 4), marks=pytest.mark.skipif("tpu" not in plugins.find(), reason="no libtpu wheel is installed")),
    pytest.param("h100:8", (2, 4), marks=needs_wheels)])
def test_for_devices_that_are_not_here_explicit_exchanges_no_more(program, topology, sizes):
    """In arrays, of which XLA combines some, and in bytes on each device, but for a cotangent of v5e's experts."""
    mesh = topologies.make_mesh(topologies.get_topology_desc(topology), sizes, ("data", "model"))
    totals = []
    for kind in (AxisType.Auto, AxisType.Explicit):
        over = OverTopology(kind, mesh)
        with jax.sharding.use_abstract_mesh(over.mesh.abstract_mesh):
            loss, w, x = program(over)
            lowered = jax.jit(jax.value_and_grad(loss)).lower(w, x)
            compiled = lowered.compile()
        found = planned.compiled(compiled.as_text(), over.mesh)
        if topology == "h100:8":
            assert planned.by_kind(planned.predicted(lowered)) == planned.by_kind(found)
        arrays = planned.predicted(lowered) if topology == "h100:8" else found
        totals.append((arrays.total(), sum(size * count for (_, _, size, _), count in found.items())))
    (auto, auto_bytes), (explicit, explicit_bytes) = totals
    assert explicit <= auto and explicit_bytes <= 1.01 * auto_bytes, totals
