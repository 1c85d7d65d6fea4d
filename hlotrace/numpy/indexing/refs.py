"""Reading and writing Refs, by `ref[index]`, `ref.at[index]` and the functions of `hlotrace.ref`."""
import operator

import numpy as np

from ...api.adapters import Adapter, register
from ...api.refs import read
from ...core import dtypes, programs
from ...core.avals import aval_of, is_arraylike, not_an_array
from ...core.caches import cached
from ...core.config import state
from ...core.errors import ShapeError
from ...core.jaxpr_trace import trace_to_jaxpr
from ...core.refs import KINDS, TRACED, Memory, Ref, RefOrView
from ...core.surface.boundary import boundaries, boundary
from ...core.trace import EVAL, is_concrete
from ...primitives.arrays.bit_formats import bitcast_convert_type_p
from ...primitives.arrays.elementwise import stop_gradient_p
from ...primitives.programs.refs import addupdate_p, get_p, set_p, swap_p
from ...runtime import binding
from ..arrays.creation import asarray, zeros
from ..arrays.shaping import moveaxis
from ..util import unsigned
from . import index_entries, indexing


def new_ref(init_val, *, memory_space=None, kind=None, pin=False):
    """A mutable array that begins as a copy of `init_val`, with its shape and dtype.

    A function under jit that writes to it changes it for its caller.

    Args:
        memory_space: None, or that of `init_val`; `device_put` brings it to another.
        kind: None, or "no_grad_no_remat" for a Ref that is beside what is differentiated: what is written to
            it and read from it has no derivative.
        pin: not supported; False.
    Raises:
        TypeError: where `init_val` is no array.
        ValueError: for another kind.
        NotImplementedError: for another memory space and `pin`.

    >>> counter = jax.new_ref(jnp.zeros(2, int))
    >>> @jax.jit
    ... def count(i):
    ...     counter[i] += 1
    >>> count(0); count(1); count(1)
    >>> counter[...]
    Array([1, 2], dtype=int32)
    """
    if not is_arraylike(init_val):
        raise TypeError(f"new_ref: {not_an_array(init_val, 'init_val')}")
    value = asarray(init_val)
    for name, given, has in (("memory_space", memory_space, (None, aval_of(value).memory_space)),
                             ("pin", pin, (False,))):
        if given not in has:
            raise NotImplementedError(f"new_ref: {name}={given!r} is not supported: a Ref is where its first "
                                      "value is, device_put(x, memory_space) moves that")
    if kind not in KINDS:
        raise ValueError(f"new_ref: kind is one of {', '.join(map(repr, KINDS))}, got {kind!r}")
    weak = value.weak_type and not binding.refs_have_weak_types
    return Ref(value.astype(value.dtype) if weak else value, kind)


def empty_ref(ty, memory_space=None, pin=False):
    """A mutable array of the type `ty`, which has a shape and a dtype; it is zeros before it is written.

    >>> ref = jax.empty_ref(jax.ShapeDtypeStruct((3,), "float32"))
    >>> ref[1] = 5
    >>> ref[...]
    Array([0., 5., 0.], dtype=float32)
    """
    return new_ref(zeros(ty.shape, ty.dtype), memory_space=memory_space, pin=pin)


