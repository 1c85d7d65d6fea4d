"""The check that no PRNG key is used twice: the option jax_debug_key_reuse, and `jax.debug_key_reuse()`.

A typed key is used up by a random function, by `random.split`, and by what makes new arrays of it, such as an
index; not by `random.fold_in`, `random.key_data`, `==`, and not by `random.clone`, which gives the key for a
second use that is meant.  To use it up twice, in one program or in several calls, raises KeyReuseError with
the lines of both uses; so does a loop whose body uses the same key in each round.  Keys of the old kind
(`random.PRNGKey`) are not looked at.
"""
from ..core.errors import KeyReuseError
from ..core.surface.public import export_names as _offer

__all__ = ["KeyReuseError"]

_offer(globals())
