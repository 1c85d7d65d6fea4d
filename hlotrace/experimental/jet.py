"""Taylor-mode differentiation of higher order, under the name that JAX has for it, and rules for primitives.

A rule is called with the operands and, for each, the list of the coefficients of its polynomial (derivatives
by their factorials), zeros written out: `rule(primals_in, series_in, **params) -> (out, out_series)`, two
lists for a primitive with several results.  For what is zero it may give `zero_term`, or `zero_series` for
the whole list.
"""
import math
from functools import partial

import numpy as np

from .. import lax
from ..api.autodiff import giving_way
from ..core import dtypes
from ..core.avals import aval_of, is_arraylike, not_an_array
from ..core.caches import clear_caches
from ..core.config import state
from ..core.primitive import Primitive
from ..core.pytrees import pytree
from ..core.surface.public import export_names
from ..core.trace import entering, is_concrete
from ..extend import linear_util
from ..interpreters.registry import Registry
from ..numpy import asarray, broadcast_to, zeros
from ..primitives.arrays.shape import zeros_of
from ..scipy.special import factorial
from ..transforms import jet as taylor
from ..transforms.jet import JetTrace, JetTracer
from . import pjit

__all__ = ["JetTrace", "JetTracer", "ZeroSeries", "ZeroTerm", "def_comp", "def_deriv", "deflinear", "defzero",
           "deriv_prop", "fact", "jet", "jet2", "jet_fun", "jet_rules", "jet_subtrace", "lax", "linear_prop",
           "pjit", "traceable", "zero_prop", "zero_series", "zero_term"]


def jet(fun, primals, series, factorial_scaled=True):
    """The Taylor polynomial of `fun` along curves, at a cost that grows as the square of its order.

    Griewank & Walther, "Evaluating derivatives", 2nd ed., 2008, chapter 13.

    Args:
        fun: a function of as many arguments as there are primals.
        primals: the points where the curves begin, a tuple of arrays or pytrees of arrays.
        series: for each of them the list of derivatives of its curve there, first to K-th, the same K for
            all; for a pytree a pytree of such lists.
        factorial_scaled: derivatives go in and come out; False: the coefficients of polynomials, which are
            the derivatives divided by k!.
    Returns:
        `(out, out_series)`: the value of `fun` at the primals, and for each array of it the list of K
        derivatives of `fun(*curves)`.
    Raises:
        ValueError: where the series are of several lengths, or have other shapes than their primals.
        TypeError: for an integer with derivatives.
        NotImplementedError: for an operation without a derivative.

    >>> from hlotrace.experimental.jet import jet
    >>> value, derivatives = jet(jnp.exp, (0.,), ((2., 0., 0.),))       # of exp(2 t) at 0
    >>> value, [float(d) for d in derivatives]
    (Array(1., dtype=float32, weak_type=True), [2.0, 4.0, 8.0])
    """
    primals, series = tuple(_listed("primals", primals)), tuple(_listed("series", series))
    if len(primals) != len(series):
        raise ValueError(f"jet: there are {len(primals)} primals, and series for {len(series)}: give one "
                         "list for each")
    leaves, in_tree = pytree.tree_flatten(primals)
    paths = pytree.leaf_paths(in_tree)
    lists = [_listed(f"series of primals{path}", s) for path, s in zip(paths, in_tree.flatten_up_to(series))]
    lengths = sorted({len(s) for s in lists})
    if len(lengths) > 1:
        raise ValueError(f"jet: the series must be of one length, got {', '.join(map(str, lengths))}: fill "
                         "the shorter ones with zeros")
    order = lengths[0] if lengths else 0
    factors = [math.factorial(k) if factorial_scaled else 1 for k in range(1, order + 1)]
    terms = [_terms(x, s, path, factors) for x, s, path in zip(leaves, lists, paths)]
    out_tree = None

    def flat(*xs):
        nonlocal out_tree
        outs, out_tree = pytree.tree_flatten(fun(*in_tree.unflatten(xs)))
        for out, path in zip(outs, pytree.leaf_paths(out_tree)):
            if not is_arraylike(out):
                raise TypeError(f"jet: result{path}: {not_an_array(out)}")
        return outs
    if order:
        outs, moved = taylor.jet_flat(flat, order, leaves, terms)
    else:
        outs, moved = (flat(*leaves), [None] * out_tree.num_leaves)
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
            raise TypeError(f"jet: primals{path} is {aval.str_short()}, which has no derivatives: make it a "
                            "float, or its series zeros")
        return None
    terms = []
    for k, (s, factor) in enumerate(zip(series, factors), 1):
        weak = aval.weak_type and aval_of(s).weak_type
        s = giving_way(asarray(s, aval.dtype), weak)
        if s.shape not in (aval.shape, ()):
            raise ValueError(f"jet: derivative {k} of primals{path} has shape {s.shape}, the primal has "
                             f"{aval.shape}")
        terms.append(broadcast_to(s, aval.shape) / factor if factor != 1 else broadcast_to(s, aval.shape))
    return terms


