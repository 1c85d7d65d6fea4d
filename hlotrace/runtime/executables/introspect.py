"""What XLA says of a program: HLO before and after optimization, cost."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import binding
from . import compilation
from .executable import Executable


def mlir_module(text: str) -> Any:
    """jaxlib's MLIR module."""
    from ..mlir.bindings import parse_module
    return parse_module(text)


def xla_computation(text: str) -> Any:
    """The program as an XlaComputation (HLO before optimization)."""
    return binding._jax.mlir.mlir_module_to_xla_computation(text)


def hlo_text(text: str, metadata: bool = False) -> str:
    """HLO before optimization; if `metadata`, with the names and the places of operations."""
    computation = xla_computation(text)
    if not metadata:
        return computation.as_hlo_text()
    return computation.get_hlo_module().to_string()


def optimized_text(executable: Executable) -> str:
    """Optimized HLO of a compiled program; of one in pieces, each with a line of how often it runs."""
    texts = []
    for piece, calls in executable.pieces:
        head = "" if piece is executable else f"// {piece.lowered.jaxpr.name}: runs {calls} times\n"
        texts.append(head + "\n\n".join(m.to_string() for m in piece.loaded.hlo_modules()))
    return "\n\n".join(texts)


def at_other_lines(executable: Executable) -> bool:
    """Does its HLO name lines of another process, which compiled the same program first?"""
    return any(compilation.at_other_lines(piece.lowered.text, piece.stored) for piece, _ in executable.pieces)


def cost(executable: Executable, otherwise: Callable[[Executable], dict[str, float]]) -> dict[str, float]:
    """XLA's cost analysis of a compiled program, a dict; sums over its pieces.  Loops count once.

    `optimal_seconds`, which TPUs have, is an estimate of the time of one run.  `otherwise` gives the analysis
    of a piece where XLA has none of its own, for GPUs that are not here.
    """
    total: dict[str, float] = {}
    for piece, calls in executable.pieces:
        found = _cost(piece)
        for name, value in (otherwise(piece) if found is None else found).items():
            total[name] = total.get(name, 0) + calls * value
    return total


def _cost(piece: Executable) -> dict[str, float] | None:
    try:
        found = piece.loaded.cost_analysis()
    except binding.JaxRuntimeError as error:
        if "UNIMPLEMENTED" in str(error):
            return None
        raise
    found = dict(found[0] if isinstance(found, list) else found)
    if "optimal_seconds" in found:      # XLA takes a second off for each of these, which take no time
        found["optimal_seconds"] += optimized_text(piece).count('custom_call_target="ConcatBitcast"')
    return found


def cost_of_hlo(piece: Executable, client: binding.Client) -> dict[str, float]:
    """What XLA's cost analysis for another client says of the optimized HLO, a dict."""
    module, = piece.loaded.hlo_modules()
    return binding._jax.hlo_module_cost_analysis(client, module)


def cost_of_text(text: str, client: binding.Client) -> dict[str, float]:
    """XLA's cost analysis of a program before optimization, a dict."""
    from jaxlib import xla_client
    module = xla_computation(text).as_serialized_hlo_module_proto()
    return binding._jax.hlo_module_cost_analysis(client, xla_client.XlaComputation(module).get_hlo_module())
