"""What processes tell each other so that they run the same programs: a digest of each, before it runs for the
first time.

A `Company` is the processes that hold the devices of a program.  Each counts what it starts there, so that
"the 7th" is the same thing to all.  What is new goes through the coordination service's key-value store, and
none starts it before all have said the same; what ran before is counted, and its digest mixed into one
number, which the first process of a company tells every second.  Who waits for long says so where the
others' watchdogs look (see processes.py): one of them that is further, and was not here, has started
something else.
"""
from __future__ import annotations

import hashlib
import itertools
import json
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...core import source_info
from ...core.config import config
from ...core.trace import Tracer
from .. import array_impl, binding
from ..devices import client

NEWS = "hlotrace/news/"     # + what + "/" + number of a process
_TRAIL = 1 << 12            # how many steps back a process knows what it had done until then
_SHOWN = 1 << 20            # characters of a program that differs, for the others to show where


def company_of(devices: Sequence[binding.Device]) -> Company | None:
    """The Company of the processes that hold these devices; None where they are not several with this one."""
    world = client.world
    if world is None:
        return None
    processes = tuple(sorted({d.process_index for d in devices if hasattr(d, "process_index")}))
    if len(processes) < 2 or world.process_id not in processes:
        return None
    return world.companies.setdefault(processes, Company(world, processes))


