"""Tests of `core/debug_info`: what a program knows of the function that it was traced from."""
import functools

import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.debug_info import DebugInfo

pytestmark = pytest.mark.quick


def f(x, y, *rest, z=1, **others):
    return {"a": x, "b": (y,)}


class Model:
    def apply(self, x):
        return x


HERE = f"f at {__file__}:{f.__code__.co_firstlineno}"


@pytest.mark.parametrize("fun, args, kwargs, arg_names, result_paths", [
    (f, (1, 2), {}, ("x", "y"), ("result['a']", "result['b'][0]")),
    (f, (1, 2, 3), {"z": 4, "q": 5}, ("x", "y", "rest[0]", "others['q']", "z"), ("result['a']", "result['b'][0]")),
    (f, ({"u": 1}, (2, 3)), {}, ("x['u']", "y[0]", "y[1]"), ("result['a']['u']", "result['b'][0][0]",
                                                             "result['b'][0][1]")),
    (functools.partial(f, 1), (2,), {}, ("y",), ("result['a']", "result['b'][0]")),
    (functools.partial(f, z=1), (2, 3), {}, ("x", "y"), ("result['a']", "result['b'][0]")),
])
def test_of_a_function(fun, args, kwargs, arg_names, result_paths):
    assert jax.make_jaxpr(fun)(*args, **kwargs).debug_info == DebugInfo("jit", HERE, arg_names, result_paths)


def test_of_static_arguments_and_methods():
    static = jax.jit(f, static_argnums=0, static_argnames="z").trace(1, 2, z=3).jaxpr.debug_info
    assert static.arg_names == ("y",)
    method = jax.make_jaxpr(Model().apply)(1).debug_info
    assert (method.func_name, method.arg_names) == ("apply", ("x",))


def _body(c, a):
    return c + a, c


@pytest.mark.parametrize("fun, parameter, traced_for, arg_names", [
    (lambda x: lax.scan(_body, 0., x), "jaxpr", "scan", ("c", "a")),
    (lambda x: lax.scan(lambda c, a: (c * x[0], a), 0., x), "jaxpr", "scan", ("", "c", "a")),
    (lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), "cond_jaxpr", "while_cond", ("c",)),
    (lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda d: d + 1, x), "body_jaxpr", "while_body", ("d",)),
    (lambda x: jax.jit(lambda y: y + 1)(x), "jaxpr", "jit", ("y",)),
    (lambda x: jax.checkpoint(lambda y: y + 1)(x), "jaxpr", "checkpoint / remat", ("y",)),
])
def test_of_a_program_in_a_program(fun, parameter, traced_for, arg_names):
    eqns = jax.make_jaxpr(fun)(jnp.ones(3)).eqns
    info = next(e for e in eqns if parameter in e.params).params[parameter].debug_info
    assert (info.traced_for, info.arg_names) == (traced_for, arg_names)


def test_what_a_debug_info_tells():
    info = DebugInfo("jit", "f at /a/b.py:12", ("x", "y"), lambda: ("result",))
    assert (info.func_name, info.func_filename, info.func_lineno) == ("f", "/a/b.py", 12)
    assert info.safe_arg_names(2) == ("x", "y") and info.safe_arg_names(3) == ("",) * 3
    assert info.safe_result_paths(1) == ("result",) and info.safe_result_paths(2) == ("", "")
    assert info.filter_arg_names([False, True]) == ("y",) and info.filter_result_paths([False]) == ()
    assert info.replace_func_name("g").func_src_info == "g at /a/b.py:12"
    assert info.with_unknown_names() == DebugInfo("jit", "f at /a/b.py:12")
    unknown = DebugInfo("jit", "f")
    assert (unknown.func_name, unknown.func_filename, unknown.func_lineno) == ("f", None, None)
