"""Primitives from outside, written JAX's way: every transformation, the registries, MLIR objects, what is said of errors."""
import functools
import os
import subprocess
import sys

import extension_programs as programs
import forked
import numpy as np
import pytest
from equal import same
from places import ROOT, TESTS

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core import ShapedArray
from hlotrace.core.axes import same_axes
from hlotrace.core.symbolic_zeros import is_undefined_primal
from hlotrace.extend import core
from hlotrace.extend.core import Primitive, primitives
from hlotrace.interpreters import ad, batching, mlir
from hlotrace.interpreters.mlir import func_dialect, hlo, ir
from hlotrace.lowering.lowered import lower

SAME_RESULTS = {"eager": "jit", "grad": "jit of grad", "grad of jit": "jit of grad", "grad of checkpoint": "jit of grad",
                "jvp": "jvp under jit", "vmap of grad": "jit of vmap of grad"}


@functools.cache
def expected(transformation):
    """What a transformation of each reference gives, all as one program."""
    return jax.jit(lambda: {name: programs.TRANSFORMATIONS[transformation](reference, n)
                            for name, (_, reference, n) in programs.FUNCTIONS.items()})()


@pytest.mark.parametrize("transformation", programs.TRANSFORMATIONS)
@pytest.mark.parametrize("function", programs.FUNCTIONS)
def test_jax_primitives_under_every_transformation(function, transformation):
    tested, _, n = programs.FUNCTIONS[function]
    want = expected(SAME_RESULTS.get(transformation, transformation))[function]
    same(programs.TRANSFORMATIONS[transformation](tested, n), want)


def test_user_primitives_in_a_checked_shard_map():
    for tested, reference, n in programs.FUNCTIONS.values():
        same(programs._shard_map(tested, n, check_vma=True), programs._shard_map(reference, n, check_vma=True))


# --- one object, written our way -----------------------------------------------------------------------------------

def _fma_batch(axis, args, dims):
    return fma_p.bind(*[batching.bdim_at_front(a, d, axis.size) for a, d in zip(args, dims)]), 0


def _fma_jvp(primals, tangents):
    x, y, z = primals
    dx, dy, dz = [jnp.zeros(jnp.shape(p)) if t is None else t for p, t in zip(primals, tangents)]
    return fma_p.bind(x, y, z), fma_p.bind(dx, y, fma_p.bind(x, dy, dz))


def _fma_transpose(ct, x, y, z):
    zeros = jnp.zeros(ct.shape, ct.dtype)
    return [fma_p.bind(ct, y, zeros) if is_undefined_primal(x) else None, fma_p.bind(x, ct, zeros) if is_undefined_primal(y) else None,
            ct if is_undefined_primal(z) else None]


def _fma_lower(ctx, eqn, x, y, z):
    kind = eqn.outvars[0].aval.mlir
    return ctx.emit(f"stablehlo.add {ctx.emit(f'stablehlo.multiply {x}, {y} : {kind}')}, {z} : {kind}")


fma_p = Primitive("fma", abstract_eval=lambda x, y, z: x.update(weak_type=False), lower=_fma_lower, jvp=_fma_jvp,
                  transpose=_fma_transpose, batching=_fma_batch)


@pytest.mark.parametrize("transformation", programs.TRANSFORMATIONS)
def test_a_primitive_in_one_object_under_every_transformation(transformation):
    transform = programs.TRANSFORMATIONS[transformation]
    same(transform(fma_p.bind, 3), transform(lambda x, y, z: x * y + z, 3))


def test_batching_of_one_object_follows_from_its_axis_map():
    p = Primitive("mapped", abstract_eval=lambda x, y: x, lower=lambda ctx, eqn, x, y: ctx.emit(
        f"stablehlo.multiply {x}, {y} : {eqn.outvars[0].aval.mlir}"), axes=same_axes())
    x = jnp.arange(6.0).reshape(2, 3)
    same(jax.vmap(p.bind, (1, None))(x, x[:, 0]), x.T * x[:, 0])


