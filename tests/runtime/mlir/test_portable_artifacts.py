"""StableHLO as portable bytes: what is written is read, and its functions go into other programs under names
of their own."""
import re

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.runtime.mlir import portable_artifacts

pytestmark = pytest.mark.quick

TEXT = jax.jit(lambda x: jnp.sin(x) + 1).lower(np.ones(3, np.float32)).as_text()
TWO = """module @m {
  func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = call @helper(%x) : (tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func private @helper(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = stablehlo.custom_call @one(%x) : (tensor<2xf32>) -> tensor<2xf32>
    %z = stablehlo.custom_call @two(%y) : (tensor<2xf32>) -> tensor<2xf32>
    %w = stablehlo.custom_call @one(%z) : (tensor<2xf32>) -> tensor<2xf32>
    return %w : tensor<2xf32>
  }
}
"""
CALLS = """module @m {
  func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>
    %z = call @g(%y) : (tensor<2xf32>) -> tensor<2xf32>
    return %z : tensor<2xf32>
  }
  func.func private @f(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = stablehlo.sine %x : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func private @g(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = stablehlo.cosine %x : tensor<2xf32>
    return %y : tensor<2xf32>
  }
}
"""
OPEN = """module @m {
  func.func public @main(%n: tensor<i32>, %x: tensor<?x2xf32>) -> tensor<?x2xf32> {
    %y = stablehlo.sine %x : tensor<?x2xf32>
    return %y : tensor<?x2xf32>
  }
}
"""
SPLIT = """module @m {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    %y = sdy.sharding_constraint %x <@mesh, [{"y"}]> : tensor<8xf32>
    return %y : tensor<8xf32>
  }
}
"""


def test_what_is_written_is_read():
    artifact = portable_artifacts.write(TEXT)
    assert isinstance(artifact, bytes) and portable_artifacts.write(TEXT) == artifact
    again = portable_artifacts.text(artifact)
    assert "stablehlo.sine" in again and "tensor<3xf32>" in again
    assert portable_artifacts.write(again) == artifact


@pytest.mark.parametrize("artifact", [b"no artifact", portable_artifacts.write(TEXT)[:40]])
def test_what_does_not_read_is_said(artifact):
    with pytest.raises(ValueError, match="does not read as a portable artifact of StableHLO"):
        portable_artifacts.read(artifact)


def functions(text, names=None, mesh=None, types=None):
    return portable_artifacts.functions(
        portable_artifacts.write(text), names or (lambda name: f"own_{name}"), mesh, False, types)


def test_functions_are_private_under_names_of_their_own():
    main, texts, targets = functions(TWO)
    assert main == "own_exported" and targets == ["one", "two"]
    assert [text.split("(")[0].strip() for text in texts] == [
        "func.func private @own_exported", "func.func private @own_helper"]
    assert "call @own_helper(" in texts[0] and "@main" not in "".join(texts)
    assert all(line.startswith("  ") for text in texts for line in text.splitlines())


def test_a_new_name_may_be_the_old_one_of_another():
    swapped = {"exported": "main", "f": "g", "g": "f"}
    main, texts, _ = functions(CALLS, swapped.get)
    assert main == "main" and re.findall(r"call @(\w+)", texts[0]) == ["g", "f"]
    assert ["stablehlo.sine" in text for text in texts] == [False, True, False] and "private @g(" in texts[1]


@pytest.mark.parametrize("size", [1, 5])
def test_open_sizes_become_those_of_the_arguments(size):
    main, texts, _ = functions(OPEN, types=[f"tensor<{size}x2xf32>"])
    written = "".join(texts)
    assert "stablehlo.sine %" in written and f"tensor<{size}x2xf32>" in written and "?" not in written
    assert f"@{main}(" in written


def test_meshes_are_named_by_the_program_that_takes_them():
    asked = []

    def mesh(axes):
        asked.append(axes)
        return "of_the_caller"
    _, (text,), _ = functions(SPLIT, mesh=mesh)
    assert asked == [{"x": 2, "y": 4}] and text.count("@of_the_caller") == 2
    _, (text,), _ = functions(SPLIT)
    assert "sdy" not in text and "return %arg0" in text
