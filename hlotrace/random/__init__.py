"""Random numbers from explicit keys: `jax.random`.

A key is typed (`key(0)`, dtype `key<fry>`) or an array of two uint32 words (`PRNGKey(0)`); every function takes
either.  Streams are those of JAX's threefry2x32.
"""
from ..core.public import offer as _offer
from .continuous import *
from .discrete import *
from .keys import *

_offer(globals())
