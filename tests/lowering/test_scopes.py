"""The names of operations: scopes of the user's, of transformations, of calls and of control flow, as JAX has them."""
import re

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.source_info import scope_text


def layer(x):
    with jax.named_scope("a"):
        y = jnp.sin(x) * x
        with jax.named_scope("b"):
            return jnp.sum(jnp.cos(y))


def scanned(x):
    return lax.scan(lambda c, y: (c * jnp.sin(y), c), x, jnp.ones((4, 3)))[0].sum()


@jax.custom_jvp
def with_rule(x):
    return jnp.sin(x)


@with_rule.defjvp
def rule_of(primals, tangents):
    with jax.named_scope("rule"):
        return jnp.sin(primals[0]), jnp.cos(primals[0]) * tangents[0]


CASES = {
    "rule": (lambda x: jax.vmap(jax.grad(lambda y: with_rule(y) * 2))(x), "jit(<lambda>)/vmap(jvp(rule))/cos"),
    "scopes": (layer, "jit(layer)/a/sin jit(layer)/a/b/cos"),
    "vmap": (lambda x: jax.vmap(layer)(x[None]), "jit(<lambda>)/vmap(a)/sin jit(<lambda>)/vmap(a)/b/cos"),
    "jvp": (lambda x: jax.jvp(layer, (x,), (x,)), "jit(<lambda>)/jvp(a)/mul jit(<lambda>)/jvp(a)/b/neg"),
    "grad": (jax.grad(layer), "jit(layer)/jvp(a)/b/sin jit(layer)/transpose(jvp(a))/mul jit(layer)/transpose(jvp(a))/b/neg"),
    "vmap of grad": (lambda x: jax.vmap(jax.grad(layer))(x[None]),
                     "jit(<lambda>)/vmap(jvp(a))/sin jit(<lambda>)/vmap(transpose(jvp(a)))/mul"),
    "grad in a scope": (lambda x: jax.named_call(jax.grad(layer), name="s")(x),
                        "jit(<lambda>)/s/jvp(a)/sin jit(<lambda>)/s/transpose(jvp(a))/mul"),
    "linear_transpose": (lambda x: jax.linear_transpose(lambda y: y * 2, x)(x), "jit(<lambda>)/transpose()/mul"),
    "jacfwd": (jax.jacfwd(layer), "jit(layer)/vmap(jvp(a))/mul"),
    "a call": (lambda x: jax.jit(layer)(x) + 1, "jit(<lambda>)/jit(layer) jit(<lambda>)/add a/b/cos"),
    "grad of a call": (jax.grad(lambda x: jax.jit(layer)(x)),
                       "jit(<lambda>)/jvp(jit(layer)) jit(<lambda>)/transpose(jvp(jit(layer))) a/b/neg"),
    "scan": (scanned, "jit(scanned)/while/body/sin jit(scanned)/while/cond jit(scanned)/while/body"),
    "grad of a scan": (jax.grad(scanned), "jit(scanned)/jvp()/while/body/sin jit(scanned)/transpose(jvp())/while/body/mul"),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x)),
              "jit(<lambda>)/while jit(<lambda>)/while/cond/lt jit(<lambda>)/while/body/sin"),
    "cond": (lambda x: lax.cond(x[0] > 0, jnp.sin, lambda v: v * 2, x),
             "jit(<lambda>)/cond jit(<lambda>)/cond/branch_0_fun/mul jit(<lambda>)/cond/branch_1_fun/sin"),
    "control flow within": (lambda x: lax.fori_loop(0, 3, lambda i, y: lax.cond(i > 1, jnp.sin, jnp.cos, y), x),
                            "jit(<lambda>)/while/body/cond/branch_0_fun/cos"),
    "checkpoint": (lambda x: jax.checkpoint(layer)(x), "jit(<lambda>)/checkpoint a/b/cos"),
    "grad of checkpoint": (jax.grad(jax.checkpoint(layer)), "checkpoint/rematted_computation/a/cos checkpoint/a/b/neg"),
}


@pytest.mark.parametrize("name", CASES)
def test_operations_are_named_by_what_they_are_in(name):
    fun, expected = CASES[name]
    text = jax.jit(fun).lower(jnp.ones(3)).as_text(debug_info=True)
    names = set(re.findall(r'loc\("([^"]*)"', text))
    assert set(expected.split()) <= names, sorted(names)


@jax.custom_vjp
def ruled(x):
    return layer(x)


ruled.defvjp(lambda x: (layer(x), x), lambda x, ct: (ct * x,))


@pytest.mark.parametrize("fun", [jax.nn.relu, jax.nn.softmax, jnp.cumsum, lambda x: lax.cumlogsumexp(x), jnp.sort,
                                 jnp.std, jax.nn.gelu, ruled, jax.nn.logsumexp,
                                 lambda x: lax.reduce_window(x, 0., lax.add, (2,), (1,), "SAME"),
                                 lambda x: lax.associative_scan(jnp.maximum, x)])
def test_no_operation_is_twice_in_one_scope(fun):
    def scope(x):
        with jax.named_scope("s"):
            return jnp.sum(fun(x))

    for made in (scope, lambda x: jax.vmap(scope)(x[None]), jax.grad(scope),
                 lambda x: jax.vmap(jax.grad(scope))(x[None])):
        text = jax.jit(made).lower(jnp.arange(3.)).as_text(debug_info=True)
        for name in re.findall(r'loc\("([^"]*)"', text):
            scopes = name.split("/")[:-1]
            assert all(a != b for a, b in zip(scopes, scopes[1:])), name


def test_a_program_that_is_found_again_has_the_scopes_of_its_new_place():
    inner = jax.jit(layer)
    both = jax.jit(lambda x: jax.grad(inner)(x) + jax.named_call(jax.grad(inner), name="s")(x))
    names = set(re.findall(r'loc\("([^"]*)"', both.lower(jnp.ones(3)).as_text(debug_info=True)))
    assert {"jit(<lambda>)/jvp(jit(layer))", "jit(<lambda>)/s/jvp(jit(layer))", "a/b/neg"} <= names


def test_compiled_programs_have_the_names_of_calls_in_front():
    text = jax.jit(lambda x: jax.grad(jax.jit(layer))(x)).lower(jnp.ones(3)).compile().as_text()
    assert 'op_name="jit(<lambda>)/jvp(jit(layer))/a/' in text


@pytest.mark.parametrize("stack, text", [
    ("", ""), ("a/b", "a/b/"), ("jvp()", "jvp()/"), ("jvp()/a/b", "jvp(a)/b/"), ("vmap()/transpose()/jvp()/a", "vmap(transpose(jvp(a)))/"),
    ("a/vmap()/b/jvp()", "a/vmap(b)/jvp()/"), ("jvp()/jit(f)", "jvp(jit(f))/")])
def test_scopes_of_transformations_go_around_the_next(stack, text):
    assert scope_text(stack) == text


@pytest.mark.parametrize("f, want", [
    (lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=3)[0],
     {"jit(f)/while", "jit(f)/while/body/sin"}),
    (lambda x: jax.pure_callback(np.sin, x, x), {"jit(f)/pure_callback"}),
    (lambda x: jax.experimental.io_callback(np.sin, x, x), {"jit(f)/io_callback"}),
])
def test_operations_have_the_names_that_profiles_of_jax_show(f, want):
    f.__name__ = "f"
    text = jax.jit(f).lower(np.float32(1)).as_text(debug_info=True)
    assert all(f'loc("{name}"' in text for name in want)
