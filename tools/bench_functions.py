"""The functions that tools/bench.py times by themselves: linear algebra, Fourier transforms, sorting, random
numbers, special functions.

A family is a function of the package that gives {name: (function, its arguments)}; each is timed compiled.
"""
import functools

import numpy as np


def _values(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def linalg(jax):
    la, sla = jax.numpy.linalg, jax.scipy.linalg
    a, many = _values(192, 192), _values(256, 8, 8)
    definite = a @ a.T + 192 * np.eye(192, dtype=np.float32)
    b = _values(192, 16)
    return {"cholesky": (la.cholesky, (definite,)), "qr": (la.qr, (a,)), "svd": (la.svd, (a,)),
            "eigh": (la.eigh, (definite,)),
            "eig": (la.eig, (a[:96, :96],)), "solve": (la.solve, (a, b)), "inv": (la.inv, (a,)),
            "det": (la.det, (a,)),
            "lstsq": (lambda a, b: la.lstsq(a, b)[0], (a, b)), "lu": (sla.lu, (a,)),
            "expm": (sla.expm, (a / 20,)),
            "solve_triangular": (lambda a, b: sla.solve_triangular(a, b, lower=True), (definite, b)),
            "256 choleskys of 8x8": (la.cholesky, (many @ many.transpose(0, 2, 1) +
                                                   np.eye(8, dtype=np.float32),)),
            "256 solves of 8x8": (la.solve, (many, many)),
            "256 eighs of 8x8": (la.eigh, (many + many.transpose(0, 2, 1),)),
            "gradient of a solve": (jax.grad(lambda a, b: la.solve(a, b).sum()), (a, b)),
            "gradient of slogdet": (jax.grad(lambda a: la.slogdet(a)[1]), (definite,))}


def fft(jax):
    f, (x, image) = jax.numpy.fft, (_values(64, 1024), _values(4, 128, 128))
    return {"fft": (f.fft, (x,)), "rfft": (f.rfft, (x,)), "irfft": (lambda x: f.irfft(f.rfft(x)), (x,)),
            "fft2": (f.fft2, (image,)),
            "fftn": (f.fftn, (image,)), "dct": (jax.scipy.fft.dct, (x,)), "fftshift": (f.fftshift, (image,)),
            "gradient of rfft": (jax.grad(lambda x: abs(f.rfft(x)).sum()), (x,))}


def sorting(jax):
    jnp, x = jax.numpy, _values(200_000)
    rows, ints = _values(512, 256), np.random.default_rng(0).integers(0, 1000, 100_000, dtype=np.int32)
    return {"sort": (jnp.sort, (x,)), "argsort": (jnp.argsort, (x,)), "sort rows": (jnp.sort, (rows,)),
            "top_k": (lambda x: jax.lax.top_k(x, 16), (rows,)),
            "lexsort": (lambda a, b: jnp.lexsort((a, b)), (ints, ints[::-1])),
            "searchsorted": (lambda a, v: jnp.searchsorted(jnp.sort(a), v), (x[:20_000], x)),
            "median": (jnp.median, (rows,)),
            "quantile": (lambda x: jnp.quantile(x, jnp.array([.1, .9])), (rows,)),
            "cumsum": (jnp.cumsum, (x,)),
            "unique": (lambda x: jnp.unique(x, size=1000), (ints,)),
            "bincount": (lambda x: jnp.bincount(x, length=1000), (ints,)),
            "histogram": (lambda x: jnp.histogram(x, 64)[0], (x,)),
            "percentile of rows": (lambda x: jnp.percentile(x, 30, axis=1), (rows,))}


def random(jax):
    r = jax.random
    key, n = r.key(0), (100_000,)
    laws = {name: (functools.partial(getattr(r, name), shape=n), (key,))
            for name in "uniform normal exponential gumbel laplace bits".split()}
    return laws | {"truncated_normal": (lambda key: r.truncated_normal(key, -1., 2., n), (key,)),
                   "randint": (lambda key: r.randint(key, n, 0, 1000), (key,)),
                   "bernoulli": (lambda key: r.bernoulli(key, .3, n), (key,)),
                   "categorical": (lambda key, x: r.categorical(key, x), (key, _values(512, 256))),
                   "permutation": (lambda key: r.permutation(key, 100_000), (key,)),
                   "split": (lambda key: r.split(key, 10_000), (key,)),
                   "gamma": (lambda key: r.gamma(key, 2.5, (10_000,)), (key,)),
                   "beta": (lambda key: r.beta(key, 2., .7, (10_000,)), (key,)),
                   "poisson": (lambda key: r.poisson(key, 4., (10_000,)), (key,)),
                   "binomial": (lambda key: r.binomial(key, 20., .3, (10_000,)), (key,)),
                   "choice": (lambda key: r.choice(key, 10_000, (100,), replace=False), (key,)),
                   "multivariate_normal": (lambda key, b: r.multivariate_normal(key, b[0], b, n[:1]),
                                           (key, np.eye(4)))}


def special(jax):
    s, x = jax.scipy.special, abs(_values(100_000)) + 0.1
    unary = "gammaln digamma erf erfinv erfc ndtr log_ndtr ndtri i0e i1 expi exp1 spence".split()
    inside = {"erfinv": x % 1, "ndtri": x % 1}
    found = {name: (getattr(s, name), (inside.get(name, x),)) for name in unary}
    return found | {"gammainc": (s.gammainc, (x[:20_000], x[::-1][:20_000])),
            "betainc": (s.betainc, (x[:20_000], x[:20_000] + 1, x[:20_000] % 1)),
                    "zeta": (s.zeta, (x + 1.5, x)), "polygamma": (lambda x: s.polygamma(2, x), (x,)),
                    "logsumexp": (s.logsumexp, (x,)),
                    "xlogy": (s.xlogy, (x, x)), "bessel_jn": (lambda x: s.bessel_jn(x, v=3), (x[:10_000],)),
                    "gradient of gammaln": (jax.grad(lambda x: s.gammaln(x).sum()), (x,))}
