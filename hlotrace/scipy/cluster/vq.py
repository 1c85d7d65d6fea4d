"""SciPy's vector quantization."""
from ... import numpy as jnp
from ...api.composite import composite
from ...core.errors import ShapeError
from ...core.surface.public import export_names as _offer
from ...numpy.util import check_arraylike, promote_dtypes_inexact, promotes

__all__ = ["vq"]


@composite(static=("check_finite",))
@promotes("obs", "code_book")
def vq(obs, code_book, check_finite=True):
    """The code that is nearest to each observation: (its index, int32; the distance), both of shape (m,).

    Args:
        obs: (m, n), or (m,) numbers.
        code_book: (k, n) or (k,), k > 0.
        check_finite: accepted, and not used.
    Raises:
        ShapeError: for shapes that do not fit.

    >>> jax.scipy.cluster.vq.vq(jnp.array([0.5, 4., 6.]), jnp.array([1., 4.]))
    (Array([0, 1, 1], dtype=int32), Array([0.5, 0. , 2. ], dtype=float32))
    """
    check_arraylike("scipy.cluster.vq.vq", obs, code_book)
    shapes = jnp.shape(obs), jnp.shape(code_book)
    ranks = {len(s) for s in shapes}
    if ranks not in ({1}, {2}) or shapes[0][1:] != shapes[1][1:] or not shapes[1][0]:
        raise ShapeError("scipy.cluster.vq.vq: obs must have shape (m, n) and code_book (k, n), or (m,) and "
                         f"(k,), with k > 0, got {shapes[0]} and {shapes[1]}")
    obs, code_book = (jnp.atleast_2d(jnp.transpose(x)).T for x in promote_dtypes_inexact(obs, code_book))
    distances = jnp.linalg.norm(obs[:, None] - code_book, axis=-1)
    return jnp.argmin(distances, 1), jnp.min(distances, 1)


_offer(globals())
