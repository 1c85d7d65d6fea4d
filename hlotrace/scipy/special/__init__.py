"""SciPy's special functions."""
from ...core.surface.public import offer as _offer
from .closed_form import *
from .harmonics import *
from .series import *

_offer(globals())
