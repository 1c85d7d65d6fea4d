"""Calls of Python functions on the host from inside programs."""
import functools

from ...core.effects import IO, ORDERED_TOKEN
from ..arrays.shape import broadcast_axis, front
from ..common import Primitive, dtypes, np


def checked(result, aval, i, function):
    """A callback's result as a NumPy array of exactly the declared type.

    `function` has the name of the user's and, where it is not from outside, the paths of its results, and
    says whether they are those of many calls.

    Raises:
        TypeError: for what is no array of numbers.
        ValueError: for another shape or dtype.
    """
    path = function.paths[i] if hasattr(function, "paths") else f"[{i}]"
    where = f"callback {function.__name__}: its result{path}"
    value = np.asarray(result)
    if value.dtype.kind in "OUS":
        raise TypeError(f"{where} is a {type(result).__name__}, not an array, where result_shape_dtypes "
                        f"declares {aval.str_short()}: return np.asarray(result, dtype='{aval.dtype}') of "
                        "numbers")
    if value.shape != aval.shape:
        mapped = ("; vmap_method gives it all mapped elements at once, and its result needs their axis in "
                  "front" if getattr(function, "mapped", False) else "")
        raise ValueError(f"{where} has shape {value.shape}, but result_shape_dtypes declares "
                         f"{aval.shape}{mapped}: reshape what it returns, or declare what it does, with "
                         f"jax.ShapeDtypeStruct(shape, dtype). Incorrect output shape for return value #{i}: "
                         f"Expected: {aval.shape}, Actual: {value.shape}")
    if value.dtype != aval.dtype:
        if type(result) in dtypes.python_scalars or (
                value.dtype in dtypes.SUPPORTED and dtypes.canonicalize(value.dtype) == aval.dtype):
            return np.asarray(result, aval.dtype)       # without x64, NumPy's float64 is taken as float32
        raise ValueError(f"{where} has dtype {value.dtype}, but result_shape_dtypes declares {aval.dtype}. "
                         f"Return np.asarray(result, dtype='{aval.dtype}'), or declare {value.dtype}. "
                         f"Incorrect output dtype for return value #{i}: Expected: {aval.dtype}, Actual: "
                         f"{value.dtype}")
    return np.ascontiguousarray(value) if aval.ndim else value


def _in_bytes(aval):
    """A type whose elements have bytes of their own: GPUs pack those of some types, which NumPy does not."""
    if aval is ORDERED_TOKEN.aval or aval.dtype not in dtypes.PACKED:
        return aval
    return aval.update(dtype=dtypes.PACKED[aval.dtype])


def _converted(ctx, x, old, new):
    return x if old is new else ctx.emit(f"stablehlo.convert {x} : ({old.mlir}) -> {new.mlir}")


def _of_bytes(function, in_avals, out_avals, given):
    """A callback that takes and gives `_in_bytes` what `function` does as it is."""
    @functools.wraps(function)
    def converting(*values):
        results = function(*(v.astype(a.dtype, copy=False) for v, a in zip(values, in_avals)))
        return [checked(r, a, i, function).astype(b.dtype, copy=False)
                for i, (r, a, b) in enumerate(zip(results, out_avals, given))]
    return converting


def _lower(ctx, eqn, *names):
    p = eqn.params
    if ctx.platform.callback is None:
        raise NotImplementedError(f"host callbacks are not supported on platform {ctx.platform}")
    avals, out_avals = [v.aval for v in eqn.invars], p["out_avals"]
    tokens = sum(a is ORDERED_TOKEN.aval for a in out_avals)
    index, function = len(ctx.module.callbacks), p["function"]
    taken, given = avals, out_avals     # the types that the host has
    if not ctx.platform.on_host:
        taken, given = [_in_bytes(a) for a in avals], [_in_bytes(a) for a in out_avals]
        if taken != avals or given != list(out_avals):
            function = _of_bytes(function, avals[tokens:], out_avals[tokens:], given[tokens:])
    ctx.module.callbacks.append((function, tuple(given[tokens:]), tokens))

    if getattr(p["function"], "partitioned", False) and ctx.module.divided_by_compiler:
        raise NotImplementedError("debug.callback, debug.print: partitioned=True is not supported where the "
                                  "compiler decides which device has which part: call it inside shard_map")

    def call(names):
        names = [_converted(ctx, x, a, b) for x, a, b in zip(names, avals, taken)]
        found = ctx.custom_call(ctx.platform.callback, names, taken, given,
                                config={"index": np.uint64(index)}, effect=p["effect"] is not None, once=True)
        return [_converted(ctx, x, a, b) for x, a, b in zip(found, given, out_avals)]
    return call(names) if tokens else ctx.on_every_device(names, avals, out_avals, call)


