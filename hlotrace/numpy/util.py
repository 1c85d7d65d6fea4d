"""Promotion and broadcasting of the arguments of NumPy-level functions."""
import functools
import warnings

from ..core import dtypes, source_info
from ..core.array import Array
from ..core.avals import aval_of, is_arraylike
from ..core.config import config, override, state
from ..core.jaxpr import exactly
from ..core.surface.boundary import HoldsArray
from ..core.symbolic.dimension import Dimension
from ..lax.shapes import joint_shape
from ..primitives.arrays import shape as shapes
from ..primitives.arrays.elementwise import convert_element_type_p
from ..primitives.arrays.shape import broadcast_in_dim, in_memory_of
from ..primitives.common import is_constant, np, scalar, warn_of_imaginary_part

SCALARS = (bool, int, float, complex)
_PYTHON = {"c": complex, "i": int, "u": int, "b": int}       # of kinds of dtype; else float


def promotes(*together):
    """Decorator of a function that mixes dtypes and ranks inside: the options `jax_numpy_dtype_promotion` and
    `jax_numpy_rank_promotion` are for what users mix.  `together` are names of the parameters whose dtypes
    are compared, as the user's option has it; ranks, and the dtypes of the other parameters, are not
    compared."""
    def decorate(fun):
        code = fun.__code__
        names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]

        @functools.wraps(fun)
        def call(*args, **kwargs):
            if (config.jax_numpy_dtype_promotion, config.jax_numpy_rank_promotion) == ("standard", "allow"):
                return fun(*args, **kwargs)
            given = {**dict(zip(names, args)), **kwargs}
            arrays = [aval_of(x) for x in map(given.get, together) if is_arraylike(x)]
            if len(arrays) > 1:
                dtypes.lattice_result(tuple([(a.dtype, a.weak_type) for a in arrays]))
            with override("jax_numpy_dtype_promotion", "standard"), \
                    override("jax_numpy_rank_promotion", "allow"):
                return fun(*args, **kwargs)
        return call
    return decorate


def no_out(name, out):
    """NotImplementedError for an array to write results into."""
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported: arrays are immutable; "
                                  "use the result.")


def check_arraylike(name, *args):
    """TypeError for an argument that is not an array, a NumPy value or a Python number."""
    for i, x in enumerate(args):
        if not isinstance(x, Array) and not is_arraylike(x):
            if hasattr(x, "__jax_array__"):
                raise HoldsArray(name)
            raise TypeError(f"{name} requires ndarray or scalar arguments, got {type(x)} at position {i}: "
                            f"{_instead(x)}")


def _instead(x):
    if isinstance(x, (list, tuple)):
        return "lists and tuples are not converted by themselves: use jnp.array(...)"
    if isinstance(x, str):
        return "a text is no number; float(text) reads one"
    if isinstance(x, dict):
        return "jax.tree.map(function, values) goes over the arrays of a dict"
    if callable(x) and not isinstance(x, type):
        return "it is a function: call it, and give its result"
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return getattr(x, "instead_of_an_array",
                       "it is a type without a value: use it with jax.eval_shape, or make an array: "
                       "jnp.zeros(s.shape, s.dtype)")
    if x is None:
        return "None is no number; is a return missing?"
    return "jnp.array(...) converts what holds numbers"


def shape(x):
    return getattr(x, "shape", ())


def ndim(x):
    return len(getattr(x, "shape", ()))


def dtype_of(x):
    """Canonical dtype of an array-like."""
    return aval_of(x).dtype


def result_type(*args, return_weak_type_flag=False):
    """The canonical dtype that arrays, dtypes and scalars promote to together.

    A Python number or an array of weak type does not widen others of its kind.

    Args:
        args: arrays, dtypes and scalars.
        return_weak_type_flag: return also whether the result is weak.
    Raises:
        ValueError: for no arguments.

    >>> jnp.result_type(jnp.int8, 3)
    dtype('int8')
    >>> jnp.result_type(jnp.arange(2), jnp.float16)
    dtype('float16')
    >>> jnp.result_type(jnp.int32, jnp.uint32)
    dtype('int32')
    """
    if not args:
        raise ValueError("at least one array or dtype is required")
    found = dtypes.lattice_result(tuple(_pair(x) for x in args))
    return found if return_weak_type_flag else found[0]


def _pair(x):
    if is_arraylike(x):
        aval = aval_of(x)
        return aval.dtype, aval.weak_type
    if isinstance(x, type) and x in (int, float, complex):
        return dtypes.canonicalize(x), True
    return dtypes.canonicalize(x), False


def unsigned(value, dtype):
    """`value`; a Python int that an unsigned `dtype` holds has that dtype, since int32 may not hold it."""
    fits = type(value) is int and dtypes.is_unsigned(dtype) and dtypes.holds(dtype, value)
    return scalar(value, dtype) if fits else value


def cast(x, dtype, weak_type=False):
    """`x` with a dtype; a Python number becomes a constant, or stays a weak Python number."""
    if not isinstance(x, Array) and type(x := dtypes.plain(x)) in SCALARS:
        if not weak_type:
            return scalar(x, dtype)
        make = _PYTHON.get(dtype.kind, float)
        if dtypes.canonicalize(make) == dtype:
            return make(x)
    aval = aval_of(x)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return x if isinstance(x, (Array, Dimension)) or x.dtype == dtype else x.astype(dtype)
    if type(x) is Dimension:
        x = x.as_value(None if weak_type else dtype)
    if not isinstance(x, Array) and not weak_type:
        return exactly(np.asarray(x).astype(dtype))
    warn_of_imaginary_part(x, dtype)
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type)


