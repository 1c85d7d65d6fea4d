"""The text of an optimized HLO module, read: instructions by computation, shapes, sources, loops.

Any backend's text will do, of any jaxlib that we allow; what a line does not tell is None.
"""
import dataclasses
import functools
import math
import re
from typing import NamedTuple

from .hlo_loops import trip_count


@dataclasses.dataclass(eq=False)
class Instruction:
    """One line of a computation."""
    computation: str
    name: str
    shape: str              # with layouts
    opcode: str
    rest: str               # operands and attributes
    is_root: bool = False

    @functools.cached_property
    def operands(self):
        """The names of its operands, and for a constant or a parameter what is in its parentheses."""
        inside = self.rest[:closing(self.rest)]
        return re.findall(r"%([^\s,(){}]+)", inside) or [part.split(" ")[-1] for part in split(inside)]

    def attribute(self, name):
        """`dimensions={0,1}` gives "0,1", `index=2` gives "2"; None where there is none."""
        found = re.search(rf"\b{name}=(?:\{{([^{{}}]*)\}}|([^\s,{{}}]+))", self.rest)
        return found and (found[2] or found[1] or "")

    def numbers(self, name):
        """The integers of an attribute."""
        return integers(self.attribute(name) or "")

    def called(self, name):
        """The computation of an attribute, such as `body`; "" where there is none."""
        return (self.attribute(name) or "").lstrip("%")

    @property
    def branches(self):
        """The computations of a conditional."""
        return [name for how, name in callees(self) if how.endswith(("_computation", "_computations"))]


class Module:
    """One HLO module.

    Attributes:
        name: that of the module, or None.
        lines: its instructions, in the order of the text.
        callers: for each computation, the instructions that call it.
        entry: the name of the computation that is the program, or None.
        calls: how often it runs in one run of the user's program, which may be several modules.
    """

    def __init__(self, text, calls=1):
        self.text, self.calls = text, calls
        name = re.search(r"^HloModule ([^\s,]+)", text, re.M)
        self.name = name and name[1]
        self.entry = None
        self.lines = list(self._lines(text))
        self.frames = _frames(text.partition("\n%")[0])
        self.callers = {}
        for line in self.lines:
            for _, callee in callees(line):
                self.callers.setdefault(callee, []).append(line)

    def _lines(self, text):
        computation = ""
        for line in text.split("\n"):
            header = _HEADER.match(line)
            if header:
                computation = header[2]
                if header[1]:
                    self.entry = computation
                continue
            start = _INSTRUCTION.match(line)
            if not start:
                continue
            end = _shape_end(line, start.end())
            opcode = _OPCODE.match(line, end)
            if opcode:
                yield Instruction(computation, start[2], line[start.end():end], opcode[1],
                                  line[opcode.end():], bool(start[1]))

    @functools.cached_property
    def computations(self):
        """{name: its instructions, a dict by their names, in order}."""
        found = {}
        for line in self.lines:
            found.setdefault(line.computation, {})[line.name] = line
        return found

    @functools.cached_property
    def users(self):
        """{(computation, name): the instructions that have it as an operand}."""
        found = {}
        for line in self.lines:
            for name in line.operands if line.opcode not in ("parameter", "constant") else ():
                found.setdefault((line.computation, name), []).append(line)
        return found

    def root(self, computation):
        """The instruction whose value is that of the computation."""
        lines = list(self.computations[computation].values())
        return next((line for line in lines if line.is_root), lines[-1])

    def trips(self, loop):
        """How often a `while` runs its body; None where that is not known."""
        found = re.search(r'"known_trip_count":\s*\{\s*"n":\s*"?(\d+)', loop.rest)
        return int(found[1]) if found else trip_count(self, loop)

    def loops(self, computation):
        """The trip counts of the loops around a computation, outermost first, None for one that is not known.

        Where it is called from several places, those of the one that is deepest in loops.
        """
        chains = [self.loops(caller.computation) + ([self.trips(caller)] if caller.opcode == "while" else [])
                  for caller in self.callers.get(computation, ())]
        return max(chains, key=len, default=[])

    def source(self, line):
        """(`train.py:12` or None, the path of named scopes and the operation or None) of an instruction, or
        else of the fusion or the call that it is in."""
        location, op = self.location(line)
        return location and f"{_base(location[0])}:{location[1]}", op

    def location(self, line):
        """The same with ("path/train.py", 12) for the line."""
        found = METADATA.search(line.rest)
        op = _quoted(found[1], "op_name") if found else None
        where = self._where(found[1]) if found else None
        if op or where:
            return where, op
        outer = [caller for caller in self.callers.get(line.computation, ()) if caller.opcode != "while"]
        return self.location(outer[0]) if outer else (None, None)

    def _where(self, metadata):
        file, number = _quoted(metadata, "source_file"), re.search(r"source_line=(\d+)", metadata)
        if file and number:     # "-" is the StableHLO text, where that says no line of the user's
            return None if file == "-" else (file, int(number[1]))
        frame = re.search(r"stack_frame_id=(\d+)", metadata)
        return self.frames.get(int(frame[1])) if frame else None


