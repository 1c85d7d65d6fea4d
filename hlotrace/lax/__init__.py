"""JAX's `lax`: operations close to the primitives, without promotion or broadcasting of operands."""
from ..core.primitive import PRIMITIVES as _PRIMITIVES, primitive_named as _primitive_named
from ..core.surface.public import entered as _entered, export_names as _offer
from .contraction import *
from .control_flow import *
from .convolution import *
from .elementwise import *
from .indexing import *
from .parallel import *
from .reductions import *
from .shapes import *
from .solves import *


def __getattr__(name):
    """The primitives by name: `lax.add_p`."""
    if name == "with_sharding_constraint":
        from ..placement.shardings import with_sharding_constraint  # meshes are not needed to import lax
        return _entered(with_sharding_constraint, __name__, name)
    if found := _primitive_named(name):
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# The primitives that have a function of their name here, and these.
_OTHERS = """and approx_top_k not or reduce_window_max reduce_window_min reduce_window_sum
    select_and_gather_add select_and_scatter_add while xor""".split()
_offer(globals(), "with_sharding_constraint", "linear_solve_p",
       *(f"{name}_p" for name in _PRIMITIVES if name in globals() or name in _OTHERS),
       lazy={"": "linalg",
              "associative": "associative_scan",
              "by_platform": "composite composite_p platform_dependent",
              "fourier": "FftType fft fft_p",
              "generators": "RandomAlgorithm rng_bit_generator rng_bit_generator_p rng_uniform rng_uniform_p",
              "tokens": "after_all after_all_p create_token create_token_p dce_sink dce_sink_p dtype "
              "polynomial shape_as_value stage",
              "special": "betainc igamma igamma_grad_a igamma_grad_a_p igamma_p igammac igammac_p "
              "random_gamma_grad regularized_incomplete_beta_p"})
