"""Incomplete gamma and beta functions, of operands of one floating-point dtype and one shape."""
from ..primitives.arrays.incomplete import (
    igamma_grad_a_p, igamma_p, igammac_p, random_gamma_grad_p, regularized_incomplete_beta_p)
from .elementwise import coerced_operands

__all__ = ["betainc", "igamma", "igamma_grad_a", "igamma_grad_a_p", "igamma_p", "igammac", "igammac_p",
           "random_gamma_grad", "regularized_incomplete_beta_p"]


def igamma(a, x):
    """Regularized lower incomplete gamma function P(a, x), for a, x >= 0; elsewhere NaN (DLMF 8.2.4).

    >>> lax.igamma(1.0, 0.0).item()
    0.0
    """
    return igamma_p.bind(*coerced_operands("igamma", a, x))


def igammac(a, x):
    """Regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x), exact if small (DLMF 8.2.4).

    >>> lax.igammac(1.0, 0.0).item()
    1.0
    """
    return igammac_p.bind(*coerced_operands("igammac", a, x))


def igamma_grad_a(a, x):
    """Derivative of `igamma` by a; it has none itself.

    >>> lax.igamma_grad_a(1.0, 0.0).shape
    ()
    """
    return igamma_grad_a_p.bind(*coerced_operands("igamma_grad_a", a, x))


def random_gamma_grad(a, x):
    """The derivative dx/da at constant P(a, x): how a sample x of the gamma distribution moves with a.

    See Figurnov et al., "Implicit reparameterization gradients" (2018).

    >>> lax.random_gamma_grad(1.0, 1.0).shape
    ()
    """
    return random_gamma_grad_p.bind(*coerced_operands("random_gamma_grad", a, x))


def betainc(a, b, x):
    """Regularized incomplete beta function I_x(a, b), a, b >= 0, x in [0, 1]; else NaN (DLMF 8.17.2).

    Its derivative is that by x; by a and b it raises a ValueError, as in JAX.

    >>> round(lax.betainc(1.0, 1.0, 0.25).item(), 5)
    0.25
    """
    return regularized_incomplete_beta_p.bind(*coerced_operands("betainc", a, b, x))
