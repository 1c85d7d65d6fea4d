"""A Plan for people: a table for each target, and one HTML page."""
import html as html_escapes

from ..communication import aligned

WHAT_IT_IS_NOT = ("Lower bounds from peak rates, of the compiled program: nothing was run, no kernel was "
                  "measured, nothing was autotuned.")
QUICK = ("Of the traced program alone, not compiled: memory and operations are near what a compile says; "
         "copies and collectives that the compiler adds are not in it. Nothing was run.")


_VALUES = "\nIn memory: "       # where the table of values begins in an error


def with_values(message, e):
    """An error of too little memory, with the largest values of an Estimate of the program below."""
    return "\n".join([f"{message}{_VALUES}{largest_title(e.peak)}", *largest(e.at_peak)])


def _scaled(count, step, units):
    """(how many of a unit, the unit), of units that rise by `step`."""
    for unit in units[:-1]:
        if abs(count) < step:
            return count, unit
        count /= step
    return count, units[-1]


def size(count):
    """`1.50 GiB`."""
    count, unit = _scaled(count, 1024, ("B", "KiB", "MiB", "GiB", "TiB"))
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.2f} {unit}"


def amount(count):
    """`4.35 T`, without a unit."""
    count, unit = _scaled(count, 1000, ("", "k", "M", "G", "T", "P"))
    return f"{count:.3g} {unit}".rstrip()


def duration(seconds):
    """`22.1 ms`."""
    if seconds >= 1:
        return f"{seconds:.4g} s"
    count, unit = _scaled(seconds * 1e9, 1000, ("ns", "us", "ms"))
    return f"{count:.3g} {unit}"


def mesh_text(mesh):
    return " ".join(f"{axis}={n}" for axis, n in mesh.items()) or "one device"


def table(plan):
    """The whole, as text."""
    parts = []
    for name, devices in plan.targets.items():
        rows = [row for row in plan.rows if row.target == name]
        parts.append("\n".join([_heading(name, devices, rows), *aligned([_titles(plan, rows), *(
            _cells(plan, row, rows) for row in rows)], right=1), *_errors(rows), *_best(rows)]))
    return "\n\n".join([*parts, _caveat(row.estimate for row in plan.rows)])


def _caveat(estimates):
    """What the numbers of estimates are not."""
    return QUICK if any(e and e.source == "traced" for e in estimates) else WHAT_IT_IS_NOT


def _heading(name, devices, rows):
    chip = next((row.estimate.chip for row in rows if row.estimate), None)
    head = f"{name}: {len(devices)} x {devices[0].device_kind}"
    if chip is None:
        return head
    if chip.platform == "cpu":
        return head + " (nominal rates, to compare meshes: the times are none of a real machine)"
    peak = max(chip.peak, key=lambda dtype: (dtype == "bfloat16", chip.peak[dtype]))
    return (f"{head} ({size(chip.memory)}, {amount(chip.bandwidth)}B/s, {amount(chip.peak[peak])}FLOP/s "
            f"{peak}, links {amount(chip.link_bandwidth)}B/s)")


def _parts_of(rows):
    """The parts of the chip that have times."""
    return list(dict.fromkeys(part for row in rows if row.estimate for part in row.estimate.times))


def _titles(plan, rows):
    return ["mesh", "fits", "memory", "arguments", "results", "temporaries", "FLOPs", "bytes", "sent",
            *_parts_of(rows), "a step at least", "bound by", *([f"{plan.unit}/s"] if plan.per_step else [])]


def _cells(plan, row, rows):
    e = row.estimate
    if e is None:
        fits = "no" if row.error and "RESOURCE_EXHAUSTED" in row.error else "-"
        return [mesh_text(row.mesh), fits, *["-"] * (len(_titles(plan, rows)) - 2)]
    memory = e.memory
    sizes = (memory["needed"], memory["arguments"], memory["results"] - memory["aliases"],
             memory["temporaries"])
    counts = (sum(e.flops.values()), e.bytes, sum(e.sent.values()))
    times = [e.times.get(part, 0) for part in _parts_of(rows)]
    cells = [mesh_text(row.mesh), "yes" if e.fits else "no", *map(size, sizes), *map(amount, counts),
             *map(duration, times), duration(e.seconds), e.bound or "-"]
    if plan.per_step:
        cells.append(amount(plan.per_step / e.seconds) if e.seconds else "-")
    return cells


def _errors(rows):
    """Why there is no estimate; for what does not fit, with what takes the memory."""
    lines = []
    for row in rows:
        if row.error:
            words, separator, values = row.error.partition(_VALUES)
            lines.append(f"{mesh_text(row.mesh)}: {' '.join(words.split())}{separator}{values}")
    return lines


def _best(rows):
    """What the best mesh sends, and what it holds when it holds the most."""
    best = next((row for row in rows if row.estimate), None)
    if best is None:
        return []
    return ["", *of_estimate(best.estimate)]


def of_estimate(e):
    """Lines on one Estimate: what is sent by kind and mesh axis, what is in memory at the peak, notes."""
    lines = []
    if e.sent:
        lines.append(f"{mesh_text(e.mesh)}: bytes that a chip sends in a run, by kind and mesh axis")
        lines += aligned([[f"  {kind}", axes, size(count)] for (kind, axes), count in
                          sorted(e.sent.items(), key=lambda item: -item[1])], 2)
    if e.at_peak:
        lines += [f"{mesh_text(e.mesh)}: {largest_title(e.peak)}", *largest(e.at_peak)]
    return lines + [f"note: {note}" for note in e.notes]


