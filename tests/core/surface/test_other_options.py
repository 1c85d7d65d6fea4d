"""Options of JAX that mean nothing here, or are refused by name."""
import os
import subprocess
import sys

import pytest

import hlotrace as jax
from hlotrace.core.config import override
from hlotrace.core.surface.other_options import MEANS_NOTHING, NOT_DONE


def test_those_that_are_not_done_are_refused_and_the_others_taken():
    for name, (default, words) in (MEANS_NOTHING | NOT_DONE).items():
        assert jax.config.read(name) == getattr(jax.config, name) == jax.config.values[
            name] == default and words
        jax.config.update(name, default)
        other = not default if type(default) is bool else default + 1 if type(default) is int else "something"
        if name in NOT_DONE:
            with pytest.raises(NotImplementedError, match=f"{name}: the value .* is not supported"):
                jax.config.update(name, other)
            assert jax.config.read(name) == default
        else:
            with override(name, other):
                assert jax.config.read(name) == other
    with pytest.raises(ValueError, match="jax_remat3: 'often' is not a boolean"):
        jax.config.update("jax_remat3", "often")
    with pytest.raises(AttributeError, match="did you mean 'jax_use_magma'"):
        jax.config.update("jax_use_magna", "on")


@pytest.mark.quick
def test_the_environment_is_asked_about_them_too():
    done = subprocess.run([sys.executable, "-c", "import hlotrace"], capture_output=True, text=True,
                          env={**os.environ, "JAX_USE_MAGMA": "on"})
    assert "NotImplementedError: config option jax_use_magma: the value 'on' is not supported" in done.stderr
