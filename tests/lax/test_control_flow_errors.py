"""Errors of loops whose bodies give another carry: each part that differs, and what to do about it."""
import re

import pytest

import hlotrace.numpy as jnp
from hlotrace import lax

pytestmark = pytest.mark.quick


def carry_error(change, init):
    with pytest.raises(TypeError) as caught:
        lax.while_loop(lambda c: True, change, init)
    return re.sub(r"\s+", " ", str(caught.value))


def test_parts_that_grow_and_parts_that_start_too_small():
    """Advice for what grows is given where any part does, another start where that helps."""
    grown, spread = jnp.ones(2), jnp.ones(1)
    found = carry_error(lambda c: (jnp.append(c[0], 1.0), c[1] + jnp.ones(3)), (grown, spread))
    assert "A carry keeps its shape" in found and "start with init_val[1] of shape (3,)" in found
    assert found.count("the shapes do not match") == 2
    found = carry_error(lambda c: (c[0], c[1] + jnp.ones(3)), (grown, spread))
    assert "A carry keeps its shape" not in found and "start with init_val[1] of shape (3,)" in found


def test_of_many_parts_the_first_are_named():
    found = carry_error(lambda c: [x.astype(int) for x in c], [jnp.float32(0)] * 5)
    assert found.count("the dtypes do not match") == 3 and "and 2 more" in found


@pytest.mark.parametrize("change, words", [
    (lambda c: None, "lack a `return`"), (lambda c: (c, c), "Return a carry of the structure")])
def test_another_structure(change, words):
    assert words in carry_error(change, 1.0)
