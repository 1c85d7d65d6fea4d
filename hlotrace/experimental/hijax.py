"""hlotrace.experimental.hijax: values of the user's own types, and primitives over them.

`jit` takes and returns values of types that are registered, and updates those that are mutable; inside of a traced function
they are values of their class, made of traced arrays (`api/hijax.py`).  Not here: derivatives with respect to such values,
loops and branches that carry them, and AvalQDD, AvalMutableQDD and VJPHiPrimitive other than as classes.
"""
from ..api.hijax import apply
from ..core.effects import Effect
from ..core.hitypes import register
from ..core.refs import AbstractRef
from ..core.surface.jax_core_names import AbstractValue, ShapedArray
from ..core.surface.public import export_names
from ..interpreters.ad import Zero, instantiate_zeros, is_undefined_primal

__all__ = ["AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiPspec", "HiType",
           "MutableHiType", "ShapedArray", "VJPHiPrimitive", "Zero", "aval_method", "aval_property",
           "control_flow_allowed_effects", "instantiate_zeros", "is_undefined_primal", "register_hitype"]


class HiPrimitive:
    """A primitive over values of hijax types, to be derived from.

    `to_lojax(*args, **params)` does it; a traced value's arrays are traced then.  With `multiple_results`, it
    gives a list. `abstract_eval`, and `impl` where there is `to_lojax`, are not called.  One with a `jvp`
    rule, all whose arguments are immutable, is not differentiated (NotImplementedError).

    >>> class Twice(jax.experimental.hijax.HiPrimitive):
    ...     def to_lojax(self, x):
    ...         return x + x
    >>> Twice("twice").bind(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    multiple_results = False
    jvp = None

    def __init__(self, name):
        self.name = name

    def bind(self, *args, **params):
        """Do it for these values."""
        return apply(self, args, params)

    def to_lojax(self, *args, **params):
        """The result, from values whose arrays may be traced."""
        return self.impl(*args, **params)

    def impl(self, *args, **params):
        raise NotImplementedError(f"hijax primitive {self.name!r} defines neither to_lojax nor impl: what it "
                                  "does")

    def __repr__(self):
        return self.name


class VJPHiPrimitive:
    """A primitive with a reverse rule, to be derived from.  NotImplementedError when one is made."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(f"hijax primitive {type(self).__name__}: write it as a function with "
                                  "jax.custom_vjp")


class HiType:
    """A type whose values are made of arrays, to be derived from.  Types that are equal are made of arrays
    alike.

    Its methods: lo_ty() gives the list of the arrays' types, lower_val(value) the list of arrays,
    raise_val(*arrays) the value.
    """
    has_qdd = False

    def lo_ty(self):
        raise self._lacks("lo_ty")

    def lower_val(self, value):
        raise self._lacks("lower_val")

    def raise_val(self, *arrays):
        raise self._lacks("raise_val")

    def _lacks(self, name):
        return NotImplementedError(f"hijax type {type(self).__name__} does not define {name}")

    def normalize(self):
        """The type, less what does not matter where two are compared."""
        return self


class MutableHiType(HiType):
    """A type whose values change, to be derived from.

    `value.cur_qdd()` says of what a value is made now; the type's methods read_loval(made_of, value) gives
    the list of its arrays, new_from_loval(made_of, *arrays) makes a value of them, update_from_loval(made_of,
    value, *arrays) changes one.
    """
    has_qdd = True

    def read_loval(self, made_of, value):
        raise self._lacks("read_loval")

    def new_from_loval(self, made_of, *arrays):
        raise self._lacks("new_from_loval")

    def update_from_loval(self, made_of, value, *arrays):
        raise self._lacks("update_from_loval")


class HiPspec:
    """How values of a HiType are laid out over a mesh, to be derived from."""


class AvalQDD:
    """A type and of what a value of it is made now.  NotImplementedError when one is made: `abstract_eval` is
    not called."""

    def __init__(self, aval, qdd):
        raise NotImplementedError(f"hijax.AvalQDD({aval!r:.80}, {qdd!r:.80}): types do not have a value's "
                                  "state")


class AvalMutableQDD(AvalQDD):
    """A type and what is known of the state that a value comes to have.  NotImplementedError when one is
    made."""


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
    """Say that values of `value_class` are of the type `typeof(value)`.  TypeError unless they are a class
    and a function.

    >>> hijax = jax.experimental.hijax
    >>> class Pair:
    ...     def __init__(self, *parts):
    ...         self.parts = parts
    >>> class PairType(hijax.HiType):
    ...     lower_val = lambda self, pair: list(pair.parts)
    ...     raise_val = lambda self, *arrays: Pair(*arrays)
    >>> PAIR = PairType()
    >>> hijax.register_hitype(Pair, lambda pair: PAIR)
    >>> jax.jit(lambda pair: Pair(*pair.parts[::-1]))(Pair(1., 2.)).parts
    (Array(2., dtype=float32, weak_type=True), Array(1., dtype=float32, weak_type=True))
    """
    if not (isinstance(value_class, type) and callable(typeof)):
        raise TypeError("hijax.register_hitype(value_class, typeof): a class and a function of its values, "
                        f"not {value_class!r:.80} and {typeof!r:.80}")
    register(value_class, typeof)


export_names(globals())
