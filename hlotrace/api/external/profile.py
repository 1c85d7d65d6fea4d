"""Where the time of a function goes, by line, by scope and by operation: it is run under the profiler."""
from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.errors import check_callable, not_an_int
from ...core.pytrees import pytree
from ...core.surface.boundary import boundary, filtered
from ...inspection import hlo_text, profiling
from ...inspection.planning import estimates, hlo_costs
from ...inspection.timing import times, trace_events
from ...runtime.array_impl import ArrayImpl
from ..jit import jit
from ..stages import Compiled

__all__ = ["profile"]

_PRODUCT = 512              # rows and columns of the matrices that say what the CPU reaches
_TRIALS = 12                # of that; the first compiles


@boundary
def profile(fun: Callable[..., Any], *, runs: int = 5) -> Callable[..., times.Profile]:
    """A function that runs `fun` under the profiler and gives where the time went.

    `profile(step)(params, batch)` compiles, runs once to warm up, then `runs` times.  The Profile is of the
    fastest run: printed, it is tables of the time by line of the program, by named scope with forward and
    backward passes apart, and by operation, with how often each began, the rate that it reached, and its
    share of the roofline: of the chip's peak rates, or on the CPU, for products alone, of what one reaches
    there.  `view(path)` makes the program's page with the times in it.

    The time of a fusion goes to the line that XLA names for it.  Where several operations run at a time each
    takes an equal part; collectives wait within theirs.

    Args:
        fun: a function, or what `jit` made of one.  Arguments that are donated are copied for each run.
    Returns:
        A function of the arguments of `fun` that gives a `Profile`, whose `operations` are sorted by their
        `seconds`; `by_line()`, `by_scope()` and `by_pass()` sum them up.
    Raises:
        ValueError: where it is not run at all, or is for devices that are not here.

    >>> def step(w, x):
    ...     with jax.named_scope("layer"):
    ...         return jnp.tanh(x @ w).sum()
    >>> found = jax.profile(jax.grad(step), runs=2)(jnp.ones((64, 64)), jnp.ones((32, 64)))
    >>> sorted(found.by_pass()), len(found.runs), found.by_scope().keys() >= {("layer",)}
    (['backward', 'forward'], 2, True)
    """
    check_callable(fun, "as in profile(step)(params, batch)")
    if not isinstance(runs, int):
        raise not_an_int("profile: runs", runs)
    if runs < 1:
        raise ValueError(f"profile: runs={runs}: it is to run at least once")

    @filtered
    def profiled(*args: Any, **kwargs: Any) -> times.Profile:
        jitted = fun if hasattr(fun, "trace") else jit(fun)
        lowered = jitted.trace(*args, **kwargs).lower()
        compiled = lowered.compile()
        where: Any = lowered._where
        devices = getattr(where, "devices", (where,))
        fixed = {place for place, _ in lowered._stage._flat.statics}
        args = tuple(x for i, x in enumerate(args) if i not in fixed)
        kwargs = {name: x for name, x in kwargs.items() if name not in fixed}
        found = _taken(compiled, args, kwargs, runs)
        text = compiled.as_text()
        chip, measured = _chip(devices, text)
        return times.profile_of(compiled.fun_name, text, found, devices, chip, measured,
                                lambda path, found: compiled.view(path, profile=found))
    return profiled


def _taken(compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], runs: int) -> Any:
    """The ProfileData of the runs."""
    def ready() -> tuple[Any, Any]:
        """The arguments, as copies of what is given away."""
        if not compiled.donate_argnums:
            return args, kwargs
        leaves, structure = pytree.tree_flatten((args, kwargs))
        given = set(compiled.donate_argnums)
        copies = structure.unflatten([x.copy() if i in given and isinstance(x, ArrayImpl) else x
                                      for i, x in enumerate(leaves)])
        _wait(copies)
        return copies

    def run() -> None:
        here, named = ready()
        with profiling.TraceAnnotation(trace_events.RUN):
            _wait(compiled(*here, **named))
    run()
    options = profiling.ProfileOptions()
    options.python_tracer_level = 0
    with profiling.trace(profiler_options=options) as session:
        for _ in range(runs):
            run()
    return session.profile_data


def _wait(tree: Any) -> None:
    for x in pytree.tree_leaves(tree):
        if isinstance(x, ArrayImpl):
            x.block_until_ready()


# --- the roofline

def _chip(devices: Sequence[Any], text: str) -> tuple[Any, bool]:
    """(the Chip of the devices, are its rates measured?); those of the CPU share what the machine reaches."""
    if devices[0].platform != "cpu":
        return estimates.chip_of(devices[0]), False
    names = {dtype.removesuffix(hlo_costs.ONE_PASS) for module in hlo_text.modules(text)
             for dtype in hlo_costs.costs(module).products}
    operand = np.full((_PRODUCT, _PRODUCT), 1 / _PRODUCT)
    products = {name: 2 * _PRODUCT ** 3 / _seconds(lambda a: a @ a, operand.astype(np.dtype(name)))
                for name in sorted(names)}
    return dataclasses.replace(
        estimates.NOMINAL_CPU, peak={name: rate / len(devices) for name, rate in products.items()},
        bandwidth=math.inf, vector=None), True    # memory binds nothing that is in caches


def _seconds(fun: Callable[[Any], Any], x: Any) -> float:
    """The least that a function takes of x, then of its result."""
    compiled, least = jit(fun), float("inf")
    for _ in range(_TRIALS):
        start = time.perf_counter()
        x = compiled(x)
        x.block_until_ready()
        least = min(least, time.perf_counter() - start)
    return least
