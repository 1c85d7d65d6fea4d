"""What Shardy decides: its propagation run on a program's text, without a compile and without a device.

The text is StableHLO with `sdy.mesh`, `sdy.sharding`, `sdy.sharding_constraint` and `sdy.manual_computation`.
A value that propagation leaves without a sharding is whole on every device.
"""
import graphlib
import re
from typing import NamedTuple

from ..runtime.mlir.bindings import ir, parse_module, passmanager, sdy

PROPAGATION = "sdy-propagation-pipeline"
_LONGEST_CONSTANT = 32      # elements; longer ones are left out of a text for people


class SubAxis(NamedTuple):
    """A part of a mesh axis: its size is written as a product, `before` x `size` x the rest, and this is the
    middle.

    Prints as Shardy writes it, with the name as Python does: `'data':(2)4`.
    """
    name: str
    before: int
    size: int

    def __repr__(self):
        return f"{self.name!r}:({self.before}){self.size}"


def main_specs(text):
    """What propagation gives @main: a list for its arguments, a list for its results, each with one tuple a
    value.

    The tuple holds a tuple for each dimension: the mesh axes that split it, major first; names, or a SubAxis
    where only a part of an axis does.  A value that is whole on every device: `((), ())` at rank 2. Raises
    ValueError for a text that does not parse, that has no @main, or that Shardy rejects.
    """
    # held: operations do not keep it alive, and to read one of a module that is gone crashes
    module = passed(text, PROPAGATION)
    arguments, results = signature(functions(module)["main"])
    return [spec(*pair) for pair in arguments], [spec(*pair) for pair in results]


def propagated(text):
    """The program after propagation, for people: MLIR in which a comment gives the PartitionSpec of every
    value.

    Each line that defines values ends with theirs, `// P('data', None)`; each function follows a list of
    its arguments and results.  These replace the `sdy.sharding` attributes.  Inside `sdy.manual_computation`,
    `manual 'data'` tells that the value is one shard along that axis.  `P('data':(1)2)` splits over a part of
    an axis (see SubAxis), and where the program has several meshes, a spec names its own.  Constants of more
    than 32 elements are left out. Raises ValueError for a text that does not parse, that has no @main, or
    that Shardy rejects.
    """
    lines, operations = annotated(text)
    note_at = {}
    for op in operations:
        note_at.setdefault(op.line, (op.name == "func.func", op.notes))
    written = []
    for number, line in enumerate(lines, 1):
        above, note = note_at.get(number, (False, []))
        if above:
            indent = line[:len(line) - len(line.lstrip())]
            written += [f"{indent}// {entry}" for entry in note]
        written.append(line if above or not note else f"{line}  // {', '.join(note)}")
    return "\n".join(written) + "\n"


class Signature(NamedTuple):
    """What a text says of its @main.

    `inputs` and `outputs` are pairs (type, its spec as in `main_specs`, None where nothing is said), `names`
    those of the inputs, empty where they have none; `mesh` is {axis: size}; `targets` are those of its custom
    calls.
    """
    inputs: list
    outputs: list
    names: list[str]
    mesh: dict[str, int]
    targets: list[str]


def main_signature(text):
    """The Signature of a text, without propagation.  ValueError as for `main_specs`."""
    module = _parsed(text)
    _check(functions(module))
    main = functions(module)["main"]
    inputs, outputs = ([(str(type_), sharding and spec(type_, sharding)) for type_, sharding in values]
                       for values in signature(main))
    operations = [op for op, _ in walk(module.operation)]
    axes = [sdy.MeshAttr(op.attributes["mesh"]).axes for op in operations if op.name == "sdy.mesh"]
    mesh = {sdy.MeshAxisAttr(axis).name: sdy.MeshAxisAttr(axis).size for axis in next(filter(None, axes), ())}
    targets = [ir.StringAttr(op.attributes["call_target_name"]).value for op in operations
               if op.name == "stablehlo.custom_call"]
    return Signature(inputs, outputs, _given_names(main), mesh, targets)


class Operation(NamedTuple):
    """What an operation of a program is, in words.

    `line` is the number of its line in the text, `notes` the specs of its results; those of a function are a
    line for each argument and result.  `arguments` are the given names of those of a function.
    """
    name: str
    line: int
    depth: int
    region: int             # which of the regions of the operation around it
    types: list[str]
    operands: list[str]     # their types
    location: str
    notes: list[str]
    arguments: list[str]


