"""Nothing is taken and forgotten: each parameter and each option is read, or refused by name.

Read from the syntax trees.  A parameter whose name begins with `_` says itself that it is not read.
"""
import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import syntax
from places import LIBRARY

pytestmark = pytest.mark.quick


# Rules of primitives take what their primitive's others take; they are called by the library alone.
RULES = ("primitives/", "transforms/", "lowering/")

# Methods whose parameters a protocol of Python's or of another library gives.
PROTOCOLS = {"__get__", "__deepcopy__", "__setattr__", "__setitem__", "__getattr__", "__getitem__", "__format__",
             "__buffer__", "find_spec", "exec_module"}

# file and function -> parameters that it need not read, with the reason.
EXEMPT = {
    # says of a callback that it may be replayed on a GPU; it runs on the host here
    "core/primitive.py:Primitive.bind_with_trace": {"avals"},           # those of the arguments are asked anyway
    "core/trace.py:Tracer.__array__": {"dtype", "copy"},                # it raises
    "core/trace.py:Tracer.__dlpack__": {"copy", "dl_device", "max_version", "stream"},
    "core/refs.py:RefOrView.__array__": {"dtype", "copy"},              # it raises
    # a program over several devices takes each input under a sharding of its own
    "runtime/executables/executable.py:Executable.has_there": {"i"},
    "sharding/abstract.py:Sharding.filled": {"ndim"},                   # that of a NamedSharding reads it
    "core/jaxpr.py:Eqn.replace": {"ctx"},                               # nothing depends on it here
    "as_jax/faces.py:contraction_steps": {"einsum_call", "use_blas"},   # opt_einsum's; the steps are the same
    # for people, and for compilers of kernels; what is exact is right for what may be approximate
    "experimental/pallas/call.py:pallas_call": {"cost_estimate", "debug", "metadata"},
    "experimental/pallas/cores.py:core_map": {"compiler_params", "cost_estimate", "debug", "metadata", "name"},
    "experimental/pallas/cores.py:kernel": {"compiler_params", "cost_estimate", "debug", "metadata"},
    "experimental/pallas/parts.py:delay": {"nanos"},
    "experimental/pallas/parts.py:reciprocal": {"approx", "full_range"},
    "experimental/pallas/pipeline.py:emit_pipeline": {"no_pipelining", "tiling", "trace_scopes"},
    "experimental/pallas/pipeline.py:emit_pipeline.pipeline": {"allocations"},
    "experimental/pallas/tpu_values.py:touch": {"ref"},
    "experimental/pallas/tpu_values.py:trace_value": {"label", "value"},
    "experimental/pallas/tpu_values.py:with_memory_space_constraint": {"memory_space"},
    "experimental/pallas/tpu_values.py:core_barrier": {"sem"},
    "experimental/pallas/triton.py:load": {"cache_modifier", "eviction_policy", "volatile"},
    "experimental/pallas/triton.py:store": {"eviction_policy"},
    # what equations say themselves, and what serves JAX's error messages only
    # of JAX's older partitioner: Shardy takes the rule
    "api/parallel/custom_partitioning.py:custom_partitioning.def_partition": {"infer_sharding_from_operands", "propagate_user_sharding",
                                                             "decode_shardings"},
    "experimental/sparse/bcoo_shapes.py:bcoo_gather": {"unique_indices", "indices_are_sorted"},     # what the caller knows
    # an interface
    "experimental/array_serialization/serialization.py:GlobalAsyncCheckpointManagerBase.serialize": {
        "arrays", "tensorstore_specs", "on_commit_callback"},
    "experimental/array_serialization/serialization.py:GlobalAsyncCheckpointManagerBase.deserialize": {
        "shardings", "tensorstore_specs", "global_shapes", "dtypes"},
    "experimental/hijax.py:HiPrimitive.impl": {"args", "params"},       # interfaces
    "experimental/hijax.py:HiType.lower_val": {"val"},
    "experimental/hijax.py:HiType.str_short": {"short_dtypes"},
    "as_jax/helpers.py:weakref_lru_cache": {"explain"},                 # what JAX logs of its own caches
    "core/jaxpr_trace.py:JaxprTrace.new_arg": {"source_info"},                # the input has no line here
    "scipy/linalg/factorizations.py:eigh_tridiagonal": {"tol"},         # more exact than any that is asked
    "experimental/hijax.py:HiType.raise_val": {"arrays"},
    "experimental/hijax.py:MutableHiType.read_loval": {"made_of", "value"},
    "experimental/hijax.py:MutableHiType.new_from_loval": {"made_of", "arrays"},
    "experimental/hijax.py:MutableHiType.update_from_loval": {"made_of", "value", "arrays"},
    "experimental/hijax.py:VJPHiPrimitive.expand": {"args"},
    "experimental/hijax.py:VJPHiPrimitive.vjp_bwd_retval": {"residuals", "cotangent"},
    "api/hijax.py:GradAccum.accum": {"cotangent"},
    "api/hijax.py:NullAccum.accum": {"cotangent"},
    "api/hijax.py:_HiValues.restore": {"lent"},     # of the interface Adapter
    "api/adapters.py:Adapter.result": {"flat"},
    "api/adapters.py:Adapter.arrays": {"value"},
    "api/adapters.py:Adapter.inside": {"kind", "arrays"},
    "api/adapters.py:Adapter.after": {"kind"},
    "api/adapters.py:Adapter.lend": {"value"},
    "api/adapters.py:Adapter.restore": {"value", "lent"},
    "api/adapters.py:Adapter.own_memory": {"value", "array"},
    "api/adapters.py:Adapter.write_back": {"value", "kind", "arrays"},
    "api/adapters.py:Adapter.raise_tangent": {"kind", "tangents", "avals"},
    "api/adapters.py:Adapter.lower_tangent": {"kind", "tangent", "avals"},
    "api/adapters.py:Adapter.perturbed": {"kind", "avals"},
    "api/adapters.py:Adapter.unmapped": {"size"},
    "api/adapters.py:Adapter.mapped": {"size"},
    "api/shape_dtype_struct.py:ShapeDtypeStruct.__new__": {"args", "kwargs"},       # __init__ reads them
    "api/shape_dtype_struct.py:ShapeDtypeStruct.__init__": {"is_ref"},              # and __new__ this
    "numpy/indexing/refs.py:_Views.write_back": {"kind"},
    "experimental/jet.py:zero_prop": {"series_in"},                     # what it gives does not move with them
    "core/surface/jax_core_names.py:Jaxpr.__new__": {"effects", "debug_info"},
    "core/surface/jax_core_names.py:new_jaxpr_eqn": {"ctx"},
    "core/surface/jax_core_names.py:get_opaque_trace_state": {"convention"},           # which library asks
    "interpreters/mlir.py:core_call_lowering": {"name", "params"},      # names of functions are those of programs
    "interpreters/mlir.py:jaxpr_subcomp": {"name_stack", "outer_traceback"},    # scopes and lines are those of the program
    "interpreters/mlir.py:register_lowering": {"inline", "cacheable"},  # hints: the operations are the same
    "nn/initializers.py:zeros": {"key"},                                # an initializer that draws nothing
    "nn/initializers.py:ones": {"key"},
    # NumPy's hints: whoever gives them allows a quicker way, and other orders, of which nothing is made
    "numpy/reductions/sets.py:unique": {"sorted"},
    "numpy/reductions/sets.py:intersect1d": {"assume_unique"},
    "numpy/reductions/sorting.py:top_k": {"sorted"},
    "numpy/reductions/sorting.py:lexsort": {"batch_size"},                         # how many keys JAX sorts by at a time
    "numpy/arrays/array_api.py:_default_dtypes": {"device"},                   # all devices have the same
    "numpy/arrays/array_api.py:_dtypes": {"device"},
    "numpy/reductions/sets.py:setxor1d": {"assume_unique"},
    "numpy/reductions/sets.py:isin": {"assume_unique"},
    "numpy/reductions/histograms.py:histogram_bin_edges": {"weights"},                # read by rules for bins only, which are refused
    "runtime/binding.py:_fetch": {"aval"},                              # one signature for each version of jaxlib
    "runtime/binding.py:to_dlpack": {"max_version"},
    "runtime/devices/topology.py:_Elsewhere.take": {"leaves"},                  # it raises
    "inspection/retraces.py:another_function": {"types"},               # one of several explanations, called alike
}

