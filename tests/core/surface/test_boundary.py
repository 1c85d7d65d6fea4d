"""How exceptions leave the library: the user's frames alone, the call in the user's words, nothing internal
before it."""
import _thread
import concurrent.futures
import contextlib
import dataclasses
import gc
import inspect
import operator
import pickle
import re
import subprocess
import sys
import time
import traceback
import warnings
import weakref
from collections import namedtuple
from types import FunctionType, ModuleType

import numpy as np
import pytest
from not_compiled import ones_for_results

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core import source_info
from hlotrace.core.surface import boundary
from hlotrace.core.surface.boundary import UnfilteredStackTrace

EAGER = """
import hlotrace.numpy as jnp
x, y = jnp.ones((5, 17)), jnp.ones(19)
x + y
"""
NESTED = """
import hlotrace as jax, hlotrace.numpy as jnp
from hlotrace import lax
@jax.jit
def f(x):
    def body(c, t):
        return c + jnp.ones(19), t
    def loss(y):
        return lax.scan(body, y, jnp.arange(3.))[0].sum()
    return jax.grad(loss)(x)
f(jnp.ones((5, 17)))
"""


def frames(error):
    """The file and the function of each entry of its traceback."""
    return [(f.filename, f.name) for f in traceback.extract_tb(error.__traceback__)]


def test_what_would_make_shapes_fit_is_said():
    for a, b, words in (((5, 17), (5,),
                         "the second fits with a new last axis: x[..., None], of shape (5, 1)"),
                        ((4, 3), (3, 4), "the second fits transposed: x.T, of shape (4, 3)"),
                        ((5, 17), (19,), "reshape, slice or pad one of them")):
        error = caught(jnp.multiply, jnp.ones(a), jnp.ones(b))
        assert type(error) is jax.errors.ShapeError and isinstance(error, TypeError) and isinstance(
            error, ValueError)
        assert words in str(error)


def ours(error):
    return [f for f, _ in frames(error) if f.startswith(source_info.PACKAGE)]


def caught(function, *args, **kwargs):
    with pytest.raises(Exception) as info:
        function(*args, **kwargs)
    return info.value


@pytest.mark.parametrize("program, most", [(EAGER, 6), (NESTED, 12)])
def test_the_traceback_of_a_script_is_short(tmp_path, program, most):
    script = tmp_path / "script.py"
    script.write_text(program)
    printed = subprocess.run([sys.executable, script], capture_output=True,
                             text=True).stderr.strip().splitlines()
    assert len(printed) <= most, "\n".join(printed)
    assert "hlotrace/" not in "".join(line for line in printed if line.lstrip().startswith("File"))
    assert re.search(
        r"ShapeError: \([xc]: float32\[5,17\]\) \+ \(.*float32\[19\]\): Incompatible shapes.*\(5, 17\) and "
                     r"\(19,\)", printed[-1])


def test_operands_have_the_names_of_the_callers_code():
    params = {"w1": jnp.ones((3, 4)), "b1": [jnp.ones(5)]}

    def model(params, x):
        return x @ params["w1"] + params["b1"][0]

    for run in (model, jax.jit(model), jax.vmap(model, in_axes=(None, 0)), jax.jacobian(model)):
        error = caught(run, params, jnp.ones((2, 3)))
        assert "(params['b1'][0]: float32[5])" in str(error), str(error)
        assert frames(error)[-1][1] == "model"


def test_a_traced_operand_says_where_it_is_from():
    def f(x, n):
        y = x * 2
        return jnp.where(n > 0, y, x)

    text = str(caught(jax.jit(f), jnp.ones(3), jnp.ones(4)))
    assert "jnp.where(bool[4], y: float32[3], x: float32[3]): Incompatible shapes" in text
    assert re.search(r"; y was computed at .*test_boundary.py:\d+ \(.*f\)$", text)


def test_errors_of_the_users_own_pass_untouched():
    class Mine(ValueError):
        pass

    def body(c, x):
        try:
            raise KeyError("first")
        except KeyError as error:
            raise Mine("second") from error

    for call in (lambda: lax.scan(body, 0., jnp.ones(3)),
                 lambda: jax.jit(lambda x: lax.scan(body, x, jnp.ones(3)))(1.),
                 lambda: jax.grad(lambda x: lax.scan(body, x, jnp.ones(3))[0])(1.)):
        error = caught(call)
        assert type(error) is Mine and error.args == ("second",) and isinstance(error.__cause__, KeyError)
        assert not ours(error) and frames(error)[-1][1] == "body"
        assert not getattr(error, "__notes__", None)