# --- the registries -----------------------------------------------------------------------------------------------

def test_a_rule_that_was_set_is_read_back():
    assert ad.primitive_jvps[programs.mul_add_p] is programs.mul_add_jvp
    assert ad.primitive_transposes[programs.mul_add_p] is programs.mul_add_transpose
    assert ad.get_primitive_transpose(programs.spread_p) is programs.spread_transpose
    assert batching.primitive_batchers[programs.mul_add_p].func is programs.elementwise_batch


def test_registries_are_mappings_over_all_primitives():
    p = Primitive("listed")
    for registry in (ad.primitive_jvps, ad.primitive_transposes, batching.primitive_batchers,
                     batching.fancy_primitive_batchers):
        assert p not in registry and registry.get(p) is None and "sin" not in registry
        with pytest.raises(KeyError):
            registry[p]
        with pytest.raises(KeyError):
            del registry[p]
        with pytest.raises(TypeError, match="must be a Primitive, not 'sin'"):
            registry["sin"] = len
        before = len(registry)
        registry[p] = len
        assert p in registry and p in list(registry) and registry[p] is len and len(registry) == before + 1
        del registry[p]
        assert p not in registry and len(registry) == before
    assert {programs.mul_add_p, primitives.sin_p, primitives.mul_p} <= set(ad.primitive_jvps)
    assert primitives.mul_p in ad.primitive_transposes and primitives.sin_p not in ad.primitive_transposes


def test_rules_of_built_in_primitives_in_the_signature_of_jax():
    x = jnp.arange(3.0)
    zero = ad.Zero.from_primal_value(x)
    out, tangent = ad.primitive_jvps[primitives.sin_p]((x,), (zero,))
    assert type(tangent) is ad.Zero and tangent.aval == zero.aval
    same(ad.primitive_jvps[primitives.sin_p]((x,), (x,)), (jnp.sin(x), jnp.cos(x) * x))
    outs, tangents = ad.primitive_jvps[primitives.sort_p]((x,), (zero,), dimension=0, is_stable=True, num_keys=1)
    same(outs, [x])
    assert type(tangents[0]) is ad.Zero
    unknown = ad.UndefinedPrimal(zero.aval)
    ct, none = ad.primitive_transposes[primitives.mul_p](x, unknown, x)
    same(ct, x * x)
    assert none is None
    assert [type(ct) for ct in ad.primitive_transposes[primitives.add_p](zero, unknown, unknown)] == [ad.Zero] * 2
    y = jnp.ones((2, 3))
    same(batching.primitive_batchers[primitives.add_p]((x, y), (batching.not_mapped, 0)), (x + y, 0))


def test_a_rule_that_is_replaced_is_forgotten_in_programs_that_were_made_with_it():
    p = Primitive("replaced")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, lambda ctx, x: [x])
    f, g = jax.jit(jax.grad(jax.jit(p.bind))), jax.jit(p.bind)
    for factor in 2.0, 3.0:
        ad.defjvp(p, lambda g, x, factor=factor: g * factor)
        assert f(1.0) == factor
    for factor in 4.0, 5.0:
        mlir.register_lowering(p, mlir.lower_fun(lambda x, factor=factor: x * factor, multiple_results=False))
        assert p.bind(1.0) == g(1.0) == factor


def test_rules_that_see_the_axis():
    p, q = Primitive("index_of"), Primitive("size_of")
    seen = []
    for primitive in p, q:
        primitive.def_abstract_eval(lambda x, axis_name: x)

    def fancy(axis, args, dims, *, axis_name):
        seen.append((axis.size, axis.name, dims))
        return args[0] + (jnp.arange(3.0) if dims[0] is None else 0), 0

    def with_axis(size, name, main, args, dims, *, axis_name):
        seen.append((size, name, main, dims))
        return args[0] * size, dims[0]
    batching.fancy_primitive_batchers[p] = fancy
    batching.axis_primitive_batchers[q] = with_axis
    same(jax.vmap(lambda x: x + p.bind(1.0, axis_name="i"), axis_name="i")(jnp.zeros(3)), 1 + jnp.arange(3.0))
    same(jax.vmap(lambda x: q.bind(x, axis_name="i"), axis_name="i")(jnp.ones(3)), jnp.full(3, 3.0))
    assert seen == [(3, "i", (None,)), (3, "i", None, (0,))]


