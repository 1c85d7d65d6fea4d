"""The walls of the house: which module may import which, read from the source, and what an import brings in.

An import counts wherever it stands: at the top of a file, inside a function, under TYPE_CHECKING, or as a
constant given to `import_module`.
"""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator, Set
from pathlib import Path

import pytest
import syntax
from places import ROOT

pytestmark = pytest.mark.quick

THIRD_PARTY = {"jaxlib", "numpy", "ml_dtypes"}


def layer(module: str) -> int:
    """How high in the house a module stands; it may import its own layer and what is below."""
    # core reads one leaf of runtime, and to import a leaf runs its package's __init__ first.
    if module in ("hlotrace.runtime", "hlotrace.runtime.binding"):
        return 0
    folders = {"core": 1, "primitives": 2, "sharding": 2, "transforms": 3, "lowering": 3, "runtime": 4, "inspection": 5,
               "api": 6, "placement": 6, "export": 6, "distributed": 6, "lax": 7, "numpy": 8, "random": 9, "nn": 9, "scipy": 9, "image": 9}
    return folders.get(module.partition(".")[2].partition(".")[0], 10)


def inside(module: str, folder: str) -> bool:
    return module == folder or module.startswith(folder + ".")


def objection(module: str, target: str) -> str | None:
    """Why `module` may not import `target`."""
    root = target.partition(".")[0]
    if root == "hlotrace":
        if inside(module, "hlotrace.lowering") and inside(target, "hlotrace.runtime"):
            return "lowering gives text and knows no runtime"
        if inside(module, "hlotrace.sharding") and inside(target, "hlotrace.runtime"):
            return "meshes and shardings are data and know no runtime"
        if layer(target) > layer(module):
            return f"layer {layer(module)} may not import layer {layer(target)}"
    elif root == "jaxlib":
        if not inside(module, "hlotrace.runtime"):
            return "only hlotrace/runtime imports jaxlib"
    elif root == "absl":
        if not inside(module, "hlotrace.tools") and module != "hlotrace.core.surface.flags":
            return "only hlotrace/tools and core/surface/flags.py import absl"
    elif root == "mpi4py":
        if module != "hlotrace.distributed.mpi":
            return "only distributed/mpi.py imports mpi4py, where one asks for it"
    elif root == "tensorstore":
        if not inside(module, "hlotrace.experimental.array_serialization"):
            return "only array_serialization imports tensorstore, where one writes"
    elif root not in THIRD_PARTY and root not in sys.stdlib_module_names:
        return "the library stands on jaxlib, numpy and ml_dtypes alone"
    return None


