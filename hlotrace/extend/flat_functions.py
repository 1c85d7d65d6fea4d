"""JAX's `api_util`: flattened functions, as libraries that transform functions themselves take them."""

from ..api.flat import abstract
from ..api.signatures import donation_vector, name_of, rebase_donate_argnums
from ..core.pytrees import pytree
from ..core.surface.jax_core_names import DebugInfo
from . import linear_util as _lu

__all__ = ["argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun",
           "flatten_fun_nokwargs", "rebase_donate_argnums", "safe_map", "shaped_abstractify"]


def safe_map(f, *args):
    """`list(map(f, *args))` of sequences of one length.

    Raises:
        ValueError: for others.

    >>> jax.api_util.safe_map(max, [1, 5], [4, 2])
    [4, 5]
    """
    return [f(*each) for each in zip(*args, strict=True)]


def shaped_abstractify(x):
    """The aval of an array, a number, a ShapeDtypeStruct, or an aval.

    Raises:
        TypeError: for other values.

    >>> jax.api_util.shaped_abstractify(jnp.zeros((2, 3)))
    ShapedArray(float32[2,3])
    """
    return abstract(x)


def debug_info(traced_for, fun, args, kwargs, *, static_argnums=(), static_argnames=(),
               result_paths_thunk=None, sourceinfo=None, signature=None):
    """A DebugInfo: where `fun` is and what the leaves of its arguments are called, apart from static ones.

    >>> jax.api_util.debug_info("grad", lambda x, y: x, (1.0, {"a": 2.0}), {}).arg_names
    ('x', "y['a']")
    """
    positions, by_keyword = pytree.arg_names(signature or fun, len(args), kwargs)
    given = [*zip(positions, args), *((by_keyword[name], x) for name, x in sorted(kwargs.items()))]
    static = {*static_argnames, *(positions[i] for i in static_argnums)}
    paths = [name + path for name, x in given if name not in static
             for path in pytree.leaf_paths(pytree.tree_structure(x))]
    code = getattr(fun, "__code__", None)
    where = sourceinfo or (f"{name_of(fun)} at {code.co_filename}:{code.co_firstlineno}" if code
                           else name_of(fun))
    return DebugInfo(traced_for, where, tuple(paths), result_paths_thunk)


@_lu.transformation_with_aux
def flatten_fun(in_tree, *leaves):
    """(a WrappedFun of flat lists, a function that gives the structure of its results), of a WrappedFun.

    `in_tree` is the structure of (positional, keyword) arguments.

    >>> from hlotrace.extend import linear_util
    >>> leaves, structure = jax.tree.flatten(((1, 2), {"c": 3}))
    >>> f = linear_util.wrap_init(lambda a, b, c: {"x": a + b, "y": c})
    >>> flat, out_tree = jax.api_util.flatten_fun(f, structure)
    >>> flat.call_wrapped(*leaves), out_tree()
    ([3, 3], PyTreeDef({'x': *, 'y': *}))
    """
    yield pytree.tree_flatten((yield in_tree.unflatten(leaves)))


@_lu.transformation_with_aux
def flatten_fun_nokwargs(in_tree, *leaves):
    """As `flatten_fun`, where `in_tree` is the structure of the tuple of positional arguments.

    >>> from hlotrace.extend import linear_util
    >>> f, structure = linear_util.wrap_init(lambda a, b: a + b), jax.tree.structure((1, 2))
    >>> flat, _ = jax.api_util.flatten_fun_nokwargs(f, structure)
    >>> flat.call_wrapped(1, 2)
    [3]
    """
    yield pytree.tree_flatten((yield in_tree.unflatten(leaves), {}))


def argnums_partial(f, dyn_argnums, args, require_static_args_hashable=True):
    """(a WrappedFun of the arguments numbered `dyn_argnums`, those arguments), the others being fixed.

    Raises:
        ValueError: for one that is fixed and not hashable, unless `require_static_args_hashable=False`.

    >>> from hlotrace.extend import linear_util
    >>> power, base = jax.api_util.argnums_partial(linear_util.wrap_init(pow), 0, (3, 2))
    >>> power.call_wrapped(*base)
    9
    """
    numbers = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    numbers = {i % len(args) for i in numbers}
    held = {i: x for i, x in enumerate(args) if i not in numbers}
    for i, x in held.items():
        if require_static_args_hashable and type(x).__hash__ is None:
            raise ValueError(f"api_util.argnums_partial: argument {i} of type {type(x).__name__} is held and "
                             "not hashable")

    def call(*given):
        moving = iter(given)
        return f.call_wrapped(*(held[i] if i in held else next(moving) for i in range(len(args))))
    step = argnums_partial, tuple(held), tuple(map(_Held, held.values()))
    return f.wrap(call, *step), tuple(args[i] for i in sorted(numbers))


class _Held:
    """A value that a step holds; equal to itself, and where it can be hashed to what equals it."""

    def __init__(self, value):
        self.key = value if type(value).__hash__ else id(value)
        self.value = value

    def __eq__(self, other):
        return isinstance(other, _Held) and self.key == other.key

    def __hash__(self):
        return hash(self.key)


def flatten_axes(name, treedef, axis_tree, *, kws=False, tupled_args=False):
    """For each leaf of `treedef` the leaf of the prefix `axis_tree` that covers it; None is a leaf.

    Args:
        name: the name of the prefix in errors.
        kws: the structure is that of (args, kwargs), for errors.
        tupled_args: the structure is that of the tuple of arguments, for errors.
    Raises:
        ValueError: where it is no prefix.

    >>> jax.api_util.flatten_axes("in_axes", jax.tree.structure((1, (2, 3))), (0, None))
    [0, None, None]
    """
    of = " for (args, kwargs)" if kws else " for the tuple of arguments" * tupled_args
    return pytree.flatten_axes(name + of, treedef, axis_tree)
