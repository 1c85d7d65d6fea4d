"""sharding_constraint: the sharding of a value from here on.  device_put: the same, and its cotangent has the
sharding of before.  inspect_sharding: the sharding, reported when compiled.  layout_constraint: the layout in
each device's memory from here on.
"""
from dataclasses import dataclass

from ...core.avals import Space
from ...core.effects import INSPECTION
from ...core.errors import ShardingTypeError
from ...core.jaxpr import Var
from ...core.jaxpr_trace import JaxprTracer
from ...core.trace import Tracer
from ...sharding.abstract import HOST, Sharding, space_of
from ...sharding.explicit import check_no_manual, named_axes
from ...sharding.layout import Layout
from ...sharding.mesh import AxisType
from ...sharding.named import as_named
from ...sharding.single import SingleDeviceSharding
from ...sharding.spec import PartitionSpec
from ..arrays import shape
from ..arrays.shape import linear_jvp
from ..common import Primitive, aval_of


def _abstract_eval(x, *, sharding):
    sharding.shard_shape(x.shape)       # an error where it does not divide
    return x


def without_explicit_axes(sharding):
    """Is it over a mesh without Explicit axes?"""
    return not getattr(getattr(sharding, "mesh", None), "explicit_axes", True)


def _lower(ctx, eqn, x):
    """Over a mesh of Auto and Explicit axes it says the Auto ones; the type has the others."""
    sharding, aval = eqn.params["sharding"], eqn.outvars[0].aval
    mesh = getattr(sharding, "mesh", None)
    if mesh and mesh.explicit_axes and mesh.auto_axes:
        free = PartitionSpec.UNCONSTRAINED
        entries = [(*split, *[name for name in sharding.spec.axes(dim) if name in mesh.auto_axes])
                   for dim, split in enumerate(aval.splits)]
        entries = [old if old is free else new for old, new in zip(sharding.entries(aval.ndim), entries)]
        sharding = sharding.with_entries(*entries)
    return _constrained(ctx, x, sharding, aval)


def _constrained(ctx, x, sharding, aval):
    if ctx.module.partition is None or isinstance(sharding, SingleDeviceSharding):
        return x
    return ctx.emit(f"sdy.sharding_constraint {x} {ctx.module.sharding(sharding, aval)} : {aval.mlir}")


def _with_axis(axis, sharding, ndim, dim):
    """A sharding for arrays of rank `ndim`: dimension `dim`, mapped, is split as the mapped axis is over
    Explicit axes; over others as vmap's `spmd_axis_name` says, or as the compiler chooses."""
    if isinstance(sharding, SingleDeviceSharding):
        return sharding
    named = as_named(sharding, ndim - 1)
    entries = [*named.spec, *[None] * (ndim - 1 - len(named.spec))]
    over = None
    if axis.sharding is not None:
        over = axis.sharding.spec[0]
    elif named.mesh.auto_axes:
        over = axis.spmd_name or PartitionSpec.UNCONSTRAINED
    entries.insert(dim, over)
    return named.with_spec(PartitionSpec(*entries))


def _batching(axis, args, dims, *, sharding):
    (x,), (dim,) = args, dims
    return sharding_constraint_p.bind(x, sharding=_with_axis(axis, sharding, x.ndim, dim)), dim


def _meshes(params):
    sharding = params["sharding"]
    return () if isinstance(sharding, SingleDeviceSharding) else (getattr(sharding, "mesh", sharding),)


class ShardingAssertionError(ShardingTypeError, AssertionError):
    """What `with_sharding_constraint` says over Explicit axes is not so."""


def _constraint_abstract_eval(x, *, sharding):
    """Over Explicit axes a constraint is a check; over Auto ones XLA pads what does not divide."""
    if not without_explicit_axes(sharding):
        _abstract_eval(x, sharding=sharding)
    stated = sharding.typed(x).explicit
    other = stated != x.explicit and (not stated or not x.explicit or stated.spec != x.explicit.spec)
    if other and not getattr(getattr(sharding, "mesh", None), "auto_axes", True):
        raise ShardingAssertionError(f"with_sharding_constraint: the value is {x.short()} and is "
                                     f"said to be {x.update(sharding=stated).short()}: over axes of "
                                     "type Explicit it checks the type of its operand. jax.reshard(x, "
                                     f"{sharding.spec}) changes it.")
    return x


