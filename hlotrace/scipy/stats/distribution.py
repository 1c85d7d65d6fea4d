"""The module of a distribution, made from its row in a table: masks, loc and scale, and what follows.

A row has some functions of a distribution in standard form, of values inside of the support and of allowed
parameters.  From log densities follow densities, from distribution functions their complements and
logarithms, and from a symmetry the other tail.  Values outside of the support and parameters that are not
allowed are masked here, once for all.
"""
import inspect
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NamedTuple

from ... import numpy as jnp
from ...core.surface.public import export_names
from ..special.promotion import special
from .doc_values import SHOWN

INF = float("inf")
# What each function is, and its values below and above the support.
FUNCTIONS = {
    "logpdf": ("Logarithm of the density", -INF, -INF),
    "pdf": ("Density", 0, 0),
    "logpmf": ("Logarithm of the probability", -INF, -INF),
    "pmf": ("Probability", 0, 0),
    "cdf": ("Probability of at most x", 0, 1),
    "sf": ("Probability of more than x", 1, 0),
    "logcdf": ("Logarithm of the probability of at most x, exact where that is small or near 1", -INF, 0),
    "logsf": ("Logarithm of the probability of more than x, exact where that is small or near 1", 0, -INF),
    "ppf": ("Value that is not exceeded with probability q; NaN for q outside of [0, 1]",),
    "isf": ("Value that is exceeded with probability q; NaN for q outside of [0, 1]",),
    "entropy": ("Entropy",),
}
_PARAMETER = inspect.Parameter.POSITIONAL_OR_KEYWORD


class Law(NamedTuple):
    """A row.  `forms`: functions of (z, *parameters) by their names, NaN for a z of NaN."""
    about: str                              # as it ends the first line of docstrings
    forms: dict[str, Callable]
    parameters: str = ""                    # besides loc, and scale
    # of the parameters: its low end, a point inside, its high end
    support: Callable = lambda *_: (-INF, 0.5, INF)
    valid: Callable = lambda *_: True       # of the parameters
    symmetric: bool = False                 # does -z have the same distribution?
    counts: bool = False                    # of integers, which have no scale
    quantile: str = "q"                     # how `ppf` names its argument


def log1mexp(y):
    """log(1 - exp(-y)) for y > 0  (Maechler, "Accurately Computing log(1 - exp(-|a|))", 2012)."""
    near = y < 0.7
    return jnp.where(near, jnp.log(-jnp.expm1(-jnp.where(near, y, 0.5))),
                     jnp.log1p(-jnp.exp(-jnp.where(near, 1, y))))


def logarithm(tail, other, far=None, place=None):
    """log(tail), which is log(1 - other); by `far` where the tail is too small for a number.

    `far` is evaluated at z = place and parameters of 1 elsewhere.
    """
    def log(z, *parameters):
        t, o = tail(z, *parameters), other(z, *parameters)
        small, under = t < 0.5, (t < 1e3 * float(jnp.finfo(z.dtype).tiny)) & (far is not None)
        value = jnp.where(small, jnp.log(jnp.where(small & ~under, t, 1)), jnp.log1p(-jnp.where(small, 0, o)))
        if far is None:
            return value
        return jnp.where(under, far(jnp.where(under, z, place),
                                    *[jnp.where(under, p, 1) for p in parameters]), value)
    return log


def _mirrored(form, sign=1):
    return lambda z, *parameters: sign * form(z if sign < 0 else -z, *parameters)


def _exp(form):
    return lambda z, *parameters: jnp.exp(form(z, *parameters))


def _complete(law):
    """All functions that follow from the forms of a row."""
    forms = dict(law.forms)
    density = "logpmf" if law.counts else "logpdf"
    forms[density[3:]] = _exp(forms[density])
    if law.symmetric:
        for tail, other in (("cdf", "sf"), ("logcdf", "logsf")):
            if tail in forms:
                forms[other] = _mirrored(forms[tail])
        if "ppf" in forms:
            forms["isf"] = _mirrored(forms["ppf"], -1)
    for tail in ("cdf", "sf"):
        if "log" + tail in forms:
            forms.setdefault(tail, _exp(forms["log" + tail]))
    if "cdf" in forms:
        forms.setdefault("logcdf", logarithm(forms["cdf"], forms["sf"]))
        forms.setdefault("logsf", logarithm(forms["sf"], forms["cdf"]))
    return {name: forms[name] for name in FUNCTIONS if name in forms}


