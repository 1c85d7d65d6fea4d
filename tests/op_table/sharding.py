"""Rows of the primitives that say how values lie over devices, or that devices do together."""
import functools

import numpy as np

import hlotrace
from hlotrace.core.trace import PRIMITIVES
from hlotrace.lax import with_sharding_constraint
from hlotrace.sharding import Mesh, NamedSharding, P

from .row import Row, between

ROWS = []


@functools.cache
def mesh():
    return Mesh(hlotrace.devices()[:2], "x")


def row(primitive, fun, ref, *args, bad=(), **fields):
    ROWS.append(Row(primitive, fun, ref, args, fields.pop("kinds", "f"), bad=tuple(bad), **fields))


row("sharding_constraint", lambda x: with_sharding_constraint(x, NamedSharding(mesh(), P(None, "x"))), lambda x: x,
    between(-3, 3, 3, 4), kinds="fci", linear=True, bad=[
        (lambda: hlotrace.jit(lambda x: PRIMITIVES["sharding_constraint"].bind(x, sharding=NamedSharding(mesh(), P("x"))))(
            np.ones(3)), ValueError, "not a multiple of 2"),
        (lambda: with_sharding_constraint(1.0, NamedSharding(mesh(), P("x"))), ValueError, "rank"),
        (lambda: with_sharding_constraint([1.0, 2.0], {"a": None}), ValueError, "prefix"),
        (lambda: with_sharding_constraint(1.0, hlotrace.devices()[0]), TypeError, "is a device")])
