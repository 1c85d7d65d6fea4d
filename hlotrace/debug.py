"""hlotrace.debug: look at values from inside compiled and transformed functions."""
from .api.callbacks import debug_callback as callback
from .api.callbacks import debug_print as print

__all__ = ["callback", "print"]
