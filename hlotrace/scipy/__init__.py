"""SciPy's functions on traced and compiled arrays; its modules are imported when they are first used."""
from ..core.surface.public import offer as _offer

_offer(globals(), homes={
    "": "cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats"})
