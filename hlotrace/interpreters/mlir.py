"""JAX's `interpreters.mlir`: how primitives are lowered, also by rules that use MLIR's Python bindings.

The bindings are those that jaxlib ships: `ir`, `hlo` (StableHLO) and `func_dialect`.  Where a function here
needs a context, it is that of the rule in which it is called.
"""
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ..core.avals import ShapedArray
from ..core.caches import clear_caches
from ..core.effects import IO, Effect
from ..core.jaxpr import close, dce
from ..core.jaxpr_trace import trace_to_jaxpr
from ..core.platforms import by_platform
from ..core.programs import embed_constants
from ..core.surface.public import install_getattr as _explain
from ..core.trace import EVAL, entering
from ..lowering.lowered import lower as _lower
from ..primitives.programs import callbacks
from ..runtime.mlir import lowering_rules
from ..runtime.mlir.bindings import context as make_ir_context, parse_module
from ..runtime.mlir.lowering_rules import (
    LoweringRuleContext, ModuleContext, attribute as ir_attribute, bytecode as module_to_bytecode,
    custom_call, dense_int_elements, dtype_to_ir_type, flatten as flatten_ir_values, func_dialect, hlo, ir)
from ..sharding.mesh import Mesh
from .partial_eval import convert_constvars_jaxpr

__all__ = ["AxisContext", "ConstantHandler", "DEVICE_TO_DEVICE_TYPE", "LoweringParameters", "LoweringResult",
           "LoweringRule", "LoweringRuleContext", "Mesh", "MeshAxisName", "ModuleContext",
           "RECV_FROM_HOST_TYPE", "SEND_TO_HOST_TYPE", "SPMDAxisContext", "ShardingContext", "Token",
           "TokenSet", "Value", "aval_to_ir_type", "aval_to_ir_types", "core_call_lowering", "custom_call",
           "dense_int_array", "dense_int_elements", "dtype_to_ir_type", "emit_python_callback",
           "flatten_ir_types", "flatten_ir_values", "func_dialect", "hlo", "i32_attr", "i64_attr", "ir",
           "ir_attribute", "ir_constant", "ir_constants", "ir_type_handlers", "jaxpr_subcomp", "lower_fun",
           "lower_jaxpr_to_fun", "lower_jaxpr_to_module", "lowerable_effects", "make_ir_context",
           "merge_mlir_modules", "module_to_bytecode", "module_to_string", "register_constant_handler",
           "register_lowering", "shape_tensor", "token_type", "unflatten_ir_values_like_types"]

Value = Token = ir.Value
LoweringRule = ConstantHandler = Callable[..., Any]
MeshAxisName = Any
token_type = hlo.TokenType.get
DEVICE_TO_DEVICE_TYPE, SEND_TO_HOST_TYPE, RECV_FROM_HOST_TYPE = 1, 2, 3      # StableHLO's kinds of channels


def register_lowering(primitive, rule, platform=None, inline=True, cacheable=True):
    """Give a primitive a lowering rule.

    Args:
        rule: `rule(ctx, *values, **params)` gives the MLIR values of the results; or a `lower_fun`.
        platform: "cpu", "cuda", "rocm", "gpu" (both of these), "tpu", or None for those that have no rule of
            their own.
        inline: a hint that changes no result: rules are always inlined.
        cacheable: a hint that changes no result: rules are called at each use.
    """
    ours = partial(_inlined if isinstance(rule, LowerFun) else _written, rule)
    if isinstance(primitive.lower, dict):
        known = primitive.lower
    elif primitive.lower:
        known = {None: primitive.lower}
    else:
        known = {}
    names = ("cuda", "rocm") if platform == "gpu" else (platform,)
    if any(name in known for name in names):
        clear_caches()      # programs that the old rule made
    primitive.lower = known | by_platform(f"the lowering of {primitive}", dict.fromkeys(names, ours))


def _written(rule, ctx, eqn, *names):
    results = lowering_rules.write(rule, ctx, eqn, names)
    return results if eqn.primitive.multiple_results else results[0]


