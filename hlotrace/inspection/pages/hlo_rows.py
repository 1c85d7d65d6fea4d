"""Optimized HLO as rows: the entry computation, and under an instruction the computations that it runs."""
import re

from ..hlo_text import METADATA, callees, closing, modules, shape_bytes, without_layouts
from ..planning import hlo_costs
from .document import Row

_HOLDS = {"while": "loop", "conditional": "branch", "fusion": "fusion", "call": "function",
          "async-start": "function"}
_RUNS = ("body", "condition", "calls", "branch_computations", "true_computation", "false_computation")
_NAME = re.compile(r"%([\w.-]+)")
_SETTINGS = re.compile(r"(?:, )?backend_config=(?:\"(?:[^\"\\]|\\.)*\"|\{.*\})"
                       r"|(?:, )?frontend_attributes=\{[^{}]*\}")


def hlo_rows(text, collectives=(), profile=None):
    """The Rows of a text of HLO modules.

    Args:
        collectives: those of `communication`: what instructions of their names say of mesh axes.
        profile: a Profile of `timing`, for what instructions took.
    """
    axes = {c.name: f"over {', '.join(c.axes)}" for c in collectives if c.axes}
    rows, found = [], modules(text)
    times = {(op.module, op.name): op for op in profile.operations} if profile else {}
    calls = re.findall(r"^// .*: runs (\d+) times$", text, re.M)      # of a program in pieces
    if len(found) == 1 and not calls:
        _Writer(found[0], rows, axes, times).computation(found[0].entry, 0, ())
        return rows
    for i, module in enumerate(found):
        row = Row(0, "module", f"module {module.name}", holds="function")
        rows.append(row)
        row.flops = _Writer(module, rows, axes, times).computation(module.entry, 1, ())
        if len(calls) == len(found):
            row.note, row.flops = f"{calls[i]} times", row.flops * int(calls[i])
    return rows


class _Writer:
    def __init__(self, module, rows, axes, times):
        self.module, self.rows, self.axes, self.times = module, rows, axes, times
        self.costs = hlo_costs.by_instruction(module)
        self.written = {}       # computation -> the row that it was written under

    def computation(self, name, depth, arguments):
        """Writes it; returns its FLOPs.  `arguments`: the rows of what its parameters are."""
        values = {}
        return sum([self.instruction(line, depth, arguments, values)
                    for line in self.module.computations.get(name, {}).values()])

    def instruction(self, line, depth, arguments, values):
        inputs, attributes = _inputs(line.rest)
        number, shape = len(self.rows), without_layouts(line.shape)
        source, path = self.module.location(line) if METADATA.search(line.rest) else (None, None)
        operands = [values[n] for n in _NAME.findall(inputs) if n in values]
        row = Row(depth, line.opcode, f"%{line.name} = {shape} {line.opcode}({inputs}){attributes}", shape,
                  size=shape_bytes(shape), source=source, path=path or "",
                  note=self.axes.get(line.name, "") or _memory(line.shape),
                  operands=tuple(dict.fromkeys(operands)))
        if timed := self.times.get((self.module.name, line.name)):
            row.seconds, row.source, row.path = timed.seconds, source or timed.source, path or timed.path
        values[line.name] = number
        if line.opcode == "parameter":
            self.parameter(row, int(inputs or 0), arguments, path)
        cost = self.costs[line.name]
        row.flops, row.bytes = cost.flops + cost.elementwise, cost.bytes or None
        self.rows.append(row)
        held = [(how, name) for how, name in callees(line)
                if how in _RUNS or how == "to_apply" and line.opcode == "call"]
        if held:
            row.holds = _HOLDS.get(line.opcode, "function")
            self.held(line, held, number, operands)
        return row.flops

    def parameter(self, row, position, arguments, path):
        if position < len(arguments):
            row.operands = (arguments[position],)
        elif not arguments:
            row.op, row.argument, row.path = "argument", path or "", ""

    def held(self, line, held, number, operands):
        """Writes the computations that an instruction runs."""
        row = self.rows[number]
        for i, (how, name) in enumerate(held):
            if name in self.written:
                row.note = f"the computation of row {self.written[name] + 1}"
                continue
            depth = row.depth + 1
            if len(held) > 1:
                label = how if how in ("body", "condition") else f"branch {i}"
                self.rows.append(Row(depth, label, label, holds="block"))
                depth += 1
            block = len(self.rows) - 1
            first = operands[i + 1:i + 2] if row.holds == "branch" else operands
            flops = self.computation(name, depth, first)
            self.written[name] = number
            if len(held) > 1:
                self.rows[block].flops = flops
        if row.holds == "loop":
            rounds = self.module.trips(line)
            row.note = f"{rounds} times" if rounds is not None else "FLOPs of one round"


def _memory(shape):
    """Where a TPU, whose layouts have tiles, keeps what is not in its main memory."""
    layouts = [layout for layout in re.findall(r"\{[^{}]*\}", shape) if "T(" in layout]
    return "in VMEM" if layouts and all("S(1)" in layout for layout in layouts) else ""


def _inputs(rest):
    """(the operands of an instruction, its attributes without metadata and settings of the backend)."""
    end = closing(rest)
    return rest[:end], _SETTINGS.sub("", METADATA.sub("", rest[end + 1:])).rstrip(", ")