def freeze(ref):
    """The value of a Ref, as an array; the Ref cannot be used again.

    Raises:
        ValueError: where the Ref was made outside of the function that is traced, or was given up before.

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
    """Give up a Ref: its memory may be used for something else.

    Raises:
        ValueError: as for `freeze`.

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
    """Write as `set` does, and return what was there before.

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
class RefView(RefOrView):
    """A part of a Ref, or its elements in another form.

    `ref.at[index]`, `ref.reshape(shape)`, `ref.transpose(axes)` and `ref.bitcast(dtype)` can be indexed,
    read, written and passed to functions as a Ref itself.

    >>> ref = jax.new_ref(jnp.zeros((2, 3)))
    >>> rows = ref.at[1].reshape(3, 1)
    >>> rows[...] = jnp.ones((3, 1))
    >>> jax.jit(lambda view: view.addupdate(5., 0))(rows)
    >>> ref[...]
    Array([[0., 0., 0.],
           [6., 1., 1.]], dtype=float32)
    """
    __slots__ = ("ref", "steps")
    called = "view"
    kind = property(lambda self: self.ref.kind)

    def __init__(self, ref, steps):
        self.ref, self.steps = ref, steps     # each is (what is done, with what), from the Ref on

    @property
    def inner_aval(self):
        """The type of the part."""
        return part_of(self.ref.inner_aval, *layout_of(self.steps))

    def check(self):
        """An error where the Ref has no such part."""
        return self.inner_aval

    @property
    def at(self):
        """`view.at[index]` is a part of this part."""
        return _At(self)

    @property
    def T(self):
        """The view with its axes the other way round."""
        return _transpose(self)

    def __getitem__(self, index):
        return _access(get_p, self, index)

    def __setitem__(self, index, value):
        _access(set_p, self, index, value)

    def __repr__(self):
        return f"{self.ref.aval}" + "".join(f".at[{x!r}]" if how == "at" else f".{how}({x!r})"
                                            for how, x in self.steps)


class _At:
    __slots__ = ("of",)

    def __init__(self, of):
        self.of = of

    __iter__ = None     # else Python would count up without an end

    def __getitem__(self, index):
        return _viewed(self.of, "at", index)


def _viewed(of, how, what):
    """The view of a Ref or of a view."""
    if type(of) is RefView:
        view = RefView(of.ref, (*of.steps, (how, what)))
    else:
        of.check()
        view = RefView(of, ((how, what),))
    if how != "at":
        view.check()
    return view


def _reshape(self, *shape):
    """The elements of a Ref, or of a view of it, in another shape; one size may be -1.  ValueError where the
    number of elements differs."""
    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return _viewed(self, "reshape", tuple(map(operator.index, shape)))


def _transpose(self, *axes):
    """A Ref, or a view of it, with its axes in another order, reversed without `axes`."""
    axes = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
    return _viewed(self, "transpose", tuple(map(operator.index, axes)) or tuple(range(self.ndim))[::-1])


def _bitcast(self, dtype):
    """The bits of the elements of a Ref, or of a view of it, as another dtype: of another width as
    `bits_of_rows` has it.  ValueError where rows cannot share elements."""
    return _viewed(self, "bitcast", dtypes.as_dtype(dtype))


def bits_of_rows(x, dtype):
    """The bits of a matrix as elements of another width: rows next to each other share an element."""
    have, want = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(dtype)
    if have == want:
        return x.view(dtype)
    *front, rows, columns = shape_of_rows(x, dtype)
    if have < want:
        x = x.reshape(*front, rows, want // have, columns)
        return bitcast_convert_type_p.bind(moveaxis(x, -2, -1), new_dtype=dtype)
    parts = bitcast_convert_type_p.bind(x, new_dtype=dtype)
    return moveaxis(parts, -1, -2).reshape(*front, rows, columns)


def shape_of_rows(x, dtype):
    """The shape of what `bits_of_rows` gives.  ValueError where rows cannot share elements."""
    have, want = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(dtype)
    if have != want and (x.ndim < 2 or x.shape[-2] * have % want):
        raise ValueError(f"bitcast of {x.dtype.name}{list(x.shape)} to {dtype.name}: the rows, along the "
                         "axis before the last one, cannot share elements")
    return x.shape if have == want else (*x.shape[:-2], x.shape[-2] * have // want, x.shape[-1])


class _Views(Adapter):
    """Views of Refs by value: inside is a Ref of the part, which is written back to it."""

    def handles(self, cls):
        return cls is RefView

    def base(self, view):
        return view.ref

    def arrays(self, view):
        return view.ref.kind, [view[...]]

    def inside(self, kind, arrays):
        return Ref(*arrays, kind)

    def after(self, kind, ref):
        return kind, [read(ref)]

    def lend(self, view):
        return view.ref.take()

    def restore(self, view, value):
        view.ref.keep(value)

    def write_back(self, view, kind, arrays):
        view[...] = arrays[0]


register(_Views())


def _checked(ref, what):
    if type(ref) is not Ref:
        raise ValueError(f"Can only call `{what}` on a `Ref`, as new_ref makes it: {ref!r:.60}")
    return ref


def _operation(primitive):
    """What errors call it, as JAX's do."""
    return "addupdate" if primitive is addupdate_p else "swap"


