"""The text of programs, byte for byte, as kept in `golden/`: StableHLO of five whole ones, and of each family
of primitives (golden_programs.py) the jaxpr with its parameters and the StableHLO with its attributes.

After a change that is meant to change the text, write the files anew and read the difference:
HLOTRACE_WRITE_GOLDEN=1 python -m pytest tests/house/test_golden.py && git diff tests/golden
"""
import hashlib
import os
import re

import numpy as np
import pytest
from golden_programs import FAMILIES
from op_table import ROWS
from places import GOLDEN
from row_checks import programs

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.config import TRACING, override
from hlotrace.core.jaxpr import sub_jaxprs
from hlotrace.core.primitive import PRIMITIVES

pytestmark = pytest.mark.quick

WEIGHT, INPUT, TARGET = np.zeros((3, 2), np.float32), np.zeros((4, 3), np.float32), np.zeros(
    (4, 2), np.float32)
LONGEST = 90      # lines of StableHLO that anybody would read; of longer ones the digest is kept


@pytest.fixture(autouse=True)
def texts_of_any_jaxlib(monkeypatch):
    """What is lowered otherwise for one version of jaxlib is lowered as for the others."""
    monkeypatch.setattr("hlotrace.primitives.arrays.special.exact_lgamma", False)


@hlotrace.jit
def layer(w, x):
    return jnp.tanh(x @ w)


@hlotrace.jit
def running_mean(xs):
    def step(carry, x):
        total, count = carry
        carry = total + x, count + 1
        return carry, carry[0] / carry[1]
    return lax.scan(step, (0.0, 0.0), xs)


@hlotrace.jit
def safe_log(x):
    return lax.cond(x > 0, jnp.log, lambda x: jnp.full_like(x, -jnp.inf), x)


@hlotrace.jit
def gradient_of_each(w, x, y):
    def loss(w, x, y):
        return jnp.sum((layer(w, x) - y) ** 2)
    return hlotrace.vmap(hlotrace.grad(loss), (None, 0, 0))(w, x, y)


def descend(params, gradient):
    return {name: p - 0.1 * gradient[name] for name, p in params.items()}


PROGRAMS = {
    "matmul_tanh": (layer, WEIGHT, INPUT),
    "scan": (running_mean, np.zeros(5, np.float32)),
    "cond": (safe_log, np.float32(1)),
    "vmap_of_grad": (gradient_of_each, WEIGHT, INPUT, TARGET),
    "donated": (hlotrace.jit(descend, donate_argnums=0), {"w": WEIGHT}, {"w": WEIGHT}),
}


