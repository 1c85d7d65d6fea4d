"""Parameters in containers: other structures, other leaves, classes that are not registered or wrongly so."""
import dataclasses
import functools

from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax, tree, tree_util

PARAMS = {"w": jnp.ones(3), "b": {"c": jnp.ones(3)}}


class Model:
    """No pytree."""

    def __init__(self):
        self.w = jnp.ones(3)

    @jax.jit
    def apply(self, x):
        return x * self.w


@dataclasses.dataclass
class State:
    """A dataclass is no pytree until it is registered."""
    w: object
    step: int


@mistake(ValueError, "tree.map", "['b']", "dict", "leaf", advice="does not have the structure of the first tree")
def map_over_another_structure():
    return tree.map(jnp.add, PARAMS, {"w": jnp.ones(3), "b": jnp.ones(3)})  # <-


@mistake(ValueError, "tree.map", "2 keys", "1 key", "Dict key mismatch", advice="only tree 2 has 'm'")
def map_over_another_key():
    return tree.map(jnp.add, {"w": 1.0}, {"w": 1.0, "m": 2.0})  # <-


@mistake(ValueError, "tree.map", "list of length 2", "list of length 3", advice="structure of the first tree")
def map_over_another_length():
    return tree.map(jnp.add, [1.0, 2.0], [1.0, 2.0, 3.0])  # <-


@mistake(ValueError, "tree.map", "a list of length 2", "a tuple of length 2", advice="structure of the first tree")
def list_for_a_tuple():
    return tree.map(jnp.add, [1.0, 2.0], (1.0, 2.0))  # <-


@mistake(ValueError, "tree.map", "['w']", "None", advice="None is an empty container, not a leaf")
def gradient_where_there_is_no_parameter():
    return tree.map(jnp.add, {"w": None}, {"w": jnp.ones(3)})  # <-


@mistake(TypeError, "add", "NoneType", "position 1", advice="is a return missing?")
def no_gradient_for_a_parameter():
    return tree.map(jnp.add, {"w": jnp.ones(3)}, {"w": None})  # <-


@mistake(TypeError, "tree.map", "dict", advice="takes (f, tree, *rest)")
def tree_before_the_function():
    return tree.map(PARAMS, jnp.sin)  # <-


@mistake(TypeError, "tree.map()", "'tree'", advice="its parameters are f, tree")
def map_of_nothing():
    return tree.map(jnp.add)  # <-


@mistake(ValueError, "tree.leaves", "int, str", advice="use keys of one type")
def keys_without_order():
    return tree.leaves({1: 1.0, "a": 2.0})  # <-


@mistake(ValueError, "keys of the dict", "NoneType, str", advice="use keys of one type")
def keys_without_order_in_an_argument():
    return jax.jit(lambda p: p)({None: 1.0, "a": 2.0})  # <-


@mistake(ValueError, "tree.unflatten", "Too few leaves", "[*, *]", advice="expected 2, got 1")
def too_few_leaves():
    return tree.unflatten(tree.structure([1, 2]), [1.0])  # <-


@mistake(ValueError, "tree.unflatten", "Too many leaves", "[*, *]", advice="expected 2")
def too_many_leaves():
    return tree.unflatten(tree.structure([1, 2]), [1.0, 2.0, 3.0])  # <-


@mistake(TypeError, "tree.unflatten", "list", advice="takes (treedef, leaves)")
def leaves_before_the_structure():
    return tree.unflatten([1.0], tree.structure(0))  # <-


@mistake(TypeError, "tree.reduce", "no leaves", advice="tree.reduce(function, tree, 0.0)")
def reduction_of_nothing():
    return tree.reduce(jnp.add, {})  # <-


@mistake(TypeError, "jit of apply", "argument self", "Model", advice="static_argnums=0")
def jit_of_a_method():
    return Model().apply(jnp.ones(3))  # <-


@mistake(TypeError, "jit of step", "argument state", "State", advice="register its class as a pytree")
def dataclass_that_is_not_registered():
    def step(state):
        return state
    return jax.jit(step)(State(jnp.ones(3), 0))  # <-


@mistake(TypeError, "grad of loss", "argument model", "Model", advice="register its class as a pytree")
def gradient_by_an_object():
    def loss(model):
        return model.w.sum()
    return jax.grad(loss)(Model())  # <-


@mistake(TypeError, "vmap of run", "argument model", "Model", advice="in_axes=None")
def object_that_is_mapped():
    def run(model, x):
        return x
    return jax.vmap(run)(Model(), jnp.ones(3))  # <-


@mistake(TypeError, "lax.scan", "argument c", "Model", advice="register its class as a pytree")
def object_in_a_carry():
    def body(c, x):
        return c, x
    return lax.scan(body, Model(), jnp.ones(3))  # <-


@mistake(TypeError, "jit", "f", "output component ['model']", "Model", advice="return arrays, numbers, or pytrees of them")
def object_that_is_returned():
    def f(x):
        return {"model": Model(), "x": x}
    return jax.jit(f)(1.0)  # <-


