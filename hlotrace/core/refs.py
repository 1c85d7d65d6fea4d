"""Ref, a mutable array, and what it means that a program uses one.

A Ref's value is with the trace in which it was made, its home.  There an access is done at once: what is
written down is values that follow each other.  In a program inside of that (the body of a scan), an access is
an equation with an effect, `Access`, so also the equation that holds the program has it; where that one is
bound in the home, the Ref is discharged (`transforms/discharge.py`): its value is an operand and a result.
So no program that runs has references, and derivatives and batching see none but those from outside of what
is differentiated or mapped.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from .avals import OfArrays, ShapedArray, aval_of
from .config import state
from .effects import Effect, State
from .errors import UnexpectedTracerError
from .jaxpr import Jaxpr
from .primitive import Builtin
from .trace import Tracer

KINDS = (None, "no_grad_no_remat")      # of Refs
TRACED = "traced"       # in the static part of an index, the place of an operand


class AbstractRef(OfArrays):
    """The type of a Ref: `inner_aval`, the type of the array in it, and its `shape`, `dtype`, ..."""
    __slots__ = ("inner_aval", "memory_space", "kind")

    def __init__(self, inner_aval: ShapedArray, memory_space: Any = None, kind: str | None = None) -> None:
        self.inner_aval, self.memory_space, self.kind = inner_aval, memory_space, kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner_aval, name)

    def strip_weak_type(self) -> AbstractRef:
        return AbstractRef(self.inner_aval.strip_weak_type(), self.memory_space, self.kind)

    def __eq__(self, other: object) -> bool:
        return type(other) is AbstractRef and (other.inner_aval, other.memory_space, other.kind) == (
            self.inner_aval, self.memory_space, self.kind)

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval, self.kind))

    def str_short(self, short_dtypes: bool = False) -> str:
        return f"Ref{{{self.inner_aval.short() if short_dtypes else self.inner_aval.str_short()}}}"

    __repr__ = str_short


class RefOrView:
    """What a Ref and a part of one have in common: both are read and written, and neither is an array."""
    __slots__ = ()
    inner_aval: Any
    kind: Any
    called: str     # what a program calls it

    @property
    def aval(self) -> AbstractRef:
        """The AbstractRef."""
        return AbstractRef(self.inner_aval, kind=self.kind)

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
    ndim = property(lambda self: self.inner_aval.ndim)
    size = property(lambda self: self.inner_aval.size)
    weak_type = property(lambda self: self.inner_aval.weak_type)
    instead_of_an_array = property(lambda self: f"Read the value of a Ref with {self.called}[...].")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"len() of {self.aval}: it has no axes")
        return self.shape[0]

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{self.aval} is not iterable: read it with {self.called}[...] first")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TypeError(f"{self.aval} is not an array. {self.instead_of_an_array}")


class Memory:
    """In the place of a Ref's value: memory of which there is no array, of the type `aval`.

    A class derived from it says in `access(primitive, ref, steps, values)` what reading and writing is.
    """
    aval: ShapedArray
    access: Callable[..., Any]


class Ref(RefOrView):
    """A mutable array, made by `new_ref`: `ref[...]` reads, `ref[0] = 1.` writes, `ref.at[1:]` is a part.

    It lives in the function or transformation that made it and in all that is called from there, and may be
    passed to functions, but not returned by compiled ones.

    >>> ref = jax.new_ref(jnp.zeros(3))
    >>> ref[0] = 1.; ref[1:] += 5
    >>> ref, ref[...]
    (Ref([1., 5., 5.], dtype=float32), Array([1., 5., 5.], dtype=float32))
    """
    __slots__ = ("_value", "_shared", "home", "inner_aval", "kind", "__weakref__")
    copy: Callable      # primitives/programs/refs.py gives it: a concrete array -> one with memory of its own
    called = "ref"

    def __init__(self, value: Any, kind: str | None = None) -> None:
        self.kind = kind
        self.home, self.inner_aval = state.trace, value.aval if isinstance(value, Memory) else aval_of(value)
        self._value = value
        self._shared = True       # is the array that is the value referred to elsewhere?

    sharding = property(lambda self: self.value().sharding)
    committed = property(lambda self: self.value().committed)
    format = property(lambda self: self.value().format)

    def __copy__(self) -> Ref:
        value = self.value()
        self._shared = True
        return Ref(value, self.kind)

    def __deepcopy__(self, memo: Any) -> Ref:
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self.aval} cannot be pickled: pickle ref[...]")

    def __repr__(self) -> str:
        if self._value is None:
            return f"{self.aval} (freed)"
        if isinstance(self._value, Tracer):
            return f"JitTracer({self.aval})"
        return f"Ref{repr(self._value).removeprefix('Array')}"

    def unsafe_buffer_pointer(self) -> int:
        """The address of the value's memory."""
        return self.value().unsafe_buffer_pointer()

    def value(self) -> Any:
        """The value now.

        Raises:
            ValueError: if it was given up, or if another trace than the Ref's own is the current one
        """
        self.check()
        if self.home is not state.trace:
            raise ValueError(f"{self.aval} was made outside of {state.trace.what} and is whole only there")
        return self._value

    def check(self) -> None:
        """Check that the Ref has a value here.

        Raises:
            ValueError: if it was given up
            UnexpectedTracerError: outside of the trace where it was made
        """
        if self._value is None:
            raise ValueError(f"{self.aval} was given up by freeze or free_ref, and there is nothing in it: "
                             "make another one with new_ref")
        if self._value is POISONED:
            raise ValueError(f"{self.aval} has lost its value: a call that wrote to it in place has failed")
        if self._value is IN_USE:
            raise ValueError(f"when tracing {state.trace.what}, a mutable array reference of type "
                             f"{self.aval} was both closed over and passed as an argument: it must come one "
                             "way only")
        trace = state.trace
        while trace is not self.home:
            trace = trace.parent
            if trace is None:
                raise UnexpectedTracerError(
                    f"{self.aval} was made in {self.home.what}, and is used outside of that, where it has no "
                    "value: return ref[...] instead, or make it outside and pass it")

    def lend(self) -> Any:
        """The value, or a copy, for a program that gives another one for it and may reuse its memory."""
        return self.copy(self._value) if self.is_needed(self._value) else self._value

    def is_needed(self, value: Any) -> bool:
        """Is the value needed after a call: is it referred to elsewhere, or may a check fail then?"""
        return (self._shared or state.check_floats or state.check_bounds) and not isinstance(value, Tracer)

    def put(self, value: Any) -> None:
        """The value from now on, which nothing else refers to."""
        self._value, self._shared = value, False
        vma = aval_of(value).vma
        if vma != self.inner_aval.vma:      # in a shard_map: from now on it varies over other axes
            self.inner_aval = self.inner_aval.update(vma=vma)

    def take(self) -> Any:
        """The value, which a call has from now on; to use the Ref before `keep` is a ValueError."""
        value, self._value = self._value, IN_USE
        return value

    def keep(self, value: Any) -> None:
        """After a call has failed: the value it was lent, unless its memory was reused."""
        self._value = POISONED if not isinstance(value, Tracer) and value.is_deleted() else value

    def give_up(self) -> Any:
        """The value, for the last time."""
        value, self._value = self.value(), None
        return value

    def handles(self, effect: Effect) -> bool:
        return isinstance(effect, Access) and effect.ref is self


