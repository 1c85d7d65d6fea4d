"""hlotrace.dtypes: dtypes and the promotion lattice."""
from .core.dtypes import bfloat16, extended, finfo, float0, iinfo, issubdtype, prng_key
from .core.dtypes import canonicalize as canonicalize_dtype
from .core.errors import TypePromotionError
from .numpy.util import result_type
