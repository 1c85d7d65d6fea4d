"""Transformations of functions that they do not fit."""
import functools

import numpy as np
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.ad_checkpoint import checkpoint_name
from hlotrace.custom_batching import custom_vmap
from hlotrace.custom_derivatives import linear_call


def square(x):
    return x ** 2


@mistake(TypeError, "grad", "square", "(3,)", advice="jacrev")
def gradient_of_a_vector():
    return jax.grad(square)(jnp.ones(3))  # <-


@mistake(TypeError, "grad", "square", "x", "int32", advice="allow_int")
def gradient_at_an_int():
    return jax.grad(square)(3)  # <-


@mistake(TypeError, "grad", "params['step']", "int32", advice="allow_int")
def gradient_of_an_int_in_params():
    return jax.grad(lambda params: params["w"] * params["step"])({"w": 1.0, "step": 3})  # <-


@mistake(TypeError, "grad", "norm", "bool", advice="real")
def gradient_of_a_bool():
    def norm(x):
        return x > 0
    return jax.grad(norm)(1.0)  # <-


@mistake(TypeError, "grad", "complex64", advice="holomorphic=True")
def gradient_at_a_complex_number():
    return jax.grad(square)(1j)  # <-


@mistake(TypeError, "grad", "has_aux", "loss", advice="(loss, state)")
def auxiliary_that_is_not_there():
    def loss(x):
        return x ** 2
    return jax.grad(loss, has_aux=True)(1.0)  # <-


@mistake(TypeError, "grad of loss", "structure", advice="has_aux=True")
def auxiliary_that_is_not_announced():
    def loss(x):
        return x ** 2, x
    return jax.grad(loss)(1.0)  # <-


@mistake(TypeError, "grad of square", "argnums=1", "only 1", advice="at least 2 positional arguments")
def gradient_by_a_missing_argument():
    return jax.grad(square, argnums=1)(1.0)  # <-


@mistake(TypeError, "grad", "str", "params['name']", advice="array")
def gradient_of_a_text():
    return jax.grad(lambda params: params["w"])({"w": 1.0, "name": "w"})  # <-


@mistake(ValueError, "vmap", "size 3", "size 4", "x", "y", advice="in_axes")
def mapped_sizes():
    return jax.vmap(lambda x, y: x + y)(jnp.ones(3), jnp.ones(4))  # <-


@mistake(ValueError, "vmap", "model", "in_axes", "len(in_axes)=2", "len(args)=3", advice="not mapped has None")
def mapped_axes_of_another_number():
    def model(w, x, y):
        return w * x + y
    return jax.vmap(model, in_axes=(None, 0))(1.0, jnp.ones(3), jnp.ones(3))  # <-


@mistake(ValueError, "vmap", "scale", "axis 0", advice="None")
def mapped_scalar():
    def predict(x, scale):
        return x * scale
    return jax.vmap(predict)(jnp.ones(3), 2.0)  # <-


@mistake(ValueError, "vmap", "axis 2", "(3, 4)", "x", advice="in_axes")
def mapped_axis_that_is_not_there():
    return jax.vmap(square, in_axes=2)(jnp.ones((3, 4)))  # <-


@mistake(ValueError, "vmap", "in_axes", "square", advice="at least one")
def nothing_is_mapped():
    return jax.vmap(square, in_axes=None)(jnp.ones(3))  # <-


@mistake(ValueError, "vmap", "out_axes", "3", advice="out_axes")
def out_axis_that_is_not_there():
    return jax.vmap(square, out_axes=3)(jnp.ones((3, 4)))  # <-


@mistake(TypeError, "jit", "f", "str", "name", advice="static_argnums/static_argnames")
def argument_that_is_no_array():
    def f(x, name):
        return x
    return jax.jit(f)(1.0, "adam")  # <-


@mistake(TypeError, "jit", "config['activation']", "str", advice="static_argnums/static_argnames")
def argument_inside_of_another():
    def f(config, x):
        return x
    return jax.jit(f)({"activation": "relu"}, 1.0)  # <-


