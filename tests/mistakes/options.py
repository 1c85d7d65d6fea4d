"""Options: names, values and context managers."""
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp


@mistake(AttributeError, "config.update", "jax_enable_x46", advice="did you mean 'jax_enable_x64'")
def name_misspelt():
    jax.config.update("jax_enable_x46", True)  # <-


@mistake(AttributeError, "config.update", "enable_x64", advice="did you mean 'jax_enable_x64'")
def name_without_prefix():
    jax.config.update("enable_x64", True)  # <-


@mistake(AttributeError, "config.update", "verbosity", advice="config.values")
def name_of_nothing_near():
    jax.config.update("verbosity", 3)  # <-


@mistake(AttributeError, "jax_debug_nan", "option", advice="did you mean 'jax_debug_nans'")
def attribute_misspelt():
    return jax.config.jax_debug_nan  # <-


@mistake(AttributeError, "jax_enable_x64", "assignment", advice="config.update('jax_enable_x64', True)")
def attribute_set():
    jax.config.jax_enable_x64 = True  # <-


@mistake(ValueError, "config.update", "jax_enable_x64", "'yes please'", advice="give True or False")
def bool_as_a_text():
    jax.config.update("jax_enable_x64", "yes please")  # <-


@mistake(TypeError, "config.update()", "'val'", advice="its parameters are name, val")
def value_missing():
    jax.config.update("jax_enable_x64")  # <-


@mistake(ValueError, "config.update", "jax_default_matmul_precision", "got hihgest", advice="did you mean 'highest'")
def choice_misspelt():
    jax.config.update("jax_default_matmul_precision", "hihgest")  # <-


@mistake(ValueError, "config.update", "got loose", advice="'standard', 'strict'")
def choice_of_another_kind():
    jax.config.update("jax_numpy_dtype_promotion", "loose")  # <-


@mistake(ValueError, "config.update", "jax_traceback_filtering", "True", advice="'off'")
def traceback_filtering():
    jax.config.update("jax_traceback_filtering", True)  # <-


@mistake(ValueError, "config.update", "jax_num_cpu_devices", "'eight'", advice="of type int")
def number_as_a_text():
    jax.config.update("jax_num_cpu_devices", "eight")  # <-


@mistake(RuntimeError, "jax_num_cpu_devices", "3", "8 devices", advice="Set it before the first array")
def devices_after_they_were_used():
    jnp.ones(3)
    jax.config.update("jax_num_cpu_devices", 3)  # <-


@mistake(ValueError, "config.update", "jax_numpy_rank_promotion", "got error", advice="'raise'")
def rank_promotion():
    jax.config.update("jax_numpy_rank_promotion", "error")  # <-


@mistake(ValueError, "+", "(2, 3)", "(3,)", "jax_numpy_rank_promotion", advice="reshape them")
def rank_promotion_raised():
    with jax.numpy_rank_promotion("raise"):
        return jnp.ones((2, 3)) + jnp.ones(3)  # <-


@mistake(ValueError, "+", "float32", "int32", "strict", advice=".astype(dtype)")
def strict_promotion():
    with jax.numpy_dtype_promotion("strict"):
        return jnp.ones(3) + jnp.ones(3, "int32")  # <-


@mistake(ValueError, "numpy_dtype_promotion", "got strickt", advice="did you mean 'strict'")
def promotion_context():
    with jax.numpy_dtype_promotion("strickt"):  # <-
        return jnp.ones(3)


@mistake(ValueError, "default_matmul_precision", "got float23", advice="did you mean 'float32'")
def precision_context():
    with jax.default_matmul_precision("float23"):  # <-
        return jnp.ones(3)


@mistake(FloatingPointError, "jnp.log", "float32[]", "nan", advice="'jax_debug_nans', False")
def debug_nans():
    with jax.debug_nans(True):
        return jnp.log(jnp.array(-1.0))  # <-


@mistake(FloatingPointError, "/", "inf", "float32[3]", advice="'jax_debug_infs', False")
def debug_infs():
    with jax.debug_infs(True):
        return jnp.ones(3) / 0  # <-


@mistake(ValueError, "transfer_guard", "got forbid", advice="'disallow'")
def transfer_guard_level():
    with jax.transfer_guard("forbid"):  # <-
        return jnp.ones(3)


@mistake(RuntimeError, "jnp.sin", "float32[3]", "host-to-device", advice="device_put")
def transfer_guard_of_numpy():
    import numpy as np
    x = np.ones(3)
    with jax.transfer_guard("disallow"):
        return jnp.sin(x)  # <-


@mistake(TypeError, "argument x of <lambda>", "float32[]", "held by a list", advice="Return them")
def leak_checked():
    kept = []
    with jax.checking_leaks():
        return jax.jit(lambda x: kept.append(x) or x)(1.0)  # <-


@mistake(ValueError, "jax_default_prng_impl", "got philox", advice="'threefry2x32'")
def default_prng():
    jax.config.update("jax_default_prng_impl", "philox")  # <-


@mistake(ValueError, "config.update", "jax_compilation_cache_dir", "3", advice="of type str")
def cache_dir():
    jax.config.update("jax_compilation_cache_dir", 3)  # <-


@mistake(AttributeError, "config.read", "jax_enable_x46", advice="did you mean 'jax_enable_x64'")
def read_an_unknown_option():
    return jax.config.read("jax_enable_x46")  # <-


@mistake(AttributeError, "'hlotrace.numpy'", "'arrange'", advice="did you mean 'arange'")
def missing_name():
    return jnp.arrange(3)  # <-
