"""What a program that has run has to say: indices out of bounds, failing kernels, operations that gave a NaN.

A program with checks that this file reads has what they find (`primitives/programs/checks.py`)
behind its results.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.config import config, state
from ...core.effects import Check
from ...core.jaxpr import Jaxpr
from ...lowering.lowered import Lowered, lower
from ...primitives.programs.checks import KernelError, NaNError, OOBError, error_of
from ...sharding.partition import Partition
from ...transforms.checks import exposed
from .. import binding
from ..array_impl import ArrayImpl
from ..devices import shards
from . import compilation, executable
from .executable import Executable

_TESTS = {"nan": np.isnan, "inf": np.isinf}
_OFF = "hlotrace.config.update('jax_debug_{}s', False) turns the check off."


def float_checks() -> tuple[str, ...]:
    """What debug_nans and debug_infs look for."""
    return tuple([what for what in _TESTS if config.read(f"jax_debug_{what}s")])


def lowered_to_tell(jaxpr: Jaxpr, kinds: tuple[str, ...], *, partition: Partition | None = None,
                    result_names: Sequence[Any] = (), lines: bool = True, **options: Any) -> Lowered:
    """The Lowered of a program that also gives what its checks find, where it has such as are on.

    Checks of `kinds` are added; those of the user's are not looked at.
    """
    program, failures = jaxpr, None
    if kinds or any(type(e) is Check for e in jaxpr.effects):
        program, failures = exposed(jaxpr, kinds, (OOBError, KernelError, NaNError))
    if failures:
        avals = failures.avals
        result_names = result_names and [*result_names, *[None] * len(avals)]
        if partition:       # every device has them
            from .spmd import chosen
            partition = partition._replace(outs=(*partition.outs, *[
                chosen(None, a, partition.devices, partition.mesh) for a in avals]))
    lowered = lower(program, partition=partition, result_names=result_names, **options)
    lowered.failures, lowered.lines = failures, lines
    return lowered


def compile_lowered(lowered: Lowered, device: binding.Device,
                    compiler_options: Mapping[str, Any] | None = None) -> Executable:
    """An Executable for a Lowered program on one device, or on those of its partition, of which `device` is
    one."""
    if config.jax_dump_ir_to:
        from . import dumps
        dumps.write(lowered)
    if lowered.partition:
        from . import sharded_blocks
        return sharded_blocks.compile_lowered(lowered, device, compiler_options)
    if not lowered.blocks:
        return compilation.compile_whole(lowered, device, compiler_options)
    from . import blocks  # a program that repeats nothing needs none
    return blocks.compile_lowered(lowered, device, compiler_options)


def looked_at(made: Executable, buffers: Sequence[binding.Buffer], outs: list[Any]) -> list[Any]:
    """The results among `outs`, what an Executable gave for `buffers`.

    IndexError for an index out of bounds; ValueError for what a kernel may not do; FloatingPointError where
    debug_nans or debug_infs finds in a result what it looks for.
    """
    failures, found = made.lowered.failures, None
    if failures:
        found, outs = failures.failed(outs[-len(failures.avals):]), outs[:-len(failures.avals)]
        if found and found[0].kind is not NaNError:
            raise error_of(_placed(found[0], made), found[1])
    wanted = float_checks()
    for i, x in enumerate(outs):
        for value in shards.held(x) if wanted and dtypes.is_inexact(x.dtype) else ():
            for what in _held(value, wanted):
                raise _invalid(made, i, what, found or _found_again(made, buffers, wanted))
    return outs


def _held(value: Any, wanted: Sequence[str]) -> list[str]:
    value = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
    return [what for what in wanted if _TESTS[what](value).any()]


def check_value(value: Any, maker: str) -> None:
    """Check a NumPy value that `maker`, which is no program, makes an array of, as results are checked.
    FloatingPointError where debug_nans or debug_infs finds in it what it looks for."""
    for what in _held(value, float_checks()) if dtypes.is_inexact(value.dtype) else ():
        raise FloatingPointError(f"invalid value ({what}) encountered in {maker}. {_OFF.format(what)}")


executable.looked_at = looked_at


def _found_again(made: Executable, buffers: Sequence[binding.Buffer], kinds: tuple[str, ...]) -> Any:
    """What failed first in a program that ran without checks: it runs again with them.  None if nothing."""
    lowered = made.lowered
    if lowered.failures or getattr(made, "company", None):      # other processes would have to run it too
        return None
    again = lowered_to_tell(lowered.jaxpr, kinds, platform=lowered.platform, partition=lowered.partition)
    if again.failures is None:
        return None
    checked = compile_lowered(again, made.device)
    outs = [ArrayImpl(a, b) for a, b in zip(checked.out_avals, checked.run(buffers))]
    return again.failures.failed(outs[len(made.out_avals):])


def _invalid(made: Executable, i: int, what: str, found: Any) -> FloatingPointError:
    """The error for a NaN or an infinity in output `i`."""
    where = f"output {i} of {made.lowered.jaxpr.name}"
    if found:
        failure = _placed(found[0], made)
        said = failure.words(found[1]) + (failure.line and f" at {failure.line}; {where} holds one")
    else:
        said = (f"invalid value ({what}) encountered in {where}; none of its operations gives one, so an "
                "argument or a constant holds it")
    return FloatingPointError(f"{said}. {_OFF.format(what)}")


def _placed(failure: Any, made: Executable) -> Any:
    """A failure with its line: outside of compiled functions, for a derivative that of what is derived."""
    return failure if made.lowered.lines else dataclasses.replace(failure, source=state.source)
