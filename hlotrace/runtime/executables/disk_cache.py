"""Compiled programs kept in a directory, where the next process finds them.

A file is named after the program, as JAX's are, and what the machine code depends on: its text without names
of lines, arguments and results, jaxlib, the compile options (XLA_FLAGS and the device's number are among
them), the device and the CPU.  It holds three lines (format, SHA-256 of what follows, a description in JSON)
and jaxlib's bytes.
Nothing is unpickled, and jaxlib sees no byte before the checksum has been compared: it crashes on damaged
ones, or computes something else.

Processes share a directory without locks.  A file appears whole (os.replace) or not at all, and one that
another process evicts is a miss.  Whatever goes wrong is a warning, and the program is compiled.
"""
from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ...core.config import config
from .. import binding

_FORMAT = b"hlotrace executable 3\n"
_MODULE = re.compile(r"module @([\w.-]{1,100})")
_ENTRY = re.compile(r"([\w.-]{1,100}-)?[0-9a-f]{64}(-cache|\.xla)")      # .xla: of versions up to 0.1
_TEMPORARY = re.compile(r"[0-9a-f]{64}\.\d+-\d+\.tmp")
_UNLIMITED = 1 << 28         # bytes after which abandoned files are looked for where there is no limit
_ABANDONED = 3600            # seconds after which a file that was never finished is removed
# What names lines, arguments and results.  A string of MLIR ends on the line where it begins, so the first
# two are not inside of one; the other two are whole strings, and lowering lets no quote into them.
_NAMES = re.compile(r' loc\(#loc\d+\)$|^#loc.*\n| loc\("[^"\\\n]*"\)| \{jax\.result_info = "[^"\\\n]*"\}',
                    re.MULTILINE)
_warned: set = set()         # directories that could not be used
# (directory, limit) -> bytes that this process may write before it lists the directory
_room: dict = {}


class Damaged(Exception):
    """A file is not what it was when it was written."""


def directory() -> str | None:
    """Where the programs are, whether it exists or not; None if they are not kept."""
    chosen = config.jax_compilation_cache_dir
    if not config.jax_enable_compilation_cache or chosen == "":
        return None
    if chosen is not None:
        return os.path.abspath(chosen)
    caches = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(caches):
        caches = os.path.expanduser({"darwin": "~/Library/Caches", "win32": "~/AppData/Local"}.get(
            sys.platform, "~/.cache"))
    return os.path.join(caches, "hlotrace") if os.path.isabs(caches) else None      # no home: ~ stays


def entry(text: str, devices: Sequence[binding.Device], options: Any) -> Entry | None:
    """The Entry of a program, whether its file exists or not; None if programs are not kept."""
    where = directory()
    module = _MODULE.match(text)
    prefix = f"{module[1]}-" if module else ""
    if where is None:
        return None
    return Entry(where, key_of(text, devices[0], options), devices, options, prefix, _lines_of(text))


def key_of(text: str, device: binding.Device, options: Any) -> str:
    """The name of all that the machine code of a program depends on."""
    parts = [_FORMAT, binding.jaxlib_version.encode(), _machine(), device.platform.encode(),
             device.device_kind.encode(), device.client.platform_version.encode(),
             options.SerializeAsString(), (text if config.jax_compilation_cache_include_metadata_in_key
                                           else _NAMES.sub("", text)).encode()]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d:%b" % (len(part), part))
    return digest.hexdigest()


@functools.cache
def _machine() -> bytes:
    """What XLA may know of the processor: its model and features, and how many cores this process may use."""
    known = [sys.platform, platform.machine(),
             str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())]
    try:
        with open("/proc/cpuinfo") as file:
            for line in iter(file.readline, "\n"):       # the first core, up to the blank line
                if not line:
                    break
                name, _, value = line.partition(":")
                if name.strip() in ("vendor_id", "cpu family", "model", "model name", "flags", "Features",
                                    "CPU implementer", "CPU architecture", "CPU variant", "CPU part"):
                    known.append(value.strip())
    except OSError:
        known += [platform.processor(), platform.node()]     # features are not known: this host alone
    return "\n".join(known).encode()


