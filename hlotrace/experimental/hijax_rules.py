"""Rules of hijax primitives that follow from other rules of theirs, and help for `batch`."""
from typing import Any, NamedTuple

from ..api.autodiff import linear_transpose, linearize, vjp
from ..api.custom_derivatives import custom_jvp
from ..api.vmap import vmap
from ..core.pytrees import pytree
from ..core.surface.jax_core_names import ShapedArray
from ..interpreters.ad import Zero, instantiate_zeros
from ..interpreters.batching import bdim_at_front


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
        lambda *tangents: self.linearized(residuals, *tangents), *map(_tangent_type, self.in_avals))(cotangent))


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

    >>> from hlotrace.experimental import hijax
    >>> hijax.unmap_avals(None, (jax.typeof(jnp.ones((3, 2))),), (1,))
    (ShapedArray(float32[3]),)
    """
    def unmapped(aval: ShapedArray, d: Any) -> ShapedArray:
        return aval if d is None else aval.update(shape=(*aval.shape[:d], *aval.shape[d + 1:]))
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