def promote_dtypes(*args):
    """The arguments cast to their common dtype; Python numbers become constants of rank 0."""
    avals = [aval_of(x) for x in args]
    first = avals[0]
    for a in avals:
        if a.dtype != first.dtype or a.weak_type != first.weak_type:
            break
    else:
        if not (any(type(x) in SCALARS for x in args) or first.weak_type and first.dtype == dtypes.bool_):
            return list(args)
    dtype, weak = dtypes.lattice_result(tuple([(a.dtype, a.weak_type) for a in avals]))
    # a weak array of the right dtype may stay weak: the result is weak only if all operands are
    return [cast(x, dtype, weak or a.weak_type and a.dtype == dtype and type(x) not in SCALARS)
            for x, a in zip(args, avals)]


def at_least_float32(dtype):
    """A floating or complex dtype that computes as float32 does or wider: itself, or float32."""
    return dtype if dtypes.is_inexact(dtype) and dtype.itemsize >= 4 else dtypes.float32


def promote_dtypes_inexact(*args):
    """The arguments cast to their common floating or complex dtype."""
    dtype, weak = dtypes.lattice_result(tuple([(a.dtype, a.weak_type) for a in map(aval_of, args)]))
    return [cast(x, dtypes.to_inexact(dtype), weak) for x in args]


def broadcast_to_shape(x, target):
    """`x` repeated to `target`, by NumPy's rules.  ValueError where it does not fit."""
    old = shape(x)
    if old == target:
        return x
    if len(old) > len(target) or joint_shape(old, tuple(target)) != tuple(target):
        raise ValueError(f"Incompatible shapes for broadcasting: {old} and requested shape {tuple(target)}"
                         + ": Cannot broadcast to shape with fewer dimensions" * (len(old) > len(target)))
    return broadcast_in_dim(x, tuple(target), tuple(range(len(target) - len(old), len(target))))


def broadcast_args(*args, name=None):
    """The arguments with one common shape; constants of rank 0 stay as they are beside arrays."""
    shapes = [shape(x) for x in args]
    if all(s == shapes[0] for s in shapes):
        return list(args)
    target = joint_shape(*shapes)
    check_ranks(shapes, name)
    spread = [x if is_constant(x) and ndim(x) == 0 else broadcast_to_shape(x, target) for x in args]
    if any([aval_of(x).memory for x in spread]):
        array = next(aval_of(x) for x in args if ndim(x))       # numbers go where arrays are
        return [x if ndim(given) or is_constant(x) else in_memory_of(array, x)
                for x, given in zip(spread, args)]
    return spread


def split_alike(*args):
    """Arrays of one shape, and constants of rank 0, of which all are split over Explicit axes as some are."""
    avals = [aval_of(x) for x in args]
    split = [a.explicit for a in avals if a.explicit is not None]
    if not split or any(s.spec.partial for s in split):
        return args
    rank = max(a.ndim for a in avals)
    common = [next(filter(None, axes), ()) for axes in zip(*[a.splits for a in avals if a.ndim == rank])]
    used = [name for axes in common for name in axes]
    if len(used) > len({*used}) or any(s.mesh != split[0].mesh for s in split):
        return args     # what takes them refuses it
    return [shapes.as_type(x, a.update(sharding=split[0].with_entries(*[
        axes or both for axes, both in zip(a.splits, common)]))) if a.ndim == rank else x
        for x, a in zip(args, avals)]


def check_ranks(shapes, name=None):
    """Shapes of several ranks, but for (): what the option `jax_numpy_rank_promotion` says of them."""
    if config.jax_numpy_rank_promotion != "allow" and len({len(s) for s in shapes if s}) > 1:
        shown = f"{f'for {name} ' if name else ''}on shapes {' '.join(map(str, shapes))}"
        if config.jax_numpy_rank_promotion == "raise":
            raise ValueError(f"Operands could not be broadcast together {shown} and with the "
                             "config option jax_numpy_rank_promotion='raise': reshape them to equal ranks")
        message = (f"Following NumPy automatic rank promotion {shown}. Set the "
                   "jax_numpy_rank_promotion config option to 'allow' to disable this warning")
        warnings.warn(message, stacklevel=source_info.user_stacklevel())


def promote_args(name, *args):
    """Check, cast to the common dtype, and broadcast."""
    check_arraylike(name, *args)
    return broadcast_args(*promote_dtypes(*args), name=name)


def promote_args_inexact(name, *args):
    """Check, cast to the common floating or complex dtype, and broadcast."""
    check_arraylike(name, *args)
    return broadcast_args(*promote_dtypes_inexact(*args), name=name)


MANY, PIECE = 256, 64


def in_pieces(first, join, arrays):
    """`first(arrays)`; of very many, outside of a program, pieces joined: a program of thousands compiles for
    seconds."""
    if len(arrays) <= MANY or state.trace.staging:
        return first(arrays)
    return in_pieces(join, join, [first(arrays[i:i + PIECE]) for i in range(0, len(arrays), PIECE)])
