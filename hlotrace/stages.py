"""hlotrace.stages: the results of tracing, lowering and compiling ahead of time."""
from .api.jit import JitFunction as Wrapped
from .api.stages import ArgInfo, Compiled, CompilerOptions, Lowered, Traced
from .core.surface.public import export_names as _offer

_offer(globals())
