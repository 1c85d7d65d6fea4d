"""hlotrace.errors: the exception classes, under JAX's names."""
from .core.errors import (
    ConcretizationTypeError,
    DuplicateSpecError,
    HoldsArrayError,
    InconclusiveDimensionOperation,
    IndivisibleError,
    JAXIndexError,
    JaxprTypeError,
    JAXTypeError,
    KeyReuseError,
    NonConcreteBooleanIndexError,
    ShapeError,
    ShardingTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    TypePromotionError,
    UnexpectedTracerError,
)
from .core.surface.public import install_getattr as _explain
from .runtime.binding import JaxRuntimeError

_explain(globals())
