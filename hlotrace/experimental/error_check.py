"""Errors that a program notes while it runs, and that are raised after it.

`set_error_if` notes the first one in a Ref that is the thread's, `raise_if_error` reads it: unlike those of
checkify, functions keep their results, and all that they need is a number on the device.
"""
import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from .. import numpy as jnp
from ..api.external import noted_errors
from ..api.external.noted_errors import NO_ERROR, JaxValueError
from ..api.signatures import wraps
from ..core.config import state
from ..core.pytrees import pytree
from ..core.surface.public import export_names
from ..core.trace import EVAL
from ..export.format import register_pytree_node_serialization
from ..numpy.indexing.refs import new_ref
from ..placement.device_put import device_put
from ..sharding import NamedSharding, PartitionSpec, get_mesh

__all__ = ["JaxValueError", "error_checking_context", "raise_if_error", "set_error_if", "unwrap_from_import",
           "wrap_for_export"]


def set_error_if(pred: Any, /, msg: str) -> None:
    """Note an error where any element of `pred` is true, for `raise_if_error`; the function goes on.

    It may be called under jit, in loops and branches, and where functions are differentiated; of several
    errors the first one is kept.

    Raises:
        ValueError: in a shard_map, where each device has a `pred` of its own: return it instead.
        Exception: under vmap, as for all writes to a Ref from outside of it.

    >>> @jax.jit
    ... def f(x):
    ...     error_check.set_error_if(x < 0, "x must not be negative")
    ...     return jnp.sqrt(x)
    >>> y = f(jnp.array([4., -1.]))
    >>> error_check.raise_if_error()
    Traceback (most recent call last):
    JaxValueError: x must not be negative
    """
    noted_errors.set_error_if(jnp.asarray(pred), msg)


def raise_if_error() -> None:
    """What `set_error_if` noted first on this thread since the last call is raised, if there is anything.

    Raises:
        JaxValueError: the error; its notes say where its check is.
        ValueError: in a function that is traced, where it is not known yet.
    """
    if state.trace is not EVAL:
        raise ValueError("raise_if_error() should not be called within a traced context, such as within a "
                         f"jitted function: it is in {state.trace.what}. Call it after that has returned")
    ref = noted_errors.noted()
    number = int(ref[...])
    if number != NO_ERROR:
        ref[...] = NO_ERROR
        message, place = noted_errors.messages[number]
        error = JaxValueError(message)
        error.annotated = True      # the words are the user's
        error.add_note(f"noted by set_error_if at {place}")
        raise error


@contextlib.contextmanager
def error_checking_context() -> Iterator[None]:
    """A context manager in which errors are noted apart, on all devices of the mesh that is set.

    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> with jax.set_mesh(mesh), error_check.error_checking_context():
    ...     error_check.set_error_if(jnp.arange(4) > 5, "too large")
    ...     error_check.raise_if_error()
    """
    mesh, code = get_mesh(), jnp.uint32(NO_ERROR)
    if not mesh.empty:
        code = device_put(code, NamedSharding(mesh, PartitionSpec()))
    with noted_errors.context(new_ref(code)):
        yield


class _Noted:
    """What an exported function has noted: a number, and the messages that it may mean."""

    def __init__(self, number: Any, messages: tuple[tuple[str, str], ...]) -> None:
        self.number, self.messages = number, messages


pytree.register_pytree_node(_Noted, lambda x: ((x.number,), x.messages),
                            lambda messages, children: _Noted(*children, messages))
register_pytree_node_serialization(
    _Noted, serialized_name=f"{__name__}._Noted",
    serialize_auxdata=lambda messages: json.dumps(messages).encode(),
    deserialize_auxdata=lambda raw: tuple(map(tuple, json.loads(raw))))


def wrap_for_export(f: Callable) -> Callable:
    """`f` for `jax.export`: what it notes is a result, which `unwrap_from_import` takes up.

    >>> def f(x):
    ...     error_check.set_error_if(x < 0, "negative")
    ...     return x + 1
    >>> exported = jax.export.export(jax.jit(error_check.wrap_for_export(f)))(1.)
    >>> read = jax.export.deserialize(exported.serialize())
    >>> y = error_check.unwrap_from_import(read.call)(-1.)
    >>> error_check.raise_if_error()
    Traceback (most recent call last):
    JaxValueError: negative
    """
    @wraps(f)
    def noting(*args: Any, **kwargs: Any) -> Any:
        first = len(noted_errors.messages)
        ref = new_ref(jnp.uint32(NO_ERROR))
        with noted_errors.context(ref):
            out = f(*args, **kwargs)
        number = ref[...]
        return _Noted(jnp.where(number == NO_ERROR, number, number - first), tuple(
            noted_errors.messages[first:])), out
    return noting


def unwrap_from_import(f: Callable) -> Callable:
    """An imported function that `wrap_for_export` was around: what it notes is noted here."""
    @wraps(f)
    def renoting(*args: Any, **kwargs: Any) -> Any:
        noted, out = f(*args, **kwargs)
        with noted_errors.lock:
            first = len(noted_errors.messages)
            noted_errors.messages.extend(noted.messages)
        noted_errors.note(noted.number != NO_ERROR, noted.number + jnp.uint32(first))
        return out
    return renoting


export_names(globals())