def _access(primitive, ref, index, *values):
    of, steps = (ref.ref, ref.steps) if type(ref) is RefView else (_checked(ref, f"ref_{primitive}"), ())
    of.check()
    if index is not None and index is not Ellipsis and not (type(index) is tuple and not index):
        steps = (*steps, ("at", index))
    if primitive is get_p and not steps:
        return read(of)
    values = [_value(primitive, ref.dtype, v) for v in values]
    if isinstance(of._value, Memory):
        return of._value.access(primitive, of, steps, values)
    # are numbers operands? then a loop over them compiles once
    numbers = state.trace is EVAL and len(steps) == 1 and steps[0][0] == "at"
    if numbers:
        _check_inside(of.shape, index_entries.expand(of.shape, steps[0][1], inside=True))
    layout, operands = layout_of(steps, numbers)
    program = _program(primitive, of.inner_aval, layout, tuple(map(aval_of, operands)),
                       tuple(map(aval_of, values)))
    if of.kind is not None:
        values = list(map(stop_gradient_p.bind, values))
    found = primitive.bind(*operands, *values, ref=of, program=program)
    return found[0] if found else None


def _check_inside(shape, entries):
    """Is each static int less than the size of its axis, in an index without arrays?  ValueError where one is
    not."""
    sizes = iter(shape)
    found = [(e, next(sizes)) for e in entries if e.kind not in indexing.AXISLESS]
    arrays = [(e.value, size) for e, size in found if e.kind == "array"]
    if any([np.ndim(value) for value, _ in arrays]):
        return
    for value, size in arrays:
        if isinstance(value, np.ndarray) and value >= size:
            raise ValueError(f"Out of bound indexer: idx={value}, dim={size}: ints are less than {size}, and "
                             "negative ones count from the end")


def _check_windows(shape, entries):
    """ValueError where a window that begins at an int goes beyond its axis."""
    axes = [e for e in entries if e is not None and not isinstance(e, bool)]
    gap = axes.index(Ellipsis) if Ellipsis in axes else len(axes)
    for i, e in enumerate(axes):
        if type(e) is tuple and e[0] == "window" and e[1] is not TRACED:
            (_, start, size, stride), dim = e, shape[i if i < gap else i - len(axes)]
            if start < 0 or size and start + (size - 1) * stride >= dim:
                raise ValueError(f"Out of bound slice: start={start}, size={size}, stride={stride}, "
                                 f"dim={dim}: a window of a Ref is inside of it")


def part_of(aval, layout, operands):
    """The type of what the steps of a view select of a Ref of the type `aval`; see `layout_of`."""
    return _program(get_p, aval, layout, tuple(map(aval_of, operands)), ()).out_avals[0]


def indices_of(ref):
    """The operands of the indices of a view, in their order; a Ref has none."""
    return layout_of(ref.steps)[1] if type(ref) is RefView else []


def with_indices(ref, operands):
    """The view with others in their place."""
    if type(ref) is not RefView:
        return ref
    operands = iter(operands)
    return RefView(ref.ref, _steps(layout_of(ref.steps)[0], operands))


def _steps(layout, operands):
    """The steps of a view, from what `layout_of` gives."""
    return tuple([(how, tuple([_entry(e, operands) for e in what]) if how == "at" else what)
                  for how, what in layout])


def layout_of(steps, numbers=False):
    """What of the steps of a view is static, and the operands of the indices; numbers, too, if so."""
    layout, operands = [], []
    for how, what in steps:
        if how == "at":
            what = tuple([part for e in (what if type(what) is tuple else (what,))
                          for part in _static(e, operands, numbers)])
        layout.append((how, what))
    return tuple(layout), operands


def _value(primitive, want, value):
    """The value as an array of the Ref's dtype."""
    if not is_arraylike(value):
        raise TypeError(f"ref.{primitive}: {not_an_array(value, 'value')}")
    value = unsigned(value, want)
    aval = aval_of(value)
    if aval.dtype != want and not (aval.weak_type
                                   and dtypes.lattice_result(((aval.dtype, True), (want, False)))[0] == want):
        raise ValueError(f"Invalid dtype for `{_operation(primitive)}`. Ref dtype: {want.name}. Value dtype: "
                         f"{aval.dtype.name}. Convert the value with .astype({want.name!r})")
    return asarray(value, dtype=want)


