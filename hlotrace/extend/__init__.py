"""JAX's `extend`: what libraries take that add operations or read programs."""
from ..core.surface.public import export_names as _offer

_offer(globals(), lazy={"": "backend core ifrt_programs linear_util lowering mlir random sharding "
                         "source_info_util xla"})
