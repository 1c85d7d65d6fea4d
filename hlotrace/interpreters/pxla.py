"""JAX's `interpreters.pxla`: how programs over devices are compiled."""
import numpy as np

from ..core.surface.public import install_getattr as _explain
from ..runtime import binding

__all__ = ["create_compile_options"]


def create_compile_options(computation, tuple_args, allow_prop_to_inputs, allow_prop_to_outputs, backend,
                           np_dev, compiler_options):
    """jaxlib's CompileOptions of an MLIR module for an array of devices.

    Args:
        tuple_args: XLA gets all arguments as one tuple.
        allow_prop_to_inputs: for each input whether the compiler may choose its sharding.
        allow_prop_to_outputs: for each output whether the compiler may choose its sharding.
        np_dev: the devices, (partitions,) or (replicas, partitions).
        compiler_options: XLA's flags by name, or None.
    Raises:
        ValueError: for devices of another client than `backend`, or other numbers of them than the module
            says.
    """
    devices = np.array(np_dev, object)
    devices = devices[None] if devices.ndim < 2 else devices
    if any(d.client is not backend for d in devices.flat):
        raise ValueError("pxla.create_compile_options: np_dev has devices of another client than "
                         f"{backend.platform!r}")
    said = computation.operation.attributes
    for name, size in zip(("replicas", "partitions"), devices.shape):
        if (key := f"mhlo.num_{name}") in said and said[key].value != size:
            raise ValueError(f"pxla.create_compile_options: np_dev, of shape {devices.shape}, has {size} "
                             f"{name}, but the module says {said[key].value}")
    ids = np.vectorize(lambda d: d.id, otypes=[int])(devices)
    options = binding.new_compile_options(*devices.shape, ids, compiler_options)
    options.parameter_is_tupled_arguments = tuple_args
    build = options.executable_build_options
    build.allow_spmd_sharding_propagation_to_parameters = list(allow_prop_to_inputs)
    build.allow_spmd_sharding_propagation_to_output = list(allow_prop_to_outputs)
    return options

_explain(globals())
