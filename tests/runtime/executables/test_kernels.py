"""Kernels that programs call by name: LAPACK as jaxlib brings it, and the user's."""
import ctypes

import forked
import numpy as np
import pytest
from jaxlib import lapack
from mesh8 import line

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.avals import ShapedArray
from hlotrace.core.config import override
from hlotrace.core.platforms import platform_named
from hlotrace.core.primitive import Primitive
from hlotrace.lowering.custom_calls import column_major
from hlotrace.runtime.executables import compilation, kernels, tiers

INT32 = np.dtype(np.int32)


def potrf(target):
    """The Cholesky factor of a batch of matrices and LAPACK's `info`, by the kernel `target`."""
    def lower(ctx, eqn, x):
        avals = [v.aval for v in eqn.outvars]
        orders = [column_major(a.ndim) if a.ndim > 1 and i == 0 else None for i, a in enumerate(avals)]
        return ctx.custom_call(target, [x], [eqn.invars[0].aval], avals, layouts=orders[:1], result_layouts=orders,
                               config={"uplo": np.uint8(ord("L"))}, aliases={0: 0})
    return Primitive(f"test_{target}", multiple_results=True, lower={"cpu": lower}, abstract_eval=lambda x: [
        x, ShapedArray(x.shape[:-2], INT32)])


def positive(*shape, dtype=np.float32):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    return x @ x.swapaxes(-1, -2) + 3 * np.eye(shape[-1], dtype=dtype)


spotrf_p = potrf("lapack_spotrf_ffi")


def test_a_program_calls_lapack():
    x = positive(2, 4, 4)
    lowered = jax.jit(spotrf_p.bind).lower(x)
    factor, info = lowered.compile()(x)
    assert "output_operand_aliases" in lowered.as_text()
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(x), rtol=1e-5)
    np.testing.assert_array_equal(info, np.zeros(2, np.int32))


def test_lapack_eagerly_and_beside_other_operations():
    x = positive(5, 5)
    np.testing.assert_allclose(np.tril(spotrf_p.bind(x)[0]), np.linalg.cholesky(x), rtol=1e-5)
    jitted = jax.jit(lambda x: jnp.tril(spotrf_p.bind(x + x)[0]).sum())
    np.testing.assert_allclose(jitted(x), np.linalg.cholesky(x + x).sum(), rtol=1e-5)


def test_lapack_in_a_program_over_devices():
    x = positive(8, 3, 3)
    lies = jax.NamedSharding(line(), jax.P("x"))
    jitted = jax.jit(lambda x: jnp.tril(spotrf_p.bind(x)[0]), out_shardings=lies)
    out = jitted(jax.device_put(x, lies))
    assert out.sharding == lies
    np.testing.assert_allclose(out, np.linalg.cholesky(x), rtol=1e-5)
    each = jax.shard_map(lambda x: jnp.tril(spotrf_p.bind(x)[0]), mesh=line(), in_specs=jax.P("x"), out_specs=jax.P("x"))
    np.testing.assert_allclose(jax.jit(each)(x), np.linalg.cholesky(x), rtol=1e-5)


def test_a_matrix_that_is_not_positive_is_told():
    assert spotrf_p.bind(np.array([[1, 2], [2, 1]], np.float32))[1] == 2


def test_a_program_knows_its_targets_each_once():
    def f(x):
        jax.debug.print("{}", x.sum())
        a, _ = spotrf_p.bind(x)
        return spotrf_p.bind(a + x)
    lowered = jax.jit(f).lower(positive(3, 3))._lowered(True)
    assert lowered.targets == ("xla_ffi_python_cpu_callback", "lapack_spotrf_ffi")
    assert lowered.kernels == ["lapack_spotrf_ffi"]


def test_a_program_that_calls_lapack_comes_back_from_disk(tmp_path):
    x = positive(3, 3)
    results, hits = [], compilation.disk_hits
    with override("jax_compilation_cache_dir", str(tmp_path)), override("jax_enable_compilation_cache", True), override(
            "jax_persistent_cache_min_compile_time_secs", 0):
        for _ in range(2):
            results.append(jax.jit(lambda x: spotrf_p.bind(x * 2)[0])(x))
            jax.clear_caches()
    assert compilation.disk_hits == hits + 1
    np.testing.assert_array_equal(*results)


