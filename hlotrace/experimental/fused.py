"""Functions that are one kernel, under the name that JAX has for them."""
from ..api.frontend_attributes import fused
from ..core.surface.public import export_names
from ..interpreters import ad, batching  # noqa: F401 - found here in JAX too
from ..primitives.programs.frontend_attributes import tagged_call_p as fused_p

__all__ = ["fused", "fused_p"]

export_names(globals())
