"""Sparse arrays, under the names that JAX has for them.

`BCOO` has the operations; `BCSR`, `COO`, `CSR` and `CSC` are other formats over them.  `sparsify` makes of a
function of arrays one that takes sparse ones.
"""
from ...core.surface.public import export_names as _offer
from .ad import grad, jacfwd, jacobian, jacrev, value_and_grad
from .bcoo import *
from .bcoo_products import *
from .bcoo_shapes import *
from .bcsr import *
from .constructors import empty, eye, random_bcoo
from .coo import *
from .sparse_array import CuSparseEfficiencyWarning, JAXSparse, SparseEfficiencyError, SparseEfficiencyWarning
from .sparsify import SparseTracer, sparsify, todense, todense_p

_offer(globals(), "ad", lazy={"": "linalg transform util"})
