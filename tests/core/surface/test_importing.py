"""`sys.modules["jax"] = hlotrace`, or hlotrace.as_jax: programs that import jax, and jaxlib's C++, find this package."""
import importlib
import io
import os
import subprocess
import sys

import pytest

PROGRAM = """
import importlib, importlib.util, sys
import numpy as np
import hlotrace
{said}

import jax
import jax.core as core, jax.numpy as jnp
from jax import lax, random, tree_util
from jax import shard_map
from jax.extend.core import primitives
from jax.interpreters import ad, batching, mlir
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import jax.nn.initializers

mesh = Mesh(np.array(jax.devices()), "x")
split, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
x = jax.device_put(np.arange(8.0, dtype=np.float32), split)
assert repr(x) == "Array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)"
assert [float(s.data[0]) for s in x.addressable_shards] == list(range(8))
assert float((x + 1).sum()) == 36 and float(x[3]) == 3 and isinstance(x, jax.Array)
for sharding in whole, split, jax.devices()[3]:
    y = jax.device_put(jax.jit(lambda a: a * 2)(x), sharding)
    assert np.asarray(y).tolist() == [0, 2, 4, 6, 8, 10, 12, 14], y
assert [a.data.tolist() for a in jax.jit(lambda a: a, out_shardings=whole)(x).addressable_shards] == [list(range(8))] * 8
assert np.asarray(shard_map(lambda a: lax.psum(a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(x)).tolist() == [28]
assert np.asarray(jax.pmap(lambda a: a + 1)(x)).tolist() == list(range(1, 9))
assert np.asarray(jax.jit(lambda a: jax.pure_callback(lambda v: np.asarray(v) + 1, a, a))(x)).tolist() == list(range(1, 9))
keys = jax.device_put(random.split(random.key(0), 8), split)
assert bool((jax.jit(lambda k: k)(keys) == keys).all()) and "key<fry>" in repr(keys)
narrow = jax.device_put(np.arange(8).astype(jax.dtypes.bfloat16), split)
assert np.asarray(narrow, np.float32).tolist() == list(range(8)) and narrow.addressable_shards[2].data.dtype == jnp.bfloat16
parts = [s.data for s in x.addressable_shards]
assert np.asarray(jax.make_array_from_single_device_arrays((8,), split, parts)).tolist() == list(range(8))
assert np.asarray(jax.jit(lambda a: a + 1, donate_argnums=0)(x + 0)).tolist() == list(range(1, 9))
assert np.from_dlpack(jnp.ones(2)).tolist() == [1, 1] and jnp.ones(2).unsafe_buffer_pointer()
assert isinstance(core.ShapedArray((2,), np.dtype("float32")), hlotrace.core.ShapedArray)

assert core is hlotrace.core and jnp is hlotrace.numpy and ad is hlotrace.interpreters.ad and jax.lax is lax
twice = [m for m in sys.modules if m.startswith("jax.") and m[4:8] != "_src"
         and sys.modules[m] is not sys.modules.get("hlotrace" + m[3:], sys.modules[m])]
assert not twice, twice
assert all(m.__spec__.name == n for n, m in sys.modules.items() if n.startswith("hlotrace."))
assert importlib.util.find_spec("jax.qqqq") is None and importlib.util.find_spec("jax.lax") is not None
for line, words in [("import jax.nunpy", "did you mean 'numpy'?"),
                    ("from jax.numpy import arrange", "did you mean 'arange'?"),
                    ("import jax._src.qqqq", "jax._src")]:
    try:
        exec(line)
    except ImportError as error:
        assert words in str(error), error
    else:
        raise AssertionError(line)
print("done")
"""


@pytest.mark.parametrize("said", ["import hlotrace.as_jax", *("sys.modules['jax'] = hlotrace; " + more for more in (
    "", "sys.modules['jax.core'] = hlotrace.core; sys.modules['jax.numpy'] = hlotrace.numpy",
    "importlib.import_module('hlotrace.core.surface.jax_core_names'); sys.modules.update({'jax' + name[8:]: module for name, module in "
    "list(sys.modules.items()) if name.startswith('hlotrace.')})"))])
def test_the_package_goes_by_the_name_of_jax(said):
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    done = subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM.format(said=said)], env=env, capture_output=True,
                          text=True)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_modules_of_extend_mlir_are_those_of_jaxlib():
    """A module is built with the bindings alone."""
    from hlotrace.extend import mlir
    from hlotrace.extend.mlir import ir
    from hlotrace.extend.mlir.dialects import func, stablehlo as hlo
    with ir.Context() as context, ir.Location.unknown():
        hlo.register_dialect(context)
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            @func.func(ir.RankedTensorType.get((3,), ir.F32Type.get()))
            def main(x):
                return [hlo.sine(hlo.add(x, x))]
        text = io.StringIO()
        module.operation.print(file=text)
    assert "stablehlo.sine" in text.getvalue() and mlir.ir is ir
    for missing in "hlotrace.extend.mlir.irr", "hlotrace.extend.mlir.dialects.hlo2":
        with pytest.raises(ModuleNotFoundError, match="no attribute"):
            importlib.import_module(missing)


@pytest.mark.parametrize("before", [True, False])
def test_importing_leaves_the_collector_as_it_was(before):
    program = f"""
import gc, sys
if not {before}: gc.disable()
sys.modules["hlotrace.api.vmap"] = None
try:
    import hlotrace
except ImportError:
    assert gc.isenabled() == {before}       # of an import that failed, too
for name in [name for name in sys.modules if name.startswith("hlotrace")]:
    del sys.modules[name]
import hlotrace
print(gc.isenabled())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == f"{before}\n", done.stderr
