"""Programs are written to a folder where one asks for it."""
import gzip
import os

import pytest
from option_changes import X

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.config import override
from hlotrace.runtime.executables.dumps import _field


def test_programs_are_dumped(tmp_path):
    folder = tmp_path / "new"
    with override("jax_dump_ir_to", str(folder)):
        for modes, debug in (("stablehlo", True), ("jaxpr", True), ("stablehlo,jaxpr,eqn_count_pprof", False)):
            with override("jax_dump_ir_modes", modes), override("jax_include_debug_info_in_dumps", debug):
                def dumped(x, modes=modes):
                    return jnp.tanh(x) @ x + len(modes)
                jax.jit(dumped)(X)
    names = sorted(os.listdir(folder))
    kinds = [name.partition("_dumped")[2] for name in names]
    assert sorted(kinds) == sorted(["_compile.mlir", ".jaxpr.txt", "_compile.mlir", ".jaxpr.txt", ".eqn_count_pprof"])
    texts = [(folder / name).read_text() for name in names if name.endswith(".mlir")]
    assert ["test_dumps.py" in text for text in texts] == [True, False] and "stablehlo.tanh" in texts[1]
    assert "tanh" in next((folder / name).read_text() for name in names if name.endswith("jaxpr.txt"))
    profile = gzip.decompress(next((folder / name).read_bytes() for name in names if name.endswith("pprof")))
    assert b"test_dumps.py" in profile and _field(6, b"equations") in profile
    with pytest.raises(ValueError, match="jax_dump_ir_modes: new enum value must be .*, got mlir"):
        jax.config.update("jax_dump_ir_modes", "mlir")
    (tmp_path / "file").write_text("")
    with override("jax_dump_ir_to", str(tmp_path / "file")), pytest.warns(RuntimeWarning, match="cannot be written"):
        jax.jit(lambda x: x - 0.0625)(X)
