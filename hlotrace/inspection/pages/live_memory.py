"""Which values are alive while a program runs, row by row: an estimate from its rows alone.

Values live from the row that makes them to the last that uses them, arguments and results to the end.  A loop
adds what its body needs beside the values it is given.  The compiler may put several values into one buffer,
or compute one again, and then needs less.
"""
from .document import Usage, ends_at

# Results that are their operands' memory.
_VIEWS = frozenset("bitcast get-tuple-element tuple optimization-barrier parameter while return".split())
_UPDATES = ("dynamic-update-slice", "dynamic_update_slice")     # done in the memory of the first operand


def usage(rows, start=0, end=None, most=20):
    """The Usage of the rows from `start` to `end` that are as deep as the first."""
    end = len(rows) if end is None else end
    if start >= end:
        return Usage([], start, [])
    level = [i for i in range(start, end) if rows[i].depth == rows[start].depth]
    roots, last, sizes = {}, {}, {}
    for i in level:
        row = rows[i]
        shared = row.operands if row.op in _VIEWS or row.op.endswith("-done") else None
        if _updates(rows, i):
            shared = row.operands[:1]
        if shared is None:
            roots[i], sizes[i] = {i}, row.size
        else:
            roots[i] = {root for x in shared for root in roots.get(x, ())}
        inner = (x for j in range(i, ends_at(rows, i)) for x in rows[j].operands)
        for x in inner:
            for root in roots.get(x, ()):
                last[root] = i
    for i in level:
        if rows[i].op == "argument":
            last[i] = level[-1]
    for root in roots[level[-1]]:
        last[root] = level[-1]
    dies = {}
    for i in sizes:
        dies.setdefault(last.get(i, i), []).append(i)
    now = sum(sizes[i] for i in level if rows[i].op == "argument")
    alive, best = [], (-1, level[0])
    for i in level:
        now += sizes.get(i, 0) if rows[i].op != "argument" else 0
        inside = 0
        if rows[i].holds in ("loop", "function", "branch"):
            inside = _inside(rows, i)
        alive.append((i, now + inside))
        best = max(best, (now + inside, -i))
        now -= sum(sizes[x] for x in dies.get(i, ()))
    peak = -best[1]
    values = [(i, sizes[i]) for i in sizes
              if (i <= peak or rows[i].op == "argument") and last.get(i, i) >= peak]
    return Usage(alive, peak, sorted(values, key=lambda pair: -pair[1])[:most])


def _updates(rows, i):
    """Does a row write into its first operand?  A fusion does where that is what its last row does."""
    last = rows[ends_at(rows, i) - 1] if rows[i].holds == "fusion" else rows[i]
    return last.op in _UPDATES


def _inside(rows, i):
    """The most that the programs in a row need beside what they are given and what the row makes."""
    first, end, most = i + 1, ends_at(rows, i), 0
    while first < end:
        if rows[first].holds == "block":
            stop = ends_at(rows, first)
            most, first = max(most, _peak(rows, first + 1, stop)), stop
        else:
            return max(most, _peak(rows, first, end))
    return most


def _peak(rows, start, end):
    return max((size for _, size in usage(rows, start, end).alive), default=0)
