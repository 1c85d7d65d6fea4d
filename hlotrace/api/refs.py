"""What transformations do with Refs: their adapter, and reading and writing a whole one wherever it was made.
"""
import functools

from ..core.config import state
from ..core.refs import Ref
from ..core.trace import trace_to_jaxpr
from ..primitives.programs.refs import get_p, set_p
from . import adapters


@functools.cache
def _chosen(aval, i, n):
    """The program that gives the `i`th of `n` values of one type."""
    return trace_to_jaxpr(lambda *values: [values[i]], [aval] * n)


def read(ref):
    """The whole value of a Ref, wherever it was made."""
    ref.check()
    if ref.home is not state.trace:
        return get_p.bind(ref=ref, program=_chosen(ref.inner_aval, 0, 1))[0]
    ref._shared = True
    return ref._value


def write(ref, value):
    """Give a Ref another value of its type, wherever it was made."""
    set_p.bind(value, ref=ref, program=_chosen(ref.inner_aval, 1, 2))


_FREED = "freed"      # in place of what a Ref has: nothing


_standing: set = set()      # classes of what is the type of a Ref, without a value


def stands_for_a_ref(cls):
    """Let instances of a class go where Refs go; each has `kind`, and `of_value()` is the type of the array.
    """
    _standing.add(cls)
    adapters.forget()


class _Refs(adapters.Adapter):
    """Refs by value: inside is a Ref of the value; an eager call may reuse the memory of those that it
    writes."""

    owns_memory = True

    def handles(self, cls):
        return cls is Ref or cls in _standing

    def type_text(self, ref):
        return str(ref.aval)

    def base(self, ref):
        return ref

    def arrays(self, ref):
        if type(ref) is not Ref:
            return ref.kind, [ref.of_value()]
        ref.check()
        return ref.kind, [ref._value if ref.home is state.trace else read(ref)]

    def inside(self, kind, arrays):
        return Ref(*arrays, kind)

    def after(self, kind, ref):
        return (kind, [ref._value]) if ref._value is not None else (_FREED, [])

    def lend(self, ref):
        return ref.take() if type(ref) is Ref else None

    def restore(self, ref, value):
        if type(ref) is Ref:
            ref.keep(value)

    def own_memory(self, ref, value):
        return ref.copy(value) if ref.is_needed(value) else value

    def write_back(self, ref, kind, arrays):
        if kind is _FREED:
            ref.give_up()
        elif ref.home is state.trace:
            ref.put(*arrays)
        else:
            write(ref, *arrays)


adapters.register(_Refs())
