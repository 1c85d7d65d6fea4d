# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Callable
from hlotrace._types import _P, _R
from hlotrace.sharding import AbstractMesh, Mesh
from typing import Any

__all__ = ['shard_map']

def shard_map(
    f: Callable[_P, _R], mesh: Mesh | AbstractMesh, in_specs: Any, out_specs: Any, check_rep: bool = True, auto: Any = ...,
) -> Callable[_P, _R]: ...
