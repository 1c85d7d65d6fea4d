"""Shardy's propagation for people: a program's text in which every value says how it is split."""
from typing import NamedTuple

from ..runtime.mlir import shardy
from ..runtime.mlir.bindings import ir, parse_module, sdy
from .needed_values import trip_count

_LONGEST_CONSTANT = 32      # elements; longer ones are left out


def propagated(text):
    """The program after propagation, for people: MLIR, in which comments give each value's PartitionSpec.

    Each line that defines values ends with theirs, `// P('data', None)`; each function follows a list of
    its arguments and results.  These replace the `sdy.sharding` attributes.  Inside `sdy.manual_computation`,
    `manual 'data'` tells that the value is one shard along that axis.  `P('data':(1)2)` splits over a part of
    an axis (see `shardy.SubAxis`), and where the program has several meshes, a spec names its own.  Constants
    of more than 32 elements are left out. Raises ValueError for a text that does not parse, that has no
    @main, or that Shardy rejects.
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


class Operation(NamedTuple):
    """What an operation of a program is, in words.

    `line` is the number of its line in the text, `notes` the specs of its results; those of a function are a
    line for each argument and result.  `arguments` are the given names of those of a function, `trips` is how
    often a loop runs, None where that is not known.
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
    trips: int | None


def annotated(text, propagate=True):
    """(the lines of the program for people, its Operations, outer ones before those inside of them).

    Without `propagate`, of the text as it is, with notes where it has meshes.  ValueError as for
    `propagated`.
    """
    module = shardy.passed(text, shardy.PROPAGATION) if propagate else shardy.parsed(text)
    operations = list(shardy.walk(module.operation))
    meshes = {shardy.symbol(op): op.attributes["mesh"] for op, _ in operations if op.name == "sdy.mesh"}
    notes = [_note(op, manual, meshes) if meshes or propagate else [] for op, manual in operations]
    # Parsed again, each operation's location is its line: so a line finds its note whatever the operation's
    # syntax.
    again = parse_module(_printed(module))
    numbers = [op.location.start_line for op, _ in shardy.walk(again.operation)]
    for op, _ in operations:
        _strip(op)      # no line comes or goes
    lines = _printed(module).rstrip().split("\n")
    found = [Operation(op.name, number, depth, region, [str(r.type) for r in op.results],
                       [str(x.type) for x in op.operands], str(op.location), note, shardy.given_names(op),
                       trip_count(op) if op.name == "stablehlo.while" else None)
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


def _printed(module):
    # Assumed verified: operations of Shardy's own may be wrong without the attributes, and would be printed
    # unreadably.
    return module.operation.get_asm(large_elements_limit=_LONGEST_CONSTANT, assume_verified=True)


def _note(op, manual, meshes):
    """The lines of comment above a function; the specs of another operation's results."""
    if op.name != "func.func":
        pairs = zip([r.type for r in op.results], shardy.result_shardings(op))
        return [_written(*pair, meshes, manual) for pair in pairs]
    arguments, results = shardy.signature(op)
    blocks = op.regions[0].blocks
    values = blocks[0].arguments if len(blocks) else ()
    names = [f"%arg{i}" + (shardy.given_name(values[i]) if values else "") for i in range(len(arguments))]
    names += [f"result {i}" for i in range(len(results))]
    return [f"{name}: {pair[0]}  {_written(*pair, meshes, manual)}"
            for name, pair in zip(names, arguments + results)]


def _written(type_, sharding, meshes, manual):
    """A sharding as people read it: `P('data', None)`, and what else there is to say."""
    entries = [axes[0] if len(axes) == 1 else axes or None for axes in shardy.spec(type_, sharding)]
    words = [f"P({', '.join(map(repr, entries))})"]
    if sharding is not None:
        attribute = sdy.TensorShardingAttr(sharding)
        terms = shardy.unreduced(sharding)
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
