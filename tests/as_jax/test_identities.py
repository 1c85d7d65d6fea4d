"""Who one is in a process for JAX, and in no other."""
import forked

import hlotrace
from hlotrace.core.surface.importing import renamed

# everything that public modules export knows itself by a name of JAX's, and is found by it
ALL = """
import hlotrace.as_jax, importlib, pkgutil, sys, types, warnings
warnings.simplefilter("ignore")
import jax
ROOMS = "api as_jax core distributed inspection lowering placement primitives runtime sharding tools transforms __main__".split()
names = ["hlotrace"] + [m.name for m in pkgutil.walk_packages(jax.__path__, "hlotrace.") if m.name.split(".")[1] not in ROOMS]
wrong, seen = [], 0
for name in names:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        assert error.name in ("tensorstore", "cloudpickle", "mpi4py"), error        # what an option needs
        continue
    if module.__name__ != "jax" + name[8:]:
        wrong.append((name, module.__name__))
    for each in getattr(module, "__all__", ()):
        value = getattr(module, each)
        home = getattr(value, "__module__", None)
        if not isinstance(value, (type, types.FunctionType)) or type(value) is type(list[int]):
            continue
        seen += 1
        if home.startswith("hlotrace"):
            wrong.append((name, each, home))
        elif home.startswith("jax") and isinstance(value, type):
            if getattr(importlib.import_module(home), value.__qualname__, None) is not value:
                wrong.append((name, each, home, value.__qualname__))
print(seen)
assert seen > 1500 and not wrong, wrong
"""

# arrays, tracers of every kind and compiled functions
KINDS = """
import hlotrace.as_jax, sys, jax, jax.numpy as jnp, jaxlib._jax
from jax.sharding import PartitionSpec as P
from jax._src.array import ArrayImpl
light = sys.modules["jax.image"]
assert light.__name__ == "jax.image" and "hlotrace.image" not in sys.modules
for name in ("jax.tree_util jax.lax jax.nn jax.random jax.core jax.sharding jax.tree jax.interpreters.ad jax.interpreters.mlir jax.numpy.fft "
             "jax.scipy jax.errors jax.experimental jax.version jax._src.core jax._src.array jax._src.interpreters.ad").split():
    assert sys.modules[name].__name__ == name, name
assert light.resize is jax.image.resize and sys.modules["jax.image"] is jax.image
x, kinds = jnp.ones(4), {}
def see(t):
    kinds[type(t).__name__] = type(t).__module__
    return t * 2.
import jax.experimental.jet, jax.experimental.sparse
split = jax.shard_map(see, mesh=jax.make_mesh((1,), "x"), in_specs=P("x"), out_specs=P("x"))
for f in (jax.jit(see), jax.vmap(see), jax.checkpoint(see), jax.jacfwd(see), jax.jacrev(see), split, jax.experimental.sparse.sparsify(see),
          lambda x: jax.linearize(see, x), lambda x: jax.experimental.jet.jet(see, (x,), ((x,),))):
    f(x)
assert len(kinds) >= 5 and all(home.startswith(("jax.", "jaxlib.")) for home in kinds.values()), kinds
assert isinstance(x, jaxlib._jax.ArrayImpl) and isinstance(x, ArrayImpl) and ArrayImpl.__module__ == "jaxlib._jax"
assert jax.errors.JaxRuntimeError.__module__ == "jax.errors"
assert jax.Array.__module__ == "jax" and jnp.__name__ == "jax.numpy" and jax.lax.linalg.__name__ == "jax.lax.linalg"
assert type(jax.jit(see)) is jaxlib._jax.PjitFunction and x.__array_namespace__().__name__ == "jax.numpy"
try:
    jnp.add(x, jnp.ones(3))
except TypeError as error:
    assert type(error).__module__.startswith("jax.") and "jnp.add(x: float32[4], float32[3])" in str(error), error
"""


def run(program):
    forked.run(program, check=True, HLOTRACE_AS_JAX="1")


def test_all_public_names_are_jaxs():
    run(ALL)


def test_arrays_and_tracers():
    run(KINDS)


def test_elsewhere_all_keep_their_names():
    assert not renamed and hlotrace.Array.__module__ == "hlotrace.core.array" and hlotrace.numpy.__name__ == "hlotrace.numpy"
    assert hlotrace.numpy.sin.__module__ == "hlotrace.numpy"


def test_light_modules_are_the_modules():
    run("""
import hlotrace.as_jax, jax, sys, threading
light, found = sys.modules["jax.scipy"], []
threads = [threading.Thread(target=lambda: found.append((light.special, sys.modules["jax.image"].resize))) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join(60)
assert len(set(found)) == 1 and len(found) == 8
import jax.nn
jax.nn.relu = 1             # before it is loaded
assert jax.nn.relu == 1 and jax.nn.gelu and "softmax" in dir(jax.nn) and "softmax" in vars(jax.nn)
""")


def test_executables_are_read_by_every_process(tmp_path):
    """Their bytes name classes as this package does."""
    program = """
import pickle, sys
import hlotrace as jax, hlotrace.numpy as jnp
from hlotrace.experimental import serialize_executable as s
mesh = jax.make_mesh((1,), ("x",))
if sys.argv[1] == "write":
    f = jax.jit(lambda x: x + 1, in_shardings=jax.NamedSharding(mesh, jax.P("x")))
    open(r"{}", "wb").write(s.serialize(f.lower(jnp.ones(4)).compile())[0])
else:
    f = s.deserialize_and_load(open(r"{}", "rb").read(), jax.tree.structure(((1,), {{}})), jax.tree.structure(1))
    assert f(jnp.ones(4)).tolist() == [2] * 4
"""
    path = tmp_path / "bytes"
    for_jax = {"HLOTRACE_AS_JAX": "1"}
    for writer, reader in (for_jax, {}), ({}, for_jax):
        for what, options in ("write", writer), ("read", reader):
            forked.run(program.format(path, path), what, check=True, **options)
