# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Callable
from hlotrace.experimental.colocated_python import serialization as serialization
from typing import Any

__all__ = ['colocated_cpu_devices', 'colocated_python', 'colocated_python_class', 'serialization']

def colocated_cpu_devices(devices_or_mesh: Any) -> Any: ...
def colocated_python(fun: Callable[..., Any]) -> Any: ...
def colocated_python_class(cls: Any) -> Any: ...
