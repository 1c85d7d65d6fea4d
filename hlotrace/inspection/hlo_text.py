"""The text of compiled programs: the instructions of HLO modules, their shapes and lines.

Any backend's text will do, of any jaxlib that we allow; what a line does not tell is None.
"""
import functools
import math
import re
from typing import NamedTuple


class Line(NamedTuple):
    """One instruction, as its line has it."""
    computation: str
    name: str
    shape: str
    opcode: str
    rest: str               # operands and attributes


def modules(text, relevant=None):
    """The Modules of a text, which may hold several; `relevant` as for Module."""
    return [Module(part, relevant) for part in re.split(r"^(?=HloModule\b)", text, flags=re.M)
            if part.startswith("HloModule") or "ENTRY" in part or " = " in part]


def instruction_sources(text):
    """{instruction: (`train.py:12` or None, its path of named scopes or None)} of an HLO module's text."""
    module = Module(text)
    return {line.name: module.source(line) for line in module.lines}


class Module:
    """One HLO module: its instructions, who calls which computation, and the tables of source lines.

    Args:
        relevant: a pattern; instructions on lines where it is not found are left out.
    """

    def __init__(self, text, relevant=None):
        name, entry = (re.search(p, text, re.M) for p in (r"^HloModule ([^\s,]+)", r"^ENTRY %?([^\s(]+)"))
        self.name, self.entry = name and name[1], entry and entry[1]
        self.lines = list(_instructions(text, relevant or re.compile(" = ")))
        self.frames = _frames(text.partition("\n%")[0])
        self.callers = {}       # computation -> the lines that call it
        self.done = {}          # (computation, name of a start) -> shape of what is done
        for line in self.lines:
            for _, callee in callees(line):
                self.callers.setdefault(callee, []).append(line)
            if line.opcode.endswith("-done"):
                operand = re.search(r"(?:^|\s)%?([^\s,()\[\]{}%]+)\)", line.rest)      # maybe after its type
                if operand:
                    self.done[line.computation, operand[1]] = line.shape

    def loops(self, computation):
        """The trip counts of the loops around a computation, outermost first, None for one that is not known.

        Where it is called from several places, those of the one that is deepest in loops.
        """
        chains = [self.loops(caller.computation) + ([trip_count(caller)] if caller.opcode == "while" else [])
                  for caller in self.callers.get(computation, ())]
        return max(chains, key=len, default=[])

    def source(self, line):
        """(`train.py:12`, path of named scopes and operation) of a line, or else of the fusion or the call
        that it is in; None for what is not known."""
        location, op = self.location(line)
        if location is None:
            return None, op
        file = re.split(r"[/\\]", location[0])[-1]
        return f"{file}:{location[1]}", op

    def location(self, line):
        """The same with ("path/train.py", 12) for the line."""
        metadata = METADATA.search(line.rest)
        op = _attribute(metadata[1], "op_name") if metadata else None
        found = self._location(metadata[1]) if metadata else None
        if op or found:
            return found, op
        outer = [caller for caller in self.callers.get(line.computation, ()) if caller.opcode != "while"]
        return self.location(outer[0]) if outer else (None, None)

    def _location(self, metadata):
        file, number = _attribute(metadata, "source_file"), re.search(r"source_line=(\d+)", metadata)
        if file and number:
            return file, int(number[1])
        frame = re.search(r"stack_frame_id=(\d+)", metadata)
        return self.frames.get(int(frame[1])) if frame else None


METADATA = re.compile(r'metadata=\{((?:[^{}"]|"(?:[^"\\]|\\.)*")*)\}')
_HEADER = re.compile(r"(?:ENTRY )?%?([^\s(=]+) \(.*\{$")
_INSTRUCTION = re.compile(r"\s+(?:ROOT )?%?([^\s=]+) = ")
_OPCODE = re.compile(r"\s*([a-z][\w-]*)\(")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def _instructions(text, relevant):
    """The instructions on lines where `relevant` is found."""
    computation = ""
    for text_line in text.split("\n"):
        header = _HEADER.match(text_line)
        if header:
            computation = header[1]
            continue
        start = relevant.search(text_line) and _INSTRUCTION.match(text_line)
        if not start:
            continue
        end = _shape_end(text_line, start.end())
        opcode = _OPCODE.match(text_line, end)
        if opcode:
            yield Line(computation, start[1], text_line[start.end():end], opcode[1],
                        text_line[opcode.end():])


def _shape_end(text, start):
    """Where the shape that begins at `start` ends: a space outside of brackets."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if text[i] == " " and depth == 0:
            return i
    return len(text)


def callees(line):
    """(as what, `body`, `calls`, `to_apply`, ..., the name of a computation) of those that a line calls."""
    for found in re.finditer(r"\b(body|condition|calls|to_apply|\w+_computations?)="
                             r"(?:\{([^{}]*)\}|%?([^\s,{}]+))",
                             _STRING.sub('""', line.rest)):
        yield from ((found[1], name.strip().lstrip("%")) for name in (found[2] or found[3] or "").split(","))


def trip_count(line):
    """How often a while loop runs, where XLA knows."""
    found = re.search(r'"known_trip_count":\s*\{\s*"n":\s*"?(\d+)', line.rest)
    return int(found[1]) if found else None


def _attribute(metadata, name):
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


def _frames(head):
    """Where each stack frame points, ("path/file.py", 12) by its number, from the tables at the head of a
    module."""
    tables = {}
    for title, body in re.findall(r"^(\w+)\n((?:\d+ .*\n?)+)", head, flags=re.M):
        tables[title] = {int(n): entry for n, entry in re.findall(r"^(\d+) (.*)$", body, flags=re.M)}
    frames = {}
    for number, frame in tables.get("StackFrames", {}).items():
        location = tables.get("FileLocations", {}).get(_number(frame, "file_location_id"), "")
        file = tables.get("FileNames", {}).get(_number(location, "file_name_id"))
        line = _number(location, "line")
        if file and line:
            frames[number] = _unescaped(file), line
    return frames


def _number(entry, name):
    found = re.search(rf"\b{name}=(\d+)", entry)
    return int(found[1]) if found else None


@functools.lru_cache(4096)      # a program has few types
def plain_shape(shape):
    """Without layouts and comments."""
    return re.sub(r"\{[^{}]*\}|/\*.*?\*/", "", shape).strip()


def shape_parts(shape):
    """The elements of a tuple's shape; of another shape, itself."""
    shape = plain_shape(shape)
    if not shape.startswith("("):
        return [shape]
    parts, depth, begin = [], 0, 1
    for i, letter in enumerate(shape):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 1 or i == len(shape) - 1:
            parts.append(shape[begin:i].strip())
            begin = i + 1
    return [part for part in parts if part]


@functools.lru_cache(4096)      # a program has few types
def shape_bytes(shape):
    """How many bytes the arrays of a shape hold, 0 for open sizes; what is less than a byte is packed."""
    total = 0
    if "?" in shape:
        return total
    for dtype, dims in re.findall(r"([a-z]\w*)\[([^\]]*)\]", plain_shape(shape)):
        digits = re.search(r"\d+", "8" if dtype in ("pred", "bool") else dtype)
        bits = int(digits[0]) if digits else 0      # a token holds none
        total += -(-bits * math.prod(map(int, re.findall(r"\d+", dims))) // 8)
    return total
