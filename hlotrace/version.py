"""hlotrace.version: which hlotrace this is."""
from . import __version__, __version_info__
from .core.surface.public import install_getattr as _explain

_explain(globals())
