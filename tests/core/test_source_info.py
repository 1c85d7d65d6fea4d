"""Which line of the user's program made a value: where it is, how it is written, whose lines do not count."""
import contextlib
import functools
import linecache
import os
import sys
import warnings

import pytest

import hlotrace as jax
from hlotrace.core import source_info
from hlotrace.core.source_info import describe, position, scope_text, user_frame, user_stacklevel

pytestmark = pytest.mark.quick
HERE = os.path.abspath(__file__)


def asked():
    """What the library sees where the user calls it: `user_frame` looks beyond its caller."""
    return user_frame()


def test_the_position_of_a_call():
    source = (lambda: asked())()
    filename, line, column, function = position(source)
    assert os.path.abspath(filename) == HERE and function.endswith("test_the_position_of_a_call.<locals>.<lambda>")
    text = linecache.getline(HERE, line)
    assert text[column - 1:].startswith("asked()")      # columns count from 1
    assert describe(source) == f"{source_info.short(filename)}:{line} ({function})"


def test_no_source_has_no_words():
    assert describe(None) == ""


def test_a_source_without_columns():
    code = compile("x = 1", "script.py", "exec").replace(co_linetable=b"")
    assert position((code, 0)) == ("script.py", code.co_firstlineno, 0, "<module>")


@pytest.mark.parametrize("filename, shown", [
    (os.path.join(os.getcwd(), "train.py"), "train.py"), (os.path.join(os.getcwd(), "a", "b.py"), os.path.join("a", "b.py")),
    (os.getcwd() + "_other/train.py", os.getcwd() + "_other/train.py"), ("/elsewhere/train.py", "/elsewhere/train.py"),
    ("<stdin>", "<stdin>")])
def test_files_below_the_working_directory_are_written_from_there(filename, shown):
    assert source_info.short(filename) == shown


def test_lines_of_the_library_and_of_what_calls_for_it_do_not_count():
    assert source_info.is_package(source_info.__file__) and not source_info.is_package(HERE)
    jaxpr = jax.make_jaxpr(lambda x: jax.nn.gelu(x))(1.0)
    assert all(position(eqn.source)[0] == __file__ for eqn in jaxpr.eqns)

    class Context(contextlib.nullcontext):
        def __enter__(self):
            return user_frame()
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(Context())
    assert position(source)[0] == __file__ == position(functools.singledispatch(lambda _: user_frame())(1))[0]


def test_lines_of_excluded_files_do_not_count():
    namespace = {"asked": asked}
    exec(compile("def library():\n    return asked()", "/a/library/of/theirs.py", "exec"), namespace)
    library = namespace["library"]
    assert position(library())[0] == "/a/library/of/theirs.py"
    before = source_info.excluded()
    source_info.exclude("/a/library/")
    source_info.exclude("/a/library/")
    try:
        assert source_info.excluded() == (*before, "/a/library/", "/a/library/")
        assert position(library())[0] == __file__ and source_info.is_package("/a/library/x.py")
        source_info.include("/a/library/")      # one of the two
        assert position(library())[0] == __file__
    finally:
        source_info.include("/a/library/")
    assert position(library())[0] == "/a/library/of/theirs.py" and source_info.excluded() == before
    with pytest.raises(ValueError):
        source_info.include("/a/library/")


def test_a_warning_points_at_the_users_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("here", stacklevel=user_stacklevel())
        jax.dtypes.canonicalize_dtype("float32"), jax.numpy.zeros
        jax.make_jaxpr(lambda x: x.astype("float64"))(1.0)
    assert {w.filename for w in caught} == {__file__} and len(caught) == 2


def test_how_many_names_a_value_is_unpacked_into():
    class Asks:
        def __iter__(self):
            found.append(source_info.unpacked_into(sys._getframe(1)))
            return iter(range(3))
    found = []
    a, b, c = Asks()
    tuple(Asks())
    assert found == [3, None] and (a, b, c) == (0, 1, 2)


def test_scopes():
    path = source_info.NameStack().extend("outer").extend("inner")
    assert str(path) == path.path == "outer/inner" and str(source_info.NameStack()) == ""


@pytest.mark.parametrize("stack, text", [
    ("", ""), ("a", "a/"), ("a/b", "a/b/"), ("jvp()", "jvp()/"), ("jvp()/a", "jvp(a)/"), ("jvp()/a/b", "jvp(a)/b/"),
    ("transpose()/jvp()/a", "transpose(jvp(a))/"), ("a/vmap()/jvp()/transpose()/b/c", "a/vmap(jvp(transpose(b)))/c/"),
    ("vmap()/jvp()", "vmap(jvp())/"), ("jvp()/a/jvp()/b", "jvp(a)/jvp(b)/"), ("jvp()/jit(f)/a", "jvp(jit(f))/a/"),
])
def test_transformations_are_around_the_scope_that_follows(stack, text):
    assert scope_text(stack) == text