def _inlined(rule, ctx, eqn, *names):
    with entering(EVAL):
        jaxpr = embed_constants(trace_to_jaxpr(rule.flat(eqn.params), [v.aval for v in eqn.invars],
                                               source=eqn.source))
    lowering_rules.check(eqn.primitive, [a.mlir for a in jaxpr.out_avals], [v.aval for v in eqn.outvars])
    results = ctx.inline(jaxpr, names)
    return results if eqn.primitive.multiple_results else results[0]


class LowerFun:
    """The lowering rule that does what a function over arrays does; see `lower_fun`."""

    def __init__(self, fun, multiple_results):
        self.fun, self.multiple_results = fun, multiple_results

    def flat(self, params):
        """The function of flat lists for these parameters."""
        def flat(*args):
            out = self.fun(*args, **params)
            return list(out) if self.multiple_results else [out]
        return flat

    def __call__(self, ctx, *args, **params):
        return lowering_rules.lower_fun(self.flat(params), ctx, flatten_ir_values(args))


def lower_fun(fun, multiple_results=True):
    """A lowering rule from `fun(*arrays, **params)`, which gives an array, or several as a sequence.

    It can be registered, or called from within another rule: `lower_fun(fun)(ctx, *values, **params)`.
    """
    return LowerFun(fun, multiple_results)


def core_call_lowering(ctx, *args, name, backend=None, call_jaxpr, **params):
    """Call the function that a program becomes: the values of its results.

    `name` and `params` change nothing.
    """
    if backend is not None:
        raise NotImplementedError(f"mlir.core_call_lowering(backend={backend!r}): a program is for one "
                                  "platform")
    return lowering_rules.call(lowering_rules.declare(call_jaxpr, ctx), flatten_ir_values(args))


def lower_jaxpr_to_fun(ctx, name, jaxpr, effects, *, num_const_args=0, in_avals=None, out_avals=None,
                       **options):
    """The `func.func` that a program becomes, for calls from within the rule of the ModuleContext `ctx`.

    Its name is made from that of the program, and its types are the program's.  There are no tokens and no
    constant arguments; options of the main function, such as shardings, are not supported.
    """
    _refused("lower_jaxpr_to_fun", effects=effects, num_const_args=num_const_args, **options)
    return lowering_rules.declare(_checked("lower_jaxpr_to_fun", name, jaxpr, in_avals, out_avals), ctx.rule)


def _checked(function, name, jaxpr, in_avals, out_avals):
    """`jaxpr`, if its types are those that are given."""
    for given, avals in ((in_avals, jaxpr.in_avals), (out_avals, jaxpr.out_avals)):
        if given is not None and [a.mlir for a in given] != [a.mlir for a in avals]:
            raise ValueError(f"mlir.{function}({name!r}): avals {list(given)} are not those of the program, "
                             f"{list(avals)}")
    return jaxpr


def jaxpr_subcomp(ctx, jaxpr, name_stack, tokens, consts_for_constvars, *args, dim_var_values=(),
                  const_lowering=None, outer_traceback=None):
    """(the values of a program's results, `tokens`), by a call of the program.

    Scopes and lines are those of the program, whatever `name_stack` and `outer_traceback` say.
    """
    _refused("jaxpr_subcomp", dim_var_values=dim_var_values, const_lowering=const_lowering)
    open_, values = convert_constvars_jaxpr(jaxpr), flatten_ir_values([*consts_for_constvars, *args])
    return lowering_rules.call(lowering_rules.declare(open_, ctx.rule), values), tokens


def _refused(name, **options):
    for option, value in options.items():
        if value:
            raise NotImplementedError(f"mlir.{name}({option}={value!r:.60}) is not supported")


def unflatten_ir_values_like_types(xs, ys):
    """Values in sequences as those of the types `ys`."""
    values = iter(xs)
    return [tuple(next(values) for _ in y) if isinstance(y, (list, tuple)) else next(values) for y in ys]


def emit_python_callback(ctx, callback, token, operands, operand_avals, result_avals, *,
                         has_side_effect=False, **_):
    """Call a Python function on NumPy values: (values of its results, token, None)."""
    effect = IO() if has_side_effect else None

    def fun(*args):
        return callbacks.bind(*args, function=callback, out_avals=tuple(result_avals), effect=effect)
    results = lowering_rules.lower_fun(fun, ctx.replace(avals_in=tuple(operand_avals)),
                                       flatten_ir_values(operands))
    return results, token, None


