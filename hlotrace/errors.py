"""hlotrace.errors: the exception classes, under JAX's names."""
from .core.errors import *
from .core.surface.public import install_getattr as _explain
from .runtime.binding import JaxRuntimeError

_explain(globals())
