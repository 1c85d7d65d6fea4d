"""Batching on flat lists: where mapped axes are, what is not mapped stays so, and programs are batched as they are."""
import numpy as np
import pytest
from reference import draw, evaluate, run

import hlotrace as jax
from hlotrace import lax
from hlotrace.core.symbolic_zeros import MappedAxis
from hlotrace.transforms.vmap import batch, batch_flat, map_flat, place_axis

pytestmark = pytest.mark.quick

X, Y = [x.astype(np.float32) for x in draw((4, 3), (3,))]
AXIS = MappedAxis(4, None)


@pytest.mark.parametrize("function, dims, wanted", [
    (lambda x, y: [x + y], (0, None), [True]), (lambda x, y: [x, y], (0, None), [True, False]),
    (lambda x, y: [lax.sin(y), x * 2], (0, None), [False, True]), (lambda x, y: [jax.jit(lambda v: v * y)(x)], (0, None), [True])])
def test_what_depends_on_nothing_mapped_is_not_mapped(function, dims, wanted):
    marks = []

    def mapped(x, y):
        outs, out_dims = batch_flat(lambda *xs: function(*xs), AXIS, [x, y], dims)
        marks[:] = [d is not None for d in out_dims]
        return [out if d is None else lax.transpose(out, (d, *[i for i in range(out.ndim) if i != d])) for out, d in zip(outs, out_dims)]
    found = run(mapped, X, Y)
    assert marks == wanted
    each = [run(function, x, Y) for x in X]
    for got, want, is_mapped in zip(found, zip(*each), wanted, strict=True):
        np.testing.assert_allclose(got, np.stack(want) if is_mapped else want[0], rtol=1e-6)


@pytest.mark.parametrize("source, target", [(0, 0), (0, 1), (1, 0), (None, 0), (None, 1)])
def test_the_mapped_axis_is_put_where_it_is_to_be(source, target):
    x = Y if source is None else X if source == 0 else X.T
    found, = run(lambda x: place_axis(x, 4, source, target), x)
    want = np.stack([Y] * 4) if source is None else X
    np.testing.assert_array_equal(found, want if target == 0 else want.T)


def test_a_program_is_made_of_a_program():
    jaxpr = jax.make_jaxpr(lambda x, y: (x * y, lax.cos(y)))(Y, Y)
    program, marks = batch(jaxpr, AXIS, (True, False))
    assert marks == (True, False) and [v.aval.shape for v in program.invars] == [(4, 3), (3,)]
    first, second = evaluate(program, X, Y)
    np.testing.assert_array_equal(first, X * Y)
    assert second.shape == (3,)
    forced, marks = batch(jaxpr, AXIS, (True, False), True)
    assert marks == (True, True) and evaluate(forced, X, Y)[1].shape == (4, 3)
    one, marks = batch(jaxpr, AXIS, (False, False), (False, True))
    assert marks == (False, True) and [x.shape for x in evaluate(one, Y, Y)] == [(3,), (4, 3)]
    assert batch(jaxpr, AXIS, (True, False))[0] is program


def test_zeros_among_results_stay():
    kinds = []

    def mapped(x):
        outs = map_flat(lambda x: [None, x, Y * 1], AXIS, [x], [0])
        kinds[:] = [out is None for out in outs]
        return outs[1:]
    found = run(mapped, X)
    assert kinds == [True, False, False] and [x.shape for x in found] == [(4, 3), (4, 3)]


def test_the_name_of_an_axis_is_known_inside_alone():
    size = []
    jax.make_jaxpr(jax.vmap(lambda x: size.append(lax.axis_size("i")) or x, axis_name="i"))(X)
    assert size == [4]
    with pytest.raises(NameError, match="i"):
        lax.axis_size("i")


def test_nested_maps_are_not_confused():
    outer = jax.vmap(lambda x: jax.vmap(lambda y: x[0] * y)(x))
    np.testing.assert_array_equal(run(outer, X)[0], X[:, :1] * X)
    within = jax.vmap(lambda x: jax.vmap(lambda y: y * 2)(Y) + x)       # nothing of the inner one is mapped outside
    np.testing.assert_array_equal(run(within, X)[0], Y * 2 + X)
