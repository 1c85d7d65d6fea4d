"""`pjit`, the former name of `jit` for arrays over several devices."""
from ..api.jit import jit as pjit
from ..core.surface.public import export_names

__all__ = ["pjit"]

export_names(globals())