def _static(entry, operands, numbers):
    """The entry of an index in a key; what is data in it becomes an operand, a mask where it holds."""
    if isinstance(entry, slice):
        return [("slice", *[x if x is None else operator.index(x)
                            for x in (entry.start, entry.stop, entry.step)])]
    if isinstance(entry, index_entries.Slice):
        start = entry.start
        if not isinstance(start, (int, np.integer)):
            operands.append(start)
            start = TRACED
        return [("window", start, entry.size, entry.stride)]
    if entry is None or entry is Ellipsis or isinstance(entry, (bool, np.bool_)):
        return [entry]
    if isinstance(entry, (int, np.integer)) and not numbers:
        return [int(entry)]
    if is_arraylike(entry) and dtypes.is_bool(aval_of(entry).dtype) and is_concrete(entry):
        parts = np.nonzero(np.asarray(entry))
    else:
        parts = [np.asarray(entry) if isinstance(entry, (list, tuple)) else entry]
    operands.extend(parts)
    return [TRACED] * len(parts)


@cached(1024)
def _program(primitive, aval, layout, operand_avals, value_avals):
    """The program of an access: [value, *indices, what is written] -> [new value, *results]."""
    def fun(value, *operands):
        operands = iter(operands)
        steps = _steps(layout, operands)
        before = value
        for (how, what), (_, static) in zip(steps, layout):
            if how == "at":
                _check_windows(before.shape, static)
            before = _step(before, how, what)
        if primitive is get_p:
            return [before]
        written = next(operands)
        try:
            after = _replaced(value, steps, written, "add" if primitive is addupdate_p else "set")
        except ShapeError:
            raise ShapeError(f"Invalid shape for `{_operation(primitive)}`. Ref shape: {value.shape}. "
                             f"Expected shape: {before.shape}. Value shape: {written.shape}. A value must "
                             "broadcast to what the index selects") from None
        return [after, before] if primitive is swap_p else [after]
    return programs.without_source_info(trace_to_jaxpr(fun, [aval, *operand_avals, *value_avals],
                                                       primitive.name))


def _entry(e, operands):
    if e is TRACED:
        return next(operands)
    if type(e) is not tuple:
        return e
    kind, start, *rest = e
    if kind == "slice":
        return slice(start, *rest)
    size, stride = rest
    return index_entries.Slice(next(operands), *rest) if start is TRACED else slice(
        start, start + size * stride, stride)


def _step(value, how, what):
    """A step of a view, done to an array."""
    if how == "at":
        return value[what]
    return bits_of_rows(value, what) if how == "bitcast" else getattr(value, how)(what)


def _replaced(value, steps, written, how):
    """The array with the part that the steps select, one after another, written or added to.

    A part of ints and slices is moved inside of the array, as in reading; of arrays, what is outside is left.
    """
    if not steps:
        return getattr(value.at[...], how)(written)
    (step, what), rest = steps[0], steps[1:]
    if step == "at":
        mode = None if any([np.ndim(e) for e in what]) else "clip"     # without arrays it is a window
        if not rest:
            return getattr(value.at[what], how)(written, mode=mode)
        return value.at[what].set(_replaced(value[what], rest, written, how), mode=mode)
    inner = _replaced(_step(value, step, what), rest, written, how)
    if step == "reshape":
        return inner.reshape(value.shape)
    if step == "transpose":
        return inner.transpose(tuple(np.argsort(what)))
    return bits_of_rows(inner, value.dtype)


Ref.at = property(_At)
Ref.T = property(_transpose)
Ref.reshape = RefView.reshape = boundary(_reshape, "Ref.reshape", method=True)
Ref.transpose = RefView.transpose = boundary(_transpose, "Ref.transpose", method=True)
Ref.bitcast = RefView.bitcast = boundary(_bitcast, "Ref.bitcast", method=True)
Ref.get = RefView.get = boundary(lambda self, idx=(): get(self, idx), "Ref.get", method=True)
Ref.set = RefView.set = boundary(lambda self, value, idx=(): set(self, idx, value), "Ref.set", method=True)
Ref.swap = RefView.swap = boundary(lambda self, value, idx=(): swap(self, idx, value), "Ref.swap",
                                   method=True)
Ref.addupdate = RefView.addupdate = boundary(lambda self, value, idx=(): addupdate(self, idx, value),
                                             "Ref.addupdate", method=True)
Ref.__getitem__ = boundary(get, "Ref", method=True)
Ref.__setitem__ = boundary(set, "Ref", method=True)
