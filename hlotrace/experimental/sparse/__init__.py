"""Sparse arrays, under the names that JAX has for them.

`BCOO` has the operations; `BCSR`, `COO`, `CSR` and `CSC` are other formats over them.  `sparsify` makes of a
function of arrays one that takes sparse ones.
"""
from ...core.surface.public import export_names as _offer
from .ad import grad, jacfwd, jacobian, jacrev, value_and_grad
from .bcoo import (
    BCOO,
    bcoo_extract,
    bcoo_fromdense,
    bcoo_reduce_sum,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
    bcoo_update_layout,
)
from .bcoo_products import (
    bcoo_conv_general_dilated,
    bcoo_dot_general,
    bcoo_dot_general_sampled,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
)
from .bcoo_shapes import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_gather,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
)
from .bcsr import (
    BCSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_extract,
    bcsr_fromdense,
    bcsr_sum_duplicates,
    bcsr_todense,
)
from .constructors import empty, eye, random_bcoo
from .coo import (
    COO,
    CSC,
    CSR,
    coo_fromdense,
    coo_fromdense_p,
    coo_matmat,
    coo_matmat_p,
    coo_matvec,
    coo_matvec_p,
    coo_todense,
    coo_todense_p,
    csr_fromdense,
    csr_fromdense_p,
    csr_matmat,
    csr_matmat_p,
    csr_matvec,
    csr_matvec_p,
    csr_todense,
    csr_todense_p,
)
from .sparse_array import CuSparseEfficiencyWarning, JAXSparse, SparseEfficiencyError, SparseEfficiencyWarning
from .sparsify import SparseTracer, sparsify, todense, todense_p

_offer(globals(), "ad", lazy={"": "linalg"})
