"""hlotrace.dtypes: dtypes and the promotion lattice."""
from ml_dtypes import bfloat16, finfo, iinfo

from .core.dtypes import (
    canonicalize as canonicalize_dtype, extended, float0, itemsize_bits, prng_key, scalar_type_of)
from .core.errors import TypePromotionError
from .core.surface.public import export_names as _offer
from .numpy.arrays.dtype_objects import issubdtype
from .numpy.util import result_type

_offer(globals())
