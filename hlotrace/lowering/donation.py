"""Which results take over the memory of which donated inputs."""
import collections

from ..core.avals import physical


def matched(donated, ins, outs):
    """{position of a donated input: that of the result which takes its memory}: of its type, or else of its
    size.

    `ins` and `outs` are the types of what one device holds.  Inputs that no result fits are not in it.
    """
    found: dict[int, int] = {}
    for fit in (kind, size):
        free, taken = collections.defaultdict(collections.deque), set(found.values())
        for j, aval in enumerate(outs):
            if j not in taken:
                free[fit(aval)].append(j)
        for i in donated:
            if i not in found and free[fit(ins[i])]:
                found[i] = free[fit(ins[i])].popleft()
    return found


def kind(aval):
    """What two types have in common that are laid out alike."""
    return physical(aval).shape, physical(aval).dtype


def size(aval):
    """Bytes."""
    return physical(aval).size * physical(aval).dtype.itemsize


def attributes(jaxpr, donated):
    """Attributes of the inputs of a program of one device."""
    outs = jaxpr.out_avals
    found = matched(donated, jaxpr.in_avals, outs) if donated else {}
    return ["" if i not in found else f"tf.aliasing_output = {found[i]} : i32" if kind(v.aval) ==
            kind(outs[found[i]]) else "jax.buffer_donor = true" for i, v in enumerate(jaxpr.invars)]
