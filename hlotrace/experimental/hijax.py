"""hlotrace.experimental.hijax: values of the user's own types, and primitives over them.

All transformations take and return values of types that are registered, and update those that are mutable;
inside of a traced function they are values of their class, made of traced arrays (`api/hijax.py`).  Not here:
AvalQDD and AvalMutableQDD other than as classes.
"""
import functools
from typing import Any, NamedTuple

from ..api import adapters
from ..api.adapters import MappingSpec
from ..api.autodiff import linear_transpose, linearize, vjp
from ..api.custom_derivatives import custom_jvp
from ..api.hijax import GradAccum, NullAccum, RefAccum, ValAccum, apply
from ..api.vmap import vmap
from ..core import hitypes
from ..core.effects import Effect
from ..core.pytrees import pytree
from ..core.refs import AbstractRef
from ..core.surface.jax_core_names import AbstractValue, ShapedArray
from ..core.surface.public import export_names
from ..interpreters.ad import Zero, instantiate_zeros, is_undefined_primal
from ..interpreters.batching import bdim_at_front
from ..numpy.indexing.refs import RefView as TransformedRef

__all__ = ["AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "GradAccum", "HiPrim", "HiPrimitive",
           "HiPspec", "HiType", "MappingSpec", "MutableHiType", "NullAccum", "RefAccum", "ShapedArray",
           "TransformedRef", "VJPHiPrimitive", "ValAccum", "Zero", "aval_method", "aval_property",
           "bdims_at_front", "control_flow_allowed_effects", "instantiate_zeros", "is_undefined_primal",
           "jvp_from_lin", "linearize_from_jvp", "register_hitype", "unmap_avals", "vjp_from_jvp",
           "vjp_from_lin", "vmap_rule"]


class _HiPrimitive:
    """What the two kinds of primitives share; a rule that is None is that of what the primitive does."""
    multiple_results = False
    opaque = False      # are only its rules for derivatives asked, not what it does?
    jvp = vjp_fwd = vjp_bwd = transpose = batch = None


class HiPrimitive(_HiPrimitive):
    """A primitive over values of hijax types, to be derived from.

    `to_lojax(*args, **params)` does it; a traced value's arrays are traced then.  With `multiple_results`, it
    gives a list. `abstract_eval`, and `impl` where there is `to_lojax`, are not called.

    Rules of its own, which one over immutable values may have:

    * `jvp(primals, tangents, **params)`: the pair (result, tangent); a tangent is of the type that
      `to_tangent_aval` of a value's type gives.
    * `transpose(cotangent, *args, **params)`: the cotangents of the arguments, None for those that are known.
    * `batch(axis, args, dims, **params)`: the pair (result, its axis); see `VJPHiPrimitive`.

    >>> class Twice(jax.experimental.hijax.HiPrimitive):
    ...     def to_lojax(self, x):
    ...         return x + x
    >>> Twice("twice").bind(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """

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


