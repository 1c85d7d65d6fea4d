"""Refs among the arguments of jit and vmap: inside are others, whose values come in and go out as other
values do."""
import functools

from ..core.avals import aval_of
from ..core.caches import WeakCache
from ..core.config import state
from ..core.pytrees import pytree
from ..core.refs import IN_USE, Ref
from ..core.trace import trace_to_jaxpr
from ..primitives.programs.refs import get_p, set_p
from .flat import FlatFunction
from .signatures import static_values


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


def among(flat):
    """{position: Ref} of the leaves.  ValueError for one that is there twice."""
    refs = {i: x for i, x in enumerate(flat.leaves) if type(x) is Ref}
    seen = {}
    for i, ref in refs.items():
        if ref in seen:
            raise ValueError("only one reference to a mutable array may be passed as an argument to a "
                             f"function, but when tracing {flat.name} for {flat.what} the mutable array "
                             f"reference of type {ref.aval} appeared at both {flat.path(seen[ref])} and "
                             f"{flat.path(i)}")
        seen[ref] = i
    return refs


class Inside:
    """A function of leaves, some of them values of Refs, that gives (its result, {position: value of a Ref
    afterwards}).

    `outside`, if given, are leaves that are Refs inside too; otherwise Refs that were not written are left
    out.
    """
    def __init__(self, flat, positions, outside=None):
        self.flat, self.positions, self.outside = flat, positions, outside
        self.__name__ = flat.name

    def __call__(self, *leaves):
        refs = {i: Ref(leaves[i]) for i in self.positions}
        all_refs = {**(self.outside or {}), **refs}
        args, kwargs = self.flat.arguments([all_refs.get(i, x) for i, x in enumerate(leaves)])
        result = self.flat.fun(*args, **kwargs)
        self.written = [i for i, r in refs.items() if self.outside is not None or r._value is not leaves[i]]
        return result, {i: refs[i]._value for i in self.written}


_inside = WeakCache()


def call_jitted(jitted, leaves, in_tree, statics):
    """An eager call of a compiled function with Refs among the leaves; it may reuse the memory of those that
    it writes."""
    flat = FlatFunction(jitted._fun, leaves, in_tree, "jit", static_values(statics))
    refs = among(flat)
    if pytree.tree_leaves((jitted._in_shardings, jitted._out_shardings)):     # None asks for nothing
        raise NotImplementedError(f"{flat}: in_shardings, out_shardings and device do not go with an "
                                  "argument that is a Ref: it is where its value was put, as in "
                                  "new_ref(device_put(x, sharding))")
    table, key = _inside.of(jitted._fun, jitted._options), (in_tree, tuple(refs), statics)
    inner = table.get(key)
    if inner is None:
        fun = Inside(FlatFunction(jitted._fun, None, in_tree, "jit", flat.statics), tuple(refs))
        inner = table.keep(key, type(jitted)(fun, keep_unused=jitted._keep_unused, inline=jitted._inline,
                                             compiler_options=jitted._compiler_options))
        donated = jitted._donated(*in_tree.unflatten(leaves))
        inner._donated = lambda args, kwargs: tuple(sorted({*donated, *fun.written}))
        inner._never_quick = True
    values = list(leaves)
    for i, ref in refs.items():
        ref.check()
        values[i] = ref._value
    before = list(values)
    if any(ref.needed() for ref in refs.values()):      # those that are written are copied
        _, structure = pytree.tree_flatten((tuple(values), {}))
        traced = inner._trace(tuple(values), {}, structure, tuple(map(aval_of, values)), ())
        for i in refs.keys() & traced.donated:
            values[i] = refs[i].lend()
    try:
        for ref in refs.values():
            ref._value = IN_USE
        result, written = inner(*values)
    finally:
        for i, ref in refs.items():
            ref.keep(before[i])
    for i, value in written.items():
        refs[i].put(value)
    return result