@mistake(ValueError, "Non-hashable static", "f", "list", "sizes", advice="tuple")
def static_argument_without_hash():
    def f(x, sizes):
        return x
    return jax.jit(f, static_argnames="sizes")(1.0, sizes=[1, 2])  # <-


@mistake(ValueError, "static_argnames", "'mode'", "f", advice="did you mean")
def static_name_that_is_not_there():
    def f(x, modes):
        return x
    return jax.jit(f, static_argnames="mode")  # <-


@mistake(TypeError, "jit", "f", "<class 'str'>", "output component ['name']", advice="arrays, numbers")
def result_that_is_no_array():
    def f(x):
        return {"loss": x, "name": "hello"}
    return jax.jit(f)(1.0)  # <-


@mistake(TypeError, "jit", "9.0", advice="the function itself")
def jit_of_a_value():
    return jax.jit(square(3.0))  # <-


@mistake(TypeError, "f", "y", advice="missing")
def missing_argument():
    def f(x, y):
        return x + y
    return jax.jit(f)(1.0)  # <-


@mistake(TypeError, "jvp", "primals", "tangents", "1", "2", advice="tuple")
def tangents_of_another_number():
    return jax.jvp(square, (1.0,), (1.0, 1.0))  # <-


@mistake(ValueError, "jvp", "x of square", "(2,)", "(3,)", advice="different primal and tangent shapes")
def tangent_of_another_shape():
    return jax.jvp(square, (jnp.ones(3),), (jnp.ones(2),))  # <-


@mistake(TypeError, "jvp", "int32", "float0", "x", advice="float0")
def tangent_of_an_int():
    return jax.jvp(square, (3,), (1,))  # <-


@mistake(ValueError, "vjp", "float32[3]", "float32[2]", advice="shape")
def cotangent_of_another_shape():
    _, pull = jax.vjp(square, jnp.ones(3))
    return pull(jnp.ones(2))  # <-


@mistake(ValueError, "vjp", "a tuple of length 1 here", advice="was a leaf in the original output")
def cotangent_of_another_structure():
    _, pull = jax.vjp(square, jnp.ones(3))
    return pull((jnp.ones(3),))  # <-


@mistake(NotImplementedError, "linear_transpose of square", "integer_pow", advice="only if it is linear")
def transpose_of_what_is_not_linear():
    return jax.linear_transpose(square, 1.0)(1.0)  # <-


@mistake(TypeError, "Custom VJP", "clip", "arguments to the primal function", "PyTreeDef((*,))", "(Array(1.", advice="None is for")
def cotangents_of_another_number():
    @jax.custom_vjp
    def clip(x, limit):
        return x
    clip.defvjp(lambda x, limit: (x, None), lambda _, g: (g,))
    return jax.grad(clip)(1.0, 2.0)  # <-


@mistake(AttributeError, "custom_vjp", "clip", advice="defvjp")
def custom_vjp_without_rules():
    @jax.custom_vjp
    def clip(x):
        return x
    return jax.grad(clip)(1.0)  # <-


@mistake(AttributeError, "custom_jvp", "clip", advice="defjvp")
def custom_jvp_without_rule():
    @jax.custom_jvp
    def clip(x):
        return x
    return jax.jvp(clip, (1.0,), (1.0,))  # <-


@mistake(ValueError, "Custom VJP", "clip", "float32[2]", "float32[3]", "x", advice="the shapes do not match")
def cotangent_of_a_rule_of_another_shape():
    @jax.custom_vjp
    def clip(x):
        return x.sum()
    clip.defvjp(lambda x: (x.sum(), None), lambda _, g: (jnp.ones(2),))
    return jax.grad(clip)(jnp.ones(3))  # <-


@mistake(NameError, "psum", "'batch'", advice="axis_name")
def named_axis_that_is_not_there():
    def mean(x):
        return jax.lax.psum(x, "batch")  # <-
    return jax.vmap(mean, axis_name="rows")(jnp.ones(3))


