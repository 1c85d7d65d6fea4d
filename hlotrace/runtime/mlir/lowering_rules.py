"""Lowering rules that build MLIR operations by jaxlib's bindings, in programs that are written as text.

A rule runs on the arguments of a small function of its own, whose operations are printed and written into the
text under new names.  Locations are the user's line, as of all operations; those that the rule gives itself
stay.
"""
from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from jaxlib.mlir.dialects import func as _func, stablehlo as hlo

from ...core import dtypes
from ...core.avals import ShapedArray, aval_of
from ...core.effects import is_ordered
from ...core.jaxpr import Eqn, Jaxpr
from ...core.jaxpr_trace import trace_to_jaxpr
from ...core.primitive import Primitive
from ...core.programs import embed_constants
from ...core.trace import EVAL, entering
from ...lowering import custom_calls
from ...lowering.constants import dense
from .bindings import context, ir

__all__ = ["LoweringRuleContext", "ModuleContext", "attribute", "aval_to_ir_type",
           "build_ffi_lowering_function", "bytecode", "call", "check", "constant", "custom_call", "declare",
           "dense_int_elements", "dtype_to_ir_type", "ffi_lowering", "flatten", "func_dialect", "hlo", "ir",
           "lower_fun", "write"]


# what jaxlib's stubs do not know of these
func_dialect: Any = _func
_dense: Any = ir.DenseIntElementsAttr.get
_kept_alive: list = []


class LoweringRuleContext(SimpleNamespace):
    """What a rule is given: `primitive`, `avals_in`, `avals_out`, `platforms`, `module_context`, ..."""

    def replace(self, **changes: Any) -> LoweringRuleContext:
        return LoweringRuleContext(**{**vars(self), **changes})

    def is_forward_compat(self) -> bool:
        return False


class ModuleContext(SimpleNamespace):
    """The module into which a rule writes: `context`, `module`, `ip`, `symbol_table`, `platforms`."""

    def replace(self, **changes: Any) -> ModuleContext:
        return ModuleContext(**{**vars(self), **changes})

    def add_keepalive(self, value: Any) -> None:
        """`value` must live as long as programs do that use it: for ever.  `emit_python_callback` gives None
        to keep."""
        if value is not None:
            _kept_alive.append(value)


def aval_to_ir_type(aval: ShapedArray) -> Any:
    """The MLIR type of an array."""
    return ir.Type.parse(aval.mlir)


def constant(value: Any, aval: ShapedArray | None = None) -> Any:
    """An operation's result that is an array or a number."""
    aval = aval or aval_of(value)
    return hlo.ConstantOp(ir.Attribute.parse(f"{dense(np.asarray(value, aval.dtype))} : {aval.mlir}")).result


def dtype_to_ir_type(dtype: Any) -> Any:
    """The MLIR element type of a dtype."""
    return ir.Type.parse(dtypes.SUPPORTED[dtypes.as_dtype(dtype)])


def attribute(value: Any) -> Any:
    """The attribute of a bool, a number, a string, a NumPy array, or of a sequence or mapping of these."""
    return value if isinstance(value, ir.Attribute) else ir.Attribute.parse(custom_calls.attribute(value))


def dense_int_elements(values: Any) -> Any:
    """A dense elements attribute of 64-bit integers."""
    return _dense(np.asarray(values, np.int64))


