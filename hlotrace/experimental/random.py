"""A generator of random numbers that counts its draws in a Ref, and draws as `hlotrace.random` does."""
import dataclasses

import numpy as np

from .. import numpy as jnp, random
from ..core.config import state
from ..core.refs import Ref
from ..core.surface.public import export_names
from ..core.trace import EVAL
from ..numpy.indexing.refs import new_ref
from ..numpy.util import joint_shape
from ..tree_util import register_dataclass

__all__ = ["StatefulPRNG", "stateful_rng"]


@dataclasses.dataclass(frozen=True)
class StatefulPRNG:
    """A generator: each draw takes a key of its own, fold_in(base key, number of the draw).

    A pytree: it can be an argument of `jit` and `vmap`, which see the same counter, and no result of theirs.
    """
    _base_key: random.Key
    _counter: Ref

    def key(self, shape=()):
        """The next key, or, with a shape, that many keys split from it."""
        if jnp.ndim(self._base_key):
            raise ValueError(f"this generator was split into {self._base_key.shape}: map over it with vmap, "
                             "or use spawn, which gives a list of generators")
        key = random.fold_in(self._base_key, self._counter[...])
        self._counter[...] += 1
        return key if shape == () else random.split(key, shape)

    def random(self, size=None, dtype=float):
        """Uniform floats in [0, 1)."""
        return self.uniform(size=size, dtype=dtype)

    def uniform(self, low=0, high=1, size=None, *, dtype=float):
        """Uniform floats in [low, high), of shape `size`, that of low and high unless given."""
        return random.uniform(self.key(), _shape(size, low, high), dtype, low, high)

    def normal(self, loc=0, scale=1, size=None, *, dtype=float):
        """Normal values with mean `loc` and standard deviation `scale`."""
        values = random.normal(self.key(), _shape(size, loc, scale), dtype)
        return jnp.asarray(loc, values.dtype) + jnp.asarray(scale, values.dtype) * values

    def integers(self, low, high=None, size=None, *, dtype=int):
        """Integers in [low, high), or in [0, low) without `high`."""
        low, high = (0, low) if high is None else (low, high)
        return random.randint(self.key(), _shape(size, low, high), low, high, dtype)

    def spawn(self, n_children):
        """A list of independent generators."""
        return [_made(key) for key in self.key(n_children)]

    def split(self, num):
        """Independent generators as one, whose arrays have that shape in front: for `vmap`."""
        return _made(self.key(num))


register_dataclass(StatefulPRNG, ["_base_key", "_counter"], [])


def _shape(size, *parameters):
    if size is None:
        return joint_shape(*map(jnp.shape, parameters))
    return (size,) if isinstance(size, (int, np.integer)) else tuple(size)


def _made(key):
    return StatefulPRNG(key, new_ref(jnp.full(key.shape, 0)))


def stateful_rng(seed=None, *, impl=None):
    """A generator whose methods `random`, `uniform`, `normal`, `integers` draw anew each time, as NumPy's do.

    Its methods can be called inside of `jit`, as those of any object that has a Ref.

    Args:
        seed: an int; None, outside of transformations only, takes one of the system's.
        impl: as for `random.key`.
    Raises:
        TypeError: for no seed inside of a transformation; as `random.key` for other seeds.

    >>> from hlotrace.experimental.random import stateful_rng
    >>> rng = stateful_rng(42)
    >>> rng.integers(100), rng.integers(100, size=3)
    (Array(24, dtype=int32), Array([85, 72,  4], dtype=int32))
    """
    if seed is None:
        if state.trace is not EVAL:
            raise TypeError("stateful_rng: inside of a transformation it needs a seed, as each call of the "
                            "compiled function would give the same numbers; give one, or make the generator "
                            "outside")
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    return _made(random.key(seed, impl=impl))


export_names(globals())
