"""jaxlib's MLIR bindings: the contexts in which texts are parsed."""
import threading

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


@pytest.mark.parametrize("parse", [bindings.parse_module, bindings.module_to_compile])
def test_a_text_that_does_not_parse_is_an_error(parse):
    with pytest.raises(bindings.ir.MLIRError, match="Unable to parse module"):
        parse('"no_such_operation"(')
