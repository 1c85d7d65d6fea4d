"""Functions with transformations around them, as jax.extend.linear_util has them."""
import pytest

from hlotrace.extend import linear_util


def test_functions_in_steps_are_remembered():
    calls = []

    @linear_util.cache
    def traced(fun, *args):
        calls.append(args)
        return fun.call_wrapped(*args)

    @linear_util.transformation
    def shifted(by, x):
        yield ((yield (x + by,), {}))
    f = linear_util.wrap_init(lambda x: x * 10, {})
    assert [traced(shifted(f, by), 1) for by in (1, 1, 2)] == [20, 20, 30] and len(calls) == 2
    with pytest.raises(NotImplementedError, match="explain"):
        linear_util.cache(traced, explain=print)
