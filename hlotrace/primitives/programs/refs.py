"""Reading and writing a Ref: each access is a program of the value, so they know nothing of indices.

Operands are the program's behind the value: [value, *operands] -> [value afterwards if it writes, *results].
"""
from ...core import programs
from ...core.config import state
from ...core.refs import Access, Holder, Ref
from ...core.symbolic_zeros import nonzero_mask
from ...core.trace import EVAL
from ..arrays.shape import front, front_dims
from ..arrays.slicing import copy_p
from .calls import jit_bind

Ref.copy = staticmethod(copy_p.bind)

def _access(name, writes):
    operation = "an addupdate" if name == "addupdate" else "a set/swap"

    def inside(out_avals):
        return list(out_avals[writes:])

    def abstract_eval(*avals, ref, program):
        return inside(program.out_avals)

    def lower(ctx, eqn, *names):
        ref = eqn.params["ref"]
        raise NotImplementedError(f"a program that uses {ref.aval} from outside cannot be lowered by itself: "
                                  "pass ref[...] as an argument and return the new value, or call the "
                                  "function")

    def jvp(primals, tangents, *, ref, program):
        if any(t is not None for t in tangents):
            raise ValueError(f"performing {operation} operation with a differentiated value on a "
                             f"non-differentiated array reference of type {ref.aval}: make the Ref inside of "
                             "the differentiated function, or write lax.stop_gradient(value)")
        outs = access_p.bind(*primals, ref=ref, program=program)
        return outs, [None] * len(outs)

    def batching(axis, args, dims, *, ref, program):
        if writes and any(nonzero_mask(dims)):
            raise ValueError(f"performing {operation} operation with vmapped value on an unbatched array "
                             f"reference of type {ref.aval}: pass the Ref as an argument of the mapped "
                             "function, with an axis in in_axes, or make it inside")
        moved, out_batched = programs.batch(program, axis, (False, *nonzero_mask(dims)))
        return access_p.bind(*front(args, dims), ref=ref, program=moved), front_dims(out_batched)

    def discharge(states, values, args, *, ref, program):
        if state.trace is EVAL:
            results = jit_bind(program, [*values, *args], (0,) if states[0].donated else ())
        else:
            results = state.trace.splice(program, [*values, *args])
        return (results[:1], results[1:]) if writes else (values, results)

    access_p = Holder(name, multiple_results=True, abstract_eval=abstract_eval, lower=lower, jvp=jvp,
                      batching=batching, discharge=discharge,
                      effects=lambda params: (Access(ref=params["ref"], writes=writes),))
    return access_p


get_p = _access("get", False)
set_p = _access("set", True)
swap_p = _access("swap", True)
addupdate_p = _access("addupdate", True)
