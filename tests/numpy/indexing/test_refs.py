"""References: what they hold after each way to use them, against NumPy arrays that are written in the same way."""
import copy
import functools
import pickle
import re

import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.config import override
from hlotrace.experimental import checkify
from hlotrace.runtime import binding


def ref(n=4):
    return jax.new_ref(jnp.arange(float(n)))


# Each writes to `r`, a Ref or a NumPy array, in the same words.
WRITES = {
    "all": lambda r, x: r.__setitem__(..., x),
    "int": lambda r, x: r.__setitem__(1, x[0]),
    "negative": lambda r, x: r.__setitem__(-1, x[0]),
    "slice": lambda r, x: r.__setitem__(slice(1, 3), x[:2]),
    "strided": lambda r, x: r.__setitem__(slice(None, None, 2), x[:2]),
    "backwards": lambda r, x: r.__setitem__(slice(None, None, -1), x),
    "number": lambda r, x: r.__setitem__(slice(1, None), 7.0),
    "integer number": lambda r, x: r.__setitem__(0, 7),
    "indices": lambda r, x: r.__setitem__(np.array([2, 0]), x[:2]),
    "add": lambda r, x: r.__setitem__(slice(2), r[:2] + x[2:]),
    "nothing": lambda r, x: r.__setitem__(slice(0, 0), x[:0]),
}


def run(write, x, road):
    """The value of a Ref after a write on some road."""
    r = ref()
    if road == "eager":
        write(r, x)
    elif road == "argument":
        jax.jit(write)(r, x)
    elif road == "closure":
        jax.jit(lambda x: write(r, x))(x)
    elif road == "inside":
        def inside(start, x):
            r = jax.new_ref(start)
            write(r, x)
            return jax.freeze(r)
        return jax.jit(inside)(r[...], x)
    elif road == "scan":
        lax.scan(lambda c, _: (write(r, x), (c, None))[1], 0, None, length=1)
    elif road == "fori":
        jax.jit(lambda x: lax.fori_loop(0, 1, lambda i, c: (write(r, x), c)[1], 0))(x)
    elif road == "while":
        lax.while_loop(lambda c: c < 1, lambda c: (write(r, x), c + 1)[1], 0)
    elif road == "cond":
        jax.jit(lambda p, x: lax.cond(p, lambda: write(r, x), lambda: None))(True, x)
    elif road == "cond operand":
        lax.cond(True, lambda r, x: write(r, x), lambda r, x: None, r, x)
    elif road == "checkpoint":
        jax.checkpoint(lambda x: write(r, x))(x)
    elif road == "vmap":
        rs = jax.new_ref(jnp.stack([r[...], r[...] * 2]))
        jax.vmap(write)(rs, jnp.stack([x, x]))
        return rs[0]
    elif road == "grad":
        jax.grad(lambda y, r: (write(r, x), y)[1])(1.0, r)
    elif road == "view":
        rs = jax.new_ref(jnp.stack([r[...], r[...]]))
        write(rs.at[1], x)
        same(rs[0], np.arange(4.0))
        return rs.at[1][...]
    return r[...]


ROADS = ("eager", "argument", "closure", "inside", "scan", "fori", "while", "cond", "cond operand", "checkpoint", "vmap",
         "grad", "view")


@pytest.mark.parametrize("road", ROADS)
def test_a_write_is_what_numpy_does(road):
    x = np.array([10.0, 20.0, 30.0, 40.0], np.float32)
    for write in WRITES.values():
        want = np.arange(4.0, dtype="float32")
        write(want, x)
        same(run(write, jnp.asarray(x), road), want)


def test_what_a_ref_is():
    r = jax.new_ref(np.arange(6).reshape(2, 3))
    assert (r.shape, r.ndim, r.size, len(r), r.dtype) == ((2, 3), 2, 6, 2, jnp.int32)
    assert isinstance(r, jax.Ref) and isinstance(r, jax.ref.Ref)
    assert str(jax.typeof(r)) == "Ref{int32[2,3]}" and jax.typeof(r) == jax.ref.AbstractRef(jax.typeof(r[...]))
    assert jax.typeof(r).inner_aval.shape == jax.typeof(r).shape == (2, 3)
    assert repr(jax.new_ref(jnp.ones(2))) == "Ref([1., 1.], dtype=float32)"
    assert jax.tree.leaves([r, {"a": r}]) == [r, r]
    assert r.sharding == r[...].sharding and not r.committed and "0" in repr(r.at[0])
    assert r.unsafe_buffer_pointer() > 0