class Company:
    """Processes that run programs together: `count` is how many this one started, `last` the last's name."""

    def __init__(self, world: Any, processes: tuple[int, ...]) -> None:
        self._world, self.processes = world, processes
        self.key = hashlib.sha256(repr(processes).encode()).hexdigest()[:12]
        self.count, self.last = 0, ""
        self.met: set[int] = set()        # numbers of what was compared
        self.waits: str | None = None       # words for what the others are waited for with
        # at each number, modulo the length: all that was started until then, mixed
        self.trail = [0] * _TRAIL
        # (process, number, what its trail says) that this one has not reached
        self.unchecked: list[tuple[int, int, Any]] = []
        self.same_until = self.announced = 0
        self._known: set[str] = set()     # digests of programs that all have
        self._compared: str | None = None
        self._lock = threading.Lock()

    def start(self, executable: Any) -> None:
        """To be called before each launch.  RuntimeError, in all of them, where they are about to differ."""
        with self._lock:
            name, checked = executable.lowered.jaxpr.name, config.hlotrace_check_processes
            if executable.agreed is None and checked:
                text = re.sub(r" loc\(#loc\d+\)|^#loc.*\n", "", executable.lowered.text, flags=re.M)
                ids = [d.id for d in executable.devices]
                digest = _digest(f"{ids}{text}")
                executable.agreed = int(digest[:12], 16) if digest in self._known else None
            if executable.agreed is not None or not checked:
                self._step(name, executable.agreed if checked else 0)
                return
            types = ", ".join(a.str_short() for a in executable.lowered.jaxpr.in_avals)
            self._compare(name, f"runs {name}({types}) over devices {_few(ids)}", digest, text.splitlines)
            self._known.add(digest)
            executable.agreed = int(digest[:12], 16)

    def _step(self, name: str, mark: Any) -> None:
        number = self.count + 1
        self.trail[number % _TRAIL] = (self.trail[self.count % _TRAIL] * 1000003 ^ mark) & 0xFFFFFFFFFFFF
        self.count, self.last = number, name

    def at(self) -> tuple[int, Any]:
        """The count, and what was started until then."""
        number = self.count
        return number, self.trail[number % _TRAIL]

    def same(self, words: str, digests: Any, names: Callable[[], Iterable[str]]) -> None:
        """RuntimeError, in all of them, unless all give the same values: `digests` of them, and `names()` for
        words."""
        with self._lock:
            self._compare(words, f"calls {words}", _digest(words, *digests),
                          lambda: [f"{name} of digest {d[:16]}"
                                   for name, d in zip(names(), digests, strict=True)])

    def _compare(self, name: str, words: str, digest: str, lines: Any) -> None:
        number, connection = self.count + 1, self._world.client
        base = f"hlotrace/step/{self.key}/{number}/"
        line = source_info.describe(source_info.user_frame())
        self.met.add(number)        # before it is counted: a watchdog may look in between
        self._step(name, 0)
        says = json.dumps([self._world.process_id, words, f" at {line}" if line else ""])
        connection.key_value_set(f"{base}said/{digest}", says, allow_overwrite=True)
        if connection.key_value_increment(f"{base}count", 1) == len(self.processes):
            connection.key_value_set(f"{base}all", "here")
        else:
            self._wait(f"{base}all", number, words)
        said = sorted((*json.loads(says), key.rpartition("/")[2])
                      for key, says in connection.key_value_dir_get(f"{base}said/"))
        if len(said) > 1:
            each = ", ".join(f"process {i} {words}{at}" for i, words, at, _ in said)
            raise RuntimeError(
                f"The processes of the job differ: as number {number} of what processes "
                f"{_few(self.processes)} do together, {each}.{self._difference(base, digest, said, lines)} "
                "All of them must run the same programs, on the same devices in the same order, and lay out "
                "the same values. (config option hlotrace_check_processes)")
        # Who comes here has read what was said before.
        if self._compared is not None and self._world.process_id == self.processes[0]:
            connection.key_value_delete(self._compared)
        self._compared = base

    def _wait(self, key: Any, number: int, words: str) -> None:
        connection, announced = self._world.client, f"{NEWS}waiting/{self._world.process_id}"
        self.waits = words
        said = False
        try:
            while not _come(connection, key, 1.0):
                if not said:
                    connection.key_value_set(announced, json.dumps([self.processes, number, words]),
                                             allow_overwrite=True)
                    said = True
        finally:
            self.waits = None
            if said:
                connection.key_value_delete(announced)

    def _difference(self, base: str, digest: str, said: Any, lines: Any) -> str:
        """Where the texts of two differ that sound the same, in words."""
        (one, words, _, mine), (two, others, _, theirs) = said[:2]
        if words != others:
            return ""
        connection = self._world.client
        connection.key_value_set(f"{base}text/{digest}", "\n".join(lines())[:_SHOWN], allow_overwrite=True)
        if not all(_come(connection, f"{base}text/{d}", 5.0) for d in (mine, theirs)):
            return ""
        texts = [connection.key_value_try_get(f"{base}text/{d}").split("\n") for d in (mine, theirs)]
        found = next(((a, b) for a, b in itertools.zip_longest(*texts, fillvalue="") if a != b), None)
        if found is None:
            return ""
        a, b = (line.strip()[:200] for line in found)
        return f" They differ first in `{a}` of process {one} and `{b}` of process {two}."


def contradiction(world: Any, other: int, news: str) -> str | None:
    """Why what process `other` waits for will not come from this one, or None."""
    processes, number, words = json.loads(news)
    if world.process_id not in processes:
        return None
    company = world.companies.get(tuple(processes))
    differ = (f"the processes of the job differ: as number {number} of what processes {_few(processes)} do "
              f"together, process {other} {words}")
    if company is not None and company.count >= number:
        return None if number in company.met else (
            f"{differ}, and process {world.process_id} something that had run before; it is at number "
            f"{company.count}, "
            f"{company.last}")
    for mine in list(world.companies.values()):
        if mine is not company and other in mine.processes and (waits := mine.waits):
            return f"{differ}, and process {world.process_id} {waits}: each waits for the other"
    return None


def missed(world: Any, other: int, news: str) -> str | None:
    """What this process has started and process `other`, which is leaving, never will, in words; or None."""
    counts = json.loads(news)
    for company in list(world.companies.values()):
        number = counts.get(company.key, (0, 0))[0]
        if other in company.processes and company.count > number:
            return (f"process {other} has ended, by itself and without an error, when {number} programs had "
                    f"run on processes {_few(company.processes)}, and process {world.process_id} is at "
                    f"number {company.count}, {company.last}, which needs it")
    return strayed(world, other, news)