def annotated(text, propagate=True):
    """(the lines of the program for people, its Operations, outer ones before those inside of them).

    Without `propagate`, of the text as it is, with notes where it has meshes.  ValueError as for
    `propagated`.
    """
    module = passed(text, PROPAGATION) if propagate else _parsed(text)
    operations = list(walk(module.operation))
    meshes = {symbol(op): op.attributes["mesh"] for op, _ in operations if op.name == "sdy.mesh"}
    notes = [_note(op, manual, meshes) if meshes or propagate else [] for op, manual in operations]
    # Parsed again, each operation's location is its line: so a line finds its note whatever the operation's
    # syntax.
    again = parse_module(_printed(module))
    numbers = [op.location.start_line for op, _ in walk(again.operation)]
    for op, _ in operations:
        _strip(op)      # no line comes or goes
    lines = _printed(module).rstrip().split("\n")
    found = [Operation(op.name, number, depth, region, [str(r.type) for r in op.results],
                       [str(x.type) for x in op.operands], str(op.location), note, _given_names(op))
             for number, (op, _), note, (depth, region) in zip(numbers, operations, notes,
                                                               _places(module.operation))]
    return lines, found


def _places(op, depth=0, number=0):
    """(how deep it is, in which region of the operation around it) of each operation of `walk`."""
    yield depth, number
    for i, region in enumerate(op.regions):
        for block in region.blocks:
            for inner in block.operations:
                yield from _places(inner.operation, depth + 1, i)


def _given_names(op):
    blocks = op.regions[0].blocks if op.name == "func.func" else ()
    return [_given_name(argument).strip() for argument in (blocks[0].arguments if len(blocks) else ())]


def _printed(module):
    # Assumed verified: operations of Shardy's own may be wrong without the attributes, and would be printed
    # unreadably.
    return module.operation.get_asm(large_elements_limit=_LONGEST_CONSTANT, assume_verified=True)


def passed(text, passes, prepare=None):
    """jaxlib's module of a text after some passes, which begin with propagation.

    Args:
        text: as for `main_specs`.
        passes: their names, with commas.
        prepare: what changes the module before them.
    Raises:
        ValueError: as for `main_specs`.
    """
    module = _parsed(text)
    _check(functions(module))
    _say_elementwise(module)
    if prepare:
        prepare(module)
    try:
        with module.context:
            passmanager.PassManager.parse(f"builtin.module({passes})").run(module.operation)
    except ir.MLIRError as error:
        raise ValueError(f"Shardy: propagation fails: {_reason(str(error))}") from error
    return module


def _parsed(text):
    try:
        return parse_module(text)
    except ir.MLIRError as error:
        raise ValueError(f"Shardy: the text does not parse: {_reason(str(error))}") from error


_FACTORS = "ijklmnopqrstuvwxyz"     # Shardy's names for dimensions


def _say_elementwise(module):
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


def functions(module):
    """The functions by their names."""
    return {symbol(op.operation): op.operation for op in module.body.operations if op.operation.name ==
            "func.func"}


def _check(functions):
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


def _reason(message):
    """The first error of an MLIR diagnostic, with its line and column in the text."""
    found = re.search(r'error: (?:"-":(\d+):(\d+): )?(.*)', message)
    if not found:
        return " ".join(message.split())
    return (f"line {found[1]}, column {found[2]}: " if found[1] else "") + found[3]


def walk(op, manual=()):
    """(operation, the mesh axes that are manual around it), each before those inside it."""
    yield op, manual
    if op.name == "sdy.manual_computation":
        manual = (*manual, *manual_axes(op))
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from walk(inner.operation, manual)


def manual_axes(op):
    axes = sdy.ManualAxesAttr(op.attributes["manual_axes"])
    return [axes[i] for i in range(len(axes))]


def manual_around(op, inside=False):
    """The mesh axes that are manual around an operation; or `inside` of its region."""
    found, op = set(), op if inside else op.parent.operation
    while op.name not in ("func.func", "builtin.module"):
        if op.name == "sdy.manual_computation":
            found.update(manual_axes(op))
        op = op.parent.operation
    return found


