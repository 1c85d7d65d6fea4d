"""StableHLO as rows, as it is or after Shardy's propagation."""
import functools
import re

from .. import costs, propagated_text
from ..hlo_text import arrays, shape_bytes
from .document import Row

_REGIONS = {"stablehlo.while": ("condition", "body"), "stablehlo.if": ("true", "false")}
_HOLDS = {"stablehlo.while": "loop", "func.func": "function", "stablehlo.case": "branch",
          "stablehlo.if": "branch"}
_VALUE = re.compile(r"%[\w.$-]+")
_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')
_NAME = re.compile(r"@\"?([\w.$-]+)")      # of a function
_PATH = re.compile(r'loc\("((?:[^"\\]|\\.)*)"\(')


def stablehlo_rows(text, propagate=False):
    """The Rows of a StableHLO text; with `propagate`, after Shardy's propagation.  ValueError for a text that
    does not parse, with its line and column, or that Shardy rejects."""
    lines, operations = propagated_text.annotated(text, propagate)
    rows, values = [], {}
    parents = []            # what holds the next operation: (its depth in the module, it, number of its row)
    region_of = {}          # number of the row of a holder -> the region that is being written
    trips = {}              # number of the row of a loop -> how often it runs
    for op in operations:
        del parents[_depth_of_parents(parents, op):]
        outer, holder = parents[-1][1:] if parents else (None, None)
        if op.name in ("builtin.module", "sdy.mesh") or outer is not None and op.line == outer.line:
            continue        # what is written in the line of what holds it is no row of its own
        depth = rows[holder].depth + 1 if holder is not None else 0
        if outer is not None and outer.name != "func.func":
            depth += _region(rows, op, outer, holder, depth, region_of)
        if op.name == "func.func":
            values = {}
        row = _row(op, lines[op.line - 1].strip(), depth)
        number = len(rows)
        _operands(row, number, values)
        row.flops, row.bytes = _cost(op, row)
        rows.append(row)
        trips[number] = op.trips
        if op.name == "func.func":
            _arguments(op, lines[op.line - 1], rows, values, depth + 1)
        parents.append((op.depth, op, number))
    _count_functions_and_loops(rows, trips)
    return rows


def _depth_of_parents(parents, op):
    n = len(parents)
    while n and parents[n - 1][0] >= op.depth:
        n -= 1
    return n


def _region(rows, op, outer, holder, depth, region_of):
    """1 where the operations of each region of `outer` are under a row of their own, written if it is not."""
    names = _REGIONS.get(outer.name)
    if names is None and outer.name != "stablehlo.case":
        return 0
    if region_of.get(holder) != op.region:
        region_of[holder] = op.region
        label = names[op.region] if names else f"branch {op.region}"
        rows.append(Row(depth, label, label, holds="block"))
    return 1


def _row(op, line, depth):
    types = list(map(short_type, op.types))
    path, file = _PATH.match(op.location), _FILE.search(op.location)
    row = Row(depth, op.name.removeprefix("stablehlo."), line, " ".join(types), _HOLDS.get(op.name, ""),
              size=sum(map(shape_bytes, types)), path=_unescaped(path[1]) if path else "",
              source=(_unescaped(file[1]), int(file[2])) if file and file[1] != "-" else None)
    if op.name != "func.func":
        row.sharding = "  ".join(op.notes)
    else:
        row.op, row.text = "function", line.rstrip(" {")
    return row


def _unescaped(text):
    return re.sub(rb"\\([0-9A-Fa-f]{2}|.)", lambda m: bytes([int(m[1], 16)]) if len(m[1]) == 2 else m[1],
                  text.encode()).decode(errors="replace")


@functools.lru_cache(4096)      # a program has few types
def short_type(text):
    """`f32[8,16]` of `tensor<8x16xf32>`; another type as it is."""
    found = re.fullmatch(r"tensor<((?:[\d?]+x)*)(.+?)(?:, .*)?>", text)
    if not found:
        return text
    dtype = found[2].replace("ui", "u").replace("complex<f32>", "c64").replace("complex<f64>", "c128")
    return f"{'bool' if dtype == 'i1' else dtype}[{','.join(found[1].split('x')[:-1])}]"


def _operands(row, number, values):
    """Sets the row's operands from the names in its line, and what its own names are from now on."""
    defined, equals, used = row.text.partition(" = ") if row.text.startswith("%") else ("", "", row.text)
    if row.op == "function":
        return
    initial = dict(re.findall(r"(%[\w.$-]+) = (%[\w.$-]+)", used))     # of a while loop's own names
    names = [name for name in _VALUE.findall(used) if name not in initial]
    row.operands = tuple(dict.fromkeys(values[name] for name in names if name in values))
    values.update({name: values[first] for name, first in initial.items() if first in values})
    for name in _VALUE.findall(defined) if equals else ():
        values[name] = number


def _arguments(op, line, rows, values, depth):
    """A row for each argument of a function."""
    notes = [note.partition("  ")[2] for note in op.notes]
    types = re.findall(r"(%arg\d+): (\S+?>)(?=[,) ])", line)
    for i, (name, type_) in enumerate(types):
        values[name] = len(rows)
        given = op.arguments[i] if i < len(op.arguments) else ""
        kind = short_type(type_)
        rows.append(Row(depth, "argument", f"{name}: {type_}", kind, size=shape_bytes(kind), argument=given,
                        sharding=notes[i] if i < len(notes) else ""))


def _cost(op, row):
    """(FLOPs, bytes) of an operation."""
    if row.holds or op.name.endswith("return"):
        return None, None
    operands = list(map(short_type, op.operands))
    return _flops(op, row, operands), row.size + sum(map(shape_bytes, operands))


def _flops(op, row, operands):
    shapes = [array.dims for type_ in (*operands, row.types) for array in arrays(type_)]
    if "?" in row.types or any("?" in type_ for type_ in operands):
        return 0                # of sizes that are not known
    size = sum(array.size for array in arrays(row.types))
    if costs.counted(op.name) != "product":
        return costs.elementwise(op.name, size, [sum(a.size for a in arrays(type_)) for type_ in operands])
    if op.name == "stablehlo.convolution":
        return costs.convolution(costs.stablehlo_window(row.text), *shapes, row.types)
    found = re.search(r"contracting_dims = \[([\d, ]*)\]", row.text)
    return costs.product(size, [shapes[0][int(n)] for n in re.findall(r"\d+", found[1])] if found else (),
                         row.types)


def _count_functions_and_loops(rows, trips):
    """Sets the FLOPs of rows that hold others: what is in them together, of branches that of the longest, of
    loops that of all rounds, where their number is known.  A call has the FLOPs of its function."""
    functions = {}
    inside = {}         # depth -> FLOPs of rows at that depth that have not met their holder
    for i in reversed(range(len(rows))):
        row = rows[i]
        if row.holds:
            counts = inside.pop(row.depth + 1, [0])
            row.flops = max(counts) if row.holds == "branch" else sum(counts)
        elif row.op in ("call", "func.call"):
            row.flops = functions.get(_NAME.search(row.text)[1])
        if row.op == "function":
            functions[_NAME.search(row.text)[1]] = row.flops
        if row.holds == "loop":
            row.note = "FLOPs of one round" if trips[i] is None else f"{trips[i]} times"
            row.flops *= 1 if trips[i] is None else trips[i]
        inside.setdefault(row.depth, []).append(row.flops or 0)
