"""SciPy's functions on traced and compiled arrays; its modules are imported when they are first used."""
from ..core.surface.public import export_names as _offer

_offer(globals(), lazy={
    "": "cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats"})