def test_a_reducer_under_vmap():
    p = Primitive("summed")
    p.def_abstract_eval(lambda x, axes: ShapedArray(tuple(d for i, d in enumerate(x.shape) if i not in axes), x.dtype))
    mlir.register_lowering(p, mlir.lower_fun(lambda x, axes: x.sum(axes), multiple_results=False))
    batching.defreducer(p)
    x = jnp.arange(24.0).reshape(2, 3, 4)
    for d in range(3):
        for axes in (0,), (1,), (0, 1):
            same(jax.vmap(functools.partial(p.bind, axes=axes), d)(x), jax.vmap(functools.partial(jnp.sum, axis=axes), d)(x))


def test_zeros_and_unknown_operands_are_pytrees_without_leaves():
    aval = ShapedArray((2,), jnp.float32)
    for value in ad.Zero(aval), ad.UndefinedPrimal(aval):
        leaves, structure = jax.tree.flatten([value])
        assert leaves == [] and structure.unflatten([])[0].aval == aval
    same(ad.instantiate_zeros(ad.Zero(aval)), jnp.zeros(2))
    assert ad.instantiate_zeros(3.0) == 3.0 and type(ad.add_tangents(ad.Zero(aval), ad.Zero(aval))) is ad.Zero


# --- lowering -----------------------------------------------------------------------------------------------------

def text_of(f, *args, platform="cpu"):
    return jax.jit(f).trace(*args).lower(lowering_platforms=(platform,)).as_text(debug_info=True)


def test_rules_by_platform():
    p = Primitive("by_platform")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, lambda ctx, x: [hlo.sine(x)])
    mlir.register_lowering(p, lambda ctx, x: [hlo.tanh(x)], platform="tpu")
    mlir.register_lowering(p, lambda ctx, x: [hlo.sqrt(x)], platform="gpu")
    x = jnp.ones(3)
    for platform, op in {"cpu": "sine", "tpu": "tanh", "cuda": "sqrt", "rocm": "sqrt"}.items():
        assert f"stablehlo.{op}" in text_of(p.bind, x, platform=platform)
    with pytest.raises(TypeError, match="given for platform 'abacus'"):
        mlir.register_lowering(p, lambda ctx, x: [x], platform="abacus")


def test_text_and_mlir_objects_in_one_program():
    def f(x, y, z):
        with jax.named_scope("both"):
            looped = jax.lax.fori_loop(0, 2, lambda i, c: programs.mul_add(c, c, z), x)
            return fma_p.bind(programs.mul_add(x, y, z), y, looped)
    xs = programs.operands(3)
    text = text_of(f, *xs)
    assert text == text_of(f, *xs)
    assert 'loc("jit(f)/both/mul_add"' in text and 'loc("jit(f)/both/fma"' in text
    assert all("loc(#loc" in line for line in text.splitlines() if "stablehlo.multiply" in line)
    same(jax.jit(f)(*xs), f(*xs))


def test_the_text_is_the_same_in_every_process():
    program = """
import sys; sys.path.insert(0, sys.argv[1])
import extension_programs as p, hlotrace as jax
print(jax.jit(lambda *xs: p.spread(p.mul_add(*xs)) + list(p.sin_cos(xs[0]))).lower(*p.operands(3)).as_text(debug_info=True))
"""
    other = subprocess.run([sys.executable, "-c", program, TESTS], capture_output=True, text=True, cwd=ROOT, check=True,
                           env={**os.environ, "PYTHONHASHSEED": "1"})
    assert forked.run(program, TESTS, check=True).stdout == other.stdout and "stablehlo.multiply" in other.stdout


