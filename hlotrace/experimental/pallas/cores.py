"""Kernels written for the cores of a device: `kernel`, `core_map`, and Refs of arrays by `run_state`.

In interpret mode a device's cores run one after another.  Where it is compiled, `kernel` is a `pallas_call`
whose grid has the cores.
"""
import dataclasses
import functools
import math
import types

from ... import lax, numpy as jnp
from ...api.signatures import name_of
from ...core.config import CoreAxis, named_axes
from ...core.pytrees import pytree
from ...ref import freeze, new_ref
from ...runtime.devices import client
from .call import how, pallas_call
from .grid_blocks import at_place, program_id
from .interpret import interpreting, memory_of
from .specs import ANY, BlockSpec


@dataclasses.dataclass(frozen=True)
class CoreMesh:
    """The cores of a device: names of axes and how many there are along each."""
    axis_names: tuple
    sizes: tuple
    sparse: bool = False        # are they SparseCores'?

    @property
    def shape(self):
        """{name: size}."""
        return dict(zip(self.axis_names, self.sizes))

    @property
    def size(self):
        """The number of cores."""
        return math.prod(self.sizes)


def TensorCoreMesh(*, axis_name, num_cores=None):
    """The TensorCores of a device, along an axis: `num_cores`, or as many as it has.

    >>> from hlotrace.experimental.pallas import tpu
    >>> tpu.TensorCoreMesh(axis_name="core", num_cores=2).shape
    {'core': 2}
    """
    return create_tensorcore_mesh(axis_name, num_cores=num_cores)


def create_tensorcore_mesh(axis_name, devices=None, num_cores=None):
    """The TensorCores of a device, along an axis: `num_cores`, or as many as the first of `devices` says that
    it has, by default that of programs; 1 where it does not say."""
    if num_cores is None:
        device = client.default_device() if devices is None else devices[0]
        num_cores = getattr(device, "num_cores", 1)
    return CoreMesh((axis_name,), (num_cores,))


def ScalarSubcoreMesh(*, axis_name, num_cores=2):
    """The scalar subcores of a device's SparseCores, along an axis."""
    return CoreMesh((axis_name,), (num_cores,), True)


def VectorSubcoreMesh(*, core_axis_name, subcore_axis_name, num_cores=2, num_subcores=16):
    """The vector subcores of a device's SparseCores, along two axes.

    >>> from hlotrace.experimental.pallas import tpu_sc
    >>> tpu_sc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore").size
    32
    """
    return CoreMesh((core_axis_name, subcore_axis_name), (num_cores, num_subcores), True)


def empty_ref_like(x):
    """A pytree of Refs, of memory that was not written, as `x` has shapes and dtypes.

    >>> jax.experimental.pallas.empty_ref_like(jax.ShapeDtypeStruct((2,), "int32")).shape
    (2,)
    """
    return pytree.tree_map(lambda like: new_ref(memory_of(like)), x)


def run_state(f):
    """The function that gives a pytree of arrays as `f` leaves the Refs of them that it is called with.

    >>> def add_first_to_second(refs):
    ...     refs[1][...] += refs[0][...]
    >>> jax.experimental.pallas.run_state(add_first_to_second)((jnp.ones(2), jnp.arange(2.)))
    (Array([1., 1.], dtype=float32), Array([1., 2.], dtype=float32))
    """
    @functools.wraps(f)
    def call(init):
        refs = pytree.tree_map(lambda x: new_ref(jnp.asarray(x)), init)
        f(refs)
        return pytree.tree_map(freeze, refs)
    return call


def core_map(mesh, *, compiler_params=None, interpret=False, debug=False, cost_estimate=None, name=None,
             metadata=None, scratch_shapes=()):
    """Decorator: run a function at once, on each core of a mesh, with Refs of scratch.

    It reads and writes Refs from outside, as `run_state` makes them; `lax.axis_index(name)` is the core.

    Args:
        interpret: as for `pallas_call`.
        scratch_shapes: as for `pallas_call`; each core has its own.
        compiler_params: for compilers and people, as are `cost_estimate`, `debug`, `metadata` and `name`.
    Raises:
        NotImplementedError: without `interpret`.

    >>> pl, tpu = jax.experimental.pallas, jax.experimental.pallas.tpu
    >>> def number(ref):
    ...     @pl.core_map(tpu.create_tensorcore_mesh("core", num_cores=2), interpret=True)
    ...     def _():
    ...         core = lax.axis_index("core")
    ...         ref[core] = core
    >>> pl.run_state(number)(jnp.full(2, 7))
    Array([0, 1], dtype=int32)
    """
    def run(f):
        params = how(interpret, "pallas.core_map")
        if not params:
            raise NotImplementedError("pallas.core_map is not compiled; use pallas.kernel, or interpret=True")
        with interpreting(params):
            _run_cores(mesh, scratch_shapes, f)
    return run


