"""Programs with symbolic sizes as text.

Rules write what they would for sizes that are known: types with symbolic sizes in braces, `tensor<{b +
1}x3xf32>`, and attributes with sizes in them.  Here an operation whose attributes, or the shape of whose
result, are not known becomes the operation of StableHLO that takes them as operands, and in the end `{...}`
becomes `?`.  So a rule need not ask, and a program whose sizes are known never comes here.

Each function takes the values of the variables first, `%dim_b`; main computes them from the shapes of its
arguments, and asserts what `export` promises of these: the calling convention is JAX's.
"""
from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..core.avals import ShapedArray
from ..core.jaxpr import Jaxpr
from ..core.symbolic.dimension import Dimension, variables
from ..core.symbolic.scope import parse, solve, split
from .custom_calls import attribute, quoted
from .module import SYMBOLIC_SIZE, Context, Module, unknown_variable

INT = "tensor<i32>"
_SIZE = re.compile(r"\{([^{}]*)\}x|(\d+)x")


class DynamicContext(Context):
    """Where rules write operations on shapes that are not known."""
    __slots__ = ()
    module: DynamicModule

    def emit(self, text: str, n: int | None = None) -> Any:
        name = text.partition(" ")[0].partition("(")[0]
        if name == "call":
            text = self.module.with_sizes(text)
        elif "{" in text and name in DYNAMIC:
            found = DYNAMIC[name](self, text)
            if found is not None:
                text = found
        return super().emit(text, n)

    def constant(self, value: Any, dtype: Any = None) -> str:
        if type(value) is Dimension:
            return self.converted(self.size(value), dtype or "int32")
        return super().constant(value, dtype)

    def custom_call(self, target: str, names: Sequence[str], avals: Sequence[Any], out_avals: Sequence[Any],
                    **options: Any) -> list[str]:
        """Where a result's shape is not known, all shapes of results are the last operands, which refinement
        removes."""
        if not all(_known(a.shape) for a in out_avals):
            count, shapes = len(names), [ShapedArray((a.ndim,), "int32") for a in out_avals]
            names = [*names, *[self.shape(a.shape) for a in out_avals]]
            avals = [*avals, *shapes]
            if options.get("layouts"):
                options["layouts"] = [*options["layouts"], *[None] * len(shapes)]
            options["attributes"] = ", indices_of_shape_operands = " + attribute(np.arange(count, len(names)))
        return super().custom_call(target, names, avals, out_avals, **options)

    def converted(self, name: str, dtype: Any) -> str:
        kind = ShapedArray((), dtype).mlir
        return name if kind == INT else super().emit(f"stablehlo.convert {name} : ({INT}) -> {kind}")

    def begin(self, jaxpr: Jaxpr, names: Sequence[str], visibility: str) -> None:
        """Main computes the variables and checks what was said of them."""
        if visibility == "private":
            return
        shapes = [v.aval.shape for v in jaxpr.invars]
        places = [[(i, j) for j in range(len(shape))] for i, shape in enumerate(shapes)]
        found = {}
        for i, shape in enumerate(shapes):
            for j, d in enumerate(shape):
                if type(d) is Dimension:
                    found[i, j] = super().emit(f"stablehlo.get_dimension_size {names[i]}, dim = {j} : "
                                               f"({jaxpr.invars[i].aval.mlir}) -> {INT}")
        said = ",".join(f"{self.module.paths[i]}.shape = {shape}" for i, shape in enumerate(shapes))
        obtained: list[tuple[str, str, str]] = []       # (what is said of a variable, its value, a size)

        def check(predicate: str, problem: str, *values: str,
                  what: str = "polymorphic shapes specification") -> None:
            names = [*values, *(name for _, *pair in obtained for name in pair)]
            told = "".join(text.format(n, n + 1) for text, n in zip(
                (text for text, *_ in obtained), range(len(values), len(names), 2)))
            self.check(predicate, f"Input shapes do not match the {what}. {problem} Using the following "
                       f"polymorphic shapes specifications: {said}. Obtained dimension variables: {told}.",
                       *names)
        for variable, place, rest, factor in solve(shapes, places, self.module.paths):
            spec = shapes[place[0]][place[1]]
            value = self.binary("subtract", found[place], self.size(rest)) if rest != 0 else found[place]
            if factor != 1:
                left = self.binary("remainder", value, self.size(factor))
                check(self.compare("EQ", left, self.size(0)),
                      f"Division had remainder {{0}} when computing the value of '{variable}'.", left)
                value = self.binary("divide", value, self.size(factor))
            self.lines.append(f"    %dim_{variable} = stablehlo.convert {value} : {INT}")
            obtained.append((f"'{variable}' = {{{{{{}}}}}} from specification '{spec}' for dimension "
                             f"{self.name(place)} (= {{{{{{}}}}}}), ", value, found[place]))
            check(self.compare("GE", value, self.size(1)),
                  f"Expected value >= 1 for dimension variable '{variable}'.")
        for (i, j), name in found.items():
            want = self.size(shapes[i][j])
            check(self.compare("EQ", name, want),
                  f"Found inconsistency between dimension size {self.name((i, j))} (= {{0}}) and the "
                  f"specification '{shapes[i][j]}' (= {{1}}).", name, want)
        for text, rest, equal in self.module.scope.constraints:
            if variables(rest) <= set(self.module.variables):
                value = self.size(rest)
                check(self.compare("EQ" if equal else "GE", value, self.size(0)),
                      f"Expected '{rest}' to be {'equal' if equal else 'greater or equal'} to 0, but found "
                      "{0}. ", value, what=f"symbolic shape constraint {text}")

    def name(self, place: tuple[int, int]) -> str:
        return f"{self.module.paths[place[0]]}.shape[{place[1]}]"

    def check(self, predicate: str, message: str, *values: str) -> None:
        message = quoted(message)
        types = ", ".join(["tensor<i1>", *[INT] * len(values)])
        super().emit(f"stablehlo.custom_call @shape_assertion({', '.join([predicate, *values])}) "
                     f"{{api_version = 2 : i32, error_message = {message}, has_side_effect = true}} : "
                     f"({types}) -> ()", 0)

    def size(self, d: Any) -> str:
        """The name of a 32-bit integer that is a size."""
        if type(d) is not Dimension:
            return super().constant(d, "int32")
        if not d.variables() <= set(self.module.variables):
            raise unknown_variable(self.module.name, str(d), self.module.variables)
        total = ""
        for monomial, c in d.terms.items():
            factors = [f for atom, power in monomial for f in [self.atom(atom)] * power]
            if c != 1 or not factors:
                factors.append(self.size(c))
            term = functools.reduce(functools.partial(self.binary, "multiply"), factors)
            total = self.binary("add", total, term) if total else term
        return total

    def binary(self, op: str, x: str, y: str) -> str:
        return super().emit(f"stablehlo.{op} {x}, {y} : {INT}")

    def compare(self, direction: str, x: str, y: str) -> str:
        return super().emit(f"stablehlo.compare {direction}, {x}, {y}, SIGNED : ({INT}, {INT}) -> tensor<i1>")

    def atom(self, atom: Any) -> str:
        if atom.op is None:
            return f"%dim_{atom.text}"
        x, y = map(self.size, atom.args)
        if atom.op in ("max", "min"):
            return self.binary(atom.op + "imum", x, y)
        # towards zero; wanted: down
        quotient, rest = self.binary("divide", x, y), self.binary("remainder", x, y)
        zero, one = self.size(0), self.size(1)
        # jaxlib computes these operations when it knows the sizes; xor is none of them
        signs = self.compare("NE", *(super(DynamicContext, self).emit(f"stablehlo.sign {n} : {INT}")
                                     for n in (rest, y)))
        down = super().emit(f"stablehlo.and {signs}, {self.compare('NE', rest, zero)} : tensor<i1>")
        if atom.op == "floordiv":
            usual, other = quotient, self.binary("subtract", quotient, one)
        else:
            usual, other = rest, self.binary("add", rest, y)
        return super().emit(f"stablehlo.select {down}, {other}, {usual} : tensor<i1>, {INT}")

    def shape(self, sizes: Sequence[Any]) -> str:
        """The name of a vector of 32-bit integers."""
        return self.vector(map(self.size, sizes)) if sizes else super().constant(np.zeros(0, np.int32))

    def vector(self, names: Iterable[str]) -> str:
        parts = [super(DynamicContext, self).emit(f"stablehlo.reshape {name} : ({INT}) -> tensor<1xi32>")
                 for name in names]
        types = ", ".join(["tensor<1xi32>"] * len(parts))
        return parts[0] if len(parts) == 1 else super().emit(
            f"stablehlo.concatenate {', '.join(parts)}, dim = 0 : ({types}) -> tensor<{len(parts)}xi32>")

    def sizes_of(self, text: str) -> list[Any]:
        """The sizes in a type, or in a list of them, as ints and Dimensions."""
        parts = [a or b for a, b in _SIZE.findall(text)] if text.startswith("tensor") else split(text)
        return [parse(part, self.module.scope) for part in parts]


