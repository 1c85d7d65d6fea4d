"""Axis maps say what is so: checked against evaluation, on the equations that rows of the op table give."""
import numpy as np
import pytest
from op_table import ROWS
from op_table.row import listed
from reference import apply
from row_checks import BATCH, assert_all_near, mappable, rows, stacked

import hlotrace as jax
from hlotrace.core.avals import ShapedArray
from hlotrace.core.axes import AxisMap, plan, same_axes
from hlotrace.core.jaxpr import Literal
from hlotrace.core.primitive import PRIMITIVES
from hlotrace.primitives.arrays.contract import dot_general_p
from hlotrace.sharding import P

STATED = {name for name, p in PRIMITIVES.items() if p.axes is not None}
COLLECTIVES = {"all_gather", "all_to_all", "pmax", "pmin", "ppermute", "psum", "psum_invariant", "pvary",
               "reduce_scatter"}


def mapped(row):
    """A row's program mapped over its operands, and these."""
    where, args = mappable(row), row.sample(row.base)
    axes = [0 if i in where else None for i in range(len(args))]
    args = [stacked(x, 0) if i in where else x for i, x in enumerate(args)]
    return jax.make_jaxpr(jax.vmap(lambda *xs: listed(row.fun(*xs)), axes))(*args), args


def applications(row):
    """(primitive, operands, parameters) of each equation with an axis map, of a row's program mapped over its
    operands."""
    program, args = mapped(row)
    env = dict(zip((*program.constvars, *program.invars), (*program.consts, *args)))
    for eqn in program.eqns:
        operands = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
        if eqn.primitive.axes is not None:
            yield eqn.primitive, operands, eqn.params
        env.update(zip(eqn.outvars, apply(eqn.primitive, operands, eqn.params)))


def statement(primitive, operands, params, count=1):
    """Labels of each operand, and of each of `count` results."""
    found = primitive.axes(*map(jax.typeof, operands), **params)
    return found.operands, found.results * (1 if len(found.results) > 1 else count)


def words(x):
    return jax.random.key_data(x) if jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key) else x


def mixed(x, axis):
    """`x` with the places along `axis` in another order, no cycle of it and no mirror."""
    order = [*range(1, x.shape[axis], 2), *range(0, x.shape[axis], 2)]
    moved = np.take(words(x), order, axis)
    return moved if words(x) is x else jax.random.wrap_key_data(moved)


def along(primitive, operands, labels, label, params):
    moved = [mixed(x, a.index(label)) if label in a else x for x, a in zip(operands, labels)]
    return apply(primitive, moved, params)


def test_families_state_their_axes():
    """What is left computes places, holds programs or talks to devices: it says itself how it is mapped."""
    assert set(PRIMITIVES) - STATED == {
        "addupdate", "anywhere", "axis_index", "bounded_while", "by_platform", "call_exported", "check",
        "pure_callback", "io_callback", "debug_callback", "buffer_callback",
        "after_all", "checkpoint", "composite", "cond", "conv_general_dilated", "create_token",
        "custom_jvp_call",
        "custom_lin", "custom_linear_solve", "custom_partitioning", "custom_vjp_call", "custom_vmap_call",
        "dce_sink",
        "device_put", "dim_as_value",
        "dynamic_slice", "dynamic_update_slice", "ffi_call", "gather", "get", "inlined", "inspect_sharding",
        "iota",
        "jit", "layout_constraint", "linear_call", "mesh_cast", "optimization_barrier",
        "ragged_all_to_all", "remat_opt", "rematted", "reshard", "rng_bit_generator",
        "rng_uniform", "ruled_call", "scan", "scatter", "scatter_add", "scatter_apply", "scatter_max",
        "scatter_min", "scatter_mul",
        "set", "shard_alike", "shard_map", "sharding_constraint", "swap", "tagged_call",
        "unreduced_dot_general",
        "unreduced_sum", "while"}


