"""Functions that are one kernel, under the name that JAX has for them."""
from builtins import map as unsafe_map  # noqa: F401 - found here in JAX too, as are the others
from builtins import zip as unsafe_zip  # noqa: F401

from ..api.frontend_attributes import fused
from ..core.surface.public import offer
from ..extend.flat_functions import safe_map as map
from ..extend.flat_functions import safe_zip as zip
from ..interpreters import ad, batching  # noqa: F401
from ..primitives.programs.frontend_attributes import tagged_call_p as fused_p

__all__ = ["fused", "fused_p", "map", "zip"]

offer(globals())
