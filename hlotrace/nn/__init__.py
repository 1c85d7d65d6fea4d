"""Activation functions, softmax and its kin, attention, and initializers (`nn.initializers`)."""
from . import initializers
from .attention import dot_product_attention
from .functions import *
