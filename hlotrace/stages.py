"""hlotrace.stages: the results of tracing, lowering and compiling ahead of time."""
from .api.jit import JitFunction as Wrapped
from .api.stages import Compiled, Lowered, Traced
