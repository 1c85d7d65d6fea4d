"""associative_scan: all prefix results of an associative function at once."""
from ..api.signatures import name_of
from ..core import errors
from ..core.avals import aval_of
from ..core.pytrees import pytree
from ..primitives.arrays import cumulative
from ..primitives.common import canonical_axis
from .control_flow_errors import no_return, shown

__all__ = ["associative_scan"]


def associative_scan(fn, elems, reverse=False, axis=0):
    """All prefix results of an associative function along an axis, in a logarithmic number of calls.

    Args:
        fn: `fn(a, b)` combines pytrees of arrays elementwise along `axis`; what it returns has as many arrays
            as one of them, in the same order, and may be of other containers.
        elems: a pytree of arrays of one size along `axis`.
        reverse: combine from the last element to the first.

    >>> lax.associative_scan(jnp.maximum, jnp.array([1, 3, 2, 5, 4]))
    Array([1, 3, 3, 5, 5], dtype=int32)
    """
    if not callable(fn):
        raise TypeError(f"lax.associative_scan: fn argument should be callable, got {shown(fn)}: it is "
                        "lax.associative_scan(fn, elems)")
    leaves, treedef = pytree.tree_flatten(elems)
    if not leaves:
        raise ValueError("lax.associative_scan: elems has no arrays to scan over")
    axis = canonical_axis(axis, aval_of(leaves[0]).ndim)
    shapes = [aval_of(x).shape for x in leaves]
    sizes = {shape[axis] if axis < len(shape) else None for shape in shapes}
    if len(sizes) != 1 or None in sizes:
        raise ValueError(f"Array inputs to associative_scan must have the same size along axis {axis}, got "
                         f"shapes {errors.listed(shapes)}: slice or pad them to one size")

    def combine(a, b):
        outs, found = pytree.tree_flatten(fn(treedef.unflatten(a), treedef.unflatten(b)))
        if found.num_leaves != treedef.num_leaves:
            raise ValueError(pytree.structure_mismatch(
                f"lax.associative_scan: {name_of(fn)} must return the structure of its arguments", treedef,
                found, ("an argument", "the result"), root=pytree.arg_names(fn, 2)[0][0])
                + no_return(found))
        for path, x, y, out in zip(pytree.leaf_paths(treedef), a, b, outs):
            if aval_of(out).shape not in (x.shape, y.shape):
                raise errors.ShapeError(
                    f"lax.associative_scan: {name_of(fn)} must return what has the shape of its arguments, "
                    f"which hold many elements along axis {axis}: got {x.shape} and returned "
                    f"{aval_of(out).shape}{path and f' at {path}'}. Write it for whole arrays, as in a + b, "
                    "or make it so with jax.vmap")
        return outs
    return treedef.unflatten(cumulative.associative_scan(combine, leaves, axis=axis, reverse=reverse))
