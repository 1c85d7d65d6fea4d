# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.scipy.stats import (
    bernoulli as bernoulli, beta as beta, betabinom as betabinom, binom as binom, cauchy as cauchy, chi2 as chi2,
    expon as expon, gamma as gamma, gennorm as gennorm, geom as geom, gumbel_l as gumbel_l, gumbel_r as gumbel_r,
    laplace as laplace, logistic as logistic, nbinom as nbinom, norm as norm, pareto as pareto, poisson as poisson, t as t,
    truncnorm as truncnorm, uniform as uniform, vonmises as vonmises, wrapcauchy as wrapcauchy,
)

__all__ = [
    'bernoulli', 'beta', 'betabinom', 'binom', 'cauchy', 'chi2', 'expon', 'gamma', 'gennorm', 'geom', 'gumbel_l', 'gumbel_r',
    'laplace', 'logistic', 'nbinom', 'norm', 'pareto', 'poisson', 't', 'truncnorm', 'uniform', 'vonmises', 'wrapcauchy',
]