def _derivative(out, term, factor):
    if term is None:
        aval = aval_of(out)
        return giving_way(zeros(aval.shape, aval.dtype if dtypes.is_inexact(aval.dtype) else None),
                          aval.weak_type)
    return term * factor if factor != 1 else term


def jet2(fun, primals, series, *, factorial_scaled=False):
    """As `jet`, with the coefficients of polynomials: derivatives divided by their factorials.

    >>> from hlotrace.experimental.jet import jet2
    >>> [float(c) for c in jet2(jnp.exp, (0.,), ((2., 0.),))[1]]        # of exp(2 t) at 0
    [2.0, 2.0]
    """
    return jet(fun, primals, series, factorial_scaled)


def fact(n):
    """n! as a float.

    >>> from hlotrace.experimental.jet import fact
    >>> fact(4).round()
    Array(24., dtype=float32, weak_type=True)
    """
    return factorial(n)


# --- rules ----------------------------------------------------------------------------------------

class ZeroTerm:
    """A coefficient that is known to be zero; a pytree without leaves.  There is one, `zero_term`."""


class ZeroSeries:
    """The coefficients of a constant value; a pytree without leaves.  There is one, `zero_series`."""


zero_term, zero_series = ZeroTerm(), ZeroSeries()
pytree.register_pytree_node(ZeroTerm, lambda _: ((), None), lambda *_: zero_term)
pytree.register_pytree_node(ZeroSeries, lambda _: ((), None), lambda *_: zero_series)


def _from_jax(primitive, rule, _, order, primals, series, params):
    """A rule in JAX's signature, called as ours are."""
    outs, out_series = rule(tuple(primals), [_written(p, s, order) for p, s in zip(primals, series)],
                            **params)
    if not primitive.multiple_results:
        return outs, _read(primitive, out_series, order)
    return list(outs), [_read(primitive, s, order) for s in out_series]


def _written(primal, series, order):
    aval = aval_of(primal).strip_weak_type()
    return taylor.filled(series, order, aval) if dtypes.is_inexact(aval.dtype) else [zeros_of(aval)] * order


def _read(primitive, series, order):
    if type(series) is ZeroSeries:
        return None
    if not isinstance(series, (tuple, list)) or len(series) != order:
        raise ValueError(f"jet: the rule of {primitive.name} gives {series!r:.60} as a series: give a list "
                         f"of {order} coefficients, or zero_series")
    return [None if type(term) is ZeroTerm else term for term in series]


def _to_jax(primitive, rule, primals_in, series_in, **params):
    """One of our rules, called as JAX's are."""
    lengths = [len(s) for s in series_in if type(s) is not ZeroSeries]
    if not lengths:
        return zero_prop(primitive, primals_in, series_in, **params)
    series = [None if type(s) is ZeroSeries else _read(primitive, s, lengths[0]) for s in series_in]
    outs, found = rule(primitive, lengths[0], list(primals_in), series, params)
    return outs, [_shown(s) for s in found] if primitive.multiple_results else _shown(found)


def _shown(series):
    return zero_series if series is None else [zero_term if term is None else term for term in series]


class _Rules(Registry):
    """The rules by primitive: a primitive without one of its own has that of its derivative."""

    def _rule(self, primitive):
        if not isinstance(primitive, Primitive):
            return None
        rule = taylor.rule_of(primitive)
        return None if primitive.jvp is None and rule is taylor.by_derivative else rule

    def _put(self, primitive, rule):
        if rule is None:
            del taylor.RULES.given[primitive]
        else:
            taylor.RULES.given[primitive] = rule
        clear_caches()      # programs that the old rule made


jet_rules = _Rules("jet_rules", "", _from_jax, _to_jax)


def deflinear(prim):
    """Give a primitive the rule of what is linear in all of its operands together.

    >>> twice = jax.extend.core.Primitive("twice")
    >>> _ = twice.def_impl(lambda x: 2 * x), jet.deflinear(twice)
    >>> [float(d) for d in jet.jet(twice.bind, (1.,), ((1., 5.),))[1]]
    [2.0, 10.0]
    """
    jet_rules[prim] = partial(linear_prop, prim)


def linear_prop(prim, primals_in, series_in, **params):
    """The rule of what is linear in all operands together: each coefficient is that of the operands' ones.

    >>> out, series = jet.linear_prop(jax.lax.neg_p, (1.,), ([2., 3.],))
    >>> float(out), [float(c) for c in series]
    (-1.0, [-2.0, -3.0])
    """
    return _to_jax(prim, taylor.linear, primals_in, series_in, **params)


def defzero(prim):
    """Give a primitive the rule of what does not move where its operands do, such as a step function.

    >>> stairs = jax.extend.core.Primitive("stairs")
    >>> _ = stairs.def_impl(jnp.floor), jet.defzero(stairs)
    >>> jet.jet(stairs.bind, (1.5,), ((1.,),))[1]
    [Array(0., dtype=float32, weak_type=True)]
    """
    jet_rules[prim] = partial(zero_prop, prim)


