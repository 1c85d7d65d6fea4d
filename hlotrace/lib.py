"""hlotrace.lib: the version of jaxlib."""
from .core.surface.public import install_getattr as _explain
from .runtime.binding import jaxlib_version as __version__

_explain(globals())
