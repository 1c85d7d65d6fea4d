"""What is wrong with the arguments of a call of a compiled function: another structure, type or layout."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ..core.avals import ShapedArray, is_arraylike
from ..core.pytrees import pytree
from ..core.trace import Tracer
from ..runtime.array_impl import ArrayImpl
from .flat import FlatFunction, abstract


def refuse_placements(formats: Sequence[Any], leaves: Sequence[Any], flat: FlatFunction,
                      name: str) -> NoReturn:
    """ValueError for committed arrays in other layouts or shardings than a program takes.

    Args:
        formats: one for each argument; None for one that the program does not use.
        flat: the function that was lowered, for the arguments' names.
    """
    shift = len(leaves) - len(formats)
    layouts: list[Any] = []
    shardings: list[Any] = []
    for i, (x, format) in enumerate(zip(leaves[shift:], formats)):
        if format is None or type(x) is not ArrayImpl or not x.committed:
            continue
        for wrong, passed, required in ((layouts, x.format.layout, format.layout),
                                        (shardings, x.sharding, format.sharding)):
            if passed != required:
                wrong.append((i, x.aval.str_short(), passed, required))
    kind, wrong = ("layout", layouts) if layouts else ("sharding", shardings)
    count = f"5 mismatches out of {len(wrong)}" if len(wrong) > 5 else f"the {len(wrong)} mismatches"
    lines = [f"Argument {flat.path(i)} with shape {shape}:\n  Passed {kind}: {passed}\n  Required {kind}: "
             f"{wanted}" for i, shape, passed, wanted in wrong[:5]]
    raise ValueError(f"Computation was compiled for input {kind}s that disagree with the {kind}s of "
                     f"arguments passed to it. Here are {count}:\n" + "\n".join(lines) + "\nMove them with "
                     f"device_put, or call the jit function of {name}, which compiles again.")


def refuse_structure(lowered: FlatFunction, structure: pytree.PyTreeDef, in_tree: pytree.PyTreeDef,
                     name: str) -> NoReturn:
    """TypeError for arguments of the structure `in_tree` where a program takes those of `structure`."""
    (args, keywords), (given, given_keywords) = [t.children() for t in (structure, in_tree)]
    head = ("Function compiled with input pytree does not match the input pytree it was called with: "
            f"{name}:")
    counts = [(t.children(), list(k.node_data()[1]))
              for t, k in ((args, keywords), (given, given_keywords))]
    if len(counts[0][0]) != len(counts[1][0]) or counts[0][1] != counts[1][1]:
        said = [f"{len(a)} positional argument{'s' * (len(a) != 1)}"
                + f" and {', '.join(k)} by keyword" * bool(k) for a, k in counts]
        raise TypeError(f"{head} compiled for {said[0]}, called with {said[1]}. Give each as it was "
                        "given to lower, by position or keyword; static arguments are not given again.")
    fixed = [where for where, _ in lowered.statics]
    names = pytree.arg_names(lowered.fun, len(counts[0][0]) + len(fixed))[0]
    names = [name for i, name in enumerate(names) if i not in fixed] + counts[0][1]
    pairs = zip(names, [*counts[0][0], *keywords.children()], [*counts[1][0], *given_keywords.children()])
    lines = [pytree.structure_mismatch("", a, b, ("compiled", "called"), root=name)[2:]
             for name, a, b in pairs if a != b]
    raise TypeError(f"{head}\n" + "\n".join(lines[:3]) +
                    "\nGive the structure that was lowered, or lower again for this one.")


def refuse_types(lowered: FlatFunction, structure: pytree.PyTreeDef, avals: Sequence[ShapedArray],
                 leaves: Sequence[Any], name: str) -> None:
    """TypeError for arguments of other types than `avals`, and for what is no array."""
    flat = FlatFunction(lowered.fun, leaves, structure, "the compiled function", lowered.statics)
    wrong = []
    for i, (got, want) in enumerate(zip(flat.avals(abstract), avals)):
        if (got.shape, got.dtype) != (want.shape, want.dtype):
            wrong.append(f"  * {flat.path(i)}: compiled for {want.str_short()}, called with "
                         f"{got.str_short()}")
    if wrong:
        raise TypeError("Argument types differ from the types for which this computation was compiled:\n"
                        + "\n".join(wrong) + "\nLower and compile again for these types, or convert the "
                        "arguments.")
    if any(isinstance(x, Tracer) for x in leaves):
        kind = next(type(x) for x in leaves if isinstance(x, Tracer))
        raise TypeError("Cannot apply JAX transformations to a function lowered and compiled for a "
                        f"particular signature. Detected argument of Tracer type {kind}. Transform and "
                        f"trace {name} itself instead.")
    if any(not is_arraylike(x) for x in leaves):
        raise TypeError(f"{name}: a compiled function is called with arrays, not with "
                        "ShapeDtypeStructs")
