"""`out_sharding=`: the result of a function with the sharding that its caller requests."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..api.jit import JitFunction
from ..core.avals import ShapedArray, aval_of, aval_or_none, is_arraylike
from ..core.config import state
from ..core.errors import ShardingTypeError
from ..core.trace import EVAL
from ..runtime.array_impl import ArrayImpl, from_numpy
from ..runtime.executables.runtime_checks import check_value
from .device_put import device_put


def _unsaid(sharding: Any) -> bool:
    """Is it None, or over no mesh, as `typeof(x).sharding` of what is not committed?"""
    return sharding is None or getattr(getattr(sharding, "mesh", None), "axis_names", None) == ()


def with_out_sharding(x: Any, sharding: Any, what: str) -> Any:
    """`x` divided so over Explicit mesh axes; outside of a trace the array is moved.

    Args:
        sharding: a NamedSharding, a PartitionSpec of the current mesh, or None for as it is.
        what: what errors begin with.
    Raises:
        TypeError: for another kind of sharding.
        ValueError: where a dimension does not divide, for axes that are not Explicit, for a spec where there
            is no mesh, and for another mesh than that in use.
    """
    if _unsaid(sharding):
        return x
    from .shardings import constrained, result_sharding  # programs without shardings need no such modules
    return constrained([x], [result_sharding(sharding, what)], what)[0]


def over_auto_axes(*operands: Any) -> list[Any]:
    """The operands of a function whose caller gives `out_sharding`: how the result is divided need not follow
    from their types, so they have none over Explicit mesh axes."""
    split = [aval_or_none(x) is not None and aval_of(x).explicit is not None for x in operands]
    if not any(split):
        return list(operands)
    from ..primitives.parallel.sharding import without_types  # programs over no Explicit axes need none of it
    return [without_types(x) if s else x for x, s in zip(operands, split)]


def unreduced_axes(sharding: Any, what: str, *operands: Any) -> frozenset[str]:
    """Over which mesh axes the sum of products or values of the operands is still to be taken in a result
    that is to have this `out_sharding`.  ShardingTypeError if there are some and no operand is split."""
    if _unsaid(sharding) or not getattr(getattr(sharding, "spec", sharding), "unreduced", None):
        return frozenset()
    from .shardings import named
    found = named(sharding, what).spec.unreduced
    if found and operands and all(aval_of(x).explicit is None for x in operands):
        raise ShardingTypeError(f"{what}: out_sharding's unreduced axes should be equal to the contracting "
                                f"specs: out_sharding={sharding}, and no mesh axis splits an operand: a sum "
                                "of what is whole cannot be made unreduced. Split the dimensions that are "
                                "summed first, with jax.reshard")
    return found


def new_array(value: Any, *, aval: ShapedArray, given: bool = False) -> ArrayImpl:
    """The array of a NumPy value: on the default device, or whole on each of the mesh that `set_mesh` said.

    Its spec is that of a program's result, with an entry for each dimension over Explicit axes, unless the
    user has `given` the value.
    """
    if state.check_floats:
        check_value(np.asarray(value), "a new array")
    mesh = state.mesh_to_run_on
    if mesh is None:
        return from_numpy(value, aval=aval)
    from ..runtime.devices import shards  # programs over one device need none of these modules
    from ..sharding.named import NamedSharding
    from ..sharding.spec import PartitionSpec
    entries = 0 if given or not mesh.explicit_axes else aval.ndim
    sharding = NamedSharding(mesh, PartitionSpec(*[None] * entries))
    typed = sharding.typed(aval) if given else aval
    return ArrayImpl(typed, shards.put(np.asarray(value), aval, sharding), True)


def devices_like(x: Any) -> Any:
    """Where an array like `x` is made: the sharding of a committed array or a type; None for anywhere.

    The sharding of a type names no devices.  It is that of the mesh in use, if that has its axes and they
    split something.
    """
    if not getattr(x, "_committed", not is_arraylike(x)):
        return aval_of(x).explicit
    sharding: Any = getattr(x, "sharding", None)
    mesh = getattr(sharding, "mesh", None)
    if mesh is None or hasattr(mesh, "devices"):
        return sharding
    if not any(sharding.spec):
        return None
    from ..sharding.named import over_mesh_in_use
    found = over_mesh_in_use(sharding)
    return found if hasattr(found.mesh, "devices") else None


SMALL = 1 << 20      # bytes: so much is made sooner by one device, or the host, than a program is compiled


def make_with_sharding(make: Callable[[], Any], size: int, what: str, device: Any = None,
                       out_sharding: Any = None) -> Any:
    """The array of `size` bytes that `make()` gives, on `device` or as `out_sharding` says.

    `device` is a Device or a Sharding.  Outside of a trace each device makes its part of what is large, so
    that no device holds the whole.

    Raises:
        ValueError: where both are given, and as `with_out_sharding`.
        TypeError: for what is no sharding.
    """
    if device is None and _unsaid(out_sharding):
        return make()
    if device is not None and out_sharding is not None:
        raise ValueError(f"{what}: device and out_sharding both say where the result is placed; give one")
    from .shardings import as_sharding, constrained, result_sharding  # see above
    sharding = result_sharding(out_sharding, what) if device is None else device
    if sharding is None:
        return make()
    if state.trace is not EVAL or size <= SMALL:
        mesh: Any = getattr(sharding, "mesh", None)
        if mesh is not None and mesh.explicit_axes:
            return constrained([make()], [sharding], what)[0]
        return device_put(make(), device)
    program = JitFunction(make, out_shardings=as_sharding(sharding, what))
    program._name, program.explained = what, False
    program._placement.name = what
    return program()