def agrees(text, file):
    if os.environ.get("HLOTRACE_WRITE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_is_the_golden_one(name):
    function, *args = PROGRAMS[name]
    agrees(function.lower(*args).as_text(), GOLDEN / f"{name}.mlir")


def stablehlo(text):
    """A module without its first and last line; a module that holds more than a function is kept whole.

    Its numbers of host functions are those of this process, so they are left out.
    """
    lines = re.sub(r"(hlotrace_callback|index = )\d+", r"\1", text).splitlines()
    if len(lines) > LONGEST:
        return f"  // {len(lines)} lines, {hashlib.sha256(text.encode()).hexdigest()}"
    return "\n".join(lines[1:-1])


def described(function, *args):
    traced = function if hasattr(function, "lower") else hlotrace.jit(function)
    jaxpr = re.sub(r" at 0x[0-9a-f]+", "", str(hlotrace.make_jaxpr(function)(*args)))
    return f"{jaxpr}\n{stablehlo(traced.lower(*args).as_text())}"


@pytest.mark.parametrize("family", FAMILIES)
def test_text_of_a_family_is_the_golden_one(family):
    texts = [f"=== {title}\n{described(*program)}\n" for title, program in FAMILIES[family].items()]
    agrees("\n".join(texts), GOLDEN / f"{family}.txt")


def result_types(row, weak):
    """The types of a row's results, operand number i being weak where `weak(i)` says so; `*` marks a weak
    one."""
    def kind(i, x):
        return hlotrace.ShapeDtypeStruct(x.shape, x.dtype, weak_type=weak(i))
    args = [kind(i, x) for i, x in enumerate(map(np.asarray, row.sample(row.base)))]
    jaxpr = hlotrace.make_jaxpr(lambda *xs: row.fun(*xs))(*args)
    return " ".join(aval.short() for aval in jaxpr.out_avals)


def test_types_of_results_are_the_golden_ones():
    """Of each row of the op table: with weak operands only, with the first of them weak, with none."""
    lines = [" | ".join([row.name, *(result_types(row, weak) for weak in (
        lambda i: True, lambda i: i == 0, lambda i: False))]) for row in ROWS]
    agrees("".join(f"{line}\n" for line in lines), GOLDEN / "types.txt")


# Options that change texts of rows, and a value that each does not have.
OPTIONS = {
    "jax_enable_x64": True, "jax_numpy_dtype_promotion": "strict", "jax_numpy_rank_promotion": "raise",
    "jax_default_matmul_precision": "highest", "jax_threefry_partitionable": False, "jax_debug_nans": True,
    "jax_debug_infs": True, "hlotrace_outline": False, "hlotrace_check_bounds": True, "jax_auto_pcast": False,
    "jax_disable_jit": True,
}
# They change how a program is compiled or run or where it is, or what functions do that no row calls:
# test_caches.py and option_changes.py show them.
NO_TEXT = {
    "jax_compiler_enable_remat_pass", "jax_disable_most_optimizations", "jax_memory_fitting_level",
    "jax_optimization_level", "jax_xla_profile_version", "jax_no_execution", "jax_check_tracer_leaks",
    "jax_default_device", "jax_hlo_source_file_canonicalization_regex", "jax_check_static_indices",
    "jax_default_prng_impl", "jax_softmax_custom_jvp", "jax_allow_f16_reductions", "jax_disable_bwd_checks",
    "jax_high_dynamic_range_gumbel", "jax_random_seed_offset", "jax_enable_custom_prng", "jax_enable_checks",
    "jax_debug_key_reuse", "jax_explicit_x64_dtypes", "jax_error_checking_behavior_nan",
    "jax_error_checking_behavior_divide", "jax_error_checking_behavior_oob", "hlotrace_blocks_on_chips",
}


def fingerprint(row):
    """A few digits of the text of a row's derivative, or of its value where it has none; the name of the error
    where it is refused."""
    try:
        written = [*programs(row)][-1]()
    except Exception as error:
        return type(error).__name__
    return hashlib.sha256(re.sub(r"(hlotrace_callback|index = )\d+", r"\1", written).encode()).hexdigest()[
        :10]


@pytest.mark.compiles
def test_texts_under_each_option_are_the_golden_ones():
    """Of each row of the op table, and of its derivative: as it is, and under each option that makes it
    another."""
    assert set(TRACING) == OPTIONS.keys() | NO_TEXT
    plain = {row.name: fingerprint(row) for row in ROWS}
    lines = {name: [name, found] for name, found in plain.items()}
    for option, value in OPTIONS.items():
        with override(option, value):
            for row in ROWS:
                found = fingerprint(row)
                if found != plain[row.name]:
                    lines[row.name].append(f"{option} {found}")
    agrees("".join(f"{' | '.join(line)}\n" for line in lines.values()), GOLDEN / "options.txt")


def test_no_golden_file_is_left_over():
    assert {file.name for file in GOLDEN.iterdir()} == {
        "types.txt", "options.txt", *(f"{name}.mlir" for name in PROGRAMS),
        *(f"{name}.txt" for name in FAMILIES)}


# Written by transformations into what they differentiate, a question to the compiler that leaves no
# operation, accesses to references, which leave none either, and what stands only in what is exported
# (test_symbolic_shapes.py).
INTERNAL = {"after_all", "create_token", "custom_lin", "dim_as_value", "inlined", "inspect_sharding", "get",
            "set", "swap", "addupdate", "rematted"}


def primitives_in(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn.primitive.name
        for program in sub_jaxprs(eqn.params):
            yield from primitives_in(program)


def test_every_primitive_with_parameters_is_in_a_golden_program():
    """An elementwise one is a name in a table: the op table tells its values apart."""
    shown = {name for programs in FAMILIES.values() for function, *args in programs.values()
             for name in primitives_in(hlotrace.make_jaxpr(function)(*args))}
    missing = sorted(name for name, p in PRIMITIVES.items()
                     if not p.elementwise and p.name not in shown and name not in INTERNAL)
    assert not missing, f"no program in golden_programs.py uses {missing}"