def test_the_functions_of_ref():
    r = ref()
    same(jax.ref.get(r), np.arange(4.0))
    same(jax.ref.get(r, 2), 2.0)
    jax.ref.set(r, slice(0, 2), jnp.array([5.0, 6.0]))
    same(jax.ref.swap(r, 0, 9.0), 5.0)
    jax.ref.addupdate(r, np.array([3, 3]), jnp.array([1.0, 2.0]))
    r.addupdate(10.0, slice(1, 2))
    same(r[...], [9.0, 16.0, 2.0, 6.0])
    same(jax.jit(lambda r: jax.ref.swap(r, None, r[::-1]))(r), [9.0, 16.0, 2.0, 6.0])
    same(jax.freeze(r), [6.0, 2.0, 16.0, 9.0])
    r = ref()

    @jax.jit
    def methods(r):
        r.set(r.get() + 1)
        r.set(0., 1)
        old, part = r.swap(2 * r[2:], slice(2, None)), r.at[:2]
        part.set(part.get() - 1)
        part.addupdate(5., 0)
        assert not r.weak_type
        return old, part.swap(7., 1), part.get(0), r.get()
    assert [x.tolist() for x in methods(r)] == [[3., 4.], -1., 5., [5., 7., 6., 8.]]
    same(r.get(slice(2)), [5., 7.])
    e = jax.empty_ref(jax.ShapeDtypeStruct((2,), jnp.bfloat16))
    e[...] = 1
    same(e[...], np.ones(2, jnp.bfloat16))
    assert jax.free_ref(e) is None


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16", "bfloat16", "complex64"])
def test_dtypes(dtype):
    r = jax.new_ref(jnp.zeros((2, 0), dtype))
    r[...] = jnp.zeros((2, 0), dtype)
    assert r[0].shape == (0,)
    one = jax.new_ref(jnp.zeros((), dtype))
    one[...] = jnp.ones((), dtype)
    same(one[...], np.ones((), dtype))


def test_keys():
    r = jax.new_ref(jax.random.key(0))

    @jax.jit
    def draw(r):
        r[...], key = jax.random.split(r[...])
        return jax.random.uniform(key)
    first, second = draw(r), draw(r)
    key, a = jax.random.split(jax.random.key(0))
    same(first, jax.random.uniform(a))
    same(second, jax.random.uniform(jax.random.split(key)[1]))


def test_values_handed_out_stay():
    """Neither the array that a Ref was made of, nor what was read from it, changes with it, in place or not."""
    begin = jnp.arange(3.0)
    r = jax.new_ref(begin)
    seen = [begin]
    step = jax.jit(lambda r: r.__setitem__(0, r[0] + 1))
    for _ in range(3):
        step(r)
        seen.append(r[...])
        r[1] = r[1] * 2
        seen.append(r[...])
    same([float(s[0]) for s in seen], [0, 1, 1, 2, 2, 3, 3])
    same([float(s[1]) for s in seen], [1, 1, 2, 2, 4, 4, 8])


def test_a_compiled_function_writes_in_place_and_is_traced_once():
    traced = []

    @jax.jit
    def step(r, x):
        traced.append(1)
        r[0] += x
        return x * 2
    r = jax.new_ref(jnp.zeros(1000))
    step(r, 1.0)
    where = r.unsafe_buffer_pointer()
    for _ in range(3):
        same(step(r, 1.0), 2.0)
    assert r.unsafe_buffer_pointer() == where
    step(jax.new_ref(jnp.zeros(1000)), 1.0)
    same(r[0], 4.0)
    assert len(traced) == 1
    r[5] = 3.0
    assert r.unsafe_buffer_pointer() != 0
    where = r.unsafe_buffer_pointer()
    r[6] = 4.0
    assert r.unsafe_buffer_pointer() == where


