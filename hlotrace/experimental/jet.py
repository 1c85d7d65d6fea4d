"""Taylor-mode differentiation of higher order, under the name that JAX has for it."""
import math

import numpy as np

from ..core import dtypes, tree
from ..core.avals import aval_of, is_arraylike, not_an_array
from ..core.public import offer
from ..core.trace import is_concrete
from ..numpy import asarray, broadcast_to, zeros
from ..transforms.jet import jet_flat

__all__ = ["jet"]


def jet(fun, primals, series, factorial_scaled=True):
    """The Taylor polynomial of `fun` along curves.

    Args:
      fun: a function of as many arguments as there are primals.
      primals: the points where the curves begin, a tuple of arrays or pytrees of arrays.
      series: for each of them the list of derivatives of its curve there, first to K-th, the same K for all; for a pytree
        a pytree of such lists.
      factorial_scaled: derivatives go in and come out; False: the coefficients of polynomials, which are the derivatives
        divided by k!.

    Returns `(out, out_series)`: the value of `fun` at the primals, and for each array of it the list of K derivatives of
    `fun(*curves)`, at a cost that grows as K**2.

    Raises: ValueError where the series are of several lengths, or have other shapes than their primals; TypeError for an
    integer with derivatives; NotImplementedError for an operation without a derivative.

    Griewank & Walther, "Evaluating derivatives", 2nd ed., 2008, chapter 13.

    >>> from hlotrace.experimental.jet import jet
    >>> value, derivatives = jet(jnp.exp, (0.,), ((2., 0., 0.),))       # of exp(2 t) at 0
    >>> value, [float(d) for d in derivatives]
    (Array(1., dtype=float32, weak_type=True), [2.0, 4.0, 8.0])
    """
    primals, series = tuple(_listed("primals", primals)), tuple(_listed("series", series))
    if len(primals) != len(series):
        raise ValueError(f"jet: there are {len(primals)} primals, and series for {len(series)}: give one list for each")
    leaves, in_tree = tree.tree_flatten(primals)
    paths = tree.leaf_paths(in_tree)
    lists = [_listed(f"series of primals{path}", s) for path, s in zip(paths, in_tree.flatten_up_to(series))]
    lengths = sorted({len(s) for s in lists})
    if len(lengths) > 1:
        raise ValueError(f"jet: the series must be of one length, got {', '.join(map(str, lengths))}: fill the shorter ones "
                         "with zeros")
    order = lengths[0] if lengths else 0
    factors = [math.factorial(k) if factorial_scaled else 1 for k in range(1, order + 1)]
    terms = [_terms(x, s, path, factors) for x, s, path in zip(leaves, lists, paths)]
    out_tree = None

    def flat(*xs):
        nonlocal out_tree
        outs, out_tree = tree.tree_flatten(fun(*in_tree.unflatten(xs)))
        for out, path in zip(outs, tree.leaf_paths(out_tree)):
            if not is_arraylike(out):
                raise TypeError(f"jet: result{path}: {not_an_array(out)}")
        return outs
    outs, moved = jet_flat(flat, order, leaves, terms) if order else (flat(*leaves), [None] * out_tree.num_leaves)
    derivatives = [[_derivative(out, t, f) for t, f in zip(found or [None] * order, factors)]
                   for out, found in zip(outs, moved)]
    return out_tree.unflatten(outs), out_tree.unflatten(derivatives)


def _listed(name, values):
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"jet: {name} must be a tuple or a list, got {values!r:.60}: write ({name},) for one"
                        if name in ("primals", "series") else
                        f"jet: the {name} must be a tuple or a list of derivatives, got {values!r:.60}")
    return values


def _terms(x, series, path, factors):
    """The coefficients of a primal's curve, or None where all are known to be zero."""
    aval = aval_of(x)
    if not dtypes.is_inexact(aval.dtype):
        if not all(is_concrete(s) and not np.any(np.asarray(s)) for s in series):
            raise TypeError(f"jet: primals{path} is {aval.str_short()}, which has no derivatives: make it a float, or its "
                            "series zeros")
        return None
    terms = []
    for k, (s, factor) in enumerate(zip(series, factors), 1):
        s = asarray(s, aval.dtype)
        if s.shape not in (aval.shape, ()):
            raise ValueError(f"jet: derivative {k} of primals{path} has shape {s.shape}, the primal has {aval.shape}")
        terms.append(broadcast_to(s, aval.shape) / factor if factor != 1 else broadcast_to(s, aval.shape))
    return terms


def _derivative(out, term, factor):
    if term is None:
        aval = aval_of(out).tangent()
        return zeros(aval.shape, aval.dtype) if aval.dtype != dtypes.float0 else np.zeros(aval.shape, dtypes.float0)
    return term * factor if factor != 1 else term


offer(globals())
