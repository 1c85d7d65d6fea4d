"""What explain_sharding predicts beside what XLA compiles."""
import collections

from hlotrace.api.parallel.explain_sharding import plan_of
from hlotrace.inspection.communication import collectives
from hlotrace.inspection.hlo_text import shape_bytes, tuple_parts


def predicted(lowered):
    """Counter of (kind, mesh axes, bytes, times)."""
    return collections.Counter((c.kind, c.axes, c.bytes, c.times) for c in plan_of(lowered).collectives)


def by_kind(found):
    """Bytes by kind, axes and times of such a Counter: where XLA makes one array of several."""
    totals = collections.Counter()
    for (kind, axes, size, times), count in found.items():
        totals[kind, axes, times] += size * count
    return totals


def compiled(text, mesh):
    """The same of an optimized HLO text: what XLA combined counts by its arrays; an all-to-all's pieces are one."""
    found = collections.Counter()
    for c in collectives(text, mesh):
        sizes = [c.bytes] if c.kind == "all-to-all" else map(shape_bytes, tuple_parts(c.shape))
        found.update((c.kind, c.axes, size, c.trips) for size in sizes)
    return found
