"""Programs in StableHLO's portable form: bytes that other versions of jaxlib, and other systems, read.

The versions and what they promise: https://openxla.org/stablehlo/compatibility.
"""
from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

from jaxlib.mlir.dialects import func as func_dialect, stablehlo

from .. import binding
from .bindings import context, ir, parse_module

_mlir = binding._jax.mlir


def write(text: str) -> bytes:
    """The portable artifact of a program as text, for StableHLO as it was some weeks before this jaxlib."""
    wanted = stablehlo.StablehloCompatibilityRequirement.WEEK_4
    version = stablehlo.get_version_from_compatibility_requirement(wanted)
    return _mlir.serialize_portable_artifact(parse_module(text), version, True)


def read(artifact: bytes) -> Any:
    """jaxlib's MLIR module for a portable artifact.  ValueError for none, or one newer than this jaxlib."""
    try:
        return _mlir.deserialize_portable_artifact(artifact, context())
    except (ir.MLIRError, RuntimeError, ValueError) as error:
        raise ValueError("the program does not read as a portable artifact of StableHLO "
                         f"{stablehlo.get_current_version()} or older: {error}") from None


def text(artifact: bytes) -> str:
    """The program of a portable artifact as text, with locations."""
    return read(artifact).operation.get_asm(enable_debug_info=True)


def functions(artifact: bytes, unique: Any, mesh: Any, debug_info: bool,
              types: Sequence[str] | None = None) -> tuple[str, list[str], list[str]]:
    """(the name of its main function, texts of its functions, targets of its custom calls) of an artifact.

    All functions are private, and named as `unique(name)` says; `mesh({axis: size})` gives the name of a
    mesh.  Without `mesh` nothing is said of how values are sharded.  `types` are those of the last
    arguments of main, where the artifact leaves sizes open; if they leave none, all sizes in its functions
    are known.
    """
    with context(), ir.Location.unknown():
        module = read(artifact) if types is None else _specialized(read(artifact), types)
        targets: dict[str, None] = {}
        constraints: list[Any] = []
        names = {}
        module.operation.walk(lambda op: _note(op, targets, constraints))
        for op in constraints if mesh is None else ():
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        for op in list(module.body.operations):
            symbol = ir.StringAttr(op.attributes["sym_name"]).value
            if op.operation.name == "sdy.mesh":
                axes = re.findall(r'"([^"]*)"=(\d+)', str(op.attributes["mesh"]))
                new = mesh({axis: int(size) for axis, size in axes}) if mesh else symbol
            else:
                new = names[symbol] = unique("exported" if symbol == "main" else symbol)
                op.attributes["sym_visibility"] = ir.StringAttr.get("private")
            ir.SymbolTable.set_symbol_name(op, new + _RENAMED)
            ir.SymbolTable.replace_all_symbol_uses(symbol, new + _RENAMED, module.operation)
        texts = []
        for op in module.body.operations:
            if op.operation.name == "func.func":
                written = op.operation.get_asm(enable_debug_info=debug_info, use_local_scope=True)
                written = re.sub(f'@"([^"]*){_RENAMED}"', r"@\1", written)
                if mesh is None:
                    written = re.sub(r"(, )?sdy\.sharding = #sdy\.sharding<[^>]*>", "", written)
                texts.append("".join(f"  {line}\n" for line in written.splitlines()))
    return names["main"], texts, list(targets)


def _specialized(module: Any, types: Sequence[str]) -> Any:
    """A module whose main calls the one it had, with arguments of these types."""
    old, = [op for op in module.body.operations if op.operation.name == "func.func" and op.name.value ==
            "main"]
    wanted, results = old.type.inputs, old.type.results
    inputs = [*wanted[:len(wanted) - len(types)], *map(ir.Type.parse, types)]
    taken = {ir.StringAttr(op.attributes["sym_name"]).value for op in module.body.operations}
    name = next(f"main_{n}" for n in range(len(taken) + 1) if f"main_{n}" not in taken)
    ir.SymbolTable.set_symbol_name(old, name)
    old.attributes["sym_visibility"] = ir.StringAttr.get("private")
    make_function: Any = func_dialect.FuncOp       # jaxlib's stubs do not know its arguments
    with ir.InsertionPoint.at_block_begin(module.body):
        new: Any = make_function("main", (inputs, results), visibility="public")
    with ir.InsertionPoint(new.add_entry_block()):
        operands = [a if a.type == kind else stablehlo.ConvertOp(kind, a).result
                    for a, kind in zip(new.arguments, wanted)]
        func_dialect.ReturnOp(func_dialect.CallOp(results, ir.FlatSymbolRefAttr.get(name), operands).results)
    if any("?" in str(kind) for kind in inputs):
        return module
    out = io.BytesIO()
    module.operation.write_bytecode(file=out)
    try:
        return ir.Module.parse(_mlir.refine_polymorphic_shapes(out.getvalue(), True, True))
    except binding.JaxRuntimeError as error:
        asserted = re.search(r"(Input shapes do not match[^\n]*)", str(error))
        raise ValueError(asserted[1] if asserted
                         else f"its symbolic sizes cannot be {', '.join(map(str, types))}: {error}") from None


_RENAMED = " renamed"       # ends new names until all have theirs: one may be the old name of another


def _note(op: Any, targets: dict[str, None], constraints: list) -> Any:
    if op.name == "stablehlo.custom_call":
        targets.setdefault(ir.StringAttr(op.attributes["call_target_name"]).value)
    elif op.name == "sdy.sharding_constraint":
        constraints.append(op)
    return ir.WalkResult.ADVANCE
