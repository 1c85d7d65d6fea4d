"""Two programs side by side: which equations of one do what equations of the other do.

Values are numbered by how they are made (Alpern, Wegman and Zadeck, "Detecting equality of variables in
programs", 1988): equations with the same primitive on operands of the same numbers make the same value.
Dtypes do not count, nor how exact a product is.  What is left is aligned in order, by primitives and shapes,
where its operands allow that.
"""
import difflib
import itertools
from typing import NamedTuple

import numpy as np

from ..core.jaxpr import Jaxpr, Literal, Printer, sub_jaxprs
from ..lowering.outline import inlined
from ..primitives.arrays.bit_formats import reduce_precision_p
from ..primitives.arrays.elementwise import convert_element_type_p
from ..primitives.arrays.slicing import copy_p
from ..primitives.programs.calls import custom_jvp_call_p, custom_vjp_call_p, jit_p
from ..primitives.programs.remat import remat_p

_CALLS = {jit_p, remat_p, custom_jvp_call_p, custom_vjp_call_p}
_SAME = {convert_element_type_p, reduce_precision_p, copy_p}    # their result is their operand
_NOT_COUNTED = {"precision", "preferred_element_type", "dtype", "new_dtype", "out_sharding", "sharding"}


class Change(NamedTuple):
    """A line of two programs together: `mark` is " " for both, "-" for the first's, "+" for the second's."""
    mark: str
    text: str
    source: object = None       # of an equation


def changes(first, second):
    """The Changes that make one Jaxpr of another, in the order of the first.

    Values of the second have the names of their counterparts in the first; those without have a prime.  What
    loops and branches hold is written below them, with names of its own, where it differs.
    """
    first, second = flattened(first), flattened(second)
    pairs = matched(first, second)
    other, taken = {id(a): b for a, b in pairs}, {id(b) for _, b in pairs}
    ours, theirs = Printer(), Printer()
    theirs.fresh = (f"{name}'" for name in Printer().fresh)
    theirs.names.update({w: ours.name(v) for v, w in zip(first.invars, second.invars)})
    found, rest = [], dict.fromkeys(map(id, second.eqns))
    eqn_of = {id(eqn): eqn for eqn in second.eqns}

    def of_second(until):
        for key in list(itertools.takewhile(lambda key: key != until, rest)):
            if key not in taken:
                found.append(Change("+", theirs.head(eqn_of[key]), eqn_of[key].source))
            del rest[key]
    for eqn in first.eqns:
        text, counterpart = ours.head(eqn), other.get(id(eqn))
        if counterpart is None and eqn.primitive in _SAME:
            counterpart = next((e for e in map(eqn_of.get, rest)
                                if _same_conversion(eqn, e, ours, theirs)), None)
            taken.add(id(counterpart))
        if counterpart is None:
            found.append(Change("-", text, eqn.source))
            continue
        if id(counterpart) in rest:
            of_second(id(counterpart))
        theirs.names.update({w: ours.name(v) for v, w in zip(eqn.outvars, counterpart.outvars)})
        found += _compared(text, theirs.head(counterpart), eqn.source, counterpart.source)
        for one, another in zip(sub_jaxprs(eqn.params), sub_jaxprs(counterpart.params)):
            inner = changes(one, another)
            if any(change.mark != " " for change in inner):
                found += [change._replace(text=f"  {change.text}") for change in inner]
    of_second(None)
    results = [f"return {', '.join(map(printer.name, program.outvars))}"
               for printer, program in ((ours, first), (theirs, second))]
    return [*found, *_compared(*results)]


def _same_conversion(eqn, other, ours, theirs):
    """Do two equations give one value another dtype?"""
    operands = eqn.invars[0], other.invars[0]
    return (other.primitive is eqn.primitive and eqn.outvars[0].aval == other.outvars[0].aval
            and Literal not in map(type, operands) and operands[1] in theirs.names
            and ours.name(operands[0]) == theirs.name(operands[1]))


