"""Derivatives held against differences of values: `hlotrace.test_util`."""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.avals import aval_of
from ...core.pytrees import pytree
from ..autodiff import jvp, vjp

# how far a derivative may be from the difference quotient, absolutely and relative to it
_TOLERANCE = {"bfloat16": 1e-1, "float16": 1e-2, "float32": 2e-3, "float64": 1e-5, "complex64": 1e-3,
              "complex128": 1e-5}
# the steps of narrow floats
_STEPS = {"bfloat16": 0.25, "float16": 0.06, "float32": 1e-3, "complex64": 1e-3}
Tolerance = float | dict[Any, float]        # one for all, or by dtype


def check_grads(f: Callable[..., Any], args: Any, order: int, modes: str | Sequence[str] = ("fwd", "rev"),
                atol: Tolerance | None = None, rtol: Tolerance | None = None,
                eps: float | None = None) -> None:
    """Check that the derivatives of `f` are what differences of its values give.

    Integers among the arguments stay as they are.  Directions are random, the same in each call.

    Args:
        args: where its derivatives are taken, the tuple of its arguments.
        order: 1 checks the first derivatives, n also those of the derivatives, n deep.
        modes: "fwd" checks jvp, "rev" vjp; one of them or several.
        atol: how far derivatives may be off, a number or {dtype: number}; by the dtype unless given: 2e-3 for
            float32, 1e-5 for float64.
            What large values lose to rounding, in a difference over the step, is allowed besides.
        rtol: the same, relative to the derivative.
        eps: the size of the step, 1e-4 unless given, and more for floats narrower than 64 bits; then also a
            fifth of it, where the first finds a fault.
    Raises:
        AssertionError: where they are not.  It says which derivative of which order is wrong, in which
            result, and at which element.
        ValueError: for other `modes`.
        TypeError: for `args` that are no tuple or list.

    >>> jax.test_util.check_grads(jnp.sin, (1.0,), order=2)
    >>> @jax.custom_jvp
    ... def f(x):
    ...     return x ** 2
    >>> rule = f.defjvp(lambda xs, ts: (f(*xs), xs[0] * ts[0]))        # a factor of 2 is missing
    >>> jax.test_util.check_grads(f, (3.0,), order=1, modes="fwd")
    Traceback (most recent call last):
    ...
    AssertionError: test_util.check_grads: jvp: the derivative of the result, float32[], is not what ...
    """
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    for mode in modes:
        if mode not in ("fwd", "rev"):
            raise ValueError(f"check_grads: modes must be 'fwd', 'rev' or both, got {mode!r}")
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"check_grads: args is the tuple of the arguments of f, got {type(args).__name__}; "
                        "write (x,)")
    _check_orders(f, tuple(args), order, modes, (atol, rtol, eps), "check_grads: ")


def _check_orders(f: Callable[..., Any], args: Any, order: int, modes: tuple[str, ...], how: tuple[Any, ...],
                  where: str) -> None:
    if "fwd" in modes:
        _check_jvp(f, functools.partial(jvp, f), args, *how, f"{where}jvp")
        if order > 1:
            def forward(*args: Any) -> list[Any]:
                out, moved = jvp(f, args, _directions(args))
                return _moving(moved, out)
            _check_orders(forward, args, order - 1, modes, how, f"{where}jvp of ")
    if "rev" in modes:
        _check_vjp(f, functools.partial(vjp, f), args, *how, f"{where}vjp")
        if order > 1:
            def backward(*args: Any) -> list[Any]:
                out, pull = vjp(f, *args)
                return _moving(pull(_directions(out, 1)), args)
            _check_orders(backward, args, order - 1, modes, how, f"{where}vjp of ")


def check_jvp(f: Callable[..., Any], f_jvp: Callable[..., Any], args: Any, atol: Tolerance | None = None,
              rtol: Tolerance | None = None, eps: float = 1e-4, err_msg: str = "") -> None:
    """Check that `f_jvp(args, tangents)` gives the values of `f(*args)` and the tangents of differences.

    Args:
        f_jvp: its forward derivative, as `functools.partial(jvp, f)`.
        atol: as for `check_grads`.
        rtol: as for `check_grads`.
        eps: the size of the step.
        err_msg: what the error's words begin with.
    Raises:
        AssertionError: where it does not.

    >>> jax.test_util.check_jvp(jnp.sin, lambda xs, ts: jax.jvp(jnp.sin, xs, ts), (1.0,))
    """
    _check_jvp(f, f_jvp, args, atol, rtol, eps, err_msg or "check_jvp")


