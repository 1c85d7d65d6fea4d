"""hlotrace.export: jitted functions as portable programs, for other processes, versions and systems."""
from ..core.surface.public import export_names as _offer
from ..core.symbolic.dimension import is_symbolic_dim, symbolic_dim_bounds
from ..core.symbolic.scope import SymbolicScope, symbolic_shape
from .exported import (
    DisabledSafetyCheck, Exported, deserialize, maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version)
from .exporting import default_export_platform, export, symbolic_args_specs
from .format import register_namedtuple_serialization, register_pytree_node_serialization

_offer(globals())
