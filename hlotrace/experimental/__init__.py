"""hlotrace.experimental: names that JAX keeps here."""
from ..api.callbacks import io_callback
from ..api.misc import enable_x64
from ..core.public import offer as _offer

_offer(globals(), homes={"": "mesh_utils multihost_utils shard_map"})
