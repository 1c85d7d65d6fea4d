"""Where compiled programs are stored between processes: the option `jax_compilation_cache_dir`."""
from ...core.config import config
from ...core.surface.public import export_names

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path):
    """Store compiled programs in the directory `path` from now on.

    None is the default directory, "" stores none.  Whoever can write there can have this process run what
    they want.

    >>> before = jax.config.jax_compilation_cache_dir
    >>> compilation_cache.set_cache_dir("/tmp/programs")
    >>> jax.config.jax_compilation_cache_dir
    '/tmp/programs'
    >>> compilation_cache.set_cache_dir(before)
    """
    config.update("jax_compilation_cache_dir", path)


def reset_cache():
    """Look at the option anew, as each compilation does here: the directory is not held open, nor in memory.

    >>> compilation_cache.reset_cache()
    """


export_names(globals())
