"""A whole program as StableHLO text, and what is needed to compile and call it."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.config import config, uncollected
from ..core.effects import is_ordered
from ..core.jaxpr import Jaxpr
from ..core.platforms import platform_named
from ..sharding.partition import Partition
from ..transforms.discharge import thread_tokens
from .module import Module, plain
from .outline import Block, outline
from .result_memory import attributes


class Lowered:
    """The text of a program and what is needed to compile and call it.

    `callbacks` are the Python functions its custom calls refer to, `inspections` those that compiling it
    calls; `jaxpr` is the program as it was written, with calls of the `blocks` that outlining found;
    `donated` are the positions of inputs whose buffers it may reuse; `partition` says how it is divided over
    devices, None for a program of one device; `targets` are the kernels that it calls by name, each once.
    `failures` are the Failures that its last results report (`primitives/programs/checks.py`), None where
    those are results like the others; `lines`: do equations know their lines in the user's program, or is it
    one program for all calls of an operation?
    """
    __slots__ = ("text", "callbacks", "inspections", "jaxpr", "blocks", "donated", "ordered", "effects",
                 "platform", "partition", "targets", "failures", "lines")

    def __init__(self, text: str, callbacks: list[Any], jaxpr: Jaxpr, blocks: list[Block],
                 donated: Sequence[int], platform: Any, partition: Partition | None = None,
                 inspections: Sequence[Any] = (), targets: Iterable[str] = ()) -> None:
        self.text, self.callbacks, self.jaxpr = text, callbacks, jaxpr
        self.platform: Any = platform_named(platform)
        self.targets = tuple(targets)
        self.blocks, self.donated, self.partition, self.inspections = blocks, donated, partition, inspections
        self.failures: Any = None
        self.lines = True
        self.effects = tuple(e for e in jaxpr.effects if e.at_run_time)
        self.ordered = is_ordered(jaxpr.effects)

    def outlined(self, thin: bool = True) -> tuple[Jaxpr, list[Block]]:
        """(the program with calls of what it repeats, these Blocks).

        The text of a program over devices has none: there, calls would keep XLA from joining the collectives
        of different blocks.  For these programs `thin` is as for `outline`.
        """
        again = self.partition and config.hlotrace_outline
        return outline(self.jaxpr, thin) if again else (self.jaxpr, self.blocks)

    @property
    def kernels(self) -> list[str]:
        """Those of its targets that have to be registered with XLA."""
        return [target for target in self.targets if target not in self.platform.built_in]


def lower(jaxpr: Jaxpr, *, platform: str = "cpu", donated: Sequence[int] = (), debug_info: bool = True,
          result_names: Sequence[str] = (), blocks: list[Block] | None = None,
          partition: Partition | None = None, kind: Callable[..., Module] = Module) -> Lowered:
    """StableHLO for a program without constvars and dead code (see `core.jaxpr.close` and `dce`).

    Args:
        donated: the positions of inputs whose buffers the program may reuse.
        debug_info: are locations written?
        result_names: what to call the results, for people; may be empty.
        blocks: what outlining found, for a piece of a program that is outlined already.
        partition: how it is divided over devices; None for one device.
        kind: makes the Module.
    """
    with uncollected():
        return _lower(jaxpr, platform, donated, debug_info, result_names, blocks, partition, kind)


def _lower(jaxpr: Jaxpr, platform: Any, donated: Sequence[int], debug_info: bool, result_names: Sequence[str],
           blocks: list[Block] | None, partition: Partition | None, kind: Callable[..., Module]) -> Lowered:
    if blocks is None:
        jaxpr = thread_tokens(jaxpr)
        jaxpr, blocks = outline(jaxpr) if config.hlotrace_outline and not partition else (jaxpr, [])
    platform = platform_named(platform)
    name = re.sub("[^A-Za-z0-9_.-]", "_", f"jit_{jaxpr.name}").rstrip("_")
    module = kind(name, platform, debug_info, {b.jaxpr for b in blocks}, partition)
    if partition:       # the compiler decides the shardings of results, and whose memory they take
        arg_attrs = ["jax.buffer_donor = true" if i in donated else "" for i in range(len(jaxpr.invars))]
    else:
        arg_attrs = attributes(jaxpr, donated)
    result_attrs = [f'jax.result_info = "{name}"' if name and plain(name) else "" for name in result_names]
    if partition:
        ins, outs = ([s or None for s in given] for given in (partition.ins, partition.outs))
        module.input_shardings = dict(zip(jaxpr.invars, ins, strict=True))
        arg_attrs = _joined(arg_attrs, module.memory_kinds(partition.ins), module.layouts(partition.ins),
                            module.attributes(ins, jaxpr.in_avals))
        result_attrs = _joined(result_attrs or [""] * len(jaxpr.outvars), module.memory_kinds(partition.outs),
                               module.layouts(partition.outs), module.result_attributes(outs, jaxpr))
    module.write("main", jaxpr, "public", arg_attrs, result_attrs, stack=f"jit({jaxpr.name})")
    return Lowered(module.text(), module.callbacks, jaxpr, blocks, donated, platform, partition,
                   module.inspections, module.targets)


def _joined(*columns: Sequence[str]) -> list[str]:
    return [", ".join(filter(None, row)) for row in zip(*columns, strict=True)]