@rows(lambda row: row.primitive in STATED - COLLECTIVES)
def test_statement_is_true(row):
    """Operands in another order along an axis that is left alone give results in that order; along one that
    is reduced over they give the same results."""
    for primitive, operands, params in applications(row):
        want = apply(primitive, operands, params)
        labels, results = statement(primitive, operands, params, len(want))
        assert [len(a) for a in labels] == [x.ndim for x in operands]
        assert [len(a) for a in results] == [x.ndim for x in want]
        for found in (*labels, *results):
            named = [c for c in found if c is not None]
            assert len(named) == len(set(named))
        alone, *others = ({*result} - {None} for result in results)
        assert all(alone == other for other in others) and alone <= {c for a in labels for c in a}
        shapes = [*zip(labels, operands), *zip(results, want)]
        sizes = {(c, n) for found, x in shapes for c, n in zip(found, x.shape) if c is not None}
        assert len(sizes) == len({c for c, _ in sizes})
        for label in {c for a in labels for c in a} - {None}:
            moved = [mixed(x, result.index(label))
                     for x, result in zip(want, results)] if label in alone else want
            got = along(primitive, operands, labels, label, params)
            assert_all_near(*([words(x) for x in xs] for xs in (got, moved)))


@rows(lambda row: row.primitive in COLLECTIVES)
def test_statement_is_true_on_devices(row):
    """The same, of the one collective in a row's program of a device."""
    program, (x,) = mapped(row)
    shard_map, = program.eqns
    spec, = shard_map.params["in_specs"]
    eqn, = (e for e in shard_map.params["jaxpr"].eqns if e.primitive.name == row.primitive)
    (labels,), result = eqn.primitive.axes(eqn.invars[0].aval, **eqn.params)
    assert result == labels and {*labels} - {None}
    for at in (i for i, label in enumerate(labels) if label is not None):
        def both(x, at=at):
            before, after = (jax.numpy.roll(v, 1, at) for v in (x, eqn.primitive.bind(x, **eqn.params)))
            return eqn.primitive.bind(before, **eqn.params), after
        got, want = jax.jit(jax.shard_map(both, mesh=shard_map.params["mesh"], in_specs=spec,
                                          out_specs=P(None, "x"),
                                          check_vma=False))(x)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", sorted(STATED - COLLECTIVES))
def test_something_is_left_alone(name):
    """A statement that says nothing is no statement."""
    assert any(set(statement(*found)[1][0]) - {None} for row in ROWS if row.primitive == name
               for found in applications(row)
               if found[0].name == name)


# --- where a mapped axis goes -------------------------------------------------------------------------------

def equations(fun, axes, out, *shapes):
    """Names of the primitives of a function that is mapped, and the shape of its result."""
    operands = [jax.ShapeDtypeStruct(s, np.float32) for s in shapes]
    program = jax.make_jaxpr(jax.vmap(fun, axes, out))(*operands)
    return [e.primitive.name for e in program.eqns], program.out_avals[0].shape


@pytest.mark.parametrize(("fun", "at", "out", "shape", "names"), [
    (lambda x: x.sum(1), 1, 1, (2, 5, 3, 4), ["reduce_sum"]),
    (lambda x: x.sum(0), 1, 0, (2, 5, 3, 4), ["reduce_sum"]),
    (lambda x: x[1:, ::2], 1, 1, (2, 5, 3), ["slice"]),
    (lambda x: jax.lax.squeeze(x, (0, 2)), 1, 0, (1, 5, 3, 1), ["squeeze"]),
    (lambda x: jax.lax.pad(x, 0.0, [(1, 0, 0)] * 2), 1, 1, (2, 5, 3), ["pad"]),
    (lambda x: x.reshape(-1), 2, 1, (2, 3, 5), ["reshape"]),
    (lambda x: x.reshape(6, 2, 2), 2, 1, (2, 3, 5, 4), ["reshape"]),
    (lambda x: x.reshape(4, 6), 1, 0, (2, 5, 12), ["transpose", "reshape"]),
    (lambda x: x.reshape(0, 2), 1, 2, (0, 2, 3), ["reshape"]),
    (lambda x: jax.lax.concatenate([x, x], 0), 1, 1, (2, 5), ["concatenate"]),
    (lambda x: jax.lax.cumsum(x, 1), 1, 1, (2, 5, 3), ["cumsum"]),
    (lambda x: jax.lax.sort(x), 1, 1, (2, 5, 3), ["sort"]),
    (lambda x: jax.lax.sin(x * 2), 2, 2, (2, 3, 5), ["mul", "sin"]),
    (lambda x: jax.lax.clamp(0.0, x, 1.0), 1, 1, (2, 5), ["clamp"]),
    (lambda x: jax.lax.select_n(np.array(True), x, x), 1, 1, (2, 5), ["select_n"]),
    (lambda x: jax.lax.broadcast_in_dim(x, (7, 2, 3), (1, 2)), 1, 2, (2, 5, 3), ["broadcast_in_dim"]),
    (lambda x: jax.lax.broadcast_in_dim(x, (7, 2, 3), (1, 2)), 0, 0, (5, 2, 3), ["broadcast_in_dim"]),
    (lambda x: x.T, 1, 0, (2, 5, 3), ["transpose"]),
    (lambda x: jax.lax.top_k(x, 2)[0], 1, 1, (2, 5, 4), ["top_k"]),
    (lambda x: jax.lax.top_k(x, 2)[0], 2, 0, (2, 4, 5), ["transpose", "top_k"]),
])
def test_a_mapped_axis_stays_where_it_is(fun, at, out, shape, names):
    """It is moved, to the front, only where the operation has no place for it."""
    assert equations(fun, (at,), out, shape)[0] == names


