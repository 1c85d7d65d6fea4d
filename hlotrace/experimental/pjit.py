"""`pjit`, which `jit` was once called where arrays lie over several devices."""
from ..api.jit import jit as pjit
from ..core.surface.public import export_names

__all__ = ["pjit"]

export_names(globals())
