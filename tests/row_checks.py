"""What is done with a row of the op table in more than one file of tests."""
import numpy as np
import pytest
from op_table import ROWS, sharding
from op_table.row import listed, widened
from together import compiled_together

import hlotrace
from hlotrace.core.dtypes import finfo, is_inexact

BATCH = 3


def rows(wanted=lambda row: True):
    return pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in ROWS if wanted(r)])


def rows_together(wanted, **options):
    """Makes of `program(row)` a function from a row to what `compiled_together` gives for it.

    Rows of programs that name their devices are compiled alone.
    """
    def decorate(program):
        by_name = {row.name: row for row in ROWS}
        computed = compiled_together([row.name for row in ROWS if wanted(row) and row not in sharding.ROWS],
                                     lambda name: program(by_name[name]), **options)
        return lambda row: computed(row.name)
    return decorate


def assert_near(got, want, rtol=1e-12):
    """Equal up to `rtol` of the size of the numbers at hand, or to what the dtype can tell apart; ints exactly."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    if not is_inexact(got.dtype):
        np.testing.assert_array_equal(got, want.astype(got.dtype))
        return
    rtol = max(rtol, 32 * float(finfo(got.dtype).eps)) if got.dtype.itemsize < 8 or rtol == 1e-12 else rtol
    got, want = widened(got), widened(want)
    finite = np.abs(want[np.isfinite(want)])
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * max(finite.max(initial=0), 1e-3))


def assert_all_near(got, want, rtol=1e-12):
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert_near(g, w, rtol)


def differentiable(row, args):
    """(function of the smooth operands to the inexact results, those operands), each as a list."""
    where = row.smooth_operands(args)

    def fun(*smooth):
        full = list(args)
        for i, x in zip(where, smooth):
            full[i] = x
        return [x for x in listed(row.fun(*full)) if is_inexact(x.dtype)]
    return fun, [args[i] for i in where]


def direction(shapes_of, seed):
    """Random arrays like these.  Complex ones are complex."""
    rng = np.random.default_rng(seed)

    def draw(x):
        v = rng.uniform(0.5, 1, x.shape) * rng.choice([-1, 1], x.shape)
        return (v * (1 - 0.7j) if np.dtype(x.dtype).kind == "c" else v).astype(x.dtype)
    return [draw(x) for x in shapes_of]


def inner(xs, ys):
    return sum(np.sum(np.asarray(x) * np.asarray(y)).real for x, y in zip(xs, ys))


def adjoint(fun, primals):
    """The transpose of a function that is linear in all its operands."""
    pull = hlotrace.linear_transpose(lambda xs: fun(*xs), tuple(primals))
    return lambda cotangents: list(pull(cotangents)[0])


def stacked(x, axis):
    """Different samples like `x` along a new axis: the same numbers in other places."""
    def variation(i):
        if x.size > 1:
            return np.roll(x.ravel(), i).reshape(x.shape)
        return x ^ bool(i % 2) if x.dtype == bool else x - i * x.dtype.type(0.25 if is_inexact(x.dtype) else 1)
    return np.stack([variation(i) for i in range(BATCH)], axis)


def mappable(row):
    return range(len(row.args)) if row.mapped is None else row.mapped


def programs(row):
    """What gives the StableHLO of a row's value and, if it has one, of its derivative, which has the value too."""
    args = row.sample(row.base)
    fun, smooth = differentiable(row, args)
    yield lambda: hlotrace.jit(lambda *args: listed(row.fun(*args))).lower(*args).as_text()
    if smooth and row.derivative in ("twice", "reverse", "zero"):
        yield lambda: hlotrace.jit(lambda *xs: hlotrace.vjp(fun, *xs)[1](fun(*xs))).lower(*smooth).as_text()


def text(row):
    """The StableHLO of a row's value and derivative."""
    return "\n".join(f"// {row.name}\n{program()}" for program in programs(row))
