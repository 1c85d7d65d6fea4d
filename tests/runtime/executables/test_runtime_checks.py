"""jax_debug_nans and jax_debug_infs: the operation and the line, also in compiled functions and backwards."""
import contextlib
import re

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.config import override
from hlotrace.core.primitive import PRIMITIVES
from hlotrace.sharding import PartitionSpec as P


def root(x):
    return jnp.sqrt(x)      # ROOT


def layers(w, x):
    for _ in range(4):
        x = jnp.tanh(x @ w) @ w.T + x
    return jnp.log(x)       # LAYERS


def line(mark):
    with open(__file__) as file:
        return next(i for i, text in enumerate(file, 1) if text.rstrip().endswith(f"# {mark}"))


def over_devices(f):
    return jax.shard_map(f, mesh=jax.sharding.Mesh(jax.devices()[:2], ("d",)), in_specs=P("d"), out_specs=P("d"))


ONE = np.float32(1)
NEGATIVE = np.array([4, -1, 9, 1], np.float32)
# what runs -> (function, arguments, the operation that gives the first NaN, the line that it is for or None outside of jit)
CASES = {
    "operation": (lambda x: lax.log(x), -ONE, "log", None),
    "function": (lambda x: jnp.sqrt(x), -ONE, "sqrt", None),
    "jit": (jax.jit(lambda x: root(x) * 2), -ONE, "sqrt", "ROOT"),
    "jit in jit": (jax.jit(lambda x: jax.jit(root)(x - 3) + 1), ONE, "sqrt", "ROOT"),
    "scan": (jax.jit(lambda x: lax.scan(lambda c, _: (root(c) - 3, c), x, None, length=4)[0]), ONE, "sqrt", "ROOT"),
    "while": (jax.jit(lambda x: lax.while_loop(lambda c: c > 0, lambda c: root(c - 2), x)), ONE, "sqrt", "ROOT"),
    "branch": (jax.jit(lambda x: lax.cond(x > 0, lambda x: root(-x), root, x)), ONE, "sqrt", "ROOT"),
    "eager scan": (lambda x: lax.scan(lambda c, _: (root(c) - 3, c), x, None, length=4)[0], ONE, "sqrt", "ROOT"),
    "vmap": (jax.jit(jax.vmap(root)), NEGATIVE, "sqrt", "ROOT"),
    "checkpoint": (jax.jit(jax.grad(jax.checkpoint(lambda x: root(x - 3)))), ONE, "sqrt", "ROOT"),
    "backwards": (jax.jit(jax.grad(lambda x: root(x) * 0.0)), 0 * ONE, "mul", "ROOT"),
    "backwards, outside of jit": (jax.grad(lambda x: root(x) * 0.0), 0 * ONE, "mul", "ROOT"),
    "shard_map": (jax.jit(over_devices(root)), NEGATIVE, "sqrt", "ROOT"),
    "blocks": (jax.jit(layers), (np.eye(8, dtype=np.float32), -np.ones((4, 8), np.float32)), "log", "LAYERS"),
    "donated": (jax.jit(root, donate_argnums=0), -ONE, "sqrt", "ROOT"),
    "masked and not": (jax.jit(lambda x: jnp.where(x > 0, x, root(x - 1))), NEGATIVE, "sqrt", "ROOT"),
    "filled": (jax.jit(lambda x: jnp.take(x, jnp.int32(9))), NEGATIVE, "gather", None),
    "not the masked constant": (jax.jit(lambda x: root(jnp.where(x > 9, np.nan, x))), NEGATIVE, "sqrt", "ROOT"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_operation_and_its_line(case):
    f, args, operation, mark = CASES[case]
    args = args if isinstance(args, tuple) else (args,)
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as raised:
        f(*map(jnp.asarray, args))
    assert f"invalid value (nan) encountered in {operation}" in str(raised.value)
    if mark:
        assert f"{__file__.rpartition('/')[2]}:{line(mark)} (" in str(raised.value)
    elif case != "filled":
        assert ".py" not in str(raised.value)       # the traceback has it


# what makes an array of a value that is there, without a program
MAKERS = {
    "array": jnp.array, "asarray": lambda x: jnp.asarray([x]), "of NumPy": lambda x: jnp.array(np.array([x])),
    "full": lambda x: jnp.full(2, x), "full_like": lambda x: jnp.full_like(jnp.ones(2), x), "copy": jnp.copy,
    "pure_callback": lambda x: jax.pure_callback(lambda: np.float32(x), ONE_TYPE),
    "io_callback": lambda x: jax.experimental.io_callback(lambda: np.float32(x), ONE_TYPE),
}
ONE_TYPE = jax.ShapeDtypeStruct((), "float32")


@pytest.mark.parametrize("maker", MAKERS)
def test_new_arrays_are_looked_at_too(maker):
    for option, value, name in ((jax.debug_nans, np.nan, "nan"), (jax.debug_infs, np.inf, "inf")):
        with option(True):
            with pytest.raises(FloatingPointError, match=rf"invalid value \({name}\) encountered in"):
                MAKERS[maker](value)
            MAKERS[maker](1.5)
    with jax.debug_nans(True):
        jax.device_put(np.nan), jnp.isnan(np.nan)       # what is there may be moved and looked at


def test_infinities_are_looked_for_apart():
    f = jax.jit(lambda x: 1 / x)
    with jax.debug_infs(True):
        with pytest.raises(FloatingPointError, match=r"invalid value \(inf\) encountered in div at .*test_runtime_checks.py"):
            f(0.0)
        with pytest.raises(FloatingPointError, match=r"invalid value \(inf\) encountered in convert_element_type"):
            jax.jit(lambda x: x.astype(jnp.float16))(np.float32(1e30))
        assert np.isnan(jax.jit(lambda x: root(x))(-1.0))
    with jax.debug_nans(True):
        assert f(0.0) == np.inf
    assert f(0.0) == np.inf


def test_what_does_not_reach_a_result_is_no_error():
    with jax.debug_nans(True):
        assert jax.jit(lambda x: jnp.where(x > 0, root(x), 0.0))(-1.0) == 0


def test_a_nan_that_was_there_before_is_said_to_be():
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="none of its operations gives one, so an argument"):
        jax.jit(lambda x: x)(np.float32(np.nan))
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="or a constant holds it"):
        jax.jit(lambda x: jnp.where(x > 0, x, np.nan))(NEGATIVE)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_every_part_of_a_number_is_looked_at(dtype):
    """By the option for what it is, and by no other."""
    f = jax.jit(lambda x: x[::-1])
    for value, kind in ((np.nan, "nan"), (np.inf, "inf"), (-np.inf, "inf")):
        for number in (value, complex(0, value)) if dtype == "complex64" else (value,):
            for option in ("nan", "inf"):
                with override(f"jax_debug_{option}s", True), (
                        pytest.raises(FloatingPointError, match=option) if option == kind else contextlib.nullcontext()):
                    f(np.array([1, number], jnp.dtype(dtype)))


