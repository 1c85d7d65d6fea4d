"""The path of named scopes of an operation, taken apart: `jit(step)/transpose(jvp(layer))/dot_general`."""
import re

FORWARD, BACKWARD, RECOMPUTED, OTHER = "forward", "backward", "recomputed", "other"
PASSES = (FORWARD, BACKWARD, RECOMPUTED, OTHER)
_WRAPPED = re.compile(r"(\w+)\((.*)\)")
# what primitives add to the paths of those in them
_MADE = {"while", "body", "cond", "scan", "closed_call", "checkpoint", "rematted_computation", "branch",
         "jit", "pjit", "shard_map", "custom_jvp_call", "custom_vjp_call", "core_call"}


def scope_of(path):
    """(the scopes that the user named, outermost first, which pass of differentiation it is in) of a path.

    >>> scope_of("jit(step)/transpose(jvp(layer))/inner/dot_general")
    (('layer', 'inner'), 'backward')
    """
    parts = _split((path or "").partition(";")[0])      # of operations that XLA has made one, the first
    names, passed = [], OTHER
    for part in parts[:-1]:
        wrappers, name = _unwrapped(part)
        if part == "rematted_computation":
            passed = RECOMPUTED
        elif "transpose" in wrappers:
            passed = BACKWARD
        elif "jvp" in wrappers and passed == OTHER:
            passed = FORWARD
        if name and name not in _MADE and "jit" not in wrappers and not re.fullmatch(r"branch_\d+\w*", name):
            names.append(name)
    return tuple(names), passed


def _split(path):
    """The parts between slashes that are in no parentheses."""
    parts, depth, begin = [], 0, 0
    for i, letter in enumerate(path + "/"):
        depth += (letter == "(") - (letter == ")")
        if letter == "/" and depth == 0:
            parts.append(path[begin:i])
            begin = i + 1
    return parts


def _unwrapped(part):
    """(the transformations around a name, the name): `transpose(jvp(layer))`."""
    wrappers = []
    while found := _WRAPPED.fullmatch(part):
        wrappers.append(found[1])
        part = found[2]
    return wrappers, part