# --- operations whose sizes are operands ----------------------------------------------------------

def _parts(text: str) -> tuple[str, str, str]:
    """(what is in front of the types, the types of operands, that of the result)."""
    head, _, types = text.rpartition(" : ")
    operands, _, result = types.rpartition(" -> ")
    return head, operands.strip()[1:-1], result


def _matched(pattern: str, text: str, flags: int = 0) -> re.Match[str]:
    """The match of a pattern with all of an operation that a rule wrote."""
    found = re.fullmatch(pattern, text, flags)
    if found is None:
        raise ValueError(f"an operation on symbolic sizes is written in an unknown form: {text!r:.200}")
    return found


def _known(sizes: Iterable[Any]) -> bool:
    return not any(type(d) is Dimension for d in sizes)


def _broadcast(ctx: DynamicContext, text: str) -> str | None:
    head, operand, result = _parts(text)
    sizes = ctx.sizes_of(result)
    if _known(sizes):
        return None
    x, dims = _matched(r"\S+ (\S+), (dims = .*)", head).groups()
    return (f"stablehlo.dynamic_broadcast_in_dim {x}, {ctx.shape(sizes)}, {dims} : ({operand}, "
            f"tensor<{len(sizes)}xi32>) -> {result}")


def _reshape(ctx: DynamicContext, text: str) -> str | None:
    head, operand, result = _parts(text)
    sizes = ctx.sizes_of(result)
    if _known(sizes) and _known(ctx.sizes_of(operand)):
        return None
    return (f"stablehlo.dynamic_reshape {head.split()[1]}, {ctx.shape(sizes)} : ({operand}, "
            f"tensor<{len(sizes)}xi32>) -> {result}")


