"""The op table leaves out no primitive, and its rows reach every rule that a primitive has."""
from pathlib import Path

import numpy as np
import pytest
from op_table import ROWS
from op_table.row import listed
from test_ops import differentiable, mappable, stacked, text

import hlotrace
from hlotrace.core.trace import PRIMITIVES

# Primitives that hold functions or programs: what they do is tested beside the public functions that make them.
HIGHER_ORDER = {"jit": "test_jit.py", "scan": "test_control_flow.py", "while": "test_control_flow.py",
                "cond": "test_control_flow.py", "callback": "test_callbacks.py", "custom_jvp_call": "test_custom.py",
                "custom_vjp_call": "test_custom.py", "custom_lin": "test_custom.py"}
ACCEPT_ANYTHING = {"copy", "optimization_barrier", "stop_gradient", "convert_element_type"}    # typ has no errors
RULES = ("typ", "lower", "jvp", "transpose", "batch")
BY_PRIMITIVE = {name: [r for r in ROWS if r.primitive == name] for name in sorted(PRIMITIVES)}


def test_every_primitive_has_a_row():
    without = {name for name, rows in BY_PRIMITIVE.items() if not rows}
    assert without == set(HIGHER_ORDER)
    assert {r.primitive for r in ROWS} <= set(PRIMITIVES)


def test_higher_order_primitives_have_test_files():
    for file in HIGHER_ORDER.values():
        assert (Path(__file__).parent / file).exists(), file


def test_row_names_are_unique():
    assert len({r.name for r in ROWS}) == len(ROWS)


def use(row):
    """What `test_ops.py` does with a row, without running anything."""
    text(row)
    args = row.sample(row.base)
    fun, smooth = differentiable(row, args)
    if smooth and row.derivative != "reverse only":
        hlotrace.eval_shape(lambda *xs: hlotrace.jvp(fun, xs, xs), *smooth) if row.derivative != "none" else None
    if args:
        axes = [0 if i in mappable(row) else None for i in range(len(args))]
        mapped = [x if a is None else stacked(x, 0) for x, a in zip(args, axes)]
        hlotrace.eval_shape(hlotrace.vmap(lambda *xs: listed(row.fun(*xs)), axes), *mapped)


def has_inexact_operands(rows):
    return any(np.dtype(d).kind in "fcV" for r in rows for d in [r.base or r.args[0].dtype] if r.args)


@pytest.mark.parametrize("name", [n for n in BY_PRIMITIVE if n not in HIGHER_ORDER])
def test_rows_reach_every_rule(name, monkeypatch):
    primitive, rows, reached, refused = PRIMITIVES[name], BY_PRIMITIVE[name], set(), []

    def recorded(rule, function):
        def run(*args, **params):
            reached.add(rule)
            try:
                return function(*args, **params)
            except (TypeError, ValueError) as error:
                if rule == "typ":
                    refused.append(error)
                raise
        return run
    present = {rule for rule in RULES if getattr(primitive, rule) is not None}
    for rule in present:
        monkeypatch.setattr(primitive, rule, recorded(rule, getattr(primitive, rule)))
    for row in rows:
        use(row)
    if not has_inexact_operands(rows):
        present.discard("jvp")        # nothing that it takes has a tangent
    assert reached >= present
    for row in rows:
        for call, error, _ in row.bad:
            with pytest.raises(error):
                call()
    assert bool(refused) != (name in ACCEPT_ANYTHING)
