"""The pieces of which JAX's `jacfwd` and `jacrev` are made, for libraries that write their own of them."""
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import numpy as jnp
from ..api import autodiff
from ..core import dtypes
from ..core.pytrees import pytree
from ..extend.linear_util import WrappedFun
from ..numpy.util import dtype_of


def jvp(fun: WrappedFun, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """`jax.jvp` of a WrappedFun."""
    return autodiff.jvp(fun.call_wrapped, tuple(primals), tuple(tangents), has_aux=has_aux)


def std_basis(tree: Any) -> Any:
    """All unit vectors of a pytree of arrays, stacked along a new axis in front."""
    leaves = pytree.tree_leaves(tree)
    total = sum(math.prod(jnp.shape(leaf)) for leaf in leaves)
    dtype = jnp.result_type(*leaves) if leaves else dtypes.float32
    return _unravelled(tree, 1, jnp.eye(total, dtype=dtype))


def jacfwd_unravel(input_tree: Any, _output_leaf: Any, arr: Any) -> Any:
    """The Jacobian of one output, whose last axis goes over all inputs: a pytree as these."""
    return _unravelled(input_tree, -1, arr)


def jacrev_unravel(output_tree: Any, _input_leaf: Any, arr: Any) -> Any:
    """The Jacobian by one input, whose first axis goes over all outputs: a pytree as these."""
    return _unravelled(output_tree, 0, arr)


def _unravelled(tree: Any, axis: int, arr: Any) -> Any:
    leaves, structure = pytree.tree_flatten(tree)
    axis %= arr.ndim
    shapes = [jnp.shape(leaf) for leaf in leaves]
    ends = list(itertools.accumulate(map(math.prod, shapes)))[:-1]
    parts = jnp.split(arr, ends, axis) if leaves else []
    return structure.unflatten([
        part.reshape(*arr.shape[:axis], *shape, *arr.shape[axis + 1:]) for part, shape in zip(parts, shapes)])


def _check(what: str, which: str, kind: str, right: Callable[[Any], bool]) -> Callable[..., None]:
    def check(holomorphic: bool, *last: Any) -> None:
        *allow_int, x = last        # what checks the inputs of jacrev takes allow_int before x
        dtype = dtype_of(x)
        if holomorphic and not dtypes.is_complex(dtype):
            raise TypeError(f"{what} with holomorphic=True takes {which} of a complex dtype, and one is "
                            f"{dtype.name}")
        if not (holomorphic or right(dtype) or any(allow_int) and not dtypes.is_extended(dtype)):
            raise TypeError(f"{what} takes {which} of a {kind} dtype, and one is {dtype.name}")
    return check


# TypeError for an input or an output of a dtype that jacfwd, or jacrev, does not differentiate.
check_input_dtype_jacfwd = _check("jacfwd", "inputs", "floating", dtypes.is_float)
check_output_dtype_jacfwd = _check("jacfwd", "outputs", "numeric", lambda dtype: True)
check_input_dtype_jacrev = _check("jacrev", "inputs", "floating or complex", dtypes.is_inexact)
check_output_dtype_jacrev = _check("jacrev", "outputs", "floating", dtypes.is_float)
