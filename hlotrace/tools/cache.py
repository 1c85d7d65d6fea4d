"""`hlotrace cache`: list, verify or clear the compiled programs that are kept on disk."""
import argparse
import sys
import time

from ..core.config import config
from ..runtime.executables import disk_cache


def _size(count):
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def _ago(then):
    seconds = max(0, time.time() - then)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def show(where):
    """One line a program, the one used last first."""
    found = disk_cache.entries(where)
    limit = config.jax_compilation_cache_max_size
    print(f"{where}: {len(found)} programs, {_size(sum(size for _, size, _ in found))}"
          f" of {'any size' if limit < 0 else _size(limit)}")
    row = "{:<32} {:>8} {:>8} {:>9} {:>8} {:>10}  {}".format
    if found:
        print(row("name", "size", "age", "last use", "compile", "jaxlib", "file"))
    for used, size, path in reversed(found):
        about = disk_cache.describe(path) or {}
        created, seconds = about.get("created"), about.get("compile_seconds")
        print(row(about.get("name", "(cannot be read)"), _size(size), _ago(created) if created else "?",
                  _ago(used), f"{seconds:.3g} s" if seconds is not None else "?", about.get("jaxlib", "?"),
                  path[len(where) + 1:][:12]))


def verify(where):
    """Compare every checksum; 1 if a file is damaged."""
    found, bad = disk_cache.entries(where), 0
    for _, _, path in found:
        try:
            disk_cache.read(path)
        except (OSError, ValueError, disk_cache.Damaged) as error:
            bad += 1
            print(f"damaged: {path}: {error}")
    print(f"{where}: {len(found) - bad} of {len(found)} programs are as they were written")
    return int(bool(bad))


def clear(where):
    """Remove them all."""
    count, size = disk_cache.clear(where)
    print(f"{where}: removed {count} programs, {_size(size)}")


def main(arguments=None):
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="hlotrace cache", description=__doc__.partition(": ")[2])
    commands = parser.add_subparsers(title="commands", dest="command", required=True)
    for command, text in ((show, "say where they are, and name, size, age and last use of each"),
                          (verify, "compare every checksum; status 1 if a file is damaged"),
                          (clear, "remove them all")):
        name = "list" if command is show else command.__name__
        commands.add_parser(name, help=text, description=text).set_defaults(run=command)
    run = parser.parse_args(arguments).run
    where = disk_cache.directory()
    if where is None:
        print("compiled programs are not kept: jax_enable_compilation_cache is off, "
              "jax_compilation_cache_dir is '', or there is no home directory")
        return 0
    try:
        return run(where) or 0
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