def test_a_compiled_function_that_closes_over_a_ref():
    r, traced = ref(), []

    @jax.jit
    def step(x):
        traced.append(1)
        r[0] += x
        return r[...].sum()
    same([float(step(1.0)) for _ in range(3)], [7, 8, 9])
    r[1] = 100.0
    same(step(1.0), 109.0)
    same(jax.jit(lambda x: step(x) + step(x))(1.0), 110.0 + 111.0)
    assert len(traced) == 1
    jax.clear_caches()
    same(step(1.0), 112.0)


def test_reads_do_not_write():
    r = jax.new_ref(jnp.arange(1000.0))
    same(jax.jit(lambda r: r[3])(r), 3.0)
    where = r.unsafe_buffer_pointer()
    same(jax.jit(lambda r, i: r[i])(r, 5), 5.0)
    assert r.unsafe_buffer_pointer() == where
    kept = r[...]
    jax.jit(lambda r: r[0])(r)
    same(kept[7], 7.0)


# --- vmap -------------------------------------------------------------------------------------------------------

def test_vmap_over_refs():
    m = jax.new_ref(jnp.arange(6.0).reshape(2, 3))
    jax.vmap(lambda r, x: r.__setitem__(0, x), in_axes=(1, 0))(m, jnp.array([7.0, 8.0, 9.0]))
    same(m[...], [[7, 8, 9], [3, 4, 5]])
    same(jax.vmap(lambda r, s, x: r[...].sum() + s[0, 0] * x, in_axes=(0, None, 0))(ref(2), m, jnp.ones(2)), [7, 8])
    same(jax.jit(jax.vmap(lambda r: r[...] * 2))(m), [[14, 16, 18], [6, 8, 10]])
    # what is the same for all stays so, and what becomes different for each is written for each
    r = ref(2)
    jax.vmap(lambda r, x: r.__setitem__(..., 4.0))(r, jnp.ones(2))
    same(r[...], [4.0, 4.0])
    same(jax.vmap(lambda i: m[:, i])(jnp.array([2, 0])), [[9, 5], [7, 3]])


# --- derivatives ------------------------------------------------------------------------------------------------

@jax.custom_vjp
def stash(r, x):
    return x


def _stash_fwd(r, x):
    return x, r


def _stash_bwd(r, ct):
    r[...] = ct
    return None, ct


stash.defvjp(_stash_fwd, _stash_bwd)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_a_backward_rule_writes_to_a_ref(wrap):
    def f(x, r):
        return jnp.sin(stash(r, x * 2)) * 3
    r = jax.new_ref(0.0)
    same(wrap(jax.grad(f))(1.0, r), 6 * np.cos(2.0))
    same(r[...], 3 * np.cos(2.0))
    each = jax.new_ref(0.0)

    def many(x, r):
        return lax.scan(lambda c, _: (stash(r, c) * 2, None), x, None, length=3)[0]
    same(wrap(jax.grad(many))(1.0, each), 8.0)
    same(each[...], 8.0)      # the cotangent of the first step, the last to be written


def test_what_is_written_without_a_tangent_passes():
    r = jax.new_ref(0.0)

    def loss(x, r):
        r[...] = lax.stop_gradient(x * 3)
        return x * x * r[...]
    same(jax.grad(loss)(2.0, r), 2 * 2.0 * 6.0)
    same(jax.value_and_grad(lambda x: loss(x, r))(2.0), (24.0, 24.0))
    same(jax.jit(jax.grad(loss))(2.0, r), 24.0)
    same(r[...], 6.0)
    out, pull = jax.vjp(lambda x: (r.addupdate(1.0), x * r[...])[1], 2.0)
    same((out, pull(1.0)[0], r[...]), (14.0, 7.0, 7.0))


# --- what is refused --------------------------------------------------------------------------------------------

def _returned(x):
    return jax.jit(lambda: jax.new_ref(x))()


def _leaked():
    found = []
    jax.jit(lambda x: found.append(jax.new_ref(x)))(1.0)
    return found[0][...]


def _frozen():
    r = ref()
    jax.freeze(r)
    return r[0]


R = jax.new_ref(jnp.arange(4.0))


def _checked(read):
    with override("jax_check_static_indices", True):
        return read()


