"""Compiled functions as bytes, and back."""
from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..api.shape_dtype_struct import struct_of
from ..api.stages import Compiled
from ..core.pytrees import pytree
from ..core.surface.boundary import boundaries
from ..runtime.array_impl import as_array
from ..runtime.executables import executable_bytes


def serialize(compiled: Compiled) -> tuple[bytes, pytree.PyTreeDef, pytree.PyTreeDef]:
    """What `jit(f).lower(...).compile()` gives, as bytes.

    These hold machine code for this version of jaxlib and these devices; `export` writes programs for others.

    Returns:
        (payload, in_tree, out_tree): the bytes, and the structures of (args, kwargs) and of the result.
    Raises:
        TypeError: for what is not compiled.
        ValueError: for a program with host callbacks, and for one from the cache on disk whose file is gone.

    >>> from hlotrace.experimental.serialize_executable import deserialize_and_load, serialize
    >>> compiled = jax.jit(lambda x: {"twice": 2 * x}).lower(1.).compile()
    >>> payload, in_tree, out_tree = serialize(compiled)
    >>> deserialize_and_load(payload, in_tree, out_tree)(4.)
    {'twice': Array(8., dtype=float32, weak_type=True)}
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(f"serialize: {compiled!r:.60} is not a compiled function: give "
                        "jit(f).lower(...).compile()")
    lowered = compiled._lowered
    _, consts, kept, donated = lowered._traced.pruned()
    more = {"name": lowered.fun_name, "consts": [np.asarray(c) for c in consts], "kept": kept,
            "donated": donated, "ins": compiled._avals, "outs": tuple(compiled.out_avals),
            "where": lowered._where, "asked": lowered._requested, "commits": lowered._commits}
    if compiled._lowered._references or compiled._lowered._traced.changed is not None:
        raise NotImplementedError(f"serialize of {compiled.fun_name}: it uses a Ref from outside, and what "
                                  "is written has none. Pass the value, ref[...], and return the new one.")
    return executable_bytes.dump(compiled._executable, more), compiled.in_tree, compiled.out_tree


def deserialize_and_load(serialized: bytes, in_tree: pytree.PyTreeDef, out_tree: pytree.PyTreeDef,
                         backend: Any = None, execution_devices: Sequence[Any] | None = None) -> Compiled:
    """The compiled function that `serialize` was given, in this process.

    Read only what you trust: it is machine code.

    Args:
        in_tree: the structure of (args, kwargs).
        backend: the platform on whose devices of the same numbers it runs.
        execution_devices: the devices on which it runs instead, as many and in the same order.
    Raises:
        ValueError: for bytes that `serialize` did not give or that are damaged, for another version of
            jaxlib, and for devices that are not there.

    >>> from hlotrace.experimental.serialize_executable import deserialize_and_load, serialize
    >>> saved = serialize(jax.jit(jnp.cumsum).lower(jax.ShapeDtypeStruct((3,), "int32")).compile())
    >>> deserialize_and_load(*saved)(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    if backend is not None and not isinstance(backend, str):
        backend = backend.platform
    executable, more = executable_bytes.load(serialized, backend, execution_devices)
    return Loaded(executable, more, in_tree, out_tree)


@boundaries(called="Compiled")
class Loaded(Compiled):
    """A compiled function that was read: it has no program, and is called as what was written."""

    def __init__(self, executable: Any, more: dict[str, Any], in_tree: pytree.PyTreeDef,
                 out_tree: pytree.PyTreeDef) -> None:
        flat = SimpleNamespace(fun=lambda *args, **kwargs: None, statics=())
        consts = [as_array(c) for c in more["consts"]]
        traced: Any = SimpleNamespace(in_tree=in_tree, out_tree=out_tree, changed=None,
                                 closed=SimpleNamespace(out_avals=more["outs"]),
                                 jaxpr=SimpleNamespace(in_avals=more["ins"]),
                                 pruned=lambda: (None, consts, more["kept"], more["donated"]))
        lowered: Any = SimpleNamespace(
            _arg_tree=in_tree, _references=(), out_tree=out_tree, fun_name=more["name"], _traced=traced,
            _runs=traced, _kept=more["kept"], _consts=consts, _where=more["where"], _requested=more["asked"],
            _commits=more["commits"],
            out_info=out_tree.unflatten([struct_of(a) for a in more["outs"]]),
            in_avals=in_tree.unflatten(more["ins"]), _stage=SimpleNamespace(_flat=flat),
            _donated_leaves=[more["kept"][i - len(consts)] for i in more["donated"]])
        super().__init__(lowered, executable, lambda: executable)

    def _forms(self) -> dict[str, Any]:
        return {"mesh": getattr(self._lowered._where, "mesh", None)}
