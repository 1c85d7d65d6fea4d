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


def positions(program, x, found):
    """(claims, index vectors, the parameters) of each gather and scatter, as the program computes them."""
    env = dict(zip((*program.constvars, *program.invars), (*program.consts, *x)))
    for eqn in program.eqns:
        operands = [getattr(v, "val", None) if not hasattr(v, "aval") or hasattr(v, "val") else env[v] for v in eqn.invars]
        if eqn.primitive.name == "gather" or eqn.primitive.name.startswith("scatter"):
            found.append((eqn.params, np.asarray(operands[1])))
        out = eqn.primitive.bind(*operands, **eqn.params)
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out]))
    return found


@pytest.mark.parametrize("index", [pytest.param(i, id=named(i)) for i in indices() if fits(i)])
def test_claims_of_an_index_hold(index):
    x = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)
    shape = x[tuple(np.asarray(e) if isinstance(e, jax.Array) else e for e in index)].shape
    reads, writes = lambda x: x[index], lambda x, y: x.at[index].add(y)
    found = positions(jax.make_jaxpr(reads)(x), [x], [])
    found = positions(jax.make_jaxpr(writes)(x, np.ones(shape, np.float32)), [x, np.ones(shape, np.float32)], found)
    for params, vectors in found:
        rows = [tuple(row) for row in vectors.reshape(int(np.prod(vectors.shape[:-1])), vectors.shape[-1]).tolist()]
        assert not params["indices_are_sorted"] or rows == sorted(rows)
        assert not params["unique_indices"] or len(rows) == len(set(rows))
