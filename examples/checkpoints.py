"""Arrays by name, saved by all processes of a job at once: by Orbax where it is installed, else in a NumPy file.

Whoever reads finds all of a checkpoint or nothing, also when a process was killed while it wrote. `elastic.py` uses it.
"""
import importlib.util
import os
import tempfile

import numpy as np

import hlotrace as jax

ORBAX = importlib.util.find_spec("orbax") is not None


def orbax_checkpointer():
    importlib.import_module("hlotrace.as_jax")      # from here `import jax`, in Orbax too, means hlotrace
    import orbax.checkpoint
    return orbax.checkpoint.StandardCheckpointer()


def save(path, arrays):
    if ORBAX:
        with orbax_checkpointer() as checkpointer:
            checkpointer.save(path.absolute(), arrays)
    elif jax.process_index() == 0:
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            np.savez(file, **{name: np.asarray(value) for name, value in arrays.items()})
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, path)         # at once, whatever happens


def newest(folder, arrays):
    """(its number, arrays placed as the given ones), of the checkpoint in `folder` with the largest; else (0, as given)."""
    number = max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=0)
    if number == 0:
        return 0, arrays
    if ORBAX:
        with orbax_checkpointer() as checkpointer:
            return number, checkpointer.restore(folder.absolute() / str(number), arrays)
    with np.load(folder / str(number)) as file:
        return number, {name: jax.device_put(file[name], value.sharding) for name, value in arrays.items()}