def _iota(ctx: DynamicContext, text: str) -> str | None:
    head, _, result = text.rpartition(" : ")
    sizes = ctx.sizes_of(result)
    dim = head.split()[-1]
    return f"stablehlo.dynamic_iota {ctx.shape(sizes)}, dim = {dim} : (tensor<{len(sizes)}xi32>) -> {result}"


def _slice(ctx: DynamicContext, text: str) -> str | None:
    head, operand, result = _parts(text)
    x, ranges = _matched(r"\S+ (\S+) \[(.*)\]", head).groups()
    rows = [(*(parse(part, ctx.module.scope) for part in (r.split(":") + ["1"])[:3]),)
            for r in split(ranges)]
    if _known([d for row in rows for d in row]):
        return None
    start, limit, stride = (ctx.shape(column) for column in zip(*rows))
    return _sliced(ctx, x, start, limit, stride, len(rows), operand, result)


def _sliced(ctx: DynamicContext, x: str, start: str, limit: str, stride: str, n: int, operand: str,
            result: str) -> str:
    vector = f"tensor<{n}xi32>"
    return (f"stablehlo.real_dynamic_slice {x}, {start}, {limit}, {stride} : ({operand}, {vector}, {vector}, "
            f"{vector}) -> {result}")


def _dynamic_slice(ctx: DynamicContext, text: str) -> str | None:
    head, operands, result = _parts(text)
    names, listed = _matched(r"\S+ (.*), sizes = \[(.*)\]", head).groups()
    x, *starts = names.split(", ")
    operand, *types = split(operands)
    sizes, whole = ctx.sizes_of(listed), ctx.sizes_of(operand)
    if _known(sizes):
        return None
    zero, clamped = ctx.size(0), []
    for start, kind, n, of in zip(starts, types, sizes, whole):
        if kind.strip() != INT:
            start = ctx.emit(f"stablehlo.convert {start} : ({kind.strip()}) -> {INT}")
        clamped.append(ctx.emit(f"stablehlo.clamp {zero}, {start}, {ctx.size(of - n)} : ({INT}, {INT}, "
                                f"{INT}) -> {INT}"))
    start = ctx.vector(clamped)
    # jaxlib knows by this sum that it is a dynamic_slice, when it knows the sizes
    end = ctx.emit(f"stablehlo.add {start}, {ctx.shape(sizes)} : tensor<{len(sizes)}xi32>")
    return _sliced(ctx, x, start, end, ctx.shape([1] * len(sizes)), len(sizes), operand, result)


