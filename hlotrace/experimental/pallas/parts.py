"""What kernels, and the code around them, are made of and needs no kernel: sizes, branches, loops."""
import math
import operator

import numpy as np

from ... import lax, numpy as jnp, tree
from ...api.contexts import make_user_context
from ...core.trace import Tracer
from ...primitives.programs import checks

__all__ = ["align_to", "broadcast_to", "cdiv", "debug_check", "delay", "empty", "empty_like",
           "enable_debug_checks", "loop", "next_power_of_2", "reciprocal",
           "strides_from_shape", "when"]

enable_debug_checks = make_user_context(False)


def cdiv(a, b):
    """a / b, rounded up.

    >>> from hlotrace.experimental import pallas as pl
    >>> pl.cdiv(7, 2)
    4
    """
    return (a + b - 1) // b


def align_to(a, alignment):
    """The next multiple of `alignment` from `a` on.

    >>> from hlotrace.experimental import pallas as pl
    >>> pl.align_to(7, 4)
    8
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x):
    """The least power of 2 that is no less than `x`.  ValueError for a negative one.

    >>> from hlotrace.experimental import pallas as pl
    >>> pl.next_power_of_2(5)
    8
    """
    if x < 0:
        raise ValueError(f"next_power_of_2 requires a non-negative integer, got {x}")
    return 1 << max(x - 1, 0).bit_length()


def strides_from_shape(shape):
    """How far apart neighbours along each dimension are, in elements, the last one fastest.

    >>> from hlotrace.experimental import pallas as pl
    >>> pl.strides_from_shape((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))


def broadcast_to(a, shape):
    """`jnp.broadcast_to`."""
    return jnp.broadcast_to(a, shape)


def reciprocal(x, *, approx=False, full_range=True):
    """1 / x; where `approx` is true it need not be exact, and is here."""
    return 1 / x


def empty(shape, dtype, *, out_sharding=None):
    """An array of which no element is read before it is written."""
    return jnp.empty(shape, dtype, out_sharding=out_sharding)


def empty_like(x):
    """A pytree of arrays as those of `x`, of which no element is read before it is written."""
    return tree.map(lambda leaf: jnp.empty(leaf.shape, leaf.dtype), x)


def delay(nanos):
    """Have a kernel wait; nothing here."""


def debug_check(condition, message):
    """Within `pl.enable_debug_checks(True)`, have the program fail where `condition` does not hold: a
    ValueError with `message`, when it has run."""
    if enable_debug_checks.value:
        text = message.replace("{", "{{").replace("}", "}}")
        checks.report(jnp.logical_not(condition), checks.Failure(checks.KernelError, text))


def when(condition):
    """Decorator: call a function of no arguments, at once, if a condition holds, which may be traced.

    >>> from hlotrace.experimental import pallas as pl
    >>> @jax.jit
    ... def clip(x):
    ...     ref = jax.new_ref(x)
    ...     @pl.when(x > 1)
    ...     def _():
    ...         ref[...] = 1.
    ...     return ref[...]
    >>> clip(3.), clip(0.5)
    (Array(1., dtype=float32), Array(0.5, dtype=float32))
    """
    def call(fun):
        if not isinstance(condition, Tracer):
            if condition:
                fun()
            return
        lax.cond(condition, lambda: _nothing_of(fun()), lambda: None)
    return call


def _nothing_of(_result):
    return None


def loop(lower, upper, *, init_carry=None, step=1, unroll=1):
    """Decorator: call `body(i)`, or `body(i, carry)`, which gives the next carry, for `lower` <= i < `upper`.

    Where the function was is the last carry.

    >>> from hlotrace.experimental import pallas as pl
    >>> @pl.loop(0, 6, step=2, init_carry=0)
    ... def total(i, carry):
    ...     return carry + i
    >>> total
    Array(6, dtype=int32, weak_type=True)
    """
    def call(body):
        def once(i, carry):
            i = lower + i * step
            return _nothing_of(body(i)) if init_carry is None else body(i, carry)
        count = cdiv(upper - lower, step)
        few = unroll if isinstance(unroll, bool) else operator.index(unroll)
        static = isinstance(count, (int, np.integer))
        return lax.fori_loop(0, count, once, init_carry, unroll=few if static else None)
    return call
