"""jaxlib's makers of programs for runtimes over IFRT, for the libraries that bring such a runtime."""
from ..core.surface.public import export_names
from ..runtime.binding import ifrt_programs

__all__ = ["ifrt_programs"]

export_names(globals())
