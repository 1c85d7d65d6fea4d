"""Every row of the op table, checked in the same ways: values, types, derivatives, batching, text, errors."""
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from op_table import ROWS
from op_table.row import listed
from places import ROOT, TESTS
from reference import by_numpy
from row_checks import (
    BATCH, adjoint, assert_all_near, assert_near, differentiable, direction, inner, mappable, rows,
    rows_together, stacked, text)
from together import in_few_arrays

import hlotrace
from hlotrace.core.jaxpr import check_jaxpr
from hlotrace.core.primitive import PRIMITIVES

STEP = 1e-5       # of central differences in float64: errors of about 1e-10 from the step and from rounding


# --- values and types -------------------------------------------------------------------------------------------

@rows()
def test_value_and_type(row):
    args, traces = row.sample(row.base), []

    def counted(*args):
        traces.append(args)
        return listed(row.fun(*args))
    counted.__name__ = row.primitive        # as the program of an eager call is named: most are that program, found on disk
    want = row.expect(args)
    compiled = hlotrace.jit(counted)
    eager = listed(row.fun(*args))
    for got in (eager, compiled(*args), compiled(*args)):
        assert_all_near(got, want, row.rtol)
    assert len(traces) == 1
    program = hlotrace.make_jaxpr(counted)(*args)
    if len(program.eqns) == 1:      # not of several operations, which XLA fuses
        for one, other in zip(eager, got, strict=True):
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    check_jaxpr(program)
    assert [(a.shape, a.dtype) for a in program.out_avals] == [(x.shape, x.dtype) for x in got]


def has_more_dtypes(row):
    return len(row.dtypes) > 1


@rows_together(has_more_dtypes, jit=in_few_arrays)
def of_each_dtype(row):
    return lambda *samples: [listed(row.fun(*args)) for args in samples], samples_of(row)


def samples_of(row):
    return [row.sample(dtype) for dtype in row.dtypes if dtype != row.base]


@rows(has_more_dtypes)
def test_value_for_each_dtype(row):
    """Each but the first, which the test above takes."""
    with hlotrace.enable_x64():
        results, = of_each_dtype(row)
        for args, got in zip(samples_of(row), results, strict=True):
            with np.errstate(all="ignore"):
                want = row.expect(args)
            assert_all_near(got, want, row.rtol)


# --- derivatives ------------------------------------------------------------------------------------------------

def has_jvp(row):
    return row.derivative in ("twice", "forward") and bool(set(row.kinds) & set(row.smooth_kinds))


def smooth_cases(row):
    """(function, where it is differentiated, tangents, cotangents) for each kind of numbers."""
    for kind in row.kinds:
        if kind in row.smooth_kinds:
            dtype = np.dtype(np.complex128 if kind == "c" else np.float64)
            fun, smooth = differentiable(row, row.sample(dtype))
            yield fun, smooth, direction(smooth, 1), direction(hlotrace.eval_shape(fun, *smooth), 2)


@rows_together(has_jvp, elsewhere=by_numpy)
def derivatives_here_after_and_before(row):
    funs, points, tangents, cotangents = zip(*smooth_cases(row))

    def everything(points, tangents, cotangents):
        results = []
        for fun, x, t, ct in zip(funs, points, tangents, cotangents):
            def pullback(*x, fun=fun, ct=ct):
                return hlotrace.vjp(fun, *x)[1](ct)
            results.append((hlotrace.jvp(fun, x, t),
                            hlotrace.jvp(pullback, x, t) if row.derivative == "twice" else None))
        return results

    def moved(by):
        shifted = [tuple(x + by * v for x, v in zip(xs, vs)) for xs, vs in zip(points, tangents)]
        return shifted, list(map(tuple, tangents)), list(cotangents)
    return everything, moved(0), moved(STEP), moved(-STEP)


