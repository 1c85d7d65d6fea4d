"""What is kept of a compiled function; its programs with what it takes to call them on leaves."""
from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.caches import ContextCache, LRUCache, WeakCache
from ..core.config import config, state
from ..core.dtypes import float0
from ..core.pytrees import pytree
from ..core.source_info import is_package, user_frame
from ..core.trace import EVAL
from ..primitives.programs.calls import jit_p
from ..runtime.array_impl import ArrayImpl, as_array, own
from ..runtime.binding import JaxRuntimeError
from ..runtime.devices import client, transfer
from ..runtime.executables import ready
from .flat import TracedProgram

_LEAF = pytree.tree_structure(0)
WRONG_DEVICE = object()        # in place of results: the arguments ask for another device than the program's


class FunctionCaches:
    """What is kept of a function, shared by all `jit(fun)` with the same options."""
    __slots__ = ("traces", "calls", "fast_path", "history")

    def __init__(self) -> None:
        self.traces = ContextCache(4096)      # (structure, avals, statics) -> Traced
        # the same -> the Call to try first; that and where it runs -> Call
        self.calls = ContextCache(4096)
        # types as `JitFunction.__call__` sees them first -> a simple Call
        self.fast_path = LRUCache(4096)
        self.history = LRUCache()        # of traces, under None; see `note`

    def clear(self) -> None:
        for table in (self.traces, self.calls, self.fast_path, self.history):
            table.clear()

    def note(self, jitted: Any, types: Any, requested: bool) -> None:
        """Keep what `why_retraced` says of a trace, and log what matters unless the user `requested` it."""
        fun, where, history = jitted._fun, user_frame(), self.history.get(None)
        code = getattr(inspect.unwrap(getattr(fun, "func", fun)), "__code__", None)
        if code is not None and is_package(code.co_filename):
            return      # of a library that asked not to be taken for the user
        if history is not None:
            from ..inspection import retraces
            self.history.keep(None, retraces.retraced(jitted, history, types, where, requested))
            return
        self.history.keep(None, (types, where))
        if config.jax_explain_cache_misses:
            from ..inspection import retraces
            if retraces.log_as_jax is not None:
                retraces.log_as_jax(jitted, None, types, where, bool(code and _traced_codes.get(code)))
        if code is not None and state.trace is EVAL and not requested:
            number = hash((getattr(fun, "__code__", None), jitted._options, types))
            counts: dict[Any, Any] = _traced_codes.get(code) or _traced_codes.keep(code, {})
            if counts:
                from ..inspection import retraces
                retraces.another_function(jitted, counts, number, types, where)
            else:
                counts[number] = 1


CACHES = WeakCache(FunctionCaches)
# code object -> how often it was traced first for which types; see `FunctionCaches.note`
_traced_codes = LRUCache(1024)


