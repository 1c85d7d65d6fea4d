"""The gamma distribution, whose values many others are made of."""
from .. import lax
from ..api.vmap import vmap
from ..core.axes import AxisMap, AxisRule
from ..numpy.util import shape as shape_of
from ..primitives.arrays.incomplete import random_gamma_grad_p
from ..primitives.arrays.random import KEY, key_primitive, random_split_p, random_wrap_p
from ..primitives.arrays.shape import reshape
from ..primitives.common import kind_of, np, prod
from .continuous import exponential_of, halves, normal_values, uniform_values


def _value(key, a, log_space):
    """One value, or its logarithm, accepted as d (1 + c x)^3 of a normal x.

    G. Marsaglia, W. W. Tsang, "A Simple Method for Generating Gamma Variables", 2000.  Where a < 1, a value
    of a + 1 times u^(1/a) has the distribution (section 6).
    """
    key, boost_key = halves(key)
    boosted, zero = a < 1, lax.full_like(a, 0)
    d = lax.select(a < 0, zero + np.nan, lax.select(boosted, a + 1, a)) - 1 / 3
    c = 1 / 3 / lax.sqrt(d)

    def propose(state):
        key, x_key, u_key = random_split_p.bind(state[0], shape=(3,))
        _, x, v = lax.while_loop(lambda s: s[2] <= 0, positive, (x_key, zero, zero - 1))
        return key, x * x, v * v * v, uniform_values(u_key, 0.0, 1.0, shape=(), dtype=a.dtype)

    def positive(state):
        key, x_key = halves(state[0])
        x = normal_values(x_key, shape=(), dtype=a.dtype)
        return key, x, 1 + x * c

    def rejected(state):
        _, xx, v, u = state
        return (u >= 1 - 0.0331 * (xx * xx)) & (lax.log(u) >= xx * 0.5 + d * ((1 - v) + lax.log(v)))

    _, _, v, _ = lax.while_loop(rejected, propose, (key, zero, zero + 1, zero + 2))
    u = uniform_values(boost_key, 0.0, 1.0, shape=(), dtype=a.dtype)
    if log_space:
        return lax.select(boosted, lax.log(d) + lax.log(v) - exponential_of(u) / a, lax.log(d) + lax.log(v))
    return lax.select(boosted, d * v * lax.pow(1 - u, 1 / a), d * v)


def _values(dtype, words, a, *, log_space):
    """Each value has a key of its own."""
    lead, n = len(shape_of(words)) - 1, prod(shape_of(a))
    keys = random_split_p.bind(random_wrap_p.bind(words, impl=dtype), shape=(prod(shape_of(a)[lead:]),))
    keys, flat = reshape(keys, (n,)), reshape(a, (n,))
    if dtype == KEY:
        drawn = vmap(lambda key, a: _value(key, a, log_space))(keys, flat)
    else:       # several keys of XLA's generators at once give numbers of the first alone
        drawn = lax.map(lambda pair: _value(*pair, log_space), (keys, flat))
    return reshape(drawn, shape_of(a))


def _abstract_eval(keys, a, **_):
    if kind_of(a.dtype) != "f" or a.shape[:keys.ndim] != keys.shape:
        raise TypeError(f"random_gamma: for keys of shape {keys.shape}, `a` must be floating-point numbers "
                        f"of a shape that begins with it, got {a.str_short()}")
    return a


def _axes(keys, a, **_):
    lead = tuple(range(keys.ndim))
    values = (*lead, *[None] * (a.ndim - keys.ndim))
    return AxisMap((lead, values), values)


random_gamma_p = key_primitive("random_gamma", _values, _abstract_eval, AxisRule(_axes))


def _jvp(primals, tangents, *, log_space):
    """A value moves with `a` such that its distribution function stays the same.

    M. Figurnov, S. Mohamed, A. Mnih, "Implicit Reparameterization Gradients", 2018.  Near 0 that is x^a /
    Gamma(a + 1).
    """
    out, a, t = random_gamma_p.bind(*primals, log_space=log_space), primals[1], tangents[1]
    if t is None:
        return out, None
    if not log_space:
        return out, t * random_gamma_grad_p.bind(a, out)
    small = out < -60
    value = lax.exp(lax.select(small, lax.full_like(out, 0), out))
    return out, t * lax.select(small, (lax.digamma(a + 1) - out) / a,
                               random_gamma_grad_p.bind(a, value) / value)


random_gamma_p.jvp = _jvp