def _pad(ctx: DynamicContext, text: str) -> str | None:
    head, operands, result = _parts(text)
    names, *lists = _matched(r"\S+ (.*), low = \[(.*)\], high = \[(.*)\], interior = \[(.*)\]", head).groups()
    rows = [ctx.sizes_of(one) for one in lists]
    if _known([d for row in rows for d in row]):
        return None
    vector = f"tensor<{len(rows[0])}xi32>"
    return (f"stablehlo.dynamic_pad {names}, {', '.join(map(ctx.shape, rows))} : ({operands}, "
            f"{', '.join([vector] * 3)}) -> {result}")


def _gather(ctx: DynamicContext, text: str) -> str | None:
    head, operands, result = _parts(text)
    found = re.search(r", slice_sizes = array<i64: ([^>]*)>", head)
    sizes = ctx.sizes_of(found[1]) if found else []
    if found is None or _known(sizes):
        return None
    head = head.replace(found[0], "").replace("stablehlo.gather", "stablehlo.dynamic_gather", 1).replace(
        ") <{", f", {ctx.shape(sizes)}) <{{", 1)
    return f"{head} : ({operands}, tensor<{len(sizes)}xi32>) -> {result}"


def _reduce_window(ctx: DynamicContext, text: str) -> str | None:
    """A custom call, which jaxlib makes a `reduce_window` of when it knows the sizes."""
    head, operands, result = _parts(text)
    names, attributes, region = _matched(r'\S+?\((.*?)\) <\{(.*?)\}> (\(\{.*\}\))', head, re.S).groups()
    listed = dict(re.findall(r"(\w+) = array<i64: ([^>]*)>", attributes))
    padding = re.search(r"padding = dense<(.*?)> : tensor", attributes)
    rank = len(ctx.sizes_of(result))
    pads = ctx.sizes_of(_flat(padding[1])) if padding else [0] * (2 * rank)
    if len(pads) == 1:
        pads = pads * (2 * rank)
    rows = [ctx.sizes_of(listed[name]) if name in listed else [1] * rank for name in (
        "window_dimensions", "window_strides", "base_dilations", "window_dilations")]
    if _known([d for row in (*rows, pads) for d in row]):
        return None
    name = ctx.module.reducer(region)
    vector = f"tensor<{rank}xi32>"
    return (f"stablehlo.custom_call @stablehlo.dynamic_reduce_window({names}, "
            f"{', '.join(map(ctx.shape, rows))}, {_pairs(ctx, pads)}) {{called_computations = [@{name}]}} : "
            f"({operands}, {', '.join([vector] * 4)}, tensor<{rank}x2xi32>) -> {result}")


def _flat(rows: str) -> str:
    """A list of lists as one list."""
    return rows.replace("[", "").replace("]", "")


def _pairs(ctx: DynamicContext, sizes: Sequence[Any]) -> str:
    """The name of a matrix (n, 2) of 32-bit integers."""
    n = len(sizes)
    return ctx.emit(f"stablehlo.reshape {ctx.shape(sizes)} : (tensor<{n}xi32>) -> tensor<{n // 2}x2xi32>")


