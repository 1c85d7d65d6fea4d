"""SciPy's special functions."""
from ...core.surface.public import export_names as _offer
from .closed_form import *
from .harmonics import *
from .series import *

_offer(globals())