def test_what_was_dealt_with_inside_is_not_shown():
    """A look into a table that fails first is no part of the story."""
    for call in (lambda: jax.jit(lambda x: x + jnp.ones(4))(jnp.ones(3)), lambda: jnp.ones(3) + jnp.ones(4),
                 lambda: jnp.where(jnp.ones(3) > 0, jnp.ones(4), 1),
                 lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3))):
        assert "During handling" not in "".join(traceback.format_exception(caught(call)))


def test_what_the_user_was_handling_is_kept():
    try:
        raise KeyError("the user's")
    except KeyError:
        error = caught(lambda: jnp.ones(3) + jnp.ones(4))
    assert isinstance(error.__context__, KeyError)


def test_modes():
    def fail():
        return jnp.ones(3) + jnp.ones(4)

    with _filtering("off"):
        assert len(ours(caught(fail))) > 3
    with _filtering("tracebackhide"):
        error = caught(fail)
        hidden = [f.f_locals.get("__tracebackhide__", False)
                  for f, _ in traceback.walk_tb(error.__traceback__)
                  if f.f_code.co_filename.startswith(source_info.PACKAGE)]
        assert len(hidden) > 3 and all(hidden)
    with _filtering("remove_frames"):
        error = caught(fail)
        assert not ours(error) and isinstance(error.__cause__, UnfilteredStackTrace) and len(
            ours(error.__cause__)) > 3
    for mode in ("quiet_remove_frames", "auto"):
        with _filtering(mode):
            error = caught(fail)
            assert not ours(error) and error.__cause__ is None
    with pytest.raises(ValueError, match="new enum value must be .*, got loud"):
        jax.config.update("jax_traceback_filtering", "loud")


class _filtering:
    def __init__(self, mode):
        self.mode = mode

    def __enter__(self):
        jax.config.update("jax_traceback_filtering", self.mode)

    def __exit__(self, *_):
        jax.config.update("jax_traceback_filtering", "auto")


# --- whatever users do --------------------------------------------------------------------------------------

class Touchy:
    """An object that lets nobody look at it."""
    touched = []

    def _touch(self, *args):
        Touchy.touched.append(args)
        raise RuntimeError("touched")

    __repr__ = __eq__ = __hash__ = __bool__ = __len__ = __iter__ = __getattr__ = __class__ = __dict__ = property(_touch)


class TouchyDict(dict):
    items = keys = __iter__ = __len__ = __getitem__ = __getattr__ = Touchy._touch


class TouchyList(list):
    __iter__ = __len__ = __getitem__ = __getattr__ = Touchy._touch


def test_to_word_an_error_runs_no_code_of_the_users():
    class Gone:
        pass

    odd = Touchy()
    cells = np.empty(1, object)
    cells[0] = odd
    held = [odd, TouchyDict(a=odd), TouchyList([odd]), weakref.proxy(Gone()), cells, (odd, [odd])]
    x = jnp.ones(3)
    for call, words in ((lambda: (held, x) and x + jnp.ones(4),
                         "(x: float32[3]) + (float32[4]): Incompatible"),
                        (lambda: jnp.reshape(x, (7,), order=odd), "order=Touchy(...)): cannot reshape")):
        error = caught(call)
        assert words in str(error) and not getattr(error, "__notes__", None), str(error)
    assert not Touchy.touched


def test_to_word_an_error_takes_no_longer_where_there_is_much():
    x, much = jnp.ones(3), [[0] * 1000] * 3000
    more, most = dict.fromkeys(range(1_000_000)), list(range(3_000_000))
    caught(lambda: x + jnp.ones(4))
    start = time.thread_time()      # of this thread: the machine may have other things to do
    error = caught(lambda: (much, more, most) and x + jnp.ones(4))
    assert time.thread_time() - start < 0.5 and "(x: float32[3])" in str(error)
    assert len(str(caught(lambda: jnp.reshape(x, (7,), order="C" * 10**7)))) < 300
    assert "order=int(...)): cannot reshape" in str(caught(lambda: jnp.reshape(x, (7,), order=10**5000)))


