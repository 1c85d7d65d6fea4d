"""A script: pickles of all kinds, written or read by JAX or by hlotrace in its place.

`python pickled.py (ours | jax) (write | read) file.json`: what is read is compared with what is made here.
"""
import base64
import json
import os
import pickle
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
if sys.argv[1] == "ours":
    import hlotrace.as_jax  # noqa: F401

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractDevice, AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

MESH = AbstractMesh((2, 2), ("x", "y"), (AxisType.Explicit,) * 2)
DEVICES = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
THINGS = {
    "array": jnp.arange(3.), "a weak scalar": jnp.asarray(1.0), "half": jnp.ones(2, jnp.bfloat16), "int4": jnp.ones(2, jnp.int4),
    "complex": jnp.ones((2, 0), jnp.complex64), "divided": jax.device_put(jnp.arange(8.), NamedSharding(DEVICES, P("x"))),
    "key": jax.random.key(7), "keys": jax.random.split(jax.random.key(7, impl="rbg"), 3), "unsafe": jax.random.key(1, impl="unsafe_rbg"),
    "struct": jax.ShapeDtypeStruct((2,), jnp.float32), "weak struct": jax.ShapeDtypeStruct((2,), jnp.float32, weak_type=True),
    "divided struct": jax.ShapeDtypeStruct((2,), jnp.float32, sharding=NamedSharding(MESH, P("x"))),
    "spec": P("x", None, ("x", "y")), "unreduced": P("x", unreduced={"y"}), "unconstrained": P(P.UNCONSTRAINED),
    "type": jax.typeof(jnp.ones(3)), "weak type": jax.typeof(1.0), "type of a key": jax.typeof(jax.random.key(0)),
    "dtype of a key": jax.random.key(0).dtype, "manual": jax.typeof(jnp.ones(3)).manual_axis_type, "mesh": MESH,
    "sharding": NamedSharding(MESH, P("x")), "axis type": AxisType.Explicit, "device": AbstractDevice("cpu", None, "cpu"),
    "memory": jax.memory.Space.Host, "precision": jax.lax.Precision.HIGH, "structure": jax.tree.structure({"a": 1, "b": (1, [2])}),
    "path": jax.tree_util.DictKey("a"), "numbers": jax.lax.GatherDimensionNumbers((0,), (), (0,)),
    "error": jax.errors.TracerBoolConversionError, "function": jnp.where, "scalar type": jnp.float32, "initializer": jax.nn.initializers.he_normal,
    "tree": {"w": jnp.ones((2, 2)), "k": jax.random.key(3)}}


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if not isinstance(a, jax.Array):
        return a == b
    if (a.dtype, jax.typeof(a).weak_type) != (b.dtype, jax.typeof(b).weak_type):
        return False
    if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
        a, b = jax.random.key_data(a), jax.random.key_data(b)
    return np.array_equal(np.asarray(a), np.asarray(b))


if __name__ == "__main__":
    _, _, what, path = sys.argv
    if what == "write":
        with open(path, "w") as file:
            json.dump({name: base64.b64encode(pickle.dumps(x)).decode() for name, x in THINGS.items()}, file, indent=0)
    else:
        with open(path) as file:
            found = {name: pickle.loads(base64.b64decode(text)) for name, text in json.load(file).items()}
        wrong = [name for name, x in THINGS.items() if not same(x, found[name])]
        assert not wrong, wrong
