"""Several programs of tests compiled as one: most of what XLA does for a small one is the same for each."""
import dataclasses
import functools
import math

import numpy as np

import hlotrace
from hlotrace import numpy as jnp, tree_util


@functools.partial(tree_util.register_dataclass, data_fields=["arrays"], meta_fields=["structure", "places"])
@dataclasses.dataclass
class Packed:
    """The leaves of a result in turn: `places` says of each which array it is in, and its shape."""
    arrays: list
    structure: object
    places: tuple


def in_few_arrays(fun):
    """`fun` compiled, its results as NumPy arrays: in the program, those of a dtype are one array.

    jaxlib 0.12 compiles a kernel for each result, 13 ms however small; small ones of one array are one.
    """
    @hlotrace.jit
    def packed(*args):
        leaves, structure = tree_util.tree_flatten(fun(*args))
        dtypes = list(dict.fromkeys(x.dtype for x in leaves))
        arrays = [jnp.concatenate([jnp.ravel(x) for x in leaves if x.dtype == dtype]) for dtype in dtypes]
        return Packed(arrays, structure, tuple((dtypes.index(x.dtype), x.shape) for x in leaves))

    def computed(*args):
        found = packed(*args)
        rest, leaves = [np.asarray(x) for x in found.arrays], []
        for i, shape in found.places:
            leaf, rest[i] = np.split(rest[i], [math.prod(shape)])
            leaves.append(leaf.reshape(shape))
        return tree_util.tree_unflatten(found.structure, leaves)
    return computed


def compiled_together(names, program, at_once=8, jit=hlotrace.jit, elsewhere=lambda fun, *calls: None):
    """A function from one of the names to what its program computes, for each of its operands.

    `program(name)` gives (function, operands, ...), with operands as a tuple for each call.  Where a program
    of several fails, each is compiled alone: the one at fault fails its own test.  `jit` compiles several:
    hlotrace's, or `in_few_arrays`.  `elsewhere` is asked first: its results, if any, of what is not compiled.
    """
    names = list(names)
    places = {name: divmod(i, at_once) for i, name in enumerate(names)}

    def run(programs, jit=hlotrace.jit):
        """The results of each program, a list of those of its calls."""
        found = [elsewhere(*each) for each in programs]
        rest = [each for each, results in zip(programs, found) if results is None]
        if rest:
            compiled = jit(lambda operands: [fun(*args) for (fun, *_), args in zip(rest, operands)])
            calls = [compiled(operands) for operands in zip(*(calls for _, *calls in rest), strict=True)]
            rest = iter(map(list, zip(*calls, strict=True)))
        return [next(rest) if results is None else results for results in found]

    @functools.cache
    def group(which):
        try:
            return run([program(name) for name in names[which * at_once:][:at_once]], jit)
        except Exception:
            return None

    def computed(name):
        which, at = places.get(name, (None, 0))
        found = None if which is None else group(which)
        return run([program(name)])[0] if found is None else found[at]
    return computed
