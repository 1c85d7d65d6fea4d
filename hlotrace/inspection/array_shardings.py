"""The sharding of an array: printed, drawn, or passed to a callback while a program is compiled."""
import os
import sys

from ..core.array import Array
from ..core.trace import Tracer
from ..primitives.parallel.sharding import inspect_sharding_p
from . import pictures


def visualize_sharding(shape, sharding, *, use_color=True, scale=1.0, min_width=9, max_width=80, as_svg=None):
    """Print which device holds which part of an array of `shape`, which has 1 or 2 dimensions.

    Colours are used where the output is a terminal.  With `as_svg`, a path, an SVG picture is written there
    instead; with `as_svg=True` its text is returned.

    >>> mesh = jax.make_mesh((2,), ("x",))
    >>> jax.debug.visualize_sharding((4, 4), jax.NamedSharding(mesh, jax.P("x")), use_color=False)
    ┌───────────────────────┐
    │                       │
    │                       │
    │         CPU 0         │
    │                       │
    ├───────────────────────┤
    │                       │
    │                       │
    │         CPU 1         │
    │                       │
    └───────────────────────┘
    """
    if as_svg:
        svg = pictures.as_svg(shape, sharding, scale=scale)
        if as_svg is True:
            return svg
        with open(os.fspath(as_svg), "w", encoding="utf-8") as file:
            file.write(svg)
    else:
        print(pictures.as_text(shape, sharding, scale=scale, min_width=min_width, max_width=max_width,
                              color=use_color and sys.stdout.isatty()))
    return None


def inspect_array_sharding(value, *, callback):
    """Call `callback(sharding)` with the sharding of an array.

    Under jit that is known when the function has been compiled for some arguments, and passed then, once.

    >>> mesh = jax.make_mesh((2,), ("x",))
    >>> @jax.jit
    ... def f(x):
    ...     y = x * 2
    ...     jax.debug.inspect_array_sharding(y, callback=lambda sharding: print(sharding.shard_shape((4,))))
    ...     return y
    >>> _ = f(jax.device_put(jnp.arange(4), jax.NamedSharding(mesh, jax.P("x"))))
    (2,)
    """
    if isinstance(value, Tracer):
        inspect_sharding_p.bind(value, callback=callback)
    elif isinstance(value, Array):
        callback(value.sharding)
    else:
        raise TypeError(f"an array is needed whose sharding there is to see, got {type(value).__name__}")


def visualize_array_sharding(arr, **options):
    """`visualize_sharding` for an array, with its options.  Under jit it prints during compilation.

    >>> mesh = jax.make_mesh((2,), ("x",))
    >>> x = jax.device_put(jnp.arange(8), jax.NamedSharding(mesh, jax.P("x")))
    >>> jax.debug.visualize_array_sharding(x, use_color=False)
    ┌───────┬───────┐
    │ CPU 0 │ CPU 1 │
    └───────┴───────┘
    """
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(arr.shape, sharding, **options))