def _or_nan(good):
    """A factor of 1, or of NaN: what it makes NaN has derivatives of NaN, which a constant would not."""
    return jnp.where(good, 1, jnp.nan)


def _divided(law, given):
    """A distribution's own parameters, loc, scale, and a factor that is NaN where one is not allowed."""
    count = len(law.parameters.split())
    own, loc, scale = given[:count], given[count], 1.0 if law.counts else given[count + 1]
    return own, loc, scale, _or_nan(law.valid(*own) & (scale > 0))


def _past(z, high):
    """Is z above `high`, or infinite?"""
    if isinstance(high, jnp.ndarray):
        return (z > high) | (z == INF)
    return z == INF if high == INF else z > high


def _of_values(law, name, form):
    _, below, above = FUNCTIONS[name]

    def body(x, *given):
        own, loc, scale, good = _divided(law, given)
        z = (x - loc if law.counts else (x - loc) / scale) * good
        if law.counts and not name.endswith("pmf"):
            z = jnp.floor(z)
        low, middle, high = law.support(*own)
        under, over = _past(-z, -low), _past(z, high)
        outside = under | over
        value = form(jnp.where(outside, middle, z), *own)
        if name in ("pdf", "logpdf"):
            value = value / scale if name == "pdf" else value - jnp.log(scale)
        return jnp.where(outside, below if below == above else jnp.where(under, below, above), value)
    return body


def _of_probabilities(law, form):
    def body(q, *given):
        own, loc, scale, good = _divided(law, given)
        return form(q * _or_nan((q >= 0) & (q <= 1)) * good, *own) * scale + loc
    return body


def _entropy(law, form):
    def body(*given):
        own, loc, _, good = _divided(law, jnp.broadcast_arrays(*given))
        return form(*own) * good
    return body


def _function(law, name, form, module):
    """One function of a distribution, as users call it."""
    first = {"ppf": law.quantile, "isf": law.quantile, "entropy": ""}.get(name, "k" if law.counts else "x")
    if name in ("ppf", "isf"):
        body = _of_probabilities(law, form)
    elif name == "entropy":
        body = _entropy(law, form)
    else:
        body = _of_values(law, name, form)
    places = [inspect.Parameter(p, _PARAMETER) for p in [*first.split(), *law.parameters.split()]]
    places.append(inspect.Parameter("loc", _PARAMETER, default=0))
    if not law.counts:
        places.append(inspect.Parameter("scale", _PARAMETER, default=1))
    body.__signature__ = inspect.Signature(places)
    body.__name__ = body.__qualname__ = name
    body.__module__ = module
    body.__doc__ = _document(law, name, module)
    return special(of=module.partition(".")[2])(body)


def _document(law, name, module):
    words = FUNCTIONS[name][0]
    if law.counts:
        words = words.replace("than x", "than k").replace("most x", "most k")
    arguments, values = SHOWN[module.rpartition(".")[2]]
    first, _, rest = arguments.partition(", ")
    first = {"ppf": "0.3", "isf": "0.3", "entropy": ""}.get(name, first)
    call = f"jax.{module.partition('.')[2]}.{name}({', '.join(filter(None, (first, rest)))})"
    return (f"{words}: {law.about}.\n\n    Arrays are broadcast, and promoted to one floating dtype.  NaN "
            f"for parameters that are not allowed.\n\n    >>> round(float({call}), 4)\n    "
            f"{values.get(name)}\n    ")


def as_module(name, about, functions, package):
    """A module of functions by their names, as if it were a file of `package`."""
    full = f"{package}.{name}"
    module = ModuleType(full, about)
    module.__spec__, module.__package__ = ModuleSpec(full, None), package
    for each, function in functions.items():
        function.__name__ = each
        setattr(module, each, function)
    sys.modules[full] = module
    export_names(vars(module))
    return module


def module_of(name, law, package):
    """The module of a distribution."""
    functions = {each: _function(law, each, form, f"{package}.{name}")
                 for each, form in _complete(law).items()}
    return as_module(name, f"The distribution: {law.about}.", functions, package)
