"""Modules as text: functions, constants, locations, regions, attributes of donated arguments, what one device does."""
import re

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.avals import ShapedArray
from hlotrace.core.config import override, scoped
from hlotrace.core.jaxpr_trace import trace_to_jaxpr
from hlotrace.core.platforms import platform_named
from hlotrace.core.primitive import Primitive
from hlotrace.lowering.lowered import lower
from hlotrace.lowering.module import Locations, Module
from hlotrace.lowering.outline import Block
from hlotrace.primitives.arrays.transcendental import cos_p, sin_p
from hlotrace.primitives.programs.calls import jit_p
from hlotrace.runtime.mlir.bindings import parse_module
from hlotrace.sharding import Mesh, NamedSharding, P

pytestmark = pytest.mark.quick

F = ShapedArray((), "float32")


def text(f, *avals, name="f", **options):
    """A program as it is lowered, without locations unless they are asked for."""
    program = trace_to_jaxpr(lambda *xs: f(*xs), avals or [F], name)
    return lower(program, **{"debug_info": False} | options).text


def test_a_whole_module():
    assert text(lambda x: [sin_p.bind(x)], name="my fun") == (
        "module @jit_my_fun attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n"
        "  func.func public @main(%arg0: tensor<f32>) -> (tensor<f32>) {\n"
        "    %0 = stablehlo.sine %arg0 : tensor<f32>\n    return %0 : tensor<f32>\n  }\n}\n")


def test_the_same_program_has_the_same_text():
    f = lambda x: [lax.cond(x > 0, jnp.sin, jnp.cos, x), jax.jit(lambda x: jnp.tanh(x) + 1)(x)]
    assert text(f, debug_info=True) == text(f, debug_info=True)


# --- functions -------------------------------------------------------------------------------------------------------

def test_a_program_that_is_called_twice_is_one_function():
    g = jax.jit(lambda x: jnp.sin(x) * 2)
    written = text(lambda x: [g(g(x))])
    assert written.count("func.func private") == 1 and len(re.findall(r" call @\w+\(", written)) == 2


def test_functions_of_one_name_get_names_of_their_own_in_the_order_of_use():
    def make(number):
        def layer(x):
            return x + number
        return jax.jit(layer)
    written = text(lambda x: [make(1.0)(make(2.0)(x))])
    assert re.findall(r"func.func private @(\w+)\(", written) == ["layer", "layer_0"]
    assert re.findall(r"dense<(\d).0>", written) == ["2", "1"]
    module = Module("m", platform_named("cpu"), False)
    assert [module.unique(name) for name in ("a b", "a b", "main", "")] == ["a_b", "a_b_0", "main_0", "fn"]


def test_callees_come_after_their_callers():
    inner = jax.jit(lambda x: jnp.sin(x))
    outer = jax.jit(lambda x: inner(x) + inner(x + 1))
    written = text(lambda x: [outer(x), outer(x + 2)])
    assert written.index("@main(") < written.index("func.func private")


@pytest.mark.parametrize("platform, kept", [("cpu", True), ("cuda", False), ("tpu", False)])
def test_blocks_are_kept_from_inlining_where_the_platform_can_call(platform, kept):
    inner = trace_to_jaxpr(lambda x: [sin_p.bind(x)], [F], "block")
    outer = trace_to_jaxpr(lambda x: jit_p.bind(*jit_p.bind(x, jaxpr=inner, donated=()), jaxpr=inner, donated=()), [F])
    written = lower(outer, platform=platform, blocks=[Block(inner, 2)], debug_info=False).text
    assert platform_named(platform).keeps_calls is kept
    assert written.count('inlineable = "false"') == (2 if kept else 0)
    assert "inlineable" not in lower(outer, platform=platform, blocks=[], debug_info=False).text


# --- constants and regions -------------------------------------------------------------------------------------------

def test_a_constant_is_written_once():
    written = text(lambda x: [x + 2.0, x * 2.0, x - np.float32(2), x + 3.0])
    assert written.count("stablehlo.constant") == 2


@pytest.mark.parametrize("values", [
    [np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32), np.zeros(6, np.float32)],      # the same bytes
    [np.zeros(2, np.float32), np.zeros(2, np.int32), np.zeros(8, np.int8)],
    [np.float32(0.0), np.float32(-0.0)], [np.ones(1, np.float32), np.float32(1)]])
def test_constants_of_other_types_or_bits_are_others(values):
    f = lambda x: [x, *values]
    program = trace_to_jaxpr(f, [F])
    written = lower(program, debug_info=False).text
    assert written.count("stablehlo.constant") == len(values)
    returned = re.search(r"return .* : (.*)", written)[1]
    assert returned == ", ".join(aval.mlir for aval in program.out_avals)


@pytest.mark.parametrize("value", [1, 2.5, True, np.int8(3), np.float16(1.5), np.uint32(7), 1j], ids=repr)
def test_a_constant_that_is_a_result_has_its_type(value):
    written = jax.jit(lambda x: (x, value)).lower(1.0).as_text()
    kind = jax.typeof(value).mlir
    assert f"return %arg0, %0 : tensor<f32>, {kind}" in written and re.search(rf"%0 = stablehlo.constant .* : {kind}\n", written)


def test_a_region_has_constants_of_its_own():
    """What is written in one branch is not known in the other, or after them."""
    def f(x):
        branch = lax.cond(x > 0, lambda x: x + 7.0, lambda x: x * 7.0, x)
        return [branch, branch - 7.0]
    written = text(f)
    assert written.count("dense<7.0") == 3
    parse_module(written)       # which knows a name only where it is in scope


