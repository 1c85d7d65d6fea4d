"""experimental.layout: how arrays lie in memory, and what a program may say of it."""
import copy
import itertools
import pickle

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


@pytest.mark.parametrize("options",
                         [{"in_shardings": Format(Layout.AUTO)}, {"out_shardings": Format(Layout.AUTO)}])
def test_the_compilers_layout_commits_nothing(options):
    f = jax.jit(lambda x: x * 2, **options)
    assert not f(jnp.asarray(X)).committed and not f(X).committed
    assert not f.lower(X).compile()(jnp.asarray(X)).committed
    if "out_shardings" in options:
        y = f(jax.device_put(X, jax.devices()[1]))
        assert y.devices() == {jax.devices()[1]} and y.committed


DEVICE = jax.sharding.SingleDeviceSharding(jax.devices()[0])
BY_COLUMNS = Format(COLUMNS, DEVICE)


def assert_columns(x, value):
    """It is in memory by columns, as it says, and has the value."""
    assert x.format.layout.major_to_minor == (1, 0) and x.committed
    np.testing.assert_array_equal(np.asarray(x), np.asarray(value))


@pytest.mark.parametrize("there, options",
                         [(lambda: jax.devices()[1], {}),
                          (lambda: jax.devices()[0], {}),
                          (lambda: jax.NamedSharding(line(), jax.P()), {}),
                          (lambda: jax.devices()[1], {"may_alias": False}),
                          (lambda: None, {"may_alias": False}),
                          (lambda: jax.devices()[1], {"donate": True}),
                          (lambda: None, {})])
def test_where_it_is_put_it_keeps_its_layout(there, options):
    x = jax.device_put(X, BY_COLUMNS)
    assert_columns(jax.device_put(x, there(), **options), X)


def test_parts_keep_their_layout_where_they_are_put_whole():
    mesh, other = (jax.sharding.Mesh(jax.devices()[i:i + 2], "x") for i in (0, 2))
    x = jax.device_put(X.T, Format(COLUMNS, jax.NamedSharding(mesh, jax.P("x"))))
    assert_columns(jax.device_put(x, jax.NamedSharding(other, jax.P("x"))), X.T)
    for there in (jax.NamedSharding(mesh, jax.P()), jax.devices()[1]):
        np.testing.assert_array_equal(jax.device_put(x, there), X.T)
        assert jax.device_put(x, there).format.layout.major_to_minor == (0, 1)


def test_arrays_are_put_in_a_layout_and_used_by_any_program():
    x = jax.device_put(X, BY_COLUMNS)
    assert x.format == BY_COLUMNS == jax.device_put(
        jnp.asarray(X), BY_COLUMNS).format and x.sharding == DEVICE
    assert_columns(x, X)
    np.testing.assert_array_equal(x @ X.T, X @ X.T)
    np.testing.assert_array_equal(x + x, X + X)
    np.testing.assert_array_equal(x[1:, 2], X[1:, 2])
    f = jax.jit(lambda x: x.T * 2)
    for given in (x, X, jnp.asarray(X), x):
        np.testing.assert_array_equal(f(given), X.T * 2)
    assert f.lower(x).compile().input_formats == ((BY_COLUMNS,), {})
    np.testing.assert_array_equal(jax.grad(lambda x: jnp.sum(x * x))(x), 2 * X)
    back = jax.device_put(x, Format(Layout((0, 1)), DEVICE))
    assert back.format == jax.device_put(X, DEVICE).format
    np.testing.assert_array_equal(back, X)
    for copied in (pickle.loads(pickle.dumps(x)), copy.copy(x), np.from_dlpack(x)):
        np.testing.assert_array_equal(copied, X)
    other = jax.device_put(x, jax.devices()[1])
    np.testing.assert_array_equal(other + 1, X + 1)


