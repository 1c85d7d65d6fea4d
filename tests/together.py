"""Several programs of tests compiled as one: most of what XLA does for a small one is the same for each."""
import functools

import hlotrace


def compiled_together(names, program, at_once=8):
    """A function from one of the names to what its program computes, for each of its operands.

    `program(name)` gives (function, operands, ...), with operands as a tuple for each call.  Where a program of
    several fails, each is compiled alone: the one at fault fails its own test.
    """
    names = list(names)
    places = {name: divmod(i, at_once) for i, name in enumerate(names)}

    def run(programs):
        compiled = hlotrace.jit(lambda operands: [fun(*args) for (fun, *_), args in zip(programs, operands)])
        return [compiled(operands) for operands in zip(*(calls for _, *calls in programs), strict=True)]

    @functools.cache
    def group(which):
        try:
            return run([program(name) for name in names[which * at_once:][:at_once]])
        except Exception:
            return None

    def computed(name):
        which, at = places.get(name, (None, 0))
        found = None if which is None else group(which)
        return [result for result, in run([program(name)])] if found is None else [results[at] for results in found]
    return computed