def test_operations_with_regions_strings_and_several_results():
    p = Primitive("top_two")
    p.multiple_results = True
    p.def_abstract_eval(lambda x: [x, ShapedArray(x.shape, jnp.int32)])

    def rule(ctx, x):
        iota = hlo.iota(mlir.aval_to_ir_type(ctx.avals_out[1]), mlir.i64_attr(0))
        sort = hlo.SortOp([x.type, iota.type], [x, iota], dimension=mlir.i64_attr(0), is_stable=ir.BoolAttr.get(True))
        sort.operation.attributes["note"] = ir.StringAttr.get('percent %0 and "quotes"')
        scalars = [mlir.aval_to_ir_type(a.update(shape=())) for a in ctx.avals_out]
        block = sort.comparator.blocks.append(*[t for t in scalars for _ in range(2)])
        with ir.InsertionPoint(block):
            less = hlo.compare(block.arguments[0], block.arguments[1], hlo.ComparisonDirectionAttr.get("LT"))
            hlo.return_([less])
        return sort.results
    mlir.register_lowering(p, rule)
    x = jnp.array([3.0, 1.0, 2.0])
    assert 'note = "percent %0 and \\22quotes\\22"' in text_of(lambda x: p.bind(p.bind(x)[0]), x)
    same(jax.jit(lambda x: p.bind(x * 2) + p.bind(x))(x), [2 * jnp.sort(x), jnp.argsort(x), jnp.sort(x), jnp.argsort(x)])


def test_a_rule_calls_functions_of_arrays_callbacks_and_functions_of_its_own():
    p = Primitive("calls")
    p.def_abstract_eval(lambda x, n: x)

    def rule(ctx, x, n):
        y, = mlir.lower_fun(lambda x, n: jnp.cos(x) * n, multiple_results=False)(ctx, x, n=n)
        (z,), _, kept = mlir.emit_python_callback(ctx, lambda x: [np.asarray(x) + 1], None, [y], ctx.avals_in,
                                                  ctx.avals_out, has_side_effect=False)
        ctx.module_context.add_keepalive(kept)
        with ir.InsertionPoint(ctx.module_context.module.body):
            twice = func_dialect.FuncOp("twice", ([x.type], [x.type]), visibility="private")
            block = twice.add_entry_block()
            with ir.InsertionPoint(block):
                func_dialect.ReturnOp([hlo.add(block.arguments[0], block.arguments[0])])
        return func_dialect.CallOp([x.type], ir.FlatSymbolRefAttr.get("twice"), [z]).results
    mlir.register_lowering(p, rule)
    x = jnp.arange(3.0)
    f = lambda x: p.bind(p.bind(x, n=2), n=3)
    g = lambda x: 2 * (jnp.cos(x) * 2 + 1)
    same(jax.jit(f)(x), 2 * (jnp.cos(g(x)) * 3 + 1))
    text = text_of(f, x)
    assert "@twice(" in text and "@twice_0(" in text


def test_constants_types_and_attributes():
    p = Primitive("constants")
    p.def_abstract_eval(lambda x: x)

    def rule(ctx, x):
        aval = ctx.avals_in[0]
        assert mlir.aval_to_ir_type(ctx.module_context, aval) == x.type == mlir.aval_to_ir_types(aval)[0]
        assert str(mlir.dtype_to_ir_type(jnp.dtype("bfloat16"))) == "bf16" and str(mlir.i32_attr(3)) == "3 : i32"
        assert str(mlir.ir_attribute({"a": [1, "b", True]})) == '{a = [1, "b", true]}'
        assert str(mlir.dense_int_elements([1, 2])) == "dense<[1, 2]> : tensor<2xi64>"
        assert str(mlir.dense_int_array([1, 2])) == "array<i64: 1, 2>"
        assert mlir.flatten_ir_values([x, [hlo.AddOp(x, x)]])[0] == x
        assert mlir.flatten_ir_types([x.type, [x.type]]) == [x.type] * 2
        mask = mlir.ir_constant(np.array([True, False, True]))
        return [hlo.select(mask, hlo.add(x, mlir.ir_constants(np.full(3, 0.1, np.float32))[0]), mlir.ir_constant(
            np.array([np.inf, -0.0, np.nan], np.float32)))]
    mlir.register_lowering(p, rule)
    found = np.asarray(jax.jit(p.bind)(jnp.ones(3)))
    np.testing.assert_array_equal(found, np.array([1.1, -0.0, 1.1], np.float32))
    assert np.signbit(found[1])


