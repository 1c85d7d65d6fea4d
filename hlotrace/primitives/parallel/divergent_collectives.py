"""Branches and loops where devices may go different ways: what must not be in them, what is moved out.

A collective ends when all devices of its group have come to it.  A checked `shard_map` knows from types
along which manual axes a predicate varies; then a collective along those in a branch or a loop is an error:
it would wait for ever, or meet another one and add up what does not belong together.
"""
from ...core import programs, source_info
from ...core.jaxpr import rewrite, sub_jaxprs
from ...core.primitive import fact_of
from ..common import aval_of
from .collectives import EXCHANGES, ppermute_p, psum_invariant_p, pvary_p, reduce_scatter_p, vary
from .ragged import ragged_all_to_all_p

# as users write them, where that differs
_PUBLIC = {psum_invariant_p: "psum", reduce_scatter_p: "psum_scatter"}


def check(what, decides, regions, *, transposed=False):
    """Do regions communicate along axes over which a predicate varies?

    Args:
        what: the function with these regions, for the error.
        decides: the aval of the predicate.
        regions: pairs of words and a program: ("the true branch", jaxpr).
        transposed: are they made by transposition?  Then sums in them may be the library's.
    Raises:
        ValueError: where one does.
    """
    found = [(words, [eqn for eqn in _exchanges(jaxpr) if eqn.primitive is ppermute_p
                      or not decides.vma.isdisjoint(eqn.params["axes"])])
             for words, jaxpr in regions if fact_of(jaxpr, "axis_names")]
    eqns = [eqn for _, several in found for eqn in several]
    if not eqns:
        return
    listed = "; ".join(f"{words} holds {', '.join(dict.fromkeys(map(_described, several)))}"
                       for words, several in found if several)
    axes = sorted(decides.vma)
    first = repr(axes[0])
    derived = (" If you wrote no psum, it is the derivative of a value that all devices share: give the "
               f"branch lax.pvary(value, {first}) instead, and the sum is outside.")
    everywhere = " A ppermute waits for all devices of the mesh, whichever axis it sends along."
    raise ValueError(
        f"{what} may differ between devices along {axes}, and {listed}. Devices that do not go there are "
        "waited for without end. Call the collective before or after, where all devices do, and choose "
        "between values with jnp.where; or decide by what all devices agree on, such as lax.pmax(value, "
        f"{first})."
        + derived * any(transposed and eqn.primitive is psum_invariant_p for eqn in eqns)
        + everywhere * any(eqn.primitive is ppermute_p for eqn in eqns))


def _exchanges(jaxpr):
    """The equations of a program, and of those in it, in which devices wait for each other."""
    for eqn in jaxpr.eqns:
        if eqn.primitive in EXCHANGES or eqn.primitive is ragged_all_to_all_p:
            yield eqn
        for inner in sub_jaxprs(eqn.params):
            yield from _exchanges(inner)


def _described(eqn):
    where, axes = source_info.describe(eqn.source), eqn.params["axes"]
    name = _PUBLIC.get(eqn.primitive, eqn.primitive)
    return f"{name} over {axes[0] if len(axes) == 1 else axes!r}" + (f" ({where})" if where else "")


class _Other(Exception):
    """A program inside would have to be another."""


@programs.cached
def for_varying(jaxpr, axes, which):
    """The program for inputs of which those marked in `which` vary over `axes` too, so that none of its
    operations makes them vary: the derivative of such an operation is a sum over devices.  None where a loop
    inside would have to change.
    """
    avals = [a.update(vma=a.vma | axes) if w else a for a, w in zip(jaxpr.in_avals, which)]
    try:
        return programs.trace_closed(lambda *xs: rewrite(jaxpr, xs, _again), avals, jaxpr.name)
    except _Other:
        return None


def _again(eqn, operands):
    if eqn.primitive is pvary_p:
        return [vary(operands[0], eqn.params["axes"])]
    return eqn.bind(operands, **_params(eqn, operands))


def _params(eqn, operands):
    """The parameters of an equation for these operands."""
    more = [aval_of(x).vma - v.aval.vma for x, v in zip(operands, eqn.invars)]
    params = eqn.params
    if not any(more) or not any(True for _ in sub_jaxprs(params)):
        return params
    axes, which = frozenset().union(*more), tuple(map(bool, more))
    if eqn.primitive.vary is None:
        raise _Other

    def varied(jaxpr, which):
        found = for_varying(jaxpr, axes, which)
        if found is None:
            raise _Other
        return found
    changed = eqn.primitive.vary(params, varied, which)
    if changed is None:
        raise _Other
    return changed