def custom_call(call_target_name: str, *, result_types: Sequence[Any], operands: Sequence[Any],
                backend_config: Any = "", has_side_effect: bool = False, api_version: int = 2,
                operand_layouts: Sequence[Any] | None = None, result_layouts: Sequence[Any] | None = None,
                operand_output_aliases: Mapping[int, int] | None = None,
                extra_attributes: Mapping[str, Any] | None = None) -> Any:
    """A `stablehlo.custom_call` operation.

    Args:
        call_target_name: the name that its implementation is registered under.
        result_types: MLIR types.
        operands: MLIR values.
        backend_config: a string, or a mapping of attributes for `api_version` 4.
        has_side_effect: it is not removed when its results are not used.
        api_version: 1 to 4.
        operand_layouts: for each operand an order of axes, minor first.
        result_layouts: the same for the results.
        operand_output_aliases: from positions of operands to positions of the results that use their memory.
    """
    config = attribute(backend_config)
    typed = {"backend_config": attribute(""), "mhlo.backend_config": config}
    plain = {"api_version": attribute(np.int32(api_version)), "backend_config": config}
    attributes = {"call_target_name": attribute(call_target_name),
                  "has_side_effect": attribute(has_side_effect), **(typed if api_version >= 4 else plain),
                  **{key: attribute(value) for key, value in (extra_attributes or {}).items()}}
    for name, layouts in ("operand_layouts", operand_layouts), ("result_layouts", result_layouts):
        if layouts is not None:
            attributes[name] = ir.ArrayAttr.get([
                _dense(np.asarray(order, np.int64), type=ir.IndexType.get())
                for order in layouts])
    if operand_output_aliases:
        attributes["output_operand_aliases"] = ir.ArrayAttr.get([
            hlo.OutputOperandAlias.get([] if len(result_types) == 1 else [result], operand, [])
            for operand, result in operand_output_aliases.items()])
    return hlo.CustomCallOp.build_generic(results=list(result_types), operands=flatten(operands),
                                          attributes=attributes)


def build_ffi_lowering_function(call_target_name: str, *, operand_layouts: Sequence[Any] | None = None,
                                result_layouts: Sequence[Any] | None = None,
                                backend_config: Mapping[str, Any] | str | None = None,
                                skip_ffi_layout_processing: bool = False,
                                **lowering_args: Any) -> Callable[..., Any]:
    """A function `(ctx, *values, **attributes)`, for use in a lowering rule, that writes a kernel's call.

    Its results are of the types that abstract evaluation says.  Layouts are orders of axes, minor first; by
    default the last axis is the minor one.  Attributes are added to `backend_config`; the rest are parameters
    of `mlir.custom_call`. `skip_ffi_layout_processing` leaves out layouts that are not given.

    >>> from hlotrace.extend.core import Primitive
    >>> from hlotrace.interpreters import mlir
    >>> my_op = Primitive("my_op")
    >>> _ = my_op.def_abstract_eval(lambda x, *, axis: x)
    >>> def rule(ctx, x, *, axis):
    ...     return jax.ffi.build_ffi_lowering_function("my_kernel")(ctx, x, axis=np.int64(axis)).results
    >>> mlir.register_lowering(my_op, rule)
    >>> "@my_kernel" in jax.jit(lambda x: my_op.bind(x, axis=1)).lower(jnp.ones(3)).as_text()
    True
    """
    def call(ctx: Any, *operands: Any, **attributes: Any) -> Any:
        version = lowering_args.get("api_version", 4)
        if attributes and (version < 4 or isinstance(backend_config, str)):
            raise ValueError(f"{call_target_name}: attributes ({', '.join(attributes)}) need api_version 4 "
                             f"and a mapping as backend_config, got {version} and {backend_config!r:.60}")
        given_config: Any = backend_config or {}
        config = {**given_config, **attributes} if version >= 4 else backend_config or ""
        layouts = (given or (None if skip_ffi_layout_processing else [None] * len(avals))
                   for given, avals in ((operand_layouts, ctx.avals_in), (result_layouts, ctx.avals_out)))
        orders = [listed and [range(a.ndim - 1, -1, -1) if order is None else order
                              for order, a in zip(listed, avals)]
                  for listed, avals in zip(layouts, (ctx.avals_in, ctx.avals_out))]
        return custom_call(call_target_name, result_types=[aval_to_ir_type(a) for a in ctx.avals_out],
                           operands=operands, backend_config=config, operand_layouts=orders[0],
                           result_layouts=orders[1], **{"api_version": version, **lowering_args})
    unknown = set(lowering_args) - {"api_version", "has_side_effect", "operand_output_aliases",
                                    "extra_attributes"}
    if unknown:
        raise TypeError(f"build_ffi_lowering_function({call_target_name!r}) got an unexpected argument "
                        f"{min(unknown)!r}")
    return call