# --- whole modules --------------------------------------------------------------------------------

class SPMDAxisContext(NamedTuple):
    """The mesh that programs are lowered for, and those of its axes that are manual."""
    mesh: Any
    manual_axes: frozenset = frozenset()


class ShardingContext(NamedTuple):
    """The devices that programs are lowered for."""
    num_devices: int
    device_assignment: tuple | None = None
    abstract_mesh: Any = None


AxisContext = SPMDAxisContext | ShardingContext


class LoweringParameters(NamedTuple):
    """Options of `lower_jaxpr_to_module`; all but these values are a NotImplementedError there."""
    override_lowering_rules: tuple | None = None
    global_constant_computation: bool = False
    for_export: bool = False
    export_ignore_forward_compatibility: bool = False
    hoist_constants_as_args: bool = False


class LoweringResult(NamedTuple):
    """A module, what must live as long as programs compiled from it, its callbacks, and None for sizes."""
    module: Any
    keepalive: Any
    host_callbacks: list
    shape_poly_state: None


def lower_jaxpr_to_module(module_name, jaxpr, *, platforms, donated_args, num_const_args=0, in_avals=None,
                          out_avals=None, ordered_effects=(), backend=None, axis_context=None,
                          result_names=None, num_partitions=1, lowering_parameters=None, **options):
    """The MLIR module of a program for one platform and one device, in a LoweringResult.

    An `axis_context` of several devices, shardings, layouts, ordered effects and several platforms are
    NotImplementedErrors; `jit(f).lower()` has them.

    Args:
        platforms: a sequence of one name.
        donated_args: a bool for each input.
    Raises:
        ValueError: where `backend` is of another platform.
    """
    if backend is not None and backend.platform not in platforms:
        raise ValueError(f"mlir.lower_jaxpr_to_module: backend is of platform {backend.platform!r}, not "
                         f"{platforms}")
    mesh = getattr(axis_context, "mesh", None)
    devices = getattr(axis_context, "num_devices", None) or getattr(mesh, "size", 1)
    options.pop("all_default_mem_kind", None)
    requested = lowering_parameters._asdict() if lowering_parameters else {}
    _refused("lower_jaxpr_to_module", num_const_args=num_const_args, ordered_effects=ordered_effects,
             **requested, **options, platforms=platforms[1:], num_partitions=num_partitions - 1,
             axis_context=devices > 1 and axis_context)
    program = _checked("lower_jaxpr_to_module", module_name, embed_constants(jaxpr), in_avals, out_avals)
    lowered = _lower(dce(close(program)[0])[0], platform=platforms[0], result_names=result_names or (),
                     donated=tuple(i for i, donated in enumerate(donated_args) if donated), debug_info=False)
    module = parse_module(lowered.text)
    module.operation.attributes["sym_name"] = ir.StringAttr.get(module_name, module.context)
    return LoweringResult(module, lowered, list(lowered.callbacks), None)


def merge_mlir_modules(dst_module, sym_name, src_module, dst_symtab=None):
    """Put a copy of `src_module`'s functions, as private ones, into `dst_module`.

    Returns:
        The name that its `main` gets: `sym_name`, or that with a number if it is taken there; so for the
        others. They are added to `dst_symtab`.
    """
    with dst_module.context, ir.Location.unknown():
        source = ir.Module.parse(module_to_bytecode(src_module))
        operations, taken = list(source.body.operations), {_name_of(op) for op in dst_module.body.operations}
        own = {_name_of(op) for op in operations}
        if "main" not in own:
            raise ValueError("mlir.merge_mlir_modules: the module to merge has no function main, but "
                             f"{sorted(own)}")
        names = {}
        for op in operations:
            old = _name_of(op)
            names[old] = new = _free(sym_name if old == "main" else old, taken | own - {old})
            taken.add(new)
            if new != old:
                ir.SymbolTable.replace_all_symbol_uses(old, new, source.operation)
                ir.SymbolTable.set_symbol_name(op, new)
            ir.SymbolTable.set_visibility(op, "private")
        for op in operations:
            dst_module.body.append(op)
            if dst_symtab is not None:
                dst_symtab.insert(op)
    return names["main"]


def _name_of(operation):
    return ir.StringAttr(operation.attributes["sym_name"]).value


def _free(name, taken):
    return next(new for i in itertools.count() if (new := f"{name}_{i}" if i else name) not in taken)


class TokenSet:
    """Tokens by effect, for rules that put their operations in order with tokens of their own; immutable."""

    def __init__(self, tokens=None):
        self._tokens = dict(tokens or {})

    @classmethod
    def create(cls, effects):
        """A new token for each effect, within a rule."""
        return cls({effect: hlo.create_token() for effect in effects})

    def __len__(self):
        return len(self._tokens)

    def get(self, effect):
        """The token of an effect.  KeyError if there is none."""
        return self._tokens[effect]

    def items(self):
        return tuple(self._tokens.items())

    def effects(self):
        return set(self._tokens)

    def subset(self, effects):
        """The tokens of these effects."""
        return TokenSet({effect: self._tokens[effect] for effect in effects})

    def update_tokens(self, tokens):
        """These, with other tokens for the effects of another TokenSet."""
        return TokenSet({**self._tokens, **dict(tokens.items())})


class EffectTypeSet:
    """Classes of effects, those derived from them among them."""

    def __init__(self, *types):
        self._types = types

    def add_type(self, effect_type):
        """Add a class.  TypeError for one that is not derived from `extend.core.Effect`."""
        if not (isinstance(effect_type, type) and issubclass(effect_type, Effect)):
            raise TypeError("add_type takes a class derived from extend.core.Effect, got "
                            f"{effect_type!r:.80}")
        self._types += (effect_type,)

    def contains(self, effect_type):
        return issubclass(effect_type, self._types)

    def filter_in(self, effects):
        """Those of `effects` whose class is here."""
        return [e for e in effects if isinstance(e, self._types)]

    def filter_not_in(self, effects):
        return [e for e in effects if not isinstance(e, self._types)]


lowerable_effects = EffectTypeSet(Effect)       # all are lowered

# --- types, attributes, constants -----------------------------------------------------------------

# the class of an aval -> function from it to its type
ir_type_handlers = {ShapedArray: lowering_rules.aval_to_ir_type}
_constants = {}      # a class of values -> their handler


def aval_to_ir_type(*ctx_and_aval):
    """The MLIR type of an array; JAX's versions differ in whether a module context comes first."""
    aval = ctx_and_aval[-1]
    handler = ir_type_handlers.get(type(aval))
    if handler is None:
        raise TypeError(f"mlir.aval_to_ir_type: there is no MLIR type for {aval!r:.80}; "
                        "mlir.ir_type_handlers[its class] = function says which")
    return handler(aval)


def aval_to_ir_types(*ctx_and_aval):
    return aval_to_ir_type(*ctx_and_aval),


def ir_constant(value, *, aval=None):
    """An array or a number, or what `register_constant_handler` knows, as a constant operation's result."""
    handler = next((h for kind in type(value).__mro__ if (h := _constants.get(kind))), None)
    return handler(value, aval) if handler else lowering_rules.constant(value, aval)


def register_constant_handler(type_, handler_fun):
    """`handler_fun(value, aval)` is how `ir_constant` writes values of a class: an MLIR value, or several."""
    _constants[type_] = handler_fun


def ir_constants(value, *, aval=None):
    return ir_constant(value, aval=aval),


def i32_attr(value):
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


def i64_attr(value):
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def dense_int_array(values):
    """A dense array attribute of 64-bit integers."""
    return ir.DenseI64ArrayAttr.get(list(values))


def flatten_ir_types(types):
    """The types in nested sequences of types."""
    return [t for one in types for t in (flatten_ir_types(one) if isinstance(one, (list, tuple)) else [one])]


def shape_tensor(_ctx, sizes):
    """A vector of 32-bit integers with these sizes, which are known here."""
    return lowering_rules.constant(lowering_rules.np.asarray(sizes, "int32"))


def module_to_string(module, enable_debug_info=False):
    """The text of an MLIR module."""
    return module.operation.get_asm(enable_debug_info=bool(enable_debug_info))

_explain(globals())
