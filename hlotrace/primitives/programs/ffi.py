"""ffi_call: a kernel that is compiled elsewhere, called by the name under which it was registered."""
import functools

from ...core.avals import physical
from ...core.effects import IO, ORDERED_TOKEN
from ...core.symbolic_zeros import nonzero_mask
from ..arrays.shape import broadcast_axis, front
from ..common import Primitive, aval_of
from .scan import batch_one_by_one

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized",
                None)


def _lower(ctx, eqn, *names):
    p = eqn.params
    given = {} if p["custom_call_api_version"] == 4 else {"api_version": p["custom_call_api_version"]}
    avals, out_avals = ([v.aval if v.aval is ORDERED_TOKEN.aval else physical(v.aval) for v in part]
                        for part in (eqn.invars, eqn.outvars))
    return ctx.custom_call(p["target_name"], names, avals, out_avals, layouts=p["input_layouts"],
                           result_layouts=p["output_layouts"], config=p["config"],
                           aliases=dict(p["input_output_aliases"]), effect=p["has_side_effect"],
                           leading=p["leading"], **given)


def _jvp(primals, tangents, *, target_name, **_):
    raise ValueError(f"The FFI call to `{target_name}` cannot be differentiated: it has no derivative. Use "
                     "jax.custom_jvp or jax.custom_vjp on the function that calls it, or stop_gradient on "
                     "its arguments.")


def operands_of_one_call(axis, args, dims, vmap_method, aliased):
    """The operands of one call for all mapped elements, and which of them have the mapped axis, in front.

    An operand whose memory becomes that of a result, one of `aliased`, has it at full size.
    """
    sizes = [axis.size if vmap_method == "broadcast_all" or i in aliased else 1 for i in range(len(args))]
    batched = [mapped or i in aliased or vmap_method != "legacy_vectorized"
               for i, mapped in enumerate(nonzero_mask(dims))]
    return [broadcast_axis(a, size, 0) if b and d is None else a
            for a, d, b, size in zip(front(args, dims), dims, batched, sizes)], batched


def _batching(axis, args, dims, *, target_name, result_avals, vmap_method, input_layouts, output_layouts,
              input_output_aliases, leading, **params):
    if vmap_method is None:
        raise NotImplementedError("vmap is only supported for the ffi_call primitive when vmap_method is one "
                                  f"of {', '.join(map(repr, VMAP_METHODS[:-1]))}. Got vmap_method=None for "
                                  f"`{target_name}`.")
    if any(a is ORDERED_TOKEN.aval for a in result_avals):
        raise NotImplementedError(f"vmap of the FFI call to `{target_name}`, which gives a token: the calls "
                                  "for the mapped elements would give many")
    params |= {"target_name": target_name, "vmap_method": vmap_method,
               "input_output_aliases": input_output_aliases}
    if vmap_method.startswith("sequential"):
        bind = functools.partial(ffi_call_p.bind, **params, result_avals=result_avals,
                                 input_layouts=input_layouts, output_layouts=output_layouts, leading=leading)
        return batch_one_by_one(axis, args, dims, bind, target_name,
                                axis.size if vmap_method == "sequential_unrolled" else 1)
    aliased = {operand for operand, _ in input_output_aliases}
    args, batched = operands_of_one_call(axis, args, dims, vmap_method, aliased)
    whole = all(aval_of(a).shape[:1] == (axis.size,) for a in args) and all(batched)
    outs = ffi_call_p.bind(
        *args, result_avals=tuple(a.with_axis(0, axis.size) for a in result_avals),
        input_layouts=tuple(_below(order) if b else order for order, b in zip(input_layouts, batched)),
        output_layouts=tuple(map(_below, output_layouts)), leading=leading + 1 if whole else 0, **params)
    return outs, [0] * len(outs)


def _below(order):
    """The layout with the axes as in `order`, minor first, in each element of a new leading axis."""
    return order and (*(axis + 1 for axis in order), 0)


def _is_typed(params):
    return params["custom_call_api_version"] >= 4


_ALSO = {"attributes": lambda p: p["config"] if _is_typed(p) else (),
         "legacy_backend_config": lambda p: None if _is_typed(p) else p["config"]}
# config: the text of the attributes, or the string of an older API version
# input_layouts, output_layouts: for each value its axes, minor first, or None where the last axis is the
# minor one
# leading: how many axes in front of all values vmap made
# input_output_aliases: pairs of an operand and the result that takes its memory
ffi_call_p = Primitive(
    "ffi_call", multiple_results=True, says_sharding=True, lower=_lower, jvp=_jvp, batching=_batching,
    also=_ALSO, abstract_eval=lambda *avals, result_avals, **_: list(result_avals),
    effects=lambda params: (IO(),) if params["has_side_effect"] else ())
ffi_call_p.shown = lambda eqn: {name: eqn.params[name]
                                for name in (*eqn.params, *_ALSO) if name not in ("config", "leading")}