@rows(has_jvp)
def test_derivatives(row):
    """jvp is the slope of the values, vjp is its adjoint, and the derivative of vjp is the slope of vjp."""
    twice = row.derivative == "twice"
    with hlotrace.enable_x64():
        results = derivatives_here_after_and_before(row)
        for (_, _, t, ct), here, after, before in zip(smooth_cases(row), *results, strict=True):
            for which in range(1 + twice):
                slope = [(np.asarray(a) - np.asarray(b)) / (2 * STEP)
                         for a, b in zip(after[which][0], before[which][0])]
                assert_all_near(here[which][1], slope, 1e-7)
            if twice:
                np.testing.assert_allclose(inner(here[1][0], t), inner(ct, here[0][1]), rtol=1e-10, atol=1e-12)


def test_slopes_of_complex_functions_in_each_quadrant():
    """Along the real and along the imaginary axis, by differences: branches, and signs of roots."""
    z = np.array([complex(a, b) for a in (-2.5, -0.4, 0.3, 1.7) for b in (-1.2, -0.2, 0.6, 2.5)])
    complex_ones = [row for row in ROWS if "c" in row.smooth_kinds and "c" in row.kinds and len(row.args) == 1
                    and PRIMITIVES[row.primitive].elementwise and row.derivative == "twice"]
    assert len(complex_ones) > 20
    with hlotrace.enable_x64():
        both = in_few_arrays(lambda z, h: [(hlotrace.jvp(row.fun, (z,), (h / 1e-6,))[1], row.fun(z + h),
                                            row.fun(z - h)) for row in complex_ones])
        for h in (1e-6, 1e-6j):
            for row, (slope, after, before) in zip(complex_ones, both(z, np.full_like(z, h)), strict=True):
                if after.dtype.kind in "fc":
                    np.testing.assert_allclose(slope, (after - before) / 2e-6, 1e-7, 1e-8, err_msg=row.name)


@rows(lambda row: row.linear)
def test_transpose_is_the_adjoint(row):
    fun, smooth = differentiable(row, row.sample(row.base))
    outs = fun(*smooth)
    cotangents = direction(outs, 2)
    np.testing.assert_allclose(inner(adjoint(fun, smooth)(cotangents), smooth), inner(cotangents, outs), rtol=1e-5)


@rows(lambda row: row.derivative == "reverse")
def test_reverse_derivative(row):
    """A function without jvp: its vjp is the adjoint of the slope of the values."""
    with hlotrace.enable_x64():
        fun, smooth = differentiable(row, row.sample(np.dtype(np.float64)))
        outs, pull = hlotrace.vjp(fun, *smooth)
        tangents, cotangents = direction(smooth, 1), direction(outs, 2)
        after, before = (fun(*(x + by * t for x, t in zip(smooth, tangents))) for by in (STEP, -STEP))
        slope = [(np.asarray(a) - np.asarray(b)) / (2 * STEP) for a, b in zip(after, before)]
        np.testing.assert_allclose(inner(pull(cotangents), tangents), inner(cotangents, slope), rtol=1e-7)


@rows(lambda row: row.derivative == "zero")
def test_derivative_is_zero(row):
    fun, smooth = differentiable(row, row.sample(row.base))
    outs, tangents = hlotrace.jvp(fun, smooth, direction(smooth, 1))
    cotangents = hlotrace.vjp(fun, *smooth)[1](direction(outs, 2))
    for x in (*tangents, *cotangents):
        assert not np.any(x)


# --- batching ---------------------------------------------------------------------------------------------------

def has_operands(row):
    return bool(row.args)


def choices_of_axes(row, args):
    where = mappable(row)

    def axes_of(f):
        return tuple(f(i) if i in where else None for i in range(len(args)))
    if len(where) > 1:
        choices = [axes_of(lambda j: -(i % 2) if i == j else None) for i in where]  # noqa: B023
        choices += [axes_of(lambda i: 0), axes_of(lambda i: i % 2 - 1)]
    else:
        choices = [axes_of(lambda i: 0), axes_of(lambda i: -1)]
    if any(args[i].ndim > 1 for i in where):
        choices.append(axes_of(lambda i: min(1, args[i].ndim)))
    return choices


