"""buffer_callback: a Python function that reads and writes memory of the device on which a program runs."""
import functools

from ...core.effects import IO
from ...core.errors import name_of
from ..common import Primitive, ShapedArray, np
from .ffi import VMAP_METHODS, operands_of_one_call
from .scan import batch_one_by_one


def _lower(ctx, eqn, *names):
    """Results that no operand becomes start as zeros: their memory is what was there before."""
    p = eqn.params
    target = ctx.platform.buffer_callback
    if target is None:
        raise NotImplementedError(f"buffer_callback is not supported on platform {ctx.platform}: its memory "
                                  "is not in reach of this process. Use pure_callback or io_callback")
    if p["command_buffer_compatible"]:
        target += ctx.platform.recorded
    aliases, out_avals = dict(p["input_output_aliases"]), p["result_avals"]
    avals, count = [v.aval for v in eqn.invars], len(names)
    for i, aval in enumerate(out_avals):
        if i not in aliases.values():
            aliases[len(avals)] = i
            zeros = ctx.emit(f"stablehlo.broadcast_in_dim {ctx.constant(0, aval.dtype)}, dims = [] : "
                             f"({ShapedArray((), aval.dtype).mlir}) -> {aval.mlir}")
            names, avals = (*names, zeros), [*avals, aval]
    index = len(ctx.module.callbacks)
    ctx.module.callbacks.append((_called(count, **p), (), 0))
    in_order = {"layouts": [None] * len(avals), "result_layouts": [None] * len(out_avals)}
    return ctx.on_every_device(names, avals, out_avals, lambda names: ctx.custom_call(
        target, names, avals, out_avals, config={"index": np.uint64(index)}, aliases=aliases, **in_order,
        effect=p["has_side_effect"], once=True))


def _called(count, *, callback, in_tree, out_tree, **_):
    """What jaxlib calls with its context, the buffers of `count` operands, of zeros, and of the results."""
    def call(context, *buffers):
        args, kwargs = in_tree.unflatten(buffers[:count])
        result = callback(context, out_tree.unflatten(buffers[len(buffers) - out_tree.num_leaves:]), *args,
                          **kwargs)
        if result is not None:
            raise TypeError(f"a buffer callback returns None, and writes into `out`; {name_of(callback)} "
                            f"returned {result!r:.60}")
        return ()
    return call


def _jvp(primals, tangents, *, callback, **_):
    raise ValueError(f"Buffer callbacks do not support JVP: {name_of(callback)} has no derivative. Use "
                     "jax.custom_jvp or jax.custom_vjp on the function that calls it, or stop_gradient on "
                     "its arguments.")


def _batching(axis, args, dims, *, callback, result_avals, vmap_method, input_output_aliases, **params):
    if vmap_method is None:
        raise NotImplementedError("vmap is only supported for the buffer_callback primitive when vmap_method "
                                  f"is one of {', '.join(map(repr, VMAP_METHODS[:-1]))}. Got "
                                  f"vmap_method=None for {name_of(callback)}")
    bind = functools.partial(buffer_callback_p.bind, callback=callback, vmap_method=vmap_method,
                             input_output_aliases=input_output_aliases, **params)
    if vmap_method.startswith("sequential"):
        return batch_one_by_one(axis, args, dims, functools.partial(bind, result_avals=result_avals),
                                name_of(callback), axis.size if vmap_method == "sequential_unrolled" else 1)
    args, _ = operands_of_one_call(axis, args, dims, vmap_method, {i for i, _ in input_output_aliases})
    outs = bind(*args, result_avals=tuple([a.with_axis(0, axis.size) for a in result_avals]))
    return outs, [0] * len(outs)


# input_output_aliases: pairs of an operand and the result that takes its memory
buffer_callback_p = Primitive(
    "buffer_callback", multiple_results=True, lower=_lower, says_sharding=True, jvp=_jvp, batching=_batching,
    makes_nan=False, abstract_eval=lambda *avals, result_avals, **_: list(result_avals),
    effects=lambda params: (IO(),) if params["has_side_effect"] else ())
