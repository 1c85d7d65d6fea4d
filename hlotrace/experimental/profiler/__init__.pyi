# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from typing import Any

__all__ = ['get_profiled_instructions_proto']

def get_profiled_instructions_proto(tensorboard_dir: Any) -> Any: ...