def check_vjp(f: Callable[..., Any], f_vjp: Callable[..., Any], args: Any, atol: Tolerance | None = None,
              rtol: Tolerance | None = None, eps: float = 1e-4, err_msg: str = "") -> None:
    """Check that `f_vjp(*args)` gives the values of `f(*args)` and a function that makes the cotangents.

    Those must be what differences give, along a random direction.

    Args:
        f_vjp: its reverse derivative, as `functools.partial(vjp, f)`; all others are as for `check_jvp`.
    Raises:
        AssertionError: where it does not.

    >>> jax.test_util.check_vjp(jnp.sin, lambda x: jax.vjp(jnp.sin, x), (1.0,))
    """
    _check_vjp(f, f_vjp, args, atol, rtol, eps, err_msg or "check_vjp")


def _at_steps(check: Callable[..., None]) -> Callable[..., None]:
    """Differences with a coarse step lose little to rounding; where `f` bends much a finer one decides."""
    @functools.wraps(check)
    def tried(f: Callable[..., Any], derivative: Callable[..., Any], args: Any, atol: Tolerance | None,
              rtol: Tolerance | None, eps: float | None, where: str) -> None:
        if eps is None:
            eps = max([_STEPS.get(aval_of(x).dtype.name, 1e-4) for x in pytree.tree_leaves(args)],
                      default=1e-4)
            with contextlib.suppress(AssertionError):
                return check(f, derivative, args, atol, rtol, eps, where)
            eps /= 5
        return check(f, derivative, args, atol, rtol, eps, where)
    return tried


@_at_steps
def _check_jvp(f: Callable[..., Any], f_jvp: Callable[..., Any], args: Any, atol: Tolerance | None,
               rtol: Tolerance | None, eps: float, where: str) -> None:
    change = _directions(args)
    values, moved = f_jvp(tuple(args), change)
    _check_values(f(*args), values, where)
    want = _differences(f, args, change, eps)
    paths = pytree.leaf_paths(values, prefix="the result")
    leaves = map(pytree.tree_leaves, (values, moved, want))
    for path, value, got, expected in zip(paths, *leaves, strict=True):
        _compare(f"{where}: the derivative of {path}", got, expected,
                 (*_tolerances(atol, rtol, value, args), _rounding(value, eps)),
                 "is not what differences give")


@_at_steps
def _check_vjp(f: Callable[..., Any], f_vjp: Callable[..., Any], args: Any, atol: Tolerance | None,
               rtol: Tolerance | None, eps: float, where: str) -> None:
    values, pull = f_vjp(*args)
    _check_values(f(*args), values, where)
    weights, change = _directions(values, 1), _directions(args)
    back = tuple(pull(weights))
    rounding = sum(_rounding(x, eps) * np.sum(np.abs(w).astype(float))
                   for x, w in zip(*map(pytree.tree_leaves, (values, weights))) if _moves(x))
    how = (*_tolerances(atol, rtol, values, args), rounding)
    along = _dot(weights, _differences(f, args, change, eps))
    if _near(_dot(back, change), along, how):
        return
    leaves, treedef = pytree.tree_flatten(change)
    for i, path in enumerate(pytree.leaf_paths(tuple(args), prefix="args")):        # whose cotangent is it?
        alone = treedef.unflatten([x if i == j or not x.dtype.itemsize else np.zeros_like(x)
                                   for j, x in enumerate(leaves)])
        _compare(f"{where}: the cotangent of {path}, along a random direction", _dot(back, alone),
                 _dot(weights, _differences(f, args, alone, eps)), how, "is not what differences give")
    _compare(f"{where}: the cotangents, along a random direction", _dot(back, change), along, how,
             "are not what differences give")


def _check_values(want: Any, got: Any, where: str) -> None:
    if pytree.tree_structure(want) != pytree.tree_structure(got):
        raise AssertionError(f"{where}: f gives {pytree.tree_structure(want)}, its derivative's values are "
                             f"{pytree.tree_structure(got)}")
    for path, w, g in zip(pytree.leaf_paths(want, prefix="the result"), pytree.tree_leaves(want),
                          pytree.tree_leaves(got)):
        _compare(f"{where}: the value of {path} beside the derivative", g, np.asarray(w),
                 (*_tolerances(None, None, w, ()), 0), "is not that of f")


