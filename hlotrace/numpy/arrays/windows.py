"""Windows: weights that fall off to both ends."""
from ...api.composite import composite
from ...core import dtypes
from ...core.trace import concrete_or_error
from ...lax import shapes as lax
from ...primitives.arrays.transcendental import cos
from ...primitives.common import np
from ..elementwise.arithmetic import i0
from ..elementwise.ufuncs import abs as abs_, sqrt
from .creation import asarray, ones

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def _window(name, formula, doc):
    """A window function of M points from its formula in (0, 1, ..., M - 1) and M."""
    def window(M):
        return _points(name, formula, M)
    window.__name__ = window.__qualname__ = name
    window.__doc__ = doc.replace("\n\n", "\n\n    M: an int, known under jit too.  The dtype is the default "
                                 "float.\n\n", 1)
    return window


def _points(name, formula, M, *parameters):
    M = int(concrete_or_error(M, f"M of jnp.{name} must be known"))     # as JAX: a float loses its fraction
    return ones(M) if M <= 1 else _windowed(*parameters, formula=formula, M=M)


@composite(static=("formula", "M"))
def _windowed(*parameters, formula, M):
    n = lax.iota(dtypes.canonicalize(dtypes.float64), M)
    return formula(n, M, *parameters)


def _cosines(*weights):
    def formula(n, M):
        return sum(w * (-1) ** k * cos(2 * np.pi * k * n / (M - 1)) if k else w
                   for k, w in enumerate(weights))
    return formula


def _kaiser(n, M, beta):
    middle = (M - 1) / 2
    return i0(beta * sqrt(1 - ((n - middle) / middle) ** 2)) / i0(asarray(beta, n.dtype))


hanning = _window("hanning", _cosines(0.5, 0.5),
                  """The Hann window of M points: 0.5 - 0.5 cos(2 pi n / (M - 1)).

    >>> jnp.hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """)
hamming = _window("hamming", _cosines(0.54, 0.46),
                  """The Hamming window of M points: 0.54 - 0.46 cos(2 pi n / (M - 1)).

    >>> jnp.hamming(5)
    Array([0.08000001, 0.54      , 1.        , 0.54      , 0.08000001], dtype=float32)
    """)
blackman = _window("blackman", _cosines(0.42, 0.5, 0.08),
                   """The Blackman window of M points: 0.42 - 0.5 cos(t) + 0.08 cos(2t), t = 2 pi n / (M - 1).

    >>> jnp.blackman(5).round(4)
    Array([-0.  ,  0.34,  1.  ,  0.34, -0.  ], dtype=float32)
    """)
bartlett = _window("bartlett", lambda n, M: 1 - abs_(2 * n + 1 - M) / (M - 1),
                   """The triangular window of M points, 0 at both ends.

    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """)


def kaiser(M, beta):
    """The Kaiser window of M points; a larger `beta` makes it narrower: 0 is a box, 6 near to Hann's.

    Args:
        M: as in `hanning`.
        beta: a scalar, which may be traced.

    >>> jnp.kaiser(5, 0.), jnp.kaiser(3, 2.)
    (Array([1., 1., 1., 1., 1.], dtype=float32), Array([0.43867633, 1.        , 0.43867633], dtype=float32))
    """
    return _points("kaiser", _kaiser, M, beta)