def ffi_lowering(call_target_name: str, *, operand_layouts: Sequence[Any] | None = None,
                 result_layouts: Sequence[Any] | None = None,
                 backend_config: Mapping[str, Any] | str | None = None,
                 skip_ffi_layout_processing: bool = False, **lowering_args: Any) -> Callable[..., Any]:
    """The lowering rule of a primitive that is the call of a kernel, its parameters being attributes.

    See `build_ffi_lowering_function` for the arguments.

    >>> from hlotrace.extend.core import Primitive
    >>> from hlotrace.interpreters import mlir
    >>> my_sort = Primitive("my_sort")
    >>> _ = my_sort.def_abstract_eval(lambda x: x)
    >>> mlir.register_lowering(my_sort, jax.ffi.ffi_lowering("my_sort_kernel"))
    >>> "@my_sort_kernel" in jax.jit(my_sort.bind).lower(jnp.ones(3)).as_text()
    True
    """
    call = build_ffi_lowering_function(
        call_target_name, operand_layouts=operand_layouts, result_layouts=result_layouts,
        backend_config=backend_config, skip_ffi_layout_processing=skip_ffi_layout_processing, **lowering_args)
    return lambda ctx, *values, **attributes: call(ctx, *values, **attributes).results


def bytecode(module: Any) -> bytes:
    """An MLIR module in MLIR's bytecode."""
    out = io.BytesIO()
    module.operation.write_bytecode(file=out)
    return out.getvalue()


def flatten(values: Any) -> list[Any]:
    """The values in nested sequences of values, operations of one result among them."""
    if isinstance(values, (list, tuple, ir.OpResultList)):
        return [v for value in values for v in flatten(value)]
    return [values.result if isinstance(values, ir.OpView) else values]


_PLACE = "here"      # a location that represents the user's line


def write(rule: Callable[..., Any], ctx: Any, eqn: Eqn, names: Sequence[str]) -> list[str]:
    """Write what `rule(LoweringRuleContext, *values, **params)` does; returns the names of its results.

    TypeError where these are not what the abstract evaluation rule says, and where its operations are not
    well-formed.
    """
    primitive = eqn.primitive
    avals_in, avals_out = ([v.aval for v in vs] for vs in (eqn.invars, eqn.outvars))
    with context(), ir.Location.name(_PLACE):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = func_dialect.FuncOp("rule", ([aval_to_ir_type(a) for a in avals_in],
                                                    [aval_to_ir_type(a) for a in avals_out]),
                                           visibility="private")
        block = function.add_entry_block()
        rule_context = LoweringRuleContext(
            primitive=primitive, avals_in=tuple(avals_in), avals_out=tuple(avals_out),
            platforms=(ctx.platform,), name_stack=eqn.name_stack, tokens_in=None, tokens_out=None,
            dim_var_values=(), jaxpr_eqn_ctx=None, text=ctx, eqn=eqn, module_context=ModuleContext(
                context=module.context, module=module, ip=ir.InsertionPoint(module.body),
                platforms=(ctx.platform,),
                symbol_table=ir.SymbolTable(module.operation), cached_primitive_lowerings={}))
        rule_context.module_context.rule = rule_context
        with ir.InsertionPoint(block):
            results = flatten(rule(rule_context, *block.arguments, **eqn.params))
            for r in results:
                if not isinstance(r, ir.Value):
                    raise TypeError(f"{primitive}: its lowering rule must give a sequence of MLIR values, "
                                    f"not {type(r).__name__}")
            check(primitive, [str(r.type) for r in results], avals_out)
            func_dialect.ReturnOp(results)
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            raise TypeError(f"{primitive}: its lowering rule builds operations that are not well-formed: "
                            f"{error}") from None
        module.operation.walk(partial(_note_target, ctx.module))
        _write_functions(ctx, module, function)
        return _splice(ctx, block, results, names)


