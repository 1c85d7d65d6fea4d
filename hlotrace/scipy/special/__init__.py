"""SciPy's special functions."""
from ...core.public import offer as _offer
from .closed import *
from .harmonics import *
from .integrals import *

_offer(globals())
