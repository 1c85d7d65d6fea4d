"""Writes the measured table of docs/performance.md, and docs/performance.svg, from what tools/bench.py found.

    python tools/bench.py; python tools/performance.py out/bench.json       (make performance)

What is known of other groups and other jaxlibs stays, in docs/performance.json; without a file, table and picture are made
of that.  Ratios are of CPU time where the scoreboard has it; others are left out if the machine was busy.  The picture needs
matplotlib, of the extra `docs`.
"""
import datetime
import json
import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
KNOWN = PAGE.with_suffix(".json")
TIMES = {"s", "ms", "us", "µs", "ns"}
MEASURED = re.compile(r"(<!-- measured -->\n).*?(\n<!-- end -->)", re.S)


def added(known, result):
    """`known`, {jaxlib: {group: what was found}}, with a result of tools/bench.py in it."""
    when, load = datetime.date.today(), max(result["load_before"][0], result["load_after"][0])
    for row in result["rows"]:
        ratio = row["cpu_ratio"] or (row["ratio"] if load <= 2 * result["cores"] else None)
        if row["unit"] not in TIMES or ratio is None:
            continue
        groups = known.setdefault(result["jaxlib"], {})
        if groups.get(row["group"], {}).get("result") != (this := f"{result['commit']} {when}"):
            groups[row["group"]] = {"result": this, "load": load, "ratios": {}}
        groups[row["group"]]["ratios"][row["name"]] = round(ratio, 3)
    return known


def table(known, about):
    """The table, in Markdown, of {jaxlib: groups}; `about` has what each group is, in their order."""
    versions = sorted(known, key=lambda version: [*map(int, version.split("."))])
    lines = [f"| what | {' | '.join(f'jaxlib {version}' for version in versions)} | to measure it (see [Measuring](#measuring)) |",
             f"|---|{'---|' * len(versions)}---|"]
    for group, what in about.items():
        cells = [_span(known[version].get(group)) for version in versions]
        if any(cells):
            lines.append(f"| {what} | {' | '.join(cells)} | `python tools/bench.py --only {group}` |")
    runs = sorted({(version, found["result"].split()[1], round(found["load"]))
                   for version in versions for found in known[version].values()})
    lines += ["", "Measured with jaxlib " + "; ".join(f"{v} on {day}, load {load}" for v, day, load in runs) + "."]
    return "\n".join(lines)


def _span(found):
    """The least ratio, the one in the middle and the greatest, and of how many."""
    if not found:
        return ""
    ratios = sorted(found["ratios"].values())
    low, middle, high = (f"{r:.2g}" if r < 1 else f"{r:.2f}" for r in (ratios[0], ratios[len(ratios) // 2], ratios[-1]))
    return low if low == high else f"{low} to {high}; {middle} ({len(ratios)})"


def draw(known, about, path):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "x"}     # the same numbers make the same file
    from matplotlib import pyplot
    groups = [group for group in about if any(group in known[version] for version in known)]
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.42 * len(groups)), layout="constrained")
    axes.axvline(1, color="0.4", linewidth=1)
    for v, version in enumerate(sorted(known)):
        places, ratios = [], []
        for y, group in enumerate(groups):
            found = known[version].get(group, {"ratios": {}})["ratios"]
            places += [y + 0.16 * (2 * v - 1)] * len(found)
            ratios += found.values()
        axes.plot(ratios, places, "o", color=f"C{v}", markersize=5, alpha=.6, label=f"jaxlib {version}")
    axes.set_xscale("log")
    ticks = [.01, .02, .05, .1, .2, .5, 1, 2, 5]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(groups)), [about[g] if len(about[g]) < 62 else f"{about[g][:60]}..." for g in groups], fontsize=8)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=.3)
    axes.set_xlabel("time of hlotrace / time of JAX; left of 1 hlotrace is faster")
    axes.legend(loc="lower left", fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def main(paths):
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import bench
    about = {name: group.about.partition(":")[0] for name, group in bench.GROUPS.items()}
    known = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    for path in paths:
        known = added(known, json.loads(Path(path).read_text()))
    KNOWN.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", "utf-8")
    PAGE.write_text(MEASURED.sub(lambda found: found[1] + table(known, about) + found[2], PAGE.read_text("utf-8")), "utf-8")
    draw(known, about, PAGE.with_suffix(".svg"))
    print(PAGE, PAGE.with_suffix(".svg"))


if __name__ == "__main__":
    main(sys.argv[1:])
