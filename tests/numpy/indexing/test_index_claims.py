"""What an index claims of its positions (sorted, unique) is so: a backend that trusts it computes something else."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp

SHAPE = (6, 5, 4)
STEPS = [slice(None), slice(None, None, -1), slice(4, 0, -2), slice(0, 5, 2), slice(1, 2), slice(3, None, -1), 2, -1, None,
         np.array([0, 1, 2]), np.array([2, 1, 1]), np.array([True, False, True, True]), jnp.array(3), jnp.array([1, 0, 3])]


def indices():
    """Tuples of one to three entries that fit an array of SHAPE."""
    rng = np.random.default_rng(0)
    for i in range(len(STEPS)):
        yield (STEPS[i],)
    for _ in range(120):
        yield tuple(STEPS[i] for i in rng.integers(len(STEPS), size=rng.integers(2, 4)))


def fits(index):
    try:
        np.zeros(SHAPE)[tuple(np.asarray(e) if isinstance(e, jax.Array) else e for e in index)]
    except IndexError:
        return False
    return True


def named(index):
    return ", ".join(str(e).replace("\n", "") for e in index)


def positions(program, x):
    """(the parameters, index vectors) of each gather and scatter, as the program computes them."""
    indexed = [eqn for eqn in program.eqns if eqn.primitive.name.startswith(("gather", "scatter"))]
    wanted, steps = {eqn.invars[1] for eqn in indexed}, []
    for eqn in reversed(program.eqns):      # the steps that lead to index vectors, and no others
        if not wanted.isdisjoint(eqn.outvars):
            wanted.update(eqn.invars)
            steps.insert(0, eqn)
    env = dict(zip((*program.constvars, *program.invars), (*program.consts, *x)))

    def value(v):
        return env[v] if v in env else v.val
    for eqn in steps:
        out = eqn.primitive.bind(*map(value, eqn.invars), **eqn.params)
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out]))
    return [(eqn.params, np.asarray(value(eqn.invars[1]))) for eqn in indexed]


@pytest.mark.parametrize("index", [pytest.param(i, id=named(i)) for i in indices() if fits(i)])
def test_claims_of_an_index_hold(index):
    x = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)
    shape = x[tuple(np.asarray(e) if isinstance(e, jax.Array) else e for e in index)].shape
    reads, writes = lambda x: x[index], lambda x, y: x.at[index].add(y)
    found = positions(jax.make_jaxpr(reads)(x), [x])
    y = np.ones(shape, np.float32)
    found += positions(jax.make_jaxpr(writes)(x, y), [x, y])
    for params, vectors in found:
        rows = [tuple(row) for row in vectors.reshape(int(np.prod(vectors.shape[:-1])), vectors.shape[-1]).tolist()]
        assert not params["indices_are_sorted"] or rows == sorted(rows)
        assert not params["unique_indices"] or len(rows) == len(set(rows))