sharding_constraint_p = Primitive(
    "sharding_constraint", abstract_eval=_constraint_abstract_eval, lower=_lower, says_sharding=True,
    linear="typed", transpose=lambda ct, x, *, sharding: [sharding_constraint_p.bind(ct, sharding=sharding)],
    batching=_batching, meshes=_meshes, makes_nan=False)
sharding_constraint_p.answer("layout")
sharding_constraint_p.jvp = linear_jvp(sharding_constraint_p)


# --- types over Explicit mesh axes ----------------------------------------------------------------

def _reshard_abstract_eval(x, *, sharding):
    wanted, found = sharding.spec.unreduced, x.explicit._terms if x.explicit else frozenset()
    if wanted:
        check_no_manual("reshard")
    if wanted - found and found - wanted:       # XLA ends the process
        raise ShardingTypeError(f"reshard: the value is {x.short()}, unreduced over other axes than "
                                f"{sharding.spec}: take the sum first, as in jax.reshard(x, "
                                f"{sharding.spec.update(unreduced=frozenset())})")
    return _abstract_eval(x, sharding=sharding).update(sharding=sharding)


def _reshard_lower(ctx, eqn, x):
    if ctx.module.partition is None:
        return x
    sharding, of, aval = eqn.params["sharding"], eqn.invars[0].aval, eqn.outvars[0].aval
    if not sharding.spec.unreduced <= (of.explicit._terms if of.explicit else set()):
        # a whole value becomes terms, all but one of them zero: XLA is to know that it was whole
        x = ctx.emit(f"sdy.sharding_constraint {x} {ctx.module.type_sharding(sharding, of)} : {of.mlir}")
    return ctx.emit(f"sdy.sharding_constraint {x} {ctx.module.type_sharding(sharding, aval)} : {aval.mlir}")


def _reshard_batching(axis, args, dims, *, sharding):
    """The mapped axis stays as it is."""
    (x,), (dim,) = args, dims
    over = axis.sharding and axis.sharding.spec[0]
    return reshard_p.bind(x, sharding=sharding.with_dimension(dim, x.ndim - 1, over)), dim


def as_type(x, aval):
    """`x` with the sharding and in the memory of a type, if they are others."""
    found = aval_of(x)
    if found.memory is not aval.memory:
        space = aval.memory_space
        x = device_put_p.bind(x, sharding=InMemory(HOST if space is Space.Host else None, space), source=None)
    if found.explicit == aval.explicit:
        return x
    if found.explicit is not None and aval.explicit is not None and found.explicit.mesh != aval.explicit.mesh:
        x = cast(x, aval.explicit.mesh)
    sharding = aval.explicit or found.explicit.with_spec(PartitionSpec(*[None] * aval.ndim))
    return reshard(x, sharding=sharding)


shape.as_type = as_type


def reshard(x, *, sharding):
    """`x` under another sharding; terms over other mesh axes are those of the sum of the terms that there
    are, as XLA ends the process where a value is to change from the one to the other."""
    wanted, found = sharding.spec.unreduced, aval_of(x).explicit
    if wanted and found is not None and found._terms - wanted and wanted - found._terms:
        x = summed(x, wanted)
    return reshard_p.bind(x, sharding=sharding)


def summed(x, but=()):
    """`x`, which is unreduced at most over the mesh axes `but`."""
    explicit = aval_of(x).explicit
    if explicit is None or explicit._terms <= {*but}:
        return x
    spec = explicit.spec.update(unreduced=explicit._terms & {*but})
    return reshard_p.bind(x, sharding=explicit.with_spec(spec))


def cast(x, mesh):
    """`x` over a mesh, of which other axes are Explicit; only over those it stays unreduced.

    From a mesh of other axes it goes there whole.
    """
    found = aval_of(x).explicit
    if found is not None and found.mesh.shape_tuple != mesh.shape_tuple:
        there = mesh.update(axis_types=[AxisType.Explicit] * len(mesh.axis_names))
        x = reshard(x, sharding=found.update(mesh=there, spec=PartitionSpec(*[None] * aval_of(x).ndim)))
    return mesh_cast_p.bind(summed(x, mesh.explicit_axes), mesh=mesh)


