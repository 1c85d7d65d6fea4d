"""A Profile for people: tables."""
from ...core.source_info import short
from ..communication import aligned
from ..planning.plan_report import amount, duration
from .scopes import PASSES

_MOST = 20      # rows of a table


def table(profile):
    """All of it, as text."""
    parts = [_head(profile), _by_line(profile), _by_scope(profile), _by_operation(profile), _notes(profile)]
    return "\n\n".join(filter(None, parts))


def _head(profile):
    where = f"{profile.devices} x {profile.device}" if profile.devices > 1 else profile.device
    passes = [f"{name} {duration(seconds)}" for name in PASSES
              if (seconds := profile.by_pass().get(name)) and name != "other"]
    each = " on each device" * (profile.devices > 1)
    return "\n".join(filter(None, [
        f"{profile.name} on {where}: a run takes {duration(profile.seconds)}, the fastest of "
        f"{len(profile.runs)} (the slowest {duration(max(profile.runs))})",
        ", ".join(passes) and f"{each.strip().capitalize() + ': ' if each else ''}{', '.join(passes)}"]))


def _share(seconds, profile):
    return f"{100 * seconds / profile.seconds:.1f} %"


def _passes(profile):
    """The passes that are columns: none, where there is only one."""
    found = profile.by_pass()
    return [name for name in PASSES if found.get(name)] if len(found) > 1 else []


def _sums(head, left, sums, profile):
    """A table of seconds by pass."""
    passes = _passes(profile)
    rows = [[head, "time", "share", *passes]]
    for name, by_pass in zip(left, sums):
        total = sum(by_pass.values())
        rows.append([name, duration(total), _share(total, profile),
                     *(duration(by_pass[p]) if by_pass.get(p) else "" for p in passes)])
    return "\n".join(aligned(rows, right=1))


def _by_line(profile):
    found = dict(list(profile.by_line().items())[:_MOST])
    names = [f"{short(source[0])}:{source[1]}" if source else "no line" for source in found]
    return _sums("line", names, found.values(), profile)


def _by_scope(profile):
    found = profile.by_scope()
    if len(found) < 2:
        return ""
    listed = []

    def visit(scope):
        listed.append(scope)
        for inner in found:         # the slowest first
            if len(inner) == len(scope) + 1 and inner[:len(scope)] == scope:
                visit(inner)
    visit(())
    names = ["  " * len(scope) + scope[-1] if scope else profile.name for scope in listed[:2 * _MOST]]
    return _sums("scope", names, (found[scope] for scope in listed), profile)


def _by_operation(profile):
    rows = [["operation", "what", "line", "pass", "calls", "time", "share", "FLOP/s", "B/s", "roofline",
             "bound by"]]
    for op in profile.operations[:_MOST]:
        rate = lambda count, op=op: amount(count / op.seconds) if count and op.seconds else ""
        rows.append([
            op.name, op.path.rpartition("/")[2] or op.opcode,
            f"{short(op.source[0]).rpartition('/')[2]}:{op.source[1]}" if op.source else "-", op.passed,
            f"{op.calls:g}", duration(op.seconds), _share(op.seconds, profile), rate(op.flops),
            rate(op.bytes), f"{100 * op.roofline:.0f} %" if op.roofline else "",
            op.bound if op.roofline else ""])
    left = len(profile.operations) - _MOST
    more = [f"and {left} more"] if left > 0 else []
    return "\n".join([*aligned(rows, 4), *more])


def _notes(profile):
    """What is behind the figures, and what could not be attributed."""
    ours = sum(op.seconds for op in profile.operations)
    no_line = sum(op.seconds for op in profile.operations if op.source is None)
    several = sum(op.seconds for op in profile.operations if op.lines > 1)
    unknown = sum(profile.unknown.values())
    of = lambda seconds: _share(seconds, profile)
    lines = [f"in operations {of(ours)}, of these in some that know no line {of(no_line)}; in fusions of "
             f"several lines, whose time goes to the one that XLA names, {of(several)}"]
    if unknown:
        names = sorted(profile.unknown, key=profile.unknown.get, reverse=True)
        lines.append(f"in what is no operation of the program {of(unknown)}: {', '.join(names[:4])}")
    lines.append(f"in none (launching, waiting for the host) {of(profile.idle)}")
    if profile.chip is None:
        lines.append("no peak rates are known for this device, so there is no roofline")
    elif profile.measured and profile.chip.peak:
        peaks = ", ".join(f"{amount(rate)}FLOP/s {dtype}" for dtype, rate in profile.chip.peak.items())
        lines.append(f"roofline: of what a large product reached on this machine, {peaks}; others have none")
    elif not profile.measured:
        lines.append(f"roofline: of the peak rates of {profile.chip.name} (hlotrace plan)")
    return "\n".join(lines)
