"""JAX's `extend.linear_util`: functions wrapped in steps that change what goes in and what comes out.

A step is a generator, which yields `(args, kwargs)` for the function, is sent its result, and yields what
becomes of it; or, for the functions whose names end in 2, a function that is given the function to call.
"""
import functools

from ..api.signatures import name_of
from ..core.caches import cached
from ..core.surface.public import install_getattr as _explain

__all__ = ["StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation", "transformation2",
           "transformation_with_aux", "transformation_with_aux2", "wrap_init"]


class StoreException(Exception):
    """A value was read before it was stored, or stored twice."""


class Store:
    """A place for one value that a function gives besides its result."""
    __slots__ = ("_value",)

    def store(self, value):
        if self:
            raise StoreException("the store is occupied: the function was called twice")
        self._value = value

    @property
    def val(self):
        if not self:
            raise StoreException("the store is empty: call the function first")
        return self._value

    def reset(self):
        if self:
            del self._value

    def __bool__(self):
        return hasattr(self, "_value")


class WrappedFun:
    """A function, wrapped in steps: `call_wrapped(*args, **kwargs)`.  `f` is the function itself."""

    def __init__(self, f, call, params, debug_info=None, steps=()):
        self.f, self._call, self.params, self.debug_info, self.steps = f, call, params, debug_info, steps

    __name__ = property(lambda self: name_of(self.f))

    def call_wrapped(self, *args, **kwargs):
        return self._call(*args, **{**self.params, **kwargs})

    def wrap(self, call, *step):
        """In one more step: `call`, made from what `step` holds."""
        return WrappedFun(self.f, call, {}, self.debug_info,
                          (*self.steps, (tuple(self.params.items()), *step)))

    def _key(self):
        return self.f, tuple(self.params.items()), self.steps

    def __eq__(self, other):
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"WrappedFun({self.__name__})"


def wrap_init(f, params=None, *, debug_info=None):
    """`f` as a WrappedFun; `params` are keyword arguments that each call gives."""
    return WrappedFun(f, f, dict(params or {}), debug_info)


def _late(step):
    """`step(gen, fun, *static)`, which without `fun` is a decorator of `gen`."""
    @functools.wraps(step)
    def begin(gen, *fun_and_static, **options):
        if fun_and_static:
            return step(gen, *fun_and_static, **options)
        return functools.partial(step, gen, **options)
    return begin


def _run(gen, call, static, args, kwargs):
    steps = gen(*static, *args, **kwargs)
    inner_args, inner_kwargs = next(steps)
    out = steps.send(call(*inner_args, **inner_kwargs))
    steps.close()
    return out


@_late
def transformation(gen, fun, *static):
    """`fun` in the step `gen(*static, *args, **kwargs)`."""
    return fun.wrap(lambda *args, **kwargs: _run(gen, fun.call_wrapped, static, args, kwargs), gen, static)


@_late
def transformation_with_aux(gen, fun, *static):
    """As `transformation`, where the step's last yield is `(result, aux)`.

    Returns:
        (the function, a function that gives aux).
    """
    store = Store()

    def call(*args, **kwargs):
        out, aux = _run(gen, fun.call_wrapped, static, args, kwargs)
        store.store(aux)
        return out
    return fun.wrap(call, gen, static, store), lambda: store.val


@_late
def transformation2(gen, fun, *static):
    """`fun` in the step `gen(call, *static, *args, **kwargs)`."""
    return fun.wrap(functools.partial(gen, fun.call_wrapped, *static), gen, static)


@_late
def transformation_with_aux2(gen, fun, *static):
    """As `transformation2`, with `gen(call, store, *static, *args, **kwargs)`.

    Returns:
        (the function, a function that gives the stored value).
    """
    store = Store()
    wrapped = fun.wrap(functools.partial(gen, fun.call_wrapped, store, *static), gen, static, store)
    return wrapped, lambda: store.val


def cache(call, *, explain=None):
    """`call(fun, *args)` of a WrappedFun, cached for equal ones in equal steps; args are hashable.

    A step that stores a value is equal to none but itself.  `explain` is not supported.
    """
    if explain is not None:
        raise NotImplementedError("linear_util.cache(explain=...): jax.explain_cache_misses tells why jit "
                                  "traces again")
    return cached(4096)(call)


def merge_linear_aux(aux1, aux2):
    """(is it the first?, value) of the one of two stores that was filled.

    Raises:
        StoreException: if both were, or none.
    """
    filled = []
    for first, aux in (True, aux1), (False, aux2):
        try:
            filled.append((first, aux()))
        except StoreException:
            continue
    if len(filled) != 1:
        raise StoreException(f"{'both stores are' if filled else 'neither store is'} occupied")
    return filled[0]

_explain(globals())
