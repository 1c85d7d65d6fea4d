"""Derivatives of a function of matrices, held against differences: one compiled program says value, jvp and
vjp."""
import numpy as np

import hlotrace as jax
import hlotrace.numpy as jnp


def directions(args, seed=0):
    """A random direction for each argument, complex for complex ones."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if np.iscomplexobj(x) else 0)
            for x in args]


def check_derivatives(function, *args, step=1e-6, tolerance=1e-6, by=jax.jit):
    """Assert, in 64 bits, that the jvp is the central difference and that the vjp is its transpose.

    `by` runs it: compiled, or as `reference.evaluated` does where there is little but formulas.
    """
    with jax.enable_x64():
        args = [np.asarray(x, np.complex128 if np.iscomplexobj(x) else np.float64) for x in args]
        change = directions(args)

        @by
        def both(args, change):
            out, moved = jax.jvp(function, args, change)
            leaves, structure = jax.tree.flatten(out)
            cotangent = structure.unflatten(
                [jnp.cos(jnp.arange(x.size)).reshape(x.shape).astype(x.dtype) for x in leaves])
            back = jax.vjp(function, *args)[1](cotangent)
            paired = lambda xs, ys: sum(
                (x * y).sum() for x, y in zip(jax.tree.leaves(xs), jax.tree.leaves(ys)))
            return out, moved, paired(moved, cotangent).real, paired(change, back).real
        _, moved, forward, backward = both(args, change)
        ahead, behind = (both([x + sign * step * d for x, d in zip(args, change)], change)[0]
                         for sign in (1, -1))
    for m, a, b in zip(*map(jax.tree.leaves, (moved, ahead, behind))):
        np.testing.assert_allclose(m, (np.asarray(a) - np.asarray(b)) / (2 * step), tolerance, tolerance)
    np.testing.assert_allclose(forward, backward, 1e-9, 1e-9)
