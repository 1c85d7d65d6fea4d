"""What holds programs, each with something that is said in it: effects and states go through all of them."""
from custom_rules import custom_jvp, custom_vjp

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.sharding import PartitionSpec as P


def told(say, x):
    say(x)
    return x


def on_one_device(f, **options):
    mesh = jax.sharding.Mesh(jax.devices()[1:2], ("x",))
    return jax.shard_map(f, mesh=mesh, in_specs=P(), out_specs=P(), **options)


# holder -> (a function of (say, x) that says something, what it says of x = 1)
HOLDERS = {
    "plain": (lambda say, x: told(say, x), [1]),
    "twice": (lambda say, x: told(say, told(say, x) + 1), [1, 2]),
    "jit": (lambda say, x: jax.jit(lambda y: told(say, y + 1))(told(say, x)), [1, 2]),
    "checkpoint": (lambda say, x: jax.checkpoint(lambda y: told(say, y + 1))(told(say, x)), [1, 2]),
    "custom_jvp": (lambda say, x: custom_jvp(lambda y: told(say, y + 1))(told(say, x)), [1, 2]),
    "custom_vjp": (lambda say, x: custom_vjp(lambda y: told(say, y + 1))(told(say, x)), [1, 2]),
    "cond": (lambda say, x: lax.cond(x > 0, lambda y: told(say, y + 1), lambda y: y, told(say, x)), [1, 2]),
    "other branch": (lambda say, x: told(say, lax.cond(x < 0, lambda y: told(say, y + 1), lambda y: y, x)),
                     [1]),
    "switch": (lambda say, x: lax.switch(1, [lambda y: y, lambda y: told(say, y + 1), lambda y: -y],
                                         told(say, x)), [1, 2]),
    "scan": (lambda say, x: lax.scan(lambda c, d: (told(say, c + d), None), told(say, x), jnp.arange(3.0))[0],
             [1, 1, 2, 4]),
    "unrolled scan": (lambda say, x: lax.scan(lambda c, _: (told(say, c + 1), None), x, None, length=5,
                                              unroll=2)[0],
                      [2, 3, 4, 5, 6]),
    "while": (lambda say, x: lax.while_loop(lambda c: c < 4, lambda c: told(say, c + 1), told(say, x)),
              [1, 2, 3, 4]),
    "condition of while": (lambda say, x: lax.while_loop(lambda c: told(say, c) < 3,
                                                         lambda c: told(say, c + 1), x),
                           [1, 2, 2, 3, 3]),
    "loop in jit in loop": (lambda say, x: lax.fori_loop(0, 2, lambda i, c: jax.jit(lambda y: lax.scan(
        lambda d, _: (told(say, d + 1), None), y, None, length=2)[0])(c), x), [2, 3, 4, 5]),
    "shard_map": (lambda say, x: on_one_device(lambda y: told(say, y + 1))(told(say, x)), [1, 2]),
    "unchecked shard_map": (lambda say, x: on_one_device(lambda y: told(say, y + 1), check_vma=False)(x),
                            [2]),
    "loop in shard_map":
        (lambda say, x: on_one_device(lambda y: lax.psum(lax.fori_loop(0, 2, lambda i, c: told(
        say, lax.pvary(c, "x") + i), lax.pvary(y, "x")), "x"))(x), [1, 2]),
    "shard_map in loop":
        (lambda say, x: lax.fori_loop(0, 2, lambda i, c: on_one_device(lambda y: told(say, y + i))(c), x),
                          [1, 2]),
}