MISTAKES = {
    "eager": lambda x: x + jnp.ones(3), "jit": lambda x: jax.jit(lambda v: v + jnp.ones(3))(x),
    "closed over": lambda x: jax.jit(lambda v: x + v)(jnp.ones(3)), "index": lambda x: x[10],
    "float": lambda x: float(x),
    "grad": lambda x: jax.grad(lambda v: (v + jnp.ones(3)).sum())(x),
    "vjp": lambda x: jax.vjp(jnp.sin, x)[1](jnp.ones(3)),
    "vmap": lambda x: jax.vmap(lambda v: v + jnp.ones((7, 3)) + jnp.ones(5))(x),
    "user": lambda x: jax.jit(_fails)(x),
    "scan": lambda x: jax.jit(lambda v: lax.scan(lambda c, t: (c + jnp.ones(3), t), v, v))(x),
    "concatenate": lambda x: jnp.concatenate([x, x[0]]),
    "callback": lambda x: jax.jit(lambda v: jax.pure_callback(_fails, jnp.float32(1), v))(
        x).block_until_ready()}


def _fails(x):
    raise KeyError("the user's")


@pytest.mark.parametrize("mode", ["auto", "tracebackhide", "remove_frames", "off"])
def test_a_handled_error_holds_nothing(mode):
    """Not until the next garbage collection, either: the memory of a GPU would be full by then."""
    with _filtering(mode):
        for name, call in MISTAKES.items():
            x = jnp.ones(7) * 2
            ref = weakref.ref(x)
            gc.disable()
            try:
                with contextlib.suppress(Exception):
                    call(x)
                del x
                assert ref() is None, name
            finally:
                gc.enable()


def test_an_error_leaves_no_copies_of_local_variables():
    x, mine = jnp.ones(7) * 2, None
    ref = weakref.ref(x)
    with contextlib.suppress(TypeError):
        x + jnp.ones(3)
    del x
    assert ref() is None
    mine = locals()
    mine["more"] = 1
    with contextlib.suppress(TypeError):
        jnp.ones(7) + jnp.ones(3)
    assert mine["more"] == 1 and "ref" in mine      # a dict that someone else has stays as it is


def test_calls_that_no_code_makes():
    """A thread may begin with a function of ours, which then has no caller."""
    seen, old = [], sys.unraisablehook
    sys.unraisablehook = lambda args: seen.append(args.exc_value)
    try:
        x, y = jnp.ones(3), jnp.ones(4)
        calls = [(jnp.add, (x, y)), (jax.jit(jnp.add), (x, y)), (x.__add__, (y,)), (x.reshape, (7,)),
                 (jnp.where, (x, y, 1))]
        for n, (function, args) in enumerate(calls):
            _thread.start_new_thread(function, args)
            for _ in range(500):
                time.sleep(0.01) if len(seen) <= n else None
    finally:
        sys.unraisablehook = old
    assert len(seen) == len(calls) and all(re.search("float32.3.|reshape", str(e)) and not ours(e)
                                           for e in seen), seen


def test_names_are_those_of_the_users_code():
    """Not of a thread's, of functools', nor of a notebook's history."""
    x, y = jnp.ones(3), jnp.ones(4)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        text = str(pool.submit(jnp.add, x, y).exception())
    assert text.startswith("jnp.add(float32[3], float32[4]): "), text
    notebook = {"_": x, "Out": {3: x}, "_3": x, "x": x, "y": y}
    assert str(caught(lambda: exec("x + y", notebook))).startswith("(x: float32[3]) + (y: float32[4]): ")


def test_an_exception_that_cannot_be_written_to():
    @dataclasses.dataclass(frozen=True)
    class Frozen(Exception):
        number: int

    def fail(x):
        raise Frozen(3)

    for call in (lambda: jax.vmap(fail)(jnp.ones(3)), lambda: jax.grad(fail)(1.),
                 lambda: jax.tree.map(fail, [1])):
        error = caught(call)
        assert type(error) is Frozen and error.number == 3 and not ours(error)


def test_what_the_user_was_handling_is_kept_in_all_modes():
    def handled(then):
        try:
            jnp.ones(3) + jnp.ones(4)
        except TypeError:
            then()

    def other():
        raise RuntimeError("another")

    for mode in ("auto", "tracebackhide", "remove_frames", "quiet_remove_frames", "off"):
        with _filtering(mode):
            for then in (lambda: jnp.ones(3) @ jnp.ones(5), other):
                for call in (lambda: handled(then), lambda: jax.jit(lambda x: handled(then))(1.)):  # noqa: B023
                    error = caught(call)
                    assert type(error.__context__) is jax.errors.ShapeError and "(4,)" in str(
                        error.__context__), mode