def _compared(text, other, source=None, other_source=None):
    if text == other:
        return [Change(" ", text, source)]
    return [Change("-", text, source), Change("+", other, other_source)]


def flattened(jaxpr):
    """The program with the equations of the functions that it calls in place of the calls."""
    return inlined(jaxpr, lambda eqn: eqn.primitive in _CALLS)


def matched(first, second):
    """Pairs (equation of `first`, its counterpart in `second`) of two flattened programs, in the order of
    `first`; each equation is in one pair at most."""
    numbers = {}
    ones, others = _numbered(first, numbers), _numbered(second, numbers)
    waiting = {}
    for i, number in others.items():
        waiting.setdefault(number, []).append(i)
    found = {}
    for i, number in ones.items():
        if waiting.get(number):
            found[i] = waiting[number].pop(0)
    taken = set(found.values())
    left = [i for i in ones if i not in found], [i for i in others if i not in taken]
    keys = [[_likeness(program.eqns[i]) for i in rows] for program, rows in zip((first, second), left)]
    aligned = {}
    for a, b, size in difflib.SequenceMatcher(None, *keys, autojunk=False).get_matching_blocks():
        aligned.update(zip(left[0][a:a + size], left[1][b:b + size]))
    sources = _sources(first), _sources(second)
    partner = dict(zip(first.invars, second.invars))      # of values, whatever their dtypes
    partners = set(second.invars)
    pairs = []
    for i in sorted(found | aligned):
        pair = first.eqns[i], second.eqns[found[i] if i in found else aligned[i]]
        if i in found or _fit(*pair, partner, partners, sources):
            pairs.append(pair)
            partner.update(zip(pair[0].outvars, pair[1].outvars))
            partners.update(pair[1].outvars)
    return pairs


def _sources(jaxpr):
    """{variable: the one that it is with another dtype}."""
    found = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive in _SAME:
            operand = eqn.invars[0]
            found[eqn.outvars[0]] = operand if type(operand) is Literal else found.get(operand, operand)
    return found


def _fit(one, other, partner, partners, sources):
    """May aligned equations be counterparts?  Not where an operand is known to be another value."""
    for x, y in zip(one.invars, other.invars):
        x, y = (v if type(v) is Literal else of.get(v, v) for v, of in zip((x, y), sources))
        if (type(x) is Literal) != (type(y) is Literal):
            return False
        if type(x) is not Literal and x in partner and y in partners and partner[x] is not y:
            return False
    return len(one.invars) == len(other.invars)


def _likeness(eqn):
    return eqn.primitive, tuple(v.aval.shape for v in eqn.outvars)


def _numbered(jaxpr, numbers):
    """{place of an equation: its number}; what only changes a dtype has that of its operand."""
    of = {v: ("constant", v.aval.shape, i) for i, v in enumerate(jaxpr.constvars)}
    of |= {v: ("argument", i) for i, v in enumerate(jaxpr.invars)}
    found = {}
    for i, eqn in enumerate(jaxpr.eqns):
        operands = tuple(_of_literal(v) if type(v) is Literal else of[v] for v in eqn.invars)
        if eqn.primitive in _SAME:
            of[eqn.outvars[0]] = operands[0]
            continue
        params = tuple(sorted((name, _of_param(value, numbers)) for name, value in eqn.params.items()
                              if name not in _NOT_COUNTED))
        key = eqn.primitive, operands, params, tuple(v.aval.shape for v in eqn.outvars)
        found[i] = numbers.setdefault(key, len(numbers))
        of.update({v: (found[i], n) for n, v in enumerate(eqn.outvars)})
    return found


def _of_literal(literal):
    value = np.asarray(literal.val)
    return "literal", value.shape, str(value)


def _of_param(value, numbers):
    if type(value) is Jaxpr:
        return str(sorted(_numbered(value, numbers).values()))
    if type(value) is tuple:
        return str([_of_param(v, numbers) for v in value])
    return repr(value)
