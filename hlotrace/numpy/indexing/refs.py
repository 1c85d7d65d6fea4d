"""Reading and writing Refs: `ref[index]`, `ref[index] = value`, `ref.at[index]`, and the functions of
`hlotrace.ref`."""
import operator

import numpy as np

from ...api.refs import read
from ...core import dtypes, programs
from ...core.avals import aval_of, is_arraylike, not_an_array
from ...core.caches import cached
from ...core.config import state
from ...core.refs import Ref
from ...core.surface.boundary import boundaries, boundary
from ...core.trace import EVAL, is_concrete, trace_to_jaxpr
from ...primitives.programs.refs import addupdate_p, get_p, set_p, swap_p
from ..arrays.creation import asarray, zeros
from . import indexing

_TRACED = "traced"      # stands in the static part of an index for an operand


def new_ref(init_val, *, memory_space=None, kind=None, pin=False):
    """A mutable array that begins as a copy of `init_val`, with its shape and dtype.

    Raises: TypeError where that is no array; NotImplementedError for a memory space, a kind and `pin`.

    A function under jit that writes to it changes it for its caller.

    >>> counter = jax.new_ref(jnp.zeros(2, int))
    >>> @jax.jit
    ... def count(i):
    ...     counter[i] += 1
    >>> count(0); count(1); count(1)
    >>> counter[...]
    Array([1, 2], dtype=int32)
    """
    for name, value in ("memory_space", memory_space), ("kind", kind), ("pin", pin or None):
        if value is not None:
            raise NotImplementedError(f"new_ref: {name}={value!r} is not supported: a Ref is where its first "
                                      "value is")
    if not is_arraylike(init_val):
        raise TypeError(f"new_ref: {not_an_array(init_val, 'init_val')}")
    value = asarray(init_val)
    return Ref(value.astype(value.dtype) if value.weak_type else value)


def empty_ref(ty, memory_space=None, pin=False):
    """A mutable array of the type `ty`, which has a shape and a dtype; what is in it before it is written is
    zeros.

    >>> ref = jax.empty_ref(jax.ShapeDtypeStruct((3,), "float32"))
    >>> ref[1] = 5
    >>> ref[...]
    Array([0., 5., 0.], dtype=float32)
    """
    return new_ref(zeros(ty.shape, ty.dtype), memory_space=memory_space, pin=pin)


def freeze(ref):
    """The value of a Ref, as an array.  The Ref cannot be used again.

    Raises: ValueError where the Ref was made outside of the function that is traced, or was given up before.

    >>> def squares(n):
    ...     ref = jax.new_ref(jnp.zeros(n))
    ...     for i in range(n):
    ...         ref[i] = i**2
    ...     return jax.freeze(ref)
    >>> jax.jit(squares, static_argnums=0)(4)
    Array([0., 1., 4., 9.], dtype=float32)
    """
    return _checked(ref, "freeze").give_up()


def free_ref(ref):
    """Give up a Ref: its memory may be used for something else.  Raises as `freeze` does.

    >>> ref = jax.new_ref(jnp.zeros(3))
    >>> jax.free_ref(ref)
    >>> ref
    Ref{float32[3]} (freed)
    """
    _checked(ref, "free_ref").give_up()


def get(ref, idx=None):
    """The value of a Ref, or of the part of it that `idx` says.

    >>> ref = jax.new_ref(jnp.arange(4))
    >>> jax.ref.get(ref, slice(1, 3)), ref[1:3], ref[...]
    (Array([1, 2], dtype=int32), Array([1, 2], dtype=int32), Array([0, 1, 2, 3], dtype=int32))
    """
    return _access(get_p, ref, idx)


def set(ref, idx, value):
    """Write `value`, of the Ref's dtype and broadcast to the shape of the part, to that part of a Ref.

    The same as `ref[idx] = value`.

    >>> ref = jax.new_ref(jnp.zeros(3))
    >>> jax.ref.set(ref, slice(1, None), 7)
    >>> ref[...]
    Array([0., 7., 7.], dtype=float32)
    """
    _access(set_p, ref, idx, value)


def swap(ref, idx, value):
    """As `set`; returns what was there before.

    >>> ref = jax.new_ref(jnp.zeros(3))
    >>> jax.ref.swap(ref, 1, 7.), ref[...]
    (Array(0., dtype=float32), Array([0., 7., 0.], dtype=float32))
    """
    return _access(swap_p, ref, idx, value)


def addupdate(ref, idx, x):
    """Add `x` to a part of a Ref; where an array of indices names an element several times, each adds to it.

    >>> ref = jax.new_ref(jnp.zeros(3))
    >>> jax.ref.addupdate(ref, jnp.array([0, 2, 2]), 1)
    >>> ref[...]
    Array([1., 0., 2.], dtype=float32)
    """
    _access(addupdate_p, ref, idx, x)


