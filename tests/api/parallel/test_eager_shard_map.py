"""shard_map outside of jit: values of each device are printed, and those that all share decide what Python
does."""
import numpy as np
import pytest
from equal import same
from mapped import GRID, LINE, ROWS, A, both_modes, on_grid, on_line, raises

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.sharding import PartitionSpec as P


def shown(blocks, devices=(0, 1, 2, 3), axes="(x,)", places="(0,) (1,) (2,) (3,)"):
    return "\n".join(f"On cpu:{d} at mesh coordinates {axes} = {place}:\n{block}\n"
                     for d, place, block in zip(devices, places.split(" "), blocks))


@both_modes
@pytest.mark.parametrize("outside", ["plain", "grad", "jit off"])
def test_print_shows_the_value_of_each_device(outside, check, capsys):
    def f(x):
        y = x + 1
        print(y)
        print(f"{lax.axis_index('x')}|{x!r}")
        return (y * x).sum()[None]
    mapped = on_line(f, check_vma=check)
    if outside == "grad":
        same(jax.grad(lambda x: mapped(x).sum())(A(8)), 2 * A(8) + 1)
        mapped(A(8))
    elif outside == "jit off":
        with jax.disable_jit():
            same(jax.jit(mapped)(A(8)), ((A(8) + 1) * A(8)).reshape(4, 2).sum(1))
    else:
        same(mapped(A(8)), ((A(8) + 1) * A(8)).reshape(4, 2).sum(1))
    blocks = A(8).reshape(4, 2)
    said = capsys.readouterr().out
    assert said.endswith(f"{shown(blocks + 1)}\n{shown(range(4))}|{shown(blocks)}\n")


def test_over_two_axes_and_beside_automatic_ones(capsys):
    def f(x):
        print(lax.psum(x, "y"))
        return x
    on_grid(f, P("x", "y"), P("x", "y"))(A(4, 2))
    places = " ".join(f"({i},_{j})" for i in range(4) for j in range(2))
    sums = [[[v]] for v in np.repeat(A(4, 2).sum(1), 2)]
    want = shown(map(np.float32, sums), range(8), "(x, y,)", places).replace(",_", ", ")
    assert capsys.readouterr().out == want + "\n"

    def g(x):
        print(x * 2)
        return x
    on_grid(g, axis_names={"x"})(A(4, 2))
    assert capsys.readouterr().out == shown(A(4, 1, 2) * 2, (0, 2, 4, 6)) + "\n"


def test_under_jit_and_vmap_there_are_no_values(capsys):
    def f(x):
        print(x)
        return x
    jax.jit(on_line(f))(A(4))
    jax.vmap(on_line(f))(A(1, 4))
    on_line(jax.jit(f))(A(4))
    assert capsys.readouterr().out.count("float32[1]") == 3


def test_python_decides_by_what_all_devices_share():
    def newton(x):
        guess, square = jnp.ones(()), lax.psum(x.sum(), "x")
        while abs(guess * guess - square) > 1e-5:
            guess = (guess + square / guess) / 2
        return guess
    same(on_line(newton, ROWS, P())(np.full(4, 2.25, "f")), 3.0, 100)
    kinds = lambda x: [float(x), int(x), x.item(), bool(x), x.tolist(), f"{x:.1f}", range(5)[jnp.int32(x)]]

    def f(x):
        seen.append(kinds(lax.psum(x.sum(), "x")))
        return x if lax.psum(x, "x")[0] > 3 else -x
    for check in (True, False):
        seen = []
        same(on_line(f, check_vma=check)(np.ones(4, "f")), np.ones(4))
        same(jax.grad(lambda x, check=check: on_line(f, check_vma=check)(x).sum())(np.ones(4, "f")),
             np.ones(4))
        assert seen == [[4.0, 4, 4.0, True, 4.0, "4.0", 4]] * 2


@both_modes
@pytest.mark.parametrize("use, error", [(bool, jax.errors.TracerBoolConversionError),
                                        (float, jax.errors.ConcretizationTypeError),
                                        (lambda x: f"{x:.2f}", jax.errors.ConcretizationTypeError),
                                        (lambda x: x.tolist(), jax.errors.ConcretizationTypeError),
                                        (lambda x: "abcd"[x.astype(int)],
                                         jax.errors.TracerIntegerConversionError)])
def test_where_devices_differ_the_values_are_listed(use, error, check):
    with raises(error, "each device of the shard_map", "lax.psum", "(x,) = (0,)", "lax.cond"):
        on_line(lambda x: use(x[0]), check_vma=check)(A(4))


def test_effects_happen_once_and_in_their_place():
    told = []
    tell = lambda x: told.append(float(np.max(x)))

    def f(x):
        y = jax.experimental.io_callback(lambda v: (tell(v), v + 1)[1],
                                         jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        told.append(str(lax.pmax(y, "x"))[-5:])
        z = jax.pure_callback(lambda v: v * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), y)
        assert lax.psum(z, "x").sum() == 20
        jax.debug.callback(tell, z)
        return z
    same(on_line(f)(A(4)), 2 * A(4) + 2)
    jax.effects_barrier()
    assert sorted(told[:4]) == [0, 1, 2, 3] and told[4] == "[4.]\n" and sorted(told[5:]) == [2, 4, 6, 8]
    # it would run a second time
    with raises(jax.errors.TracerBoolConversionError, "shard_map of <lambda>"):
        jax.grad(
            lambda x: on_line(lambda x: (jax.debug.callback(tell, x),
                                         x if lax.psum(x, "x")[0] > 0 else -x)[1])(
            x).sum())(A(4))


def test_what_is_closed_over_and_kept():
    big, kept = jnp.arange(4000.0), []

    def f(x, key):
        kept.append(x + big[:1])
        assert lax.psum(kept[0], "x").sum() > 0
        noise = jax.random.uniform(key, (1,))
        str(noise)
        return kept[0] * big[2] + lax.pvary(noise * 0, "x") + np.float32(1)
    same(on_line(f, (ROWS, P()))(A(4), jax.random.key(0)), 2 * A(4) + 1)
    with raises(jax.errors.UnexpectedTracerError, "shard_map of f"):
        float(kept[0][0])
    same(on_line(lambda x: x[:0] if lax.psum(1, "x") else x)(A(4)), A(0))
    here = jax.shard_map(lambda: lax.axis_index("x")[None], mesh=LINE, in_specs=(), out_specs=ROWS)
    same(here(), np.arange(4, dtype=np.int32))
    two = lambda x: jax.shard_map(lambda y: y * lax.psum(y, "y"), mesh=GRID, in_specs=P("y"),
                                  out_specs=P("y"),
                                  axis_names={"y"})(x) if str(x) else x
    same(on_grid(two, axis_names={"x"})(A(8)), jax.jit(on_grid(two, axis_names={"x"}))(A(8)))
