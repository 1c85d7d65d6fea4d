"""interpreters.mlir: modules of whole programs, modules merged, tokens, effects, types and constants of users."""
import types

import pytest
from mesh8 import auto_mesh

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core import ShapedArray
from hlotrace.extend.core import Effect, Primitive
from hlotrace.interpreters import mlir

PROGRAM = jax.make_jaxpr(lambda x, y: jax.jit(jnp.sin)(x) * y)(jnp.ones(3), 2.0)


def lowered(name="jit_f", **options):
    options = {"platforms": ("cpu",), "donated_args": [False, False], "in_avals": PROGRAM.in_avals,
               "out_avals": PROGRAM.out_avals, "ordered_effects": [], "backend": None, "num_const_args": 0,
               "axis_context": mlir.ShardingContext(1), "lowering_parameters": mlir.LoweringParameters(), **options}
    return mlir.lower_jaxpr_to_module(name, PROGRAM, **options)


def test_a_module_of_a_program():
    result = lowered(donated_args=[True, False], result_names=["out"])
    text = mlir.module_to_string(result.module)
    assert isinstance(result, mlir.LoweringResult) and result.host_callbacks == []
    for part in ("module @jit_f", "stablehlo.sine", "func public @main", 'jax.result_info = "out"', "tf.aliasing_output"):
        assert part in text
    axis = mlir.SPMDAxisContext(auto_mesh((1,), ("x",)))
    assert isinstance(axis, mlir.AxisContext) and "sine" in str(lowered(axis_context=axis).module)
    with pytest.raises(NotImplementedError, match="axis_context"):
        lowered(axis_context=mlir.ShardingContext(2))
    with pytest.raises(ValueError, match="platform 'cpu'"):
        lowered(platforms=("cuda",), backend=jax.devices()[0].client)
    with pytest.raises(NotImplementedError, match="arg_shardings"):
        lowered(arg_shardings=[None, jax.P()])
    with pytest.raises(NotImplementedError, match="for_export"):
        lowered(lowering_parameters=mlir.LoweringParameters(for_export=True))
    with pytest.raises(ValueError, match="lower_jaxpr_to_module.*not those of the program"):
        lowered(in_avals=PROGRAM.in_avals[:1])


def test_modules_merged():
    into, more = lowered().module, lowered().module
    before, table = str(more), mlir.ir.SymbolTable(into.operation)
    assert mlir.merge_mlir_modules(into, "helper", more, table) == "helper"
    assert mlir.merge_mlir_modules(into, "helper", more) == "helper_1" and str(more) == before
    text = str(into)
    assert into.operation.verify() and text.count("func.func public") == 1 and text.count("stablehlo.sine") == 3
    assert "helper" in table
    with pytest.raises(ValueError, match="no function main"):
        mlir.merge_mlir_modules(into, "x", mlir.ir.Module.parse("module {}", into.context))


class Mine:
    """A value that arrays do not know."""


def test_tokens_types_and_constants_in_rules():
    kind, seen = types.SimpleNamespace, []
    p = Primitive("tokens_and_constants")
    p.def_abstract_eval(lambda x: x)
    mlir.register_constant_handler(Mine, lambda value, aval: mlir.ir_constant(jnp.float32(7)))
    mlir.ir_type_handlers[kind] = lambda aval: mlir.aval_to_ir_type(aval.array)

    def rule(ctx, x):
        tokens = mlir.TokenSet.create(["a", "b"])
        again = tokens.update_tokens(mlir.TokenSet({"a": tokens.get("b")}))
        seen.append((len(tokens), tokens.effects(), again.get("a") == tokens.get("b"), len(again.subset(["a"])),
                     isinstance(tokens.items()[0][1], mlir.Token),
                     str(mlir.aval_to_ir_type(kind(array=ShapedArray((2,), jnp.dtype("float32")))))))
        return [mlir.hlo.add(x, mlir.ir_constant(Mine()))]
    mlir.register_lowering(p, rule)
    assert float(jax.jit(p.bind)(1.0)) == 8
    assert seen[0] == (2, {"a", "b"}, True, 1, True, "tensor<2xf32>")
    with pytest.raises(TypeError, match="no MLIR type"):
        mlir.aval_to_ir_type(object())


def test_effects_that_are_lowered():
    class Told(Effect):
        """One of the user's."""
    mlir.lowerable_effects.add_type(Told)
    assert mlir.lowerable_effects.contains(Told)
    assert mlir.lowerable_effects.filter_in([Told(), 3]) == [Told()]
    assert mlir.lowerable_effects.filter_not_in([Told(), 3]) == [3]
    with pytest.raises(TypeError, match="derived from extend.core.Effect"):
        mlir.lowerable_effects.add_type(int)