def _compare(what: str, got: Any, want: Any, how: tuple[Any, ...], words: str) -> None:
    if _near(got, want, how):
        return
    got, aval = np.asarray(got), aval_of(got)
    if got.shape != want.shape:
        raise AssertionError(f"{what} is {aval.str_short()}, and should have shape {want.shape}")
    off = np.abs(got.astype(want.dtype) - want)
    at = np.unravel_index(np.argmax(np.where(np.isnan(off), np.inf, off)), want.shape)
    place = f" at {list(map(int, at))}" if at else ""
    raise AssertionError(f"{what}, {aval.str_short()}, {words} with atol={how[0]:g}, rtol={how[1]:g}: got "
                         f"{got[at]:.6g}{place}, expected {want[at]:.6g}")


def _near(got: Any, want: Any, how: tuple[Any, ...]) -> bool:
    got = np.asarray(got)
    return got.dtype == dtypes.float0 or got.shape == np.shape(want) and np.allclose(
        got.astype(_wide(got)), want, atol=how[0] + how[2], rtol=how[1], equal_nan=True)


def _tolerances(atol: Any, rtol: Any, values: Any, args: Any) -> tuple[float, float]:
    """(atol, rtol), those not given as the roughest dtype of the values and arguments allows."""
    rough = max([_TOLERANCE.get(aval_of(x).dtype.name, 0) for x in pytree.tree_leaves((values, args))],
                default=0)
    return _of_dtypes(atol, values, args, rough), _of_dtypes(rtol, values, args, rough)


def _of_dtypes(given: Any, values: Any, args: Any, rough: float) -> float:
    """A tolerance that is given as a number, as {dtype: number}, of which the largest counts, or not."""
    if isinstance(given, dict):
        table = {dtypes.canonicalize(dtype).name: number for dtype, number in given.items()}
        return max([table.get(aval_of(x).dtype.name, rough) for x in pytree.tree_leaves((values, args))],
                   default=rough)
    return rough if given is None else given


def _rounding(value: Any, eps: float) -> float:
    """How far the rounding of values like these, to their dtype, may bring a difference of two over `eps`."""
    if not _moves(value):
        return 0
    value = np.asarray(value)
    largest = np.max(np.abs(value), initial=0).astype(float)
    return 2 * dtypes.finfo(value.dtype).eps.astype(float) * largest / eps


def _wide(x: Any) -> type:
    return np.complex128 if np.iscomplexobj(x) else np.float64


def _moves(x: Any) -> bool:
    return dtypes.is_inexact(aval_of(x).dtype)


def _moving(tangents: Any, values: Any) -> list[Any]:
    """The tangents of those values that have some."""
    return [t for t, x in zip(pytree.tree_leaves(tangents), pytree.tree_leaves(values)) if _moves(x)]


def _directions(values: Any, seed: int = 0) -> Any:
    """A random direction for each leaf, of its shape and dtype, or of dtype float0 where it does not move."""
    rng = np.random.default_rng(seed)

    def one(x: Any) -> np.ndarray:
        aval = aval_of(x)
        if not _moves(x):
            return np.zeros(aval.shape, dtypes.float0)
        found = rng.normal(size=aval.shape)
        if dtypes.is_complex(aval.dtype):
            found = found + 1j * rng.normal(size=aval.shape)
        return np.asarray(found).astype(aval.dtype)
    return pytree.tree_map(one, values)


def _differences(f: Callable[..., Any], args: Any, change: Any, eps: float) -> Any:
    """The central differences of `f` along `change`, in 64 bits."""
    def at(step: float) -> Any:
        def moved(x: Any, t: Any) -> Any:
            if not _moves(x):
                return x
            return (np.asarray(x).astype(_wide(t)) + step * t.astype(_wide(t))).astype(t.dtype)
        return f(*pytree.tree_map(moved, tuple(args), tuple(change)))
    return pytree.tree_map(lambda a, b: (np.asarray(a).astype(_wide(a)) - np.asarray(b).astype(_wide(b))) /
                           eps, at(eps / 2), at(-eps / 2))


def _dot(xs: Any, ys: Any) -> np.ndarray:
    """The real part of the sum of products of all leaves: transposes conjugate nothing."""
    return np.asarray(sum(np.sum(np.asarray(x).astype(_wide(x)) * np.asarray(y).astype(_wide(y))).real
                          for x, y in zip(pytree.tree_leaves(xs), pytree.tree_leaves(ys))
                          if np.asarray(x).dtype != dtypes.float0 != np.asarray(y).dtype))