@rows_together(has_operands, elsewhere=by_numpy)
def mapped_along_each(row):
    args = row.sample(row.base)
    choices = choices_of_axes(row, args)
    operands = [[x if a is None else stacked(x, a) for x, a in zip(args, axes)] for axes in choices]
    return lambda *operands: [hlotrace.vmap(lambda *xs: listed(row.fun(*xs)), axes)(*xs)
                              for axes, xs in zip(choices, operands)], operands


@rows(has_operands)
def test_vmap_is_the_loop(row):
    """For each operand mapped alone, in front or at the end, and for all: in front, at different ends, between."""
    args, loops = row.sample(row.base), {}
    mapped, = mapped_along_each(row)
    for axes, results in zip(choices_of_axes(row, args), mapped, strict=True):
        which = tuple(a is not None for a in axes)
        if which not in loops:      # the same examples, whatever axis they are along
            examples = [stacked(x, 0) if w else [x] * BATCH for x, w in zip(args, which)]
            loops[which] = [np.stack(each) for each in zip(*(listed(row.fun(*xs)) for xs in zip(*examples)))]
        for result, each in zip(results, loops[which], strict=True):
            assert_near(result, each, row.rtol)


@rows_together(has_operands)
def of_size_zero(row):
    args = row.sample(row.base)
    fun, smooth = differentiable(row, args)
    axes = [0 if i in mappable(row) else None for i in range(len(args))]
    empty = [x if a is None else np.zeros((0, *x.shape), x.dtype) for x, a in zip(args, axes)]

    def run(args, smooth):
        outs = hlotrace.vmap(lambda *xs: listed(row.fun(*xs)), axes)(*args)
        if row.derivative in ("none", "refused") or not smooth:
            return outs, ()
        inexact, pull = hlotrace.vjp(hlotrace.vmap(fun), *smooth) if row.derivative != "forward" else ((), None)
        return outs, pull(inexact) if pull else ()
    return run, (empty, [np.zeros((0, *x.shape), x.dtype) for x in smooth])


@rows(has_operands)
def test_arrays_of_size_zero(row):
    """A mapped axis of size zero gives every primitive empty operands, in its value and its derivative."""
    def value(*args):
        return listed(row.fun(*args))
    args = row.sample(row.base)
    (outs, cotangents), = of_size_zero(row)
    assert [x.shape for x in outs] == [(0, *x.shape) for x in hlotrace.eval_shape(value, *args)]
    for i in mappable(row):         # each operand mapped alone
        axes = [0 if j == i else None for j in range(len(args))]
        some = [x if a is None else np.zeros((0, *x.shape), x.dtype) for x, a in zip(args, axes)]
        assert [x.shape for x in hlotrace.eval_shape(hlotrace.vmap(value, axes), *some)] == [x.shape for x in outs]
    for x, ct in zip(differentiable(row, args)[1], cotangents):
        assert ct.shape == (0, *x.shape)


# --- text and errors --------------------------------------------------------------------------------------------

def test_text_is_the_same_in_every_process():
    """Lowering all rows gives the same bytes whatever the hash seed, what ran before, and the order in which they come."""
    def numbered(text):     # host functions have numbers of their process
        return re.sub(r"(hlotrace_callback|index = )\d+", r"\1", text)
    code = "import row_checks; print({r.name: row_checks.text(r) for r in row_checks.ROWS[::-1]})"
    other = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, env={
        **os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join([str(TESTS), str(ROOT)])})
    found = eval(other.stdout)
    assert len(found) == len(ROWS)
    for row in ROWS:
        assert numbered(found[row.name]) == numbered(text(row))


@pytest.mark.parametrize("call, error, words", [
    pytest.param(*bad, id=f"{row.name}-{i}") for row in ROWS for i, bad in enumerate(row.bad)])
def test_bad_inputs_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
