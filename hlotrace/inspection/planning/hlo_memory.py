"""The values that a compiled program holds when it holds the most, from its optimized and scheduled HLO.

Each value is alive from the instruction that makes it to the last that reads it; what XLA computes in place
(updates, loops' carries, bitcasts, results in the memory of donated arguments) is one value.  Arguments and
results are there all the time.
"""
import re
from dataclasses import dataclass

from ..hlo_text import arrays, split, through, without_layouts

_ALIASES = {"bitcast", "optimization-barrier", "opt-barrier", "copy-done", "add-dependency", "domain"}

# written in place of their first operand
_UPDATES = {"dynamic-update-slice", "scatter"}


@dataclass(eq=False)
class Value:
    """An array in memory.

    Attributes:
        bytes: what it takes of the chip's main memory; 0 for one in another memory.
        shape: without layout, `f32[8,128]`.
        kind: "argument", "result" or "temporary".
        name: the argument's name, otherwise the path of named scopes and the operation, or None.
        where: "train.py:12", or None.
    """
    bytes: int
    shape: str
    kind: str
    name: str | None
    where: str | None


@dataclass
class Peak:
    """Attributes: bytes: of all values together; values: the Values that are there, largest first."""
    bytes: int
    values: list


def peak(module):
    """The Peak of a Module of hlo_text; of nothing for a text without an entry."""
    return _Liveness(module).entry() if module.entry else Peak(0, [])


