"""What `inside.py` lists and no other part of hlotrace has: small faces on the house's objects."""
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core import dtypes, source_info
from ..core.avals import ShapedArray
from ..core.config import state
from ..core.pytrees import pytree
from ..core.trace import EVAL
from ..runtime.devices import client

DType = np.dtype


def supports_inf(dtype: Any) -> bool:
    """Does a dtype of floats have infinities?"""
    return bool(np.isinf(np.asarray(np.inf, np.float32).astype(dtypes.as_dtype(dtype))))


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the array that holds one of an extended dtype; other types as they are."""
    if not dtypes.is_extended(aval.dtype):
        return aval
    return aval.update(shape=(*aval.shape, *aval.dtype.physical_shape), dtype=aval.dtype.physical_dtype)


def trace_state_clean() -> bool:
    """Is nothing being traced?"""
    return state.trace is EVAL


def include_frame(frame: Any) -> bool:
    """Is a frame, of a stack or a traceback, to be shown to users?"""
    return not source_info.is_package(frame.f_code.co_filename)


class TypedNdArray(np.ndarray):
    """Constants of JAX's programs: here they are NumPy's own arrays, and nothing is of this class."""


class _ExcludedPaths:
    """The list of the files whose frames are left out."""

    append, remove = staticmethod(source_info.exclude), staticmethod(source_info.include)

    def __iter__(self) -> Iterator[str]:
        return iter(source_info.excluded())

    def __len__(self) -> int:
        return len(source_info.excluded())


exclude_paths = _ExcludedPaths()


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: Any = None) -> list[Callable[[str], ValueError]]:
    """Where a tree is no prefix of another: for each place a function from the prefix's name to the error."""
    lines = pytree.prefix_errors(prefix_tree, full_tree, is_leaf)
    return [lambda name, line=line: ValueError(line.replace("at ", f"at {name}", 1)) for line in lines]


class _PytreeTypes:
    """The classes of containers: `type(x) in pytree_types`."""

    def __contains__(self, kind: type) -> bool:
        return pytree.is_tree_node(kind)


pytree_types = _PytreeTypes()


class _GlobalState:
    """This process among those of a job, as `distributed.initialize` made it."""

    client = property(lambda self: client.world and client.world.client)
    process_id = property(lambda self: client.world.process_id if client.world else 0)
    num_processes = property(lambda self: client.world.num_processes if client.world else 1)
    coordinator_address = property(lambda self: client.world and client.world.address)


global_state = _GlobalState()
