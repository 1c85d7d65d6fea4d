"""The op table leaves out no primitive, and its rows reach every rule that a primitive has."""
import pytest
from op_table import ROWS
from op_table.row import listed
from row_checks import adjoint, differentiable, mappable, stacked, text

import hlotrace
import hlotrace.experimental.roofline
import hlotrace.experimental.sparse
import hlotrace.transforms.jet
import hlotrace.transforms.key_reuse
from hlotrace.core.platforms import platform_named, rule_for
from hlotrace.core.primitive import PRIMITIVES, PassRules

# No function binds them: the linear part of a custom_vjp function, reached by the rows of custom_vjp_call,
# what the derivative of a checkpoint computes again, reached by those of checkpoint, a stretch of
# a linear program, reached by whatever is differentiated under jit, the token of effects in order (test_effects.py), what
# a bounded_while asks of all elements of a vmap (test_max_steps.py), what `export` writes around a program that differs
# between platforms (test_export.py); accesses to references, whose operands are those of a program (test_refs.py);
# symbolic sizes as numbers (test_symbolic_shapes.py); and parts that users make, which nothing maps
# (test_custom_partitioning.py); callbacks that do something, whose rules are those of pure ones (test_callbacks.py).
NO_ROW = {"custom_lin", "rematted", "inlined",
          "create_token", "after_all", "anywhere", "by_platform", "custom_partitioning",
          "dim_as_value", "get", "set", "swap", "addupdate", "io_callback", "debug_callback"}
# Typing rules without errors: they take anything, or what the public functions that bind them have checked.
ACCEPT_ANYTHING = {"copy", "dce_sink", "name", "optimization_barrier", "stop_gradient", "convert_element_type", "jit",
                   "scan", "while", "cond", "custom_linear_solve", "pure_callback", "io_callback",
                   "debug_callback", "buffer_callback", "check", "checkpoint", "custom_jvp_call",
                   "custom_vjp_call", "all_gather", "axis_index", "ffi_call", "inspect_sharding", "ppermute", "psum",
                   "psum_invariant", "pvary", "tagged_call", "composite", "custom_vmap_call", "linear_call", "remat_opt",
                   "bounded_while", "ruled_call", "sharding_constraint"}
PASSES = {"indices out of bounds", "jet", "key reuse", "roofline", "sparsify of BCOO", "sparsify of BCSR"}
# What holds programs, and refuses where operands vary over more manual axes: its programs would have to change.
VARIES_AS_IT_IS = {"addupdate", "bounded_while", "pure_callback", "io_callback", "debug_callback", "check",
                   "composite", "custom_linear_solve", "custom_vmap_call",
                   "get", "inlined", "linear_call", "remat_opt", "scan", "set", "shard_map", "swap", "tagged_call", "while"}
RULES = ("abstract_eval", "lower", "jvp", "linearize", "transpose", "batching")
BY_PRIMITIVE = {name: [r for r in ROWS if r.primitive == name] for name in sorted(PRIMITIVES)}


def test_every_primitive_has_a_row():
    assert {name for name, rows in BY_PRIMITIVE.items() if not rows} == NO_ROW
    assert {r.primitive for r in ROWS} <= set(PRIMITIVES)


def test_row_names_are_unique():
    assert len({r.name for r in ROWS}) == len(ROWS)


def test_every_pass_has_a_rule_for_every_primitive():
    assert {rules.name for rules in PassRules.everywhere} == PASSES
    for rules in PassRules.everywhere:
        left = [p for p in PRIMITIVES.values() if p not in rules.listed and not rules.covers(p)]
        assert not left, f"{rules.name}: give these a rule, for its default is not meant for them"


def test_what_holds_programs_says_how_they_vary():
    assert {p.name for p in PRIMITIVES.values() if p.discharge and not p.vary} == VARIES_AS_IT_IS


def use(row):
    """What `test_ops.py` does with a row, as far as that goes without compiling."""
    text(row)
    args = row.sample(row.base)
    fun, smooth = differentiable(row, args)
    if smooth and row.derivative not in ("reverse", "refused") and PRIMITIVES[row.primitive].jvp is not None:
        hlotrace.eval_shape(lambda *xs: hlotrace.jvp(fun, xs, xs), *smooth)
    if row.linear:
        hlotrace.eval_shape(lambda *xs: adjoint(fun, xs)(fun(*xs)), *smooth)
    if args:
        axes = [0 if i in mappable(row) else None for i in range(len(args))]
        mapped = [x if a is None else stacked(x, 0) for x, a in zip(args, axes)]
        hlotrace.eval_shape(hlotrace.vmap(lambda *xs: listed(row.fun(*xs)), axes), *mapped)
    for call, error, _ in row.bad:
        with pytest.raises(error):
            call()


@pytest.mark.parametrize("name", [n for n in BY_PRIMITIVE if n not in NO_ROW])
def test_rows_reach_every_rule(name, monkeypatch):
    primitive, rows, reached, refused = PRIMITIVES[name], BY_PRIMITIVE[name], set(), []
    hlotrace.clear_caches()     # a program that another test transposed would not be transposed again

    def recorded(rule, function):
        def run(*args, **params):
            reached.add(rule)
            try:
                return function(*args, **params)
            except (TypeError, ValueError) as error:
                if rule == "abstract_eval":
                    refused.append(error)
                raise
        return run
    present = {rule for rule in RULES if getattr(primitive, rule) is not None}
    for rule in present:
        monkeypatch.setattr(primitive, rule, recorded(rule, rule_for(platform_named("cpu"), getattr(primitive, rule))))
    for row in rows:
        use(row)
    if not any(row.smooth_operands(row.sample(row.base)) for row in rows):
        present.discard("jvp")        # nothing that it takes has a tangent
    assert reached >= present
    assert bool(refused) != (name in ACCEPT_ANYTHING)