class _Liveness:
    def __init__(self, module):
        self.module = module

    def entry(self):
        module, lines = self.module, self.module.computations[self.module.entry]
        parameters = sorted((line for line in lines.values() if line.opcode == "parameter"),
                            key=lambda line: int(line.operands[0]))
        arguments = [self.made(line, "argument") for line in parameters]
        root = module.root(module.entry)
        results = self.made(root, "result")
        if isinstance(results, list):
            for number, argument in re.findall(r"\{(\d+)\}: \((\d+), \{\}", module.text.partition("\n")[0]):
                results[int(number)] = arguments[int(argument)]
        elif found := re.search(r"\{ *\{\}: \((\d+), \{\}", module.text.partition("\n")[0]):
            results = arguments[int(found[1])]
        held = list(dict.fromkeys([*_leaves(arguments), *_leaves(results)]))
        most, values = self.run(module.entry, arguments, results)
        values = sorted([*held, *values], key=lambda v: -v.bytes)
        return Peak(most + sum(v.bytes for v in held), [v for v in values if v.bytes])

    def made(self, line, kind="temporary"):
        """The Values, in lists as the tuples of its shape have it, of what an instruction makes."""
        where, name = self.module.source(line)
        if kind == "argument" and name is None:
            name = f"argument {line.operands[0]}"

        def build(text):
            if text.startswith("("):
                return [build(part) for part in split(text[1:-1])]
            array = arrays(text)
            size = array[0].padded_bytes if array and array[0].space == 0 else 0
            return Value(size, without_layouts(text), kind, name, where)
        return build(re.sub(r"/\*.*?\*/", "", line.shape).strip())

    def run(self, computation, arguments, results=None):
        """(the most bytes of temporaries at one time, these Values); `results` is where the result goes."""
        lines = list(self.module.computations[computation].values())
        given = self.destinations(computation, results)
        values, inner = {}, {}
        for line in lines:
            values[line.name] = self.value(line, values, arguments, given, inner)
        outside = {id(v) for v in [*_leaves(arguments), *_leaves(results)]}
        last = {}
        for i, line in enumerate(lines):
            for value in _leaves([values[line.name], *(values[o] for o in line.operands if o in values)]):
                last[id(value)] = i
        for value in _leaves(values[self.module.root(computation).name]):
            last[id(value)] = len(lines)
        alive, most, best = {}, 0, []
        for i, line in enumerate(lines):
            dying = [v for v in alive.values() if last[id(v)] <= i]
            for value in _leaves(values[line.name]):
                if id(value) in outside or id(value) in alive or not value.bytes:
                    continue
                if _by_element(line):      # it may take the memory of what it is the last to read
                    same = next((v for v in dying if v.bytes == value.bytes), None)
                    if same is not None:
                        dying.remove(same)
                        del alive[id(same)]
                alive[id(value)] = value
            more, within = inner.get(line.name, (0, []))
            size = sum(v.bytes for v in alive.values()) + more
            if size > most:
                most, best = size, [*alive.values(), *within]
            alive = {key: v for key, v in alive.items() if last[key] > i}
        return most, best

    def destinations(self, computation, results):
        """{instruction: the Values in which its own go}, for the instructions that make the result."""
        given, root = {}, self.module.root(computation)
        lines = self.module.computations[computation]

        def go(name, target):
            line = lines.get(name)
            if line is None:
                return
            if line.opcode == "tuple" and isinstance(target, list):
                for operand, part in zip(line.operands, target):
                    go(operand, part)
            elif line.opcode in _ALIASES and not isinstance(target, list):
                go(line.operands[0], target)
            elif line.opcode == "get-tuple-element":
                whole = given.setdefault(line.operands[0], {})
                if isinstance(whole, dict):
                    whole[int(line.attribute("index"))] = target
            elif line.opcode != "parameter":
                given[name] = target
        if results is not None:
            go(root.name, results)
        return given

    def value(self, line, values, arguments, given, inner):
        """The Values of an instruction: new ones, or those of what it is computed in place of."""
        kind, operands = line.opcode, [values.get(name) for name in line.operands]
        if kind == "parameter":
            return arguments[int(line.operands[0])]
        if kind == "tuple":
            return operands
        if kind == "get-tuple-element":
            return operands[0][int(line.attribute("index"))] if isinstance(operands[0], list) else operands[0]
        if kind in _ALIASES and kind != "copy-done":
            return operands[0]
        if kind == "while":
            state = operands[0]
            inner[line.name] = self.run(line.called("body"), [state], state)
            return state
        if kind in ("call", "conditional"):
            names, made = [line.called("to_apply")] if kind == "call" else line.branches, self.made(line)
            runs = [self.run(name, operands if kind == "call" else [operands[i + 1]], made)
                    for i, name in enumerate(names) if name in self.module.computations]
            inner[line.name] = max(runs, key=lambda run: run[0], default=(0, []))
            return made
        if kind.endswith("-done") and isinstance(operands[0], list):
            _, *done = operands[0]      # of a start's (operands, results, flags)
            return done[0] if done else self.made(line)
        if kind in _UPDATES and not isinstance(operands[0], list) and not line.shape.startswith("("):
            return operands[0]
        made = self.made(line)
        if kind.endswith("-start") and isinstance(made, list) and operands:     # its operands are in it
            made[0] = operands if isinstance(made[0], list) else operands[0]
            return made
        if kind == "fusion" and (updated := self.updated(line)):
            for i, operand in updated.items():
                if isinstance(made, list):
                    made[i] = operands[operand]
                else:
                    made = operands[operand]
            return made
        target = given.get(line.name)
        if isinstance(target, dict) and isinstance(made, list):
            return [target.get(i, value) for i, value in enumerate(made)]
        if target is None or isinstance(target, list) != isinstance(made, list) or isinstance(target, dict):
            return made
        return target

    def updated(self, line):
        """{result: operand} of the operands that a fusion updates in place."""
        name = line.called("calls")
        inner = self.module.computations.get(name)
        if not inner:
            return {}
        root = self.module.root(name)
        found = {}
        for i, result in enumerate(root.operands if root.opcode == "tuple" else [root.name]):
            at = through(inner, inner.get(result), ("bitcast", "convert"))
            if at is None or at.opcode not in _UPDATES:
                continue
            target = through(inner, inner.get(at.operands[0]), ("bitcast", "convert"))
            if target is not None and target.opcode == "parameter":
                found[i] = int(target.operands[0])
        return found


def _by_element(line):
    """Does it read the elements of an operand where it writes those of its result?"""
    return line.opcode == "fusion" and "kind=kLoop" in line.rest or line.opcode in (
        "add", "multiply", "subtract", "divide", "select", "exponential", "convert")


def _leaves(value):
    if isinstance(value, list):
        for part in value:
            yield from _leaves(part)
    elif value is not None:
        yield value
