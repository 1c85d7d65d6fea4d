"""What XLA says of a program: HLO before and after optimization, cost."""
from . import binding


def mlir_module(text):
    """jaxlib's MLIR module."""
    return binding.parse_module(text)


def xla_computation(text):
    """The program as an XlaComputation (HLO before optimization)."""
    return binding._jax.mlir.mlir_module_to_xla_computation(text)


def hlo_text(text):
    """HLO before optimization."""
    return xla_computation(text).as_hlo_text()


def optimized_text(loaded):
    """HLO after optimization, of a compiled program."""
    return "\n\n".join(m.to_string() for m in loaded.hlo_modules())


def cost(loaded):
    """XLA's cost analysis of a compiled program, a dict."""
    found = loaded.cost_analysis()
    return found[0] if isinstance(found, list) else found


def cost_of_text(text, client):
    """XLA's cost analysis of a program before optimization, a dict."""
    from jaxlib import xla_client
    module = xla_computation(text).as_serialized_hlo_module_proto()
    return binding._jax.hlo_module_cost_analysis(client, xla_client.XlaComputation(module).get_hlo_module())