# SciPy's permissions: to write over arguments, which are immutable; not to look for NaN, which nobody does; old ways.
PERMISSIONS = {"check_finite", "debug", "lwork", "overwrite_a", "overwrite_b", "overwrite_c", "turbo"}


# --- what a function reads -----------------------------------------------------------------------------------------

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def parameters(node: ast.AST) -> list[str]:
    a = node.args
    return [p.arg for p in (*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg) if p]


def reads(nodes: list[ast.AST]) -> set[str]:
    """Names that are read in nodes, of the scope around them.  A bare name as a statement, or `_ = name`, reads nothing."""
    found, waiting = set(), list(nodes)
    for node in waiting:
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                found.add(name)
            case ast.Expr(value=ast.Name()) | ast.Assign(targets=[ast.Name(id="_")], value=ast.Name() | ast.Tuple()):
                pass
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                body = node.body if isinstance(node.body, list) else [node.body]
                found |= reads(body) - set(parameters(node))
                outside = (*node.args.defaults, *node.args.kw_defaults, *getattr(node, "decorator_list", ()))
                waiting += [child for child in outside if child is not None]
            case _:
                waiting += syntax.children(node)
    return found


def unread(tree: ast.AST, path: tuple = ()) -> Iterator[tuple[str, int, set[str]]]:
    """(name, line, parameters not read) of each function that has such; lambdas are rules of the library's own."""
    for node in syntax.children(tree):
        if isinstance(node, ast.expr):      # no function with a name is in an expression
            continue
        inner = (*path, node.name) if isinstance(node, (*FUNCTIONS[:2], ast.ClassDef)) else path
        if isinstance(node, FUNCTIONS[:2]) and node.name not in PROTOCOLS:
            read = reads(node.body)
            missing = {p for p in parameters(node) if p not in read and not p.startswith("_") and p not in ("self", "cls")}
            if missing and not cached(node) and not abstract(node):
                yield ".".join(inner), node.lineno, missing
        yield from unread(node, inner)


