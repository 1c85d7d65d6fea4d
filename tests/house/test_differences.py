"""docs/differences.md says what is so: it is what its tool writes, and each row on purpose has a test that
shows it."""
import logging

import numpy as np
import pytest
from places import names_of_tests

import hlotrace as jax
import hlotrace.numpy as jnp
from tools import differences


def test_the_page_is_what_the_tool_writes():
    assert differences.PAGE.read_text("utf-8") == differences.page(), "run: make differences"


def test_each_row_is_shown_by_a_test():
    there = names_of_tests()
    assert [row[0] for row in differences.ON_PURPOSE if row[3] not in there] == []


@pytest.mark.quick
def test_what_is_refused_is_read_from_the_source():
    found = {words for room in differences.refusals().values() for _, words in room}
    assert "…: reduce_axes=… is not supported: sum the result with lax.psum" in found
    for name in differences.config._OPTIONS:
        assert name in differences.options() or name.startswith("jax_"), name


# --- rows that no other file shows --------------------------------------------------------------------------

def test_a_jit_of_an_equal_function_does_not_compile_again(caplog):
    with jax.log_compiles(True), caplog.at_level(logging.WARNING):
        for _ in range(3):
            jax.jit(lambda x: jnp.cos(x) * 7 - jnp.tanh(x) / 13)(np.ones(5, np.float32))
    assert sum("XLA compilation" in record.getMessage() for record in caplog.records) == 1


def test_the_axis_of_pmap_has_a_string_for_a_name():
    with pytest.raises(TypeError, match=r"axis_name must be a string, got \('i', 1\)"):
        jax.pmap(lambda x: x, axis_name=("i", 1))(np.ones(1))


def test_a_program_is_one_object():
    program = jax.make_jaxpr(lambda x: x + np.arange(300.))(np.ones(300))
    assert program.jaxpr is program and len(program.consts) == 1
