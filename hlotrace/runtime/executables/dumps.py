"""Programs written to files as they are compiled: the options jax_dump_ir_to, jax_dump_ir_modes and
jax_include_debug_info_in_dumps.

`jax_ir0003_jit_f_compile.mlir` is the StableHLO, `jax_000003_f.jaxpr.txt` the program,
`jax_000003_f.eqn_count_pprof` how many equations come from each of the user's lines, for pprof.
"""
from __future__ import annotations

import gzip
import itertools
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ...core import source_info
from ...core.config import config
from ...core.jaxpr import Jaxpr, sub_jaxprs
from ...lowering.lowered import Lowered

_texts, _programs = itertools.count(), itertools.count()


def write(lowered: Lowered) -> None:
    """Write a Lowered into the directory that the option names; a warning where that cannot be done."""
    modes = config.jax_dump_ir_modes.split(",")
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", lowered.jaxpr.name)
    files = {}
    if "stablehlo" in modes:
        text = lowered.text if config.jax_include_debug_info_in_dumps else _LOCATIONS.sub("", lowered.text)
        files[f"jax_ir{next(_texts):04}_jit_{name}_compile.mlir"] = text.encode()
    if "jaxpr" in modes or "eqn_count_pprof" in modes:
        stem = f"jax_{next(_programs):06}_{name}"
        if "jaxpr" in modes:
            files[f"{stem}.jaxpr.txt"] = f"{lowered.jaxpr}\n".encode()
        if "eqn_count_pprof" in modes:
            files[f"{stem}.eqn_count_pprof"] = pprof(Counter(sources(lowered.jaxpr)))
    folder = config.jax_dump_ir_to
    if folder == "sponge":
        folder = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR", "")
    try:
        os.makedirs(folder, exist_ok=True)
        for file, data in files.items():
            with open(os.path.join(folder, file), "wb") as out:
                out.write(data)
    except OSError as error:
        warnings.warn(f"jax_dump_ir_to: {lowered.jaxpr.name} cannot be written to {folder!r}: {error}",
                      RuntimeWarning, stacklevel=source_info.user_stacklevel())


_LOCATIONS = re.compile(r' loc\(#loc\d+\)$|^#loc.*\n| loc\("[^"\\\n]*"\)', re.MULTILINE)


def sources(jaxpr: Jaxpr) -> Iterator[Any]:
    """(file, line, column, function) of each equation, with those of the programs in it."""
    for eqn in jaxpr.eqns:
        yield ("-", 0, 0, eqn.primitive.name) if eqn.source is None else source_info.position(eqn.source)
        for inner in sub_jaxprs(eqn.params):
            yield from sources(inner)


def pprof(counts: Mapping[Any, int]) -> bytes:
    """A profile for pprof, gzipped, of {(file, line, column, function): count}.

    The format is https://github.com/google/pprof/blob/main/proto/profile.proto.
    """
    strings = {"": 0}

    def text(s: str) -> int:
        return strings.setdefault(s, len(strings))
    parts = [_field(1, _field(1, text("equations")) + _field(2, text("count")))]
    for i, ((file, line, _, function), count) in enumerate(counts.items(), 1):
        parts += [_field(2, _field(1, i) + _field(2, count)),
                  _field(4, _field(1, i) + _field(4, _field(1, i) + _field(2, line))),
                  _field(5, _field(1, i) + _field(2, text(function)) + _field(4, text(file)))]
    return gzip.compress(b"".join([*parts, *(_field(6, s.encode()) for s in strings)]), mtime=0)


def _field(number: int, value: int | bytes) -> bytes:
    """A field of a protocol buffer: an integer, or bytes."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])