class VJPHiPrimitive(_HiPrimitive):
    """A primitive of given types, with rules of its own, to be derived from; it is called like a function.

    Its `__init__` sets `in_avals` (a tuple of the arguments' types, or pytrees of them), `out_aval` and
    `params` (a dict of hashable values, which become attributes), and then calls that of this class.  Two
    with equal ones are equal.

    Methods, of which `expand` alone must be there:

    * `expand(*args)`: the result.
    * `vjp_fwd(perturbed, *args)`: the pair (result, residuals); `perturbed` has a bool for each argument.
    * `vjp_bwd_retval(residuals, cotangent)`: a tuple of the cotangents of the arguments, None for zeros.
    * `vjp_bwd(residuals, cotangent, *accumulators)`: instead of that; each has `accum(cotangent)`.
    * `jvp(primals, tangents)`: the pair (result, tangent).
    * `lin(perturbed, *args)`: the pair (result, residuals), and `linearized(residuals, *tangents)`: the
      tangent.  They are for `linearize`, and for reverse mode where there is no `vjp_fwd`.
    * `transpose(cotangent, *args)`: a tuple of cotangents, None for arguments that are known.
    * `batch(axis, args, dims)`: the pair (result, its axis) for arguments of which some have an axis more:
      `axis.size` is its size, `dims` where each has it, an int, a MappingSpec or None.

    One without a rule for its derivatives is not differentiated (NotImplementedError); without `batch`, vmap
    maps what the methods do.

    >>> class Scaled(jax.experimental.hijax.VJPHiPrimitive):
    ...     def __init__(self, x, *, by):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {"by": by}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return self.by * x
    ...     def vjp_fwd(self, perturbed, x):
    ...         return self(x), None
    ...     def vjp_bwd_retval(self, residuals, g):
    ...         return (100 * g,)
    >>> x = jnp.float32(3)
    >>> jax.value_and_grad(Scaled(jax.typeof(x), by=2))(x)
    (Array(6., dtype=float32), Array(100., dtype=float32))
    """
    opaque = True
    in_avals: tuple
    out_aval: Any
    params: dict

    def __init__(self):
        for name in "in_avals", "out_aval", "params":
            if not hasattr(self, name):
                raise AttributeError(f"hijax primitive {type(self).__name__}: its __init__ must set {name} "
                                     "before it calls that of VJPHiPrimitive")
        self.__dict__.update(self.params)
        self._key = type(self), tuple(self.in_avals), tuple(self.params.items())

    def expand(self, *args):
        raise NotImplementedError(f"hijax primitive {self!r} does not define expand: what it does")

    def vjp_bwd_retval(self, residuals, cotangent):
        raise NotImplementedError(f"hijax primitive {self!r} defines vjp_fwd, and neither vjp_bwd_retval nor "
                                  "vjp_bwd")

    def to_lojax(self, *args):
        """The result: `expand`."""
        return self.expand(*args)

    def __call__(self, *args):
        if len(args) != len(self.in_avals):
            raise TypeError(f"hijax primitive {self!r} takes {len(self.in_avals)} arguments, those of "
                            f"in_avals, and got {len(args)}")
        return apply(self, args, {})

    def __eq__(self, other):
        return isinstance(other, VJPHiPrimitive) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    def __repr__(self):
        return type(self).__name__


HiPrim = VJPHiPrimitive     # its name in JAX 0.12


# --- rules that follow from other rules of a primitive, and help for `batch` ---

class Rules(NamedTuple):
    """Two methods, for an assignment to both names in a class."""
    first: Any
    second: Any


def jvp_from_lin(self, primals, tangents):
    """The `jvp` of a primitive that has `lin` and `linearized`.

    >>> from hlotrace.experimental import hijax
    >>> class Sine(hijax.HiPrim):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return jnp.sin(x)
    ...     def lin(self, perturbed, x):
    ...         return self(x), jnp.cos(x)
    ...     def linearized(self, cosine, t):
    ...         return cosine * t
    ...     jvp = hijax.jvp_from_lin
    ...     vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin
    >>> x = jnp.float32(0)
    >>> jax.jvp(Sine(jax.typeof(x)), (x,), (x + 2,)), jax.grad(Sine(jax.typeof(x)))(x)
    ((Array(0., dtype=float32), Array(2., dtype=float32)), Array(1., dtype=float32))
    """
    out, residuals = self.lin(tuple(type(t) is not Zero for t in tangents), *primals)
    return out, self.linearized(residuals, *tangents)


def _with_jvp(primitive):
    fun = custom_jvp(lambda *xs: primitive.expand(*xs))
    fun.defjvp(lambda primals, tangents: primitive.jvp(primals, tangents))
    return fun


def _tangent_type(aval):
    return aval.to_tangent_aval() if hasattr(aval, "to_tangent_aval") else aval


linearize_from_jvp = Rules(
    lambda self, perturbed, *primals: linearize(_with_jvp(self), *primals),
    lambda self, residuals, *tangents: residuals(*map(instantiate_zeros, tangents)))
vjp_from_jvp = Rules(
    lambda self, perturbed, *args: vjp(_with_jvp(self), *args),
    lambda self, residuals, cotangent: residuals(cotangent))
vjp_from_lin = Rules(
    lambda self, perturbed, *args: self.lin(perturbed, *args),
    lambda self, residuals, cotangent: linear_transpose(
        functools.partial(self.linearized, residuals), *map(_tangent_type, self.in_avals))(cotangent))


