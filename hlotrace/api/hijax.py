"""jit, and primitives, over values of the user's own types (JAX's hijax; `core/hitypes.py`).

A mutable value's arrays when the function ends are further results, which the caller's value is updated with.  One that a
traced function uses from outside of it has its arrays in Refs from then on, which know how to be read and written there.
"""
import contextlib
import functools

from ..core.config import state
from ..core.hitypes import Lowered, adopt, home, lower, mutable, raise_vals, staging, type_of
from ..core.pytrees import pytree
from ..core.refs import Ref
from ..core.trace import EVAL, entering
from ..primitives.arrays.elementwise import convert
from . import refs
from .custom_derivatives import custom_jvp


def of_arrays(fun):
    """`fun` as a function of what `lower` gives; its result is (that of `fun`, the states of mutable
    arguments)."""
    @functools.wraps(fun)
    def inner(*args, **kwargs):
        args, kwargs = raise_vals((args, kwargs))
        given = mutable((args, kwargs))
        result = fun(*args, **kwargs)
        if any(x is value for x in pytree.tree_leaves(result) for _, value in given):
            raise ValueError(f"jit of {inner.__name__}: it returned a mutable value that it was given, which "
                             f"its caller has, of type {given[0][0]}: return what is new")
        return result, [Lowered.of(*pair) for pair in given]
    return inner


def call_jitted(compiled, args, kwargs):
    """A call of `jit(of_arrays(fun))`, after which the mutable values among the arguments have their new
    state."""
    given = mutable((args, kwargs))
    if len({id(value) for _, value in given}) < len(given):
        raise ValueError("a mutable value is passed twice: pass it once")
    result, states = compiled(*lower(args), **lower(kwargs))
    for (_, value), state_now in zip(given, states, strict=True):
        state_now.put(value)
    return result


# --- mutable values from outside of a traced function
# -----------------------------------------------------------

class _Shared:
    """A mutable value that a function uses from outside of it; its arrays are in Refs, which are traced."""
    def __init__(self, ty, value, home):
        self.type, self.value, self.made_of = ty, value, value.cur_qdd()
        with entering(home):
            self.refs = [Ref(x) for x in ty.read_loval(self.made_of, value)]

    def read(self):
        """Let the value have the arrays that are in the Refs."""
        self.seen = [refs.read(ref) for ref in self.refs]
        self.type.update_from_loval(self.made_of, self.value, *self.seen)

    def write(self):
        """Let the Refs have the arrays that the value has."""
        made_of = self.value.cur_qdd()
        if made_of.normalize() != self.made_of.normalize():
            raise ValueError(f"a value of type {self.type}, from outside of the function that is traced, is "
                             f"made of {self.made_of}, and cannot come to be made of {made_of}: pass it as "
                             "an argument of jit")
        for ref, old, new in zip(self.refs, self.seen, self.type.read_loval(made_of, self.value),
                                 strict=True):
            if new is not old:
                refs.write(ref, convert(new, ref.dtype, ref.inner_aval.weak_type))


# ("shared", id of a value that belongs to no program) -> _Shared, which holds it: compiled functions may use
# its Refs
_shared: dict = {}
# ids of values that are moved from or to Refs: what their types do for that has them as they are
_moving: set = set()


def _from_outside(values):
    """The _Shared of the mutable ones that are known outside of the function that is traced."""
    found = []
    for value in values:
        ty = type_of(value)
        if ty is None or not ty.has_qdd or id(value) in _moving:
            continue
        where, key = home(value), ("shared", id(value))
        table = _shared if where is EVAL else where.made
        if key not in table and where is not staging(state.trace):
            with _moved(value):
                table[key] = _Shared(ty, value, where)
        if key in table:
            found.append(table[key])
    return found


@contextlib.contextmanager
def _moved(*values):
    _moving.update(map(id, values))
    try:
        yield
    finally:
        _moving.difference_update(map(id, values))


# --- primitives
# -------------------------------------------------------------------------------------------------

# gives its second argument, which cannot be differentiated through
_rules_not_used = custom_jvp(lambda name, arrays: arrays, nondiff_argnums=(0,))


@_rules_not_used.defjvp
def _rules_not_used_jvp(name, *_):
    raise NotImplementedError(f"hijax primitive {name!r}: its rule of differentiation is not used here, "
                              "where values of its types are arrays when they are differentiated; write it "
                              "as a function with jax.custom_vjp")


def apply(primitive, args, params):
    """Do a HiPrimitive for these values."""
    if state.trace is not EVAL and primitive.jvp is not None and not mutable(list(args)):
        args = raise_vals(_rules_not_used(primitive.name, lower(args)))
    shared = _from_outside(args)
    with _moved(*[x.value for x in shared]):
        for x in shared:
            x.read()
        results = primitive.to_lojax(*args, **params)
        for x in shared:
            x.write()
    for x in results if primitive.multiple_results else [results]:
        if (ty := type_of(x)) is not None and ty.has_qdd:
            adopt(x)
    return results
