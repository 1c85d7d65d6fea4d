"""Printed programs: `{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }`."""
import itertools
import string

import numpy as np

from .dtypes import short_name
from .jaxpr import Jaxpr, Literal


def _names():
    letters = string.ascii_lowercase
    for n in itertools.count(1):
        for combination in itertools.product(letters, repeat=n):
            yield "".join(combination)


class _Printer:
    def __init__(self):
        self.names = {}
        self.fresh = _names()

    def name(self, v):
        if type(v) is Literal:
            value = np.asarray(v.val)
            shown = str(value) if value.ndim == 0 else "[...]"
            return f"{shown}:{v.aval.short()}"
        if v not in self.names:
            self.names[v] = next(self.fresh)
        return self.names[v]

    def typed(self, v):
        return f"{self.name(v)}:{v.aval.short()}"

    def jaxpr(self, jaxpr, indent):
        consts = " ".join(self.typed(v) for v in jaxpr.constvars)
        inputs = " ".join(self.typed(v) for v in jaxpr.invars)
        pad = " " * (indent + 4)
        lines = [pad + self.eqn(e, indent + 4) for e in jaxpr.eqns]
        outs = ", ".join(self.name(v) for v in jaxpr.outvars) + ("," if len(jaxpr.outvars) == 1 else "")
        head = f"{{ lambda {consts}; {inputs}. let"
        if not lines:
            return f"{head}  in ({outs}) }}"
        body = "\n".join(lines)
        return f"{head}\n{body}\n{' ' * (indent + 2)}in ({outs}) }}"

    def eqn(self, eqn, indent):
        outs = " ".join(self.typed(v) for v in eqn.outvars)
        operands = " ".join(self.name(v) for v in eqn.invars)
        params = [(k, v) for k, v in sorted(eqn.params.items()) if v is not None and v != ()]
        text = ""
        if params:
            nested = any(isinstance(v, Jaxpr) or isinstance(v, tuple) and v and isinstance(v[0], Jaxpr)
                         for _, v in params)
            pad = f"\n{' ' * (indent + 2)}" if nested else ""
            text = "[" + (pad or "") + (pad or " ").join(
                f"{k}={self.param(v, indent + 2)}" for k, v in params) + (f"\n{' ' * indent}" if nested else "") + "]"
        return f"{outs} = {eqn.primitive.name}{text} {operands}".rstrip()

    def param(self, value, indent):
        if isinstance(value, Jaxpr):
            return f"{value.name} " + self.jaxpr(value, indent)
        if isinstance(value, tuple) and value and isinstance(value[0], Jaxpr):
            inner = "\n".join(" " * (indent + 2) + self.jaxpr(j, indent + 2) for j in value)
            return f"(\n{inner}\n{' ' * indent})"
        if isinstance(value, np.dtype):
            return short_name(value)
        if callable(value) and hasattr(value, "__name__"):
            return value.__name__
        return str(value)


def format_jaxpr(jaxpr):
    """The text of a program; names are given in the order of appearance, so equal programs print equally."""
    return _Printer().jaxpr(jaxpr, 0)