def bdims_at_front(axis_data, args, dims):
    """The arguments of a `batch` rule with the mapped axis in front, also where they have none.

    >>> from types import SimpleNamespace
    >>> from hlotrace.experimental import hijax
    >>> both = hijax.bdims_at_front(SimpleNamespace(size=2), (jnp.ones((3, 2)), jnp.ones(3)), (1, None))
    >>> [x.shape for x in both]
    [(2, 3), (2, 3)]
    """
    return pytree.tree_map(lambda x, d: bdim_at_front(x, d, axis_data.size), args, _dims_of(args, dims))


def unmap_avals(axis_data, avals, dims):
    """The types that the arguments of a `batch` rule have less the mapped axis, which is where `dims` say.

    >>> from types import SimpleNamespace
    >>> from hlotrace.experimental import hijax
    >>> hijax.unmap_avals(SimpleNamespace(size=2), (jax.typeof(jnp.ones((3, 2))),), (1,))
    (ShapedArray(float32[3]),)
    """
    def unmapped(aval: ShapedArray, d: Any) -> ShapedArray:
        if d is None:
            return aval
        if aval.shape[d] != axis_data.size:
            raise ValueError(f"unmap_avals: axis {d} of {aval.str_short()} is not the mapped axis, which has "
                             f"size {axis_data.size}")
        return aval.update(shape=(*aval.shape[:d], *aval.shape[d + 1:]))
    return pytree.tree_map(unmapped, avals, _dims_of(avals, dims))


def _dims_of(args, dims):
    """`dims`, a prefix of the arguments, with an entry for each leaf."""
    structure = pytree.tree_structure(args)
    flat = pytree.broadcast_prefix(dims, args, is_leaf=lambda d: d is None)
    return structure.unflatten(flat)


def vmap_rule(axis_data, f, in_axes, out_axes, *, sum_match=False):
    """`f` mapped along the axis that a `batch` rule is given.

    Raises:
        NotImplementedError: for `sum_match`.

    >>> from hlotrace.experimental import hijax
    >>> class Doubled(hijax.HiPrim):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return 2 * x
    ...     def batch(self, axis_data, args, dims):
    ...         return hijax.vmap_rule(axis_data, self.expand, dims, 0)(*args), 0
    >>> jax.vmap(Doubled(jax.typeof(1.)))(jnp.arange(3.))
    Array([0., 2., 4.], dtype=float32)
    """
    if sum_match:
        raise NotImplementedError("vmap_rule: sum_match=True is not supported: sum what is mapped, and is "
                                  "not to be, along its axis")
    return vmap(f, in_axes, out_axes, axis_size=axis_data.size, axis_name=axis_data.name)


# --- types ---

class HiType:
    """A type whose values are made of arrays, to be derived from; equal types are made of arrays alike.

    Its methods: lo_ty() gives the list of the arrays' types, lower_val(value) the list of arrays,
    raise_val(*arrays) the value; to_tangent_aval() the type of tangents and cotangents, without which they
    are values of this type, of the tangents of the arrays; dec_rank(size, spec) and inc_rank(size, spec) the
    types of a part and of the whole of a value that vmap maps as `spec` in in_axes or out_axes says.
    """
    has_qdd = False

    def __repr__(self):
        return f"{type(self).__name__}()"

    def lo_ty(self):
        raise self._lacks("lo_ty")

    def lower_val(self, val):
        raise self._lacks("lower_val")

    def raise_val(self, *arrays):
        raise self._lacks("raise_val")

    def str_short(self, short_dtypes=False):
        """The type in a few words."""
        return str(self)

    def _lacks(self, name):
        return NotImplementedError(f"hijax type {type(self).__name__} does not define {name}")

    def normalize(self):
        """The type, less what does not matter where two are compared."""
        return self


# a type goes where a value's type is all that is needed, as in eval_shape
hitypes.register(HiType, lambda ty: ty)


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
    """How values of a HiType are sharded over a mesh, to be derived from."""


class AvalQDD:
    """A type and of what a value of it is made now.

    Making one is a NotImplementedError: `abstract_eval` is not called.
    """

    def __init__(self, aval, qdd):
        raise NotImplementedError(f"hijax.AvalQDD({aval!r:.80}, {qdd!r:.80}): types do not have a value's "
                                  "state")


class AvalMutableQDD(AvalQDD):
    """A type and what is known of the later state of a value; making one is a NotImplementedError."""


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
    """Say that values of `value_class` are of the type `typeof(value)`.

    Raises:
        TypeError: unless they are a class and a function.

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
    hitypes.register(value_class, typeof)
    adapters.forget()


export_names(globals())