def library() -> dict[str, Path]:
    """Every module of the library, by its dotted name."""
    modules = {}
    for path in sorted((ROOT / "hlotrace").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


@functools.cache
def importing(source: str) -> list[tuple[ast.AST, bool]]:
    """The statements and calls that import, and whether each is inside of a function; read once for all tests."""
    calls = ("import_module", "__import__")
    inner = syntax.children if any(call in source for call in calls) else syntax.statements
    found, left = [], [(syntax.parsed(source), False)]
    for node, local in left:
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
            found.append((node, local))
        local = local or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        left += [(child, local) for child in inner(node)]
    return [(node, local) for node, local in found if not isinstance(node, ast.Call)
            or getattr(node.func, "id", getattr(node.func, "attr", "")) in calls]


def imports(source: str, package: str, known: Set[str], local: bool = False) -> Iterator[tuple[int, str]]:
    """Line and full name of what a module in `package` imports; `known` tells modules from names in them.

    With `local`, of those that run when a function is called.
    """
    return statements([node for node, inner in importing(source) if inner or not local], package, known)


def statements(nodes: list, package: str, known: Set[str]) -> Iterator[tuple[int, str]]:
    """As `imports`, of these statements."""
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(names=names, module=base, level=level):
                if level:
                    parents = package.split(".")
                    base = ".".join(parents[: len(parents) - level + 1] + ([base] if base else []))
                for alias in names:
                    submodule = f"{base}.{alias.name}"
                    yield node.lineno, submodule if submodule in known else str(base)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                dots = len(name) - len(name.lstrip("."))
                parents = package.split(".")
                up = parents[: len(parents) - dots + 1] if dots else []
                yield node.lineno, ".".join([*up, name[dots:]])


def objections(module: str, source: str, known: Set[str], *, is_package: bool = False) -> list[str]:
    package = module if is_package else module.rpartition(".")[0]
    return [
        f"{module}, line {line}: {target}: {reason}"
        for line, target in imports(source, package, known)
        if (reason := objection(module, target))
    ]


def test_library_imports_run_one_way():
    modules = library()
    assert "hlotrace" in modules
    found = [
        text
        for module, path in modules.items()
        for text in objections(
            module, path.read_text("utf-8"), modules.keys(), is_package=path.name == "__init__.py"
        )
    ]
    assert not found, "\n" + "\n".join(found)


def stated_order(doc: str) -> list[str]:
    """The files that a package lists in its docstring, each indented and followed by what it is for, lowest first."""
    return [name.replace("/", ".") for name in re.findall(r"^ {4}([\w/]+) {2,}\S", doc, re.M)]


@pytest.mark.parametrize("package", ["hlotrace.numpy", "hlotrace.primitives"])
def test_files_import_only_those_that_the_docstring_of_their_package_lists_above_them(package):
    modules = library()
    order = stated_order(ast.get_docstring(ast.parse(modules[package].read_text("utf-8"))) or "")
    rooms = {name for name, path in modules.items() if path.name == "__init__.py"}
    files = {name.removeprefix(package + ".") for name in modules.keys() - rooms if name.startswith(package + ".")}
    assert sorted(order) == sorted(files)
    found = [
        f"{name}, line {line}: {target}"
        for place, name in enumerate(order)
        for line, target in imports(
            modules[f"{package}.{name}"].read_text("utf-8"), f"{package}.{name}".rpartition(".")[0], modules.keys()
        )
        if inside(target, package) and target.removeprefix(package + ".") not in order[:place]
    ]
    assert not found, "\n" + "\n".join(found)


def test_files_at_the_root_are_faces():
    """They say what a name is called and where it comes from; what it does stands in a room."""
    made = {
        f"{module}.{node.name}"
        for module, path in library().items()
        if path.parent == ROOT / "hlotrace"
        for node in syntax.walk(syntax.tree(path), syntax.statements)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    assert made == set()


# Rings that are still to be opened; a ring that is none any more leaves this list.
KNOWN_RINGS: set[frozenset[str]] = set()


def package_of(module: str, path: Path) -> str:
    return module if path.name == "__init__.py" else module.rpartition(".")[0]


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """The modules that importing `start` comes to."""
    found, waiting = set(), [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def rings(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The sets of modules each of which imports, itself or through others, all of them."""
    reach = {module: reached(graph, module) for module in graph}
    return {frozenset(other for other in reach[m] if m in reach[other]) for m in graph if m in reach[m]}


def test_no_ring_of_files():
    """Imports inside of functions count: they hide a ring and do not open it."""
    modules = library()
    graph = {
        module: {
            target
            for _, target in imports(path.read_text("utf-8"), package_of(module, path), modules.keys())
            if target in modules and target != module
        }
        for module, path in modules.items()
    }
    assert rings(graph) == KNOWN_RINGS


def test_rings_are_found():
    assert rings({"a": {"b"}, "b": {"c"}, "c": set()}) == set()
    graph = {"a": {"b", "d"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": {"d", "f"}, "f": set()}
    assert rings(graph) == {frozenset("abc"), frozenset("de")}


# Every import inside of a function, under its reason: a line for each module, then what it imports there.
LOCAL_IMPORTS = {
    "importing hlotrace does not pay for what few programs need": """
        hlotrace.distributed.job: socket
        hlotrace.distributed.clusters: socket hlotrace.distributed.mpi
        hlotrace.distributed.mpi: mpi4py
        hlotrace.experimental.pallas.compiled.mosaic_call: hlotrace.runtime.mlir.mosaic
        hlotrace.api.jit: hlotrace.inspection.retraces hlotrace.transforms.key_reuse
        hlotrace.api.parallel.explain_sharding: hlotrace.inspection.sharding_plan
        hlotrace.api.compiled_calls: hlotrace.inspection.retraces hlotrace.inspection.planning.lowered_estimates
        hlotrace.placement.jit_placement: hlotrace.placement.shardings
        hlotrace.placement.out_sharding: hlotrace.placement.shardings hlotrace.primitives.parallel.sharding hlotrace.runtime.devices.shards hlotrace.sharding.named hlotrace.sharding.spec
        hlotrace.lowering.module: hlotrace.primitives.parallel.sharding
        hlotrace.lowering.result_memory: hlotrace.primitives.parallel.sharding
        hlotrace.nn.attention: hlotrace.nn.cudnn_attention
        hlotrace.lowering.result_memory: hlotrace.sharding.layout hlotrace.sharding.partition
        hlotrace.lowering.outline: hlotrace.lowering.handed_over
        hlotrace.numpy.contraction: hlotrace.sharding.explicit
        hlotrace.lax.indexing: hlotrace.sharding.explicit
        hlotrace.numpy.indexing.indexing: hlotrace.sharding.explicit
        hlotrace.transforms.transpose: hlotrace.primitives.parallel.sharding
        hlotrace.transforms.vmap: hlotrace.primitives.parallel.sharding
        hlotrace.numpy.reductions.statistics: hlotrace.primitives.parallel.sharding
        hlotrace.api.autodiff: hlotrace.primitives.parallel.sharding
        hlotrace.lax.control_flow: hlotrace.primitives.parallel.sharding
        hlotrace.api.stages: hlotrace.inspection.pages.view hlotrace.api.compiled_errors
        hlotrace.api.stages: hlotrace.inspection.planning.library_calls hlotrace.inspection.planning.lowered_estimates hlotrace.runtime.devices.layouts
        hlotrace.api.shape_dtype_struct: hlotrace.placement.shardings hlotrace.runtime.devices.layouts hlotrace.sharding.layout hlotrace.sharding.spec
        hlotrace.placement.make_mesh: hlotrace.placement.device_order
        hlotrace.placement.device_put: hlotrace.placement.shardings hlotrace.sharding.mesh hlotrace.sharding.named hlotrace.sharding.spec
        hlotrace.placement.device_put: hlotrace.runtime.processes.consistency_checks
        hlotrace.core.config: hlotrace.core.surface.flags hlotrace.core.surface.other_options
        hlotrace.core.errors: difflib
        hlotrace.core.surface.importing: importlib.util
        hlotrace.core.surface.missing: hlotrace.core.surface.missing_names
        hlotrace.experimental.array_serialization.serialization: tensorstore
        hlotrace.lax: hlotrace.placement.shardings
        hlotrace.as_jax.pickles: hlotrace.sharding hlotrace.sharding.layout
        hlotrace.lowering.module: hlotrace.sharding.named hlotrace.sharding.spec hlotrace.sharding.text
        hlotrace.random.keys: hlotrace.sharding.named hlotrace.sharding.spec
        hlotrace.runtime.array_impl: hlotrace.runtime.devices.layouts
        hlotrace.runtime.devices.relayout: hlotrace.runtime.devices.layouts
        hlotrace.runtime.executables.spmd: hlotrace.runtime.devices.layouts
        hlotrace.placement.jit_placement: hlotrace.runtime.devices.layouts
        hlotrace.placement.device_put: hlotrace.runtime.devices.layouts hlotrace.sharding.layout
        hlotrace.placement.shardings: hlotrace.runtime.devices.layouts
        hlotrace.runtime.binding: jaxlib
        hlotrace.runtime.devices.client: hlotrace.runtime.devices.plugins
        hlotrace.runtime.evaluate: hlotrace.runtime.executables.spmd hlotrace.runtime.executables.tiers hlotrace.transforms.key_reuse
        hlotrace.runtime.evaluate: hlotrace.sharding.named
        hlotrace.runtime.executables.introspect: hlotrace.runtime.mlir.bindings jaxlib
        hlotrace.runtime.executables.kernels: jaxlib jaxlib.gpu_solver jaxlib.plugin_support
        hlotrace.runtime.devices.placement: jaxlib
        hlotrace.runtime.executables.runtime_checks: hlotrace.runtime.executables.dumps hlotrace.runtime.executables.blocks hlotrace.runtime.executables.spmd
        hlotrace.runtime.executables.runtime_checks: hlotrace.runtime.executables.sharded_blocks
        hlotrace.runtime.executables.sharded_blocks: hlotrace.runtime.mlir.shardy
        hlotrace.runtime.executables.blocks: hlotrace.runtime.devices.topology
        hlotrace.runtime.executables.spmd: jaxlib
        hlotrace.runtime.executables.tiers: hlotrace.runtime.executables.kernels
        hlotrace.runtime.devices.transfer: hlotrace.sharding.named hlotrace.sharding.positional
        hlotrace.transforms.partial_eval: hlotrace.primitives.parallel.sharding
        hlotrace.runtime.executables.compilation: hlotrace.runtime.executables.disk_cache hlotrace.runtime.mlir.bindings hlotrace.runtime.executables.spmd
        hlotrace.runtime.executables.compilation: hlotrace.runtime.mlir.partitioners
        hlotrace.runtime.executables.compilation: hlotrace.runtime.executables.kernels hlotrace.runtime.devices.topology
        hlotrace.runtime.executables.compilation: hlotrace.runtime.executables.slice_starts
    """,
}


def test_every_import_inside_of_a_function_has_a_reason():
    modules = library()
    listed = {
        (module, target)
        for lines in LOCAL_IMPORTS.values()
        for module, _, targets in (line.strip().partition(": ") for line in lines.strip().splitlines())
        for target in targets.split()
    }
    found = {
        (module, target)
        for module, path in modules.items()
        for _, target in imports(path.read_text("utf-8"), package_of(module, path), modules.keys(), local=True)
    }
    assert found - listed == set()
    assert listed - found == set(), "these are gone: take them off the list"


def test_imports_inside_of_functions_are_found():
    source = "import a\nclass C:\n    import b\n    def f(self):\n        if self:\n            from .c import d\n"
    assert list(imports(source, "p", set(), local=True)) == [(6, "p.c")]


# What a file gives to one below it, which cannot import it: under each reason the names that are set, where the file below
# declares them.  The decorator of `core/programs.py` and `set_evaluator` of `core/trace.py` do the same by a call.
GIVEN_DOWNWARD = {
    "transformations of programs, for the rules of primitives that hold programs": "programs.batch_flat programs.batch_nonzero programs.map_flat",
    "how a primitive runs outside of programs, which only the runtime knows":
        "jit_p.impl_rule shard_map_p.impl_rule device_put_p.impl_rule sharding_constraint_p.impl_rule "
        "mesh_cast_p.impl_rule reshard_p.impl_rule",
    "operations that a trace writes by itself": "JaxprTrace.pvary JaxprTrace.held JaxprTrace.typed Dimension.as_value "
        "shape.as_type jaxpr.convert",
    "methods of a class below that are functions of this floor":
        "Array.__array_namespace__ Ref.copy Ref.at Ref.T Ref.reshape Ref.transpose Ref.bitcast Ref.get Ref.set Ref.swap Ref.addupdate Ref.__getitem__ "
        "Ref.__setitem__ ShapedArray.unsplit Jaxpr.view "
        "Sharding._to_xla_hlo_sharding Sharding._of_jaxlib SingleDeviceSharding._of_jaxlib BCOO.__getitem__ "
        "BCSR.__getitem__ BCOO.reshape BCOO.__iter__",
    "what an option does when it is set": "checks['jax_num_cpu_devices']",
    "what happens on the way out of a call: errors are worded, results looked at, listeners told":
        "options.leave executable.looked_at progress.monitors boundary.note retraces.log_as_jax",
    "how a call is found again, which those who run programs know": "boundary.recall",
    "the job that this process has joined": "client.world",
    "a child of `fork`, where nothing of the runtime may be used: what refuses it":
        "client.client client._default client.default_device client._make binding.device_put_shards binding.join "
        "binding.to_numpy",
}


def given_downward(module: str, source: str, package: str, known: Set[str]) -> Iterator[str]:
    """What a file sets of the modules it imports, anywhere, and of other names it imports, outside of functions."""
    tree = syntax.parsed(source)
    modules, others = set(), set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                (_, target), = statements([ast.ImportFrom(node.module, [alias], node.level, lineno=1)], package, known)
                if inside(target, "hlotrace"):
                    name = alias.asname or alias.name
                    (modules if target.rpartition(".")[2] == alias.name and target in known else others).add(name)
    top = [node for part in tree.body if not isinstance(part, ast.FunctionDef | ast.ClassDef)
           for node in syntax.walk(part, syntax.statements)]
    for nodes, names in ((syntax.walk(tree, syntax.statements), modules), (top, others)):
        for node in nodes:
            for target in node.targets if isinstance(node, ast.Assign) else []:
                for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if isinstance(each, ast.Attribute | ast.Subscript) and ast.unparse(each.value) in names:
                        yield ast.unparse(each)


def test_what_is_given_downward_has_a_reason():
    modules = library()
    found = {
        name
        for module, path in modules.items()
        for name in given_downward(module, path.read_text("utf-8"), package_of(module, path), modules.keys())
    }
    listed = {name for names in GIVEN_DOWNWARD.values() for name in names.split()}
    assert found - listed == set()
    assert listed - found == set(), "these are gone: take them off the list"


# Of the sources that import jax, and of few that do not.
NAMES_JAX = re.compile(r"\bfrom\s+jax\b|\bimport\b(?:[^#;\\\n]|\\\n)*?(?<!as )\bjax\b|import_module|__import__")


def test_examples_and_tests_never_import_jax():
    paths = [*(ROOT / "examples").glob("*.py"), *(ROOT / "tests").rglob("*.py")]
    # there, `import jax` means hlotrace; pickled.py is a script that JAX runs too
    paths = [path for path in paths if path.parent.name != "libraries" and path.name != "pickled.py"]
    found = [
        f"{path.relative_to(ROOT)}, line {line}"
        for path in paths
        if NAMES_JAX.search(source := path.read_text("utf-8"))
        for line, target in imports(source, "", set())
        if inside(target, "jax")
    ]
    assert not found, "\n" + "\n".join(found)


KNOWN = {
    "hlotrace",
    "hlotrace.core",
    "hlotrace.core.avals",
    "hlotrace.primitives",
    "hlotrace.primitives.arrays.shape",
    "hlotrace.transforms.jvp",
    "hlotrace.lowering.text",
    "hlotrace.runtime",
    "hlotrace.runtime.array_impl",
    "hlotrace.runtime.binding",
    "hlotrace.sharding",
    "hlotrace.sharding.mesh",
    "hlotrace.api.jit",
    "hlotrace.lax",
    "hlotrace.numpy",
    "hlotrace.random",
    "hlotrace.nn",
}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("hlotrace.core.avals", "from hlotrace.primitives.arrays import shape"),
        ("hlotrace.core.avals", "from ..primitives.shape import reshape"),
        ("hlotrace.core.avals", "from .. import numpy"),
        ("hlotrace.core.avals", "from hlotrace import jit"),
        ("hlotrace.core.avals", "def f():\n    import hlotrace.numpy as np"),
        ("hlotrace.core.avals", "if TYPE_CHECKING:\n    from hlotrace.runtime.array_impl import Array"),
        ("hlotrace.core.avals", "importlib.import_module('hlotrace.numpy')"),
        ("hlotrace.core.avals", "import_module('..numpy', __package__)"),
        ("hlotrace.core.avals", "import jaxlib"),
        ("hlotrace.primitives.arrays.shape", "from hlotrace.transforms.jvp import jvp"),
        ("hlotrace.transforms.jvp", "from hlotrace.runtime import array_impl"),
        ("hlotrace.lowering.text", "from hlotrace.runtime import binding"),
        ("hlotrace.sharding.mesh", "from ..runtime import binding"),
        ("hlotrace.core.avals", "from hlotrace.sharding import mesh"),
        ("hlotrace.runtime.array_impl", "from hlotrace import numpy"),
        ("hlotrace.runtime.array_impl", "from hlotrace.api.jit import jit"),
        ("hlotrace.api.jit", "from ..lax import scan"),
        ("hlotrace.lax.shapes", "def f():\n    from ..numpy.util import broadcast_shapes"),
        ("hlotrace.numpy.util", "from .. import random"),
        ("hlotrace.nn.functions", "from ..dtypes import finfo"),
        ("hlotrace.runtime.binding", "from hlotrace.core.avals import ShapedArray"),
        ("hlotrace.numpy", "from jaxlib import _jax"),
        ("hlotrace.numpy", "import jax"),
        ("hlotrace.numpy", "import jax.numpy as jnp"),
        ("hlotrace.numpy", "from scipy import special"),
        ("hlotrace.numpy", "from absl import flags"),
    ],
)
def test_import_across_a_wall_is_found(module, source):
    assert len(objections(module, source, KNOWN)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("hlotrace.core.avals", "import numpy, ml_dtypes, functools\nfrom hlotrace.runtime import binding"),
        ("hlotrace.core.avals", "from . import dtypes\nfrom .dtypes import promote"),
        ("hlotrace.primitives.arrays.shape", "from hlotrace import core\nfrom ..core import avals"),
        ("hlotrace.transforms.jvp", "from hlotrace.lowering import text"),
        ("hlotrace.primitives.arrays.shape", "from ..sharding import mesh"),
        ("hlotrace.sharding.mesh", "from ..core.config import state"),
        ("hlotrace.runtime.array_impl", "from jaxlib import xla_client\nfrom ..lowering import text"),
        ("hlotrace.runtime.binding", "from jaxlib import _jax"),
        ("hlotrace.tools.dump_hlo", "from absl import flags\nimport hlotrace.numpy"),
        ("hlotrace.lax.control_flow", "from ..api.vmap import vmap"),
        ("hlotrace.numpy.util", "from ..lax.shapes import broadcast_shapes"),
        ("hlotrace.nn.initializers", "from .. import lax, random\nfrom .. import numpy as jnp"),
        ("hlotrace.experimental.ode", "import hlotrace as jax\nfrom hlotrace import core, jit"),
    ],
)
def test_import_within_the_walls_is_let_through(module, source):
    assert objections(module, source, KNOWN) == []


@pytest.mark.parametrize("names", ["hlotrace", "all modules"])
def test_importing_the_library_loads_nothing_but_its_dependencies(names, tmp_path):
    """With every package of the test environment installed, and a jax planted in front of them."""
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").touch()
    modules = [name for name in library() if not inside(name, "hlotrace.tools") and name != "hlotrace.core.surface.flags"]
    # The MLIR bindings of jaxlib, which importing hlotrace does not load, use it on Python 3.11 where it is installed.
    allowed = THIRD_PARTY if names == "hlotrace" else THIRD_PARTY | {"typing_extensions"}
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
before = set(sys.modules)
for name in {["hlotrace"] if names == "hlotrace" else modules!r}:
    __import__(name)
new = {{name.partition(".")[0] for name in set(sys.modules) - before}}
new -= sys.stdlib_module_names | {{"hlotrace"}} | {allowed!r}
if "jax" in new and sys.modules["jax"].__path__ == sys.modules["hlotrace"].__path__:
    new.remove("jax")       # not the planted one: hlotrace.as_jax is among all modules
print(*sorted(name for name in new if sys.modules[name].__spec__))  # what Cython makes up has no spec
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr
