"""Write hlotrace/core/surface/missing_names.py: names that JAX has and hlotrace does not have yet.

    python tools/missing.py                     takes out those that hlotrace has by now
    python tools/missing.py INVENTORY.json      takes JAX's from an inventory, {"modules": {"jax.numpy": [name, ...], ...},
                                                "classes": {"instance of jax.Array": [name, ...]}}
"""
import importlib
import json
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import hlotrace.numpy as jnp  # noqa: E402 - after the path

FILE = ROOT / "hlotrace" / "core" / "surface" / "missing_names.py"
HEADER = '''"""Names of JAX that hlotrace does not have yet: written by tools/missing.py, imported if one is asked for."""

NAMES = {       # a module, as "numpy", or "Array": names
'''


def has(place, name):
    """Does hlotrace have it?"""
    try:
        getattr(jnp.zeros((3, 3)) if place == "Array"
                else importlib.import_module(f"hlotrace.{place}".rstrip(".")), name)
    except (AttributeError, ImportError):
        return False
    except NotImplementedError:     # it is there to say why not
        pass
    return True


def asked(arguments):
    """{place: names} to write about: those of an inventory, or of the file as it is."""
    if not arguments:
        from hlotrace.core.surface.missing_names import NAMES
        return {place: names.split() for place, names in NAMES.items()}
    inventory = json.loads(Path(arguments[0]).read_text("utf-8"))
    found = {module.partition(".")[2]: names for module, names in inventory["modules"].items()}
    return {**found, "Array": inventory["classes"]["instance of jax.Array"]}


def text(places):
    """The file that says which of these names hlotrace lacks."""
    rows = []
    for place, names in sorted(places.items()):
        lacking = [name for name in sorted(names) if not name.startswith("_") and not has(place, name)]
        if lacking:
            lines = textwrap.wrap(" ".join(lacking), 99)
            rows.append(f'    "{place}": (\n' + "".join(f'        "{line} "\n' for line in lines[:-1])
                        + f'        "{lines[-1]}"),\n')
    return HEADER + "".join(rows) + "}\n"


if __name__ == "__main__":
    FILE.write_text(text(asked(sys.argv[1:])), "utf-8")
