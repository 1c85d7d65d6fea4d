"""What compiling for chips that are not here says where the compiler refuses."""
from types import SimpleNamespace

import pytest

from hlotrace.runtime import binding, callback_guard
from hlotrace.runtime.devices import topology

pytestmark = pytest.mark.quick

TEXT = "func.func public @main() -> tensor<f32> {\n  %0 = stablehlo.constant dense<0.0> : tensor<f32>\n  return %0 : tensor<f32>\n}"


@pytest.mark.parametrize(("message", "error", "words"), [
    (lambda: str(callback_guard.carried(ValueError("the user's"))), ValueError, "^the user's$"),
    (lambda: "Custom emitter for hlotrace_partitioning not found", NotImplementedError, "f cannot be compiled for a chip.*shard_map"),
    (lambda: "required for arguments (20.0G) exceeds available HBM (16.0G)", binding.JaxRuntimeError,
     "RESOURCE_EXHAUSTED: f does not fit: its arguments need 20.0 GiB"),
    (lambda: "something else", binding.JaxRuntimeError, "^something else$")])
def test_words_of_the_compiler(message, error, words, monkeypatch):
    def compile(*_):
        raise binding.JaxRuntimeError(message())
    monkeypatch.setattr(binding, "DeviceList", tuple)
    device = SimpleNamespace(device_kind="a chip", platform="tpu", client=SimpleNamespace(compile=compile))
    with pytest.raises(error, match=words):
        topology.compile_text(TEXT, [device], options=object(), name="f")
