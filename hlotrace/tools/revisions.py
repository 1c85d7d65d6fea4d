"""Functions as they were in another revision of a git repository."""
import io
import subprocess
import sys
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path

from hlotrace.tools.command_line import UsageError, load

PREFIX = "git:"


def _git(folder, *arguments):
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=False)
    except FileNotFoundError as error:
        raise UsageError("--diff git:REVISION needs git, which is not installed") from error
    if done.returncode:
        raise UsageError(f"--diff: git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


@contextmanager
def function_at(reference, function):
    """(the function, what turns a place in its files into one that says the revision).

    Args:
        reference: `git:REVISION`, for the same function, or `git:REVISION:path/file.py:function`, the path as
            it is written from the working directory.
        function: what is compared with it, `path/file.py:function`.
    """
    revision, _, other = reference.removeprefix(PREFIX).partition(":")
    path, colon, name = (other or function).rpartition(":")
    if not (revision and colon and path.endswith(".py")):
        raise UsageError(f"--diff {reference!r}: want git:REVISION where the function is path/file.py:name, "
                         "or git:REVISION:path/file.py:name")
    folder = Path(path).resolve().parent
    while not folder.is_dir():      # the revision may have folders that there are no longer
        folder = folder.parent
    root = Path(_git(folder, "rev-parse", "--show-toplevel").decode().strip())
    if not Path(path).resolve().is_relative_to(root):
        raise UsageError(f"--diff {reference!r}: {path} is not in the repository {root}")
    inside = Path(path).resolve().relative_to(root)
    archive = _git(root, "archive", "--format=tar", revision)
    with tempfile.TemporaryDirectory(prefix="hlotrace-diff-") as copy:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(copy, filter="data")
        if not Path(copy, inside).is_file():
            raise UsageError(f"--diff {reference!r}: revision {revision} has no {inside}")
        with _without_modules_of(root, copy):
            yield load(f"{copy}/{inside}:{name}", "--diff"), lambda place: place.replace(
                f"{copy}/", f"{revision}:")


@contextmanager
def _without_modules_of(root, copy):
    """What the repository's files import is imported anew, from the other revision."""
    def below(module, folder):
        file = getattr(module, "__file__", None)
        return file is not None and Path(file).resolve().is_relative_to(Path(folder).resolve())
    ours = {name: module for name, module in sys.modules.items()
            if below(module, root) and name.partition(".")[0] != "hlotrace"}
    path = list(sys.path)
    for name in ours:
        del sys.modules[name]
    sys.path[:] = [str(copy) if Path(entry).resolve() == root.resolve() else entry for entry in path]
    try:
        yield
    finally:
        for name in [name for name, module in sys.modules.items() if below(module, copy)]:
            del sys.modules[name]
        sys.modules.update(ours)
        sys.path[:] = path
