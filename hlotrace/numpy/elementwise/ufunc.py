"""ufunc: an elementwise function with NumPy's methods reduce, accumulate, reduceat, at and outer."""
from ...api.composite import composite
from ...api.signatures import name_of
from ...api.vmap import vmap
from ...core.array import Array
from ...core.avals import aval_of
from ...core.dtypes import check_user_dtype, min_value
from ...core.surface.boundary import boundaries
from ...lax.control_flow import scan
from ...primitives.arrays.shape import full, reshape
from ...primitives.common import canonical_axes, canonical_axis, np, prod
from ..arrays.creation import asarray
from ..arrays.joining import concatenate
from ..arrays.ranges import arange
from ..arrays.shaping import moveaxis
from ..indexing.conditions import where
from ..mapping import vectorize
from ..reductions import reductions
from ..util import broadcast_to_shape, check_arraylike, ndim, shape

# ufunc -> the functions and the method of x.at[...] that do the same in one operation
_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
               "logical_or": "any"}
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}
_UPDATES = {"add": "add", "subtract": "subtract", "multiply": "multiply", "maximum": "max", "minimum": "min",
            "divide": "divide"}


@boundaries
class ufunc:
    """An elementwise function of `nin` arrays, which broadcast, giving `nout` arrays.

    `identity` is what reductions of nothing give; None if there is no such value.

    >>> jnp.add.reduce(jnp.array([[1, 2], [3, 4]]), axis=1), jnp.multiply.accumulate(jnp.array([1, 2, 3]))
    (Array([3, 7], dtype=int32), Array([1, 2, 6], dtype=int32))
    >>> jnp.add.at(jnp.zeros(3), jnp.array([0, 0, 2]), 1, inplace=False)
    Array([2., 0., 1.], dtype=float32)
    >>> jnp.add.reduceat(jnp.arange(5), jnp.array([0, 3]))
    Array([3, 7], dtype=int32)
    >>> jnp.maximum.outer(jnp.array([0, 2]), jnp.array([1, 3])).tolist(), jnp.add.identity, jnp.exp.nin
    ([[1, 3], [2, 3]], 0, 1)
    """

    def __init__(self, func, nin, nout=1, *, name=None, identity=None, module=None):
        self.func = func
        self._facts, self._origin = (nin, nout, identity), getattr(func, "__wrapped__", func)
        self.__name__ = self.__qualname__ = name or getattr(func, "__name__", "ufunc")
        self.__module__ = module or func.__module__
        self.__doc__ = func.__doc__

    _refusal = NotImplementedError      # of out= and where=

    nin = property(lambda self: self._facts[0])
    nout = property(lambda self: self._facts[1])
    nargs = property(lambda self: self.nin + self.nout)
    identity = property(lambda self: self._facts[2])

    def __eq__(self, other):
        """Are both of equal functions?"""
        return type(other) is type(self) and (self._facts, self.__name__, self._origin) == (
            other._facts, other.__name__, other._origin)

    def __hash__(self):
        return hash((self._facts, self.__name__, self._origin))

    def named(self, name):
        """The same function under another name."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), __name__=name, __qualname__=name)
        return other

    def __call__(self, *args, out=None, where=None):
        self._refuse(out, where)
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__}() takes {self.nin} arguments, got {len(args)}")
        return self.func(*args)

    def __repr__(self):
        return f"<jnp.ufunc '{self.__name__}'>"

    def __reduce__(self):
        return self.__qualname__

    def _refuse(self, out, where=None):
        for name, value in (("out", out), ("where", where)):
            if value is not None:
                raise self._refusal(f"{name} argument of {self.__name__}: arrays are immutable; use "
                                    "jnp.where(mask, result, other)")

    def _binary(self, method):
        if (self.nin, self.nout) != (2, 1):
            raise ValueError(f"{method} only supported for binary ufuncs, {self.__name__} takes {self.nin} "
                             f"and gives {self.nout}")

    def reduce(self, a, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=None):
        """Combine the elements along `axis` (an int, a tuple, or None for all) into one."""
        self._binary("reduce")
        self._refuse(out)
        check_arraylike(f"{self.__name__}.reduce", a)
        axes = canonical_axes(axis, ndim(a))
        direct = _REDUCTIONS.get(self.__name__)
        if direct is not None:
            extra = {"dtype": dtype} if direct in ("sum", "prod") else {}
            if direct not in ("all", "any"):
                extra["initial"] = initial
            if len(extra) == 2 or dtype is None and (initial is None or "initial" in extra):
                return getattr(reductions, direct)(a, axis=axes, keepdims=keepdims, where=where, **extra)
        return _reduce(self, a, axes, dtype, keepdims, initial, where)

    def accumulate(self, a, axis=0, dtype=None, out=None):
        """The results of combining the first 1, 2, ... elements along `axis`."""
        self._binary("accumulate")
        self._refuse(out)
        check_arraylike(f"{self.__name__}.accumulate", a)
        axis = canonical_axis(axis, ndim(a))
        direct = _ACCUMULATIONS.get(self.__name__)
        if direct is not None and aval_of(a).dtype != bool:
            return getattr(reductions, direct)(a, axis=axis, dtype=dtype or aval_of(a).dtype)
        return _accumulate(self, a, axis, dtype)

    def reduceat(self, a, indices, axis=0, dtype=None, out=None):
        """Combine a[indices[i]:indices[i + 1]] along `axis` for each i; a[indices[i]] where that is empty."""
        self._binary("reduceat")
        self._refuse(out)
        check_arraylike(f"{self.__name__}.reduceat", a, indices)
        if shape(indices) == (0,):
            axis = canonical_axis(axis, ndim(a))
            empty = (*shape(a)[:axis], 0, *shape(a)[axis + 1:])
            return full(empty, 0, self(a, a).dtype if dtype is None else check_user_dtype(dtype, "reduceat"))
        return _reduceat(self, a, indices, canonical_axis(axis, ndim(a)), dtype)

    def at(self, a, indices, b=None, /, *, inplace=True):
        """A copy of `a` where the elements at `indices` are combined with `b`, repeated ones repeatedly."""
        if inplace:
            raise NotImplementedError("Because JAX arrays are immutable, jnp.ufunc.at() cannot operate "
                                      "inplace: pass inplace=False and use the result, or write "
                                      "x.at[idx].add(y)")
        check_arraylike(f"{self.__name__}.at", a)
        return _at(self, a, indices, b)

    def outer(self, a, b, /):
        """The function of all pairs of elements, of shape a.shape + b.shape."""
        self._binary("outer")
        check_arraylike(f"{self.__name__}.outer", a, b)
        return _outer(self, a, b)


def frompyfunc(func, /, nin, nout, *, identity=None):
    """A ufunc of a function of scalars.

    Args:
        func: the function, which is traced once for each type of operands, on scalars.
        identity: what reductions of nothing give.

    >>> gap = jnp.frompyfunc(lambda a, b: abs(a - b), 2, 1)
    >>> gap(jnp.array([1, 5]), 3), gap.reduce(jnp.array([9, 4, 2])), gap.outer(jnp.arange(2), jnp.arange(3))
    (Array([2, 2], dtype=int32), Array(3, dtype=int32), Array([[0, 1, 2],
           [1, 0, 1]], dtype=int32))
    """
    mapped = vectorize(func)
    return ufunc(mapped, nin, nout, name=name_of(func), identity=identity)


# --- the methods of any ufunc, as scans -----------------------------------------------------------

def _front(fun, a, axes, dtype):
    """`a` with `axes` as one leading axis, in the dtype that `fun` gives."""
    a = moveaxis(a, axes, tuple(range(len(axes))))
    a = a.reshape((prod(a.shape[:len(axes)]), *a.shape[len(axes):]))
    if dtype is None:
        dtype = fun(a[:1], a[:1]).dtype
    return a.astype(dtype)


def _step(fun, carry, value, active=None):
    result = fun(carry, value).astype(carry.dtype)
    return result if active is None else where(active, result, carry)


@composite(static=("fun", "axes", "dtype", "keepdims"))
def _reduce(fun, a, axes, dtype, keepdims, initial, where):
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape(a)))
    mask = None if where is None else _front(fun, broadcast_to_shape(where, shape(a)), axes, bool)
    a = _front(fun, a, axes, dtype)
    if (wide := reductions.wider(a.dtype)) != a.dtype:
        return _reduce(fun, a, (0,), wide, False, initial, mask).astype(a.dtype).reshape(
            kept if keepdims else a.shape[1:])
    if initial is None:         # that of logaddexp is -inf, which some dtypes do not have
        initial = min_value(a.dtype) if fun.identity == -np.inf else fun.identity
    if initial is None:
        if where is not None:
            raise ValueError(f"reduction operation {fun.__name__} does not have an identity, so to use a "
                             "where mask one has to specify 'initial'")
        if a.shape[0] == 0:
            raise ValueError(f"zero-size array to reduction operation {fun.__name__} which has no identity")
        initial, a = a[0], a[1:]
    else:
        initial = broadcast_to_shape(np.asarray(initial).astype(a.dtype) if not isinstance(initial, Array)
                                     else initial.astype(a.dtype), a.shape[1:])
    if mask is None:
        result, _ = scan(lambda c, x: (_step(fun, c, x), None), initial, a)
    else:
        result, _ = scan(lambda c, xm: (_step(fun, c, *xm), None), initial, (a, mask))
    return result.reshape(kept) if keepdims else result


@composite(static=("fun", "axis", "dtype"))
def _accumulate(fun, a, axis, dtype):
    a = _front(fun, a, (axis,), dtype)
    if (wide := reductions.wider(a.dtype)) != a.dtype:
        return moveaxis(_accumulate(fun, a, 0, wide).astype(a.dtype), 0, axis)
    if a.shape[0] == 0:
        return moveaxis(a, 0, axis)

    def step(carry, value):
        carry = _step(fun, carry, value)
        return carry, carry
    _, rest = scan(step, a[0], a[1:])
    return moveaxis(concatenate([a[:1], rest]), 0, axis)


@composite(static=("fun", "axis", "dtype"))
def _reduceat(fun, a, indices, axis, dtype):
    a = _front(fun, a, (axis,), dtype)
    n = a.shape[0]
    ends = concatenate([indices[1:], np.full(1, n, aval_of(indices).dtype)])

    def one(start, end):
        def step(carry, x):
            position, value = x
            carry = _step(fun, carry, value, (start < position) & (position < end))
            return where(position == start, value, carry), None
        return scan(step, a[0], (np.arange(n, dtype=start.dtype), a))[0]
    return moveaxis(vmap(one)(indices, ends), 0, axis)


def _at(fun, a, indices, b):
    if not isinstance(a, Array):
        a = asarray(a)
    if fun.nin == 1:
        return a.at[indices].set(fun(a[indices]))
    method = _UPDATES.get(fun.__name__)
    if method is not None:
        return getattr(a.at[indices], method)(b)
    places = arange(a.size).reshape(a.shape)[indices]
    values = broadcast_to_shape(b, places.shape)

    def step(flat, x):
        place, value = x
        return flat.at[place].set(fun(flat[place], value)), None
    flat, _ = scan(step, a.ravel(), (places.ravel(), values.reshape(-1)))
    return flat.reshape(a.shape)


@composite(static=("fun",))
def _outer(fun, a, b):
    return fun(reshape(a, shape(a) + (1,) * ndim(b)), reshape(b, (1,) * ndim(a) + shape(b)))


__all__ = ["frompyfunc", "ufunc"]