def test_operands_meet_where_the_first_has_the_axis():
    names, shape = equations(lambda x, y: x + y, (1, 0), 1, (2, 5, 3), (5, 2, 3))
    assert names == ["transpose", "add"] and shape == (2, 5, 3)
    names, shape = equations(lambda x, y: x + y, (1, None), 1, (2, 5, 3), (2, 3))
    assert names == ["broadcast_in_dim", "add"] and shape == (2, 5, 3)


def test_a_plan_is_made_once():
    rule, aval = same_axes("axis"), ShapedArray((2, 5, 3), np.float32)
    first = plan(rule, (aval,), (1,), 5, (("axis", 1), ("reverse", False)))
    assert first == (None, {"axis": 2, "reverse": False}, 1)
    assert plan(rule, (aval,), (1,), 5, (("axis", 1), ("reverse", False))) is first


def test_letters_of_a_product_are_an_axis_map():
    x, y = ShapedArray((2, 3, 4), np.float32), ShapedArray((4, 2, 5), np.float32)
    numbers = dict(dimension_numbers=(((2,), (0,)), ((0,), (1,))), precision=None,
                   preferred_element_type=None)
    assert dot_general_p.axes(x, y, **numbers) == AxisMap((tuple("abc"), tuple("cad")), tuple("abd"))


def test_initial_values_are_not_mapped():
    for fun in (lambda x, i: jax.lax.reduce(x, i, lambda a, b: a * b + a, (0,)),
                lambda x, i: jax.lax.reduce_window(x, i, lambda a, b: a * b + a, (2,), (1,), "VALID")):
        with pytest.raises(NotImplementedError, match="vmap over the initial values of a general reduction"):
            jax.vmap(fun)(np.ones((2, 3), np.float32), np.ones(2, np.float32))


def test_a_bound_for_each_example():
    """Operands of rank 0 beside arrays are spread over them once they are mapped."""
    x, low = np.arange(12, dtype=np.float32).reshape(2, 3, 2), np.array([3, 5, 8], np.float32)
    got = jax.vmap(lambda x, low: jax.lax.clamp(low, x, 9.0), (1, 0), 1)(x, low)
    np.testing.assert_array_equal(got, np.clip(x, low[None, :, None], 9))
    mask = np.array([True, False, True])
    got = jax.vmap(lambda m, x: jax.lax.select_n(m, x, -x), (0, 1), 1)(mask, x)
    np.testing.assert_array_equal(got, np.where(mask[None, :, None], -x, x))


@pytest.mark.parametrize(("fun", "shapes", "error", "words"), [
    (jax.lax.add, [(2, 3), (3,)], TypeError, "add"),
    (lambda x, y: jax.lax.concatenate([x, y], 0), [(2, 3), (3,)], TypeError, "concatenate"),
    (lambda x, y: PRIMITIVES["select_n"].bind(x > 0, x, y), [(2, 3), ()], TypeError,
     "cases must have the same shapes"),
    (lambda x, y: PRIMITIVES["sort"].bind(x, y, dimension=0, is_stable=True, num_keys=1), [(2, 3), ()],
     TypeError, "sort"),
    (lambda x, y: jax.lax.clamp(y, x, y), [(2, 3), (3,)], TypeError, "clamp"),
])
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, None)])
def test_what_a_primitive_refuses_it_refuses_mapped(fun, shapes, error, words, axes):
    operands = [np.ones(s if a is None else (*s[:a], BATCH, *s[a:]), np.float32)
                for s, a in zip(shapes, axes)]
    with pytest.raises(error, match=words):
        jax.vmap(fun, axes)(*operands)