def _run_cores(mesh, scratch_shapes, f):
    """Call `f` on one core after another, with Refs of scratch."""
    named = isinstance(scratch_shapes, dict)

    def step(core, _):
        places = [core // math.prod(mesh.sizes[i + 1:]) % n for i, n in enumerate(mesh.sizes)]
        with _on_core(mesh, places), at_place((), ()):
            scratch = empty_ref_like(scratch_shapes)
            f(**scratch) if named else f(*scratch)
    lax.fori_loop(0, mesh.size, step, None)


def _on_core(mesh, places):
    """A context in which axes of the mesh are those of one core."""
    return named_axes(*[(name, n, CoreAxis(place))
                        for name, n, place in zip(mesh.axis_names, mesh.sizes, places)])


def _compiled(body, name, out_type, mesh, scratch_types, compiler_params, cost_estimate):
    """The function of arrays that a kernel for TensorCores is, where it is compiled."""
    if mesh.sparse:
        raise NotImplementedError(f"pallas.kernel of {name}: kernels for SparseCores are not compiled")

    def on_cores(*refs, **named):
        with _on_core(mesh, [program_id(axis) for axis in range(len(mesh.sizes))]):
            return body(*refs, **named)
    given = {} if compiler_params is None else vars(compiler_params)
    params = types.SimpleNamespace(**{**given, "dimension_semantics": tuple(
        "core_parallel" if n > 1 else "arbitrary" for n in mesh.sizes)})

    def call(*args):
        whole = BlockSpec(memory_space=ANY)
        specs = [pytree.tree_map(lambda _: whole, like) for like in (args, out_type)]
        return pallas_call(on_cores, out_type, grid=mesh.sizes, in_specs=specs[0], out_specs=specs[1],
                           scratch_shapes=scratch_types, compiler_params=params, cost_estimate=cost_estimate,
                           name=name)(*args)
    return call


_NO_BODY = object()


def kernel(body=_NO_BODY, out_type=(), *, mesh, scratch_types=(), compiler_params=None, interpret=False,
           cost_estimate=None, debug=False, name=None, metadata=None):
    """The function of arrays that a kernel for cores is; without `body`, a decorator.

    Args:
        body: a function of Refs: of the operands, the results and scratch, whole, on each core.
        out_type: the type of the result, or a pytree of them.
        mesh: the cores, such as `tpu.create_tensorcore_mesh("core")`.
        scratch_types: types of memory that each core has besides; those of a dictionary are keyword
            arguments.
        interpret: as for `pallas_call`, as are `compiler_params` and `cost_estimate`; nothing depends on the
            others.  Where it is compiled, arrays are in `pallas.ANY` memory, from which a kernel copies.
    Raises:
        NotImplementedError: for SparseCores, without `interpret`.

    >>> pl, tpu = jax.experimental.pallas, jax.experimental.pallas.tpu
    >>> @pl.kernel(out_type=jax.ShapeDtypeStruct((2,), "float32"), interpret=True,
    ...            mesh=tpu.create_tensorcore_mesh("core", num_cores=2))
    ... def double(x, out):
    ...     core = lax.axis_index("core")
    ...     out[core] = x[core] * 2
    >>> double(jnp.arange(2.))
    Array([0., 2.], dtype=float32)
    """
    if body is _NO_BODY:
        return lambda given: kernel(given, out_type, mesh=mesh, scratch_types=scratch_types,
                                    compiler_params=compiler_params, interpret=interpret,
                                    cost_estimate=cost_estimate, name=name)
    title = name or name_of(body)

    def call(*args):
        params = how(interpret, f"pallas.kernel of {title}")
        if not params:
            return _compiled(body, title, out_type, mesh, scratch_types, compiler_params,
                             cost_estimate)(*args)
        with interpreting(params):
            refs = pytree.tree_map(lambda x: new_ref(jnp.asarray(x)), args)
            results = empty_ref_like(out_type)
            targets = results if isinstance(out_type, (tuple, list)) else (results,)
            _run_cores(mesh, scratch_types,
                       lambda *scratch, **named: body(*refs, *targets, *scratch, **named))
            return pytree.tree_map(freeze, results)
    call.__name__ = title
    return call
