"""hlotrace.debug: look at values from inside compiled and transformed functions, and at how arrays lie over devices."""
from .api.callbacks import debug_callback as callback
from .api.callbacks import debug_print as print
from .api.visualize import visualize_array_sharding, visualize_sharding

__all__ = ["callback", "print", "visualize_array_sharding", "visualize_sharding"]
