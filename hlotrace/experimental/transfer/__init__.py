"""Arrays between processes that need not be of one job: one offers them on an address, others pull them."""
from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from ...api.flat import abstract
from ...core.avals import physical
from ...core.pytrees import pytree
from ...core.surface.boundary import boundaries
from ...core.surface.public import export_names
from ...runtime import binding
from ...runtime.array_impl import ArrayImpl, as_array

__all__ = ["TransferConnection", "TransferServer", "make_error_array", "start_transfer_server"]


def _wanted(x: Any) -> tuple[Any, Any, Any]:
    """The type of an array like `x`, its sharding, and both as jaxlib reads them."""
    sharding = x.sharding
    if sharding is None:
        raise ValueError(f"{x} says no devices: give it a sharding, such as "
                         "ShapeDtypeStruct(shape, dtype, sharding=SingleDeviceSharding(jax.devices()[0]))")
    aval = sharding.typed(abstract(x))
    whole = physical(aval)
    return aval, sharding, SimpleNamespace(shape=whole.shape, dtype=whole.dtype,
                                           sharding=sharding.filled(whole.ndim)._of_jaxlib)


def _received(buffer: binding.Buffer, aval: Any, sharding: Any) -> ArrayImpl:
    return ArrayImpl(aval, binding.rewrap(buffer, physical(aval), sharding), True)


@boundaries(called="TransferConnection")
class TransferConnection:
    """What `TransferServer.connect` gives: it pulls what the server at the other end offers."""

    def __init__(self, connection: Any, client: binding.Client) -> None:
        self._connection, self._client = connection, client

    def pull(self, uuid: int, xs: Any, timeout: Any = None) -> Any:
        """The arrays that are offered under `uuid`, in the structure of `xs`.

        Args:
            uuid: the number of the offer, which is pulled once.
            xs: arrays or ShapeDtypeStructs that say each array's shape, dtype and sharding.
            timeout: as jaxlib has it; None waits until they are there.
        Raises:
            ValueError: where one has no sharding.
        """
        leaves, tree = pytree.tree_flatten(xs)
        wanted = [_wanted(x) for x in leaves]
        buffers = self._connection._pull_flat(uuid, self._client, [like for *_, like in wanted], timeout)
        return pytree.tree_unflatten(tree, [_received(buffer, aval, sharding)
                               for buffer, (aval, sharding, _) in zip(buffers, wanted)])


@boundaries(called="TransferServer")
class TransferServer:
    """What `start_transfer_server` gives: it offers arrays, and connects to other servers."""

    def __init__(self, server: Any, client: binding.Client) -> None:
        self._server, self._client = server, client

    def address(self) -> str:
        """Where others connect to it, as host:port."""
        return self._server.address()

    def await_pull(self, uuid: int, arrays: Any, timeout: Any = None) -> None:
        """Offer a pytree of arrays under a number; they are kept until they have been pulled once."""
        self._server._await_pull_flat(uuid, [_buffer(x) for x in pytree.tree_leaves(arrays)], timeout)

    def connect(self, address: str) -> TransferConnection:
        """A connection to the server at an address."""
        return TransferConnection(self._server.connect(address), self._client)


def _buffer(x: Any) -> binding.Buffer:
    array = as_array(x)
    array.check_alive()
    return array._buf


def start_transfer_server(client: binding.Client, address: str = "[::]:0",
                          transport_addresses: Sequence[str] = (), max_num_parallel_copies: int = 8,
                          transfer_size: int = 256 << 20, supports_pinned_allocator: bool = False,
                          use_raw_buffers: bool = False) -> TransferServer:
    """A server that offers arrays on the devices of a client to other processes, and pulls theirs.

    Who can reach the address can pull what is offered, without a password.

    Args:
        client: that of the devices, `jax.devices()[0].client`.
        address: where it listens; port 0 is any that is free.
        transport_addresses: where the data go through, each with a port, such as "127.0.0.1:0".
        max_num_parallel_copies: so many copies from devices run at a time.
        transfer_size: the most bytes of a copy.
        supports_pinned_allocator: can the client's hosts pin memory?
        use_raw_buffers: send from the devices' own memory.

    >>> from hlotrace.experimental.transfer import start_transfer_server
    >>> server = start_transfer_server(jax.devices()[0].client, "127.0.0.1:0", ["127.0.0.1:0"])
    >>> x = jax.device_put(jnp.arange(3), jax.devices()[0])
    >>> server.await_pull(7, {"x": x})
    >>> server.connect(server.address()).pull(7, {"x": x})          # in the other process
    {'x': Array([0, 1, 2], dtype=int32)}
    """
    return TransferServer(binding.start_transfer_server(
        client, address, list(transport_addresses), max_num_parallel_copies, transfer_size,
        supports_pinned_allocator, use_raw_buffers), client)


def make_error_array(aval: Any, message: str) -> ArrayImpl:
    """An array that raises JaxRuntimeError with this message when its value is read.

    Args:
        aval: an array or a ShapeDtypeStruct that says its shape, dtype and sharding.
    Raises:
        ValueError: where it has no sharding.

    >>> from hlotrace.experimental.transfer import make_error_array
    >>> make_error_array(jax.device_put(1.0, jax.devices()[0]), "lost").shape
    ()
    """
    typed, sharding, like = _wanted(aval)
    client = sharding._devices[0].client
    return _received(binding.make_error_array(client, like, message), typed, sharding)


export_names(globals())