def largest_title(peak):
    return f"the largest values when most are alive, {size(peak)} together"


def largest(values):
    """Lines on the values that are in memory at the peak, as an Estimate has them."""
    return aligned([[f"  {first}", *rest] for first, *rest in _value_rows(values)], 4)


def _value_rows(values):
    return [[v["type"], v["kind"], v["where"] or "-", v["name"] or "-", size(v["bytes"])] for v in values]


def estimate_table(e):
    """One Estimate, as text."""
    memory = e.memory
    has = f"of {size(memory['chip'])}: {'fits' if e.fits else 'does not fit'}"
    if e.chip is None or e.chip.platform == "cpu":
        has = ""
    rows = [["memory", size(memory["needed"]), has],
            *([f"  {name}", size(memory[name]), ""]
              for name in ("arguments", "results", "aliases", "temporaries")),
            ["FLOPs", amount(sum(e.flops.values())), ", ".join(e.flops)],
            ["bytes to memory", amount(e.bytes), ""], ["bytes sent", amount(sum(e.sent.values())), ""],
            *([f"{part} at its peak", duration(seconds), ""] for part, seconds in e.times.items())]
    lines = aligned(rows, right=1)
    if e.times:
        lines.append(f"a run takes at least {duration(e.seconds)}, bound by: {e.bound}")
    return "\n".join([*lines, *of_estimate(e), _caveat([e])])


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 85rem; padding: 0 1rem }
body { color: #222 }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .5rem; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child, .text { text-align: left }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem } td { white-space: nowrap }
.wide { overflow-x: auto } p, summary { overflow-wrap: anywhere }
.no { color: #a00 } .bar { fill: #4a78b5 } .bound { fill: #d1603d }
@media (prefers-color-scheme: dark) {
body { background: #181818; color: #ddd } th, td { border-color: #444 } }
"""


def html(plan):
    """One page that needs nothing else: the tables, and for each mesh a bar for each part of the chip."""
    escape = html_escapes.escape
    parts = ["<!doctype html><html lang=en><meta charset=utf-8>"
             "<meta name=viewport content=\"width=device-width, initial-scale=1\">"
             f"<title>plan of {escape(plan.name)}</title>"
             f"<style>{_STYLE}</style><h1>plan of {escape(plan.name)}</h1>"]
    for name, devices in plan.targets.items():
        rows = [row for row in plan.rows if row.target == name]
        parts.append(f"<h2>{escape(_heading(name, devices, rows))}</h2>")
        parts.append(_html_table([_titles(plan, rows), *(_cells(plan, row, rows) for row in rows)], 1))
        parts += [f"<p class=no>{escape(line)}</p>" for line in _errors(rows)]
        parts.append(_bars(rows))
        for row in rows:
            if row.estimate:
                e = row.estimate
                parts.append(f"<details><summary>{escape(mesh_text(row.mesh))}: communication and memory"
                             "</summary>")
                if e.sent:
                    parts.append(_html_table([["collective", "mesh axes", "bytes that a chip sends"], *(
                        [kind, axes, size(n)] for (kind, axes), n in e.sent.items())], 2))
                parts.append(_html_table([["at the peak", "kind", "line", "what", "bytes"],
                                          *_value_rows(e.at_peak)], 4))
                parts += [f"<p>{escape(note)}</p>" for note in e.notes] + ["</details>"]
    return "\n".join([*parts, f"<p>{_caveat(row.estimate for row in plan.rows)}</p></html>"])


def _html_table(rows, left):
    def line(cells, tag):
        return "<tr>" + "".join(f"<{tag}{' class=text' * (i < left)}>{html_escapes.escape(cell)}</{tag}>"
                                for i, cell in enumerate(cells)) + "</tr>"
    body = "".join(line(row, "td") for row in rows[1:])
    return f"<div class=wide><table>{line(rows[0], 'th')}{body}</table></div>"


def _bars(rows):
    """The time of each part of the chip, for each mesh, as bars; the one that binds in another color."""
    drawn = [row for row in rows if row.estimate and row.estimate.times]
    most = max((row.estimate.seconds for row in drawn), default=0)
    if not most:
        return ""
    lines, y = [], 0
    for row in drawn:
        y += 24
        lines.append(f'<text x="0" y="{y - 6}">{html_escapes.escape(mesh_text(row.mesh))}</text>')
        for part, seconds in row.estimate.times.items():
            kind, width = "bound" if part == row.estimate.bound else "bar", 500 * seconds / most
            lines.append(f'<text x="20" y="{y + 11}" font-size="12">{part}</text>'
                         f'<rect class={kind} x="130" y="{y}" height="13" width="{width:.1f}"/>'
                         f'<text x="{140 + width:.1f}" y="{y + 11}" font-size="12">'
                         f'{duration(seconds)}</text>')
            y += 17
    return (f'<div class=wide><svg viewBox="0 0 760 {y + 8}" width="760" fill="currentColor">'
            f'{"".join(lines)}</svg></div>')
