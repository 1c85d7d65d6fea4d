"""The custom call of a kernel that Mosaic compiles: its configuration."""
import base64
import json

from . import mosaic_rules

_FLAGS = ("disable_bounds_checks", "disable_semaphore_checks", "skip_device_barrier",
          "internal_scratch_in_bytes")
_VMEM = 1       # the number of that kind of memory


def config(kernel, mesh=None):
    """(The configuration, more attributes as text, has it side effects?) of the call of a `Kernel`, on
    devices of the mesh of a `shard_map`.

    Raises:
        NotImplementedError: for what Mosaic cannot do.
        ValueError: where devices meet, and there is no `collective_id`.
    """
    from ....runtime.mlir import mosaic
    params, cost = kernel.options
    text, communicates = mosaic_rules.text(kernel, mesh)
    call = {"body": base64.b64encode(mosaic.serialized(text)).decode(), "serialization_format": 1,
            "needs_layout_passes": True}
    if cost is not None:
        call["cost_estimate"] = {"flops": int(cost.flops), "transcendentals": int(cost.transcendentals),
                                 "bytes_accessed": int(cost.bytes_accessed)}
    collective = getattr(params, "collective_id", None)
    if kernel.core._value.barrier and collective is None:
        raise ValueError(f"pallas_call of {kernel.name}: a kernel with get_barrier_semaphore() needs "
                         "compiler_params=tpu.CompilerParams(collective_id=...), a number that no other "
                         "kernel that may run at the same time has")
    if collective is not None:
        call["collective_id"] = collective
    if communicates:
        call["has_communication"] = True
    for name in _FLAGS:
        if value := getattr(params, name, None):
            call[name] = value
    if fusion := getattr(params, "allow_input_fusion", None):
        first = kernel.grid.count(None) + len(kernel.scalars)
        call["allow_input_fusion"] = [False] * first + [*map(bool, fusion)]
    whole = {"custom_call_config": call}
    if (limit := getattr(params, "vmem_limit_bytes", None)) is not None:
        whole["scoped_memory_configs"] = [{"memory_space": _VMEM, "offset": 0, "size": limit}]
    effects = getattr(params, "has_side_effects", False)
    return json.dumps(whole), f', kernel_name = "{kernel.name}"', effects not in (False, None)