class CompiledCall:
    """A compiled program ready to be called with the leaves of the arguments.

    It takes its constants and those leaves whose positions are in `kept`, of which `donated` are given away.
    If `commits`, its results are committed to its device, whether or not an argument is.
    """
    __slots__ = ("executable", "consts", "kept", "all_kept", "donated", "out_tree", "single", "float0s",
                 "commits")

    def __init__(self, executable: Any, consts: Sequence[Any], kept: list[int], donated: tuple[int, ...],
                 traced: TracedProgram, commits: bool = False) -> None:
        self.commits = commits
        self.executable, self.consts, self.kept, self.donated = executable, consts, kept, donated
        self.all_kept = not consts and kept == list(range(traced.in_tree.num_leaves))
        self.out_tree = traced.out_tree
        self.single = self.out_tree == _LEAF
        # of these results, whose types have one value, NumPy arrays are returned
        self.float0s = [i for i, a in enumerate(executable.out_avals) if a.dtype == float0]

    def taken(self, leaves: Sequence[Any]) -> Sequence[Any]:
        """What the program takes, of the leaves of the arguments."""
        return leaves if self.all_kept else [*self.consts, *[leaves[i] for i in self.kept]]

    def inputs(self, buffers: Sequence[Any]) -> Sequence[Any]:
        """As `taken`, of buffers, where something is left out or constants are added."""
        kept = [buffers[i] for i in self.kept]
        return [*[c._buf for c in self.consts], *kept] if self.consts else kept

    def __call__(self, leaves: Sequence[Any]) -> Any:
        leaves = self.taken(leaves)
        for i in self.donated:
            if type(leaves[i]) is not ArrayImpl:
                leaves = [*leaves[:i], own(leaves[i]), *leaves[i + 1:]]
        executable = self.executable
        try:
            try:
                buffers = [x._buf for x in leaves if not x._committed]
            except AttributeError:      # a NumPy value or a Python number
                if self._takes_operands(leaves):
                    try:
                        found = executable.run_operands(*leaves)
                    except ValueError:      # jaxlib's dispatch, of an array that is donated twice
                        return self.call_checked(leaves)
                    self._mark_given(leaves)
                    return self.returned(executable.wrapped(found, self.commits))
                leaves = [as_array(x) for x in leaves]
                buffers = [x._buf for x in leaves if not x._committed]
            if len(buffers) != len(leaves) or not all(map(executable.has_there, leaves, range(len(leaves)))):
                return self.call_checked(leaves)
            results = executable(buffers, self.commits)
        except JaxRuntimeError:
            return self.call_checked(leaves)      # a deleted argument, or one on another device
        self._mark_given(leaves)
        return self.returned(results)

    def _takes_operands(self, leaves: Sequence[Any]) -> bool:
        """Does jaxlib's dispatch bring the NumPy values and numbers among these to where the program runs?"""
        executable = self.executable
        if executable.execute is None or state.check_floats or (
                executable.device is not client.default_device()):
            return False
        return all([type(x) is not ArrayImpl or not x._committed and executable.has_there(x, i)
                    for i, x in enumerate(leaves)])

    def mark_given(self, leaves: Sequence[Any]) -> None:
        """Mark the arrays among the leaves of the arguments, or None, that were given away."""
        self._mark_given(self.taken([x for x in leaves if x is not None]))

    def _mark_given(self, taken: Sequence[Any]) -> None:
        for i in self.donated:
            # otherwise no result could take its memory, or a copy of it was given away
            if type(taken[i]) is ArrayImpl and taken[i]._buf.is_deleted():
                taken[i].mark_deleted()

    def returned(self, results: list[Any]) -> Any:
        """What the function returns, of the results of its program."""
        for i in self.float0s:
            results[i] = np.zeros(results[i].shape, float0)
        return results[0] if self.single else self.out_tree.unflatten(results)

    def in_place(self, leaves: Sequence[Any]) -> bool | None:
        """As `ready.in_place`; None, too, where the memory of a number is given away."""
        leaves = self.taken(leaves)
        if self.float0s or not all([type(leaves[i]) is ArrayImpl for i in self.donated]) or not all(
                [type(c) is ArrayImpl for c in self.consts]):
            return None
        committed = ready.in_place(self.executable, leaves)
        return committed if committed is None else committed or self.commits

    def call_checked(self, leaves: Sequence[Any]) -> Any:
        """The slow road: every argument is looked at.  WRONG_DEVICE if one is committed elsewhere."""
        taken = self.executable.take(leaves)
        if taken is None:
            return WRONG_DEVICE
        buffers, committed = taken
        try:
            results = self.executable(buffers, committed or self.commits)
        except JaxRuntimeError as error:
            from ..inspection.planning import lowered_estimates  # few programs run out of memory
            raise lowered_estimates.exhausted(self.executable, error) from None
        self._mark_given(leaves)
        return self.out_tree.unflatten(results)


class StatefulCall:
    """A call of a program that uses Refs from outside: their values are threaded through it each time."""
    __slots__ = ("traced",)
    executable = None

    def __init__(self, traced: TracedProgram) -> None:
        self.traced = traced

    def __call__(self, leaves: Sequence[Any]) -> Any:
        traced, shift = self.traced, len(self.traced.consts)
        donated = tuple([i + shift for i in traced.donated])
        results = jit_p.bind(*traced.consts, *leaves, jaxpr=traced.closed, donated=donated)
        return traced.out_tree.unflatten(results)


class PartitionedCall(CompiledCall):
    """A program over several devices; `committed` marks arguments whose shardings it was compiled for."""
    __slots__ = ("committed",)

    def __init__(self, *args: Any, committed: list[bool]) -> None:
        super().__init__(*args)
        self.committed = committed

    def __call__(self, leaves: Sequence[Any]) -> Any:
        leaves = self.taken(leaves)
        return self.call_checked(leaves) if self._are_committed(leaves) else WRONG_DEVICE

    def in_place(self, leaves: Sequence[Any]) -> Any:
        return super().in_place(leaves) if self._are_committed(self.taken(leaves)) else None

    def _are_committed(self, leaves: Sequence[Any]) -> bool:
        return all([type(x) is ArrayImpl and x._committed for x, committed in zip(leaves, self.committed)
                    if committed])


def call_of(executable: Any, where: Any, requested: Any, traced: TracedProgram, commits: bool,
            fixed: bool = True) -> CompiledCall:
    """The CompiledCall of a program compiled for a device or a Partition; `requested`: `device_assignment`'s.

    If `commits`, its results are committed, whatever its arguments are.  If `fixed`, it is only for arguments
    that are committed as those were for which it was compiled.
    """
    _, consts, kept, donated = traced.pruned()
    consts = [transfer.move(c, executable.in_shardings[i]) if type(c) is ArrayImpl and c._committed
              and not executable.has_there(c, i) else c for i, c in enumerate(consts)]
    ins = getattr(where, "ins", None)       # of a Partition
    if ins is None:
        return CompiledCall(executable, consts, kept, donated, traced, commits)
    return PartitionedCall(executable, consts, kept, donated, traced, committed=[
        fixed and s is not None and (requested is None or requested[i] is None) for i, s in enumerate(ins)])
