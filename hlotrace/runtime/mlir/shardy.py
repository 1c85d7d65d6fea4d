"""What Shardy decides: its propagation run on a program's text, without a compile and without a device.

The text is StableHLO with `sdy.mesh`, `sdy.sharding`, `sdy.sharding_constraint` and `sdy.manual_computation`.
A value that propagation leaves without a sharding is whole on every device.
"""
from __future__ import annotations

import graphlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from .bindings import ir, parse_module, passmanager, sdy

PROPAGATION = "sdy-propagation-pipeline"
_INSERT = "sdy-export-pipeline{enable-insert-explicit-collectives=true}"
# the same, and then Shardy's collectives where a value is needed in another sharding than it has
COLLECTIVES = f"{PROPAGATION},{_INSERT}"
# what of the first is for programs without calls, up to the shardings of @main: half of the time
_WITHOUT_CALLS = (
    "sdy-import-pipeline,sdy-apply-sharding-constraints,sdy-sharding-group-import,"
    "sdy-user-priority-propagate{keep-sharding-rules=true},sdy-propagate-to-func-results")
_SETTLED = ("func.func(sdy-sink-data-flow-edges),sdy-remove-sharding-groups,"
            "sdy-update-non-divisible-input-output-shardings,sdy-remove-sub-axes-in-input-output-shardings,"
            "sdy-close-shardings")


class SubAxis(NamedTuple):
    """A part of a mesh axis: of its size, written as a product `before` x `size` x the rest, the middle.

    Prints as Shardy writes it, with the name as Python does: `'data':(2)4`.
    """
    name: str
    before: int
    size: int

    def __repr__(self) -> str:
        return f"{self.name!r}:({self.before}){self.size}"


Spec = tuple[tuple["str | SubAxis", ...], ...]      # the mesh axes that split each dimension, major first


class MainSpecs(NamedTuple):
    """What propagation gives to @main.

    `arguments` and `results` are their Specs: of a value that is whole on every device, `((), ())` at rank
    2.  `gathered` are those of arguments of which an operation needs more, when they are gathered, {number:
    Spec}; `exchanges` counts the values that are gathered or dealt out anew, each once for each sharding that
    it gets.  `sums` are the results that the devices add and nothing else takes, {number: Sum}.
    """
    arguments: list[Spec]
    results: list[Spec]
    gathered: dict[int, Spec]
    exchanges: int
    sums: dict[int, Sum]


class Sum(NamedTuple):
    """A product or a reduction of which each device has a term: the Specs of its operands and of its result,
    and the permutation of the dimensions where it is then transposed."""
    operands: tuple[Spec, ...]
    result: Spec
    transposed: tuple[int, ...] | None

    @property
    def axes(self) -> frozenset[Any]:
        """The mesh axes over which terms are added."""
        of_operands, of_result = ({axis for spec in specs for axes in spec for axis in axes}
                                  for specs in (self.operands, (self.result,)))
        return frozenset(of_operands - of_result)


_EXCHANGES = ("sdy.all_gather", "sdy.all_to_all")


def main_specs(text: str, collectives: bool = True) -> MainSpecs:
    """The MainSpecs of a text; without `collectives` nothing is said of those, which takes less time.
    ValueError for one that does not parse, that has no @main, or that Shardy rejects."""
    # held: operations do not keep it alive, and to read one of a module that is gone crashes
    propagation = PROPAGATION if " call @" in text else _WITHOUT_CALLS
    module = passed(text, f"cse,{propagation},{_INSERT if collectives else _SETTLED}")
    main = functions(module)["main"]
    arguments, results = ([spec(*pair) for pair in pairs] for pairs in signature(main))
    numbers = {value: i for i, value in enumerate(main.regions[0].blocks[0].arguments)}
    gathered: dict[int, Spec] = {}
    exchanges = set()
    for op, _ in walk(main) if collectives else ():
        if op.name in _EXCHANGES:
            source, sharding = _before_slices(op.operands[0]), result_shardings(op)[0]
            exchanges.add((source, str(sharding)))
            if source in numbers and op.name == "sdy.all_gather":
                needed = spec(op.results[0].type, sharding)
                gathered[numbers[source]] = tuple(
                    tuple(axis for axis in axes if axis in after)
                    for axes, after in zip(arguments[numbers[source]], needed))
    return MainSpecs(arguments, results, gathered, len(exchanges), _sums(main) if collectives else {})


def _sums(main: Any) -> dict[int, Sum]:
    found = {}
    *_, returned = main.regions[0].blocks[0].operations
    for i, value in enumerate(returned.operands):
        made, transposed = _maker(value), None
        if made is not None and made.name == "stablehlo.transpose":
            transposed = tuple(ir.DenseI64ArrayAttr(made.attributes["permutation"]))
            made = _maker(made.operands[0])
        added = _maker(made.operands[0]) if made is not None and made.name == "sdy.all_reduce" else None
        if added is None or added.name not in _ADDING or any(
                op.operation.name not in ("stablehlo.add", "stablehlo.return")
                for region in added.regions for block in region.blocks for op in block.operations):
            continue
        operands = [*added.operands][:_ADDING[added.name]]
        each = Sum(tuple(map(_spec_of, operands)), _spec_of(added.results[0]), transposed)
        over = str(made.attributes["reduction_axes"])       # a part of an axis has parentheses
        if "(" not in over and each.axes == {*re.findall('"([^"]*)"', over)}:
            found[i] = each
    return found


