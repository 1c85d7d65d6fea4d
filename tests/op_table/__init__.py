"""The op table: at least one row for each primitive.  `test_ops.py` checks every row in the same ways."""
import importlib
import pkgutil

import hlotrace.primitives

for module in pkgutil.walk_packages(hlotrace.primitives.__path__, "hlotrace.primitives."):
    importlib.import_module(module.name)

from . import (  # noqa: E402 - their primitives have to exist
    elementwise, keys, linear_algebra, programs, reducing, sharding, structural, transforms)

ROWS = [*elementwise.ROWS, *structural.ROWS, *reducing.ROWS, *keys.ROWS, *programs.ROWS,
        *sharding.ROWS, *transforms.ROWS, *linear_algebra.ROWS]
