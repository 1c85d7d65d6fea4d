"""Whole programs as text: what is said of them, their arguments and results."""
import re

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.avals import ShapedArray
from hlotrace.core.jaxpr_trace import trace_to_jaxpr
from hlotrace.lowering.lowered import lower
from hlotrace.sharding import Mesh, NamedSharding, P
from hlotrace.sharding.layout import Format, Layout

pytestmark = pytest.mark.quick

F = ShapedArray((), "float32")


@pytest.mark.parametrize("name, written",
                         [("<lambda>", "jit__lambda"),
                          ("f_", "jit_f"),
                          ("f.g", "jit_f.g"),
                          ("_", "jit"),
                          ("scatter-add", '"jit_scatter-add"')])
def test_names_of_modules(name, written):
    text = lower(trace_to_jaxpr(lambda x: [x], [F], name), debug_info=False).text
    assert text.startswith(f"module @{written} ")


def test_names_of_arguments_and_results_are_in_the_text_where_no_quote_is_in_them():
    program = trace_to_jaxpr(lambda x, y: [x, y], [F, F], "f", ["params['w']", 'quote"'])
    written = lower(program, result_names=["out", 'quote"']).text
    assert (
        """loc("params['w']")""" in written
        and 'jax.result_info = "out"' in written
        and 'quote"' not in written
    )


@pytest.mark.parametrize("effect, at_run_time",
                         [(lambda x: jax.debug.print("{}", x), True),
                          (lambda x: jax.debug.inspect_array_sharding(x, callback=print), False),
                          (lambda x: jax.experimental.io_callback(print, None, x, ordered=True), True),
                          (lambda x: None, False)])
def test_a_program_has_the_effects_of_its_run(effect, at_run_time):
    """Those of compiling it are none: it is run as any other."""
    lowered = lower(trace_to_jaxpr(lambda x: [effect(x), x][1:], [F]))
    assert bool(lowered.effects) is at_run_time


# --- devices ---------------------------------------------------------------------------------------------------------


def test_donated_arguments_are_marked_where_a_program_is_divided():
    mesh = Mesh(np.array(jax.devices()), ("x",))
    sharding = NamedSharding(mesh, P("x"))
    x = jax.ShapeDtypeStruct((8,), np.float32, sharding=sharding)
    for donated in ((), (0,), (1,), (0, 1)):
        written = jax.jit(lambda x, y: (x + y, x - y), donate_argnums=donated).lower(x, x).as_text()
        arguments = re.search(r"@main\((.*?)\) ->", written)[1].split("%arg")[1:]
        assert [i for i, argument in enumerate(arguments) if "jax.buffer_donor = true" in argument] == list(
            donated
        )
        assert all("sdy.sharding" in argument for argument in arguments)


def test_what_is_asked_of_an_argument_or_a_result_is_written_at_it():
    """Its sharding, its memory and its layout; of several, each at its own."""
    mesh = Mesh(np.array(jax.devices()), ("x",))
    rows, columns = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "x"))
    memory, layout = 'memory_kind = "pinned_host"', 'layout_mode = "{0,1}"'
    asked = [('{"x"}, {}', rows), ('{}, {"x"}', columns), (memory, rows.with_memory_kind("pinned_host")),
             (layout, Format(Layout((1, 0)), columns))]
    for ins, outs in ((asked, asked[::-1]), (asked[::-1], asked)):
        f = jax.jit(lambda *xs: [x + 1 for x in xs], in_shardings=[s for _, s in ins],
                    out_shardings=[s for _, s in outs])
        written = f.lower(*[jax.ShapeDtypeStruct((8, 8), np.float32)] * 4).as_text()
        for listed, wanted in zip(re.search(r"@main\((.*)\) -> \((.*)\) {", written).groups(), (ins, outs)):
            for each, (text, _) in zip(listed.split("tensor<")[1:], wanted, strict=True):
                assert text in each and [m for m in (memory, layout) if m in each] == [
                    m for m in (memory, layout) if m == text
                ]


def test_kernels_that_a_program_calls_are_listed_once():
    program = trace_to_jaxpr(lambda x: [jnp.linalg.cholesky(x @ x), jnp.linalg.cholesky(x)],
                             [ShapedArray((3, 3), "float32")])
    lowered = lower(program, debug_info=False)
    assert lowered.targets == ("lapack_spotrf_ffi",) == tuple(lowered.kernels)
