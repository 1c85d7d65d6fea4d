"""Programs from StableHLO text: a text that was edited, or written elsewhere, as a function."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from ..api.jit import JitFunction
from ..core import dtypes
from ..core.avals import ShapedArray
from ..core.pytrees import pytree
from ..core.surface.boundary import boundary
from ..runtime.devices import client
from ..runtime.mlir import portable_artifacts as portable, shardy
from ..sharding.mesh import AbstractMesh
from ..sharding.named import NamedSharding
from ..sharding.spec import PartitionSpec
from .exported import DisabledSafetyCheck, Exported, maximum_supported_calling_convention_version

__all__ = ["load_text"]
_DTYPES = {element: dtype for dtype, element in dtypes.SUPPORTED.items()}


@boundary
def load_text(text: str) -> Callable[..., Any]:
    """The function that a StableHLO text describes, such as an edited `lowered.as_text()`.

    Args:
        text: a module with a public function @main, whose types and shardings those of the function are.
    Returns:
        A jitted function of arrays, one for each argument of @main; it gives the result of @main, or a tuple
        where there are several or none.  It may be called within other functions, and has no derivative.
    Raises:
        ValueError: for a text that is wrong, with line and column, and for one without @main.
        NotImplementedError: for open sizes, tokens and calls of Python.

    >>> text = jax.jit(lambda x: jnp.sin(x) + 1).lower(jnp.ones(3)).as_text()
    >>> double = jax.load_text(text.replace("stablehlo.sine", "stablehlo.cosine"))
    >>> double(jnp.zeros(3))
    Array([2., 2., 2.], dtype=float32)
    """
    if not isinstance(text, str):
        raise TypeError(f"load_text takes StableHLO as a string, got {type(text).__name__}: of a Lowered, "
                        "pass .as_text()")
    try:
        said = shardy.main_signature(text)
    except ValueError as error:
        raise ValueError(str(error).replace("Shardy:", "load_text:", 1)) from error
    calls = [target for target in said.targets if "callback" in target]
    if calls:
        raise NotImplementedError(f"load_text: the text calls Python ({calls[0]}), and a text does not hold "
                                  "what is called. Take callbacks and debug.print out of the function.")
    names = [name or f"argument {i}" for i, name in enumerate(said.names)]
    ins = [_aval(type_, name) for (type_, _), name in zip(said.inputs, names, strict=True)]
    outs = [_aval(type_, f"result {i}") for i, (type_, _) in enumerate(said.outputs)]
    mesh = AbstractMesh(tuple(said.mesh.values()), tuple(said.mesh)) if said.mesh else None
    exported = Exported(
        fun_name=_name(text), in_tree=pytree.tree_structure(((0,) * len(ins), {})), in_avals=tuple(ins),
        out_tree=pytree.tree_structure((0,) * len(outs)), out_avals=tuple(outs),
        _in_named_shardings=tuple(_shardings(said.inputs, mesh)),
        _out_named_shardings=tuple(_shardings(said.outputs, mesh)),
        nr_devices=mesh.size if mesh else 1, platforms=(client.default_backend(),),
        disabled_safety_checks=(DisabledSafetyCheck.platform(),), mlir_module_serialized=portable.write(text),
        calling_convention_version=maximum_supported_calling_convention_version,
        module_kept_var_idx=tuple(range(len(ins))), uses_global_constants=False)

    def loaded(*arrays: Any) -> Any:
        if len(arrays) != len(ins):
            raise TypeError(f"{exported.fun_name} takes {len(ins)} arrays ({', '.join(names)}), got "
                            f"{len(arrays)}: arguments are flat, as those of @main in its text")
        results = exported.call(*arrays)
        return results[0] if len(results) == 1 else results
    loaded.__name__ = exported.fun_name
    return JitFunction(loaded)


def _name(text: str) -> str:
    found = re.search(r"^\s*module @(?:jit_)?([A-Za-z_][\w.]*)", text, re.M)
    return found[1] if found else "loaded"


def _aval(type_: str, what: str) -> ShapedArray:
    """The type of an array, of its MLIR type."""
    found = re.fullmatch(r"tensor<((?:\d+x)*)([^x?,]\w*(?:<\w+>)?)>", type_)
    if found is None or found[2] not in _DTYPES:
        raise NotImplementedError(f"load_text: {what} is of type {type_}: arrays of known sizes are taken "
                                  "and given, such as tensor<8x128xf32>")
    return ShapedArray(tuple(map(int, re.findall(r"\d+", found[1]))), _DTYPES[found[2]])


def _shardings(values: Iterable[Any], mesh: AbstractMesh | None) -> list[NamedSharding | None]:
    found: list[NamedSharding | None] = []
    for type_, spec in values:
        if any(isinstance(axis, shardy.SubAxis) for axes in spec or () for axis in axes):
            raise NotImplementedError(f"load_text: a value of type {type_} is split over a part of a mesh "
                                      f"axis, {spec}: split it over whole axes")
        found.append(None if mesh is None or spec is None else NamedSharding(mesh, PartitionSpec(*spec)))
    return found