def mesh_sizes(sharding, meshes):
    """The sizes of the axes of a sharding's mesh; `meshes` are those that have names."""
    mesh = sdy.TensorShardingAttr(sharding).mesh_or_ref
    mesh = meshes[mesh.value] if isinstance(mesh, ir.FlatSymbolRefAttr) else mesh
    return {axis.name: axis.size for axis in map(sdy.MeshAxisAttr, sdy.MeshAttr(mesh).axes)}


def unreduced(sharding):
    """The mesh axes along which each device holds a term of a sum."""
    return [] if sharding is None else [*map(_axis, sdy.TensorShardingAttr(sharding).unreduced_axes)]


def symbol(op):
    return ir.StringAttr(op.attributes["sym_name"]).value


def _note(op, manual, meshes):
    """The lines of comment above a function; the specs of another operation's results."""
    if op.name != "func.func":
        return [_written(*pair, meshes, manual) for pair in zip([r.type for r in op.results],
                                                                result_shardings(op))]
    arguments, results = signature(op)
    blocks = op.regions[0].blocks
    values = blocks[0].arguments if len(blocks) else ()
    names = [f"%arg{i}" + (_given_name(values[i]) if values else "") for i in range(len(arguments))]
    names += [f"result {i}" for i in range(len(results))]
    return [f"{name}: {pair[0]}  {_written(*pair, meshes, manual)}" for name,
            pair in zip(names, arguments + results)]


def _given_name(argument):
    """` w1` for an argument with the location `loc("w1")`."""
    found = re.fullmatch(r'loc\("((?:[^"\\\n]|\\.)+)"\)', str(argument.location))
    return f" {found[1]}" if found else ""


def signature(op):
    """(type, sharding or None) for each argument and for each result of a function."""
    type_ = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
    return tuple([*zip(types, _listed(op, attribute, len(types)))]
                 for types, attribute in ((type_.inputs, "arg_attrs"), (type_.results, "res_attrs")))


def _listed(op, attribute, count):
    if attribute not in op.attributes:
        return [None] * count
    found = [ir.DictAttr(entry) for entry in ir.ArrayAttr(op.attributes[attribute])]
    return [entry["sdy.sharding"] if "sdy.sharding" in entry else None for entry in found]


def result_shardings(op):
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


def spec(type_, sharding):
    """The tuple of tuples that `main_specs` promises."""
    dimensions = [] if sharding is None else sdy.TensorShardingAttr(sharding).dimension_shardings
    found = tuple(tuple(map(_axis, sdy.DimensionShardingAttr(dim).axes)) for dim in dimensions)
    # a token has no dimensions; a value on one device has no shardings of them
    rank = type_.rank if isinstance(type_, ir.RankedTensorType) else 0
    return found + ((),) * (rank - len(found))


def _axis(attribute):
    axis = sdy.AxisRefAttr(attribute)
    if axis.sub_axis_info is None:
        return axis.name
    part = sdy.SubAxisInfoAttr(axis.sub_axis_info)
    return SubAxis(axis.name, part.pre_size, part.size)


def _written(type_, sharding, meshes, manual):
    """A sharding as people read it: `P('data', None)`, and what else there is to say."""
    entries = [axes[0] if len(axes) == 1 else axes or None for axes in spec(type_, sharding)]
    words = [f"P({', '.join(map(repr, entries))})"]
    if sharding is not None:
        attribute = sdy.TensorShardingAttr(sharding)
        terms = unreduced(sharding)
        if terms:
            words.append("unreduced " + " ".join(map(repr, terms)))
        reference = str(attribute.mesh_or_ref)
        mesh = meshes.get(reference.lstrip("@").strip('"'))
        if mesh is not None and not sdy.MeshAttr(mesh).axes and sdy.MeshAttr(mesh).device_ids:
            words = [f"on device {sdy.MeshAttr(mesh).device_ids[0]}"]
        elif mesh is None or len(meshes) > 1:
            words.append(f"of {reference}")
    if manual:
        words.append("manual " + " ".join(map(repr, manual)))
    return " ".join(words)


def _strip(op):
    """Remove what the comments say."""
    for name in ("sdy.sharding", "stablehlo.mesh"):
        if name in op.attributes:
            del op.attributes[name]
    if op.name != "func.func":
        return
    for name in ("arg_attrs", "res_attrs"):
        if name in op.attributes:
            kept = [{entry.name: entry.attr for entry in ir.DictAttr(attributes)
                     if entry.name != "sdy.sharding"} for attributes in ir.ArrayAttr(op.attributes[name])]
            with op.context:
                op.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in kept])
