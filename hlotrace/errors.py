"""hlotrace.errors: the exception classes, under JAX's names."""
<<<<<<< HEAD
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
=======
from .core.errors import *
>>>>>>> origin/main
from .core.surface.public import install_getattr as _explain
from .runtime.binding import JaxRuntimeError

_explain(globals())
