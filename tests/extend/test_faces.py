"""api_util, and what extend and interpreters say of programs: halves, tangents, axes, tokens, functions inside of rules."""
import types

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import api_util, lax
from hlotrace.extend import backend, linear_util, source_info_util
from hlotrace.extend import mlir as extend_mlir
from hlotrace.extend import sharding as xla_sharding
from hlotrace.extend.core import AbstractToken, Primitive, Token, eval_jaxpr, primitives
from hlotrace.interpreters import ad, batching, mlir, xla
from hlotrace.interpreters import partial_eval as pe

X, Y = 0.5, 2.0


def three(x, y):
    return jnp.sin(x) * y, x + 1, y * 2


PROGRAM = jax.make_jaxpr(three)(X, Y)
DOUBLE = jax.make_jaxpr(lambda x: x * 2)(jnp.ones(2))


def run(jaxpr, *args):
    return [float(v) for v in eval_jaxpr(jaxpr, jaxpr.consts, *args)]


def test_a_program_in_two():
    want = run(PROGRAM, X, Y)
    for ask, unknown in ((False, [True, False, True]), (True, [True] * 3)):
        known, rest, found, residuals = pe.partial_eval_jaxpr_nounits(PROGRAM, [False, True], ask)
        assert found == unknown
        outs = run(known, X)
        n = len(outs) - len(residuals)
        late = iter(run(rest, *outs[n:], Y))
        early = iter(outs[:n])
        np.testing.assert_allclose([next(late if u else early) for u in unknown], want, 1e-6)
    assert run(pe.move_binders_to_back(PROGRAM, [True, False]), Y, X) == want
    assert run(pe.prune_closed_jaxpr_outputs(PROGRAM, [False, True, True]), X, Y) == want[1:]
    table = jnp.arange(3.0)
    closed = jax.make_jaxpr(lambda x, y: (x * y, table.sum() + x))(X, Y)
    pruned, consts, inputs = pe.dce_jaxpr_consts(closed, [True, False])
    assert not any(consts) and inputs == [True, True] and run(pruned, X, Y) == [X * Y]
    assert pe.dce_jaxpr_consts(closed, [False, True])[2] == [True, False]
    assert pe.abstract_eval_fun(lambda x, n: [x * n], jax.typeof(jnp.ones(2)), n=3) == [jax.typeof(jnp.ones(2))]


def test_tangents_of_programs():
    slopes = [np.cos(X) * Y, 1, 0]
    for ask, marks in ((False, [True, True, False]), (True, [True] * 3), ([False, False, True], [True] * 3)):
        moved, found = ad.jvp_jaxpr(PROGRAM, [True, False], ask)
        assert found == marks
        np.testing.assert_allclose(run(moved, X, Y, 1.0)[3:], slopes[:sum(marks)], 1e-6)
    outs, tangents = ad.jvp(three, [X, Y], [1.0, ad.Zero.from_primal_value(Y)], instantiate=False)
    np.testing.assert_allclose([*map(float, tangents[:2])], slopes[:2], 1e-6)
    assert type(tangents[2]) is ad.Zero and float(outs[1]) == X + 1
    linear = jax.make_jaxpr(lambda x, y: (x * 3.0, y))(X, Y)
    cts = ad.backward_pass(linear, True, (), [ad.UndefinedPrimal(jax.typeof(X)), Y], [1.0, ad.Zero.from_primal_value(Y)])
    assert float(cts[0]) == 3 and type(cts[1]) is ad.Zero
    with pytest.raises(NotImplementedError, match="return_logs"):
        ad.backward_pass(linear, False, (), [], [], return_logs=True)


def test_a_program_over_an_axis():
    axis = types.SimpleNamespace(size=3, name=None)
    mapped, marks = batching.batch_jaxpr_axes(PROGRAM, axis, [0, None], [0, 0, None])
    assert marks == [True, True, False] and [a.shape for a in mapped.out_avals] == [(3,), (3,), ()]
    assert eval_jaxpr(mapped, (), jnp.arange(3.0), Y)[1].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="not_mapped"):
        batching.batch_jaxpr_axes(PROGRAM, axis, [0, None], [0, None, None])


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


def test_names_of_primitives_and_tokens():
    assert primitives.linear_solve_p is primitives.custom_linear_solve_p and lax.eq_to_p is primitives.eq_to_p
    assert lax.split_p is lax.slice_p and lax.scatter_sub_p is lax.scatter_add_p
    assert isinstance(AbstractToken(), AbstractToken) and not isinstance(jax.typeof(1.0), AbstractToken)
    assert isinstance(lax.create_token(), Token)


