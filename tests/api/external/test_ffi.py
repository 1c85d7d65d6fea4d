"""hlotrace.ffi: kernels called by name.  Those that are called here are LAPACK's, which jaxlib brings."""
import ctypes
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from jaxlib import lapack
from mesh8 import line

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import ffi
from hlotrace.extend import core
from hlotrace.interpreters import mlir

INT = jax.ShapeDtypeStruct((), np.int32)


def factor(x, method="broadcast_all", target="lapack_spotrf_ffi", **options):
    """LAPACK's Cholesky factor, of matrices that lie by columns."""
    order = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    outs = (jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct(x.shape[:-2], np.int32))
    call = ffi.ffi_call(target, outs, vmap_method=method, input_layouts=[order], output_layouts=[order, None],
                        **options)
    return jnp.tril(call(x, uplo=np.uint8(ord("L")))[0])


def positive(*shape):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    return x @ x.swapaxes(-1, -2) + 3 * np.eye(shape[-1], dtype=np.float32)


XS = positive(4, 3, 3)
FACTORS = np.linalg.cholesky(XS)


METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]


@pytest.mark.parametrize("method", METHODS)
def test_a_kernel_is_called_alone_and_mapped(method):
    np.testing.assert_allclose(factor(XS[0], method), FACTORS[0], rtol=1e-5)
    mapped = jax.jit(jax.vmap(lambda x: factor(x, method), in_axes=1, out_axes=2))
    np.testing.assert_allclose(mapped(XS.swapaxes(0, 1)), np.moveaxis(FACTORS, 0, 2), rtol=1e-5)


def programs(method, in_axes=(0, None)):
    call = ffi.ffi_call("kernel", jax.ShapeDtypeStruct((3,), np.float32), vmap_method=method,
                        input_output_aliases={1: 0})
    return jax.make_jaxpr(jax.vmap(lambda x, y: call(x, y), in_axes))(
        np.ones((4, 3), "f"), np.ones(3, "f")).jaxpr.eqns


@pytest.mark.quick
def test_methods_give_operands_their_axes():
    shapes = {method: [v.aval.shape for v in programs(method)[-1].invars] for method in METHODS[-3:]}
    assert shapes == dict.fromkeys(METHODS[-3:], [(4, 3), (4, 3)]), (
        "an operand whose memory a result takes is of full size")
    scan, = programs("sequential_unrolled")
    assert scan.primitive.name == "scan" and scan.params["unroll"] == 4 == scan.params["length"]


@pytest.mark.quick
def test_the_text_of_a_call():
    like = jax.ShapeDtypeStruct((2, 3), np.float32)
    call = ffi.ffi_call("kernel", like, output_layouts=(1, 0), input_output_aliases={0: 0},
                        has_side_effect=True)
    text = jax.jit(lambda x: call(x, n=3, s=np.float32(0.5), name="a", on=True,
                                  table=np.array([1, 2], np.int8),
                                  more={"k": np.int64(3)}, pair=(1, 2.5))).lower(
                                      np.ones((2, 3), "f")).as_text()
    for part in ("@kernel(%arg0)", "mhlo.backend_config = ", "has_side_effect = true", "n = 3 : i64",
                 "s = 0.5 : f32", 'name = "a"',
                 "on = true", "table = dense<[1, 2]> : tensor<2xi8>", "more = {k = 3 : i64}",
                 "pair = [1 : i64, 2.5 : f64]",
                 "operand_layouts = [dense<[1, 0]>", "result_layouts = [dense<[0, 1]>",
                 "output_operand_aliases"):
        assert part in text
    legacy = ffi.ffi_call("older", like, custom_call_api_version=2, legacy_backend_config="fast")
    assert 'api_version = 2 : i32, backend_config = "fast"' in jax.jit(legacy).lower(like).as_text()


@pytest.mark.quick
def test_a_call_with_an_effect_stays_in_the_program():
    like = jax.ShapeDtypeStruct((3,), np.float32)
    calls = [ffi.ffi_call("kernel", like, has_side_effect=effect) for effect in (True, False)]
    texts = [jax.jit(lambda x, call=call: (call(x), x)[1]).lower(like).as_text() for call in calls]
    assert ["kernel" in text for text in texts] == [True, False]


@pytest.mark.quick
def test_tokens_order_calls():
    like = jax.ShapeDtypeStruct((3,), np.float32)

    def f(x):
        token, y = ffi.ffi_call("first", (ffi.abstract_token, like))(x)
        return ffi.ffi_call("second", [like])(token, y)[0]
    text = jax.jit(f).lower(like).as_text()
    assert "(tensor<3xf32>) -> (!stablehlo.token, tensor<3xf32>)" in text
    assert "(!stablehlo.token, tensor<3xf32>) -> tensor<3xf32>" in text


@pytest.mark.quick
def test_one_result_is_an_array_and_several_are_a_list_or_a_tuple_as_declared():
    like, x = jax.ShapeDtypeStruct((2,), np.float32), np.ones(2, "f")
    assert jax.eval_shape(ffi.ffi_call("kernel", like), x) == like
    for several in ([like], (like,), (like, like), (), []):
        assert jax.eval_shape(ffi.ffi_call("kernel", several, has_side_effect=True), x) == several
    key = jax.eval_shape(ffi.ffi_call("kernel", like), jax.random.key(0))
    assert key == like