class Entry:
    """The file of one program."""

    def __init__(self, where: str, key: Any, devices: Sequence[binding.Device], options: Any,
                 prefix: str = "", lines: str = "") -> None:
        self.where, self.key, self.devices, self.options, self.lines = where, key, devices, options, lines
        self.device = devices[0]
        self.path = os.path.join(where, f"{prefix}{key}-cache")
        self.seconds = 0.0          # that compiling took whoever wrote what was loaded

    def load(self, takes: int | None = None, gives: int | None = None) -> binding.LoadedExecutable | None:
        """jaxlib's executable from the file, with as many arguments and results as is said, or None."""
        def deserialized(payload: bytes) -> binding.LoadedExecutable:
            loaded = self.device.client.deserialize_executable(payload, binding.DeviceList(self.devices),
                                                               self.options)
            found = len(loaded.get_parameter_layouts()), len(loaded.get_output_layouts())
            if takes is not None and found != (takes, gives):
                raise Damaged("it holds the code of another program")
            return loaded
        return self._read(deserialized)

    def load_facts(self) -> bytes | None:
        """What `store_facts` wrote, or None."""
        return self._read(lambda payload: payload)

    def _read(self, use: Callable[[bytes], Any]) -> Any:
        """`use(what is in the file)`, or None."""
        try:
            metadata, payload = read(self.path)
            if metadata.get("key") != self.key:
                raise Damaged("it holds another program")
            self.seconds = metadata.get("compile_seconds", 0.0)
            loaded = use(payload)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self._unusable("read from", error)
            return None
        except (Damaged, binding.JaxRuntimeError) as error:
            if config.jax_raise_persistent_cache_errors:
                raise RuntimeError(f"the compiled program in {self.path} cannot be used: {error}") from error
            warnings.warn(f"the compiled program in {self.path} cannot be used ({error}); the file is "
                          "removed and the program compiled again.", RuntimeWarning, stacklevel=4)
            with contextlib.suppress(OSError):
                os.unlink(self.path)
            return None
        with contextlib.suppress(OSError):
            os.utime(self.path)          # the time of the last use is what eviction goes by
        return loaded

    def store(self, loaded: binding.LoadedExecutable, name: str, seconds: float, pieces: int = 1) -> None:
        """Write an executable that took `seconds` to compile, if the options say that it is worth it.

        One of several `pieces` of a program is worth it if so many as it would be.
        """
        if seconds * pieces < config.jax_persistent_cache_min_compile_time_secs:
            return
        try:
            payload = self.device.client.serialize_executable(loaded)
        except binding.JaxRuntimeError as error:
            self._unusable("written to", error)
            return
        self.store_facts(payload, name, seconds)

    def store_facts(self, payload: bytes, name: str, seconds: float) -> None:
        """Write what is to be known of a program that took `seconds` to compile, in place of the program."""
        metadata = {"name": name, "key": self.key, "lines": self.lines, "jaxlib": binding.jaxlib_version,
                    "platform": self.device.platform, "device_kind": self.device.device_kind,
                    "size": len(payload), "compile_seconds": round(seconds, 3), "created": time.time()}
        body = json.dumps(metadata).encode() + b"\n" + payload
        data = _FORMAT + hashlib.sha256(body).hexdigest().encode() + b"\n" + body
        limit = config.jax_compilation_cache_max_size
        if len(payload) < config.jax_persistent_cache_min_entry_size_bytes or 0 <= limit < len(data):
            return
        temporary = os.path.join(self.where, f"{self.key}.{os.getpid()}-{threading.get_ident()}.tmp")
        try:
            os.makedirs(self.where, mode=0o700, exist_ok=True)
            try:
                with open(temporary, "wb") as file:
                    file.write(data)
                os.replace(temporary, self.path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
            _make_room(self.where, limit, len(data))
        except (OSError, ValueError) as error:
            self._unusable("written to", error)

    def _unusable(self, what: str, error: Exception) -> None:
        """Say it once for each directory; raise it if jax_raise_persistent_cache_errors says so."""
        if config.jax_raise_persistent_cache_errors:
            raise RuntimeError(f"compiled programs cannot be {what} {self.where}: {error}") from error
        if self.where not in _warned:
            _warned.add(self.where)
            warnings.warn(f"compiled programs cannot be {what} {self.where} ({error}); compiling without. "
                          "Set jax_compilation_cache_dir to another directory, or to '' to keep none.",
                          RuntimeWarning, stacklevel=4)


def read(path: str) -> tuple[dict[str, Any], bytes]:
    """(description, jaxlib's bytes) of a file.  Damaged if a byte of it is not the one that was written."""
    with open(path, "rb") as file:
        data = file.read()
    start = len(_FORMAT) + 65
    if data[:len(_FORMAT)] != _FORMAT or len(data) < start:
        raise Damaged("it was not written by this version of hlotrace")
    body = memoryview(data)[start:]
    if hashlib.sha256(body).hexdigest().encode() + b"\n" != data[len(_FORMAT):start]:
        raise Damaged("its checksum does not match")
    end = data.find(b"\n", start)
    try:
        metadata = json.loads(data[start:end])
    except ValueError:
        metadata = None
    if end < 0 or not isinstance(metadata, dict):
        raise Damaged("it holds something else")
    return metadata, data[end + 1:]


def has_lines_of(path: str, text: str) -> bool:
    """Was the program in a file compiled from this text, with its names of lines, arguments and results?"""
    return (describe(path) or {}).get("lines") == _lines_of(text)


def _lines_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def describe(path: str) -> dict[str, Any] | None:
    """The description alone, unchecked; None where there is none that can be read."""
    try:
        with open(path, "rb") as file:
            if file.readline(100) == _FORMAT and file.readline(100):
                found = json.loads(file.readline(10_000))
                return found if isinstance(found, dict) else None
    except (OSError, ValueError):
        pass
    return None


def entries(where: str, pattern: re.Pattern[str] = _ENTRY) -> list[tuple[float, int, str]]:
    """[(time of last use, size, path)] of the programs in a directory, the one used longest ago first."""
    found = []
    with contextlib.suppress(FileNotFoundError), os.scandir(where) as files:
        for file in files:
            if pattern.fullmatch(file.name):
                with contextlib.suppress(FileNotFoundError):     # another process evicted it
                    status = file.stat()
                    found.append((status.st_mtime, status.st_size, file.path))
    return sorted(found)


def _make_room(where: str, limit: int, written: int) -> None:
    """Evict what is too much after so many bytes were written.

    Listing a directory of thousands of programs takes as long as compiling a small one, and asking for their
    sizes ten times that.  So it is listed when a quarter of what was free may have been written, as other
    processes write too; and nothing is asked where all may stay.
    """
    room = _room.get((where, limit), 0) - written
    if room < 0:
        for last_written, _, path in entries(where, _TEMPORARY):
            if last_written < time.time() - _ABANDONED:
                _remove(path)
        room = (limit - evict(where, limit)) // 4 if limit >= 0 else _UNLIMITED
    _room[where, limit] = room


def evict(where: str, limit: int) -> int:
    """Remove what was used longest ago until the programs take no more than `limit` bytes.  Returns how many
    bytes they take."""
    found = entries(where)
    taken = sum(size for _, size, _ in found)
    for _, size, path in found:
        if taken <= limit:
            break
        _remove(path)
        taken -= size
    return taken


def clear(where: str) -> tuple[int, int]:
    """Remove every program from a directory and nothing else; returns (how many, bytes)."""
    found = entries(where) + entries(where, _TEMPORARY)
    for _, _, path in found:
        _remove(path)
    return len(found), sum(size for _, size, _ in found)


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
