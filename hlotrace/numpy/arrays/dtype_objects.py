"""Dtypes by name (`float32`, `bfloat16`, `int4`, ...), and questions about dtypes."""
import ml_dtypes

from ...core import dtypes
from ...core.config import override, state
from ...core.dtypes import as_dtype
from ...core.surface import boundary
from ...primitives.common import np
from ..util import result_type as result_type
from .creation import asarray

dtype = np.dtype
finfo, iinfo = ml_dtypes.finfo, ml_dtypes.iinfo
generic, number, integer, inexact = np.generic, np.number, np.integer, np.inexact
signedinteger, unsignedinteger, floating, complexfloating = (np.signedinteger, np.unsignedinteger,
                                                             np.floating, np.complexfloating)
flexible, character, object_ = np.flexible, np.character, np.object_
ComplexWarning = np.exceptions.ComplexWarning


class _ScalarMeta(type):
    """The type of `float32` and its kin: each names a dtype, and called with a value makes an array of it.

    Jumanji's enumerations are subclasses of `int8`.
    """

    dtype = property(lambda cls: cls._wide)

    def __call__(cls, x):
        try:
            return asarray(x, dtype=cls.dtype)
        except Exception as error:
            boundary.reraise_for_user(error, f"jnp.{cls.__name__}", (x,))
            raise

    def __hash__(cls):
        return hash(cls.dtype.type)

    def __eq__(cls, other):
        if isinstance(other, (_ScalarMeta, np.dtype)):
            return cls.dtype == np.dtype(other)
        return cls.dtype.type is other

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.dtype.type)


def _named(names):
    return [_ScalarMeta(name, (), {"__module__": "hlotrace.numpy", "__doc__": f"The dtype {name}.",
                                   "_wide": as_dtype(name)}) for name in names.split()]


bool, = _named("bool")
bool_ = bool
int1, int2, int4, int8, int16, int32, int64 = _named("int1 int2 int4 int8 int16 int32 int64")
uint1, uint2, uint4, uint8, uint16, uint32, uint64 = _named("uint1 uint2 uint4 uint8 uint16 uint32 uint64")
bfloat16, float16, float32, float64 = _named("bfloat16 float16 float32 float64")
complex64, complex128 = _named("complex64 complex128")
float4_e2m1fn, float6_e2m3fn, float6_e3m2fn = _named("float4_e2m1fn float6_e2m3fn float6_e3m2fn")
float8_e3m4, float8_e4m3, float8_e4m3fn, float8_e4m3b11fnuz, float8_e4m3fnuz = _named(
    "float8_e3m4 float8_e4m3 float8_e4m3fn float8_e4m3b11fnuz float8_e4m3fnuz")
float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu = _named("float8_e5m2 float8_e5m2fnuz float8_e8m0fnu")
single, double, csingle, cdouble = float32, float64, complex64, complex128
int_, uint, float_, complex_ = int64, uint64, float64, complex128


def _is_weak(x):
    return isinstance(x, type) and x in (int, float, complex)


_ABSTRACT = (generic, number, integer, inexact, signedinteger, unsignedinteger, floating, complexfloating,
             flexible, character)


def issubdtype(arg1, arg2):
    """Is the dtype (or kind of dtypes) `arg1` of the kind, or the same as, `arg2`?

    Kinds are `floating`, `integer`, `number`, ..., and `dtypes.prng_key`.

    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating), jnp.issubdtype(jnp.int8, jnp.unsignedinteger)
    (True, False)
    >>> jnp.issubdtype(jax.random.key(0).dtype, jax.dtypes.prng_key)
    True
    """
    # 64 bits, whatever arrays have; None is float64, as for NumPy
    arg1, arg2 = (np.dtype(t) if t is None or _is_weak(t) else t for t in (arg1, arg2))
    if arg1 in _ABSTRACT:
        return isinstance(arg2, type) and issubclass(arg1, arg2)
    return dtypes.issubdtype(as_dtype(arg1), arg2)


def promote_types(a, b):
    """The dtype to which both promote.  int, float and complex are weak: they give way to other dtypes.

    None is float.

    >>> jnp.promote_types(jnp.int32, jnp.float16), jnp.promote_types(jnp.bfloat16, jnp.float16)
    (dtype('float16'), dtype('float32'))
    >>> jnp.promote_types(jnp.int8, int)
    dtype('int8')
    """
    types = [float if t is None else t for t in (a, b)]
    wide = any(_is_weak(t) or as_dtype(t).itemsize >= 8 for t in types)
    with override("jax_enable_x64", state.x64 or wide):
        return dtypes.lattice_result(tuple((as_dtype(t), _is_weak(t)) for t in types))[0]


def can_cast(from_, to, casting="safe"):
    """Does NumPy allow this cast?

    It knows NumPy's rules, not those of promotion here: `int`, `float` and `complex` are of 64 bits and more.

    Args:
        from_: a dtype, or a value that has one.
        casting: "no", "equiv", "safe", "same_kind" or "unsafe".

    >>> jnp.can_cast(jnp.int8, jnp.float32)
    True
    >>> jnp.can_cast(jnp.int32, jnp.float32)
    False
    >>> jnp.can_cast("f4", "i4", "same_kind")
    False
    """
    from_, to = (np.dtype(t) if isinstance(t, type) else as_dtype(t) for t in (from_, to))
    return np.can_cast(from_, to, casting=casting)


_KINDS = {"bool": np.bool_, "signed integer": signedinteger, "unsigned integer": unsignedinteger,
          "integral": integer, "real floating": floating, "complex floating": complexfloating,
          "numeric": number}


def isdtype(dtype, kind):
    """Is `dtype` of the kind "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating" or "numeric", or the dtype `kind`, or one of a tuple of these?

    >>> jnp.isdtype(jnp.bfloat16, "real floating"), jnp.isdtype(jnp.int8, ("bool", "integral"))
    (True, True)
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    for k in kinds:
        if isinstance(k, str) and k in _KINDS:
            k = _KINDS[k]
        elif k in _ABSTRACT:
            raise TypeError(f"Expected kind to be a dtype, string, or tuple; got kind={k}")
        else:
            try:
                k = as_dtype(k)
            except TypeError:
                raise ValueError(f"Unrecognized kind={k!r} expected one of {list(_KINDS)}, or a compatible "
                                 "input for jnp.dtype()") from None
        if dtypes.issubdtype(as_dtype(dtype), k):
            return True
    return False


__all__ = [name for name in globals() if not name.startswith("_")
           and name not in ("np", "ml_dtypes", "boundary", "dtypes", "as_dtype", "override", "state")]
