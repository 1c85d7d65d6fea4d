"""Values of the user's own types, made of arrays (JAX's hijax): what is known of them, and their arrays.

No program has such values.  Where a compiled function is called they become their arrays, as their type, a HiType, says;
inside they are values of the same class again, of traced arrays.  See `api/hijax.py`.
"""
from .avals import avals_by_type
from .config import state
from .pytrees import pytree as tree
from .trace import EVAL, JaxprTrace

_types: dict = {}      # class of values -> function from a value to its HiType


def register(value_class, typeof):
    _types[value_class] = typeof


def type_of(value):
    """The HiType of a value, None for what is of none."""
    for base in type(value).__mro__ if _types else ():
        if base in _types:
            return _types[base](value)
    return None


def any_hitype(leaves):
    """Are there values of HiTypes among these?"""
    return bool(_types) and any(type(x) not in avals_by_type and type_of(x) is not None for x in leaves)


def mutable(pytree):
    """[(HiType, value)] of the mutable values of a pytree."""
    found = [(type_of(x), x) for x in tree.tree_leaves(pytree)]
    return [(ty, x) for ty, x in found if ty is not None and ty.has_qdd]


# --- as pytrees of arrays
# ---------------------------------------------------------------------------------------

class Lowered:
    """The arrays of a value, as a node of a pytree; `made_of` is None if its type says that alone."""
    def __init__(self, kind, arrays):
        self.kind, self.arrays = kind, arrays

    @classmethod
    def of(cls, ty, value):
        made_of = value.cur_qdd() if ty.has_qdd else None
        return cls((ty, made_of), ty.read_loval(made_of, value) if ty.has_qdd else ty.lower_val(value))

    def raised(self):
        """A value of these arrays."""
        ty, made_of = self.kind
        return adopt(ty.new_from_loval(made_of, *self.arrays)) if ty.has_qdd else ty.raise_val(*self.arrays)

    def put(self, value):
        """Let a mutable value have these arrays."""
        ty, made_of = self.kind
        ty.update_from_loval(made_of, value, *self.arrays)


class _Result(Lowered):
    """The same; unflattened, it is the value."""


tree.register_pytree_node(Lowered, lambda x: (x.arrays, x.kind), Lowered)
tree.register_pytree_node(_Result, lambda x: (x.arrays, x.kind), lambda *made: Lowered(*made).raised())


def lower(pytree, node=Lowered):
    """The pytree with the arrays of its values of HiTypes."""
    return tree.tree_map(lambda x: x if (ty := type_of(x)) is None else node.of(ty, x), pytree)


def as_result(pytree):
    """As `lower`; unflattened, the pytree has such values again."""
    return lower(pytree, _Result)


def raise_vals(pytree):
    """The pytree that was lowered."""
    return tree.tree_map(lambda x: x.raised() if type(x) is Lowered else x, pytree,
                         is_leaf=lambda x: type(x) is Lowered)


# --- to which program a mutable value belongs
# -------------------------------------------------------------------

def adopt(value):
    """The value, which belongs to the program that is being traced."""
    trace = staging(state.trace)
    if trace is not EVAL:
        trace.made = trace.made or {}
        trace.made[id(value)] = value
    return value


def staging(trace):
    """The innermost trace that writes a program down, from `trace` outward; EVAL where there is none."""
    while trace is not EVAL and not isinstance(trace, JaxprTrace):
        trace = trace.parent
    return trace


def home(value):
    """The innermost trace that a value belongs to."""
    trace = staging(state.trace)
    while trace is not EVAL and id(value) not in (trace.made or ()):
        trace = staging(trace.parent)
    return trace


def cur_qdd(value):
    """Of what a mutable value is made now, as it says itself.  TypeError for what is of no mutable type.

    >>> hijax = jax.experimental.hijax
    >>> class Box:
    ...     cur_qdd = lambda self: ("one", "array")
    >>> class BoxType(hijax.MutableHiType):
    ...     pass
    >>> BOX = BoxType()
    >>> hijax.register_hitype(Box, lambda box: BOX)
    >>> jax.experimental.cur_qdd(Box())
    ('one', 'array')
    """
    kind = type_of(value)
    if kind is None or not kind.has_qdd:
        raise TypeError(f"cur_qdd: {value!r:.80} is of no mutable type of jax.experimental.hijax")
    return value.cur_qdd()