def _jvp(primals, tangents, **params):
    if params["out_avals"] and any(dtypes.is_inexact(a.dtype) for a in params["out_avals"]):
        kind = "IO" if params["effect"] else "Pure"
        raise ValueError(f"{kind} callbacks do not support JVP. Please use custom_jvp or custom_vjp to give "
                         "the derivative of the function that makes the callback, or stop_gradient on its "
                         "arguments.")
    outs = bind(*primals, **params)
    return outs, [None] * len(outs)


def _batching(axis, args, dims, *, function, out_avals, effect, vmap_method):
    if type(effect) is IO and effect.ordered:
        raise ValueError("Cannot `vmap` ordered IO callback: its calls have no order among the mapped "
                         "elements. Use ordered=False, or lax.map.")
    if vmap_method is None and not effect:
        raise NotImplementedError("vmap is only supported for the pure_callback primitive when it is known "
                                  f"how to call {function.__name__}: pass vmap_method='sequential' (once for "
                                  "each element), or 'expand_dims' or 'broadcast_all' (once, with the mapped "
                                  "axis in front)")
    args = front(args, dims)
    batched = [d is not None for d in dims]
    stacked = tuple(a.with_axis(0, axis.size) for a in out_avals)
    if vmap_method in ("expand_dims", "broadcast_all", "legacy_vectorized"):
        if vmap_method != "legacy_vectorized":
            size = axis.size if vmap_method == "broadcast_all" else 1
            args = [a if b else broadcast_axis(a, size, 0) for a, b in zip(args, batched)]

        def mapped(*values):
            return function(*values)
        mapped.mapped = True
    else:
        def mapped(*values):
            rows = [function(*(v[i] if b else v for v, b in zip(values, batched))) for i in range(axis.size)]
            checked_rows = [[checked(r, a, n, function) for n, (r, a) in enumerate(zip(row, out_avals))]
                            for row in rows]
            return [np.stack(column) if column else np.empty(s.shape, s.dtype)
                    for column, s in zip(zip(*checked_rows) if rows else [()] * len(stacked), stacked)]
        mapped.mapped = False
    mapped.__name__, mapped.paths = function.__name__, function.paths
    mapped.partitioned = getattr(function, "partitioned", False)
    outs = bind(*args, function=mapped, out_avals=stacked, effect=effect, vmap_method=vmap_method)
    return outs, [0] * len(outs)


def _discharge(states, values, args, *, out_avals, **params):
    """`states` is (ORDER,): the call takes a token and gives one."""
    token, *outs = bind(*values, *args, out_avals=(ORDERED_TOKEN.aval, *out_avals), **params)
    return [token], outs


create_token_p = Primitive(
    "create_token", abstract_eval=lambda: ORDERED_TOKEN.aval,
    lower=lambda ctx, eqn: ctx.emit(f"stablehlo.create_token : {ORDERED_TOKEN.aval.mlir}"))
after_all_p = Primitive(
    "after_all", abstract_eval=lambda *tokens: ORDERED_TOKEN.aval,
    lower=lambda ctx, eqn, *tokens: ctx.emit(
        f"stablehlo.after_all {', '.join(tokens)} : {ORDERED_TOKEN.aval.mlir}"))


_ALSO = {
    "callback": lambda p: p["function"], "sharding": lambda p: None,
    "result_avals": lambda p: tuple([a for a in p["out_avals"] if a is not ORDERED_TOKEN.aval]),
    "ordered": lambda p: p["effect"].ordered,
    "partitioned": lambda p: getattr(p["function"], "partitioned", False)}


def _shown(eqn):
    """JAX's parameters."""
    effect = eqn.params["effect"]
    names = ["callback", "effect", "partitioned"]
    if effect is None or type(effect) is IO:
        names = ["callback", "sharding", "result_avals", "vmap_method" if effect is None else "ordered"]
    return {name: eqn.params[name] for name in names}


def _callback(name):
    primitive = Primitive(
        name, multiple_results=True, abstract_eval=lambda *avals, out_avals, **_: list(out_avals),
        lower=_lower, says_sharding=True, jvp=_jvp, batching=_batching, discharge=_discharge, makes_nan=False,
        also=_ALSO, effects=lambda params: (params["effect"],) if params["effect"] else ())
    primitive.shown = _shown
    return primitive


# effect: a Debug, an IO, or None (pure: may be dropped or repeated); it says which of the three a call is
pure_callback_p = _callback("pure_callback")
io_callback_p = _callback("io_callback")
debug_callback_p = _callback("debug_callback")
CALLBACKS = pure_callback_p, io_callback_p, debug_callback_p


def bind(*args, effect, **params):
    """An application of the callback primitive that has this effect."""
    primitive = pure_callback_p
    if effect is not None:
        primitive = io_callback_p if type(effect) is IO else debug_callback_p
    return primitive.bind(*args, effect=effect, **params)

