"""Why a program over a mesh communicates: what each operation will exchange, before anything is compiled."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.surface.boundary import filtered
from ..jit import jit

if TYPE_CHECKING:
    from ...inspection.sharding_plan import ShardingPlan
    from ..stages import Lowered


def explain_sharding(fun: Callable[..., Any]) -> Callable[..., ShardingPlan]:
    """A function that tells what a call of `fun` with its arguments communicates, and for which operations.

    Nothing is compiled or run.  The result is a ShardingPlan: iterating gives a row for each operation that
    is needed, with `where` (its line), `operation`, the specs of its `operands` and `results`, and its
    `collectives`, each with `kind`, mesh `axes`, `bytes` on one device and how many `times` a run does it;
    `str` gives a table.  Inside of a `shard_map` specs are those of one device's part, along axes that are
    not manual.

    It is a prediction, from Shardy's propagation and what is known of XLA's partitioner, whose collectives on
    the CPU it gives one by one; XLA combines small ones of a kind.  Where it is known to do otherwise at
    times a row's `exact` is False and the table has a `~`: values split along parts of a mesh axis, rows
    taken or written at indices that are split like them, products whose result comes to be split in another
    way.  It may also for slices and paddings that take rows from devices farther away than the next one.
    GPUs' compiler joins sums over the same axes as one array.  TPUs' compiler moreover sends operands of
    products as bfloat16, joins equal sums, and takes sums out of loops that add them up.

    Args:
        fun: a function, or what `jit` makes of one, with its `in_shardings` and `out_shardings`.
    Returns:
        a function of arrays, or of ShapeDtypeStructs with shardings; an AbstractMesh will do.
    Raises:
        ValueError: in a call that no mesh takes part in.

    >>> mesh = jax.sharding.AbstractMesh((4, 2), ("data", "model"))
    >>> split = lambda *spec: jax.NamedSharding(mesh, jax.P(*spec))
    >>> x = jax.ShapeDtypeStruct((64, 256), jnp.float32, sharding=split("data", "model"))
    >>> w = jax.ShapeDtypeStruct((256, 512), jnp.float32, sharding=split("model"))
    >>> plan = jax.explain_sharding(lambda x, w: jnp.tanh(x @ w))(x, w)
    >>> plan.rows[0].operands, plan.rows[0].collectives[0].kind, plan.rows[0].collectives[0].bytes
    ((P('data', 'model'), P('model', None)), 'all-reduce', 32768)
    """
    jitted: Any = fun if hasattr(fun, "trace") else jit(fun)

    @filtered
    @functools.wraps(fun)
    def explained(*args: Any, **kwargs: Any) -> ShardingPlan:
        return plan_of(jitted.lower(*args, **kwargs))
    return explained


def plan_of(lowered: Lowered) -> ShardingPlan:
    """The ShardingPlan of a lowered function.  ValueError for a program of one device, or over devices in no
    mesh."""
    # users of one device need none of jaxlib's MLIR bindings
    from ...inspection.sharding_plan import sharding_plan
    mesh = getattr(lowered._where, "mesh", None)
    if mesh is None:
        raise ValueError(f"explain_sharding: {lowered.fun_name} is a program of one device: no mesh takes "
                         "part in it. Give arguments with a NamedSharding (arrays, or "
                         "jax.ShapeDtypeStruct(shape, dtype, sharding=...)), jit's in_shardings, or call it "
                         "within jax.set_mesh(mesh)")
    program = lowered._lowered(True)
    return sharding_plan(program.text, mesh, program.platform.on_host)
