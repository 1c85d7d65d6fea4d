"""hlotrace.custom_batching: functions whose batching the user says."""
from .api.custom_batching import custom_vmap, sequential_vmap
from .core.surface.public import export_names as _offer

_offer(globals())