def abstract(node: ast.FunctionDef) -> bool:
    """A private method that subclasses give: it does nothing but raise NotImplementedError."""
    return node.name.startswith("_") and ast.unparse(node.body[-1]) == "raise NotImplementedError"


def cached(node: ast.FunctionDef) -> bool:
    """A function that remembers its results: a parameter may be there as a part of the key alone."""
    return any("cache" in ast.unparse(d) for d in node.decorator_list)


def files() -> Iterator[tuple[str, Path]]:
    for path in sorted(LIBRARY.rglob("*.py")):
        yield path.relative_to(LIBRARY).as_posix(), path


def test_every_parameter_is_read():
    found, stale = [], set(EXEMPT)
    for file, path in files():
        if file.startswith(RULES):
            continue
        for name, line, missing in unread(syntax.tree(path)):
            stale.discard(f"{file}:{name}")
            allowed = EXEMPT.get(f"{file}:{name}", PERMISSIONS if file.startswith("scipy/") else set())
            if left := missing - allowed:
                found.append(f"hlotrace/{file}:{line}: {name} takes {', '.join(sorted(left))} and does not read it")
    assert not found, "\n" + "\n".join(found)
    assert not stale, f"these need no exemption any more: {sorted(stale)}"


@pytest.mark.parametrize(("source", "missing"), [
    ("def f(x, device=None): return x", {"device"}),
    ("def f(x, device=None):\n    del device\n    return x", {"device"}),
    ("def f(x, device=None):\n    _ = device\n    return x", {"device"}),
    ("def f(x, device=None):\n    device\n    return x", {"device"}),
    ("def f(x, device=None):\n    device = 3\n    return x", {"device"}),
    ("def f(x, device=None):\n    return lambda device: device + x", {"device"}),
    ("def f(*args, **kwargs): return 1", {"args", "kwargs"}),
    ("class A:\n    def f(self, x): return self", {"x"}),
    ("def f(x, device=None): return g(x, device)", None),
    ("def f(x, device=None):\n    def g(y=device): return y + x\n    return g", None),
    ("def f(x, _device=None): return x", None),
    ("@functools.lru_cache\ndef f(x, version): return x", None),
])
def test_what_counts_as_reading(source, missing):
    found = list(unread(ast.parse(source)))
    assert [m for _, _, m in found] == ([] if missing is None else [missing])


# --- options ---------------------------------------------------------------------------------------------------------

def options(nodes: list[ast.AST]) -> dict[str, ast.expr]:
    """The rows of the table in core/config.py: name -> the expression of its parser."""
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id="_OPTIONS")], value=ast.Dict(keys=keys, values=rows)):
                return {ast.literal_eval(key): row.elts[1] for key, row in zip(keys, rows, strict=True)}
    raise AssertionError("core/config.py holds no table _OPTIONS")


def option_reads(nodes: list[ast.AST]) -> Iterator[str]:
    """Names of options read as `config.name`, `config.read("name")` or `values["name"]`; setting one is not reading."""
    for node in nodes:
        if not isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
            continue
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()) if name.startswith(("jax_", "hlotrace_")):
                yield name
            case ast.Subscript(slice=ast.Constant(value=str(name)), ctx=ast.Load()):
                yield name
            case ast.Call(func=ast.Attribute(attr="read"), args=[ast.Constant(value=str(name))]):
                yield name


def test_every_option_is_read():
    table = options(syntax.nodes(LIBRARY / "core/config.py"))
    read = {name for _, path in files() for name in option_reads(syntax.nodes(path))}
    assert len(table) > 25
    assert not (silent := sorted(table.keys() - read)), f"nothing reads {silent}"
