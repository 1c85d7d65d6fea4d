"""Incomplete gamma and beta functions: operands of one floating-point dtype and one shape, as in
`elementwise`."""
from ..primitives.arrays.incomplete import (
    igamma_grad_a_p,
    igamma_p,
    igammac_p,
    random_gamma_grad_p,
    regularized_incomplete_beta_p,
)
from .elementwise import _operands

__all__ = ["betainc", "igamma", "igamma_grad_a", "igamma_grad_a_p", "igamma_p", "igammac", "igammac_p",
           "random_gamma_grad", "regularized_incomplete_beta_p"]


def igamma(a, x):
    """Regularized lower incomplete gamma function P(a, x), for a, x >= 0; elsewhere NaN  (DLMF 8.2.4).

    >>> lax.igamma(1.0, 0.0).item()
    0.0
    """
    return igamma_p.bind(*_operands("igamma", a, x))


def igammac(a, x):
    """Regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x), exact where it is small  (DLMF
    8.2.4).

    >>> lax.igammac(1.0, 0.0).item()
    1.0
    """
    return igammac_p.bind(*_operands("igammac", a, x))


def igamma_grad_a(a, x):
    """Derivative of `igamma` by a; it has none itself.

    >>> lax.igamma_grad_a(1.0, 0.0).shape
    ()
    """
    return igamma_grad_a_p.bind(*_operands("igamma_grad_a", a, x))


def random_gamma_grad(a, x):
    """dx/da where P(a, x) is held: how a sample x of the gamma distribution moves with a  (Figurnov et al.,
    2018).

    >>> lax.random_gamma_grad(1.0, 1.0).shape
    ()
    """
    return random_gamma_grad_p.bind(*_operands("random_gamma_grad", a, x))


def betainc(a, b, x):
    """Regularized incomplete beta function I_x(a, b), for a, b >= 0 and x in [0, 1]; elsewhere NaN  (DLMF
    8.17.2).

    Its derivative is that by x; by a and b it is refused with a ValueError, as in JAX.

    >>> lax.betainc(1.0, 1.0, 0.25).item()
    0.2499997317790985
    """
    return regularized_incomplete_beta_p.bind(*_operands("betainc", a, b, x))
