"""checkpoint, also called remat: trade computation for memory in reverse mode."""
import functools

from ..core import tree
from ..core.avals import aval_of, is_arraylike, not_an_array
from ..core.config import state
from ..primitives.remat import remat_p
from .flat import trace_call
from .jit import cache_for
from .signatures import Static, name_of, numbers_and_names


def everything_saveable(*_, **__):
    """A policy: keep all residuals, as without checkpoint."""
    return True


def nothing_saveable(*_, **__):
    """A policy: compute all residuals again; the default."""
    return False


def checkpoint(fun=None, *, prevent_cse=True, policy=None, static_argnums=(), concrete=False):
    """`fun`, whose derivative computes the residuals again in the backward pass instead of keeping them.

    Args:
      prevent_cse: keep XLA from noticing that the forward pass computed the same; not needed inside `scan`.
      policy: `everything_saveable`, `nothing_saveable` or None; residuals are kept all or not at all.
      static_argnums: arguments that are hashable Python values.
    """
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums)
    if policy is everything_saveable:
        return fun
    if policy not in (None, nothing_saveable):
        raise NotImplementedError(f"checkpoint: policy {policy!r} is not supported: residuals are kept all "
                                  "(everything_saveable) or not at all (nothing_saveable)")
    numbers, _ = numbers_and_names(fun, static_argnums or None, None, "static")

    @functools.wraps(fun)
    def checkpointed(*args, **kwargs):
        statics = tuple((n, Static(args[n], n, name_of(fun))) for n in numbers if n < len(args))
        dynamic = tuple(a for i, a in enumerate(args) if i not in dict(statics))
        leaves, in_tree = tree.tree_flatten((dynamic, kwargs))
        for x, path in zip(leaves, tree.leaf_paths(in_tree)):
            if not is_arraylike(x):
                raise TypeError(f"checkpoint of {name_of(fun)}: {not_an_array(x, path)}")
        avals = tuple(map(aval_of, leaves))
        cache, key = cache_for(fun, "checkpoint"), (in_tree, avals, statics, state.context_key)
        traced = cache.get(key)
        if traced is None:
            traced = trace_call(fun, in_tree, avals, statics, name_of(fun))
            if traced.cacheable:
                cache[key] = traced
        outs = remat_p.bind(*traced.consts, *leaves, jaxpr=traced.closed, prevent_cse=prevent_cse)
        return traced.out_tree.unflatten(outs)
    return checkpointed


remat = checkpoint