def _note_target(module: Any, operation: Any) -> Any:
    """Note the kernel that a custom call names."""
    if operation.name == "stablehlo.custom_call":
        module.targets.setdefault(ir.StringAttr(operation.attributes["call_target_name"]).value)
    return ir.WalkResult.ADVANCE


def check(primitive: Primitive, types: Sequence[str], avals: Sequence[ShapedArray]) -> None:
    """TypeError unless a lowering gives results of the types that abstract evaluation said."""
    wanted = [a.mlir for a in avals]
    if types != wanted:
        raise TypeError(f"{primitive}: its lowering rule gives {', '.join(types) or 'nothing'}, but its "
                        f"abstract evaluation rule says {', '.join(wanted)}")


def _printed(operation: Any, ctx: Any) -> str:
    """An operation as text, with the user's line where it has no location of its own."""
    debug = ctx.module.locations is not None
    text = operation.get_asm(enable_debug_info=debug, use_local_scope=True)
    return text.replace(f' loc("{_PLACE}")', ctx.location()) if debug else text


def _write_functions(ctx: Any, module: Any, rule: Any) -> None:
    """Functions that the rule added become the text's.  Declared ones are there already: see `lower_fun`."""
    added = [op for op in module.body.operations
             if op.operation != rule.operation and any(len(region.blocks) for region in op.regions)]
    for operation in added:
        old = ir.StringAttr(operation.attributes["sym_name"]).value
        new = ctx.module.unique(old)
        ir.SymbolTable.set_symbol_name(operation, new)
        ir.SymbolTable.replace_all_symbol_uses(old, new, module.operation)
    for operation in added:
        lines = _printed(operation.operation, ctx).splitlines()
        ctx.module.texts.append("".join(f"  {line}\n" for line in lines))


# strings, in which nothing is a name, and names
_NAMES = re.compile(r'"(?:[^"\\]|\\.)*"|%(?:\d+|[A-Za-z_$.-][\w$.-]*)')


def _splice(ctx: Any, block: Any, results: Any, names: Sequence[str]) -> list[str]:
    """Write the block's operations; its arguments are `names`, and its values get names of their own."""
    unique = f"%v{ctx.count}"
    ctx.count += 1
    table = {a.get_name(use_local_scope=True): name for a, name in zip(block.arguments, names, strict=True)}

    def rename(found: Any) -> str:
        name = found[0]
        return name if name[0] == '"' else table.get(name) or f"{unique}_{name[1:]}"
    for operation in list(block.operations)[:-1]:
        lines = _NAMES.sub(rename, _printed(operation.operation, ctx)).splitlines()
        ctx.lines += [ctx.indent + line for line in lines]
    return [_NAMES.sub(rename, r.get_name(use_local_scope=True)) for r in results]


def lower_fun(fun: Callable[..., Any], ctx: Any, args: Sequence[Any]) -> list[Any]:
    """Call the function that a Python function over arrays becomes; returns the list of its results.

    `fun` takes and returns flat lists.
    """
    with entering(EVAL):
        jaxpr = trace_to_jaxpr(fun, ctx.avals_in, ctx.primitive.name, source=ctx.eqn.source)
    return call(declare(jaxpr, ctx), args)


def declare(jaxpr: Jaxpr, ctx: Any) -> Any:
    """The function that a program becomes, for calls in a rule.  NotImplementedError for ordered effects."""
    jaxpr = embed_constants(jaxpr)
    if is_ordered(jaxpr.effects):
        raise NotImplementedError(f"{ctx.primitive}: lower_fun of a function with ordered effects")
    name, body = ctx.text.module.function(jaxpr), ctx.module_context.module.body
    for known in body.operations:
        if known.name.value == name:
            return known
    types = [[aval_to_ir_type(a) for a in avals] for avals in (jaxpr.in_avals, jaxpr.out_avals)]
    with ir.InsertionPoint(body):
        return func_dialect.FuncOp(name, tuple(types), visibility="private")


def call(function: Any, args: Sequence[Any]) -> list[Any]:
    """The results of calling a function of `declare`."""
    return list(func_dialect.CallOp(function.type.results, ir.FlatSymbolRefAttr.get(function.name.value),
                                    args).results)
