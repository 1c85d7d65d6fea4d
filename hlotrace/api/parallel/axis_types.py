"""Mesh axes by type, where Explicit ones are as Auto ones: auto_axes, explicit_axes, no_collectives; smap."""
import contextlib
import functools

from ...core.errors import did_you_mean, not_callable
from ...core.pytrees import pytree
from ...core.surface.boundary import filtered
from ...placement.shardings import with_sharding_constraint
from ...sharding.mesh import current_mesh
from ...sharding.spec import PartitionSpec
from .shard_map import shard_map

_INFER = object()


def _decorated(make):
    """`make(f, **options)`, which without f is a decorator."""
    @functools.wraps(make)
    def begin(f=None, /, **options):
        if f is not None and not callable(f):
            raise not_callable(f)
        return functools.partial(begin, **options) if f is None else functools.wraps(f)(filtered(make(f, **options)))
    return begin


def _check_axes(what, axes):
    mesh = current_mesh()
    for axis in (axes,) if isinstance(axes, str) else axes or ():
        if mesh is None or axis not in mesh.axis_names:
            names = () if mesh is None else mesh.axis_names
            raise ValueError(f"{what}: axes names {axis!r}, and the axes of the current mesh are {names}"
                             f"{did_you_mean(axis, names)}; enter one with set_mesh(mesh)")


@_decorated
def auto_axes(f, *, axes=None, out_sharding=None):
    """`f` where the compiler decides over the mesh axes `axes` (all), which it does everywhere here; its
    results lie so.

    out_sharding: a PartitionSpec of the current mesh or a NamedSharding, or a prefix of the results of them;
    each call may give another.  TypeError where neither says it.

    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     jax.sharding.auto_axes(jnp.sin, out_sharding=jax.P("x"))(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """
    def call(*args, out_sharding=out_sharding, **kwargs):
        _check_axes("auto_axes", axes)
        if out_sharding is None:
            raise TypeError("auto_axes: out_sharding is missing: say how the results lie, as in "
                            "out_sharding=P('x')")
        return with_sharding_constraint(f(*args, **kwargs), out_sharding)
    return call


@_decorated
def explicit_axes(f, *, axes=None, in_sharding=None):
    """`f` of arguments that lie as `in_sharding` says; mesh axes of type Explicit are as Auto ones here.

    in_sharding: a PartitionSpec of the current mesh or a NamedSharding, or a prefix of the tuple of arguments
    of them; each call may give another.  TypeError where neither says it.

    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     jax.sharding.explicit_axes(jnp.sin, in_sharding=jax.P("x"))(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """
    def call(*args, in_sharding=in_sharding, **kwargs):
        _check_axes("explicit_axes", axes)
        if in_sharding is None:
            raise TypeError("explicit_axes: in_sharding is missing: say how the arguments lie, as in "
                            "in_sharding=P('x')")
        return f(*with_sharding_constraint(args, in_sharding), **kwargs)
    return call


@contextlib.contextmanager
def no_collectives(axes):
    """Context manager in which devices exchange nothing over these mesh axes; only the empty set can be
    promised here.

    >>> with jax.sharding.no_collectives(frozenset()):
    ...     pass
    """
    if not isinstance(axes, (set, frozenset)):
        raise TypeError(f"no_collectives: axes is a set of names of mesh axes, got {axes!r}")
    if axes:
        raise NotImplementedError(f"no_collectives({set(axes)!r}): the compiler decides about these axes, "
                                  "and may exchange; in a shard_map there are the collectives that the "
                                  "program writes, and no others")
    yield


@_decorated
def smap(f, *, in_axes=_INFER, out_axes, axis_name):
    """`f` on the devices along one axis of the current mesh, each with its part of the arguments: `shard_map`
    of one axis.

    in_axes, out_axes: which axis of the arguments and results is cut, an int, or None where all devices have
    the same; or pytrees of these that are prefixes of the tuple of arguments and of the results.  axis_name:
    the axis of the mesh, which `f` may name in collectives.  TypeError without in_axes; ValueError where
    there is no mesh.

    >>> with jax.set_mesh(jax.make_mesh((2,), ("x",), devices=jax.devices()[:2])):
    ...     jax.smap(lambda x: x - lax.pmean(x, "x"), in_axes=0, out_axes=0, axis_name="x")(jnp.array([1., 3.]))
    Array([-1.,  1.], dtype=float32)
    """
    if in_axes is _INFER:
        raise TypeError("smap: in_axes is missing: say which axis of each argument is cut, as in in_axes=0")
    if not isinstance(axis_name, str):
        raise TypeError(f"smap: axis_name is the name of one axis of the mesh, got {axis_name!r}")

    def spec(axis):
        if axis is not None and not (isinstance(axis, int) and axis >= 0):
            raise ValueError(f"smap: in_axes and out_axes hold axes counted from 0, or None; got {axis!r}")
        return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)

    def call(*args):
        mesh = current_mesh()
        if mesh is None or mesh.empty:
            raise ValueError("smap: there is no mesh: enter one with set_mesh(mesh)")
        ins, outs = (pytree.tree_map(spec, axes, is_leaf=lambda x: x is None) for axes in (in_axes, out_axes))
        return shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, axis_names=frozenset([axis_name]))(*args)
    return call
