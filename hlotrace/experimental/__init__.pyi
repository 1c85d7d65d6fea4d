# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Callable
from hlotrace import enable_x64
from hlotrace._types import Place
from hlotrace.experimental import (
    array_serialization as array_serialization, buffer_callback as buffer_callback, checkify as checkify,
    colocated_python as colocated_python, compilation_cache as compilation_cache, compute_on as compute_on,
    control_deps as control_deps, custom_partitioning as custom_partitioning, fused as fused, hijax as hijax, jet as jet,
    key_reuse as key_reuse, layout as layout, mesh_utils as mesh_utils, multihost_utils as multihost_utils, ode as ode,
    pjit as pjit, profiler as profiler, random as random, rnn as rnn, roofline as roofline,
    scheduling_groups as scheduling_groups, serialize_executable as serialize_executable, shard_alike as shard_alike,
    shard_map as shard_map, sparse as sparse, topologies as topologies, transfer as transfer, xla_metadata as xla_metadata,
)
from typing import Any

__all__ = [
    'array_serialization', 'buffer_callback', 'checkify', 'colocated_python', 'compilation_cache', 'compute_on',
    'control_deps', 'cur_qdd', 'custom_partitioning', 'enable_x64', 'fused', 'hijax', 'io_callback', 'jet', 'key_reuse',
    'layout', 'mesh_utils', 'multihost_utils', 'ode', 'pjit', 'profiler', 'random', 'rnn', 'roofline', 'scheduling_groups',
    'serialize_executable', 'shard_alike', 'shard_map', 'sparse', 'topologies', 'transfer', 'xla_metadata',
]

def cur_qdd(value: Any) -> Any: ...
def io_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Place | None = None, ordered: bool = False,
    **kwargs: Any,
) -> Any: ...