def _convolution(ctx: DynamicContext, text: str) -> str | None:
    head, operands, result = _parts(text)
    names, numbers, stride, padding, left, right, how = _matched(
        r"\S+?\((.*?)\) dim_numbers = (.*), window = \{stride = \[(.*?)\], pad = \[(.*?\])\], lhs_dilate = "
        r"\[(.*?)\], rhs_dilate = \[(.*?)\]\} \{(.*)\}", head).groups()
    pads = ctx.sizes_of(_flat(padding))
    if _known(pads):
        return None
    window = (f"window_strides = array<i64: {stride}>, lhs_dilation = array<i64: {left}>, "
              f"rhs_dilation = array<i64: {right}>")
    return (f'"stablehlo.dynamic_conv"({names}, {_pairs(ctx, pads)}) <{{{window}, dimension_numbers = '
            f"#stablehlo.conv<{numbers}>, {how}}}> : ({operands}, tensor<{len(pads) // 2}x2xi32>) -> "
            f"{result}")


def _top_k(ctx: DynamicContext, text: str) -> str | None:
    x, size, types = _matched(r"chlo.top_k\((\S+), k = (.*?)\) : (.* -> .*)", text).groups()
    k, = ctx.sizes_of(size)
    if _known([k]):
        return None
    operand, _, results = types.partition(" -> ")
    return (f"stablehlo.custom_call @stablehlo.dynamic_top_k({x}, {ctx.size(k)}) : ({operand}, {INT}) -> "
            f"{results}")


DYNAMIC = {
    "stablehlo.broadcast_in_dim": _broadcast, "stablehlo.reshape": _reshape, "stablehlo.iota": _iota,
    "stablehlo.slice": _slice, "stablehlo.dynamic_slice": _dynamic_slice, "stablehlo.pad": _pad,
    '"stablehlo.gather"': _gather, '"stablehlo.reduce_window"': _reduce_window,
    "stablehlo.convolution": _convolution, "chlo.top_k": _top_k}


# --- functions ------------------------------------------------------------------------------------

class DynamicModule(Module):
    """A module whose functions take the values of variables."""
    context = DynamicContext

    def __init__(self, *args: Any, paths: Sequence[str], dims: Sequence[Dimension], **options: Any) -> None:
        """A module for arguments whose types have symbolic sizes.

        Args:
            args: as for Module.
            paths: the names of main's arguments.
            dims: the symbolic sizes in their types.
            options: as for Module.
        """
        super().__init__(*args, **options)
        self.paths, self.scope = paths, dims[0].scope
        self.variables = sorted({v for d in dims for v in d.variables()})

    def with_sizes(self, call: str) -> str:
        """A call that gives the values of the variables as well."""
        first = call.index("(") + 1
        rest = call[first:]
        names, _, types = rest.partition(") : (")
        both = [", ".join(filter(None, side)) for side in (
            [*(f"%dim_{v}" for v in self.variables), names],
            [*[INT] * len(self.variables), types.partition(") -> ")[0]])]
        return f"{call[:first]}{both[0]}) : ({both[1]}) -> {types.partition(') -> ')[2]}"

    def reducer(self, region: str) -> str:
        """The name of the function that a region of two arguments becomes."""
        block = _matched(r"\(\{\s*\^bb0\((.*?)\):\n(.*)\}\)", region, re.S)
        result = re.findall(r"stablehlo.return \S+ : (\S+)", block[2])[0]
        name = self.unique("reducer")
        body = block[2].replace("stablehlo.return", "return")
        self.texts.append(f"  func.func private @{name}({block[1]}) -> ({result}) {{\n{body}  }}\n")
        return name

    def write(self, name: str, jaxpr: Jaxpr, visibility: str, *args: Any, **options: Any) -> None:
        slot = len(self.texts)
        super().write(name, jaxpr, visibility, *args, **options)
        if visibility == "private":
            given = ", ".join(f"%dim_{v}: {INT}" for v in self.variables)
            head, body = self.texts[slot].split("(", 1)
            self.texts[slot] = f"{head}({given}{'' if body.startswith(')') else ', '}{body}"

    def settle_sizes(self, text: str) -> str:
        return SYMBOLIC_SIZE.sub("?x", text)
