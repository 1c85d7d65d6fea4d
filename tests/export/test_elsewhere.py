"""Exported functions in other systems, where these are at hand: JAX, by the Python that HLOTRACE_JAX_PYTHON
names (with the package flatbuffers, perhaps in HLOTRACE_JAX_PATH), and IREE (`pip install iree-base-compiler
iree-base-runtime`).
"""
import os
import subprocess

import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import export, lax, nn

JAX = os.environ.get("HLOTRACE_JAX_PYTHON")
PARAMS = {"w": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), "b": np.arange(3, dtype=np.float32)}
X = np.linspace(-2, 2, 20, dtype=np.float32).reshape(5, 4)


def net(p, x):
    h = nn.gelu(x @ p["w"] + p["b"], approximate=False)
    return nn.softmax(h)[1:], jnp.cumsum(h, 0), lax.scan(lambda c, row: (c + row, c.sum()), p["b"], h)[1]


def loss(call):
    return lambda p, x: sum(jnp.sum(out ** 2) for out in call(p, x))


READS = """
import sys, io, numpy as np, jax, jax.numpy as jnp
given = np.load(io.BytesIO(sys.stdin.buffer.read()))
p, x = {"w": given["w"], "b": given["b"]}, given["x"]
call = jax.export.deserialize(bytearray(given["blob"].tobytes())).call
slope = jax.grad(lambda p, x: sum(jnp.sum(out ** 2) for out in call(p, x)))(p, x)
out = io.BytesIO()
np.savez(out, *call(p, x), slope["b"], slope["w"])
sys.stdout.buffer.write(out.getvalue())
"""


@pytest.mark.skipif(not JAX, reason="HLOTRACE_JAX_PYTHON names no Python that has JAX")
@pytest.mark.parametrize("rows", ["5", "n"])
def test_jax_reads_calls_and_differentiates_it(rows, tmp_path):
    x = jax.ShapeDtypeStruct(export.symbolic_shape(f"{rows}, 4", constraints=["n >= 2"]), np.float32)
    blob = export.export(jax.jit(net), platforms=("tpu", "cpu"))(PARAMS, x).serialize(vjp_order=1)
    np.savez(tmp_path / "given.npz", x=X, **PARAMS, blob=np.frombuffer(blob, np.uint8))
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "XLA_FLAGS")}
    out = subprocess.run([JAX, "-c", "import jax.export\n" + READS],
                         input=(tmp_path / "given.npz").read_bytes(),
                         capture_output=True, check=True,
                         env=env | {"PYTHONPATH": os.environ.get("HLOTRACE_JAX_PATH", "")})
    (tmp_path / "got.npz").write_bytes(out.stdout)
    got, slope = np.load(tmp_path / "got.npz"), jax.grad(loss(net))(PARAMS, X)
    for i, want in enumerate([*net(PARAMS, X), slope["b"], slope["w"]]):
        same(got[f"arr_{i}"], want, slack=10)


def test_iree_compiles_the_same_text():
    compiler, runtime = pytest.importorskip("iree.compiler"), pytest.importorskip("iree.runtime")
    program = compiler.compile_str(export.export(jax.jit(net))(PARAMS, X).mlir_module(),
                                   input_type="stablehlo",
                                   target_backends=["llvm-cpu"],
                                   extra_args=["--iree-llvmcpu-target-cpu=host"])
    context = runtime.SystemContext(config=runtime.Config("local-task"))
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, program))
    for got, want in zip(context.modules.jit_net["main"](PARAMS["b"], PARAMS["w"], X), net(PARAMS, X)):
        same(got.to_host(), want, slack=10)