def without_types(x):
    """`x` over a mesh whose Explicit axes are Auto ones, if it is split over any."""
    explicit = aval_of(x).explicit
    return x if explicit is None else cast(x, explicit.mesh.update(axis_types=[
        AxisType.Auto if kind is AxisType.Explicit else kind for kind in explicit.mesh.axis_types]))


# the value under another sharding over Explicit axes, for which devices may exchange parts
reshard_p = Primitive(
    "reshard", abstract_eval=_reshard_abstract_eval, lower=_reshard_lower, says_sharding=True, linear="typed",
    meshes=_meshes,
    transpose=lambda ct, x, **_: [ct], batching=_reshard_batching, makes_nan=False,
    shown=lambda eqn: {})       # the type of the result says it
reshard_p.jvp = linear_jvp(reshard_p)


def _cast_abstract_eval(x, *, mesh):
    if x.explicit is None:
        return x
    if mesh.shape_tuple != x.explicit.mesh.shape_tuple:
        raise ShardingTypeError(f"mesh_cast: the value is {x.str_short(True)} over {x.explicit.mesh}, and "
                                f"{mesh} has other axes: only their types may differ")
    names = {*mesh.explicit_axes}
    spec = [tuple(name for name in x.explicit.spec.axes(dim) if name in names) for dim in range(x.ndim)]
    terms = x.explicit.spec.unreduced - names
    if terms:
        raise ShardingTypeError(f"mesh_cast: the value is {x.short()}, unreduced over "
                                f"{named_axes(tuple(sorted(terms)))}, which would not be Explicit: take the "
                                "sum first, with jax.reshard")
    spec = x.explicit.spec.update(partitions=spec, reduced=x.explicit.spec.reduced & names)
    return x.update(sharding=x.explicit.update(mesh=mesh.abstract_mesh, spec=spec))


# the value over a mesh of the same axes, of which others are Explicit: its type changes, it stays where it is
mesh_cast_p = Primitive(
    "mesh_cast", abstract_eval=_cast_abstract_eval, lower=lambda ctx, eqn, x: x, says_sharding=True,
    linear="typed", meshes=lambda params: (params["mesh"],),
    batching=lambda axis, args, dims, *, mesh: (mesh_cast_p.bind(*args, mesh=mesh), *dims), makes_nan=False,
    transpose=lambda ct, x, **_: [ct])
mesh_cast_p.jvp = linear_jvp(mesh_cast_p)


class Operand:
    """In place of a sharding: that of a variable of a program, which inputs have when that is lowered."""
    __slots__ = ("var",)

    def __init__(self, var):
        self.var = var

    def __repr__(self):
        return "that of the operand"


@dataclass(unsafe_hash=True, slots=True, repr=False)
class InMemory:
    """In place of a sharding: as it is, in a kind of the devices' memory."""
    _kind: str | None
    space: Space | None = None

    def __repr__(self):
        return f"in {self._kind} memory"


def _put_abstract_eval(x, *, sharding, source):
    if isinstance(sharding, Sharding):
        return sharding.put(_abstract_eval(x, sharding=sharding))
    if type(sharding) is Operand:
        return x.update(memory_space=sharding.var.aval.memory_space)
    return x if sharding is None else x.update(memory_space=sharding.space or space_of(sharding._kind, x))


def _put_lower(ctx, eqn, x):
    sharding, aval = eqn.params["sharding"], eqn.outvars[0].aval
    if type(sharding) is Operand:
        sharding = ctx.module.input_shardings.get(sharding.var)
    if type(sharding) is InMemory:
        return ctx.in_memory(x, aval, sharding._kind)
    if sharding is None:
        return x
    return ctx.in_memory(_constrained(ctx, x, sharding, aval), aval, sharding._kind)


def _put_jvp(primals, tangents, *, sharding, source):
    """An array's sharding is that of its cotangent; of an input of a program it is known when that is
    lowered; otherwise the compiler chooses."""
    (x,), (t,) = primals, tangents
    if source is None and type(x) is JaxprTracer and type(x._var) is Var:
        source = Operand(x._var)
    elif source is None and not isinstance(x, Tracer):
        source = getattr(x, "sharding", None)
    return [device_put_p.bind(v, sharding=sharding, source=source) for v in (x, t)]


