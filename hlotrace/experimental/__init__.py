"""hlotrace.experimental: names that JAX has here."""
from ..api.contexts import enable_x64
from ..api.external.callbacks import io_callback
from ..core.hitypes import cur_qdd
from ..core.surface.public import export_names as _offer

_offer(globals(), lazy={"": "array_serialization buffer_callback checkify colocated_python compilation_cache "
                         "compute_on control_deps custom_partitioning fused hijax jet key_reuse layout "
                         "mesh_utils multihost_utils ode pjit profiler random rnn roofline scheduling_groups "
                         "serialize_executable shard_alike shard_map sparse topologies "
                         "transfer xla_metadata"})
