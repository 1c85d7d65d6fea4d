"""One process of tools/compare.py: evaluates expressions with one package, or tells what its functions take.

    python tools/compare_child.py PACKAGE signatures MODULE ...     prints {"module.name": [[parameter, kind, default], ...]}
    python tools/compare_child.py PACKAGE results OUT < EXPRESSIONS  writes a pickle for each line: its result, plainly

Nothing here knows which package it is: what is written down are types, shapes, dtypes, numbers and classes of exceptions.
"""
import builtins
import contextlib
import importlib
import inspect
import json
import os
import pickle
import signal
import sys
import warnings

import numpy as np


def signatures(package, modules):
    found = {}
    for place in modules:
        try:
            module = importlib.import_module(f"{package}.{place}")
        except ImportError:
            continue
        for name in sorted(set(dir(module)) if not hasattr(module, "__all__") else set(module.__all__)):
            function = getattr(module, name, None)
            if name.startswith("_") or not callable(function) or inspect.isclass(function):
                continue
            try:
                given = inspect.signature(function).parameters.values()
            except (ValueError, TypeError):
                continue
            if hasattr(function, "nin"):        # a ufunc: its parameters are in its call
                given = [inspect.Parameter(f"x{i}", inspect.Parameter.POSITIONAL_ONLY)
                         for i in range(function.nin)]
            found[f"{place}.{name}"] = [
                [p.name, p.kind.name, None if p.default is p.empty else repr(p.default)] for p in given]
    return found


def plain(value, jax):
    """A result in words that do not depend on the package."""
    if isinstance(value, jax.Array):
        if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            return ("key", value.shape, np.asarray(jax.random.key_data(value)))
        array = np.asarray(value)
        if array.dtype.kind == "V":         # ml_dtypes: NumPy and pickle know them by their module alone
            array = array.astype(np.float32)
        return ("array", str(value.dtype), value.shape, bool(value.weak_type), array)
    if isinstance(value, (tuple, list)):
        kind = type(value).__name__ if hasattr(value, "_fields") else "list" if isinstance(value, list) else "tuple"
        return (kind, *[plain(v, jax) for v in value])
    if isinstance(value, dict):
        return ("dict", *[(str(k), plain(v, jax)) for k, v in value.items()])
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None), np.generic, np.ndarray,
                          np.dtype)):
        return ("plain", value if not isinstance(value, np.dtype) else str(value))
    return ("other", type(value).__name__)


def outcome(text, names, jax):
    try:
        with contextlib.redirect_stdout(None):
            return ("value", plain(eval(text, names), jax))
    except Exception as error:
        known = [c.__name__ for c in type(error).__mro__ if getattr(builtins, c.__name__, None) is c]
        return ("error", known, type(error).__name__, str(error)[:300])


def results(package, out):
    jax = importlib.import_module(package)
    for part in ("numpy", "numpy.linalg", "numpy.fft", "lax", "nn", "random", "scipy.special",
                 "scipy.linalg"):
        importlib.import_module(f"{package}.{part}")
    names = {"jax": jax, "jnp": jax.numpy, "np": np, "lax": jax.lax, "key": jax.random.key(0)}
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    with open(out, "wb") as file:
        for line in sys.stdin:
            text = line.rstrip("\n")
            # a module that is not imported by itself
            with contextlib.suppress(AttributeError, ImportError):
                importlib.import_module(f"{package}.{text.partition('(')[0].rpartition('.')[0].removeprefix('jax.')}")
            signal.alarm(20)
            found = outcome(text, names, jax)
            signal.alarm(0)
            pickle.dump((text, found), file)
            file.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if sys.argv[2] == "signatures":
        print(json.dumps(signatures(sys.argv[1], sys.argv[3:])))
    else:
        results(sys.argv[1], sys.argv[3])
