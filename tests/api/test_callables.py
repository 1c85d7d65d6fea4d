"""Whatever is callable can be transformed: objects, partials and mocks, whose names may be missing, or no
strings."""
import functools
from unittest import mock

import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.api.signatures import name_of

X = jnp.float32(0.5)
ROW = jnp.array([0.5, 1.5])


def scaled(scale, x):
    return scale * jnp.sin(x)


class Nameless:
    def __call__(self, x):
        return jnp.sin(x)

    def method(self, x):
        return jnp.sin(x)


class Numbered(Nameless):
    __name__ = 5
    __doc__ = 7


class Bytes(Nameless):
    __name__ = b"sin"


class Empty(Nameless):
    __name__ = ""


class Evasive(Nameless):
    """Has any attribute, all of them None."""
    def __getattr__(self, name):
        return None


class Angry(Nameless):
    @property
    def __name__(self):
        raise RuntimeError("no name")


def strange(x):
    return jnp.sin(x)


strange.__name__ = 'a "b"\n\\ <é>'

# what is called -> its name
CALLABLES = {
    "object": (Nameless(), "Nameless"), "method": (Nameless().method, "method"),
    "number": (Numbered(), "Numbered"),
    "bytes": (Bytes(), "Bytes"), "empty": (Empty(), "Empty"), "any attribute": (Evasive(), "Evasive"),
    "raises": (Angry(), "Angry"), "partial": (functools.partial(scaled, 1.0), "scaled"),
    "partial of partial": (functools.partial(functools.partial(scaled), 1.0), "scaled"),
    "partial of object": (functools.partial(Nameless()), "Nameless"),
    "mock": (mock.Mock(side_effect=jnp.sin), "Mock"),
    "magic mock": (mock.MagicMock(side_effect=jnp.sin), "MagicMock"),
    "strange name": (strange, strange.__name__),
    "ufunc": (jnp.sin, "sin"), "jitted": (jax.jit(Numbered()), "Numbered"),
}


def custom_jvp(f):
    g = jax.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (f(*primals), jnp.cos(*primals) * tangents[0]))
    return g


def custom_vjp(f):
    g = jax.custom_vjp(lambda x: f(x))
    g.defvjp(mock.Mock(side_effect=lambda x: (f(x), x)), functools.partial(
        lambda scale, x, ct: (scale * ct * jnp.cos(x),), 1.0))
    return g


# transformations of a function, as functions of one number that give one
TRANSFORMS = {
    "jit": jax.jit,
    "jit with options": lambda f: jax.jit(f, keep_unused=True, donate_argnums=(), static_argnums=()),
    "compiled ahead": lambda f: lambda x: jax.jit(f).lower(x).compile()(x),
    "text with locations": lambda f: lambda x: jax.jit(f).lower(x).as_text(debug_info=True) and f(x),
    "jaxpr": lambda f: lambda x: str(jax.make_jaxpr(lambda y: jax.checkpoint(custom_jvp(f))(y))(x)) and f(x),
    "eval_shape": lambda f: lambda x: jnp.zeros_like(jax.eval_shape(f, x)) + f(x),
    "vmap": lambda f: lambda x: jax.vmap(f)(x[None])[0],
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,))[0],
    "linearize": lambda f: lambda x: jax.linearize(f, x)[0],
    "vjp": lambda f: lambda x: jax.vjp(f, x)[0],
    "value_and_grad": lambda f: lambda x: jax.value_and_grad(f)(x)[0],
    "checkpoint": jax.checkpoint,
    "custom_jvp": custom_jvp,
    "custom_vjp": custom_vjp,
    "custom_gradient": lambda f: jax.custom_gradient(lambda x: (f(x), lambda ct: ct * jnp.cos(x))),
    "closure_convert": lambda f: lambda x: jax.closure_convert(f, x)[0](x),
    "named_call": jax.named_call,
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (c, f(c)), x, None, 1)[1][0],
    "map": lambda f: lambda x: lax.map(f, x[None])[0],
    "cond": lambda f: lambda x: lax.cond(x < 1, f, jnp.cos, x),
    "switch": lambda f: lambda x: lax.switch(0, [f, jnp.cos], x),
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 1, lambda _, c: f(c), x),
    "while_loop": lambda f: lambda x: lax.while_loop(lambda c: c[1] < 1, lambda c: (f(c[0]), c[1] + 1),
                                                     (x, 0))[0],
    "pure_callback": lambda f: lambda x: jax.pure_callback(lambda y: f(jnp.asarray(y)), x, x),
    "vectorize": jnp.vectorize,
    "frompyfunc": lambda f: jnp.frompyfunc(f, 1, 1),
    "apply_along_axis": lambda f: lambda x: jnp.apply_along_axis(f, 0, x[None])[0],
    "piecewise": lambda f: lambda x: jnp.piecewise(x, [x < 1], [f]),
    "tree.map": lambda f: lambda x: jax.tree.map(f, [x])[0],
    "jit of vmap of grad": lambda f: lambda x: jnp.sin(x) - jnp.cos(x)
    + jax.jit(jax.vmap(jax.grad(f)))(x[None])[0],
}


@pytest.mark.parametrize("kind", CALLABLES)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_anything_callable_is_transformed(transform, kind):
    f = CALLABLES[kind][0]
    same(TRANSFORMS[transform](f)(X), jnp.sin(X))


@pytest.mark.parametrize("kind", [kind for kind, (_, name) in CALLABLES.items() if name])
def test_the_name_of_what_is_callable(kind):
    f, name = CALLABLES[kind]
    assert name_of(f) == name
    with pytest.raises(TypeError) as caught:
        jax.jit(f)(object())
    assert f"jit of {name}: " in str(caught.value)


def test_wrappers_take_what_a_function_can_have():
    assert jax.make_jaxpr(scaled).__wrapped__ is scaled
    for transform in jax.vmap, jax.grad, jax.checkpoint, jax.named_call, jax.jit, jax.custom_jvp, jax.pmap:
        wrapped = transform(Numbered())
        assert isinstance(wrapped.__wrapped__, Numbered)
        assert transform(scaled).__name__ == transform(functools.partial(scaled)).__name__ == "scaled"
        assert transform(scaled).__qualname__ == "scaled"
        assert wrapped.__name__ == "Numbered"
