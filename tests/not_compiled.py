"""Programs that are traced and lowered, not compiled; their results are ones.  For tests of what comes before."""
import contextlib

import numpy as np
import pytest

from hlotrace import clear_caches
from hlotrace.core.avals import physical
from hlotrace.runtime import array_impl
from hlotrace.runtime.executables import compilation
from hlotrace.runtime.executables.executable import Executable


class Ones(Executable):
    """Its program is its own, and what runs it."""

    def __init__(self, lowered, device):
        self.lowered = lowered
        super().__init__(self, lowered, device, 0.0)
        self.execute = self.execute_sharded
        self.dispatch = lambda: lambda *operands: self.consume_with_handlers(())

    def execute_sharded(self, buffers):
        return self

    def consume_with_handlers(self, handlers):
        return [array_impl.as_array(np.ones(a.shape, a.dtype))._buf for a in map(physical, self.out_avals)]


@contextlib.contextmanager
def ones_for_results():
    """Programs of one device without effects are not compiled here, and forgotten after."""
    compile_whole = compilation.compile_whole

    def compile_nothing(lowered, device, compiler_options=None, pieces=1):
        if lowered.partition or lowered.effects or lowered.callbacks or lowered.failures:
            return compile_whole(lowered, device, compiler_options, pieces)
        return Ones(lowered, device)

    clear_caches()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compilation, "compile_whole", compile_nothing)
            yield
    finally:
        clear_caches()