def test_layouts_of_what_programs_take_and_give():
    f = jax.jit(lambda x, y: {"a": x + y, "b": x * y}, in_shardings=(BY_COLUMNS, None),
                out_shardings={"a": None, "b": BY_COLUMNS})
    for x in (X, jnp.asarray(X), jax.device_put(X, BY_COLUMNS)):
        found = f(x, X)
        assert_columns(found["b"], X * X)
        assert found["a"].format.layout == Layout((0, 1)) and found["a"].sharding == DEVICE
    with pytest.raises(ValueError, match="argument x of .*Layout passed to jit does not match the layout on"):
        f(jax.device_put(X, DEVICE), X)
    np.testing.assert_array_equal(jax.jit(lambda x: f(x, x)["b"] + 1)(X), X * X + 1)
    donating = jax.jit(lambda x: x + 1, donate_argnums=0, in_shardings=BY_COLUMNS, out_shardings=BY_COLUMNS)
    x = jax.device_put(X, BY_COLUMNS)
    assert_columns(donating(x), X + 1)
    assert x.is_deleted()
    exported = jax.export.export(jax.jit(lambda x: x.T, in_shardings=BY_COLUMNS))(X)
    np.testing.assert_array_equal(exported.call(jax.device_put(X, BY_COLUMNS)), X.T)


def test_types_of_results_have_the_shardings_that_were_asked_for():
    rows = jax.NamedSharding(line(), jax.P("x"))
    for asked in rows, BY_COLUMNS, DEVICE:
        f = jax.jit(lambda x: (x * 2, {"n": x.sum()}), out_shardings=(asked, None))
        want = jax.ShapeDtypeStruct((8, 4), np.float32, sharding=asked), {
            "n": jax.ShapeDtypeStruct((), np.float32)}
        x = np.ones((8, 4), np.float32)
        for found in f.eval_shape(x), jax.eval_shape(f, x), f.trace(x).out_info, f.lower(x).out_info:
            assert found == want
        compiled = f.lower(x).compile()
        assert [s.format for s in jax.tree.leaves(compiled.out_info)] == [
            y.format for y in jax.tree.leaves(f(x))]
    assert repr(want[0].update(sharding=BY_COLUMNS)).endswith(f", sharding={DEVICE}, format={COLUMNS})")
    assert jax.eval_shape(lambda x: x, want[0]).sharding is None


def test_a_compiled_program_takes_the_layouts_it_was_compiled_for():
    struct = jax.ShapeDtypeStruct((3, 4), np.float32, sharding=BY_COLUMNS)
    assert struct.format == BY_COLUMNS and struct.sharding == DEVICE and struct.update(
        shape=(4, 3)).format == BY_COLUMNS
    compiled = jax.jit(lambda x: x + 1, out_shardings=BY_COLUMNS).lower(struct).compile()
    assert compiled.input_formats == ((BY_COLUMNS,), {}) and compiled.output_formats == BY_COLUMNS
    for given in (jax.device_put(X, BY_COLUMNS), X, jnp.asarray(X)):
        assert_columns(compiled(given), X + 1)
    words = "Computation was compiled for input layouts that disagree with the layouts of arguments passed to it"
    with pytest.raises(ValueError, match=words):
        compiled(jax.device_put(X, DEVICE))
    with pytest.raises(ValueError, match=words):
        jax.jit(jnp.sin).lower(X).compile()(jax.device_put(X, BY_COLUMNS))


def test_the_compiler_chooses_a_layout():
    auto = Format(Layout.AUTO)
    struct = jax.ShapeDtypeStruct((3, 4), np.float32, sharding=DEVICE)
    compiled = jax.jit(lambda x: x.T, in_shardings=auto, out_shardings=auto).lower(struct).compile()
    x = jax.device_put(X, compiled.input_formats[0][0])
    assert compiled(x).format == compiled.output_formats
    np.testing.assert_array_equal(compiled(x), X.T)
    f = jax.jit(lambda x: x.T @ x, in_shardings=auto, out_shardings=auto)
    np.testing.assert_array_equal(f(X), X.T @ X)
    with pytest.raises(ValueError, match="Layout passed to jit does not match"):
        f.lower(jax.device_put(X, DEVICE))
    assert pickle.loads(pickle.dumps(Layout.AUTO)) is Layout.AUTO is copy.deepcopy(Layout.AUTO)