@mistake(TypeError, "checkpoint", "'dots'", advice="checkpoint_policies")
def policy_that_is_no_function():
    return jax.checkpoint(square, policy="dots")  # <-


@mistake(TypeError, "policy should be a bool", "None", "for cos", advice="return True")
def policy_without_an_answer():
    return jax.grad(jax.checkpoint(jnp.sin, policy=lambda prim, *_, **__: None))(1.0)  # <-


@mistake(TypeError, "checkpoint_name", "the name must be a string", "('a', 'b')", advice="checkpoint_name(x, name)")
def two_names():
    return jax.checkpoint(lambda x: checkpoint_name(x, ("a", "b")))(1.0)  # <-


@mistake(TypeError, "save_only_these_names", "['a', 'b']", advice="save_only_these_names(*names)")
def names_in_a_list():
    return jax.checkpoint_policies.save_only_these_names(["a", "b"])  # <-


@mistake(ValueError, "should be exclusive", "['b']", advice="in both")
def names_to_save_and_to_offload():
    return jax.checkpoint_policies.save_and_offload_only_these_names(  # <-
        names_which_can_be_saved=["a", "b"], names_which_can_be_offloaded=["b"], offload_src="device",
        offload_dst="pinned_host")


@mistake(TypeError, "grad", "9.0", advice="the function itself")
def grad_of_a_value():
    return jax.grad(square(3.0))(1.0)  # <-


@mistake(TypeError, "jacfwd", "int32", "x of square", advice="x.astype(float)")
def hessian_at_an_int():
    return jax.hessian(square)(jnp.ones(3, int))  # <-


@mistake(TypeError, "vmap", "str", "name", advice="in_axes=None")
def mapped_text():
    def f(x, name):
        return x
    return jax.vmap(f)(jnp.ones(3), "adam")  # <-


@mistake(TypeError, "got multiple values", "x", advice="x")
def argument_given_twice():
    return functools.partial(jax.jit(square), x=np.ones(3))(1.0)  # <-


@mistake(TypeError, "custom_vmap rule", "must return a pair", advice="return out, True")
def mapped_rule_without_marks():
    double = custom_vmap(lambda x: 2 * x)
    double.def_vmap(lambda size, in_batched, x: 2 * x)
    return jax.vmap(double)(jnp.ones(3))  # <-


@mistake(ValueError, "custom_vmap rule", "float32[2]", "must be float32[3]", "axis size of 3", advice="out_batched is True")
def mapped_rule_that_loses_an_element():
    double = custom_vmap(lambda x: 2 * x)
    double.def_vmap(lambda size, in_batched, x: (2 * x[1:], True))
    return jax.vmap(double)(jnp.ones(3))  # <-


@mistake(TypeError, "linear_call", "transpose", "a tuple of length 2", advice="structure of linear_args")
def transpose_that_returns_a_pair():
    def loss(x):
        return linear_call(lambda r, x: r * x, lambda r, ct: (ct, ct), 2.0, x)
    return jax.grad(loss)(1.0)  # <-


@mistake(TypeError, "<lambda>()", "missing 1 required positional argument", advice="'y'")
def lambda_with_an_argument_too_few():
    jax.jit(lambda x, y: x + y)(1.0)  # <-


@mistake(ValueError, "Non-hashable static", "'weights'", "scaled", advice="an array is data")
def static_array():
    def scaled(x, weights):
        return x * weights
    return jax.jit(scaled, static_argnames="weights")(1.0, weights=jnp.ones(3))  # <-


@mistake(ValueError, "vmap", "scaled", "len(args)=1", advice="keyword arguments have no entry")
def mapped_axes_of_keyword_arguments():
    def scaled(x, scale):
        return x * scale
    return jax.vmap(scaled, in_axes=(0, None))(jnp.ones(3), scale=2.0)  # <-


@mistake(ValueError, "shard_map", "P('x',)", "rank 0", advice="keepdims=True")
def spec_longer_than_a_result():
    mesh = jax.make_mesh((1,), ("x",))
    total = jax.shard_map(lambda x: x.sum(), mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))
    return total(jnp.ones(4))  # <-
