"""SciPy's distributions and statistics: each distribution is a module of functions, `norm.logpdf(x, loc, scale)`.

    law          how such a module is made from its row
    shown        what their examples print
    laws         the rows: distributions of one variable
    several      distributions of several variables
    samples      statistics of samples
    density      densities estimated from samples
"""
from ...core.public import offer as _offer
from .law import module_of as _module_of
from .laws import LAWS as _LAWS

for _name, _law in _LAWS.items():
    globals()[_name] = _module_of(_name, _law, __name__)

_offer(globals(), *_LAWS)
