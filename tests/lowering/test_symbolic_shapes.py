"""Programs with symbolic sizes: the sizes that operations take as operands, what main computes and asserts."""
import re

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import export, lax

# what is computed from the sizes of an argument of shape (b, c)
SIZES = {
    "products": lambda b, c: [b * b, b * c, b ** 3 + 2 * b * c * c, -b + 7, 3 * b - 2 * c],
    "quotients": lambda b, c: [b // 2, (b - 5) // 2, (3 - c) // b, b // (c - 9), (b * c) // (b + c)],
    "remainders": lambda b, c: [b % 3, (b - 5) % 3, (b - 5) % (c - 9), (1 - b) % c],
}


def exported(f, *texts, constraints=(), **options):
    scope = export.SymbolicScope(constraints)
    shapes = [export.symbolic_shape(text, scope=scope) for text in texts]
    return export.export(jax.jit(f), **options)(*[jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes])


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_computed_as_python_does(name):
    program = exported(lambda x: SIZES[name](*x.shape), "b, c")
    for b, c in ((1, 1), (2, 3), (5, 2), (4, 4)):
        assert [int(size) for size in program.call(jnp.zeros((b, c)))] == SIZES[name](b, c), (b, c)


def test_shapes_of_results():
    def f(x):
        b, c = x.shape
        return [x.reshape(b * c), jnp.broadcast_to(x, (b, b, c)), jnp.concatenate([x, x], 0)[1:], jnp.zeros((b * b,)),
                lax.iota("int32", b + c), jnp.pad(x, ((0, 1), (2, 0))), x.T @ x, x[::-1, :1]]
    program = exported(f, "b, c", constraints=["b >= 2"])
    for b, c in ((2, 1), (3, 4)):
        x = np.arange(b * c, dtype=np.float32).reshape(b, c)
        for got, want in zip(program.call(x), f(jnp.asarray(x)), strict=True):
            np.testing.assert_allclose(got, want)
            assert got.shape == want.shape


@pytest.mark.parametrize("f", [
    lambda x: jax.random.bits(jax.random.key(0), x.shape), lambda x: jnp.interp(x, x[0], x[0]), lambda x: jnp.vander(x[0]),
    lambda x: jnp.average(x, 0), lambda x: jax.image.resize(x, (2 * x.shape[0], x.shape[1]), "nearest"),
    lambda x: jnp.linalg.svd(x, compute_uv=False)], ids=["bits", "interp", "vander", "average", "resize", "svd"])
def test_sizes_among_the_numbers_of_a_computation(f):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(exported(f, "b, c").call(x), f(x), rtol=1e-5, atol=1e-5)


def test_paddings_and_numbers_of_the_largest_that_depend_on_sizes():
    def f(x):
        b, c = x.shape
        image = x[None, None]
        return [lax.reduce_window(x, 0., lax.add, (2, 3), (2, 1), "SAME"), *lax.top_k(x, c - 1), *lax.top_k(x[:, :1].T, b),
                lax.conv_general_dilated(image, jnp.ones((1, 1, 2, 3)), (2, 2), "SAME"),
                lax.conv_transpose(image, jnp.ones((3, 2, 1, 1)), (1, 2), "SAME", dimension_numbers=("NCHW", "HWIO", "NCHW")),
                jnp.convolve(x[0], x[0])]
    program = exported(f, "b, c")
    for b, c in ((2, 3), (5, 4)):
        x = np.arange(b * c, dtype=np.float32).reshape(b, c)
        for got, want in zip(program.call(x), f(jnp.asarray(x)), strict=True):
            np.testing.assert_allclose(got, want)
    with pytest.raises(jax.core.InconclusiveDimensionOperation, match="'b' > 'c' is inconclusive"):
        exported(lambda x: lax.top_k(x, x.shape[0]), "b, c")


@pytest.mark.quick
@pytest.mark.parametrize("f", [jnp.fft.fft, jnp.fft.rfft])
def test_sizes_that_xla_has_to_know(f):
    with pytest.raises(NotImplementedError, match="symbolic sizes|non-constant fft_length"):
        exported(f, "b, c")


@pytest.mark.quick
def test_what_the_text_says():
    text = exported(lambda x: x.reshape(x.shape[0] * 2), "b, 2").mlir_module()
    assert "tensor<?x2xf32>" in text and "stablehlo.dynamic_reshape" in text and "{b}" not in text
    assert len(re.findall("stablehlo.get_dimension_size", text)) == 1 and "@shape_assertion" in text
    fixed = exported(lambda x: x.reshape(4), "2, 2").mlir_module()
    assert "?" not in fixed and "shape_assertion" not in fixed and "dynamic" not in fixed


@pytest.mark.parametrize("texts, constraints, right, wrong", [
    (["b, 4"], [], [(1, 4)], [((2, 5), "4"), ((0, 4), "Expected value >= 1 for dimension variable 'b'")]),
    (["2*b"], [], [(2,), (6,)], [((3,), "Division had remainder 1 when computing the value of 'b'"), ((0,), ">= 1")]),
    (["b, b"], [], [(3, 3)], [((3, 4), "Found inconsistency between dimension size args.0..shape.1. .= 4. and the specification 'b' .= 3.. Using the "
      "following polymorphic shapes specifications: args.0..shape = .b, b.. Obtained dimension variables: 'b' = 3 from specification 'b' ")]),
    (["b"], ["b >= 3"], [(3,)], [((2,), "symbolic shape constraint b >= 3. Expected 'b - 3' to be greater or equal to 0, but found -1. ")]),
    (["b"], ["b <= 3"], [(1,), (3,)], [((4,), "symbolic shape constraint b <= 3. Expected '- b .+ 3' to be greater or equal to 0")]),
    (["b, c"], ["b == 2*c"], [(4, 2)], [((4, 3), "inconsistency|b == 2\\*c")]),
])
def test_sizes_that_an_artifact_refuses(texts, constraints, right, wrong):
    program = export.deserialize(exported(lambda x: x + 1, *texts, constraints=constraints).serialize())
    for shape in right:
        assert program.call(jnp.zeros(shape)).shape == shape
    for shape, words in wrong:
        with pytest.raises(ValueError, match=words):
            program.call(jnp.zeros(shape))


@pytest.mark.parametrize("f",
                         [lambda x, k: jnp.ones((k,)), lambda x, k: jax.jit(lambda: jnp.zeros((k + 1,)))(),
                          lambda x, k: lax.top_k(jnp.arange(20), k),
                          lambda x, k: jnp.broadcast_to(x[None], (k, *x.shape))])
def test_a_variable_that_is_in_no_argument(f):
    k, b = export.symbolic_shape("k, b", constraints=["k <= 10"])
    for size in (3, b):
        with pytest.raises(
            ValueError,
            match="dimension variable in 'k.*' that is not appearing in the shapes of the function arguments",
        ):
            export.export(jax.jit(lambda x: f(x, k)))(jax.ShapeDtypeStruct((size,), np.float32))
    with pytest.raises(ValueError, match="that is not appearing in the shapes"):
        jax.jit(lambda x: f(x, k))(jnp.zeros(3))