def test_a_custom_call_is_known_to_the_program():
    p = Primitive("kernel")
    p.def_abstract_eval(lambda x: x)

    def rule(ctx, x):
        return mlir.custom_call("my_kernel", result_types=[x.type], operands=[x], backend_config={"scale": np.float32(2)},
                                api_version=4, operand_layouts=[(0, 1)], result_layouts=[(0, 1)],
                                operand_output_aliases={0: 0}).results
    mlir.register_lowering(p, rule)
    program = jax.make_jaxpr(p.bind)(jnp.ones((2, 3)))
    lowered = lower(program)
    assert lowered.targets == ("my_kernel",)
    for part in ("@my_kernel(%arg0)", "scale = 2.0", "dense<[0, 1]> : tensor<2xindex>", "operand_index = 0",
                 "mhlo.backend_config = "):
        assert part in lowered.text


# --- errors -------------------------------------------------------------------------------------------------------

def bare(*, typed=True):
    p = Primitive("mul_sub")
    if typed:
        p.def_abstract_eval(lambda x: x)
    return p


@pytest.mark.parametrize(("use", "words"), [
    (lambda: bare(typed=False).bind(1.0), r"Abstract evaluation for 'mul_sub' not implemented.*set mul_sub_p.def_abstract_eval\(rule\)"),
    (lambda: jax.jit(bare(typed=False).bind)(1.0), r"Abstract evaluation for 'mul_sub' not implemented.*Primitive\(..., abstract_eval=rule\)"),
    (lambda: bare().bind(1.0), r"translation rule for primitive 'mul_sub' not found for platform \w+; set mlir.register_lowering\(mul_sub_p, rule\)"),
    (lambda: jax.jit(bare().bind)(1.0), r"translation rule for primitive 'mul_sub' not found for platform \w+.*Primitive\(..., lower=rule\)"),
    (lambda: jax.jvp(bare().bind, (1.0,), (1.0,)), r"Differentiation rule for 'mul_sub' not implemented.*set ad.primitive_jvps\[mul_sub_p\] = rule"),
    (lambda: jax.jit(jax.grad(bare().bind))(1.0), r"Differentiation rule for 'mul_sub' not implemented.*Primitive\(..., jvp=rule\)"),
    (lambda: jax.linear_transpose(bare().bind, 1.0)(1.0), r"Transpose rule .* for 'mul_sub' not implemented.*set ad.primitive_transposes\[mul_sub_p\]"),
    (lambda: ad.get_primitive_transpose(bare()), "Transpose rule .* for 'mul_sub' not implemented"),
    (lambda: jax.vmap(bare().bind)(jnp.ones(2)), r"Batching rule for 'mul_sub' not implemented.*set batching.primitive_batchers\[mul_sub_p\] = rule"),
])
def test_a_missing_rule_is_named_with_how_to_give_it(use, words):
    with pytest.raises(NotImplementedError, match=words):
        use()


def lowered_by(rule):
    p = bare()
    mlir.register_lowering(p, rule)
    return lambda: jax.jit(p.bind)(jnp.ones(3))


