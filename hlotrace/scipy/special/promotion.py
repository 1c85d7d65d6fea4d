"""How a special function takes its arguments: promoted to one floating dtype, and broadcast."""
import functools
import inspect

from ... import numpy as jnp
from ...api.composite import composite
from ...api.custom_derivatives import custom_jvp
from ...core.errors import ComplexError
from ...core.pytrees.pytree import tree_map
from ...numpy.util import SCALARS, promote_args_inexact, promotes, result_type
from ...primitives.arrays.elementwise import convert

# Whose results have a strong type also where all arguments are Python numbers, as in JAX.
STRONG = {f"scipy.{module}.{name}" for module, names in (
    ("special", "beta dawsn erfcx exp1 expi expn fresnel gamma gammasgn hyp1f1 hyp2f1 log_ndtr ndtr ndtri "
                "owens_t poch sici spence wofz"),
    ("stats.norm", "cdf isf logcdf logsf ppf sf"),
    ("stats.truncnorm", "cdf logcdf logpdf logsf pdf sf"),
    ("stats.poisson", "entropy"),
    ("stats.uniform", "cdf")) for name in names.split()}


def special(*derivatives, complex=False, of="scipy.special"):
    """Decorator: a function of numbers that takes arrays, of rules for its body.

    The result is weak where all arguments are, but for `STRONG`.  Narrow floats are computed in float32.

    Args:
        derivatives: for each argument what a change of it is multiplied with, as a function of (result,
            *arguments); None where the derivative of the body is taken.
        complex: it takes complex numbers.
        of: the module that it is in.
    """
    def decorate(fun):
        body, signature, name = promotes()(fun), inspect.signature(fun), f"{of}.{fun.__name__}"
        if derivatives:
            body = custom_jvp(body)
            body.defjvps(*[rule and promotes()(lambda t, out, *args, rule=rule: tree_map(
                lambda slope: t * slope, rule(out, *args)))
                           for rule in derivatives])

        @composite
        @functools.wraps(fun)
        def call(*args, **kwargs):
            if kwargs or len(args) != len(signature.parameters):
                bound = signature.bind(*args, **kwargs)
                bound.apply_defaults()
                args = bound.args
            args = [jnp.asarray(x) if type(x) in SCALARS else x for x in promote_args_inexact(name, *args)]
            dtype, weak = result_type(*args, return_weak_type_flag=True)
            weak = weak and name not in STRONG
            if dtype.kind == "c" and not complex:
                raise ComplexError(f"{name} does not take complex numbers, got {dtype.name}: take .real, "
                                   ".imag or jnp.abs(x)")
            if dtype.itemsize < 4:
                args = [jnp.asarray(x, "float32") for x in args]
            return tree_map(lambda out: convert(out, out.dtype if out.dtype.kind == "c" else dtype, weak),
                            body(*args))
        return call
    return decorate
