"""A jaxpr as rows."""
import math

from ...core.avals import ShapedArray
from ...core.dtypes import short_name
from ...core.jaxpr import Literal, Printer, sub_jaxprs
from ...core.source_info import position
from ...primitives.arrays.contract import dot_general_p
from ...primitives.arrays.conv import conv_general_dilated_p
from ...primitives.programs.cond_while import cond_p, while_p
from ...primitives.programs.scan import scan_p
from .. import costs
from ..hlo_text import shape_bytes
from .document import Row

_HOLDS = {scan_p: "loop", while_p: "loop"}


def jaxpr_rows(jaxpr):
    """The Rows of a Jaxpr; a program that several equations hold is written out at the first of them."""
    return _Writer(jaxpr).rows


class _Writer:
    def __init__(self, jaxpr):
        self.rows, self.printer = [], Printer()
        self.places = {None: None}      # of sources
        self.written = {}       # a program inside -> the row of the equation that holds it, its FLOPs
        env = {}
        names = jaxpr.arg_names or [f"argument {i}" for i in range(len(jaxpr.invars))]
        for v in jaxpr.constvars:
            self.argument(v, "a constant of the program", env)
        for v, name in zip(jaxpr.invars, names):
            self.argument(v, name, env)
        self.equations(jaxpr, 0, env, f"jit({jaxpr.name})")
        self.returned(jaxpr, 0, env)

    def argument(self, v, name, env):
        env[v] = len(self.rows)
        self.rows.append(Row(0, "argument", self.printer.typed(v), v.aval.short(), argument=name,
                             size=shape_bytes(_plain(v)), sharding=_sharding([v])))

    def returned(self, jaxpr, depth, env):
        text = f"return {', '.join(map(self.printer.name, jaxpr.outvars))}"
        self.rows.append(Row(depth, "return", text, operands=_known(jaxpr.outvars, env)))

    def equations(self, jaxpr, depth, env, stack):
        """Writes the equations; returns their FLOPs together."""
        total = 0
        for eqn in jaxpr.eqns:
            total += self.equation(eqn, depth, env, stack)
        return total

    def equation(self, eqn, depth, env, stack):
        result, operands = " ".join(map(_plain, eqn.outvars)), list(map(_plain, eqn.invars))
        path = "/".join(filter(None, (stack, eqn.name_stack, eqn.primitive.name)))
        if eqn.source not in self.places:
            self.places[eqn.source] = position(eqn.source)[:2]
        row = Row(depth, eqn.primitive.name, self.printer.head(eqn),
                  " ".join(v.aval.short() for v in eqn.outvars), sharding=_sharding(eqn.outvars),
                  size=shape_bytes(result), source=self.places[eqn.source], path=path,
                  operands=_known(eqn.invars, env),
                  note=", ".join(sorted({type(e).__name__ for e in eqn.effects})))
        row.bytes = row.size + sum(map(shape_bytes, operands))
        number = len(self.rows)
        self.rows.append(row)
        programs = list(sub_jaxprs(eqn.params))
        if programs:
            row.holds = _HOLDS.get(eqn.primitive, "branch" if eqn.primitive is cond_p else "function")
            row.flops = self.held(eqn, programs, number, env, stack)
            length = eqn.params.get("length") if eqn.primitive is scan_p else None
            if length is not None:
                row.flops *= length
                row.note = f"{length} times"
            elif eqn.primitive is while_p:
                row.note = "FLOPs of one round"
        else:
            row.flops = _flops(eqn)
        env.update(dict.fromkeys(eqn.outvars, number))
        return row.flops

    def held(self, eqn, programs, number, env, stack):
        """Writes the programs that an equation holds; the FLOPs of all, of the longest of branches."""
        row, counts = self.rows[number], []
        labels = [name for name, value in eqn.params.items() for _ in sub_jaxprs({name: value})]
        for i, (jaxpr, label) in enumerate(zip(programs, labels)):
            first, count = self.written.get(jaxpr, (None, 0))
            if first is not None:
                row.note = f"the program of row {first + 1}"
                counts.append(count)
                continue
            depth = row.depth + 1
            if len(programs) > 1:
                label = f"branch {i}" if eqn.primitive is cond_p else label.removesuffix("_jaxpr")
                self.rows.append(Row(depth, label, label, holds="block", source=row.source))
                depth += 1
            list(map(self.printer.name, jaxpr.invars))      # named first, as in the program's text
            inner = dict(env)
            if len(eqn.invars) - len(jaxpr.invars) == (eqn.primitive is cond_p):
                inner.update({v: env[x] for v, x in zip(reversed(jaxpr.invars), reversed(eqn.invars))
                              if type(x) is not Literal and x in env})
            inside = stack if row.holds != "function" else jaxpr.name
            counts.append(self.equations(jaxpr, depth, inner, inside))
            self.returned(jaxpr, depth, inner)
            self.written[jaxpr] = number, counts[-1]
        return max(counts) if eqn.primitive is cond_p else sum(counts)


def _known(values, env):
    return tuple(dict.fromkeys(env[v] for v in values if type(v) is not Literal and v in env))


def _plain(v):
    """The type without what says more than dtype and shape, `f32[?,3]` where a size is not known; "" of what
    is no array."""
    if not isinstance(v.aval, ShapedArray):
        return ""
    return f"{short_name(v.aval.dtype)}[{','.join(str(d) if type(d) is int else '?' for d in v.aval.shape)}]"


def _sharding(values):
    shardings = (getattr(v.aval, "explicit", None) for v in values)
    return " ".join(str(sharding.spec) for sharding in shardings if sharding is not None)


def _flops(eqn):
    shapes = [v.aval.shape if isinstance(v.aval, ShapedArray) else (0,) for v in (*eqn.invars, *eqn.outvars)]
    if any(type(n) is not int for shape in shapes for n in shape):
        return 0                # of sizes that are not known
    operands, results = shapes[:len(eqn.invars)], shapes[len(eqn.invars):]
    size, p = sum(map(math.prod, results)), eqn.params
    if costs.counted(eqn.primitive.name) != "product":
        return costs.elementwise(eqn.primitive.name, size, list(map(math.prod, operands)))
    dtype = short_name(eqn.outvars[0].aval.dtype)
    if eqn.primitive is not conv_general_dilated_p:
        summed = p["dimension_numbers"][0][0] if eqn.primitive is dot_general_p else (1,)
        return costs.product(size, [operands[0][i] for i in summed], dtype)
    names = [_letters(spec, ends) for spec, ends in zip(p["dimension_numbers"], ("bf", "oi", "bf"))]
    return costs.convolution(costs.Window(
        *names, p["window_strides"], [low for low, _ in p["padding"]], p["lhs_dilation"],
        p["rhs_dilation"]), *operands, *results, dtype)


def _letters(spec, ends):
    """`b01f` of (0, 3, 1, 2): where batch, features and each axis of space are."""
    letters = [*ends, *map(str, range(len(spec) - 2))]
    return "".join(letters[spec.index(i)] for i in range(len(spec)))


