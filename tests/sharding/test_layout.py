"""experimental.layout: how arrays lie in memory, and what a program may say of it."""
import numpy as np
import pytest
from mesh8 import line

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.experimental.layout import Format, Layout, with_layout_constraint

COLUMNS = Layout((1, 0))
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_arrays_and_compiled_programs_say_how_they_lie():
    x, lies = jnp.asarray(X), jax.NamedSharding(line(), jax.P("x"))
    assert x.format == Format(Layout((0, 1), ()), x.sharding)
    assert jax.device_put(jnp.ones((8, 2, 3)), lies).format == Format(Layout((0, 1, 2), ()), lies)
    compiled = jax.jit(lambda x, y, *, n: {"a": x.T @ x, "b": n + y}).lower(x, 2, n=1.0).compile()
    assert compiled.input_formats == ((x.format, jnp.float32(1).format), {"n": jnp.float32(1).format})
    assert compiled.output_formats == {"a": x.format, "b": jnp.float32(1).format}
    unused = jax.jit(lambda x, y: x).lower(x, 2).compile()
    assert unused.input_formats == ((x.format, None), {})


def test_formats_stand_where_shardings_do():
    x, lies = jnp.asarray(X), jax.NamedSharding(line(), jax.P())
    assert jax.device_put(x, x.format).format == x.format
    assert jax.device_put(x, Format(Layout((0, 1)), lies)).sharding == lies
    f = jax.jit(lambda x: x + 1, in_shardings=Format(Layout.AUTO), out_shardings=Format(None, lies))
    assert f(x).sharding == lies
    assert jax.ShapeDtypeStruct((3,), np.float32, sharding=Format(None, lies)).sharding == lies


def test_another_layout_between_programs_is_not_supported():
    x = jnp.asarray(X)
    for call in (lambda f: jax.device_put(x, f), lambda f: jax.jit(jnp.sin, in_shardings=f)(x)):
        with pytest.raises(NotImplementedError, match=r"Layout\(major_to_minor=\(1, 0\).*with_layout_constraint"):
            call(Format(COLUMNS, x.sharding))


def test_a_constraint_within_a_program():
    f = lambda x: with_layout_constraint({"a": x * 2, "b": x}, {"a": COLUMNS, "b": None})["a"] + 1
    lowered = jax.jit(f).lower(X)
    assert "@LayoutConstraint" in lowered.as_text() and "result_layouts = [dense<[0, 1]>" in lowered.as_text()
    np.testing.assert_array_equal(lowered.compile()(X), X * 2 + 1)
    g = jax.jit(jax.grad(lambda x: jnp.sum(f(x) ** 2)))
    np.testing.assert_array_equal(g(X), 4 * (2 * X + 1))
    mapped = jax.make_jaxpr(jax.vmap(lambda x: with_layout_constraint(x, COLUMNS), in_axes=1))(np.ones((3, 2, 4), "f"))
    assert mapped.eqns[0].params["layout"] == Layout((1, 2, 0))
    np.testing.assert_array_equal(with_layout_constraint(X, Layout.AUTO), X)


@pytest.mark.quick
def test_layouts_and_formats_are_values():
    assert Layout((1, 0)) == Layout([1, 0]) != Layout((0, 1)) and hash(COLUMNS) == hash(Layout((1, 0)))
    assert repr(COLUMNS) == "Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)"
    assert repr(Layout.AUTO) == "Layout.AUTO" and Layout.AUTO != Layout(()) and Format() == Format(None, None)
    tiled = Layout.parse("{0,1:T(8,128)(2,1)E(4)}")
    assert tiled == Layout((1, 0), ((8, 128), (2, 1)), 4) and Layout.parse("{}") == Layout((), ())


@pytest.mark.quick
@pytest.mark.parametrize("call, error, words", [
    (lambda: with_layout_constraint(X, Layout((0,))), ValueError, r"does not order the 2 axes of .* \(3, 4\)"),
    (lambda: with_layout_constraint(X, Layout((0, 0))), ValueError, "names each of them once"),
    (lambda: with_layout_constraint(X, (1, 0)), ValueError, "layouts"),
    (lambda: with_layout_constraint(X, Format()), TypeError, "layouts must be Layouts, got Format"),
    (lambda: jax.jit(lambda x: with_layout_constraint(x, Layout((0, 1), ((8, 128),)))).lower(X).as_text(),
     NotImplementedError, "tiles cannot be asked for within a program"),
    (lambda: Format(COLUMNS), ValueError, "needs a concrete sharding beside it, got None"),
    (lambda: Format((1, 0)), TypeError, r"layout must be a Layout, Layout.AUTO or None, got \(1, 0\)"),
    (lambda: Format(None, "x"), TypeError, "sharding must be a Sharding or None, got 'x'")])
def test_what_does_not_fit_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
