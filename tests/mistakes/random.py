"""Keys that are none, keys in the wrong place, distributions of what does not fit."""
import numpy as np
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax, random
from hlotrace.errors import KeyReuseError

KEY = random.key(0)


@mistake(TypeError, "random.normal", "0 of type int", advice="random.key(0)")
def seed_for_a_key():
    return random.normal(0, (3,))  # <-


@mistake(TypeError, "random.normal", "(3,) of type tuple", advice="random.key(0)")
def shape_for_a_key():
    return random.normal((3,))  # <-


@mistake(TypeError, "random.uniform", "None", advice="random.key(0)")
def no_key():
    return random.uniform(None, (3,))  # <-


@mistake(TypeError, "random.permutation", "'x'", "key, x", advice="random.key(0)")
def permutation_without_a_key():
    x = jnp.arange(3)
    return random.permutation(x)  # <-


@mistake(TypeError, "random.permutation", "x: int32[3]", advice="as their first argument")
def key_in_the_second_place():
    x = jnp.arange(3)
    return random.permutation(x, KEY)  # <-


@mistake(TypeError, "random.randint", "'minval' and 'maxval'", advice="shape, minval, maxval")
def integers_without_limits():
    return random.randint(KEY, (3,))  # <-


@mistake(TypeError, "random.normal", "'size'", advice="its parameters are key, shape")
def size_for_shape():
    return random.normal(KEY, size=(3,))  # <-


@mistake(AttributeError, "hlotrace.random", "'randn'", advice="random.normal(key, shape)")
def numbers_of_numpy():
    return random.randn(3)  # <-


@mistake(AttributeError, "hlotrace.random", "'seed'", advice="random.key(0)")
def seeding():
    random.seed(0)  # <-


@mistake(AttributeError, "hlotrace.random", "'shuffle'", advice="random.permutation(key, x)")
def shuffling():
    x = jnp.arange(3)
    random.shuffle(x)  # <-


@mistake(ValueError, "random.normal", "keys: key<fry>[2]", "(2,)", advice="vmap")
def several_keys():
    keys = random.split(KEY)
    return random.normal(keys, (3,))  # <-


@mistake(ValueError, "random.split", "key<fry>[2]", advice="k1, k2 = random.split(key)")
def keys_that_are_not_unpacked():
    def step(key):
        key = random.split(key)
        return random.split(key)  # <-
    return jax.jit(step)(KEY)


@mistake(TypeError, "lax.scan", "key<fry>[]", "key<fry>[2]", "carry", advice="the shapes do not match")
def keys_in_a_carry():
    def body(key, x):
        return random.split(key), x + random.normal(key)
    return lax.scan(body, KEY, jnp.ones(3))  # <-


@mistake(TypeError, "random.normal", "k: uint32[]", advice="random.split")
def scan_over_the_halves_of_a_key():
    def body(c, k):
        return c + random.normal(k), None  # <-
    return lax.scan(body, 0.0, random.PRNGKey(0))


@mistake(ValueError, "vmap", "k of draw", "()", advice="in_axes")
def map_over_one_key():
    def draw(k):
        return random.normal(k, (3,))
    return jax.vmap(draw)(KEY)  # <-


@mistake(TypeError, "random.split", "n: int32[]", advice="static_argnums")
def number_of_keys_from_a_tracer():
    def f(key, n):
        return random.split(key, n)  # <-
    return jax.jit(f)(KEY, 3)


@mistake(TypeError, "random.normal", "n: int32[]", advice="static_argnums")
def shape_from_a_tracer():
    def f(key, n):
        return random.normal(key, (n,))  # <-
    return jax.jit(f)(KEY, 3)


@mistake(TypeError, "random.normal", "3.5", advice="an int or a sequence of ints")
def shape_that_is_no_int():
    return random.normal(KEY, 3.5)  # <-


@mistake(ValueError, "random.normal", "(3, -1)", advice="nonnegative")
def negative_size():
    return random.normal(KEY, (3, -1))  # <-


@mistake(TypeError, "random.split", "2.5", advice="ints")
def half_a_key():
    return random.split(KEY, 2.5)  # <-


@mistake(ValueError, "random.normal", "int32", advice="random.randint")
def integers_of_a_normal_distribution():
    return random.normal(KEY, (3,), "int32")  # <-


@mistake(TypeError, "random.randint", "float32", advice="integer dtypes")
def floats_of_randint():
    return random.randint(KEY, (3,), 0, 10, dtype=float)  # <-


@mistake(ValueError, "random.choice", "(3,)", "5", advice="same size")
def weights_of_another_size():
    p = jnp.ones(3) / 3
    return random.choice(KEY, 5, p=p)  # <-


@mistake(ValueError, "random.choice", "size 10", "size 5", advice="replace=False")
def more_than_there_are():
    return random.choice(KEY, 5, (10,), replace=False)  # <-


@mistake(TypeError, "random.choice", "list", advice="jnp.array(...)")
def choice_of_a_list():
    return random.choice(KEY, [1, 2, 3])  # <-


