"""JAX's `extend`: what libraries take that add operations or read programs."""
from ..core.surface.public import offer as _offer

_offer(globals(), homes={"": "backend core ifrt_programs linear_util lowering mlir random sharding "
                         "source_info_util"})
