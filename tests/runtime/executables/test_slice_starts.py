"""Slices of slices, and gathers and scatters at one place of a slice, whose starts are out of range: NumPy's numbers."""
import re

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.runtime.executables.slice_starts import in_range

X = np.arange(16, dtype=np.float32) * 3


def start(at, most):
    return min(max(at, 0), most)


def window(x, at, size):
    return x[start(at, len(x) - size):][:size]


def added(x, *places):
    x = x.copy()
    for at in places:
        if 0 <= at < len(x):
            x[at] += 1
    return x


def updated(x, at):
    x = x.copy()
    x[start(at, 2):][:2] = 1
    return x


def slice_of(x, at, size):
    return lax.dynamic_slice(x, (at,), (size,), allow_negative_indices=False)


def at(x, *places):
    return x.at[jnp.stack(places) if len(places) > 1 else places[0]]


# name -> (a function of x[i:i+4] and a place, the same of NumPy arrays)
READS = {
    "dynamic_slice": (lambda y, j: slice_of(y, j, 2), lambda y, j: window(y, j, 2)),
    "dynamic_index": (lambda y, j: lax.dynamic_index_in_dim(y, j, allow_negative_indices=False),
                      lambda y, j: window(y, j, 1)),
    "take": (lambda y, j: jnp.take(y, j, mode="clip"), lambda y, j: y[start(j, 3)]),
    "gather of two": (lambda y, j: jnp.take(y, jnp.stack([j, j + 1]), mode="clip"),
                      lambda y, j: y[[start(j, 3), start(j + 1, 3)]]),
    "add": (lambda y, j: at(y, j).add(1, wrap_negative_indices=False), added),
    "add twice": (lambda y, j: at(y, j, j + 1).add(1, wrap_negative_indices=False), lambda y, j: added(y, j, j + 1)),
    "update": (lambda y, j: lax.dynamic_update_slice(y, jnp.ones(2), (j,), allow_negative_indices=False), updated),
    "in a function": (lambda y, j: jax.jit(lambda y: slice_of(y, j, 2))(y), lambda y, j: window(y, j, 2)),
    "in a loop of one": (lambda y, j: lax.fori_loop(0, 1, lambda _, c: c + slice_of(y, j, 2), jnp.zeros(2)),
                         lambda y, j: window(y, j, 2)),
}


@pytest.mark.parametrize("name", READS)
def test_what_is_read_of_a_slice(name):
    ours, theirs = READS[name]
    f = jax.jit(lambda x, i, j: ours(slice_of(x, i, 4), j))
    for i in (-30, 0, 4, 13, 100):
        for j in (-100, -1, 0, 2, 3, 100):
            np.testing.assert_array_equal(f(X, i, j), theirs(window(X, i, 4), j), err_msg=f"{i}, {j}")


def test_programs_that_were_exported():
    """jaxlib prints them, without the dimension numbers that are zero."""
    def f(x, i, j):
        y = slice_of(x, i, 4)
        return [ours(y, j) for ours, _ in READS.values()]
    i, j = jnp.int32(4), jnp.int32(100)
    for shape in ((16,), jax.export.symbolic_shape("n", constraints=["n >= 8"])):
        exported = jax.export.export(jax.jit(f))(jax.ShapeDtypeStruct(shape, "float32"), i, j)
        again = jax.export.deserialize(exported.serialize())
        for place in (j, jnp.int32(-100), jnp.int32(3)):
            for got, (_, theirs) in zip(again.call(X, i, place), READS.values(), strict=True):
                np.testing.assert_array_equal(got, theirs(X[4:8], int(place)))


@pytest.mark.parametrize("axes", [("x",), ("x", "y"), (None, "y")])
def test_one_row_of_an_array_that_is_divided(axes):
    """A device that does not hold the row changes nothing."""
    x = X.reshape(8, 2)
    split = jax.NamedSharding(jax.make_mesh((4, 2), ("x", "y")), jax.P(*axes))
    for row in (0, 5, 7):
        got = jax.jit(lambda row=row: jnp.asarray(x).at[row].add(1.0, out_sharding=split))()
        want = x.copy()
        want[row] += 1
        np.testing.assert_array_equal(got, want)
        assert got.sharding.is_equivalent_to(split, 2)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint32", "int32"])
def test_programs_with_starts_in_range_compile(kind):
    """The numbers of a small type do not reach the last start."""
    def f(x, i):
        return (lax.dynamic_slice(x, (i, i), (4, 2), allow_negative_indices=False), x.at[i].set(x[0]),
                jnp.take(x, i, axis=0, mode="clip"), x.at[i, i].get(mode="clip"))
    for dtype in ("float32", "complex64", "int8", "bool", "bfloat16"):
        x = jnp.arange(1200).reshape(300, 4).astype(dtype)
        text = jax.jit(f).lower(x, jnp.asarray(100, kind)).as_text()
        changed = in_range(text)
        assert changed.count("clamp") == text.count("clamp") + 5 and changed.count("optimization_barrier") == 1
        got = jax.jit(f)(x, jnp.asarray(100, kind))
        for found, want in zip(got, (x[100:104, 2:], x.at[100].set(x[0]), x[100], x[100, 3]), strict=True):
            np.testing.assert_array_equal(found, want)


@pytest.mark.quick
@pytest.mark.parametrize("kind, last", [("i8", (127, 97)), ("ui8", (255, 97)), ("i16", (296, 97)), ("i32", (296, 97))])
def test_the_last_start_leaves_room_for_the_slice(kind, last):
    """Or is the greatest number of its type."""
    text = (f"  %5 = stablehlo.dynamic_slice %0, %1, %2, sizes = [4, 3] : (tensor<300x100xf32>, tensor<{kind}>, "
            f"tensor<{kind}>) -> tensor<4x3xf32>")
    bounds = re.findall(r"dense<(\d+)> : tensor<(\w+)>", in_range(text))
    assert bounds == [("0", kind), (str(last[0]), kind), ("0", kind), (str(last[1]), kind)]
