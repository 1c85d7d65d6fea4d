"""Every public function of arrays with each operand split over Explicit axes: a type, or a ShardingTypeError.

Numbers are compared in test_explicit.py, a row of the op table each.
"""
import inspect

import numpy as np
import pytest
from mesh8 import devices

import hlotrace as jax
import hlotrace.numpy as jnp
import hlotrace.scipy.special as special
from hlotrace import lax, nn
from hlotrace.errors import ShardingTypeError
from hlotrace.sharding import AxisType, Mesh, NamedSharding, P

OPERANDS = [R.astype(dtype) for R in [np.random.RandomState(0).uniform(1, 6, (3, 8, 8))]
            for dtype in (np.float32, np.int32, np.bool_)]
MODULES = {"numpy": jnp, "numpy.linalg": jnp.linalg, "numpy.fft": jnp.fft, "lax": lax, "nn": nn,
           "scipy.special": special}
NEITHER = {"empty", "empty_like", "from_dlpack", "frombuffer", "fromfile", "histogramdd", "load",
           "printoptions", "save",
           "savez", "set_printoptions"}      # files, buffers, and 8 axes of bins


def functions(module):
    for name in sorted(dir(module)):
        if name.startswith("_") or name.endswith("_p") or name in NEITHER:
            continue
        function = getattr(module, name)
        if callable(function) and not inspect.isclass(function):
            yield name, function


def operands_of(function):
    """As many matrices of one dtype as it takes, as structs; None where it takes none."""
    for values in OPERANDS:
        for count in (1, 2, 3):
            structs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in values[:count]]
            try:
                if jax.tree.leaves(jax.eval_shape(function, *structs)):
                    return structs
            except Exception:       # of another number, dtype or kind
                continue
    return None


@pytest.mark.parametrize("module", MODULES)
def test_each_operand_split_in_each_way(module):
    mesh = Mesh(np.array(devices()).reshape(2, 4), ("x", "y"), (AxisType.Explicit,) * 2)
    typed, refused = 0, 0
    with jax.set_mesh(mesh):
        for name, function in functions(MODULES[module]):
            structs = operands_of(function) or ()
            for i in range(len(structs)):
                for spec in (P("x"), P(None, "x"), P("x", "y")):
                    split = [s.update(sharding=NamedSharding(mesh, spec)) if i == j else s
                             for j, s in enumerate(structs)]
                    try:
                        for out in jax.tree.leaves(jax.eval_shape(function, *split)):
                            assert out.sharding is None or len(out.sharding.spec) == len(out.shape), name
                        typed += 1
                    except ShardingTypeError:
                        refused += 1
                    except ValueError as error:     # JAX's class for what is written into an array
                        assert "Incompatible types for broadcasting" in str(error), name
                        refused += 1
    assert typed and typed + refused > 30


@pytest.mark.parametrize("spec", [P("x"), P(None, "y"), P("x", "y"), P(None, None, "x")])
def test_the_trace_of_what_is_split(spec):
    mesh = Mesh(np.array(devices()).reshape(2, 4), ("x", "y"), (AxisType.Explicit,) * 2)
    for value, axes in ((np.arange(128).reshape(4, 4, 8), (0, 1)),
                        (np.arange(128.0).reshape(4, 8, 4) > 3, (2, 0))):
        x = jax.device_put(value, NamedSharding(mesh, spec))
        for offset in (0, 2, -1):
            got = jnp.trace(x, offset, *axes)
            np.testing.assert_array_equal(got, np.trace(value, offset, *axes))
            kept, = {0, 1, 2} - {*axes}
            assert jax.typeof(got).sharding.spec == P((*spec, None, None)[kept])
