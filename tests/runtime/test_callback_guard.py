"""The guard around host callbacks: operands in, results of the declared types out, exceptions carried past jaxlib."""
import numpy as np
import pytest

import hlotrace as jax
from hlotrace.core.config import override, state
from hlotrace.core.trace import EVAL
from hlotrace.runtime import binding, callback_guard

pytestmark = pytest.mark.quick
PAIR = (jax.ShapeDtypeStruct((2,), np.float32), jax.ShapeDtypeStruct((), np.int32))
AVALS = jax.make_jaxpr(lambda x, n: (x, n))(*(np.zeros(p.shape, p.dtype) for p in PAIR)).out_avals


def test_tokens_come_first_and_results_have_the_declared_types():
    token, seen = object(), []

    def function(x):
        seen.append((x, state.trace))
        with pytest.raises(RuntimeError, match="a host callback called wait, which would wait"):
            callback_guard.forbid_inside("wait")
        return [1.0, 2.0] + x, 3
    back, first, second = callback_guard.guard(function, AVALS, 1)(token, np.float32(1))
    assert back is token and seen == [(1, EVAL)]
    assert (first.dtype, first.tolist()) == (np.float32, [2, 3]) and (second.dtype, second.tolist()) == (np.int32, 3)
    callback_guard.forbid_inside("wait")


@pytest.mark.parametrize("results", [(np.zeros(3), 1), (np.zeros(2),), (np.zeros(2), 1, 1), ("ab", 1)], ids=str)
def test_a_wrong_result_is_an_error_that_jaxlib_never_sees(results):
    before = state.trace
    with pytest.raises(Exception, match="hlotrace-exception-") as caught:
        callback_guard.guard(lambda: results, AVALS, 0)()
    assert isinstance(callback_guard.original(caught.value), (TypeError, ValueError)) and state.trace is before


def test_the_users_exception_comes_back_once_and_then_its_like():
    class Own(Exception):
        pass
    error = Own("why", 3)
    error.more = "about it"
    through = binding.JaxRuntimeError(f"INTERNAL: {callback_guard.carried(error)} and more")
    assert callback_guard.original(through) is error
    twin = callback_guard.original(through)
    assert twin is not error and type(twin) is Own and twin.args == ("why", 3) and twin.more == "about it"
    strange = binding.JaxRuntimeError("hlotrace-exception-123456789; that no callback raised")
    assert callback_guard.original(strange) is strange


def test_exceptions_are_carried_for_a_while():
    first = callback_guard.carried(KeyError("first"))
    for _ in range(callback_guard._KEPT):
        last = callback_guard.carried(KeyError("last"))
    assert callback_guard.original(first) is first and callback_guard.original(last).args == ("last",)


def test_where_other_devices_wait_results_are_zeros():
    failures = []
    first, second = callback_guard.guard(lambda: 1 / 0, AVALS, 0, failures)()
    assert first.tolist() == [0, 0] and second == 0 and first.dtype == np.float32
    assert [type(error) for error in failures] == [ZeroDivisionError]


def test_what_an_exception_is_outside():
    error, end = ValueError("in it"), KeyboardInterrupt()
    with override("hlotrace_callback_errors", "own"):
        assert callback_guard.surfaced(error) is error
    with override("hlotrace_callback_errors", "jax"):
        text = str(callback_guard.surfaced(error))
        assert "CpuCallback error calling callback" in text and text.endswith("ValueError: in it")
        assert callback_guard.surfaced(end) is end


@pytest.mark.parametrize("size, words", [(512, "512.0 bytes"), (2**10, "1.0 KiB"), (3 * 2**30, "3.0 GiB"), (5 * 2**39, "2.5 TiB")])
def test_out_of_memory_says_how_much_in_words(size, words):
    error = callback_guard.original(binding.JaxRuntimeError(f"RESOURCE_EXHAUSTED: Out of memory allocating {size} bytes."))
    assert f"({words}): a computation that was waited for" in str(error)
    program = jax.make_jaxpr(lambda x: [x] * 5)(np.zeros(2, np.float32))
    of_program = str(callback_guard.original(binding.JaxRuntimeError(f"Out of memory allocating {size} bytes"), program))
    assert "whose results are float32[2], float32[2], float32[2], float32[2], ..." in of_program