def test_remove_frames_keeps_them_all_beside():
    def f(x):
        return lax.scan(lambda c, t: (c + jnp.ones(4), t), x, jnp.arange(3.))

    with _filtering("remove_frames"):
        error = caught(jax.jit(lambda x: jax.vmap(f)(x)), jnp.ones((2, 3)))
    with _filtering("off"):
        whole = caught(jax.jit(lambda x: jax.vmap(f)(x)), jnp.ones((2, 3)))
    assert not ours(error) and frames(error.__cause__) == frames(whole)[1:], (
        frames(error.__cause__), frames(whole))


def test_what_is_wrong_outside_is_no_fault_of_ours():
    def warned():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            jnp.zeros(3, "float64")

    def endless(x):
        return jax.jit(lambda v: endless(v))(x)

    for call, kind in ((lambda: jnp.load("is not there.npy"), FileNotFoundError), (warned, UserWarning),
                       (lambda: endless(1.), RecursionError),
                       (lambda: jax.tree.map(operator.truediv, [1], [0]), ZeroDivisionError),
                       (lambda: jax.tree.unflatten(jax.tree.structure([1]), [1, 2]), ValueError)):
        error = caught(call)
        assert isinstance(error, kind) and not getattr(error, "__notes__", None) and not ours(error), repr(
            error)
    def two(x, y):
        return x

    for call in (lambda: jnp.piecewise(jnp.ones(2), [True], [lambda v, w: v]),
                 lambda: jnp.piecewise(jnp.ones(2), [True], [two]),
                 lambda: jnp.piecewise(jnp.ones(2), [True], [lambda v: [0][v > 3]]),
                 lambda: jax.lax.switch(0, [lambda: 1, two]), lambda: jax.lax.switch(0, branches=[two])):
        error = caught(call)        # the slip is in a function in a list
        assert isinstance(error, TypeError) and not getattr(error, "__notes__", None) and not ours(
            error), repr(error)
    for call, words in ((lambda: jnp.sum(jnp.ones(3), axis="a"),
                         "jnp.sum(float32[3], axis='a'): Found an unbound axis name: a"),
                        (lambda: jnp.ones(3).trace("a"),
                         "Array.trace(float32[3], 'a'): 'str' object cannot be"),
                        (lambda: jnp.split(jnp.ones(3), "a"),
                         "jnp.split(float32[3], 'a'): 'str' object cannot be")):
        error = caught(call)
        assert str(error).startswith(words) and not getattr(error, "__notes__", None), str(error)


@pytest.mark.parametrize("call, words", [
    (lambda x: jnp.transpose(x, 2.5),
     "jnp.transpose(x: float32[3], 2.5): 'float' object is not iterable; it was given axes = 2.5"),
    (lambda x: x.round("a"), "Array.round(x: float32[3], 'a'): 'str' object cannot be interpreted as an integer"),
    (lambda x: lax.transpose(x, permutation=None), "is not iterable; it was given permutation = None"),
    (lambda x: lax.concatenate(3, 0),
     "lax.concatenate: 'int' object is not iterable; it was given operands = 3, "
                                      "dimension = 0"),
    (lambda x: jax.nn.scaled_matmul(1.0, x, x, x), "has no attribute 'ndim'; it was given lhs = 1.0"),
    (lambda x: jax.devices([]), "devices: unhashable type: 'list'; it was given backend = []")])
def test_an_argument_that_python_refuses_is_named(call, words):
    error = caught(call, jnp.ones(3))
    assert words in str(error) and not getattr(error, "__notes__", ())


@pytest.mark.parametrize("owner", [jax.Array, jax.core.Tracer, type(jnp.ones(3)), type(jnp.ones(3).at[0])])
def test_python_calls_methods_by_their_names(owner):
    found = [getattr(f, "__func__", f) for f in (inspect.getattr_static(owner, name) for name in dir(owner))]
    assert not [f.__qualname__ for f in found if isinstance(f, FunctionType) and "<locals>" in f.__qualname__]


def test_a_fault_of_ours_is_told_of_once():
    def fault():
        raise_inside({}, "x")

    raise_inside = boundary.boundary(
        FunctionType(compile("f = lambda d, k: d[k]", source_info.PACKAGE + "fault.py", "exec")
                                                  .co_consts[0], {}), "jnp.fault")
    for mode in ("auto", "off", "tracebackhide"):
        with _filtering(mode):
            error = caught(lambda: jax.jit(lambda x: jax.vmap(lambda y: fault())(x))(jnp.ones(3)))
            assert len(
                error.__notes__) == 1 and "fault.py:1, and not by one of its checks" in error.__notes__[0]


