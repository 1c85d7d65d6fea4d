"""Argument numbers and names by a function's signature, and static arguments as parts of keys."""
import functools
import inspect

import numpy as np
import pytest

import hlotrace
from hlotrace.api.signatures import (
    Static, alike, as_tuple, insert_statics, name_of, numbers_and_names, signature_of, split_statics,
    static_key, static_values, take_names)

pytestmark = pytest.mark.quick


def plain(a, b, c=0):
    """What it is for."""


def strict(a, /, b, *, c):
    pass


def rest(a, *args, c=1):
    pass


def anything(a, **kwargs):
    pass


class Callable:
    def __call__(self, a, b):
        pass


@pytest.mark.parametrize("function, numbers, names, wanted", [
    (plain, 0, None, ((0,), ("a",))), (plain, None, "b", ((1,), ("b",))),
    (plain, (2, 0), None, ((0, 2), ("a", "c"))),
    (plain, -1, None, ((2,), ("c",))), (plain, (0,), ("c",), ((0,), ("c",))), (plain, (), "c", ((), ("c",))), (plain, None, None, ((), ())),
    (strict, 0, None, ((0,), ())), (strict, 1, None, ((1,), ("b",))), (strict, None, "c", ((), ("c",))),
    (rest, 3, None, ((3,), ())), (rest, -1, None, ((-1,), ())), (rest, None, "c", ((), ("c",))),
    (anything, None, "z", ((), ("z",))), (Callable(), 1, None, ((1,), ("b",))),
    (functools.partial(plain, 1), 0, None, ((0,), ("b",))),
    (functools.partial(plain, c=1), None, "b", ((1,), ("b",)))])
def test_numbers_and_names_follow_from_each_other(function, numbers, names, wanted):
    assert numbers_and_names(function, numbers, names, "static") == wanted


@pytest.mark.parametrize("numbers, names, error, words", [
    (3, None, ValueError, "static_argnums=\\(3,\\), but only accepts 3 positional .*number 3 of plain"),
    (-4, None, ValueError, "number -4 of plain"),
    (None, "d", ValueError, "{'d'} in static_argnames.* a, b, c"),
    ("a", None, TypeError, "static_argnums must be an int or a sequence"),
    (None, 1, TypeError, "static_argnames must be a str")])
def test_those_that_the_function_lacks_are_named(numbers, names, error, words):
    with pytest.raises(error, match=words):
        numbers_and_names(plain, numbers, names, "static")


def test_names_of_what_is_called():
    class Odd:
        @property
        def __name__(self):
            raise RuntimeError
    assert [name_of(f) for f in (plain, functools.partial(functools.partial(plain, 1)), Callable(),
                                 Odd())] == [
        "plain", "plain", "Callable", "Odd"]
    assert signature_of(plain) == inspect.signature(plain) and signature_of(
        type("C", (), {"__signature__": 3})) is None


def test_a_wrapper_has_the_names_of_what_it_wraps_and_keeps_its_own():
    def wrapper():
        pass
    plain.extra = plain.own = 1
    wrapper.own = 2
    take_names(wrapper, plain)
    assert (wrapper.__name__, wrapper.__doc__, wrapper.__wrapped__, wrapper.extra, wrapper.own) == (
        "plain", "What it is for.", plain, 1, 2)


@pytest.mark.parametrize("transform, doc", [
    (hlotrace.vmap, "Vectorized version of plain.\n\nOriginal documentation:\n\nWhat it is for."),
    (hlotrace.grad, "Gradient of plain with respect to positional argument(s) 0."),
    (functools.partial(hlotrace.value_and_grad, argnums=(0, 1)),
     "Value and gradient of plain with respect to positional argument(s) (0, 1)."),
    (hlotrace.jacfwd, "Jacobian of plain with respect to positional argument(s) 0."),
    (hlotrace.hessian, "Jacobian of plain with respect to positional argument(s) 0."),
    (hlotrace.jit, "What it is for."), (hlotrace.checkpoint, "What it is for.")])
def test_docstrings_of_transformed_functions_say_what_they_give(transform, doc):
    assert transform(plain).__doc__ == doc


def test_sequences():
    assert as_tuple(None, int, "n") == () and as_tuple(3, int, "n") == (3,) and as_tuple(
        [1, 2], int, "n") == (1, 2)
    assert as_tuple("ab", str, "n") == ("ab",)
    with pytest.raises(TypeError, match="n must be a str or a sequence of them, got"):
        as_tuple([[]], int, "n")


def test_statics_are_taken_out_and_put_back():
    args, kwargs = (1, "two", 3), {"d": 4, "e": "five"}
    left, named, statics = split_statics(args, kwargs, (1, 7), ("e", "absent"))
    assert (left, named, statics) == ((1, 3), {"d": 4}, ((1, "two"), ("e", "five")))
    assert insert_statics(left, named, statics) == ([*args], kwargs)
    assert static_values(static_key(statics, "f")) == [*statics]
    same = split_statics(args, kwargs, ())
    assert same[0] is args and same[1] is kwargs and same[2] == ()


@pytest.mark.parametrize("a, b, same", [
    (1, 1, True), (1, 1.0, False), (1, True, False), (0.0, -0.0, False), ((1, 2.0), (1, 2.0), True),
    ((1,), (1.0,), False),
    ((0.0,), (-0.0,), False), (np.float32(1), np.float32(1), True), (np.float32(1), np.float64(1), False),
    (frozenset({1}), frozenset({1.0}), False), ("a", "a", True), ((1, 2), (1, 2, 3), False)])
def test_static_arguments_are_equal_in_type_and_value(a, b, same):
    assert alike(a, b) == same
    one, other = Static(a, 0, "f"), Static(b, 0, "f")
    assert (one == other) == same and (not same or hash(one) == hash(other))


def test_what_cannot_be_in_a_key():
    class Bad:
        __hash__ = object.__hash__

        def __eq__(self, other):
            raise RuntimeError("no")
    with pytest.raises(ValueError,
                       match=r"type <class 'list'>, \[1\], argument 'x' of f\.[\s\S]*pass a tuple"):
        Static([1], "x", "f")
    one, other = Static(Bad(), 0, "f"), Static(Bad(), 0, "f")
    with pytest.raises(ValueError, match=r"comparable using __eq__[\s\S]*RuntimeError: no"):
        one.__eq__(other)
