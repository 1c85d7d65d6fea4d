"""What transformations do with Refs: their adapter; reading, writing, adding to whole ones, wherever made."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ..core.avals import ShapedArray, aval_of
from ..core.config import state
from ..core.errors import ShapeError
from ..core.jaxpr import Jaxpr
from ..core.jaxpr_trace import trace_to_jaxpr
from ..core.pytrees import pytree
from ..core.refs import Memory, Ref
from ..primitives.arrays.elementwise import add
from ..primitives.programs.refs import get_p, set_p
from . import adapters


@functools.cache
def _chosen(aval: ShapedArray, i: int, n: int) -> Jaxpr:
    """The program that gives the `i`th of `n` values of one type."""
    return trace_to_jaxpr(lambda *values: [values[i]], [aval] * n)


def read(ref: Ref) -> Any:
    """The whole value of a Ref, wherever it was made."""
    ref.check()
    if isinstance(ref._value, Memory):
        return ref._value.access(get_p, ref, (), ())
    if ref.home is not state.trace:
        return get_p.bind(ref=ref, program=_chosen(ref.inner_aval, 0, 1))[0]
    ref._shared = True
    return ref._value


def write(ref: Ref, value: Any) -> None:
    """Give a Ref another value of its type, wherever it was made."""
    if isinstance(ref._value, Memory):
        ref._value.access(set_p, ref, (), (value,))
        return
    set_p.bind(value, ref=ref, program=_chosen(ref.inner_aval, 1, 2))


_FREED = "freed"      # in place of what a Ref has: nothing


_standing: set = set()      # classes of what is the type of a Ref, without a value


def stands_for_a_ref(cls: type) -> None:
    """Let instances of a class go where Refs go; each has `kind`, and `of_value()`, its array's type."""
    _standing.add(cls)
    adapters.forget()


class _Refs(adapters.Adapter):
    """Refs by value: inside is a Ref of the value; an eager call may reuse the memory of what it writes."""

    owns_memory = True

    def handles(self, cls: type) -> bool:
        return cls is Ref or cls in _standing

    def base(self, ref: Any) -> Any:
        return ref

    def arrays(self, ref: Any) -> tuple[Any, list[Any]]:
        if type(ref) is not Ref:
            return ref.kind, [ref.of_value()]
        ref.check()
        return ref.kind, [ref._value if ref.home is state.trace else read(ref)]

    def inside(self, kind: Any, arrays: Sequence[Any]) -> Ref:
        return Ref(arrays[0], kind)

    def after(self, kind: Any, ref: Ref) -> tuple[Any, list[Any]]:
        return (kind, [ref._value]) if ref._value is not None else (_FREED, [])

    def lend(self, ref: Any) -> Any:
        return ref.take() if type(ref) is Ref else None

    def restore(self, value: Any, lent: Any) -> None:
        if type(value) is Ref:
            value.keep(lent)

    def own_memory(self, value: Ref, array: Any) -> Any:
        return value.copy(array) if value.is_needed(array) else array

    def write_back(self, ref: Ref, kind: Any, arrays: Sequence[Any]) -> None:
        if kind is _FREED:
            ref.give_up()
        elif ref.home is state.trace:
            ref.put(*arrays)
        else:
            write(ref, *arrays)


adapters.register(_Refs())


# --- cotangents that Refs add up ------------------------------------------------------------------

class _Word:
    """What is said by its class alone."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradValue(_Word):
    """Of `with_refs`: give the cotangent, as without it."""


class DontWant(_Word):
    """Of `with_refs`: this cotangent is not wanted."""


class GradRef(_Word):
    """In place of a cotangent that was added to a Ref."""


class DidntWant(_Word):
    """In place of a cotangent that was not wanted."""


pytree.register_pytree_node(GradRef, lambda x: ((), None), lambda aux, children: GradRef())
pytree.register_pytree_node(DidntWant, lambda x: ((), None), lambda aux, children: DidntWant())


def delivered(cotangent: Any, wish: Any, where: str) -> Any:
    """What the user gets for a cotangent, which is added to the Ref `wish`, or as that says."""
    if isinstance(wish, DontWant):
        return DidntWant()
    if not isinstance(wish, Ref):
        return cotangent
    got, held = aval_of(cotangent), wish.inner_aval
    if (got.shape, got.dtype) != (held.shape, held.dtype):
        raise ShapeError(f"with_refs: the Ref at {where} is {held.str_short()}, and the cotangent that is to "
                         f"be added to it {got.str_short()}: make it like its argument, as in "
                         "new_ref(jnp.zeros_like(x))")
    write(wish, add(read(wish), cotangent))
    return GradRef()