METADATA = re.compile(r'metadata=\{((?:[^{}"]|"(?:[^"\\]|\\.)*")*)\}')
_HEADER = re.compile(r"(ENTRY )?%?([^\s(=]+) \(.*\{$")
_INSTRUCTION = re.compile(r"\s+(ROOT )?%?([^\s=]+) = ")
_OPCODE = re.compile(r"\s*([a-z][\w-]*)\(")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def modules(text):
    """The Modules of a text, which may hold several."""
    parts = re.split(r"^(?=HloModule\b)", text, flags=re.M)
    calls = [re.search(r"^// .*: runs (\d+) times\s*$", part, flags=re.M) for part in parts]
    return [Module(part, int(found[1]) if found else 1) for found, part in zip([None, *calls], parts)
            if part.startswith("HloModule") or " = " in part]


def instruction_sources(text):
    """{instruction: (`train.py:12` or None, its path of named scopes or None)} of an HLO module's text."""
    module = Module(text)
    return {line.name: module.source(line) for line in module.lines}


def _shape_end(text, start):
    """Where the shape that begins at `start` ends: a space outside of brackets."""
    end = text.find(" ", start)
    if text[start] != "(" and end >= 0:
        return end
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if text[i] == " " and depth == 0:
            return i
    return len(text)


def closing(text):
    """Where the parenthesis that is open before `text` closes."""
    depth = 1
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"|[()]', text):
        depth += (found[0] == "(") - (found[0] == ")")
        if depth == 0:
            return found.start()
    return len(text)


def callees(line):
    """(as what, `body`, `calls`, `to_apply`, ..., the name) of the computations that an instruction calls."""
    if "=" not in line.rest:
        return
    for found in re.finditer(r"\b(body|condition|calls|to_apply|\w+_computations?)="
                             r"(?:\{([^{}]*)\}|%?([^\s,{}]+))",
                             _STRING.sub('""', line.rest)):
        yield from ((found[1], name.strip().lstrip("%")) for name in (found[2] or found[3] or "").split(","))


def through(lines, line, opcodes=("bitcast", "convert", "copy")):
    """What a line of a computation, {name: line}, is made of behind operations that only carry it on."""
    while line is not None and line.opcode in opcodes and line.operands[0] in lines:
        line = lines[line.operands[0]]
    return line


def integers(text):
    return [int(n) for n in re.findall(r"\d+", text)]


def _quoted(metadata, name):
    """A quoted attribute."""
    found = re.search(rf'\b{name}=("(?:[^"\\]|\\.)*")', metadata)
    return _unescaped(found[1]) if found else None


