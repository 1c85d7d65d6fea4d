"""What the examples of distributions print: the arguments of a call, and the value of each function.

Functions of probabilities are called with 0.3 instead of the first argument.
"""

SHOWN = {}
for _line in """
norm 0.5: cdf=0.6915 isf=0.5244 logcdf=-0.3689 logpdf=-1.0439 logsf=-1.1759 pdf=0.3521 ppf=-0.5244 sf=0.3085
cauchy 0.5: cdf=0.6476 isf=0.7265 logcdf=-0.4345 logpdf=-1.3679 logsf=-1.0429 pdf=0.2546 ppf=-0.7265 sf=0.3524
laplace 0.5: cdf=0.6967 isf=0.5108 logcdf=-0.3614 logpdf=-1.1931 logsf=-1.1931 pdf=0.3033 ppf=-0.5108
    sf=0.3033
logistic 0.5: cdf=0.6225 isf=0.8473 logcdf=-0.4741 logpdf=-1.4482 logsf=-0.9741 pdf=0.235 ppf=-0.8473
    sf=0.3775
gumbel_r 0.5: cdf=0.5452 isf=1.0309 logcdf=-0.6065 logpdf=-1.1065 logsf=-0.788 pdf=0.3307 ppf=-0.1856
    sf=0.4548
gumbel_l 0.5: cdf=0.8077 isf=0.1856 logcdf=-0.2136 logpdf=-1.1487 logsf=-1.6487 pdf=0.317 ppf=-1.0309
    sf=0.1923
gennorm 0.5, 1.5: cdf=0.7417 logcdf=-0.2987 logpdf=-0.9444 logsf=-1.3538 pdf=0.3889 sf=0.2583
t 0.5, 3.: logpdf=-1.161 pdf=0.3132
vonmises 0.5, 2.: logpdf=-0.9067 pdf=0.4039
expon 0.5: cdf=0.3935 isf=1.204 logcdf=-0.9328 logpdf=-0.5 logsf=-0.5 pdf=0.6065 ppf=0.3567 sf=0.6065
gamma 0.5, 2.: cdf=0.0902 logcdf=-2.4057 logpdf=-1.1931 logsf=-0.0945 pdf=0.3033 sf=0.9098
chi2 0.5, 3.: cdf=0.0811 logcdf=-2.512 logpdf=-1.5155 logsf=-0.0846 pdf=0.2197 sf=0.9189
pareto 1.5, 2.: cdf=0.5556 isf=1.8257 logcdf=-0.5878 logpdf=-0.5232 logsf=-0.8109 pdf=0.5926 ppf=1.1952
    sf=0.4444
uniform 0.3: cdf=0.3 isf=0.7 logcdf=-1.204 logpdf=0.0 logsf=-0.3567 pdf=1.0 ppf=0.3 sf=0.7
beta 0.3, 2., 3.: cdf=0.3483 logcdf=-1.0547 logpdf=0.5676 logsf=-0.4282 pdf=1.764 sf=0.6517
truncnorm 0.5, -1., 2.: cdf=0.6509 logcdf=-0.4294 logpdf=-0.8438 logsf=-1.0523 pdf=0.4301 sf=0.3491
wrapcauchy 0.5, 0.3: cdf=0.1409 isf=5.0076 logcdf=-1.9594 logpdf=-1.3585 logsf=-0.1519 pdf=0.257
    ppf=1.2756 sf=0.8591
bernoulli 0, 0.3: cdf=0.7 logcdf=-0.3567 logpmf=-0.3567 logsf=-1.204 pmf=0.7 ppf=0.0 sf=0.3
binom 2, 5, 0.3: cdf=0.8369 logcdf=-0.178 logpmf=-1.1754 logsf=-1.8135 pmf=0.3087 sf=0.1631
betabinom 2, 5, 2., 3.: logpmf=-1.4351 pmf=0.2381
geom 2, 0.3: cdf=0.51 logcdf=-0.6733 logpmf=-1.5606 logsf=-0.7133 pmf=0.21 sf=0.49
nbinom 2, 5, 0.3: cdf=0.0288 logcdf=-3.5475 logpmf=-4.0252 logsf=-0.0292 pmf=0.0179 sf=0.9712
poisson 2, 1.5: cdf=0.8088 entropy=1.5394 logcdf=-0.2121 logpmf=-1.3822 logsf=-1.6547 pmf=0.251 sf=0.1912
""".strip().replace("\n    ", " ").splitlines():
    _name, _, _rest = _line.partition(" ")
    _arguments, _, _values = _rest.partition(": ")
    SHOWN[_name] = _arguments, dict(pair.split("=") for pair in _values.split())
