"""vmap as users call it: axes as ints, None or pytree prefixes."""
import functools
import operator

from ..core import tree
from ..core.avals import aval_of, is_arraylike, not_an_array
from ..core.linear import Axis
from ..transforms.vmap import batch_flat, place_axis
from .flat import check_outputs
from .signatures import name_of


def _check_axes(name, axes):
    for a in tree.tree_leaves(axes):
        if isinstance(a, bool) or not hasattr(a, "__index__"):
            raise TypeError(f"{name} must be an int, None, or a (possibly nested) container of ints and Nones that is a "
                            f"pytree prefix of the value, got {axes!r}")


def vmap(fun, in_axes=0, out_axes=0, axis_name=None, axis_size=None, spmd_axis_name=None, sum_match=False):
    """Map `fun` over an axis of its arguments, as one vectorized computation.

    Args:
      in_axes: for each positional argument the axis to map over, None for an argument that is the same for
        all; an int, or a sequence with an entry (int, None or a pytree prefix of them) for each argument.
        Keyword arguments are mapped over axis 0.
      out_axes: where the mapped axis goes in the results, in the same form; None for an unmapped result.
      axis_name: name of the axis for collectives.
      axis_size: size of the mapped axis; needed only where no argument is mapped.
    Raises: ValueError where sizes disagree, an axis does not exist, or out_axes is None for a mapped result.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, (int, tuple)) or hasattr(in_axes, "__index__")
            or isinstance(in_axes, dict)):
        raise TypeError("vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional "
                        f"arguments passed to the function, but got {in_axes}.")
    _check_axes("vmap in_axes", in_axes)
    _check_axes("vmap out_axes", out_axes)

    @functools.wraps(fun)
    def mapped(*args, **kwargs):
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError("vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional "
                             f"arguments passed to the function, but got {len(in_axes)=}, {len(args)=}")
        leaves, in_tree = tree.tree_flatten((args, kwargs))
        dims = tree.flatten_axes("vmap in_axes", in_tree, (in_axes, 0))
        paths = tree.arg_paths(fun, args, kwargs)
        dims = [_canonical(x, d, p) for x, d, p in zip(leaves, dims, paths)]
        size = _size(leaves, dims, paths, axis_size)
        found = {}

        def flat(*xs):
            a, k = in_tree.unflatten(xs)
            outs, found["tree"] = tree.tree_flatten(fun(*a, **k))
            check_outputs(outs, found["tree"], name_of(fun))
            return outs
        outs, out_dims = batch_flat(flat, Axis(size, axis_name, spmd_axis_name), leaves, dims)
        targets = tree.flatten_axes("vmap out_axes", found["tree"], out_axes)
        return found["tree"].unflatten([
            _place(x, size, d, t, found["tree"], i) for i, (x, d, t) in enumerate(zip(outs, out_dims, targets))])
    return mapped


def _canonical(x, dim, path):
    if not is_arraylike(x):
        if dim is None:
            return None
        raise TypeError(f"vmap: {not_an_array(x, path)} An argument that is not mapped needs in_axes=None.")
    if dim is None:
        return None
    shape, dim = aval_of(x).shape, operator.index(dim)
    if not -len(shape) <= dim < len(shape):
        raise ValueError(f"vmap was requested to map its argument along axis {dim}, which implies that its rank should "
                         f"be at least {dim + 1 if dim >= 0 else -dim}, but is only {len(shape)} ({path} has shape "
                         f"{shape})")
    return dim % len(shape)


def _size(leaves, dims, paths, axis_size):
    sizes = {}
    for x, d, p in zip(leaves, dims, paths):
        if d is not None:
            sizes.setdefault(aval_of(x).shape[d], []).append(f"{p} of shape {aval_of(x).shape} at axis {d}")
    if len(sizes) > 1:
        listed = "\n".join(f"  * size {n}: {', '.join(where[:4])}" for n, where in sizes.items())
        raise ValueError(f"vmap got inconsistent sizes for array axes to be mapped:\n{listed}")
    if axis_size is not None:
        if sizes and axis_size not in sizes:
            raise ValueError(f"vmap got axis_size={axis_size}, but the mapped axes have size {next(iter(sizes))}")
        return axis_size
    if not sizes:
        raise ValueError("vmap must have at least one non-None value in in_axes, or axis_size given")
    return next(iter(sizes))


def _place(x, size, dim, target, out_tree, i):
    if target is None:
        if dim is not None:
            path = tree.leaf_paths(out_tree)[i] or "the output"
            raise ValueError(f"vmap has mapped output but out_axes is None: {path} depends on a mapped argument. Give it "
                             "an axis in out_axes.")
        return x
    rank = len(aval_of(x).shape) + (dim is None)
    target = operator.index(target)
    if not -rank <= target < rank:
        raise ValueError(f"vmap out_axes={target} is out of bounds for an output of rank {rank} with its mapped axis")
    return place_axis(x, size, dim, target % rank)
