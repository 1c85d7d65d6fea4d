"""Platforms: names and aliases, what is asked of them, and lowering rules for each."""
import re

import numpy as np
import pytest
from row_checks import rows

import hlotrace as jax
from hlotrace.core.platforms import PLATFORMS, Platform, platform_named
from hlotrace.core.primitive import PRIMITIVES, Primitive
from hlotrace.runtime.mlir.bindings import parse_module

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def unary(name, **rules):
    return Primitive(name, abstract_eval=lambda x: x, **rules)


def writes(op):
    return lambda ctx, eqn, x: ctx.emit(f"stablehlo.{op} {x} : {eqn.outvars[0].aval.mlir}")


def text(primitive, platform):
    return jax.jit(primitive.bind).trace(X).lower(platform=platform).as_text()


def test_a_platform_is_its_name_and_answers_to_its_aliases():
    cuda = platform_named("gpu")
    assert cuda == "cuda" and cuda is platform_named("cuda") and isinstance(cuda, Platform)
    assert platform_named("cpu").callback == "xla_ffi_python_cpu_callback"


def test_of_a_platform_that_is_not_known_nothing_is_claimed():
    other = platform_named("abacus")
    assert other == "abacus" and other.callback is None and other.quick is None and not other.in_pieces
    assert other.dlpack is None and other.all_reduced("xor", "i")


@pytest.mark.parametrize("name, kind, can", [
    ("add", "c", True), ("maximum", "f", True), ("maximum", "c", False), ("and", "b", True),
    ("and", "i", False),
    ("xor", "b", False)])
def test_devices_of_a_cpu_reduce_together_by_some_operations(name, kind, can):
    assert platform_named("cpu").all_reduced(f"stablehlo.{name}", kind) is can
    assert platform_named("tpu").all_reduced(f"stablehlo.{name}", kind) and not platform_named(
        "cpu").all_reduced(None, kind)


def test_default_backend_gives_the_public_name():
    assert jax.default_backend() == "cpu" and type(jax.default_backend()) is str


def test_a_rule_for_each_platform():
    p = unary("by_platform", lower={"cpu": writes("sine"), "gpu": writes("cosine"), None: writes("tanh")})
    written = {platform: re.search(r"stablehlo.(\w+)", text(p, platform))[1]
               for platform in (*PLATFORMS, "gpu")}
    assert written == {"cpu": "sine", "cuda": "cosine", "gpu": "cosine", "rocm": "tanh", "tpu": "tanh"}
    np.testing.assert_allclose(p.bind(X), np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(p.bind)(X), np.sin(X), rtol=1e-6)


@rows(lambda row: type(PRIMITIVES[row.primitive].lower) is dict and row.name != "schur")   # of real matrices
def test_what_the_rule_of_a_platform_writes_is_verified(row):
    for platform in "cuda", "rocm", "tpu":
        written = jax.jit(row.fun).trace(*row.sample(row.base)).lower(platform=platform).as_text()
        assert parse_module(written).operation.verify()


@pytest.mark.quick
def test_no_rule_for_a_platform_names_those_that_have_one():
    p = unary("only_there", lower={"cuda": writes("sine"), "tpu": writes("sine")})
    with pytest.raises(NotImplementedError,
                       match="'only_there' not found for platform cpu; it has one for cuda, tpu"):
        jax.jit(p.bind)(X)
    with pytest.raises(NotImplementedError,
                       match="'only_there' not found for platform rocm; it has one for cuda, tpu"):
        text(p, "rocm")


def test_a_rule_of_none_keeps_a_platform_out():
    p = unary("not_there", lower={"tpu": None, None: writes("sine")})
    assert "sine" in text(p, "cpu")
    with pytest.raises(NotImplementedError,
                       match="'not_there' not found for platform tpu; it has one for every other"):
        text(p, "tpu")


def test_a_primitive_without_a_rule():
    with pytest.raises(NotImplementedError,
                       match="'bare' not found for platform cpu; set mlir.register_lowering"):
        jax.jit(unary("bare").bind)(X)


@pytest.mark.quick
def test_rules_for_an_unknown_platform_are_refused():
    with pytest.raises(TypeError,
                       match="lowering of primitive 'misspelt' .* platform 'cdua'; known are cpu, cuda, gpu,"):
        unary("misspelt", lower={"cdua": writes("sine")})


def test_host_callbacks_name_the_platform_that_has_none():
    def f(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    assert "xla_ffi_python_gpu_callback" in jax.jit(f).trace(X).lower(platform="gpu").as_text()
    with pytest.raises(NotImplementedError, match="host callbacks are not supported on platform tpu"):
        jax.jit(f).trace(X).lower(platform="tpu").as_text()


def test_dlpack_devices():
    assert jax.numpy.asarray(X).__dlpack_device__() == (1, 0)
