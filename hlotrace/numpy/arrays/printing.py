"""Arrays as text, with NumPy's options."""
from ...primitives.common import np
from ...runtime.array_impl import ArrayImpl

__all__ = ["array_repr", "array_str"]


def array_repr(arr, max_line_width=None, precision=None, suppress_small=None):
    """The text of `repr(arr)`, with other options than those of `printoptions`.

    Args:
        max_line_width: characters a line.
        precision: digits after the point.
        suppress_small: write numbers that are 0 in that precision as 0.

    >>> jnp.array_repr(jnp.array([1., 1e-6]), precision=3, suppress_small=True)
    'Array([1., 0.], dtype=float32)'
    """
    options = {"max_line_width": max_line_width, "precision": precision, "suppress_small": suppress_small}
    return arr._written(**options) if type(arr) is ArrayImpl else np.array_repr(np.asarray(arr), **options)


def array_str(a, max_line_width=None, precision=None, suppress_small=None):
    """The text of `str(a)`: the elements alone; options as for `array_repr`.

    >>> jnp.array_str(jnp.array([1., 2.5]) / 3, precision=2)
    '[0.33 0.83]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)
