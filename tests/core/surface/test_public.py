"""What a module exports: to `dir()` and `import *`, what is imported when used, and functions as boundaries
with names."""
import pickle
import sys
import types

import pytest

import hlotrace as jax
from hlotrace.core.surface.missing import NoSuchName
from hlotrace.core.surface.public import entered, export_names, install_getattr, renamed

pytestmark = pytest.mark.quick


@pytest.fixture
def module(monkeypatch):
    """A module of the package, which defines what a text says."""
    def make(text="", name="hlotrace.made_here"):
        made = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, made)
        exec(text, vars(made))
        return made
    return make


def test_a_module_exports_what_has_no_underscore_and_is_no_module(module):
    m = module("import math\n_inner = 1\nX = 2\ndef f(): return X\nclass C: pass\nsin = math.sin")
    export_names(vars(m), "other", lazy={".api.jit": "jit", "": "nn"})
    assert m.__all__ == dir(m) == ["C", "X", "f", "jit", "nn", "other", "sin"]
    listed = module("__all__ = ['b', 'a']\na = b = c = 1", "hlotrace.with_a_list")
    export_names(vars(listed))
    assert listed.__all__ == ["a", "b"]


def test_what_is_lazy_is_imported_when_it_is_used_and_once(module):
    m, inner = module(), module(name="hlotrace.made_here.inner")
    install_getattr(vars(m), {"jit": ".api.jit", "inner": "", "nothing_there": ".api.jit"})
    assert not {"jit", "inner"} & vars(m).keys()
    assert m.jit is vars(m)["jit"] is jax.jit and m.inner is inner
    with pytest.raises(AttributeError):
        m.nothing_there     # noqa: B018 - it is asked for


def test_a_name_that_is_not_there_is_an_error_of_its_own(module):
    m = module("arrange = 1")
    export_names(vars(m))
    with pytest.raises(NoSuchName, match=r"made_here' has no attribute 'arrnge'; did you mean 'arrange'\?"):
        m.arrnge            # noqa: B018
    own = module("def __getattr__(name):\n    if name == 'known': return 7\n    raise AttributeError(name)",
                 "hlotrace.with_getattr")
    export_names(vars(own))
    assert own.known == 7
    with pytest.raises(NoSuchName):
        own.unknown         # noqa: B018
    with pytest.raises(NoSuchName):
        own.__wrapped__     # noqa: B018 - Python asks for such names, and is not passed on


def test_functions_are_boundaries_that_know_where_users_find_them(module):
    m = module("def f(x):\n    'A sum.'\n    return x + 1\ng = f\nh = len", "hlotrace.numpy.made_here")
    plain = m.f
    export_names(vars(m))
    assert m.f is not plain and m.f is m.g and m.h is len
    assert (m.f.__module__, m.f.__name__, m.f.__doc__, m.f.called) == (
        "hlotrace.numpy.made_here", "f", "A sum.", "jnp.made_here.f")
    assert m.f(2) == 3 and pickle.loads(pickle.dumps(m.f)) is m.f
    again = module(name="hlotrace.elsewhere")
    # one object, wherever it is exported
    assert entered(plain, "hlotrace.elsewhere", "f") is m.f and again
    assert entered(3, "hlotrace.elsewhere", "f") == 3


@pytest.mark.parametrize("place, called", [
    (jax.numpy.linspace, "jnp.linspace"), (jax.numpy.linalg.inv, "jnp.linalg.inv"),
    (jax.lax.scan, "lax.scan"), (jax.jit, "jit"),
    (jax.scipy.special.gamma, "scipy.special.gamma")], ids=lambda x: x if isinstance(x, str) else "")
def test_what_errors_call_a_function(place, called):
    assert place.called == called


def test_a_function_under_another_name():
    def f(x, *, y=2):
        "Words."
        return x + y
    f.called = "f"
    g = renamed(f, "g")
    assert (g.__name__, g.__qualname__, g.called, g.__doc__, g(1), g(1, y=5)) == (
        "g", "g", "g", "Words.", 3, 6)
    assert (f.__name__, f.called) == ("f", "f")
