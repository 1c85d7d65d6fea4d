"""The pieces of which JAX's `jacfwd` and `jacrev` are made, for libraries that write their own of them."""
import itertools
import math
from collections.abc import Sequence
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


def check_input_dtype_jacfwd(holomorphic: bool, x: Any) -> None:
    """TypeError for an input by which `jacfwd` does not differentiate."""
    _check("jacfwd", "inputs", "floating", dtypes.is_float(dtype_of(x)), holomorphic, x)


def check_output_dtype_jacfwd(holomorphic: bool, x: Any) -> None:
    """TypeError for an output of which `jacfwd` is not holomorphic."""
    _check("jacfwd", "outputs", "numeric", True, holomorphic, x)


def check_input_dtype_jacrev(holomorphic: bool, allow_int: bool, x: Any) -> None:
    """TypeError for an input by which `jacrev` does not differentiate."""
    dtype = dtype_of(x)
    right = dtypes.is_inexact(dtype) or allow_int and not dtypes.is_extended(dtype)
    _check("jacrev", "inputs", "floating or complex", right, holomorphic, x)


def check_output_dtype_jacrev(holomorphic: bool, x: Any) -> None:
    """TypeError for an output that `jacrev` does not differentiate."""
    _check("jacrev", "outputs", "floating", dtypes.is_float(dtype_of(x)), holomorphic, x)


def _check(what: str, which: str, kind: str, right: bool, holomorphic: bool, x: Any) -> None:
    """TypeError unless `x` is complex where holomorphic=True, and unless `right` elsewhere."""
    if holomorphic:
        what, kind, right = f"{what} with holomorphic=True", "complex", dtypes.is_complex(dtype_of(x))
    if not right:
        raise TypeError(f"{what} takes {which} of a {kind} dtype, and one is {dtype_of(x).name}")