@mistake(TypeError, "grad of loss", "argument params['activation']", "str", advice="close over it")
def text_in_parameters():
    def loss(params):
        return params["w"].sum()
    return jax.grad(loss)({"w": jnp.ones(3), "activation": "relu"})  # <-


@mistake(TypeError, "jit of step", "argument state['opt'][1]['schedule']", "function", advice="static_argnums")
def function_deep_in_a_state():
    def step(state):
        return state
    return jax.jit(step)({"opt": (jnp.ones(3), {"schedule": lambda i: i})})  # <-


@mistake(TypeError, "grad", "int32", "params['n']", advice="x.astype(float)")
def int_in_parameters():
    def loss(params):
        return params["w"].sum() * params["n"]
    return jax.grad(loss)({"w": jnp.ones(3), "n": 3})  # <-


@mistake(TypeError, "jnp.sum", "params['w'][0]: float32[]", "list", advice="jnp.array(...)")
def list_of_numbers_in_parameters():
    def loss(params):
        return jnp.sum(params["w"])  # <-
    return jax.jit(loss)({"w": [1.0, 2.0]})


@mistake(TypeError, "grad of loss", "Output was None", advice="lack a `return`?")
def loss_without_return():
    def loss(w):
        jnp.sum(w ** 2)
    return jax.grad(loss)(jnp.ones(3))  # <-


@mistake(TypeError, "of loss", "{'loss': *}", advice="has_aux=True")
def loss_in_a_dict():
    def loss(w):
        return {"loss": w.sum()}
    return jax.value_and_grad(loss)(jnp.ones(3))  # <-


@mistake(TypeError, "grad of loss", "(*, *)", advice="has_aux=True")
def loss_and_more():
    def loss(w):
        return w.sum(), w
    return jax.grad(loss)(jnp.ones(3))  # <-


@mistake(TypeError, "grad of loss", "two-element tuple", "f32[]", advice="(loss, state)")
def loss_without_what_has_aux_promised():
    def loss(w):
        return w.sum()
    return jax.grad(loss, has_aux=True)(jnp.ones(3))  # <-


@mistake(ValueError, "vmap of f", "p['w'] of type float32[3]", "p['b'] of type float32[4]", advice="None in in_axes")
def batches_of_two_sizes():
    def f(p):
        return p["w"]
    return jax.vmap(f)({"w": jnp.ones(3), "b": jnp.ones(4)})  # <-


@mistake(ValueError, "vmap in_axes", "only the value has 'b'", advice="must be a tree prefix")
def axes_for_some_of_the_keys():
    def f(p):
        return p["w"]
    return jax.vmap(f, in_axes=({"w": 0},))({"w": jnp.ones(3), "b": jnp.ones(3)})  # <-


@mistake(TypeError, "lax.scan", "carry c is", "dict with 1 key", "leaf", advice="Return a carry of the structure")
def carry_of_another_structure():
    def body(c, x):
        return c["h"], x
    return lax.scan(body, {"h": jnp.ones(3)}, jnp.ones(3))  # <-


@mistake(TypeError, "lax.cond", "true_fun", "only false_fun has 'y'", advice="Return the same structure")
def branches_of_two_structures():
    return lax.cond(True, lambda: {"x": 1.0}, lambda: {"x": 1.0, "y": 2.0})  # <-


@mistake(TypeError, "jvp", "only primals has 'w'", "only tangents has 'v'", advice="must have the same tree structure")
def tangent_of_another_key():
    return jax.jvp(lambda p: p["w"], ({"w": 1.0},), ({"v": 1.0},))  # <-


@mistake(ValueError, "vjp", "only the output has 'w'", advice="out was a dict")
def cotangent_of_another_key():
    _, pull = jax.vjp(lambda p: p, {"w": 1.0})
    return pull({"v": 1.0})  # <-


@mistake(TypeError, "device_put", "'text'", "str", advice="expected an array")
def text_for_a_device():
    return jax.device_put({"a": "text"})  # <-


@mistake(TypeError, "tree_util.register_pytree_node", "State", advice="only a class")
def registering_an_object():
    tree_util.register_pytree_node(State(1.0, 2), lambda s: ((), None), lambda _, xs: None)  # <-


@mistake(AttributeError, "tree_util.register_pytree_node_class", "Plain", advice="needs a method `tree_flatten`")
def registering_a_class_without_methods():
    class Plain:
        pass
    tree_util.register_pytree_node_class(Plain)  # <-


@mistake(ValueError, "tree_util.register_dataclass", "State", "{'step'}", advice="drop_fields")
def registering_some_of_the_fields():
    tree_util.register_dataclass(State, data_fields=["w"], meta_fields=[])  # <-


@mistake(ValueError, "static arguments", "argument 1 of f", "dict", advice="__hash__ and __eq__")
def static_dict():
    @functools.partial(jax.jit, static_argnums=1)
    def f(x, config):
        return x
    return f(1.0, {"width": 3})  # <-
