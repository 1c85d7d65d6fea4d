"""What platforms do in their own ways: platform_dependent; composite, an operation a compiler may know."""
import operator
import re

from ..api.flat import FlatFunction
from ..api.signatures import name_of
from ..core import errors, programs
from ..core.array import Array
from ..core.config import state
from ..core.pytrees import pytree
from ..core.surface.boundary import filtered
from ..core.trace import EvalTrace, Tracer
from ..lowering.custom_calls import Attribute, attribute
from ..primitives.arrays.slicing import as_array
from ..primitives.common import np, scalar
from ..primitives.programs.composites import composite_p
from .control_flow import bind_branches, trace_branches
from .control_flow_errors import check_branches, shown

__all__ = ["platform_dependent", "composite"]


def platform_dependent(*args, default=None, **per_platform):
    """What the function of the platform gives for `args` on which the program is compiled.

    It is chosen when a program is lowered, so one trace serves all platforms, and what the others' functions
    do need have no lowering here.  All are traced, and must give the same structure, shapes and dtypes.

    Args:
        default: the function of the platforms that are not named.
        per_platform: functions by platform, as `cpu=f, cuda=g, tpu=h`.
    Raises:
        NotImplementedError: when lowered for a platform that has no function, where there is no `default`.

    >>> lax.platform_dependent(2.0, cpu=jnp.sin, default=jnp.sin).item() == jnp.sin(2.0).item()
    True
    """
    functions = {**per_platform, **({} if default is None else {None: default})}
    if not functions:
        raise NotImplementedError("lax.platform_dependent: give a function for each platform, cpu=f, or "
                                  "default=f")
    if "gpu" in per_platform:
        raise ValueError("Use 'cuda' or 'rocm' for lax.platform_dependent: there are two kinds of gpu")
    names = [f"{name or 'default'}=" for name in functions]
    for name, function in zip(names, functions.values()):
        if not callable(function):
            raise TypeError(f"lax.platform_dependent: {name} must be a function, got {shown(function)}")
    traced, leaves = trace_branches("lax.platform_dependent", functions.values(), args, frozenset())
    check_branches("platform_dependent", traced, names, list(functions.values()))
    return bind_branches(scalar(0, np.int32), traced, leaves, platforms=tuple(functions))


def _attributes(name, values):
    """The keyword arguments of a composite as the text of an MLIR dictionary."""
    written = {}
    for key, value in values.items():
        if any(isinstance(leaf, Tracer) for leaf in pytree.tree_leaves(value)):
            raise errors.UnexpectedTracerError(f"{name}: attribute {key} is traced, and an attribute is a "
                                               "part of the program's text: pass the value by position, or "
                                               "as a NumPy array")
        value = pytree.tree_map(lambda x: np.asarray(x) if isinstance(x, Array) else x, value)
        try:
            if value is not None:
                written[key] = Attribute(attribute(value))
        except TypeError as error:
            raise TypeError(f"{name}: attribute {key}: {error}") from None
    return attribute(written)


def composite(decomposition, name, version=0):
    """A function that is the operation `name` to a compiler that knows it, and `decomposition` to any other.

    In a program it is written as `stablehlo.composite`; outside of one it is its decomposition.  Its keyword
    arguments are attributes of the operation: bools, numbers, strings, NumPy arrays, or tuples, lists and
    dicts of them, which `decomposition` gets too.  grad and vmap take that, where JAX raises.

    Args:
        decomposition: a function of arrays, that closes over none that are traced.
        name: with a name space, "my.gelu".
        version: a non-negative int.
    Raises:
        UnexpectedTracerError: where the decomposition closes over a traced value.

    >>> gelu = lax.composite(jax.nn.gelu, name="my.gelu")
    >>> gelu(0.0).item()
    0.0
    >>> "stablehlo.composite" in jax.jit(gelu).lower(1.0).as_text()
    True
    """
    if not callable(decomposition):
        raise TypeError(f"lax.composite: decomposition must be a function, got {shown(decomposition)}")
    @filtered
    def composed(*args, **attributes):
        if type(state.trace) is EvalTrace:
            return decomposition(*pytree.tree_map(as_array, args), **attributes)
        if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]*(\.[a-zA-Z0-9_$]+)+", name):
            raise ValueError('lax.composite: name must have a name space, as in "my_namespace.my_op", got '
                             f'{name!r}')
        text = _attributes(name, attributes)
        flat = FlatFunction(lambda *args: decomposition(*args, **attributes),
                            *pytree.tree_flatten((args, {})), "composite")
        traced = flat.kept(decomposition, text, flat.avals(), name)
        if any(isinstance(c, Tracer) for c in traced.consts):
            raise errors.UnexpectedTracerError(
                f"{name}: its decomposition {name_of(decomposition)} closes over a traced value, which has "
                "no place in an operation of its own: pass the value as an argument")
        outs = composite_p.bind(*flat.leaves, jaxpr=programs.embed_constants(traced.jaxpr), name=name,
                                version=operator.index(version), attributes=text)
        return traced.out_tree.unflatten(outs)
    return composed
