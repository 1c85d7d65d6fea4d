"""How often a `while` of an HLO module runs: its counter's arithmetic, done on integers.

A counter is followed where it starts at a constant and each round adds the same to it.
"""
import operator

_BINARY = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "maximum": max,
           "minimum": min}
_COMPARE = {"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "EQ": operator.eq,
            "NE": operator.ne}
_SAME = ("copy", "bitcast", "convert", "reshape", "optimization-barrier", "copy-done")
_LONGEST = 1 << 40


def trip_count(module, loop):
    """The count, or None where it depends on values."""
    body, condition = loop.called("body"), loop.called("condition")
    if body not in module.computations or condition not in module.computations:
        return None
    start = _value(module, loop.computation, loop.operands[0], ())
    if not isinstance(start, list):
        return None

    def step(state):
        return _value(module, body, module.root(body).name, (state,))

    def goes_on(round):
        state = [a if a is None or d is None else a + round * d for a, d in zip(start, steps)]
        return _value(module, condition, module.root(condition).name, (state,))
    first = step(start)
    second = step(first) if isinstance(first, list) else None
    if not isinstance(second, list):
        return None
    steps = [b - a if _is_number(a) and _is_number(b) and _is_number(c) and b - a == c - b else None
             for a, b, c in zip(start, first, second)]
    start = [a if d is not None else None for a, d in zip(start, steps)]
    low, high = 0, 1
    if goes_on(0) is None:
        return None
    if not goes_on(0):
        return 0
    while goes_on(high):
        low, high = high, 2 * high
        if high > _LONGEST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if goes_on(middle) else (low, middle)
    return high


def _is_number(x):
    return isinstance(x, int)


def _value(module, computation, name, arguments):
    """The integer that an instruction gives, a list for a tuple, None for what is not known."""
    lines, known = module.computations[computation], {}

    def of(name):
        if name not in known:
            known[name] = None      # what is not finished is not known
            line = lines.get(name)
            known[name] = compute(line) if line else None
        return known[name]

    def compute(line):
        kind = line.opcode
        if kind == "constant":
            text = line.operands[0] if line.operands else ""
            return int(text) if text.lstrip("-").isdigit() and line.shape[0] in "su" else None
        if kind == "parameter":
            number = int(line.operands[0])
            return arguments[number] if number < len(arguments) else None
        if kind == "tuple":
            return [of(x) for x in line.operands]
        if kind in ("fusion", "call"):
            inner = line.called("calls") or line.called("to_apply")
            if inner not in module.computations:
                return None
            return _value(module, inner, module.root(inner).name, [of(x) for x in line.operands])
        if kind == "get-tuple-element":
            whole, index = of(line.operands[0]), int(line.attribute("index"))
            return whole[index] if isinstance(whole, list) else None
        if kind in _SAME:
            return of(line.operands[0])
        if kind in _BINARY or kind == "compare":
            pair = [of(x) for x in line.operands]
            if not all(map(_is_number, pair)):
                return None
            return (_COMPARE[line.attribute("direction")] if kind == "compare" else _BINARY[kind])(*pair)
        return None
    return of(name)
