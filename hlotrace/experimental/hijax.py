"""hlotrace.experimental.hijax: types and primitives that are not arrays' come with JAX's hijax; here they can be declared.

Libraries declare theirs when they are imported, whether they are used or not; that works.  Values of such types are not
traced, and a primitive that is applied raises NotImplementedError.
"""
from ..core.effects import Effect
from ..core.public import offer
from ..core.refs import AbstractRef
from ..core.surface import AbstractValue, ShapedArray
from ..interpreters.ad import Zero, instantiate_zeros, is_undefined_primal

__all__ = ["AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiPspec", "HiType", "MutableHiType",
           "ShapedArray", "VJPHiPrimitive", "Zero", "aval_method", "aval_property", "control_flow_allowed_effects",
           "instantiate_zeros", "is_undefined_primal", "register_hitype"]


def _not_here(what):
    return NotImplementedError(f"{what}: hlotrace traces arrays, Refs and keys, not values of a hijax type; use arrays in a "
                               "pytree (jax.tree_util.register_dataclass), or switch off the library's option for them")


class HiPrimitive:
    """A primitive over values of hijax types, to be derived from: declared by `HiPrimitive(name)`.

    >>> jax.experimental.hijax.HiPrimitive("new_box").name
    'new_box'
    """

    def __init__(self, name):
        self.name = name

    def bind(self, *args, **params):
        """NotImplementedError: see the module."""
        raise _not_here(f"hijax primitive {self.name!r}")

    def __repr__(self):
        return self.name


class VJPHiPrimitive:
    """A primitive with a reverse rule, to be derived from.  NotImplementedError when one is made: see the module."""

    def __init__(self, *args, **kwargs):
        raise _not_here(f"hijax primitive {type(self).__name__}")


class HiType:
    """A type whose values programs hold, to be derived from."""


class MutableHiType(HiType):
    """A type whose values change, to be derived from."""


class HiPspec:
    """How values of a HiType are laid out over a mesh, to be derived from."""


class AvalQDD:
    """A type and what is known of a value's present state.  NotImplementedError when one is made: see the module."""

    def __init__(self, aval, qdd):
        raise _not_here("hijax.AvalQDD(...)")


class AvalMutableQDD(AvalQDD):
    """A type and what is known of the state that a value comes to have.  NotImplementedError when one is made."""


class _OfType:
    """A function of a HiType that its values have: read from one, it is the type's."""

    def __init__(self, fget):
        self.fget = fget


class aval_method(_OfType):
    """Decorator of a method of a HiType that its traced values have too."""


class aval_property(_OfType):
    """Decorator of a property of a HiType that its traced values have too."""


class _Allowed:
    def __init__(self):
        self._kinds = (Effect,)

    def add_type(self, kind):
        """Effects of the class `kind` may be in loops and branches."""
        if not isinstance(kind, type):
            raise TypeError(f"control_flow_allowed_effects.add_type: a class of effects, not {kind!r:.80}")
        self._kinds = (*self._kinds, kind)

    def contains(self, effect):
        """May `effect` be in loops and branches?"""
        return isinstance(effect, self._kinds)


control_flow_allowed_effects = _Allowed()


def register_hitype(value_class, typeof):
    """Say that values of `value_class` are of the type `typeof(value)`.  TypeError unless they are a class and a function.

    Such a value is told of when it comes to a transformation: it is no array.

    >>> class Box: pass
    >>> jax.experimental.hijax.register_hitype(Box, lambda box: jax.experimental.hijax.HiType())
    """
    if not (isinstance(value_class, type) and callable(typeof)):
        raise TypeError(f"hijax.register_hitype(value_class, typeof): a class and a function of its values, not "
                        f"{value_class!r:.80} and {typeof!r:.80}")


offer(globals())
