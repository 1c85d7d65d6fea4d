"""Kernels of the user's, called with what does not fit them."""
import numpy as np
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import ffi

LIKE = jax.ShapeDtypeStruct((2, 3), "float32")


@mistake(ValueError, "ffi_call", "result_shape_dtypes", "(2, 3) at position 0", advice="jax.ShapeDtypeStruct(")
def result_by_its_shape_alone():
    ffi.ffi_call("kernel", [(2, 3)])  # <-


@mistake(ValueError, "ffi_call", "vmap_method", "'parallel'", advice="'broadcast_all'")
def vmap_method_that_is_none():
    ffi.ffi_call("kernel", LIKE, vmap_method="parallel")  # <-


@mistake(ValueError, "FFI call to `kernel`", advice="custom_vjp")
def gradient_of_a_kernel():
    def loss(x):
        return ffi.ffi_call("kernel", LIKE)(x).sum()  # <-
    jax.grad(loss)(jnp.ones((2, 3)))


@mistake(NotImplementedError, "ffi_call primitive", "vmap_method=None for `kernel`", advice="'sequential'")
def vmap_of_a_kernel():
    def each(x):
        return ffi.ffi_call("kernel", jax.ShapeDtypeStruct((3,), "float32"))(x)  # <-
    jax.vmap(each)(jnp.ones((2, 3)))


@mistake(TypeError, "FFI call to `kernel`", "attribute scale", "complex", advice="NumPy scalars")
def attribute_that_is_complex():
    ffi.ffi_call("kernel", LIKE)(jnp.ones((2, 3)), scale=1j)  # <-


@mistake(TypeError, "FFI call to `kernel`", "args[1]", "str", advice="by keyword")
def attribute_by_position():
    ffi.ffi_call("kernel", LIKE)(jnp.ones((2, 3)), "fast")  # <-


@mistake(ValueError, "input_output_aliases", "float32[2,3]", "float32[3]", advice="the same")
def alias_of_another_shape():
    ffi.ffi_call("kernel", jax.ShapeDtypeStruct((3,), "float32"), input_output_aliases={0: 0})(np.ones((2, 3), "f"))  # <-


@mistake(ValueError, "register_ffi_target('kernel')", "int", advice="PyCapsule")
def kernel_that_is_a_number():
    ffi.register_ffi_target("kernel", 3)  # <-
