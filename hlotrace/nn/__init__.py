"""Activation functions, softmax and its kin, attention, and initializers (`nn.initializers`)."""
from ..core.surface.public import export_names as _offer
from . import initializers
from .attention import dot_product_attention
from .functions import *

_offer(globals(), "initializers",
       lazy={"scaled": "get_scaled_dot_general_config scaled_dot_general scaled_matmul"})