X = np.ones((2, 3), np.float32)
LIKE = jax.ShapeDtypeStruct((2, 3), np.float32)


@pytest.mark.quick
@pytest.mark.parametrize("options, args, words", [
    ({"input_layouts": [(0, 1)]}, (X, X),
     r"input arguments \(2\) must equal the number of input layouts \(1\)"),
    ({"input_layouts": [(0, 2)]}, (X,),
     r"input_layouts\[0\] = \(0, 2\) is not an order of the 2 axes of float32\[2,3\]"),
    ({"output_layouts": [(0,)]}, (X,), r"output_layouts\[0\] = \(0,\)"),
    ({"input_output_aliases": {0: 1}}, (X,), r"'0:1' with output index 1 outside the range \[0, 1\)"),
    ({"input_output_aliases": {3: 0}}, (X,), r"'3:0' with input index 3 outside the range \[0, 1\)"),
    ({"input_output_aliases": {0: 0}}, (X[0],), r"type float32\[3\] and an output of type float32\[2,3\]"),
    ({"legacy_backend_config": "a"}, (X,), "requires custom_call_api_version < 4; got 4")])
def test_what_does_not_fit_is_refused(options, args, words):
    with pytest.raises(ValueError, match=words):
        ffi.ffi_call("kernel", LIKE, **options)(*args)


@pytest.mark.quick
def test_older_kernels_take_no_attributes_and_names_are_text():
    with pytest.raises(ValueError,
                       match=r"attributes \(n\) requires a custom call API version of .* got api_version=1"):
        ffi.ffi_call("kernel", LIKE, custom_call_api_version=1)(X, n=1)
    with pytest.raises(TypeError, match="the name of the target must be a str, got 3"):
        ffi.ffi_call(3, LIKE)


def test_a_kernel_that_is_registered_so_is_called_on_parts():
    kernels = {name: kernel for name, kernel, *_ in lapack.registrations()["cpu"]}
    factor(XS[0])       # LAPACK is found
    lies = jax.NamedSharding(line(), jax.P("x"))
    xs = jax.device_put(positive(8, 3, 3), lies)
    wants = np.linalg.cholesky(np.asarray(xs))
    for target, gathers in ("whole_potrf", True), ("cut_potrf", False):
        ffi.register_ffi_target(target, kernels["lapack_spotrf_ffi"])
        if not gathers:
            ffi.register_ffi_target_as_batch_partitionable(target)
        compiled = jax.jit(jax.vmap(partial(factor, target=target)), out_shardings=lies).lower(xs).compile()
        assert ("all-gather" in compiled.as_text()) == gathers
        np.testing.assert_allclose(compiled(xs), wants, rtol=1e-5)


@pytest.mark.quick
def test_the_headers_are_there():
    assert (Path(ffi.include_dir()) / "xla" / "ffi" / "api" / "ffi.h").exists()


class TypeInfo(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


def test_a_type_gets_its_number():
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    for name, register in ("state_of_tests", ffi.register_ffi_type), (
        "older_state_of_tests", ffi.register_ffi_type_id):
        number, info = ctypes.c_int64(0), TypeInfo(ctypes.sizeof(TypeInfo), None, None)
        register(name, {key: new(ctypes.addressof(x), None, None)
                        for key, x in (("type_id", number), ("type_info", info))})
        assert number.value > 0
    with pytest.raises(ValueError, match=r"register_ffi_type\('none_of_tests'\)"):
        ffi.register_ffi_type("none_of_tests", 3)
    with pytest.raises(NotImplementedError,
                       match=r"register_ffi_type\('none_of_tests', platform='cuda'\): no plugin"):
        ffi.register_ffi_type("none_of_tests", {}, platform="cuda")


def test_a_capsule_is_made_of_a_function_of_ctypes():
    function = ctypes.CFUNCTYPE(None)(lambda: None)
    assert "xla._CUSTOM_CALL_TARGET" in repr(ffi.pycapsule(function))


def test_a_primitive_is_lowered_as_a_kernel():
    potrf_p = core.Primitive("test_ffi_potrf")
    potrf_p.multiple_results = True
    potrf_p.def_abstract_eval(lambda x, uplo: (x, core.ShapedArray((), np.dtype(np.int32))))
    columns = (0, 1)
    mlir.register_lowering(potrf_p, ffi.ffi_lowering(
        "lapack_spotrf_ffi", operand_layouts=[columns], result_layouts=[columns, None],
        operand_output_aliases={0: 0}))
    found, info = jax.jit(lambda x: potrf_p.bind(x, uplo=np.uint8(ord("L"))))(XS[0])
    np.testing.assert_allclose(jnp.tril(found), FACTORS[0], rtol=1e-5)
    assert info == 0
    call = ffi.build_ffi_lowering_function("kernel", api_version=1, backend_config="text",
                                           skip_ffi_layout_processing=True)
    text_p = core.Primitive("test_ffi_text")
    text_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(text_p, lambda ctx, x: call(ctx, x).results)
    text = jax.jit(text_p.bind).lower(X).as_text()
    assert 'backend_config = "text"' in text and "layouts" not in text
    with pytest.raises(TypeError, match="unexpected argument 'layout'"):
        ffi.build_ffi_lowering_function("kernel", layout=1)
