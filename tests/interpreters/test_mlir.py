"""Programs inside of lowering rules, and what else rules ask for."""
import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.extend.core import Primitive
from hlotrace.interpreters import mlir, partial_eval as pe, xla

DOUBLE = jax.make_jaxpr(lambda x: x * 2)(jnp.ones(2))


def test_programs_in_rules():
    def lowering(ctx, x):
        fun = mlir.lower_jaxpr_to_fun(ctx.module_context, "inner", DOUBLE, [], in_avals=DOUBLE.in_avals)
        y, = mlir.func_dialect.CallOp(fun.type.results, mlir.ir.FlatSymbolRefAttr.get(fun.name.value), [x]).results
        (y,), tokens = mlir.jaxpr_subcomp(ctx.module_context, DOUBLE, None, None, [], y, dim_var_values=())
        assert tokens is None
        return mlir.core_call_lowering(ctx, y, name="call", call_jaxpr=DOUBLE)
    p = Primitive("eightfold")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, lowering)
    assert jax.jit(p.bind)(jnp.ones(2)).tolist() == [8, 8]
    assert mlir.unflatten_ir_values_like_types([1, 2, 3], ["a", ("b", "c")]) == [1, (2, 3)]
    assert (mlir.DEVICE_TO_DEVICE_TYPE, mlir.SEND_TO_HOST_TYPE, mlir.RECV_FROM_HOST_TYPE) == (1, 2, 3)
    with mlir.make_ir_context():
        assert str(mlir.token_type()) == "!stablehlo.token"
    assert mlir.Mesh is jax.sharding.Mesh and mlir.LoweringRule and mlir.MeshAxisName and pe.Val
    assert isinstance(jax.devices()[0].client, xla.Backend)
