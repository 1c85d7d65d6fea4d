"""SciPy's linear algebra, on batches of matrices (..., m, n) wherever there is no note that says otherwise.

    matrices          matrices made of a few numbers
    solving           solving, with matrices and with their factors
    factorizations    eigenvalues, singular values, QR, Schur
    functions         the exponential and other functions of matrices, polar, Sylvester
"""
from ...core.public import offer as _offer
from .factorizations import *
from .functions import *
from .matrices import *
from .solving import *

_offer(globals())