def test_layouts_over_devices():
    x, lies = np.arange(32, dtype=np.float32).reshape(8, 4), jax.NamedSharding(line(), jax.P("x"))
    form = Format(COLUMNS, lies)
    placed = jax.device_put(x, form)
    assert placed.format == form and placed.sharding == lies and (placed + 1).sharding == lies
    assert_columns(placed, x)
    assert_columns(placed.addressable_shards[3].data, x[3:4])
    assert_columns(jax.jit(lambda x: x * 2, out_shardings=form)(placed), 2 * x)
    assert_columns(jax.device_put(placed, Format(COLUMNS, jax.NamedSharding(line(), jax.P()))), x)
    assert_columns(jax.device_put(placed, BY_COLUMNS), x)
    np.testing.assert_array_equal(jax.device_put(placed, jax.NamedSharding(line(), jax.P())), x)
    np.testing.assert_array_equal(jax.jit(lambda x: x, out_shardings=Format(Layout.AUTO))(placed), x)


@pytest.mark.parametrize("dtype", ["bfloat16", "bool", "int4", "uint4", "complex64", "int8"])
def test_every_dtype_in_a_layout(dtype):
    x = jnp.asarray(X % 2).astype(dtype)
    placed = jax.device_put(x, BY_COLUMNS)
    assert_columns(placed, x)
    assert_columns(jax.jit(lambda x: x, out_shardings=BY_COLUMNS)(placed), x)
    assert jax.device_put(placed, placed.format).format == placed.format
    np.testing.assert_array_equal(np.asarray(jax.device_put(placed, DEVICE)), np.asarray(x))


def test_empty_arrays_and_scalars_in_a_layout():
    assert jax.device_put(np.zeros((0, 4), np.float32), BY_COLUMNS).format == BY_COLUMNS
    assert jax.device_put(3.0, Format(Layout(()), DEVICE)) == 3
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for order in itertools.permutations(range(3)):
        placed = jax.device_put(x, Format(Layout(order), DEVICE))
        assert placed.format.layout.major_to_minor == order
        np.testing.assert_array_equal(placed, x)


@pytest.mark.parametrize("layout, words", [
    (Layout((0,)), "rank of the value should match"), (Layout((0, 0)), "each of them once"),
    (Layout((2, 1, 0)), "rank of the value should match"),
    (Layout((1, 0), ((8, 128),)), "the CPU has no layouts in tiles")])
@pytest.mark.parametrize("call", [
    lambda f: jax.device_put(X, f), lambda f: jax.jit(jnp.sin, in_shardings=f)(X),
    lambda f: jax.jit(jnp.sin, out_shardings=f)(X), lambda f: jax.ShapeDtypeStruct((3, 4), "f", sharding=f)])
def test_a_layout_that_does_not_fit(call, layout, words):
    with pytest.raises(ValueError, match=words):
        call(Format(layout, DEVICE))


def test_the_compilers_choice_is_not_for_device_put():
    with pytest.raises(ValueError, match="must be concrete, got Layout.AUTO"):
        jax.device_put(X, Format(Layout.AUTO, DEVICE))
    np.testing.assert_array_equal(jax.lax.with_sharding_constraint(X, BY_COLUMNS), X)


