"""Random numbers from explicit keys: `jax.random`.

A key is typed (`key(0)`, dtype `key<fry>`) or an array of uint32 words (`PRNGKey(0)`); every function takes
either.  Streams are those of JAX, of its threefry2x32 and of XLA's generators ("rbg", "unsafe_rbg").
"""
from typing import NewType as _NewType

from ..core.array import Array as _Array
from ..core.surface.public import export_names as _offer
from .continuous import *
from .count_samplers import *
from .discrete import *
from .gamma import random_gamma_p
from .keys import *
from .samplers import *

Key = _NewType("Key", _Array)
Key.__doc__ = """The type of keys, for annotations.

>>> def noise(key: jax.random.Key):
...     return jax.random.normal(key)
>>> noise(jax.random.key(0)).shape
()
"""

_offer(globals(), lazy={"multivariate_samplers": "multivariate_normal orthogonal"})
