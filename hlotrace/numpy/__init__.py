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
from .arithmetic import *
from .bits import *
from .calculus import *
from .comparison import *
from .conditions import *
from .contraction import *
from .creation import *
from .dtype_objects import *
from .floats import *
from .grids import *
from .indexing import *
from .mapping import *
from .padding import *
from .reductions import *
from .selection import *
from .sets import *
from .shaping import *
from .sorting import *
from .statistics import *
from .ufunc import *
from .ufuncs import *
from .windows import *

array_methods.install(globals())
