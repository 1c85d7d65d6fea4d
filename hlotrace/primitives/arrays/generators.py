"""Random bits as XLA makes them: rng_bit_generator, whose state is a value; rng_uniform, which keeps its."""
import enum

from ..common import Primitive, ShapedArray, dtypes, kind_of, no_tangent_jvp, np, shape_of
from .shape import front, full, reshape
from .slicing import concatenate_p, slice_along


class RandomAlgorithm(enum.IntEnum):
    """How `rng_bit_generator` makes bits; the default is that of the platform."""
    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


_ALGORITHMS = ("DEFAULT", "THREE_FRY", "PHILOX")
_KEYS = ((dtypes.uint32, (4,)), (dtypes.uint64, (2,)))


def _bits_abstract_eval(key, *, shape, dtype, algorithm):
    if (key.dtype, key.shape) not in _KEYS:
        raise TypeError(f"rng_bit_generator: the key must be uint32[4] or uint64[2], got {key.str_short()}")
    if dtype not in (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64):
        raise TypeError(f"rng_bit_generator: unsupported dtype {dtype}; it makes uint8, uint16, uint32 and "
                        "uint64")
    return [key, ShapedArray(shape, dtype)]


def _bits_lower(ctx, eqn, key):
    algorithm, (aval,), (_, out) = _ALGORITHMS[eqn.params["algorithm"]], [v.aval for v in eqn.invars], [
        v.aval for v in eqn.outvars]
    halves, state = (ShapedArray((2, 2), dtypes.uint32), ShapedArray((2,), dtypes.uint64))
    short = aval.dtype == dtypes.uint32      # XLA's state is of 64-bit words, whose low halves come first
    if short:
        key = ctx.emit(f"stablehlo.reshape {key} : ({aval.mlir}) -> {halves.mlir}")
        key = ctx.emit(f"stablehlo.bitcast_convert {key} : ({halves.mlir}) -> {state.mlir}")
    key, bits = ctx.emit(f"stablehlo.rng_bit_generator {key}, algorithm = {algorithm} : ({state.mlir}) -> "
                         f"({state.mlir}, {out.mlir})", 2)
    if short:
        key = ctx.emit(f"stablehlo.bitcast_convert {key} : ({state.mlir}) -> {halves.mlir}")
        key = ctx.emit(f"stablehlo.reshape {key} : ({halves.mlir}) -> {aval.mlir}")
    return [key, bits]


def _bits_batching(axis, args, dims, *, shape, **params):
    """As JAX does it: the first key makes the bits of all, and is the only one that goes on."""
    keys, = front(args, dims)
    if not axis.size:
        return [keys, full((0, *shape), 0, params["dtype"])], [0, 0]
    row, words = (1, *shape_of(keys)[1:]), shape_of(keys)[1:]
    first = reshape(slice_along(keys, 0, 0, 1), words)
    after, bits = rng_bit_generator_p.bind(first, shape=(axis.size, *shape), **params)
    rest = slice_along(keys, 0, 1, shape_of(keys)[0])
    return [concatenate_p.bind(reshape(after, row), rest, dimension=0), bits], [0, 0]


rng_bit_generator_p = Primitive("rng_bit_generator", multiple_results=True, abstract_eval=_bits_abstract_eval,
                                lower=_bits_lower, batching=_bits_batching)
rng_bit_generator_p.jvp = no_tangent_jvp(rng_bit_generator_p)
rng_bit_generator_p.answer("out_sharding")
rng_bit_generator_p.shown = lambda eqn: {
    **eqn.params, "algorithm": RandomAlgorithm(eqn.params["algorithm"]).name, "out_sharding": None}


def _uniform_abstract_eval(low, high, *, shape):
    if low.dtype != high.dtype:
        raise ValueError(f"Arguments to rng_uniform must have identical dtypes, got {low.dtype.name} and "
                         f"{high.dtype.name}: cast one of them")
    if low.shape or high.shape:
        raise ValueError(f"Arguments to rng_uniform must be scalars; got shapes {low.shape} and "
                         f"{high.shape}: draw from 0.0 to 1.0 and scale the result")
    if kind_of(low.dtype) not in "fiu" or kind_of(low.dtype) in "iu" and low.dtype.itemsize < 4:
        # XLA ends the process over others
        raise TypeError(f"rng_uniform does not accept dtype {low.dtype.name}; it draws floating-point "
                        "numbers, and integers of 32 or 64 bits")
    return ShapedArray(shape, low.dtype)


def _uniform_lower(ctx, eqn, low, high):
    out = eqn.outvars[0].aval
    size = ctx.constant(np.array(out.shape, np.int64))
    scalar, sizes = out.update(shape=()).mlir, ShapedArray((out.ndim,), dtypes.int64).mlir
    drawn = ctx.emit(f"stablehlo.rng {low}, {high}, {size}, distribution = UNIFORM : ({scalar}, {scalar}, "
                     f"{sizes}) -> {out.mlir}")
    if out.dtype.kind in "iu":
        return drawn
    # XLA rounds some numbers up to `high`, which is excluded.  They become `low`, which is drawn half as
    # often as its neighbours because only numbers above it are rounded to it.
    low, high = (ctx.emit(f"stablehlo.broadcast_in_dim {end}, dims = [] : ({scalar}) -> {out.mlir}")
                 for end in (low, high))
    mask = out.update(dtype=dtypes.bool_).mlir
    is_high = ctx.emit(f"stablehlo.compare EQ, {drawn}, {high} : ({out.mlir}, {out.mlir}) -> {mask}")
    return ctx.emit(f"stablehlo.select {is_high}, {low}, {drawn} : {mask}, {out.mlir}")


rng_uniform_p = Primitive("rng_uniform", abstract_eval=_uniform_abstract_eval, lower=_uniform_lower)
