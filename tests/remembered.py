"""What a check found in a file of source: looked for again only where the file, or the check, is another."""
import contextlib
import hashlib
import inspect
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import syntax


def found(check: Callable[..., Iterable[Any]], path: Path, *args: Any) -> list[Any]:
    """`list(check(path, *args))`, whose items JSON can write and which reads no other file than `path`.

    It is kept beside the programs that tests compiled, where these are.
    """
    folder = os.environ.get("HLOTRACE_TEST_PROGRAMS")
    if not folder:
        return list(check(path, *args))
    asked = [sys.version, check.__qualname__, str(path), repr(args)]
    sources = [Path(file).read_bytes() for file in (inspect.getfile(check), syntax.__file__, path)]
    name = hashlib.sha256(b"\0".join([json.dumps(asked).encode(), *sources])).hexdigest()
    kept = Path(folder) / "checks" / name
    try:
        return json.loads(kept.read_bytes())
    except (OSError, ValueError):
        result = list(check(path, *args))
    with contextlib.suppress(OSError):      # where another user keeps them, say
        kept.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=kept.parent, delete=False) as file:
            json.dump(result, file)
        os.replace(file.name, kept)         # another worker may have written the same
    return result
