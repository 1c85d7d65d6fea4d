"""checkpoint, also called remat: trade computation for memory in reverse mode."""
import functools

from ..core import tree
from ..primitives.remat import remat_p
from .flat import FlatFunction
from .signatures import numbers_and_names, split_statics


def everything_saveable(*_, **__):
    """A policy: keep all residuals, as without checkpoint."""
    return True


def nothing_saveable(*_, **__):
    """A policy: compute all residuals again; the default."""
    return False


def checkpoint(fun=None, *, prevent_cse=True, policy=None, static_argnums=(), static_argnames=(), concrete=False):
    """`fun`, whose derivative computes the residuals again in the backward pass instead of keeping them.

    Args:
      prevent_cse: keep XLA from noticing that the forward pass computed the same; not needed inside `scan`.
      policy: `everything_saveable`, `nothing_saveable` or None; residuals are kept all or not at all.
      static_argnums, static_argnames: arguments that are hashable Python values.
    """
    if concrete:
        raise NotImplementedError("checkpoint: concrete=True is not supported: name arguments that are to be Python values "
                                  "in static_argnums or static_argnames")
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums,
                                 static_argnames=static_argnames)
    if policy is everything_saveable:
        return fun
    if policy not in (None, nothing_saveable):
        raise NotImplementedError(f"checkpoint: policy {policy!r} is not supported: residuals are kept all "
                                  "(everything_saveable) or not at all (nothing_saveable)")
    numbers, names = numbers_and_names(fun, static_argnums, static_argnames, "static")

    @functools.wraps(fun)
    def checkpointed(*args, **kwargs):
        args, kwargs, statics = split_statics(args, kwargs, numbers, names)
        flat = FlatFunction(fun, *tree.tree_flatten((args, kwargs)), "checkpoint", statics)
        traced = flat.kept(fun, "checkpoint", flat.avals())
        outs = remat_p.bind(*traced.consts, *flat.leaves, jaxpr=traced.closed, prevent_cse=prevent_cse)
        return traced.out_tree.unflatten(outs)
    return checkpointed


remat = checkpoint
