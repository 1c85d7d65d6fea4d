"""SciPy's linear algebra, on batches of matrices (..., m, n) wherever there is no note that says otherwise.

    matrices          matrices made of a few numbers
    solving           solving, with matrices and with their factors
    factorizations    eigenvalues, singular values, QR, Schur
    functions         the exponential and other functions of matrices, polar, Sylvester
"""
from ...core.surface.public import export_names as _offer
from .factorizations import *
from .matrix_functions import *
from .solvers import *
from .special_matrices import *

_offer(globals())