@mistake(TypeError, "random.bernoulli", "int32", advice="floating")
def probability_that_is_an_int():
    return random.bernoulli(KEY, 1)  # <-


@mistake(ValueError, "random.bernoulli", "(3,)", "(4,)", advice="equal")
def probabilities_of_another_shape():
    return random.bernoulli(KEY, jnp.ones(4) / 2, (3,))  # <-


@mistake(ValueError, "random.categorical", "(4,)", "(2,)", advice="equal")
def categories_of_another_shape():
    logits = jnp.ones((2, 3))
    return random.categorical(KEY, logits, shape=(4,))  # <-


@mistake(IndexError, "random.categorical", "axis 2", "float32[2,3]", advice="-2 <= axis < 2")
def categories_along_no_axis():
    return random.categorical(KEY, jnp.ones((2, 3)), axis=2)  # <-


@mistake(TypeError, "random.fold_in", "'layer1'", advice="crc32")
def name_for_a_number():
    return random.fold_in(KEY, "layer1")  # <-


@mistake(OverflowError, "random.fold_in", "-1", "4294967295", advice="modulo")
def negative_step():
    return random.fold_in(KEY, -1)  # <-


@mistake(TypeError, "random.fold_in", "int32[3]", advice="vmap")
def several_steps():
    return random.fold_in(KEY, jnp.arange(3))  # <-


@mistake(TypeError, "random.key", "'now'", advice="random.key(0)")
def seed_that_is_text():
    return random.key("now")  # <-


@mistake(TypeError, "random.key", "float32[]", advice="int(...)")
def seed_that_is_a_float():
    return random.key(1.5)  # <-


@mistake(TypeError, "random.key", "(3,)", advice="vmap")
def several_seeds():
    return random.key(jnp.arange(3))  # <-


@mistake(ValueError, "random.key", "mt19937", advice="threefry2x32")
def generator_that_is_not_there():
    return random.key(0, impl="mt19937")  # <-


@mistake(TypeError, "random.wrap_key_data", "uint32[3]", advice="(2,)")
def data_of_another_size():
    return random.wrap_key_data(jnp.zeros(3, "uint32"))  # <-


@mistake(TypeError, "+", "key: key<fry>[]", advice="random.key_data")
def arithmetic():
    key = random.key(1)
    return key + 1  # <-


@mistake(TypeError, "jnp.sum", "key<fry>[2]", advice="random.key_data")
def sum_of_keys():
    return jnp.sum(random.split(KEY))  # <-


@mistake(TypeError, "<", "key<fry>", advice="random.key_data")
def order_of_keys():
    return sorted(random.split(KEY))  # <-


@mistake(TypeError, "np.asarray", "key: key<fry>[]", advice="random.key_data")
def keys_for_numpy():
    key = random.key(1)
    return np.asarray(key)  # <-


@mistake(TypeError, "grad", "key<fry>", "key of loss", advice="argnums")
def gradient_by_a_key():
    def loss(key, w):
        return w * random.normal(key)
    return jax.grad(loss)(KEY, 1.0)  # <-


@mistake(ValueError, "random.gamma", "must be a float dtype", "int32", advice="random.randint")
def gamma_values_as_integers():
    return random.gamma(KEY, 2.0, dtype=int)  # <-


@mistake(ValueError, "random.poisson", "must be an int dtype", "float32", advice="jnp.int32")
def counts_as_floats():
    return random.poisson(KEY, 3.0, (2,), jnp.float32)  # <-


@mistake(ValueError, "random.multivariate_normal", "cov.ndim >= 2", advice="jnp.diag")
def variances_for_a_covariance():
    return random.multivariate_normal(KEY, jnp.zeros(2), jnp.ones(2))  # <-


@mistake(ValueError, "random.beta", "(3,)", "(2,)", advice="reshape")
def shape_that_does_not_hold_the_parameters():
    a = jnp.ones(3)
    return random.beta(KEY, a, 2.0, (2,))  # <-


@mistake(TypeError, "random.gamma", advice="a")
def gamma_without_its_parameter():
    return random.gamma(KEY)  # <-


@mistake(ValueError, "random.key", "philox", advice="'rbg'")
def generator_that_there_is_not():
    return random.key(0, impl="philox")  # <-


@mistake(TypeError, "random.wrap_key_data", "(2,)", advice="(4,)")
def words_of_another_generator():
    words = random.key_data(KEY)
    return random.wrap_key_data(words, impl="rbg")  # <-


@mistake(KeyReuseError, "random.uniform", "`normal` at", "used again by `uniform` at", advice="random.split(key)")
def key_that_two_draws_use():
    with jax.debug_key_reuse():
        key = random.key(0)
        x = random.normal(key)
        return x + random.uniform(key)  # <-


@mistake(KeyReuseError, "lax.scan", "the same PRNG key in each round", "closes over it", advice="random.split(key, n)")
def key_that_a_scan_closes_over():
    with jax.debug_key_reuse():
        key = random.key(0)
        return lax.scan(lambda c, _: (c + random.uniform(key), None), 0.0, length=3)  # <-
