"""What functions that go to other hosts are made of.  Here none goes: see `colocated_python`."""
from ...core.surface.public import export_names
from ...runtime.binding import DeviceList

__all__ = ["DeviceList"]

export_names(globals())