_ADDING = {"stablehlo.dot_general": 2, "stablehlo.reduce": 1}       # how many of their operands are added


def _maker(value: Any) -> Any:
    """The operation that makes a value for one use; None if there are others, or none makes it."""
    return value.owner if isinstance(value, ir.OpResult) and len([*value.uses]) == 1 else None


def _spec_of(value: Any) -> Spec:
    if isinstance(value, ir.OpResult):
        return spec(value.type, result_shardings(value.owner)[value.result_number])
    return spec(*signature(value.owner.owner)[0][value.arg_number])


def _before_slices(value: Any) -> Any:
    """What Shardy has taken each device's part of."""
    while isinstance(value, ir.OpResult) and value.owner.name == "sdy.all_slice":
        value = value.owner.operands[0]
    return value


class Signature(NamedTuple):
    """What a text says of its @main.

    `inputs` and `outputs` are pairs (type, its spec as in `main_specs`, None where nothing is said), `names`
    those of the inputs, empty where they have none; `mesh` is {axis: size}; `targets` are those of its custom
    calls.
    """
    inputs: list[tuple[str, Spec | None]]
    outputs: list[tuple[str, Spec | None]]
    names: list[str]
    mesh: dict[str, int]
    targets: list[str]


def main_signature(text: str) -> Signature:
    """The Signature of a text, without propagation.  ValueError as for `main_specs`."""
    module = parsed(text)
    _check(functions(module))
    main = functions(module)["main"]
    inputs, outputs = ([(str(type_), sharding and spec(type_, sharding)) for type_, sharding in values]
                       for values in signature(main))
    operations = [op for op, _ in walk(module.operation)]
    axes = [sdy.MeshAttr(op.attributes["mesh"]).axes for op in operations if op.name == "sdy.mesh"]
    first: Any = next(filter(None, axes), ())
    mesh = {sdy.MeshAxisAttr(axis).name: sdy.MeshAxisAttr(axis).size for axis in first}
    targets = [ir.StringAttr(op.attributes["call_target_name"]).value for op in operations
               if op.name == "stablehlo.custom_call"]
    return Signature(inputs, outputs, given_names(main), mesh, targets)


def given_names(op: Any) -> list[str]:
    """The names of the arguments of a function, where it has some."""
    blocks: Any = op.regions[0].blocks if op.name == "func.func" else ()
    return [given_name(argument).strip() for argument in (blocks[0].arguments if len(blocks) else ())]


def passed(text: str, passes: str, prepare: Callable[[Any], None] | None = None) -> Any:
    """jaxlib's module of a text after some passes, which begin with propagation.

    Args:
        text: as for `main_specs`.
        passes: their names, with commas.
        prepare: what changes the module before them.
    Raises:
        ValueError: as for `main_specs`.
    """
    module = parsed(text)
    _check(functions(module))
    if "chlo." in text:
        _say_elementwise(module)
    if prepare:
        prepare(module)
    try:
        with module.context:
            manager = passmanager.PassManager.parse(f"builtin.module({passes})")
            manager.enable_verifier(False)      # parsing has; after each pass it takes half of the time
            manager.run(module.operation)
    except ir.MLIRError as error:
        raise ValueError(f"Shardy: propagation fails: {_reason(str(error))}") from error
    return module


def parsed(text: str) -> Any:
    """jaxlib's module of a text; ValueError for one that does not parse."""
    try:
        return parse_module(text)
    except ir.MLIRError as error:
        raise ValueError(f"Shardy: the text does not parse: {_reason(str(error))}") from error


_FACTORS = "ijklmnopqrstuvwxyz"     # Shardy's names for dimensions


def _say_elementwise(module: Any) -> None:
    """Rules for operations such as `chlo.erf`, which XLA expands before Shardy sees them."""
    for op, _ in walk(module.operation):
        if not op.name.startswith("chlo.") or op.name == "chlo.top_k" or len(op.regions):
            continue
        types = [value.type for value in (*op.operands, *op.results)]
        shapes = {tuple(type_.shape) for type_ in types if isinstance(type_, ir.RankedTensorType)}
        if len(shapes) != 1 or not 0 < len(shape := shapes.pop()) < len(_FACTORS):
            continue
        factors = _FACTORS[:len(shape)]
        one = f"[{', '.join(factors)}]"
        operands, results = (", ".join([one] * len(values)) for values in (op.operands, op.results))
        sizes = ", ".join(f"{factor}={size}" for factor, size in zip(factors, shape))
        with op.context:
            op.attributes["sdy.sharding_rule"] = ir.Attribute.parse(
                f"#sdy.op_sharding_rule<({operands})->({results}) {{{sizes}}}>")


def functions(module: Any) -> dict[str, Any]:
    """The functions by their names."""
    return {symbol(op.operation): op.operation for op in module.body.operations if op.operation.name ==
            "func.func"}