def zero_prop(prim, primals_in, series_in, **params):
    """The rule of what does not move, whatever `series_in` are: the value, and `zero_series`.

    >>> jet.zero_prop(jax.lax.floor_p, (1.5,), ([1.],))[1] is jet.zero_series
    True
    """
    outs = prim.bind(*primals_in, **params)
    return outs, [zero_series for _ in outs] if prim.multiple_results else zero_series


def def_deriv(prim, deriv):
    """Give a primitive of one operand the rule that follows from its derivative, a function of that operand.

    `deriv` does not get the primitive's parameters.

    >>> wave = jax.extend.core.Primitive("wave")
    >>> _ = wave.def_impl(jnp.sin), jet.def_deriv(wave, jnp.cos)
    >>> [float(d) for d in jet.jet(wave.bind, (0.,), ((1., 0., 0.),))[1]]
    [1.0, 0.0, -1.0]
    """
    jet_rules[prim] = lambda primals, series, **params: (prim.bind(*primals, **params),
                                                         _by_slope(deriv, *primals, *series))


def deriv_prop(prim, deriv, primals_in, series_in):
    """The rule of what has one operand and a derivative, a function of it: y' = deriv(x) x'.

    >>> out, series = jet.deriv_prop(jax.lax.sin_p, jnp.cos, (0.,), ([1., 0., 0.],))
    >>> [round(float(c), 4) for c in series]
    [1.0, 0.0, -0.1667]
    """
    return prim.bind(*primals_in), _by_slope(deriv, *primals_in, *series_in)


def _by_slope(deriv, x, series):
    series = [asarray(term, aval_of(x).dtype) for term in series]
    (first,), (rest,) = taylor.jet_flat(lambda x: [deriv(x)], len(series) - 1, [x], [series[:-1]])
    slope = [first, *(rest or [None] * (len(series) - 1))]
    return _shown([taylor.driven([x, *series], slope, k) for k in range(1, len(series) + 1)])


def def_comp(prim, comp, **kwargs):
    """Give a primitive the rule of a function that computes the same of its operands.

    It gets `kwargs`, and not the primitive's parameters.

    >>> cubed = jax.extend.core.Primitive("cubed")
    >>> _ = cubed.def_impl(lambda x: x**3), jet.def_comp(cubed, lambda x: x * x * x)
    >>> [float(d) for d in jet.jet(cubed.bind, (1.,), ((1., 0., 0.),))[1]]
    [3.0, 6.0, 6.0]
    """
    jet_rules[prim] = lambda primals, series, **_: jet2(partial(comp, **kwargs), primals, series)


# --- wrapped functions of flat lists --------------------------------------------------------------

@linear_util.transformation2
def jet_subtrace(f, trace, order, primals, series):
    """A WrappedFun of a flat list as one of `(trace, order, primals, series)`: (outs, coefficients).

    `trace` is where operations on coefficients are done, `series` lists of these. `jet_fun` calls it.

    >>> fun = jet.jet_subtrace(jax.extend.linear_util.wrap_init(lambda x: [x * x]))
    >>> jet.jet_fun(fun, 2).call_wrapped([3.], [[1., 0.]])[1]
    [[Array(6., dtype=float32), Array(1., dtype=float32)]]
    """
    with entering(trace):
        outs, terms = taylor.jet_flat(f, order, primals,
                                      [[asarray(t, aval_of(p).dtype) for t in s]
                                       for p, s in zip(primals, series)])
    return outs, [_shown(s) for s in terms]


@linear_util.transformation2
def jet_fun(f, order, primals, series):
    """What `jet_subtrace` gives as a WrappedFun of `(primals, series)`, with zeros written out.

    >>> fun = jet.jet_subtrace(jax.extend.linear_util.wrap_init(lambda x: [x, 1.0]))
    >>> jet.jet_fun(fun, 1).call_wrapped([3.], [[2.]])[1]
    [[Array(2., dtype=float32)], [Array(0., dtype=float32)]]
    """
    outs, found = f(state.trace, order, primals, series)
    return outs, [taylor.filled(None if type(s) is ZeroSeries
                                else [None if type(t) is ZeroTerm else t for t in s], order,
                                aval_of(x).strip_weak_type()) for x, s in zip(outs, found)]


@linear_util.transformation_with_aux2
def traceable(f, store, in_tree, *primals_and_series):
    """What `jet_fun` gives as a WrappedFun of one flat list; a function that gives the results' structure.

    `in_tree` is the structure of (primals, series).

    >>> fun = jet.jet_subtrace(jax.extend.linear_util.wrap_init(lambda x: [x * x]))
    >>> leaves, in_tree = jax.tree.flatten(([3.], [[1.]]))
    >>> flat, out_tree = jet.traceable(jet.jet_fun(fun, 1), in_tree)
    >>> [float(x) for x in flat.call_wrapped(*leaves)]
    [9.0, 6.0]
    """
    leaves, out_tree = pytree.tree_flatten(f(*in_tree.unflatten(primals_and_series)))
    store.store(out_tree)
    return leaves


export_names(globals())
