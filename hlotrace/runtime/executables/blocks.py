"""Programs in pieces: the blocks that a program repeats, each compiled once, and what is between them.

XLA copies a function for each of its calls before it optimizes anything, so a network of 96 layers takes it 8
times as long as one of 12, outlined or not.  Here every block is an executable of its own, and a program is
a list of them, run one after the other on the buffers that the earlier ones made.
"""
from __future__ import annotations

import collections
import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.avals import aval_of, physical
from ...core.config import config
from ...core.jaxpr import Eqn, Jaxpr, Literal, Var, sub_jaxprs
from ...core.programs import cached
from ...lowering.lowered import Lowered, lower
from ...lowering.outline import joined_rows
from ...primitives.arrays.contract import dot_general_p
from ...primitives.arrays.conv import conv_general_dilated_p
from ...primitives.arrays.slicing import copy_p
from ...primitives.programs.calls import jit_p
from ...transforms.residuals import bytes_of
from .. import array_impl, binding
from ..devices import client, shards
from . import compilation
from .executable import Executable

LIGHTEST = 2e5          # operations in a block; starting it costs as much as 1e4 or so
LIGHTEST_EACH = 1e7     # the same for each of several devices, where starting it costs more
LIGHTEST_ON_CHIP = 1e9  # the same for each GPU or TPU: not measured, 20 us of one
MOST_BETWEEN = 3        # pieces between the blocks, for each block: with more, one program compiles sooner
MOST_IN_ROW = 4         # pieces that a row of calls of one lighter block becomes


@dataclasses.dataclass(eq=False)
class Block:
    program: Jaxpr
    operands: Sequence[Any]      # Vars and Literals
    results: Sequence[Any]       # Vars


def blocks_of(lowered: Lowered, thin: bool = True) -> tuple[Jaxpr, list[Block]] | None:
    """(the program with outputs that are all its own, its Blocks in order), or None where it is better left
    in one, as it is for chips unless `hlotrace_blocks_on_chips` is on; for `thin` see `outline`."""
    here = lowered.platform.in_pieces
    if lowered.effects or lowered.callbacks or lowered.inspections or not (
            here or config.hlotrace_blocks_on_chips):
        return None
    jaxpr, blocks = lowered.outlined(thin)
    lightest = LIGHTEST if here else LIGHTEST_ON_CHIP
    if lowered.partition:
        lightest = (LIGHTEST_EACH if here else LIGHTEST_ON_CHIP) * len(lowered.partition.devices)
    heavy = {b.jaxpr for b in blocks if work(b.jaxpr) >= lightest}
    if not heavy:
        return None
    jaxpr, joined = joined_rows(_with_own_outputs(jaxpr), {b.jaxpr for b in blocks} - heavy, MOST_IN_ROW)
    heavy |= joined
    used = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.invars if type(v) is Var}
    used.update((v, len(jaxpr.eqns)) for v in jaxpr.outvars if type(v) is Var)
    pieces, between = [], 0

    def close(start: int, end: int) -> None:
        nonlocal between
        if start < end:
            pieces.append(_stretch(jaxpr.eqns[start:end], used, end, f"{jaxpr.name}_{between}"))
            between += 1
    start = 0
    for i, eqn in enumerate(jaxpr.eqns):
        if eqn.primitive is jit_p and eqn.params["jaxpr"] in heavy:
            close(start, i)
            pieces.append(Block(eqn.params["jaxpr"], eqn.invars, eqn.outvars))
            start = i + 1
    close(start, len(jaxpr.eqns))
    return (jaxpr, pieces) if len(pieces) > 1 and between <= MOST_BETWEEN * len(heavy) + 2 else None


def _with_own_outputs(jaxpr: Jaxpr) -> Jaxpr:
    """No two outputs may share a buffer with each other or an input: donating one would lose the other."""
    seen, outvars, eqns = set(jaxpr.invars), [], []
    for v in jaxpr.outvars:
        if type(v) is Literal or v in seen:
            eqns.append(Eqn(copy_p, [v], [Var(v.aval)], {}))
            v = eqns[-1].outvars[0]
        seen.add(v)
        outvars.append(v)
    return jaxpr.replace(eqns=[*jaxpr.eqns, *eqns], outvars=outvars) if eqns else jaxpr