@boundaries(called="Ref.at[]", tell_self=True)
class RefView:
    """`ref.at[index]`: a part of a Ref, which can be indexed, read and written as a Ref itself."""
    __slots__ = ("ref", "indices")

    def __init__(self, ref, indices):
        self.ref, self.indices = ref, indices

    @property
    def at(self):
        """`view.at[index]` is a part of this part."""
        return _At(self)

    def __getitem__(self, index):
        return _access(get_p, self, index)

    def __setitem__(self, index, value):
        _access(set_p, self, index, value)

    def __repr__(self):
        return f"{self.ref.aval}.at" + "".join(f"[{i!r}]" for i in self.indices)


class _At:
    __slots__ = ("of",)

    def __init__(self, of):
        self.of = of

    def __getitem__(self, index):
        return RefView(self.of, (index,)) if type(self.of) is Ref else RefView(self.of.ref, (*self.of.indices, index))


def _checked(ref, what):
    if type(ref) is not Ref:
        raise TypeError(f"{what} takes a Ref, as new_ref makes it, not {ref!r:.60} of type "
                        f"{type(ref).__name__}")
    return ref


def _access(primitive, ref, index, *values):
    of, indices = (ref.ref, ref.indices) if type(ref) is RefView else (_checked(ref, f"ref.{primitive}"), ())
    of.check()
    if index is not None and index is not Ellipsis:
        indices = (*indices, index)
    if primitive is get_p and not indices:
        return read(of)
    values = [_value(primitive, of, v) for v in values]
    operands, layout = [], []
    # are they operands? then a loop over them compiles once
    numbers = state.trace is EVAL and len(indices) == 1
    if numbers:
        indexing.expand(of.shape, indices[0], inside=True)      # an IndexError for one out of bounds
    for index in indices:
        layout.append(tuple([part for e in (index if type(index) is tuple else (index,))
                             for part in _static(e, operands, numbers)]))
    program = _program(primitive, of.inner_aval, tuple(layout), tuple(map(aval_of, operands)),
                       tuple(map(aval_of, values)))
    found = primitive.bind(*operands, *values, ref=of, program=program)
    return found[0] if found else None


def _value(primitive, ref, value):
    """The value as an array of the Ref's dtype."""
    if not is_arraylike(value):
        raise TypeError(f"ref.{primitive}: {not_an_array(value, 'value')}")
    aval, want = aval_of(value), ref.dtype
    if aval.dtype != want and not (aval.weak_type and dtypes.lattice_result(((aval.dtype, True), (want, False)))[0] == want):
        raise ValueError(f"Invalid dtype for `{primitive}`. Ref dtype: {want.name}. Value dtype: "
                         f"{aval.dtype.name}. Convert the value with .astype({want.name!r})")
    return asarray(value, dtype=want)


def _static(entry, operands, numbers):
    """What stands for an entry of an index in a key; what is data in it becomes an operand, a mask where it
    holds."""
    if isinstance(entry, slice):
        return [("slice", *[x if x is None else operator.index(x)
                            for x in (entry.start, entry.stop, entry.step)])]
    if entry is None or entry is Ellipsis or isinstance(entry, (bool, np.bool_)):
        return [entry]
    if isinstance(entry, (int, np.integer)) and not numbers:
        return [int(entry)]
    if is_arraylike(entry) and dtypes.is_bool(aval_of(entry).dtype) and is_concrete(entry):
        parts = np.nonzero(np.asarray(entry))
    else:
        parts = [np.asarray(entry) if isinstance(entry, (list, tuple)) else entry]
    operands.extend(parts)
    return [_TRACED] * len(parts)


@cached(1024)
def _program(primitive, aval, layout, operand_avals, value_avals):
    """The program of an access: [value, *operands of the indices, what is written] -> [value afterwards,
    *results]."""
    def fun(value, *operands):
        operands = iter(operands)
        indices = [tuple([next(operands) if e is _TRACED else slice(*e[1:]) if type(e) is tuple else e
                          for e in index]) for index in layout]
        before = value
        for index in indices:
            before = before[index]
        if primitive is get_p:
            return [before]
        written = next(operands)
        after = _replaced(value, indices, written, "add" if primitive is addupdate_p else "set")
        return [after, before] if primitive is swap_p else [after]
    return programs.without_source_info(trace_to_jaxpr(fun, [aval, *operand_avals, *value_avals], primitive.name))


def _replaced(value, indices, written, how):
    """The array in which the part that the indices say, one after another, is what was written, or more by
    that."""
    if len(indices) > 1:
        written = _replaced(value[indices[0]], indices[1:], written, how)
        how = "set"
    return getattr(value.at[indices[0] if indices else ...], how)(written)


Ref.at = property(_At)
Ref.addupdate = boundary(lambda self, x, idx=(): addupdate(self, idx, x), "Ref.addupdate", method=True)
Ref.__getitem__ = boundary(get, "Ref", method=True)
Ref.__setitem__ = boundary(set, "Ref", method=True)
