"""jaxlib's MLIR bindings: the contexts in which texts are parsed."""
import threading

import forked
import pytest

import hlotrace as jax
from hlotrace.runtime.mlir import bindings

TEXT = jax.jit(lambda x: x + 1).lower(1.0).as_text()


def test_the_context_of_modules_to_compile_is_made_anew_now_and_then(monkeypatch):
    monkeypatch.setattr(bindings, "_READ", 3 * len(TEXT))
    contexts = [bindings.module_to_compile(TEXT).context for _ in range(8)]
    assert 1 < len({id(c) for c in contexts}) < 8
    assert bindings.parse_module(TEXT).context is bindings.context() not in contexts


def test_each_thread_has_contexts_of_its_own():
    found = [bindings.context(), bindings.module_to_compile(TEXT).context]
    thread = threading.Thread(target=lambda: found.extend(
        [bindings.context(), bindings.module_to_compile(TEXT).context]))
    thread.start()
    thread.join()
    assert len({id(c) for c in found}) == 4


IN_CALLBACKS = """
import numpy as np
import hlotrace as jax
from hlotrace import numpy as jnp
from hlotrace.runtime import evaluate
from hlotrace.runtime.executables import compilation

compilation._SEVERAL = 0
jax.config.update("jax_enable_compilation_cache", False)
mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
for n in range(25):
    for table in evaluate._applications, evaluate._ready, compilation._loaded:
        table.clear()
    f = lambda x: jax.pure_callback(lambda v: np.asarray(jnp.asarray(v) + n), jax.typeof(x), x)
    whole = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"), check_vma=False))
    np.testing.assert_array_equal(whole(jnp.arange(8.0)), np.arange(8) + n)
"""


def test_programs_are_compiled_in_callbacks_of_many_devices():
    """In jaxlib's own threads: what is local to them ends with each callback."""
    forked.run(IN_CALLBACKS, check=True, XLA_FLAGS="--xla_force_host_platform_device_count=8")


@pytest.mark.parametrize("parse", [bindings.parse_module, bindings.module_to_compile])
def test_a_text_that_does_not_parse_is_an_error(parse):
    with pytest.raises(bindings.ir.MLIRError, match="Unable to parse module"):
        parse('"no_such_operation"(')
