"""NumPy's functions on traced and compiled arrays, with JAX's names, dtypes and weak types."""
from numpy import (
    e,
    euler_gamma,
    get_printoptions,
    inf,
    iterable,
    load,
    nan,
    newaxis,
    pi,
    printoptions,
    save,
    savez,
    set_printoptions,
)

from ..core.array import Array as ndarray
from . import array_methods
from .compound import *
from .contraction import *
from .creation import *
from .dtype_objects import *
from .index_functions import *
from .indexing import *
from .numerical import *
from .padding import *
from .reductions import *
from .sets import *
from .shaping import *
from .sorting import *
from .statistics import *
from .ufunc import *
from .ufuncs import *
from .util import broadcast_shapes as broadcast_shapes
from .vectorize import *

array_methods.install(globals())
