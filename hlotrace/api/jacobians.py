"""Jacobians: jacfwd column by column, jacrev row by row; hessian."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec

from ..core import dtypes
from ..core.avals import ShapedArray, aval_of
from ..core.config import state
from ..core.jaxpr import exactly
from ..core.surface.boundary import filtered
from ..core.symbolic.dimension import is_symbolic_dim
from ..primitives.arrays.elementwise import add, convert, eq
from ..primitives.arrays.shape import reshape, zeros_of
from ..primitives.arrays.slicing import iota_p, slice_along
from ..primitives.common import np
from ..primitives.parallel.sharding import as_type
from ..transforms.jvp import jvp_flat
from . import adapters, autodiff
from .flat import FlatFunction
from .signatures import name_of, wraps
from .vmap import vmap

_P = ParamSpec("_P")


def _basis(avals: Sequence[ShapedArray]) -> list[Any]:
    """All unit vectors of a list of avals: one stacked array for each, with a common leading axis."""
    sizes = [a.size for a in avals]
    total, start, stacked = sum(sizes), 0, []
    for a, n in zip(avals, sizes):
        ShapedArray((total, n), a.dtype)     # or an error: too many elements
        # in a program XLA sees what is 0 or 1: it then chooses, where 0 times an infinite slope would be NaN
        if is_symbolic_dim(total) or state.trace.staging and a.dtype != dtypes.float0:
            rows, columns = (iota_p.bind(dtype=np.dtype(np.int32), shape=(total, n), dimension=i)
                             for i in (0, 1))
            offset = start.as_value(np.dtype(np.int32)) if is_symbolic_dim(start) else np.int32(start)
            block = convert(eq(rows, add(columns, offset)), a.dtype)
            stacked.append(reshape(block, (total, *a.shape)))
        else:
            block = np.zeros((total, n), a.dtype)
            block[start:start + n] = np.eye(n, dtype=a.dtype)
            stacked.append(exactly(block.reshape(total, *a.shape)))
        start += n
    return [x if a.explicit is None else as_type(x, a.with_axis(0, total))
            for x, a in zip(stacked, avals)]


def _unstack(x: Any, axis: int, avals: Sequence[ShapedArray]) -> list[Any]:
    """Cut the axis that ran over a basis into one block for each aval, shaped like it."""
    blocks, start = [], 0
    for a in avals:
        part = slice_along(x, axis, start, start + a.size)
        blocks.append(reshape(part, (*x.shape[:axis], *a.shape, *x.shape[axis + 1:])))
        start += a.size
    return blocks


def _slope_type(aval: ShapedArray) -> ShapedArray:
    """The type of a derivative of, or by, a value of this type: what is counted has zeros of its own type."""
    tangent = aval.tangent()
    return aval if tangent.dtype == dtypes.float0 else tangent


def _jacobian(fun: Callable[..., Any], argnums: Any, what: str, has_aux: bool,
              build: Callable[[FlatFunction], tuple[Iterable[Any], Any]]) -> Callable[..., Any]:
    """`build(flat)` gives (a list for each output leaf: blocks, one an input leaf; aux)."""
    argnums = autodiff.checked_argnums(fun, argnums)

    @filtered
    @wraps(fun, f"Jacobian of {name_of(fun)} with respect to positional argument(s) {argnums}.")
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        flat, order = autodiff.chosen_arguments(fun, args, kwargs, argnums, what, has_aux)
        if adapters.of_values(flat.in_tree):
            raise TypeError(f"{flat}: a Jacobian is by elements of arrays, and an argument is a value of a "
                            "hijax type: differentiate with jvp or vjp")
        rows, aux = build(flat)
        jac = flat.out_tree.unflatten([autodiff.picked(flat.arg_tree.unflatten(row), order) for row in rows])
        return (jac, aux) if has_aux else jac
    return jacobian_of


def jacfwd(fun: Callable[_P, Any], argnums: Any = 0, has_aux: bool = False,
           holomorphic: bool = False) -> Callable[_P, Any]:
    """The Jacobian of `fun`, column by column (forward mode): good for few inputs and many outputs.

    The result has the structure of the output with, for each leaf, the structure of the argument; a leaf has
    the output's shape followed by the input's.

    >>> jax.jacfwd(lambda x: jnp.array([x[0] * x[1], x[1], 5.]))(jnp.array([2., 3.]))
    Array([[3., 2.],
           [0., 1.],
           [0., 0.]], dtype=float32)
    """
    def build(flat: FlatFunction) -> tuple[list[Any], Any]:
        avals = flat.avals()
        autodiff.check_input_dtype(flat, avals, holomorphic)
        leaves = autodiff.as_operands(flat.leaves)

        def push(*tangents: Any) -> tuple[list[Any], list[Any]]:
            outs, moved = jvp_flat(flat, leaves, tangents, "jvp()")
            n = flat.out_tree.num_leaves
            types = [_slope_type(aval_of(o)) for o in outs[:n]]
            moved = [zeros_of(a) if t is None or aval_of(t).dtype == dtypes.float0 else t
                     for t, a in zip(moved, types)]
            moved = [autodiff.giving_way(t, a.weak_type) for t, a in zip(moved, types)]
            return moved, outs[n:]
        columns, aux = vmap(push, out_axes=(-1, None))(*_basis([a.tangent() for a in avals]))
        if holomorphic:
            autodiff.check_output_dtype(flat, map(aval_of, columns), holomorphic)
        blocks = [_unstack(c, c.ndim - 1, avals) for c in columns]
        return blocks, flat.aux_tree.unflatten(aux) if has_aux else None
    return _jacobian(fun, argnums, "jacfwd", has_aux, build)


def jacrev(fun: Callable[_P, Any], argnums: Any = 0, has_aux: bool = False, holomorphic: bool = False,
           allow_int: bool = False) -> Callable[_P, Any]:
    """The Jacobian of `fun`, row by row (reverse mode): good for many inputs and few outputs.

    The result is structured as that of `jacfwd`.

    >>> both = jax.jacrev(lambda x, y: {"sum": jnp.sum(x * y)}, argnums=(0, 1))
    >>> both(jnp.array([2., 3.]), jnp.array([4., 5.]))
    {'sum': (Array([4., 5.], dtype=float32), Array([2., 3.], dtype=float32))}
    """
    def build(flat: FlatFunction) -> tuple[Iterable[Any], Any]:
        avals = flat.avals()
        autodiff.check_input_dtype(flat, avals, holomorphic, allow_int)
        outs, aux, pullback = autodiff.linearize_call(flat, avals)
        autodiff.check_output_dtype(flat, pullback.out_avals, holomorphic)
        rows = vmap(lambda *cts: pullback.flat(list(cts)))(*_basis(pullback.out_avals))
        rows = [zeros_of(_slope_type(a).update(shape=r.shape)) if aval_of(r).dtype == dtypes.float0 else r
                for r, a in zip(rows, avals)]
        return zip(*[_unstack(r, 0, pullback.out_avals) for r in rows]), aux
    return _jacobian(fun, argnums, "jacrev", has_aux, build)


def jacobian(fun: Callable[_P, Any], argnums: Any = 0, has_aux: bool = False, holomorphic: bool = False,
             allow_int: bool = False) -> Callable[_P, Any]:
    """The Jacobian of `fun`, as `jacrev` computes it.

    >>> jax.jacobian(lambda x: x ** 2)(jnp.array([2., 3.]))
    Array([[4., 0.],
           [0., 6.]], dtype=float32)
    """
    return jacrev(fun, argnums, has_aux, holomorphic, allow_int)


def hessian(fun: Callable[_P, Any], argnums: Any = 0, has_aux: bool = False,
            holomorphic: bool = False) -> Callable[_P, Any]:
    """The matrix of second derivatives of a scalar function: forward over reverse.

    The result has the shape of the argument twice; of a function of several outputs, that of the output
    before them.

    >>> jax.hessian(lambda x: x[0] ** 2 * x[1])(jnp.array([2., 3.]))
    Array([[6., 4.],
           [4., 0.]], dtype=float32)
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)
