"""The small functions of `jax._src.util`."""
import functools
import gc

import pytest

from hlotrace.as_jax import helpers as u


@pytest.mark.parametrize("found, wanted", [
    (lambda: u.safe_zip([1, 2], (3, 4)), [(1, 3), (2, 4)]),
    (lambda: u.unzip2([(1, 2), (3, 4)]), ((1, 3), (2, 4))), (lambda: u.unzip2([]), ((), ())),
    (lambda: u.unzip3([(1, 2, 3)]), ((1,), (2,), (3,))),
    (lambda: u.split_list([1, 2, 3, 4], [1, 2]), [[1], [2, 3], [4]]),
    (lambda: u.split_list_checked([1, 2, 3], [1, 2]), [[1], [2, 3]]),
    (lambda: u.partition_list([True, False, True], [1, 2, 3]), ([2], [1, 3])),
    (lambda: u.merge_lists([True, False, True], [2], [1, 3]), [1, 2, 3]),
    (lambda: u.subvals([1, 2, 3], [(0, 9)]), (9, 2, 3)), (lambda: u.subs_list([0, None], ["a"], ["b"]), ["a", "b"]),
    (lambda: u.concatenate([[1], (2, 3)]), [1, 2, 3]), (lambda: u.unflatten([1, 2, 3], [1, 2]), [[1], [2, 3]]),
    (lambda: u.tuple_insert((1, 2), 1, 5), (1, 5, 2)), (lambda: u.tuple_delete((1, 2), 0), (2,)),
    (lambda: u.tuple_update((1, 2), 0, 7), (7, 2)), (lambda: u.ceil_of_ratio(5, 2), 3),
    (lambda: u.wrap_name("jit", "f"), "jit(f)"), (lambda: u.fun_name(functools.partial(len)), "len"),
    (lambda: u.curry(max)(1)(2), 2)])
def test_lists_tuples_and_names(found, wanted):
    assert found() == wanted


@pytest.mark.parametrize("wrong, error, words", [
    (lambda: u.safe_zip([1], [2, 3]), ValueError, r"safe_zip\(\) argument 1 has length 2 but argument 0 has length 1"),
    (lambda: u.safe_zip(), TypeError, "at least 1 argument"), (lambda: u.foreach(print, [1], [2, 3]), ValueError, "longer"),
    (lambda: u.partition_list([True], [1, 2]), AssertionError, None), (lambda: u.merge_lists([True], [1], []), AssertionError, None),
    (lambda: u.split_list_checked([1], [2]), AssertionError, None), (lambda: u.tuple_insert((), 1, 1), AssertionError, None)])
def test_what_does_not_fit(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()


def test_functions_that_are_equal_and_sets_in_order():
    def named(x):
        return x
    f, g = (u.HashableFunction(named, closure=(1, 2)) for _ in range(2))
    assert f == g and hash(f) == hash(g) and f(3) == 3 and f != u.HashableFunction(named, closure=(1,))
    found = u.OrderedSet()
    found.update([3, 1, 3])
    found.add(2)
    assert list(found) == [3, 1, 2] and len(found) == 3 and 1 in found


def test_caches_count_and_let_go():
    class Owner:
        pass

    @u.weakref_lru_cache
    def of_owner(owner, x):
        return [x]
    owner = Owner()
    assert of_owner(owner, 1) is of_owner(owner, 1) and of_owner(owner, 2) == [2]
    assert of_owner.cache_info()[:2] == (1, 2) and of_owner.cache_info().currsize == 2
    del owner
    gc.collect()
    assert of_owner.cache_info().currsize == 0

    @u.cache()
    def of_value(x, *, y=0):
        return [x + y]
    assert of_value(1, y=2) is of_value(1, y=2) and of_value.cache_info()[:2] == (1, 1)
