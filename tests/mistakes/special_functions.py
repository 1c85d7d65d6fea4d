"""Special functions, transforms and generators: types and parameters that they do not take."""
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.scipy import special


@mistake(TypeError, "lax.igamma", "int32", advice=".astype(float)")
def incomplete_gamma_of_integers():
    return lax.igamma(jnp.arange(3), jnp.arange(3))  # <-


@mistake(TypeError, "lax.igammac", "(2,), (3,)", advice="the hlotrace.numpy function of the same name broadcasts")
def incomplete_gamma_of_sizes():
    return lax.igammac(jnp.ones(2), jnp.ones(3))  # <-


@mistake(ValueError, "lax.betainc", "respect to a", advice="stop_gradient")
def fitting_the_parameter_of_a_beta_distribution():
    def loss(a):
        return lax.betainc(a, 2.0, 0.5)  # <-
    return jax.grad(loss)(1.5)


@mistake(TypeError, "lax.rng_bit_generator", "int32", advice="it makes uint8, uint16, uint32 and uint64")
def random_bits_as_signed_integers():
    return lax.rng_bit_generator(jnp.arange(4, dtype="uint32"), (3,), "int32")  # <-


@mistake(TypeError, "lax.rng_bit_generator", "uint32[2]", advice="must be uint32[4] or uint64[2]")
def random_bits_from_a_key_of_another_generator():
    return lax.rng_bit_generator(jax.random.PRNGKey(0), (3,))  # <-


@mistake(ValueError, "lax.rng_uniform", "(3,)", advice="scale the result")
def uniform_numbers_between_arrays():
    return lax.rng_uniform(0.0, jnp.ones(3), (3,))  # <-


@mistake(ValueError, "lax.fft", "(4, 6)", "(5,)", advice="jnp.fft cuts, or fills with zeros")
def transform_of_another_length():
    return lax.fft(jnp.ones((4, 6)), "fft", (5,))  # <-


@mistake(ValueError, "lax.fft", "'ftt'", advice="must be 'FFT', 'IFFT', 'RFFT' or 'IRFFT'")
def transform_misspelt():
    return lax.fft(jnp.ones(4), "ftt", (4,))  # <-


@mistake(ValueError, "jnp.fft.rfft", "complex64[4]", advice="take .real, or use fft")
def real_transform_of_complex_numbers():
    return jax.jit(lambda x: jnp.fft.rfft(jnp.fft.fft(x)))(jnp.ones(4))  # <-


@mistake(ValueError, "jnp.fft.fft2", "s=(3,)", "axes=(0, 1)", advice="one length for each axis")
def transform_with_too_few_lengths():
    return jnp.fft.fft2(jnp.ones((4, 4)), s=(3,))  # <-


@mistake(ValueError, "jnp.fft.fft", "'orthogonal'", advice="did you mean 'ortho'")
def norm_misspelt():
    return jnp.fft.fft(jnp.ones(4), norm="orthogonal")  # <-


@mistake(ValueError, "lax.approx_max_k", "int32[5]", advice="lax.top_k")
def approximate_extremes_of_integers():
    return lax.approx_max_k(jnp.arange(5), 2)  # <-


@mistake(ValueError, "lax.approx_min_k", "(5,)", "got 9", advice="at most the size 5")
def more_extremes_than_elements():
    return lax.approx_min_k(jnp.ones(5), 9)  # <-


@mistake(TypeError, "gamma", "list", advice="jnp.array(...)")
def special_function_of_a_list():
    return special.gamma([1.0, 2.0])  # <-


@mistake(TypeError, "erf", "complex64", advice="take .real, .imag or jnp.abs(x)")
def error_function_of_complex_numbers():
    return special.erf(jnp.ones(3) * 1j)  # <-


@mistake(ValueError, "polygamma", "float32", advice="must be of integer type")
def derivative_of_half_an_order():
    return special.polygamma(0.5, jnp.ones(3))  # <-


@mistake(ValueError, "betainc", "(2,)", "(3,)", advice="broadcast")
def incomplete_beta_of_sizes():
    return special.betainc(jnp.ones(2), 1.0, jnp.ones(3))  # <-


@mistake(TypeError, "lax.scaled_dot", "size 64", "(2, 3)", advice="must be several times, 2 or more")
def scales_that_do_not_divide():
    x = jnp.ones((2, 64), "float8_e4m3fn")
    return lax.scaled_dot(x, x.T, lhs_scale=jnp.ones((2, 3)), rhs_scale=jnp.ones((2, 2)))  # <-


@mistake(ValueError, "scaled_dot_general", "blocks of 32", "size 48", advice="pad it to a multiple")
def rounding_what_has_no_blocks():
    x, config = jnp.ones((2, 48)), jax.nn.get_scaled_dot_general_config("mxfp8")
    return jax.nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=[config] * 3)  # <-


@mistake(TypeError, "scipy.stats.dirichlet.logpdf", "(3, 2)", "alpha has 2", advice="jnp.moveaxis(x, -1, 0)?")
def dirichlet_of_rows():
    return jax.scipy.stats.dirichlet.logpdf(jnp.ones((3, 2)) / 2, jnp.ones(2))  # <-


@mistake(TypeError, "scipy.stats.norm.cdf", "complex64", advice="take .real, .imag or jnp.abs(x)")
def distribution_of_complex_numbers():
    return jax.scipy.stats.norm.cdf(1j)  # <-


@mistake(TypeError, "scipy.special.sph_harm_y", "max(n)", advice="Give n_max")
def harmonics_of_traced_degrees():
    return jax.jit(lambda n: special.sph_harm_y(n, 0, 0.3, 0.4))(2)  # <-