@pytest.mark.parametrize("jitted", [jax.jit, lambda f: jax.jit(f, donate_argnums=0)])
def test_effects_happen_once(jitted):
    heard = []

    def f(x):
        y = jax.experimental.io_callback(lambda v: heard.append(float(v.sum())) or v, x, x, ordered=True)
        jax.debug.callback(lambda v: heard.append("debug"), x)
        return root(y)
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError, match=r"in sqrt at .*\(root\)"):
            jitted(f)(jnp.asarray(NEGATIVE))
        jax.effects_barrier()
    assert sorted(map(str, heard)) == ["13.0", "debug"]


def test_a_donated_argument_is_gone_and_results_are_right():
    x = jnp.ones(3) * 4
    with jax.debug_nans(True):
        f = jax.jit(lambda x, y: (jnp.sqrt(x) + y, y), donate_argnums=0)
        first, second = f(x, 1.0)
        np.testing.assert_array_equal(first, 3.0)
        assert x.is_deleted() and second == 1
        compiled = f.lower(first, 1.0).compile()
        assert jax.tree.leaves(compiled.output_shardings)[1:] == jax.tree.leaves(compiled.output_shardings)[:1]
        assert re.search("sqrt", compiled.as_text()) and compiled(first, 2.0)[1] == 2


def test_options_are_read_by_each_call():
    f = jax.jit(root)
    assert np.isnan(f(-1.0))
    jax.config.update("jax_debug_nans", True)
    try:
        for _ in range(2):
            with pytest.raises(FloatingPointError, match="sqrt"):
                f(-1.0)
    finally:
        jax.config.update("jax_debug_nans", False)
    assert np.isnan(f(-1.0))


def test_what_is_said_to_make_no_nan_makes_none():
    """The elementwise ones, for zeros, infinities and large numbers, in one program."""
    params = {"round": {"rounding_method": 1}}
    said = [p for p in PRIMITIVES.values() if not p.makes_nan and p.elementwise and p.kinds]
    x, y = map(np.ravel, np.meshgrid(*[np.float32([-np.inf, -3e38, -1.5, -0.0, 0, 1e-40, 2.5, np.inf])] * 2))

    def results(x, y):
        operands = {"f": [x, y], "c": [lax.complex(x, y)] * 2}
        for p in said:
            given = operands["f" if "f" in p.kinds else "c"]
            yield p.bind(*given[:arity(p)], **params.get(p.name, {}))
    outs = jax.jit(lambda x, y: list(results(x, y)))(x, y)
    assert len(outs) == len(said) > 12
    assert not any(np.isnan(out).any() for out in outs)


def arity(primitive):
    """How many operands those of these elementwise primitives take."""
    return 2 if primitive.name in ("max", "min", "nextafter", "complex") else 1