# --- locations -------------------------------------------------------------------------------------------------------

def test_each_operation_has_its_line_and_its_scopes():
    def f(x):
        for name in ("first", "second"):
            with scoped(name):
                x = sin_p.bind(x)
        return [cos_p.bind(x)]
    written = text(f, debug_info=True)
    first = f.__code__.co_firstlineno
    for path, line in [("jit(f)/first/sin", 3), ("jit(f)/second/sin", 3), ("jit(f)/cos", 4)]:
        named = re.search(rf'loc\("{re.escape(path)}"\((#loc\d+)\)\)', written)
        assert named, path
        function = re.search(rf'{named[1]} = loc\("[^"]*locals>.f"\((#loc\d+)\)\)', written)
        assert function and re.search(rf'{function[1]} = loc\("[^"]*test_module.py":{first + line}:\d+\)', written)
    assert "loc" not in text(f)


def test_a_location_is_written_once():
    locations = Locations()
    source = (test_a_location_is_written_once.__code__, 0)
    found = [locations.of(source, path) for path in ("a", "b", "a")] + [locations.of(None, "a")]
    assert found[0] == found[2] != found[1] and len(set(found)) == 3
    assert len(locations.text().splitlines()) == len(locations.aliases) == 5
    assert locations.text().count("test_module.py") == 1


def test_files_are_written_as_an_option_says():
    with override("jax_hlo_source_file_canonicalization_regex", r".*/tests/"):
        assert 'loc("lowering/test_module.py":' in text(lambda x: [sin_p.bind(x)], debug_info=True)


@pytest.mark.parametrize("axis_type, entries", [("Auto", "{?}, {?}, {}"), ("Explicit", '{"x"}, {"y"}, {}')], ids=["Auto", "Explicit"])
def test_an_axis_that_cannot_be_split_is_whole_and_others_are_as_they_are(axis_type, entries):
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"), axis_types=(getattr(jax.sharding.AxisType, axis_type),) * 2)
    x = jax.ShapeDtypeStruct((8, 8, 8), np.complex64, sharding=NamedSharding(mesh, P("x", "y")))
    assert f"sdy.sharding_constraint %arg0 <@mesh, [{entries}]>" in jax.jit(jnp.fft.fft).lower(x).as_text()


def test_a_kernel_is_called_by_one_device_but_in_shard_map_by_each():
    mesh = Mesh(np.array(jax.devices()), ("x",))
    once = Primitive("once", abstract_eval=lambda x: x, lower=lambda ctx, eqn, x: ctx.custom_call(
        "kernel", [x], [eqn.invars[0].aval], [eqn.outvars[0].aval], once=True)[0])
    x = jax.ShapeDtypeStruct((8, 8), np.float32, sharding=NamedSharding(mesh, P("x")))
    written = jax.jit(once.bind).lower(x).as_text()
    assert "@first_device = <[], device_ids=[0]>" in written and "sdy.sharding_per_value<[<@first_device, []>]>" in written
    assert "sdy.sharding_constraint" in written
    mapped = jax.shard_map(once.bind, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    written = jax.jit(mapped).lower(x).as_text()
    assert "@kernel" in written and "first_device" not in written and "sdy.sharding_constraint" not in written
    alone = jax.jit(once.bind).lower(jax.ShapeDtypeStruct((8, 8), np.float32)).as_text()
    assert "@kernel" in alone and "sdy" not in alone


def test_what_a_kernel_gives_to_all_devices_is_over_their_mesh():
    """Also where only what follows names the mesh."""
    mesh = Mesh(np.array(jax.devices()), ("x",))
    once = Primitive("once", abstract_eval=lambda x: x, lower=lambda ctx, eqn, x: ctx.custom_call(
        "kernel", [x], [eqn.invars[0].aval], [eqn.outvars[0].aval], once=True)[0])
    f = jax.jit(lambda x: lax.with_sharding_constraint(once.bind(x), NamedSharding(mesh, P("x"))))
    written = f.lower(jax.ShapeDtypeStruct((8,), np.float32)).as_text()
    assert re.findall(r"sdy.sharding_constraint %\d+ (<.*>) :", written) == ["<@mesh_1, [{}]>", '<@mesh_1, [{"x"}]>']
    parse_module(written)


def test_functions_are_called_within_shard_map_too():
    mesh = Mesh(np.array(jax.devices()), ("x",))
    inner = jax.jit(lambda x: jnp.sin(x) * 2)
    mapped = jax.shard_map(lambda x: inner(inner(x)), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    written = jax.jit(lambda x: inner(mapped(x))).lower(jax.ShapeDtypeStruct((8,), np.float32)).as_text()
    body = written[written.index("sdy.manual_computation"):written.index("sdy.return")]
    assert body.count(" func.call @") == 2 and " = call @" not in body and " = call @" in written.replace(body, "")
    parse_module(written)


def test_what_has_no_lowering_says_for_which_platforms_it_has_one():
    only = Primitive("only", abstract_eval=lambda x: x, lower={"cuda": lambda ctx, eqn, x: x})
    with pytest.raises(NotImplementedError, match="'only' not found for platform cpu; it has one for cuda"):
        text(lambda x: [only.bind(x)])
    assert "return %arg0" in text(lambda x: [only.bind(x)], platform="cuda")
