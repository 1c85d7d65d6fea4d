"""Arrays that one process offers and another pulls."""
import itertools

import numpy as np
import pytest
from forked import Process

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.experimental import transfer
from hlotrace.sharding import NamedSharding, PartitionSpec as P, SingleDeviceSharding

SERVE = """
import time
import hlotrace as jax, hlotrace.numpy as jnp
from hlotrace.experimental import transfer
server = transfer.start_transfer_server(jax.devices()[0].client, "127.0.0.1:0", ["127.0.0.1:0"])
server.await_pull(1, {"w": jnp.arange(6.).reshape(2, 3), "b": [jnp.ones(2, jnp.bfloat16)]})
print(server.address(), flush=True)
time.sleep(100)
"""

numbers = itertools.count()


@pytest.fixture(scope="module")
def server():
    return transfer.start_transfer_server(jax.devices()[0].client, "127.0.0.1:0", ["127.0.0.1:0"])


def like(x, sharding=None):
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding or x.sharding)


@pytest.mark.parametrize("make", [
    lambda: jnp.arange(8.), lambda: jnp.ones((8, 4), jnp.bfloat16), lambda: jnp.arange(8) > 3,
    lambda: jax.random.split(jax.random.key(1), 8)], ids=["float32", "bfloat16", "bool", "keys"])
@pytest.mark.parametrize("spec", [None, P(), P("x"), P(("x", "y"))], ids=str)
def test_what_is_pulled_is_what_was_offered(server, make, spec):
    mesh = jax.make_mesh((4, 2), ("x", "y"))
    x = jax.device_put(make(), SingleDeviceSharding(jax.devices()[3]) if spec is None else
                       NamedSharding(mesh, spec))
    connection, number = server.connect(server.address()), next(numbers)
    assert isinstance(server, transfer.TransferServer)
    assert isinstance(connection, transfer.TransferConnection)
    server.await_pull(number, (x, {"again": x}))
    found, again = connection.pull(number, (like(x), {"again": x}))
    for y in found, again["again"]:
        assert jax.typeof(y) == jax.typeof(x) and y.sharding == x.sharding and y.committed
        assert jnp.array_equal(x, y) and jnp.array_equal(x[::-1], jax.jit(lambda y: y[::-1])(y))


def test_another_process_serves():
    with Process(SERVE) as process:
        try:
            address = process.stdout.readline().strip()
            here = transfer.start_transfer_server(jax.devices()[0].client, "127.0.0.1:0", ["127.0.0.1:0"])
            place = SingleDeviceSharding(jax.devices()[0])
            found = here.connect(address).pull(
                1,
                {
                    "w": jax.ShapeDtypeStruct((2, 3), "float32", sharding=place),
                    "b": [jax.ShapeDtypeStruct((2,), "bfloat16", sharding=place)],
                },
            )
            np.testing.assert_array_equal(found["w"], np.arange(6.).reshape(2, 3))
            assert found["b"][0].tolist() == [1, 1]
        finally:
            process.kill()


@pytest.mark.parametrize("sharding", [SingleDeviceSharding,
                                      lambda _: NamedSharding(jax.make_mesh((8,), "x"), P("x"))])
def test_an_array_that_is_an_error(sharding):
    struct = jax.ShapeDtypeStruct((8,), "int32", sharding=sharding(jax.devices()[0]))
    x = transfer.make_error_array(struct, "lost")
    assert x.shape == (8,)
    with pytest.raises(jax.errors.JaxRuntimeError, match="lost"):
        np.asarray(x + 1)


def test_mistakes(server):
    struct = jax.ShapeDtypeStruct((2,), "float32")
    with pytest.raises(ValueError, match="pull: .* says no devices"):
        server.connect(server.address()).pull(1, struct)
    with pytest.raises(ValueError, match="says no devices"):
        transfer.make_error_array(struct, "lost")
    gone = jnp.arange(3.)
    gone.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        server.await_pull(2, gone)