# In place of a value: a call has taken it, or has failed after it reused its memory.
IN_USE, POISONED = object(), object()


@dataclasses.dataclass(frozen=True)
class Access(Effect):
    """A Ref that lives outside of the program is read or, if `writes`, written.

    An equation that does so also for those whose turn it is not must not write.
    """
    ref: Any = None         # a Ref
    writes: bool = False
    batchable = property(lambda self: not self.writes)

    def __str__(self) -> str:
        return f"{'a write to' if self.writes else 'a read of'} {self.ref.aval}"


def accesses(effects: Iterable[Effect]) -> list[Access]:
    """The Access effects among these."""
    return [e for e in effects if isinstance(e, Access)]


def refuse_again(jaxpr: Jaxpr, why: str) -> None:
    """Refuse a program that uses Refs from outside and would run again.  NotImplementedError where it does,
    for the reason `why`."""
    for effect in accesses(jaxpr.effects):
        raise NotImplementedError(f"{why}, and there is {effect} from outside in it: read it before, pass "
                                  "ref[...] as an argument, and return what is to be written")


class Holder(Builtin):
    """A primitive that holds programs, or uses a Ref: bound in the home of Refs, it is discharged of them."""
    __slots__ = ()

    def bind(self, *args: Any, **params: Any) -> Any:
        if effects := self.effects_of(params):
            here = {e.ref: False for e in accesses(effects) if e.ref.home is state.trace}
            if here:
                return self._threaded(here, accesses(effects), args, params)
        return state.trace.process(self, args, params)

    def _threaded(self, refs: dict[Ref, bool], effects: Iterable[Access], args: Sequence[Any],
                  params: dict[str, Any]) -> Any:
        for e in effects:
            if e.ref in refs:
                e.ref.check()
                refs[e.ref] |= e.writes
        values = [ref.lend() if written else ref._value for ref, written in refs.items()]
        states = tuple([State(ref.inner_aval, ref.handles, written) for ref, written in refs.items()])
        try:
            values, results = self.discharge(states, values, args, **params)
        except BaseException:
            for ref in refs:
                ref.keep(ref._value)
            raise
        for (ref, written), value in zip(refs.items(), values, strict=True):
            if written:
                ref.put(value)
        return results