def test_the_layout_given_to_jit_is_that_of_the_array():
    rows, columns = Format(Layout((0, 1)), DEVICE), jax.device_put(X, BY_COLUMNS)
    for array, asked in ((columns, rows), (jax.device_put(X, DEVICE), BY_COLUMNS)):
        with pytest.raises(ValueError,
                           match="Layout passed to jit does not match the layout on the respective arg"):
            jax.jit(jnp.sin, in_shardings=asked)(array)
    for array in columns, X:
        np.testing.assert_allclose(jax.jit(jnp.sin, in_shardings=BY_COLUMNS)(array), np.sin(X), rtol=1e-6)


def test_a_constraint_outside_of_programs_moves_an_array():
    assert_columns(with_layout_constraint(jax.device_put(X, DEVICE), COLUMNS), X)
    with pytest.raises(ValueError, match="eager mode can only be applied to jax.Arrays"):
        with_layout_constraint(X, COLUMNS)


def test_a_constraint_within_a_program():
    f = lambda x: with_layout_constraint({"a": x * 2, "b": x}, {"a": COLUMNS, "b": None})["a"] + 1
    lowered = jax.jit(f).lower(X)
    assert "@LayoutConstraint" in lowered.as_text() and "result_layouts = [dense<[0, 1]>" in lowered.as_text()
    np.testing.assert_array_equal(lowered.compile()(X), X * 2 + 1)
    g = jax.jit(jax.grad(lambda x: jnp.sum(f(x) ** 2)))
    np.testing.assert_array_equal(g(X), 4 * (2 * X + 1))
    mapped = jax.make_jaxpr(jax.vmap(lambda x: with_layout_constraint(x, COLUMNS), in_axes=1))(
        np.ones((3, 2, 4), "f"))
    assert mapped.eqns[0].params["layout"] == Layout((1, 2, 0))
    columns, sharded = (jax.jit(lambda x: (with_layout_constraint(x * 2, COLUMNS), x), out_shardings=out)(X)
                        for out in (None, jax.NamedSharding(line(), jax.P())))
    for result, as_given in columns, sharded:       # a result that is constrained is in that layout
        assert_columns(result, X * 2)
        assert as_given.format.layout.major_to_minor == (0, 1)
    np.testing.assert_array_equal(with_layout_constraint(X, Layout.AUTO), X)


@pytest.mark.quick
def test_layouts_and_formats_are_values():
    assert Layout((1, 0)) == Layout([1, 0]) != Layout((0, 1)) and hash(COLUMNS) == hash(Layout((1, 0)))
    assert repr(COLUMNS) == "Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)"
    assert repr(Layout.AUTO) == "AUTO" and Layout.AUTO != Layout(()) and Format() == Format(None, None)
    tiled = Layout.parse("{0,1:T(8,128)(2,1)E(4)}")
    assert tiled == Layout((1, 0), ((8, 128), (2, 1)), 4) and Layout.parse("{}") == Layout((), ())


@pytest.mark.quick
@pytest.mark.parametrize("call, error, words", [
    (lambda: with_layout_constraint(jnp.asarray(X), Layout((0,))), ValueError,
     r"rank of the value.*shape=\(3, 4\)"),
    (lambda: with_layout_constraint(jnp.asarray(X), Layout((0, 0))), ValueError, "each of them once"),
    (lambda: with_layout_constraint(X, (1, 0)), ValueError, "layouts"),
    (lambda: with_layout_constraint(X, Format()), ValueError, "must be of type `Layout`. Got .*Format"),
    (lambda: jax.jit(lambda x: with_layout_constraint(x, Layout((0, 1), ((8, 128),)))).lower(X).as_text(),
     NotImplementedError, "tiles cannot be asked for within a program"),
    (lambda: Format(COLUMNS), ValueError, "Sharding has to be concrete .* Got sharding None"),
    (lambda: Format((1, 0)), TypeError,
     r"Invalid value received for the layout argument.* Got \(1, 0\) of type"),
    (lambda: Format(None, "x"), TypeError,
     "Invalid value received for the sharding argument.* Got x of type")])
def test_what_does_not_fit_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