def _check(functions: dict[str, Any]) -> None:
    """ValueError for what would abort the process instead of failing."""
    main = functions.get("main")
    if main is None or ("sym_visibility" in main.attributes
                        and "private" in str(main.attributes["sym_visibility"])):
        raise ValueError("Shardy: the program has no public function @main")
    for name, op in functions.items():
        if not len(op.regions[0].blocks):
            raise ValueError(f"Shardy: function @{name} has no body")
    calls = {name: {ir.FlatSymbolRefAttr(inner.attributes["callee"]).value for inner, _ in walk(op)
                    if inner.name == "func.call"} for name, op in functions.items()}
    try:
        graphlib.TopologicalSorter(calls).prepare()
    except graphlib.CycleError as error:
        raise ValueError(f"Shardy: function @{error.args[1][0]} calls itself, directly or not") from None


def _reason(message: str) -> str:
    """The first error of an MLIR diagnostic, with its line and column in the text."""
    found = re.search(r'error: (?:"-":(\d+):(\d+): )?(.*)', message)
    if not found:
        return " ".join(message.split())
    return (f"line {found[1]}, column {found[2]}: " if found[1] else "") + found[3]


def walk(op: Any, manual: tuple[str, ...] = ()) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """(operation, the mesh axes that are manual around it), each before those inside it."""
    yield op, manual
    if op.name == "sdy.manual_computation":
        manual = (*manual, *manual_axes(op))
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from walk(inner.operation, manual)


def manual_axes(op: Any) -> list[str]:
    axes = sdy.ManualAxesAttr(op.attributes["manual_axes"])
    return [axes[i] for i in range(len(axes))]


def manual_around(op: Any, inside: bool = False) -> set[str]:
    """The mesh axes that are manual around an operation; or `inside` of its region."""
    found, op = set(), op if inside else op.parent.operation
    while op.name not in ("func.func", "builtin.module"):
        if op.name == "sdy.manual_computation":
            found.update(manual_axes(op))
        op = op.parent.operation
    return found


def mesh_sizes(sharding: Any, meshes: dict[str, Any]) -> dict[str, int]:
    """The sizes of the axes of a sharding's mesh; `meshes` are those that have names."""
    mesh = sdy.TensorShardingAttr(sharding).mesh_or_ref
    mesh = meshes[mesh.value] if isinstance(mesh, ir.FlatSymbolRefAttr) else mesh
    return {axis.name: axis.size for axis in map(sdy.MeshAxisAttr, sdy.MeshAttr(mesh).axes)}


def unreduced(sharding: Any) -> list[str | SubAxis]:
    """The mesh axes along which each device holds a term of a sum."""
    return [] if sharding is None else [*map(_axis, sdy.TensorShardingAttr(sharding).unreduced_axes)]


def symbol(op: Any) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def given_name(argument: Any) -> str:
    """` w1` for an argument with the location `loc("w1")`."""
    found = re.fullmatch(r'loc\("((?:[^"\\\n]|\\.)+)"\)', str(argument.location))
    return f" {found[1]}" if found else ""


def signature(op: Any) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Any]]]:
    """(type, sharding or None) for each argument and for each result of a function."""
    type_ = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
    arguments, results = ([*zip(types, _listed(op, attribute, len(types)))] for types, attribute in (
        (type_.inputs, "arg_attrs"), (type_.results, "res_attrs")))
    return arguments, results


def _listed(op: Any, attribute: str, count: int) -> list[Any]:
    if attribute not in op.attributes:
        return [None] * count
    found = [ir.DictAttr(entry) for entry in ir.ArrayAttr(op.attributes[attribute])]
    return [entry["sdy.sharding"] if "sdy.sharding" in entry else None for entry in found]


def result_shardings(op: Any) -> Sequence[Any]:
    """For each result its sharding or None: Shardy's own operations keep it under names of their own."""
    for name in ("sdy.sharding", "sharding", "out_sharding", "out_shardings"):
        if name not in op.attributes:
            continue
        found = op.attributes[name]
        if sdy.TensorShardingAttr.isinstance(found):
            return [found] * len(op.results)
        if sdy.TensorShardingPerValueAttr.isinstance(found):
            return list(sdy.TensorShardingPerValueAttr(found).shardings)
    return [None] * len(op.results)


def spec(type_: Any, sharding: Any) -> Spec:
    """The tuple of tuples that `main_specs` promises."""
    dimensions = [] if sharding is None else sdy.TensorShardingAttr(sharding).dimension_shardings
    found = tuple(tuple(map(_axis, sdy.DimensionShardingAttr(dim).axes)) for dim in dimensions)
    # a token has no dimensions; a value on one device has no shardings of them
    rank = type_.rank if isinstance(type_, ir.RankedTensorType) else 0
    return found + ((),) * (rank - len(found))


def _axis(attribute: Any) -> str | SubAxis:
    axis = sdy.AxisRefAttr(attribute)
    if axis.sub_axis_info is None:
        return axis.name
    part = sdy.SubAxisInfoAttr(axis.sub_axis_info)
    return SubAxis(axis.name, part.pre_size, part.size)