def test_bytes_of_modules_and_shardings():
    text = jax.jit(jnp.sin).lower(1.0).as_text()
    artifact = extend_mlir.serialize_portable_artifact(text, "1.0.0")
    with mlir.make_ir_context():
        assert "sine" in str(extend_mlir.deserialize_portable_artifact(artifact))
    assert callable(extend_mlir.hlo_to_stablehlo) and callable(extend_mlir.refine_polymorphic_shapes)
    assert extend_mlir.lower_with_sharding_in_types(None, "op", None) == "op"
    replicated = xla_sharding.get_op_sharding_from_serialized_proto(b"")
    again = xla_sharding.get_hlo_sharding_from_serialized_proto(replicated.SerializeToString())
    assert again.is_replicated() and isinstance(xla_sharding.get_serialized_proto_from_hlo_sharding(again), bytes)


def test_functions_in_steps_are_remembered():
    calls = []

    @linear_util.cache
    def traced(fun, *args):
        calls.append(args)
        return fun.call_wrapped(*args)

    @linear_util.transformation
    def shifted(by, x):
        yield ((yield (x + by,), {}))
    f = linear_util.wrap_init(lambda x: x * 10, {})
    assert [traced(shifted(f, by), 1) for by in (1, 1, 2)] == [20, 20, 30] and len(calls) == 2
    with pytest.raises(NotImplementedError, match="explain"):
        linear_util.cache(traced, explain=print)


def test_options_of_compilers():
    options = backend.get_compile_options(1, 2, jax.devices()[:2], {"xla_cpu_enable_fast_math": False})
    assert (options.num_replicas, options.num_partitions) == (1, 2)
    assert backend.get_compile_options(1, 1).num_partitions == 1 and backend.backend_xla_version() is None
    for options, error in (({"device_assignment": [0, 1, 2]}, ValueError), ({"fdo_profile": b"x"}, NotImplementedError)):
        with pytest.raises(error, match="get_compile_options"):
            backend.get_compile_options(1, 2, **options)


def test_where_operations_stand():
    def f(x):
        with source_info_util.transform_name_stack("jvp"), source_info_util.user_context(None):
            return jnp.sin(x)
    assert "jvp()" in jax.jit(f).lower(1.0).as_text(debug_info=True)
    with source_info_util.user_context(None, name_stack="other"):
        assert str(source_info_util.current_name_stack()) == "other"


def test_flattened_functions():
    leaves, structure = jax.tree.flatten(((1, {"k": 2}), {"c": 3}))
    flat, out_tree = api_util.flatten_fun(linear_util.wrap_init(lambda a, b, c: {"x": a * b["k"], "y": c}), structure)
    assert flat.call_wrapped(*leaves) == [2, 3] and out_tree().num_leaves == 2
    flat, _ = api_util.flatten_fun_nokwargs(linear_util.wrap_init(lambda a, b: a + b), jax.tree.structure((1, 2)))
    assert flat.call_wrapped(1, 2) == [3]
    held, moving = api_util.argnums_partial(linear_util.wrap_init(pow), (-1,), (2, 5))
    assert moving == (5,) and held.call_wrapped(3) == 8
    assert held == api_util.argnums_partial(linear_util.wrap_init(pow), 1, (2, 5))[0]
    with pytest.raises(ValueError, match="not hashable"):
        api_util.argnums_partial(linear_util.wrap_init(max), 0, (1, [2]))
    tree = jax.tree.structure(((1, (2, 3)), {"z": 1}))
    assert api_util.donation_vector((), ("z",), tree) == (False, False, False, True)
    assert api_util.donation_vector((1,), (), jax.tree.structure((1, (2, 3))), False) == (False, True, True)
    assert api_util.flatten_axes("n", tree, (0, None), kws=True) == [0, 0, 0, None]
    with pytest.raises(ValueError, match="n for the tuple of arguments"):
        api_util.flatten_axes("n", jax.tree.structure((1, (2, 3))), (0, None, 2), tupled_args=True)
    assert api_util.rebase_donate_argnums((3, 4), (0, 1)) == (1, 2)
    with pytest.raises(ValueError):
        api_util.safe_map(max, [1, 2], [3])
    info = api_util.debug_info("test", three, (1, {"a": 2}), {}, static_argnums=(0,))
    assert info.arg_names == ("y['a']",) and info.traced_for == "test" and "three" in info.func_src_info
    assert api_util.shaped_abstractify(jax.ShapeDtypeStruct((2,), "int8")).str_short() == "int8[2]"
    with pytest.raises(TypeError):
        api_util.shaped_abstractify("a")