def test_without_scipy_the_error_says_what_to_install(monkeypatch):
    def absent():
        raise ModuleNotFoundError("No module named 'scipy'")
    monkeypatch.setattr(kernels._lapack, "initialize", absent)
    monkeypatch.setattr(kernels, "_registered", set())
    with pytest.raises(ImportError, match="LAPACK through scipy.*pip install scipy.*No module named 'scipy'"):
        jax.jit(lambda x: spotrf_p.bind(x - 1)[0])(positive(2, 2))


def handler(name):
    """A capsule of our own around the address of a handler that jaxlib has."""
    capsule = next(kernel for target, kernel, _ in lapack.registrations()["cpu"] if target == name)
    of, new = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_New
    of.restype, of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    label = b"xla._CUSTOM_CALL_TARGET"
    return new(of(capsule, label), label, None)


def test_a_user_registers_a_kernel():
    spotrf_p.bind(positive(2, 2))       # LAPACK is found
    kernels.register_ffi_target("users_potrf", handler("lapack_spotrf_ffi"))
    x = positive(4, 4)
    np.testing.assert_allclose(np.tril(potrf("users_potrf").bind(x)[0]), np.linalg.cholesky(x), rtol=1e-5)
    kernels.register_ffi_target("users_staged_potrf", {"execute": handler("lapack_spotrf_ffi")})
    np.testing.assert_allclose(np.tril(potrf("users_staged_potrf").bind(x)[0]), np.linalg.cholesky(x), rtol=1e-5)


def test_another_kernel_of_a_name_is_refused():
    kernels.register_ffi_target("users_twice", handler("lapack_spotrf_ffi"))
    kernels.register_ffi_target("users_twice", handler("lapack_spotrf_ffi"))
    with pytest.raises(ValueError, match=r"register_ffi_target\('users_twice'\): .*Duplicate"):
        kernels.register_ffi_target("users_twice", handler("lapack_dpotrf_ffi"))


def test_what_is_no_kernel_is_refused():
    with pytest.raises(ValueError, match="register_ffi_target.'users_number'"):
        kernels.register_ffi_target("users_number", 3)


def test_a_name_that_nobody_registered_is_named_by_the_error():
    with pytest.raises(jax.errors.JaxRuntimeError, match="nobodys_potrf"):
        potrf("nobodys_potrf").bind(positive(2, 2))


def test_a_kernel_of_the_users_keeps_a_program_to_this_process():
    kernels.register_ffi_target("users_only", handler("lapack_spotrf_ffi"))
    x = positive(3, 3)
    with override("hlotrace_tiered_compile", "on"):
        own, lapacks = jax.jit(potrf("users_only").bind), jax.jit(lambda x: spotrf_p.bind(x + 1))
        own(x), lapacks(x)
        assert own.tiers(wait=True) == ["full"]
        assert type(next(iter(lapacks._known.calls.values())).executable) is tiers.TieredExecutable
        assert lapacks.tiers(wait=True) == ["full"]
    np.testing.assert_allclose(np.tril(lapacks(x)[0]), np.linalg.cholesky(x + 1), rtol=1e-5)


def test_kernels_for_cuda_say_which_package_they_are_in():
    with pytest.raises(RuntimeError, match="kernels for CUDA are in a package that is not installed: pip install"):
        kernels.register(["cusolver_getrf_ffi"], platform_named("cuda"))


def test_programs_without_kernels_do_not_import_this_file():
    code = ("import sys, numpy as np, hlotrace as jax\n"
            "jax.jit(lambda x: (jax.debug.print('{}', x), x + 1)[1])(1.0)\n"
            "jax.effects_barrier(); print([m for m in sys.modules if 'kernels' in m or 'lapack' in m])")
    done = forked.run(code, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
