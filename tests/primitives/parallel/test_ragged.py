"""ragged_all_to_all: what arrives, its derivative, its mapping, and its text for platforms that have the kernel."""
import numpy as np
import pytest
from mesh8 import devices

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.sharding import Mesh, P

SEND = np.array([[1, 0, 2, 1], [0, 3, 0, 1], [2, 2, 0, 0], [1, 1, 1, 1]], np.int32)     # rows from device i to j


def starts(sizes):
    return np.cumsum(np.pad(sizes[:, :-1], ((0, 0), (1, 0))), 1).astype(np.int32)


INDICES = (starts(SEND), SEND, starts(SEND.T).T.copy(), SEND.T.copy())
ROWS, OUT = np.arange(32, dtype=np.float32).reshape(16, 2), np.full((28, 2), -1, np.float32)


def exchange(x, out, *indices, **options):
    return lax.ragged_all_to_all(x, out, *[i[0] for i in indices], axis_name="x", **options)


def parts(**options):
    return jax.shard_map(lambda *xs: exchange(*xs, **options), mesh=Mesh(devices()[:4], "x"), in_specs=P("x"),
                         out_specs=P("x"))


def expected(x, out, send=SEND):
    result = out.reshape(4, -1, *out.shape[1:]).copy()
    for receiver in range(4):
        at = 0
        for sender in range(4):
            first = 4 * sender + starts(send)[sender, receiver]
            rows = x[first:first + send[sender, receiver]]
            result[receiver, at:at + len(rows)] = rows
            at += len(rows)
    return result.reshape(out.shape)


def test_slices_arrive_where_they_are_sent():
    np.testing.assert_array_equal(jax.jit(parts())(ROWS, OUT, *INDICES), expected(ROWS, OUT))


def test_derivatives_and_mapping():
    f = parts()
    weights = np.random.RandomState(0).randn(*OUT.shape).astype(np.float32)
    got = jax.jit(jax.grad(lambda x, out: (f(x, out, *INDICES) * weights).sum(), (0, 1)))(ROWS, OUT)
    # by linearity: the derivative along each of two directions
    for i, direction in enumerate((ROWS, OUT)):
        moved = expected(direction, 0 * OUT) if i == 0 else expected(0 * ROWS, direction)
        np.testing.assert_allclose((got[i] * direction).sum(), (moved * weights).sum(), rtol=1e-4)
    several = np.stack([ROWS, ROWS * 2, -ROWS])
    for dims in ((0, None), (0, 0)):
        outs = OUT if dims[1] is None else np.stack([OUT] * 3)
        mapped = jax.jit(jax.vmap(lambda x, out: f(x, out, *INDICES), dims))(several, outs)
        np.testing.assert_array_equal(mapped, np.stack([expected(x, OUT) for x in several]))


@pytest.mark.quick
def test_texts():
    program = jax.make_jaxpr(parts())(ROWS, OUT, *INDICES)
    assert "ragged_all_to_all[" in str(program) and "axis_index_groups=None" in str(program)
    groups = {None: "[[0, 1, 2, 3]]", ((0, 2), (1, 3)): "[[0, 2], [1, 3]]"}
    for given, listed in groups.items():
        f = jax.shard_map(lambda *xs, given=given: exchange(*xs, axis_index_groups=given), check_vma=False, in_specs=P("x"),
                          out_specs=P("x"), mesh=Mesh(devices()[:4], "x"))
        text = jax.jit(f).trace(ROWS, OUT, *INDICES).lower(lowering_platforms=("tpu",)).as_text()
        assert "stablehlo.custom_call @ragged_all_to_all(" in text and f"replica_groups = dense<{listed}>" in text
        assert "backend_config = {channel_id = 1 : i64" in text and "api_version = 4 : i32" in text


@pytest.mark.quick
@pytest.mark.parametrize("which", range(4))
def test_offsets_and_sizes_are_vectors_of_integers(which):
    names = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")
    for bad, words in ((jnp.ones(4), "must be integer type"), (jnp.ones((4, 1), int), "must be rank 1"),
                       (jnp.ones(0, int), "with positive dimension size"), (jnp.ones(3, int), "one length")):
        indices = [jnp.ones(4, int)] * 4
        indices[which] = bad
        with pytest.raises(ValueError, match=f"ragged_all_to_all.*{words}") as error:
            jax.make_jaxpr(lambda *xs: lax.ragged_all_to_all(*xs, axis_name="x"), axis_env=[("x", 4)])(
                jnp.ones(4), jnp.ones(4), *indices)
        assert words == "one length" or names[which] in str(error.value)