def _unescaped(quoted):
    """The text in quotes; C's escapes represent its UTF-8 bytes: `\\303\\251`."""
    def byte(found):
        digits, letter = found.groups()
        if digits:
            return bytes([int(digits, 8)])
        return {b"n": b"\n", b"t": b"\t", b"r": b"\r"}.get(letter, letter)
    raw = quoted.strip().removeprefix('"').removesuffix('"').encode()
    return re.sub(rb"\\(?:([0-3][0-7]{2})|(.))", byte, raw).decode(errors="replace")


def _base(path):
    return re.split(r"[/\\]", path)[-1]


def _frames(head):
    """Where each stack frame points, {number: ("path/file.py", 12)}, from the tables at a module's head."""
    tables = {}
    for title, body in re.findall(r"^(\w+)\n((?:\d+ .*\n?)+)", head, flags=re.M):
        tables[title] = {int(n): entry for n, entry in re.findall(r"^(\d+) (.*)$", body, flags=re.M)}
    frames = {}
    for number, frame in tables.get("StackFrames", {}).items():
        location = tables.get("FileLocations", {}).get(_number(frame, "file_location_id"), "")
        file = tables.get("FileNames", {}).get(_number(location, "file_name_id"))
        line = _number(location, "line")
        if file and file != '"-"' and line:       # `-` is no file
            frames[number] = _unescaped(file), line
    return frames


def _number(entry, name):
    found = re.search(rf"\b{name}=(\d+)", entry)
    return int(found[1]) if found else None


# Shapes.

class Array(NamedTuple):
    """One array of a shape: `bf16[8,128]{1,0:T(8,128)(2,1)S(1)}`."""
    dtype: str
    dims: tuple
    layout: str

    @property
    def size(self):
        return math.prod(self.dims)

    @property
    def bytes(self):
        """Without padding; elements of less than a byte are packed, a token holds none."""
        digits = re.search(r"\d+", "8" if self.dtype in ("pred", "bool") else self.dtype)
        return -(-(int(digits[0]) if digits else 0) * self.size // 8)

    @property
    def padded_bytes(self):
        """What it takes of memory: its last dimensions, as the layout orders them, are filled up to tiles."""
        order, _, tiles = self.layout.partition(":")
        tile = re.search(r"T\(([\d,]*)\)", tiles)
        if not tile or not self.size:
            return self.bytes
        dims = [self.dims[i] for i in reversed(integers(order))]
        tile = integers(tile[1])
        dims = [1] * (len(tile) - len(dims)) + dims
        filled = [*dims[:len(dims) - len(tile)],
                  *(-(-n // t) * t for n, t in zip(dims[len(dims) - len(tile):], tile))]
        return Array(self.dtype, tuple(filled), "").bytes

    @property
    def space(self):
        """The number of the memory that holds it; 0 is the chip's main memory."""
        found = re.search(r"S\((\d+)\)", self.layout)
        return int(found[1]) if found else 0


_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{([^{}]*)\})?")


def arrays(shape):
    """The Arrays of a shape, those of a tuple in order."""
    if "/*" in shape:
        shape = re.sub(r"/\*.*?\*/", "", shape)
    return [Array(dtype, tuple(map(int, re.findall(r"\d+", dims))), layout or "")
            for dtype, dims, layout in _ARRAY.findall(shape)]


@functools.lru_cache(4096)      # a program has few types
def shape_bytes(shape):
    """How many bytes the arrays of a shape hold, 0 for open sizes."""
    return 0 if "?" in shape else sum([array.bytes for array in arrays(shape)])


@functools.lru_cache(4096)
def without_layouts(shape):
    """`f32[8]{0}` as `f32[8]`; without comments."""
    return re.sub(r"\{[^{}]*\}|/\*.*?\*/", "", shape).strip()


def tuple_parts(shape):
    """The elements of a tuple's shape, without layouts; of another shape, itself."""
    shape = without_layouts(shape)
    if not shape.startswith("("):
        return [shape]
    return split(shape[1:-1])


def split(text):
    """The parts between commas that are in no brackets."""
    parts, depth, begin = [], 0, 0
    for i, letter in enumerate(text + ","):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    return [part for part in parts if part]