def _stretch(eqns: Sequence[Eqn], used: dict[Var, int], end: int, name: str) -> Block:
    made = dict.fromkeys(v for eqn in eqns for v in eqn.outvars)
    operands = list(dict.fromkeys(v for eqn in eqns for v in eqn.invars if type(v) is Var and v not in made))
    results = [v for v in made if used.get(v, -1) >= end]
    return Block(Jaxpr((), (), operands, eqns, results, name), operands, results)


@cached
def work(jaxpr: Jaxpr) -> int:
    """Roughly how many scalar operations a program does."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = sum(map(work, sub_jaxprs(eqn.params)))
        size = sum(v.aval.size for v in eqn.outvars)
        if eqn.primitive is dot_general_p:
            (contracted, _), _ = eqn.params["dimension_numbers"]
            size *= 2 * math.prod(eqn.invars[0].aval.shape[d] for d in contracted)
        elif eqn.primitive is conv_general_dilated_p:
            size *= 2 * eqn.invars[1].aval.size // max(*eqn.outvars[0].aval.shape, 1)
        total += max(inner, size)
    return total


@dataclasses.dataclass
class Memory:
    """Bytes that a program in pieces takes on each device, by jaxlib's names; temporaries include what one
    piece leaves for another."""
    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    generated_code_size_in_bytes: int
    alias_size_in_bytes: int = 0

    @property
    def peak_memory_in_bytes(self) -> int:
        return (self.argument_size_in_bytes + self.output_size_in_bytes + self.temp_size_in_bytes
                - self.alias_size_in_bytes)


@dataclasses.dataclass
class Steps:
    """Executables that run one after the other, on slots: those of the inputs, of what is made, and, from the
    last backwards, of constants."""
    # (what runs, its operands, results, what is free then)
    steps: list[tuple[Executable, list[int], list[int], list[int]]]
    constants: list[Any]        # Buffers; NumPy arrays for devices of a topology
    width: int                  # slots of what is made
    out_slots: list[int]
    donated: frozenset[int]
    memory: Memory

    def run(self, buffers: Sequence[binding.Buffer]) -> list[binding.Buffer]:
        """Run; donated buffers are deleted after their last use, but for those that are there twice."""
        spent: Any = self.donated
        if spent:
            times = collections.Counter(id(shards.memory(b)) for b in buffers)
            spent = {i for i in spent if times[id(shards.memory(buffers[i]))] == 1}
        held: list[Any] = [*buffers, *[None] * self.width, *reversed(self.constants)]
        for executable, operands, results, free in self.steps:
            made = executable.run([held[i] for i in operands])
            for i, b in zip(results, made):
                held[i] = b
            for i in free:
                if i in spent:
                    held[i].delete()
                held[i] = None
        return [held[i] for i in self.out_slots]


def steps_of(jaxpr: Jaxpr, pieces: Sequence[Block], executables: Sequence[Executable], donated: Sequence[int],
             constant: Callable[[Any], binding.Buffer], size: Callable[[Any], int]) -> Steps:
    """The Steps of a program.

    Args:
        executables: of each of its pieces.
        constant: makes the buffer of a NumPy value.
        size: the bytes of a value on a device.
    """
    keep_freed_memory()
    slots = {v: i for i, v in enumerate(jaxpr.invars)}
    constants: list[Any] = []

    def slot(v: Var | Literal) -> int:
        if type(v) is Literal:      # a piece takes buffers only
            constants.append(constant(np.asarray(v.val, v.aval.dtype)))
            return -len(constants)
        return slots.setdefault(v, len(slots))
    last = {v: i for i, piece in enumerate(pieces) for v in piece.operands if type(v) is Var}
    last.update((v, len(pieces)) for v in jaxpr.outvars if type(v) is Var)
    made = {v for piece in pieces for v in piece.results}
    memory = {executable: executable.memory() for executable in dict.fromkeys(executables)}
    spent = {jaxpr.invars[i] for i in donated}
    ins, outs, given = (sum(map(size, vs)) for vs in (jaxpr.invars, jaxpr.outvars, spent))
    steps, held, peak = [], ins, 0
    for i, (piece, executable) in enumerate(zip(pieces, executables, strict=True)):
        operands, results = ([slot(v) for v in vs] for vs in (piece.operands, piece.results))
        free = [v for v in dict.fromkeys([*piece.operands, *piece.results])
                if type(v) is Var and last.get(v, i) == i]
        steps.append((executable, operands, results, [slots[v] for v in free]))
        held += sum(size(v) for v in piece.results)
        peak = max(peak, held + memory[executable].temp_size_in_bytes)
        held -= sum(size(v) for v in free if v in made or v in spent)
    out_slots = [slot(v) for v in jaxpr.outvars]
    alias = min(given, outs)
    code = sum(m.generated_code_size_in_bytes for m in memory.values())
    return Steps(steps, constants, len(slots) - len(jaxpr.invars), out_slots, frozenset(donated),
                 Memory(ins, outs, max(peak - ins - outs + alias, 0), code, alias))


@functools.cache
def keep_freed_memory() -> None:
    """Has glibc keep what is freed, up to 62 MiB, as it does once an array of 31 MiB was freed.

    It gives all but 256 KiB back to the system before that.  Between pieces much is free for a moment: a
    step of a GPT over 8 devices had 20,000 page faults, and took a fifth longer for it.
    """
    np.empty(31 << 20, np.uint8)    # not touched: it takes 10 us and no memory


class InBlocks:
    """What is the same of a program in pieces on one device and over several."""
    __slots__ = ()
    gives_back = True
    steps: Steps

    def run(self, buffers: Sequence[binding.Buffer]) -> list[binding.Buffer]:
        return self.steps.run(buffers)

    def memory(self) -> Memory:
        return self.steps.memory

    @property
    def pieces(self) -> list[tuple[Executable, int]]:
        return list(collections.Counter(executable for executable, *_ in self.steps.steps).items())


class BlockExecutable(InBlocks, Executable):
    """A program on one device, compiled in pieces."""
    __slots__ = ("steps",)

    def __init__(self, lowered: Lowered, device: binding.Device, steps: Steps) -> None:
        super().__init__(None, lowered, device, *compiled_in([e for e, *_ in steps.steps]))
        self.steps = steps

    def run(self, buffers: Sequence[binding.Buffer]) -> list[binding.Buffer]:
        device = self.device        # all is checked before the first piece deletes what it was given
        if any(b.is_deleted() or b._sharding._own._devices[0] != device for b in buffers):
            raise binding.JaxRuntimeError("an argument was deleted, donated, or is on another device")
        return super().run(buffers)


def compiled_in(executables: Iterable[Executable]) -> tuple[float, str | None]:
    """(the seconds that compiling these took, "" if all were on disk, each in a file of its own)."""
    different = dict.fromkeys(executables)
    return sum(e.compile_seconds for e in different), "" if all(e.from_disk for e in different) else None


def put_constant(value: Any, device: binding.Device) -> Any:
    """A constant on a device; on one of a topology, as it is."""
    return value if client.is_elsewhere(device) else array_impl.put(value, physical(aval_of(value)), device)


def in_blocks(kind: Any, lowered: Lowered, device: binding.Device, steps: Steps, *more: Any) -> Executable:
    """An Executable of one of these kinds.  JaxRuntimeError where the chips of a topology are too small."""
    if client.is_elsewhere(device):
        from ..devices import topology
        topology.check_memory(lowered.jaxpr.name, device, steps.memory)
        kind = topology.elsewhere(kind)
    return kind(lowered, device, steps, *more)


def _on_one_device(lowered: Lowered, jaxpr: Jaxpr, pieces: Sequence[Block], device: binding.Device,
                   compiler_options: Mapping[str, Any] | None) -> Executable:
    programs = _each_lowered(lowered, pieces)
    compiled = {program: compilation.compile_whole(alone, device, compiler_options, len(programs))
                for program, alone in programs.items()}
    return in_blocks(BlockExecutable, lowered, device, steps_of(
        jaxpr, pieces, [compiled[piece.program] for piece in pieces], lowered.donated,
        functools.partial(put_constant, device=device), bytes_of))


def _each_lowered(lowered: Lowered, pieces: Sequence[Block]) -> dict[Jaxpr, Lowered]:
    return {program: lower(program, platform=lowered.platform, blocks=lowered.blocks)
            for program in dict.fromkeys(piece.program for piece in pieces)}


def compiled_alone(lowered: Lowered) -> list[Lowered]:
    """The Lowered programs that XLA is given for this one: those of its pieces, or itself."""
    found = blocks_of(lowered)
    return list(_each_lowered(lowered, found[1]).values()) if found else [lowered]


def compile_lowered(lowered: Lowered, device: binding.Device,
                    compiler_options: Mapping[str, Any] | None = None) -> Executable:
    """An Executable for a Lowered program on one device, in pieces where that is better."""
    found = blocks_of(lowered)
    if found is None:
        return compilation.compile_whole(lowered, device, compiler_options)
    return _on_one_device(lowered, *found, device, compiler_options)