@pytest.mark.parametrize(("use", "error", "words"), [
    (lowered_by(lambda ctx, x: [x, x]), TypeError, "gives tensor<3xf32>, tensor<3xf32>, but its abstract evaluation rule"),
    (lowered_by(lambda ctx, x: ["%0"]), TypeError, "must give a sequence of MLIR values, not str"),
    (lowered_by(mlir.lower_fun(lambda x: x.sum(), multiple_results=False)), TypeError, r"gives tensor<f32>, but"),
    (lambda: jax.eval_shape(returning(3), 1.0), TypeError, "abstract evaluation rule must give a ShapedArray, not 3"),
    (lambda: jax.eval_shape(returning([]), 1.0), ValueError, "return a tuple or a list iff"),
    (lambda: jax.jvp(moved_by(lambda g, x: g.sum()), (jnp.ones(3),), (jnp.ones(3),)), ValueError,
     r"jvp rule of mul_sub gives a result of shape \(3,\) a tangent of shape \(\)"),
    (lambda: transposed(lambda ct, x: ct), TypeError, "must give a sequence of 1 cotangents"),
    (lambda: transposed(lambda ct, x: [jnp.ones((2, 2))]), ValueError, r"of shape \(3,\), a cotangent of shape \(2, 2\)"),
])
def test_a_wrong_rule_is_named(use, error, words):
    with pytest.raises(error, match=words):
        use()


def test_abstract_evaluation_that_speaks_of_effects():
    class Writes(core.Effect):
        """Something is written."""
    writes, (p, q, r) = Writes(), [bare(typed=False) for _ in range(3)]
    p.def_effectful_abstract_eval(lambda x: (x, set()))
    q.def_effectful_abstract_eval(lambda x, loud=False: (x, {writes} if loud else core.no_effects))
    r.def_effectful_abstract_eval(lambda x: (x, {"writes"}))
    assert jax.eval_shape(p.bind, jnp.ones(3)).shape == (3,)
    jaxpr = jax.make_jaxpr(jax.jit(lambda x: (q.bind(x, loud=True), q.bind(x))))(1.0)
    assert jaxpr.effects == {writes} and [e.effects for e in jaxpr.eqns[0].params["jaxpr"].eqns] == [(writes,), ()]
    mlir.register_lowering(q, mlir.lower_fun(lambda x, loud=False: x + 1, multiple_results=False))
    text = jax.jit(lambda x: (q.bind(x, loud=True), q.bind(x), 3.0)[2]).lower(1.0).as_text()
    assert text.count("stablehlo.add") == 1, "what has an effect stays, used or not"
    with pytest.raises(TypeError, match="mul_sub: .*has the effect 'writes', which is a str"):
        jax.eval_shape(r.bind, 1.0)
    assert core.DebugInfo("jit", "f at train.py:1", ("x",)).arg_names == ("x",)
    assert core.Effects.__args__ == (core.Effect,)


def returning(value):
    p = Primitive("mul_sub")
    p.def_abstract_eval(lambda x: value)
    return p.bind


def moved_by(rule):
    p = bare()
    mlir.register_lowering(p, lambda ctx, x: [x])
    ad.defjvp(p, rule)
    return p.bind


def transposed(rule):
    p = bare()
    ad.deflinear2(p, rule)
    return jax.linear_transpose(p.bind, jnp.ones(3))(jnp.ones(3))


def test_an_error_in_a_rule_is_the_users_own():
    def rule(ctx, x):
        raise ZeroDivisionError("mine")
    with pytest.raises(ZeroDivisionError, match="mine"):
        lowered_by(rule)()


def test_what_runs_eagerly_and_what_tracers_of_one_jvp_share():
    twice = Primitive("twice_eagerly")
    assert twice.impl == twice.bind and primitives.sin_p.impl(0.0) == 0
    twice.def_impl(lambda x: x * 2)
    assert twice.impl(3) == 6 and str(jax.make_jaxpr(twice.impl)(3.0)).count(" mul ") == 1

    def f(x, y):
        assert x._trace.main is y._trace.main is core.find_top_trace((x, y)).main
        return x * y
    jax.jvp(f, (1.0, 2.0), (1.0, 1.0))
