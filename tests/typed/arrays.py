"""Arrays: operators, methods, indexing, functions of jnp and lax, dtypes, random numbers, shardings."""
import numpy as np

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import Array, lax, random
from hlotrace.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding
from hlotrace.typing import ArrayLike

x = jnp.arange(16.0).reshape(4, 4)
i = jnp.array([0, 2, 1, 3])
host = np.ones((4, 4), np.float32)


def operators() -> list[Array]:
    y = x + 1 - 2.0 * x / host
    y = 1 + y - host
    y = -y ** 2 % 3 // 2
    y += 1
    mask = (x > 0) & ~(x == 3) | (x != 1) ^ (2 <= x)
    q, r = divmod(x, 2)
    return [y @ x.T, x.mT @ host, abs(x), mask, q, r, i << 1, 2 ** i, round(x, 2)]


def methods(a: Array) -> tuple[int, ...]:
    s = a.sum(axis=0, keepdims=True) + a.mean((0, 1)) + a.max() - a.min(axis=-1) + a.prod() + a.std(ddof=1) + a.var()
    s = s + a.cumsum(0) + a.clip(0, 1) + a.round(2) + a.astype(jnp.int32) + a.astype("float32") + a.ravel()[:4] + a.real
    b = a.reshape(4, -1).transpose(1, 0).swapaxes(0, 1).squeeze().flatten().repeat(2).take(i).sort()
    picked = a.at[0].set(1.0).at[1, :].add(host[0]).at[..., i].multiply(2).at[a > 3].max(0)
    low = a.at[i, 0].get(mode="fill", fill_value=0)
    rows: list[Array] = [row for row in a]
    first, *rest = a
    if a.any() and a.all() and bool(a[0, 0]) and s.ndim > 1 and a.size and len(a):
        print(float(a[0, 0]), int(a[0, 0]), complex(a[0, 0]), np.asarray(a).shape, a.tolist(), a.item(0), rows, rest)
    print(b, picked, low, first, a.dtype.name, a.nbytes, a.itemsize, a.devices(), a.sharding.device_set, a.is_deleted())
    return a.shape


def indexing(a: Array) -> Array:
    n = int(i[0])
    parts = [a[0], a[-1, 1:], a[::2, ..., None], a[:, i], a[a > 0], a[[0, 1], :], a[i[0]], a[n:n + 2], a[jnp.newaxis],
             a[host > 0]]
    return jnp.concatenate([p.ravel() for p in parts])


def functions(a: ArrayLike) -> Array:
    b = jnp.exp(a) + jnp.maximum(a, 0) + jnp.where(jnp.isnan(a), 0.0, a) + jnp.dot(x, x.T)
    b = jnp.einsum("ij,kj->ik", x, x) + jnp.tensordot(x, x, axes=([1], [1])) + jnp.matmul(x, x.T, precision="highest")
    c = jnp.concatenate([x, host], axis=1) + jnp.stack((x, x)).sum() + jnp.pad(x[:, :4], ((0, 0), (4, 0)), constant_values=1)
    d = jnp.linspace(0, 1, 5) + jnp.zeros(5) + jnp.ones((5,), dtype=bool) + jnp.full(5, jnp.pi) + jnp.eye(5)[0]
    rows, columns = jnp.nonzero(x)
    e, f = jnp.split(x, 2, axis=1)
    grid_x, grid_y = jnp.meshgrid(jnp.arange(3), jnp.arange(4), indexing="ij")
    counts, edges = jnp.histogram(x, bins=4)
    g = jnp.add.reduce(x, axis=1) + jnp.add.outer(i, i)[0] + jnp.float32(3) + jnp.bool_(True)
    steps, step = jnp.linspace(0, 1, 5, retstep=True)
    h = jnp.take_along_axis(x, jnp.argsort(x, axis=-1), axis=-1) + jnp.cumsum(x, axis=1) + jnp.tril(x) + jnp.roll(x, 1)
    k = jnp.vectorize(lambda u, v: u + v, signature="(n),(n)->(n)")(x, x)
    m = jnp.sort(x)[..., ::-1] + jnp.expand_dims(x, (0, 1)).squeeze((0, 1))
    m = m + jnp.broadcast_to(x[0], (4, 4)) + jnp.quantile(x, 0.5)
    print(rows, columns, e, f, grid_x, grid_y, counts, edges, steps, step, h, k, m, jnp.shape(x)[0], jnp.ndim(x) + 1)
    print(jnp.promote_types(jnp.float32, "int8"), jnp.result_type(x, 1), jnp.finfo(jnp.float32).eps, jnp.iinfo(np.int8).max)
    print(jnp.issubdtype(x.dtype, jnp.floating), x.dtype == jnp.float32, jnp.inf, -jnp.nan)
    print(jnp.unique(x, return_counts=True))
    return b + c.mean() + d.sum() + g.sum() + jnp.interp(x, x[0], x[1], left=0.0)


def lower_level() -> Array:
    a = lax.add(x, x) + lax.rsqrt(x) + lax.dynamic_slice(x, (0, 1), (4, 4)) + lax.clamp(0.0, x, 1.0)
    a = lax.dynamic_update_slice(a, x, (0, 0)) + lax.broadcast_in_dim(x[0], (4, 4), (1,)) + lax.cumsum(x, axis=1)
    values, indices = lax.top_k(x, 2)
    out = lax.conv_general_dilated(x[None, None], jnp.ones((1, 1, 2, 2)), (1, 1), "SAME")
    dots = lax.dot_general(x, x, (((1,), (1,)), ((), ())), precision=lax.Precision.HIGHEST)
    return a + values.sum() + indices.sum() + out[0, 0] + dots.sum() + lax.expand_dims(x, [0])[0]


def randomness(seed: int) -> Array:
    key = random.key(seed)
    key, *subkeys = random.split(key, 4)
    a = random.normal(key, (2, 3)) + random.uniform(subkeys[0], shape=(2, 3), minval=0, maxval=2) + random.gumbel(key, (3,))
    b = random.randint(random.fold_in(key, 7), (3,), 0, 10) + random.permutation(key, 3) + random.bernoulli(key, 0.3, (3,))
    c = random.categorical(key, a, axis=-1) + random.choice(key, jnp.arange(5), (2,), replace=False)
    w = jax.nn.initializers.glorot_normal()(key, (3, 4), jnp.float32) + jax.nn.initializers.zeros(key, (3, 4))
    return b.sum() + c + w.sum() + jax.nn.softmax(a, axis=-1).sum() + jax.nn.gelu(a).mean() + jax.nn.logsumexp(a)


def placed() -> Array:
    mesh = jax.make_mesh((1,), ("data",), (jax.sharding.AxisType.Auto,), devices=jax.devices()[:1])
    other = Mesh(np.array(jax.devices()[:1]), ("data",))
    sharding = NamedSharding(mesh, P("data", None))
    y: Array = jax.device_put(x, sharding)
    z = jax.jit(lambda a: a * 2, in_shardings=sharding, out_shardings=NamedSharding(other, P()))(y)

    def each(a: Array) -> Array:
        return a - lax.pmean(a, "data")
    mapped = jax.shard_map(each, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    with jax.set_mesh(mesh):
        z = lax.with_sharding_constraint(z, P("data"))
    for shard in z.addressable_shards:
        print(shard.device.id, shard.index, shard.data.shape, mesh.shape["data"], sharding.spec, mesh.axis_names)
    return mapped(y) + jax.device_put(z, SingleDeviceSharding(jax.local_devices()[0]))
