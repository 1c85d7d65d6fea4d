"""Draws docs/performance.svg: the ratios in the table of docs/performance.md, as spans on a logarithmic axis.

    python tools/performance.py

It needs matplotlib, of the extra `docs`.
"""
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"


def ratios(page):
    """[(what, {jaxlib: (the least ratio, the greatest)})] of the page's first table."""
    lines = re.search(r"^\| what \|.*?(?=^\s*$)", page, re.M | re.S)[0].splitlines()
    head, _, *rows = ([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines)
    found = []
    for what, *cells in rows:
        spans = {}
        for title, cell in zip(head[1:-1], cells):
            numbers = [float(n) for n in re.findall(r"\d+\.\d+", re.sub(r"\(.*?\)", "", cell))]
            if numbers:
                spans[title.removeprefix("jaxlib ")] = min(numbers), max(numbers)
        found.append((what.replace("`", ""), spans))
    return found


def draw(found, path):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "x"}     # the same numbers make the same file
    from matplotlib import pyplot
    versions = list(dict.fromkeys(version for _, spans in found for version in spans))
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.42 * len(found)), layout="constrained")
    axes.axvline(1, color="0.4", linewidth=1)
    for v, version in enumerate(versions):
        color, shift = f"C{v}", 0.16 * (2 * v - 1)
        for y, (_, spans) in enumerate(found):
            if version in spans:
                low, high = spans[version]
                axes.plot([low, high], [y + shift] * 2, color=color, linewidth=5, alpha=.6, solid_capstyle="round")
        axes.plot([], [], color=color, linewidth=5, alpha=.6, label=f"jaxlib {version}")
    axes.set_xscale("log")
    ticks = [.01, .02, .05, .1, .2, .5, 1, 2, 5]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(found)), [what if len(what) < 62 else f"{what[:60]}..." for what, _ in found], fontsize=8)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=.3)
    axes.set_xlabel("time of hlotrace / time of JAX: left of 1, hlotrace is faster")
    axes.legend(loc="lower left", fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    draw(ratios(PAGE.read_text("utf-8")), PAGE.with_suffix(".svg"))
    print(PAGE.with_suffix(".svg"))
