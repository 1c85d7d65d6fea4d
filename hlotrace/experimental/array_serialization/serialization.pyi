# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Sequence
from hlotrace import Array
from hlotrace._types import Place
from hlotrace.typing import ArrayLike
from typing import Any

__all__ = ['GlobalAsyncCheckpointManagerBase']

class GlobalAsyncCheckpointManagerBase:
    def check_for_errors(self) -> Any: ...
    def deserialize(
        self, shardings: Place, tensorstore_specs: Any, global_shapes: Any = None, dtypes: Any = None,
    ) -> Any: ...
    def serialize(self, arrays: Sequence[ArrayLike] | Array, tensorstore_specs: Any, *, on_commit_callback: Any) -> Any: ...
    def wait_until_finished(self) -> Any: ...
