"""Programs written for platforms that are not here, run on the CPU."""
import numpy as np

import hlotrace as jax
from hlotrace.runtime import binding
from hlotrace.runtime.executables import disk_cache


def computed(text, args):
    """The results of a program of one CPU device, given as text."""
    device = jax.devices("cpu")[0]
    options = binding.compile_options((device,), {})
    entry = disk_cache.entry(text, (device,), options)
    loaded = entry and entry.load()
    if not loaded:
        loaded = device.client.compile_and_load(text, binding.DeviceList((device,)), options)
        if entry:
            entry.store(loaded, "elsewhere", 0.0)
    buffers = [jax.device_put(x, device)._buf for x in args]
    results = loaded.execute_sharded(buffers).disassemble_into_single_device_arrays()
    return [np.asarray(shards[0]) for shards in results]