@pytest.mark.parametrize("wrong, error, words", [
    (lambda: jax.jit(lambda a, b: a[0] + b[0])(R, R), ValueError, r"only one .* Ref\{float32\[4\]\} .* both a and b"),
    (lambda: jax.vmap(lambda a, b: a[...] + b[...])(R, R), ValueError, "only one reference"),
    (lambda: jax.jit(lambda a: a[0] + R[0])(R), ValueError, "closed over and passed"),
    (lambda: _returned(1.0), ValueError, "cannot be returned: return its value"),
    (lambda: jax.jit(lambda r: r)(R), ValueError, "cannot be returned"),
    (lambda: lax.scan(lambda r, x: (r, x), R, jnp.ones(3)), ValueError, "cannot be returned"),
    (_leaked, jax.errors.UnexpectedTracerError, "made in jit of .* used outside"),
    (_frozen, ValueError, "given up by freeze"),
    (lambda: jax.jit(lambda: jax.freeze(R))(), ValueError, "made outside of jit"),
    (lambda: _checked(lambda: R[4]), IndexError, "index 4 is out of bounds for axis 0 with size 4"),
    (lambda: _checked(lambda: jax.jit(lambda r: r[4])(R)), IndexError, "index 4 is out of bounds"),
    (lambda: R.__setitem__(0, jnp.ones(3)), jax.errors.ShapeError, r"Expected shape: \(\). Value shape: \(3,\)"),
    (lambda: R.__setitem__(0, jnp.int32(1)), ValueError, r"Value dtype: int32. .* \.astype\('float32'\)"),
    (lambda: R.__setitem__(0, 1j), ValueError, "Value dtype: complex64"),
    (lambda: jax.new_ref(1).__setitem__(..., 1.5), ValueError, "Ref dtype: int32. Value dtype: float32"),
    (lambda: R.__setitem__(0, "a"), TypeError, "not a valid JAX type"),
    (lambda: jnp.sin(R), TypeError, r"Read the value of a Ref with ref\[\.\.\.\]"),
    (lambda: np.asarray(R), TypeError, r"Read the value of a Ref with ref\[\.\.\.\]"),
    (lambda: jax.new_ref([1.0]), TypeError, "of type <class 'list'> .* init_val"),
    (lambda: jax.new_ref(1.0, memory_space="vmem"), NotImplementedError, "memory_space='vmem'"),
    (lambda: jax.jit(lambda x: jax.new_ref(x, memory_space=jax.memory.Space.Host)[...])(1.0), NotImplementedError,
     "memory_space=MemorySpace.Host.* device_put"),
    (lambda: jax.freeze(jnp.ones(3)), ValueError, "Can only call `freeze` on a `Ref`"),
    (lambda: R.__setitem__(0, jnp.ones(2)), ValueError, r"Invalid shape for `swap`. Ref shape: \(4,\). Expected shape: \(\). "),
    (lambda: jax.jit(lambda x, r: (x, {"a": r}))(1., R), ValueError, r"result\[1\]\['a'\],(.|\n)* passed in as the argument r\."),
    (lambda: list(R), TypeError, "not iterable"),
    (lambda: len(jax.new_ref(1.0)), TypeError, "no axes"),
    (lambda: jax.vmap(lambda x: R.__setitem__(0, x))(jnp.ones(3)), ValueError, "a set/swap operation with vmapped value on an unbatched"),
    (lambda: jax.vmap(lambda p: lax.cond(p, lambda: R.__setitem__(0, 1.0), lambda: None))(jnp.array([True, False])),
     NotImplementedError, r"a write to Ref\{float32\[4\]\}"),
    (lambda: jax.grad(lambda x: (R.__setitem__(0, x), x)[1])(1.0), ValueError, "a set/swap operation with a differentiated value"),
    (lambda: jax.grad(lambda r: r[0])(R), TypeError, "with respect to an argument that is a Ref: leave it out of argnums"),
])
def test_mistakes(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()
    same(R[...], np.arange(4.0))       # nothing is lost


# --- with what else there is ------------------------------------------------------------------------------------

def test_masks_copies_and_pickles():
    r = ref()
    mask = np.array([True, False, True, False])
    same(r[mask], [0.0, 2.0])
    r[jnp.asarray(mask)] = jnp.array([8.0, 9.0])
    same(jax.jit(lambda r: r[mask])(r), [8.0, 9.0])
    other = copy.deepcopy(r)
    other[0] = 5.0
    jax.jit(lambda r: r.__setitem__(0, 6.0))(copy.copy(r))
    same((r[0], other[0]), (8.0, 5.0))
    with pytest.raises(TypeError, match=r"cannot be pickled: pickle ref\[\.\.\.\]"):
        pickle.dumps(r)


@pytest.mark.parametrize("call", [
    lambda r: jax.jit(lambda r, x: r.__setitem__(..., jnp.log(x)))(r, -1.0),
    lambda r: jax.jit(lambda x: r.__setitem__(..., jnp.log(x)))(-1.0),
    lambda r: r.__setitem__(0, jnp.nan)])
def test_a_check_that_fails_leaves_the_value(call):
    r = ref()
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        call(r)
    same(r[...], np.arange(4.0))


def test_a_call_that_fails_after_it_reused_the_memory():
    r = ref()
    r[0] = 1.0      # now nobody else holds the value

    def fail(x):
        raise KeyError("mine")

    @jax.jit
    def step(r):
        r[...] = jax.pure_callback(fail, r[...], r[...])
    with pytest.raises(KeyError, match="mine"):
        step(r)
        r[...].block_until_ready()
    try:
        r[...].block_until_ready()
    except (ValueError, KeyError, RuntimeError) as error:
        assert "lost its value" in str(error) or "mine" in str(error)


def test_checkify():
    r = ref()

    def f(x, r):
        checkify.check(r[0] < 2, "too much: {v}", v=r[0])
        r[0] += x
        return r[0]
    for wrap in (lambda f: f, jax.jit):
        assert checkify.checkify(wrap(f))(1.0, r)[0].get() is None
    error, value = jax.jit(checkify.checkify(f))(1.0, r)
    assert error.get().startswith("too much: 2.0")
    same((value, r[0]), (3.0, 3.0))


# index -> what is changed of 12 zeros in 3 rows: ints and slices are moved inside, what arrays select is dropped
OUTSIDE = {
    "row": (lambda i: i, 5, np.s_[2]),
    "row before the first": (lambda i: i, -9, np.s_[0]),
    "element": (lambda i: (i, i), 7, np.s_[2, 3]),
    "column": (lambda i: (slice(0, 2), i), 7, np.s_[:2, 3]),
    "window": (lambda i: jax.ds(i, 2), 2, np.s_[1:]),
    "rows": (lambda i: jnp.stack([i, i - 5]), 5, np.s_[0]),
    "int beside an array": (lambda i: (jnp.array([0, 1]), i), 9, np.s_[:0]),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_a_write_out_of_bounds(case):
    index, i, where = OUTSIDE[case]
    want = np.zeros((3, 4), "float32")
    want[where] = 1

    @jax.jit
    def write(r, i):
        r[index(i)] = 1.0

    @jax.jit
    def swap(r, i):
        return jax.ref.swap(r, index(i), 1.0)
    for change in write, jax.jit(lambda r, i: jax.ref.addupdate(r, index(i), 1.0)), swap:
        r = jax.new_ref(jnp.zeros((3, 4)))
        change(r, i)
        same(r[...], want)


@pytest.mark.parametrize("access", [lambda r, i: r[i], lambda r, i: r.__setitem__(i, 1.0), lambda r, i: r.at[i][...],
                                    lambda r, i: jax.ref.addupdate(r, i, 1.0), lambda r, i: jax.ref.swap(r, i, 1.0)])
def test_a_static_int_out_of_bounds(access):
    r = jax.new_ref(jnp.zeros((2, 3)))
    for index in 2, (slice(None), 3), (0, 9):
        with pytest.raises(ValueError, match="Out of bound indexer: idx=[239], dim=[23]"):
            access(r, index)
    same(r[...], np.zeros((2, 3)))
    access(r, (5, np.array([0])))       # beside an array: as where it is traced
    r[-9] = 7.0
    same(r[0], [7.0, 7.0, 7.0])


def test_an_index_out_of_bounds_names_its_own_line():
    r, i = ref(), jnp.array(7)
    lines = []
    jax.config.update("hlotrace_check_bounds", True)
    try:
        for read in lambda: r[i], lambda: r[i], lambda: jax.jit(lambda r, i: r[i])(r, 7):
            with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 4") as caught:
                read()
            lines.append(re.findall(r"test_refs.py:(\d+)", str(caught.value)))
    finally:
        jax.config.update("hlotrace_check_bounds", False)
    assert lines[:2] == [[], []] and len(lines[2]) == 1     # where it is eager, the traceback says it


def test_shardings_that_ask_for_nothing_go_with_refs():
    ref = jax.new_ref(jnp.zeros(2))

    @functools.partial(jax.jit, in_shardings=(None, (None,)), out_shardings=(None, None))
    def step(r, xs):
        r[...] += xs[0]
        return xs[0], (r[0], 2.)
    for i in 1, 2:
        step(ref, (jnp.ones(2),))
        assert ref[...].tolist() == [i, i]
    jax.jit(lambda x: ref.__setitem__(..., x), in_shardings=(None,))(jnp.ones(2))
    assert ref[...].tolist() == [1, 1]


MESH = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
CUT, WHOLE = (jax.sharding.NamedSharding(MESH, spec) for spec in (jax.P("x"), jax.P()))
FIRST = jax.sharding.SingleDeviceSharding(jax.devices()[0])


@pytest.mark.parametrize("ins, outs, put, want", [
    ((CUT, WHOLE), None, CUT, CUT), ((None, WHOLE), None, CUT, CUT), (None, WHOLE, CUT, CUT), (WHOLE, None, WHOLE, WHOLE),
    ((CUT, WHOLE), WHOLE, CUT, CUT), ((CUT, None), None, None, CUT), ((FIRST, FIRST), FIRST, None, FIRST)])
def test_shardings_go_with_refs(ins, outs, put, want):
    def step(r, x):
        r[...] += x
        return 2 * x
    compiled = jax.jit(step, in_shardings=ins, out_shardings=outs)
    ref = jax.new_ref(jnp.zeros(4) if put is None else jax.device_put(jnp.zeros(4), put))
    for i in 1, 2, 3:
        assert compiled(ref, 1.) == 2
        assert ref[...].tolist() == [i] * 4 and ref.sharding.is_equivalent_to(want, 1)
    compiled.lower(ref, 1.).compile()(ref, jnp.float32(1))
    jax.grad(lambda x: compiled(ref, jax.lax.stop_gradient(x)) * x)(1.)
    assert ref[...].tolist() == [5] * 4


def test_a_ref_that_is_elsewhere_than_in_shardings_says():
    ref = jax.new_ref(jax.device_put(jnp.zeros(4), WHOLE))
    with pytest.raises(ValueError, match="does not match the sharding"):
        jax.jit(lambda r: r[0], in_shardings=CUT)(ref)


def test_ahead_of_time():
    """A compiled program takes Refs, their types before it is compiled, and those that the function closes over."""
    r, other = ref(), jax.new_ref(jnp.ones(2))

    @jax.jit
    def step(r, x):
        r[0] += x
        other[1] += r[0]
        return r[...].sum()
    x = jnp.float32(2)
    struct = jax.ShapeDtypeStruct((4,), "float32", is_ref=True)
    assert str(jax.typeof(struct)) == "Ref{float32[4]}" and struct != jax.ShapeDtypeStruct((4,), "float32")
    for given in r, struct:
        compiled = step.lower(given, x).compile()
        assert compiled.in_tree == jax.tree.structure(((0, 0), {})) and compiled.out_tree == jax.tree.structure(0)
        assert compiled.out_info.shape == () and jax.eval_shape(step, given, x).shape == ()
    same((r[0], other[1]), (0.0, 1.0))
    same([float(compiled(r, x)) for _ in range(2)], [8, 10])
    same((r[0], other[1]), (4.0, 7.0))
    with pytest.raises(TypeError, match="compiled for float32.4., called with float32.3."):
        compiled(ref(3), x)
    with pytest.raises(TypeError, match="structure"):
        compiled(r[...], x)


def test_views():
    """Parts and other shapes of a Ref are read, written and passed as a Ref is; NumPy's views do the same."""
    want, r = np.arange(12, dtype="float32").reshape(3, 4), jax.new_ref(jnp.arange(12.0).reshape(3, 4))
    views = [(r.at[1], want[1]), (r.reshape(12).at[2:5], want.reshape(12)[2:5]), (r.T, want.T), (r.at[:, 1:].at[0], want[0, 1:]),
             (r.at[2].reshape(2, -1), want[2].reshape(2, 2)), (r.transpose(1, 0).at[3], want.T[3])]
    calls = [lambda f: f, jax.jit, jax.checkpoint, lambda f: lambda v: jax.lax.cond(True, f, lambda v: None, v)]
    for view, part in views:
        assert (view.shape, view.dtype, view.ndim, view.size) == (part.shape, part.dtype, part.ndim, part.size)
        same(view[...], part)
        for call in calls:
            call(lambda v: v.__setitem__(0, v[0] * 2 + 1))(view)
            part[0] = part[0] * 2 + 1
            same(r[...], want)
        jax.lax.scan(lambda c, x, view=view: (view.addupdate(x, -1), (c, None))[1], 0, jnp.arange(3.0))
        part[-1] += 3
        jax.vmap(lambda v, x: v.__setitem__(..., x))(view, jnp.arange(part.shape[0], dtype="float32"))
        part[...] = np.arange(part.shape[0]).reshape((-1,) + (1,) * (part.ndim - 1))
        same(r[...], want)
    bits = jax.jit(lambda v: v[...])(r.bitcast("int32").at[0])
    same(bits, want.view("int32")[0])
    r.bitcast("uint32")[0, 0] = jnp.uint32(0)
    pairs = jax.new_ref(jnp.arange(8, dtype="uint16").reshape(4, 2))
    pairs.bitcast("uint32")[1, 0] = jnp.uint32(9 << 16 | 5)        # rows 2 and 3
    np.testing.assert_array_equal(pairs[...], [[0, 1], [2, 3], [5, 5], [9, 7]])
    np.testing.assert_array_equal(pairs.bitcast("uint8")[:2, 1], [1, 0])
    same(r[0, 0], 0.0)
    assert "at[0]" in repr(r.at[0]) and str(jax.typeof(r.at[0])) == "Ref{float32[4]}" and len(r.at[0]) == 4
    for wrong, error, words in [
            (lambda: jax.jit(lambda a, b: None)(r.at[0], r), ValueError, "only one reference"),
            (lambda: jax.jit(lambda a: r[0])(r.at[0]), ValueError, "closed over and passed"),
            (lambda: jax.jit(lambda a: a)(r.at[0]), ValueError, "cannot be returned"),
            (lambda: jax.grad(lambda a: a[0])(r.at[0]), TypeError, "cannot differentiate with respect to"),
            (lambda: r.reshape(5), TypeError, "reshape"), (lambda: jax.new_ref(jnp.ones(3)).bitcast("int8"), ValueError, "cannot share elements"),
            (lambda: _checked(lambda: r.at[0][9]), IndexError, "out of bounds"), (lambda: list(r.at[0]), TypeError, "not iterable"),
            (lambda: np.asarray(r.at[0]), TypeError, "not an array")]:
        with pytest.raises(error, match=words):
            wrong()
        same(r[...], want * (np.arange(12).reshape(3, 4) > 0))


def test_a_ref_beside_what_is_differentiated():
    log = jax.new_ref(0.0, kind="no_grad_no_remat")
    same(jax.grad(lambda x: (log.__setitem__(..., x * 2), x * log[...])[1])(3.0), 6.0)
    same(log[...], 6.0)
    assert jax.typeof(log).kind == "no_grad_no_remat"
    with pytest.raises(ValueError, match="kind is one of None, 'no_grad_no_remat'"):
        jax.new_ref(0.0, kind="other")


def test_a_ref_of_a_python_number_has_the_type_that_it_has_in_the_jax_of_this_jaxlib():
    ref = jax.new_ref(2.0)
    ref[...] = jnp.float32(3.0)
    weak = binding.refs_have_weak_types
    product = ref[...] * jnp.bfloat16(1)
    assert ref[...].weak_type is weak and product.dtype == ("bfloat16" if weak else "float32")


def test_a_ref_in_the_memory_of_its_value():
    host, device = jax.memory.Space.Host, jax.memory.Space.Device
    kinds = [jax.jit(lambda x, m=m: jax.new_ref(jax.device_put(x, m), memory_space=m)[...])(jnp.ones(3)).sharding.memory_kind
             for m in (host, device)]
    assert kinds == ["pinned_host", "device"]
