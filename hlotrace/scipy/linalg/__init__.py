"""SciPy's linear algebra, on batches of matrices (..., m, n) unless a function says otherwise.

    special_matrices    matrices made of a few numbers
    solvers             solving, with matrices and with their factors
    factorizations      eigenvalues, singular values, QR, Schur
    matrix_functions    the exponential and other functions of matrices, polar, Sylvester
"""
from ...core.surface.public import export_names as _offer
from .factorizations import *
from .matrix_functions import *
from .solvers import *
from .special_matrices import *

_offer(globals())
