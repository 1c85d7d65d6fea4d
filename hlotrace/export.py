"""hlotrace.export: jitted functions as portable programs, for other processes, later versions and other systems."""
from .api.artifacts import register_namedtuple_serialization, register_pytree_node_serialization
from .api.export import (
    DisabledSafetyCheck,
    Exported,
    default_export_platform,
    deserialize,
    export,
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
    symbolic_args_specs,
)
from .core.dimension import is_symbolic_dim, symbolic_dim_bounds
from .core.public import offer as _offer
from .core.symbolic import SymbolicScope, symbolic_shape

_offer(globals())
