"""SciPy's distributions and statistics; a distribution is a module of functions, `norm.logpdf(x, loc)`.

    doc_values      what the examples of the table print
    distribution    how a module is made from a row of the table
    distributions   the table: distributions of one variable
    multivariate    distributions of several variables
    descriptive     statistics of samples
    density         a density estimated from samples
"""
from ...core.surface.public import export_names as _offer
from .density import gaussian_kde
from .descriptive import mode, rankdata, sem
from .distribution import as_module as _as_module, module_of as _module_of
from .distributions import LAWS as _LAWS
from .multivariate import SEVERAL as _SEVERAL

for _name, _law in _LAWS.items():
    globals()[_name] = _module_of(_name, _law, __name__)
for _name, _functions in _SEVERAL.items():
    globals()[_name] = _as_module(_name, "A distribution of several variables.", _functions, __name__)

_offer(globals(), *_LAWS, *_SEVERAL)