def _put_batching(axis, args, dims, *, sharding, source):
    (x,), (dim,) = args, dims

    def place(given):
        if isinstance(given, Sharding):
            return _with_axis(axis, given, x.ndim, dim)
        return given if type(given) is InMemory else None
    return device_put_p.bind(x, sharding=place(sharding), source=place(source)), dim


class _Word:
    """A word that a program's text has without quotes."""
    __slots__ = ("_text",)

    def __init__(self, text):
        self._text = text

    def __repr__(self):
        return self._text


def _put_place(sharding):
    if type(sharding) is SingleDeviceSharding and not sharding._kind:
        return sharding._device
    return {InMemory: lambda: sharding.space, Operand: lambda: None}.get(type(sharding), lambda: sharding)()


def _put_shown(eqn):
    """As JAX's equation, which puts several values."""
    sharding, aval = eqn.params["sharding"], eqn.invars[0].aval
    source, how = None, "REUSE_INPUT"
    if type(sharding) is Operand:       # of a derivative
        source, how = _put_place(eqn.params["source"]), "ALWAYS_COPY"
    elif aval.mesh is not None:
        source = _Word(repr(aval.sharding)[:-1] + ", memory_kind=device)")
    return {"copy_semantics": (_Word(f"ArrayCopySemantics.{how}"),), "devices": (_put_place(sharding),),
            "srcs": (source,)}


device_put_p = Primitive(
    "device_put", abstract_eval=_put_abstract_eval, says_sharding=True, lower=_put_lower,
    jvp=_put_jvp, batching=_put_batching,
    # with a rule of its own it is not kept for all operands of a type, which are on different devices
    linearize=lambda trace, primals, tangents, **params: _put_jvp(primals, tangents, **params),
    transpose=lambda ct, x, *, sharding, source: [device_put_p.bind(ct, sharding=source, source=sharding)],
    meshes=lambda params: _meshes(params) if isinstance(params["sharding"], Sharding) else (),
    makes_nan=False, shown=_put_shown)


def _layout_abstract_eval(x, *, layout):
    layout.check_rank("One of with_layout_constraint arguments", x.shape)
    return x


def _layout_lower(ctx, eqn, x):
    layout, aval = eqn.params["layout"], eqn.outvars[0].aval
    if layout.tiling:
        raise NotImplementedError(f"with_layout_constraint: {layout}: tiles cannot be asked for within a "
                                  "program")
    order = layout.major_to_minor[::-1]
    return ctx.custom_call("LayoutConstraint", [x], [aval], [aval], api_version=1, layouts=[order],
                           result_layouts=[order])[0]


def _layout_batching(axis, args, dims, *, layout):
    (x,), (dim,) = args, dims
    order = [dim, *(a + (a >= dim) for a in layout.major_to_minor)]
    return layout_constraint_p.bind(x, layout=Layout(order, layout.tiling,
                                                     layout.sub_byte_element_size_in_bits)), dim


layout_constraint_p = Primitive(
    "layout_constraint", abstract_eval=_layout_abstract_eval, says_sharding=True, lower=_layout_lower,
    batching=_layout_batching,
    transpose=lambda ct, x, *, layout: [layout_constraint_p.bind(ct, layout=layout)])
layout_constraint_p.jvp = linear_jvp(layout_constraint_p)


def _inspect(ctx, eqn, x):
    """What XLA says is known to the runtime, which fills in a pointer to `callback` before compiling."""
    module, aval = ctx.module, eqn.invars[0].aval
    number = len(module.inspections)
    module.inspections.append((eqn.params["callback"], aval))
    if module.partition is not None:
        ctx.custom_call("InspectSharding", [x], [aval], [aval], config=f"inspection {number}", api_version=1,
                        effect=True)
    return []


inspect_sharding_p = Primitive("inspect_sharding", multiple_results=True, says_sharding=True,
                               abstract_eval=lambda x, *, callback: [], lower=_inspect,
                               effects=lambda params: (INSPECTION,),
                               jvp=lambda xs, _, **params: (inspect_sharding_p.bind(*xs, **params), []),
                               batching=lambda _, xs, dims, **params: (
                                   inspect_sharding_p.bind(*xs, **params), []))
