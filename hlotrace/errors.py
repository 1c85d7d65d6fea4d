"""hlotrace.errors: the exception classes, under JAX's names."""
from .core.errors import (
    ConcretizationTypeError,
    KeyReuseError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    TypePromotionError,
    UnexpectedTracerError,
)
from .runtime.binding import JaxRuntimeError
