"""hlotrace never imports jax, not even where it is installed."""
import os
import subprocess
import sys

from places import ROOT

PROGRAM = """
import sys, pickle, copy
import hlotrace as jax, hlotrace.numpy as jnp
from hlotrace import lax
import numpy as np

def loss(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)

key = jax.random.key(0)
x, w = jax.random.normal(key, (8, 3)), jnp.ones((3, 2), jnp.float32)
step = jax.jit(lambda w: w - 0.1 * jax.grad(loss)(w, x), donate_argnums=0)
for _ in range(3):
    w = step(w)
jax.vmap(jax.hessian(lambda v: jnp.sum(jnp.sin(v))))(x).block_until_ready()
lax.scan(lambda c, r: (c + r, c), w[0], w)
lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0)
jax.debug.print("{}", w, ordered=True)
jax.jit(lambda x: jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct((8, 3), jnp.float32), x))(x)
lowered = jax.jit(loss).lower(w, x)
lowered.as_text(debug_info=True), lowered.as_text("hlo"), lowered.cost_analysis()
compiled = lowered.compile()
compiled(w, x), compiled.as_text(), compiled.cost_analysis(), compiled.memory_analysis()
for a in (w, w.astype(jnp.bfloat16), w.astype(jnp.int4)):
    np.asarray(a), repr(a), pickle.loads(pickle.dumps(a)), copy.deepcopy(a), a.tolist()
sharded = jax.jit(jnp.sin)(jax.device_put(x, jax.NamedSharding(jax.make_mesh((4,), ("d",)), jax.P("d"))))
assert {s.data.shape for s in sharded.addressable_shards} == {(2, 3)}
np.from_dlpack(w), jnp.from_dlpack(w), jax.device_get(jax.device_put({"w": w}, jax.devices()[0]))
try:
    jax.jit(lambda x: 1 if x > 0 else 0)(1.0)
except jax.errors.TracerBoolConversionError:
    pass
jax.nn.softmax(w), jax.tree.map(lambda x: x, {"a": w}), jax.sharding, jax.stages, jax.dtypes
jax.effects_barrier()
assert not [m for m in sys.modules if m == "jax" or m.startswith("jax.")]
print("done")
"""


def test_a_round_trip_never_imports_jax(tmp_path):
    fake = tmp_path / "jax"
    fake.mkdir()
    (fake / "__init__.py").write_text("import sys\nsys.stderr.write('jax was imported')\nraise SystemExit(1)")
    root = str(ROOT)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), root])}
    result = subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], env=env, capture_output=True,
                            text=True,
                            timeout=120)
    assert result.returncode == 0 and result.stdout.strip().endswith("done"), result.stdout + result.stderr
    assert "jax was imported" not in result.stderr
