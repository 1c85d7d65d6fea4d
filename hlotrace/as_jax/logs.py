"""What JAX's loggers say, in its words: whoever listens for them hears hlotrace."""
import inspect
import logging
from typing import Any

from ..core import source_info
from ..inspection import retraces
from ..runtime.executables import progress

_HEADINGS = {
    **dict.fromkeys(("structure", "static"), "different input pytree:"),
    **dict.fromkeys(("shape", "dtype", "weak"), "different input types:"),
    **dict.fromkeys(("option", "mesh", "axes"),
                    "Tracing context doesn't match, e.g. due to config or context manager.")}


def _difference(kind: str, text: str) -> str:
    name, _, change = text.partition(": ")
    before, arrow, now = change.partition(" -> ")
    if not arrow:
        return f"* at {text}"
    if kind in ("option", "mesh", "axes"):
        return f"* {name.removeprefix('option ')} differs: now {now} and before {before}"
    if kind in ("shape", "dtype", "weak"):
        before, now = (x.removeprefix("weak ") + f"{{weak_type={'weak' in x}}}" * (kind == "weak")
                       for x in (before, now))
    return f"* at {name}, now {now} and before {before}"


def _explain(jitted: Any, before: Any, now: Any, where: Any, seen: bool = False) -> None:
    code = getattr(inspect.unwrap(getattr(jitted._fun, "func", jitted._fun)), "__code__", None)
    defined = f"defined at {code.co_filename}:{code.co_firstlineno}" if code else "of unknown source"
    place = source_info.describe(where, with_column=True).replace(":0 (", " (")
    lines = [f"TRACING CACHE MISS at {place}:"]
    if before is None:
        lines += ["never seen function:", f"  {jitted._name} id={id(jitted._fun)} {defined}"]
        if seen:
            lines += ["but seen another function defined on the same line; maybe the function is",
                      "being re-defined repeatedly, preventing caching?"]
    else:
        lines += [f"for {jitted._name} {defined}",
                  "all previously seen cache keys differ. For the closest previous key:"]
        for kind, text in retraces.changes(jitted._fun, before, now):
            heading = _HEADINGS.get(kind, "closing over values of an outer transformation:")
            lines += [*[heading] * (heading not in lines), _difference(kind, text)]
    logging.getLogger("jax._src.interpreters.partial_eval").warning("%s", "\n  ".join(lines))


def install() -> None:
    """Speak as JAX's loggers do."""
    retraces.log_as_jax = _explain
    progress.loggers.update(dict.fromkeys(("traced", "lowered", "compiled"), "jax._src.dispatch"),
                            types="jax._src.interpreters.pxla")
