"""Two programs as a page: two columns, what differs in colour, long stretches that do not folded away."""
import itertools
import os
from html import escape

from ...core.source_info import describe

_CONTEXT = 4        # equal lines that are shown around those that differ
_STYLE = """
:root { --back: #fff; --text: #1d2129; --dim: #6b7280; --line: #dfe2e7; --minus: #fde2e1; --plus: #dcf5e3 }
@media (prefers-color-scheme: dark) { :root {
  --back: #14161a; --text: #e3e6eb; --dim: #949dab; --line: #31363f; --minus: #4a2326; --plus: #1d4029 } }
body { margin: 0; background: var(--back); color: var(--text); font: 14px/1.45 system-ui, sans-serif }
h1 { font-size: 16px; margin: 12px 16px }
h1 small, summary { color: var(--dim); font-weight: normal }
table { border-collapse: collapse; width: 100%; table-layout: fixed }
th { text-align: left; border-bottom: 1px solid var(--line); padding: 4px 16px }
td { padding: 1px 16px; vertical-align: top; width: 50%; font: 12px/1.5 ui-monospace, Menlo, monospace;
  white-space: pre-wrap; overflow-wrap: anywhere }
td + td, th + th { border-left: 1px solid var(--line) }
.minus { background: var(--minus) } .plus { background: var(--plus) }
td small { color: var(--dim); margin-left: 2em; font-family: inherit }
summary { padding: 3px 16px; cursor: pointer; border: solid var(--line); border-width: 1px 0 }
"""


def diff_page(titles, changes, rename=lambda place: place):
    """One HTML page that needs nothing else.

    Args:
        titles: what the first and the second program are called.
        changes: the Changes of `matching.changes`.
        rename: of a line of a file as it is shown.
    """
    rows = list(_rows(changes, rename))
    count = sum(left != right for left, right in rows)
    parts = [f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(' and '.join(titles))}</title>"
             f"<style>{_STYLE}</style><h1>{escape(titles[0])} and {escape(titles[1])} "
             f"<small>{count or 'no'} line{'s' * (count != 1)} of {len(rows)} differ"
             f"{'s' * (count == 1)}</small></h1><table><tr>{''.join(f'<th>{escape(t)}</th>' for t in titles)}"
             "</tr></table>"]
    for same, group in itertools.groupby(rows, lambda row: row[0] == row[1]):
        lines = list(group)
        if not same or len(lines) <= 2 * _CONTEXT + 1:
            parts.append(_table(lines))
            continue
        parts += [_table(lines[:_CONTEXT]),
                  f"<details><summary>{len(lines) - 2 * _CONTEXT} lines that are the same</summary>"
                  f"{_table(lines[_CONTEXT:-_CONTEXT])}</details>", _table(lines[-_CONTEXT:])]
    return "".join([*parts, "</html>"])


def _rows(changes, rename):
    """Pairs (text and line of the first or None, the same of the second); the same where they agree."""
    left, right = [], []        # lines that differ, which are written beside each other
    for change in changes:
        if change.mark == " " or change.mark == "-" and right:
            yield from itertools.zip_longest(left, right)
            left, right = [], []
        line = change.text, rename(describe(change.source)) if change.source else ""
        if change.mark == " ":
            yield line, line
        else:
            (left if change.mark == "-" else right).append(line)
    yield from itertools.zip_longest(left, right)


def _table(rows):
    return "<table>" + "".join(
        "<tr>" + _cell(left, "minus" if left != right else "")
        + _cell(right, "plus" if left != right else "") + "</tr>" for left, right in rows) + "</table>"


def _cell(line, kind):
    if line is None:
        return "<td></td>"
    text, place = line
    shown = f"<small>{escape(os.path.basename(place))}</small>" if place and kind else ""
    return f"<td class='{kind}'>{escape(text)}{shown}</td>"