def test_an_error_raised_again_keeps_its_words():
    first = caught(lambda: jnp.ones(3) + jnp.ones(4))
    text = str(first)

    def again(x):
        raise first

    for _ in range(3):
        assert caught(jax.jit(again), 1.) is first and str(first) == text and not ours(first)
    twin = pickle.loads(pickle.dumps(first))
    assert type(twin) is type(first) and str(twin) == text


# --- every public function ----------------------------------------------------------------------------------

def faces():
    """The modules for users; those for who extends the library (core, extend, interpreters) give it as it is.
    """
    found, waiting = {}, [jax]
    while waiting:
        module = waiting.pop()
        if module.__name__ not in found and not re.match(r"hlotrace\.(core|extend|interpreters|runtime)\b",
                                                         module.__name__):
            found[module.__name__] = module
            waiting += [v for n in dir(module) if not n.startswith("_")
                        and isinstance(v := getattr(module, n), ModuleType)
                        and v.__name__.startswith("hlotrace.")]
    return found


STRANGE = [(object(),), (jnp.ones((2, 3)), "what"), (jnp.ones((2, 3)), 7), (jnp.ones((2, 3)), np.ones(5))]
NOT_CALLED = {"start_server", "breakpoint", "initialize", "shutdown", "set_mesh", "print_environment_info"}


def shows(function, args):
    """What a call that fails shows of the library; its operands are looked for among the few names here."""
    try:
        result = function(*args)
        if inspect.iscoroutine(result):
            result.close()      # nothing awaits it
    except Exception as error:
        if ours(error) or isinstance(error, (KeyError, AssertionError)):
            return repr(error), ours(error)[-1:]


def test_no_public_function_shows_frames_of_the_library():
    found = {id(function): (function, f"{face}.{name}")
             for face, module in faces().items() for name in dir(module)
             if not name.startswith("_") and name not in NOT_CALLED
             and isinstance(function := getattr(module, name), (FunctionType, jnp.ufunc))
             and function.__module__.startswith("hlotrace")}
    with ones_for_results():       # what a call that is right computes is not the question
        shown = [(name, args, said) for function, name in found.values() for args in STRANGE
                 if (said := shows(function, args))]
    assert len(found) > 1000 and not shown, "\n".join(map(str, shown[:10]))


@pytest.mark.parametrize("face", sorted(faces()))
def test_public_functions_are_found_again_by_pickle(face):
    for name, function in vars(faces()[face]).items():
        if type(function) is FunctionType and not name.startswith("_") and function.__module__.startswith(
            "hlotrace"):
            assert pickle.loads(pickle.dumps(function)) is function, name


LEFT_OUT = """__class__ __init_subclass__ __subclasshook__ __init__ __setattr__ __setstate__ __delattr__ at delete
    flat""".split()


def test_no_method_of_an_array_shows_frames_of_the_library():
    x, shown = jnp.ones((2, 3)), []
    for name in set(dir(jax.Array)) - set(LEFT_OUT):
        method = getattr(x, name, None)
        for args in STRANGE if callable(method) else ():
            try:
                method(*args)
            except Exception as error:
                if ours(error):
                    shown.append((name, args, repr(error), ours(error)[-1:]))
    assert not shown, "\n".join(map(str, shown[:10]))


def test_what_stands_for_an_array_is_asked_once():
    """Also in a named tuple; where it gives none that is an error, and no endless asking."""
    class Box:
        def __init__(self, value):
            self.value = value

        def __jax_array__(self):
            return self.value
    pair = namedtuple("pair", "first second")
    assert jnp.stack(pair(Box(jnp.ones(2)), jnp.ones(2))).shape == (2, 2)
    for value in "text", Box(jnp.ones(2)):
        with pytest.raises(TypeError, match="__jax_array__ of a Box gives a .*; it must give an array"):
            jnp.sum(Box(value))


def test_a_library_may_put_its_own_code_into_a_public_function():
    """As Qwix does: those who hold the function call that; a copy of it made before is as it was."""
    for function, x in ((jax.lax.dot_general, jax.numpy.ones(2)), (jax.numpy.einsum, jax.numpy.ones(2))):
        assert function.__code__.co_freevars == ()
        code, copy = function.__code__, FunctionType(function.__code__, function.__globals__)
        copy.__kwdefaults__ = function.__kwdefaults__
        try:
            function.__code__ = (lambda *args, **kwargs: "theirs").__code__
            assert function(x) == "theirs"
        finally:
            function.__code__ = code
        given = ("i,i", x, x) if function is jax.numpy.einsum else (x, x, (((0,), (0,)), ((), ())))
        assert float(copy(*given)) == float(function(*given)) == 2