def strayed(world: Any, other: int, news: str) -> str | None:
    """Where this process has not started the same programs as process `other` in order, in words; or None."""
    counts = json.loads(news)
    for company in list(world.companies.values()):
        if company.key in counts and (said := (other, *counts[company.key])) not in company.unchecked:
            company.unchecked = [*company.unchecked, said][-8:]
        for who, number, trail in company.unchecked[:]:
            if number > company.count:
                continue
            company.unchecked.remove((who, number, trail))
            mine = company.trail[number % _TRAIL]
            if company.count - number >= _TRAIL - 1:        # it may be overwritten
                continue
            if mine != trail:
                return (f"the processes of the job differ: numbers {company.same_until + 1} to {number} of "
                        f"what processes {_few(company.processes)} do together were not the same, in the "
                        f"same order, in process {who} and process {world.process_id}, which is at number "
                        f"{company.count}, {company.last}. What they computed since may be wrong")
            company.same_until = max(company.same_until, number)
    return None


def counts(world: Any) -> str:
    """How far this process is with all its companies, for `missed` in others."""
    return json.dumps({company.key: company.at() for company in list(world.companies.values())})


def progress(world: Any) -> str | None:
    """The same of those of which this process is the first, for `strayed` in others; None where nothing is
    new."""
    led = [c for c in list(world.companies.values()) if c.processes[0] == world.process_id]
    if all(c.count == c.announced for c in led):
        return None
    found = {}
    for company in led:
        found[company.key] = company.at()
        company.announced = company.count
    return json.dumps(found)


def check_values(what: str, values: Sequence[Any], shardings: Sequence[Any], names: Any) -> None:
    """RuntimeError, in all processes, unless those that will hold a value give the same bits; `names()`: its.

    It costs a SHA-256 of the values, about a second for a gigabyte, and four messages to the coordination
    service.
    """
    if client.world is None or not config.hlotrace_check_processes:
        return
    groups: dict = {}
    for i, (x, sharding) in enumerate(zip(values, shardings, strict=True)):
        common = type(x) is array_impl.ArrayImpl and len({d.process_index for d in x.sharding._devices}) > 1
        if sharding is None or isinstance(x, Tracer) or common:     # several processes hold parts of it
            continue
        company = company_of(sharding._devices)
        if company is not None:
            groups.setdefault(company, []).append(i)
    for company, held in groups.items():
        types, found = zip(*[_typed_bytes(values[i]) for i in held])
        company.same(f"{what} of {', '.join(types[:8])}{', ...' if len(types) > 8 else ''}",
                     [_digest(t, v) for t, v in zip(types, found)],
                     lambda held=held: [name for i, name in enumerate(names()) if i in held])


def _typed_bytes(x: Any) -> tuple[str, np.ndarray]:
    """The type and the bytes of a value; of an array that another process holds, words that only the others
    say."""
    if type(x) is array_impl.ArrayImpl and not x.is_fully_addressable:
        return f"{x.aval.str_short()} that is not in process {client.process_index()}", np.zeros(0, np.uint8)
    value = x._numpy() if type(x) is array_impl.ArrayImpl else np.asarray(x)
    return (f"{value.dtype.name}[{','.join(map(str, value.shape))}]",
            np.ascontiguousarray(value).reshape(-1).view(np.uint8))


def _come(connection: Any, key: Any, seconds: float) -> bool:
    """Is there such a key, or within some seconds?"""
    try:
        connection.blocking_key_value_get(key, int(seconds * 1000))
    except binding.JaxRuntimeError as error:
        if "DEADLINE_EXCEEDED" not in str(error):
            raise
        return False
    return True


def _digest(*parts: Any) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(f"{part}\n".encode() if isinstance(part, str) else part)
    return found.hexdigest()


def _few(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (f", ... ({len(numbers)} of them)" if len(numbers) > 8 else "")
