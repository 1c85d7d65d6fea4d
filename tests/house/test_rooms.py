"""The tree of files: rooms stay small, names say one thing, and what has sixty lines or more has its tests."""
from collections import defaultdict
from pathlib import Path

import pytest
from places import LIBRARY, TESTS

pytestmark = pytest.mark.quick

MOST_FILES = 22
SIXTY = 60

# Two files of one name are the sides of one thing: what users call and what it is built on.
SIDES = """
    __main__ ad cache callbacks checkpoint_policies checks contraction custom_batching custom_derivatives
    custom_partitioning doctor dtypes elementwise errors exported factorizations ffi fft frontend_attributes
    generators hijax indexing jacobians jet key_reuse layout linalg mlir partial_eval plan profile random reductions refs serialization
    serialize_executable shard_map sharding special stages topologies transform util vmap xla
""".split()

# Files, or folders, that are tested together: by which file.  Others have a file of their own, tests/<path>/test_<name>.py.
TESTED_BY = {
    "as_jax/": "as_jax/test_faces.py",
    "as_jax/nothing.py": "as_jax/test_inside.py",
    "as_jax/light.py": "as_jax/test_identities.py",
    "experimental/pallas/": "experimental/pallas/test_names.py",
    "api/compiled_calls.py": "api/test_jit.py",
    "api/compiled_errors.py": "api/test_stages.py",
    "api/external/noted_errors.py": "experimental/test_error_check.py",
    "api/hijax.py": "experimental/test_hijax.py",
    "api/jacobians.py": "api/test_autodiff.py",
    "placement/jit_placement.py": "runtime/executables/test_spmd.py",
    "api/parallel/explain_sharding.py": "inspection/test_sharding_plan.py",
    "api/refs.py": "numpy/indexing/test_refs.py",
    "core/array.py": "runtime/test_array_impl.py",
    "core/surface/": "core/surface/test_all_options.py",
    "distributed/": "distributed/test_job.py",
    "experimental/multihost_utils.py": "runtime/processes/test_in_every_process.py",
    "experimental/sparse/": "experimental/sparse/test_sparse.py",
    **dict.fromkeys(("export/exporting.py", "export/format.py"), "export/test_exported.py"),
    "extend/random.py": "random/test_keys.py",
    **dict.fromkeys(("inspection/planning/estimates.py", "inspection/planning/local_program.py",
                     "inspection/planning/traced_estimates.py", "inspection/planning/plan_report.py"),
                    "api/parallel/test_plan.py"),
    "inspection/timing/time_report.py": "api/external/test_profile.py",
    "runtime/executables/introspect.py": "api/test_stages.py",
    "tools/command_line.py": "tools/test_dump_hlo.py",
    "inspection/array_shardings.py": "runtime/executables/test_sharded_programs.py",
    "inspection/pages/hlo_rows.py": "inspection/pages/test_document.py",
    "inspection/pages/jaxpr_rows.py": "inspection/pages/test_document.py",
    "inspection/pages/live_memory.py": "inspection/pages/test_document.py",
    "inspection/pages/stablehlo_rows.py": "inspection/pages/test_document.py",
    "inspection/partitioner_exchanges.py": "inspection/test_sharding_plan.py",
    "interpreters/registry.py": "extend/test_primitives.py",
    "numpy/elementwise/ufunc_rules.py": "numpy/elementwise/test_ufuncs.py",
    "numpy/factorizations.py": "numpy/test_linalg.py",
    "placement/": "placement/test_shardings.py",
    "primitives/": "primitives/test_ops.py",
    "random/": "random/test_samplers.py",
    "runtime/devices/plugins.py": "tools/test_doctor.py",
    "runtime/mlir/shardy.py": "inspection/test_propagated_text.py",
    "runtime/mlir/partitioners.py": "api/parallel/test_custom_partitioning.py",
    "runtime/processes/": "runtime/processes/test_membership.py",
    "scipy/": "scipy/test_sampled.py",
    "scipy/special/": "scipy/special/test_special.py",
    "scipy/stats/": "scipy/stats/test_distributions.py",
    "tools/cache.py": "runtime/executables/test_disk_cache.py",
    "transforms/checks.py": "experimental/test_checkify.py",
    "transforms/jet.py": "experimental/test_jet.py",
    "transforms/": "primitives/test_ops.py",
}


def files():
    """Paths of the library's files of code, relative to it."""
    return sorted(p.relative_to(LIBRARY) for p in LIBRARY.rglob("*.py") if p.name != "__init__.py")


def covering(file):
    """The file of tests that the table gives for a file: the longest entry that fits."""
    name = file.as_posix()
    fits = [entry for entry in TESTED_BY if name == entry or entry.endswith("/") and name.startswith(entry)]
    return TESTED_BY[max(fits, key=len)] if fits else None


def own(file):
    return Path(file.parent, f"test_{file.name}")


def test_no_folder_has_many_files():
    count = defaultdict(int)
    for file in files():
        count[file.parent.as_posix()] += 1
    del count["."]      # the public faces
    assert {folder: n for folder, n in count.items() if n > MOST_FILES} == {}


def test_one_name_is_one_thing():
    places = defaultdict(list)
    for file in files():
        places[file.stem].append(file.parent.as_posix())
    assert sorted(name for name, found in places.items() if len(found) > 1) == SIDES


def test_every_file_has_its_tests():
    long = [f for f in files() if len((LIBRARY / f).read_text("utf-8").splitlines()) >= SIXTY]
    without = [f.as_posix() for f in long if not (TESTS / own(f)).exists() and covering(f) is None]
    assert without == []


def test_the_table_is_true():
    assert [test for test in TESTED_BY.values() if not (TESTS / test).exists()] == []
    needed = {f.as_posix() for f in files() if not (TESTS / own(f)).exists()}
    assert [entry for entry in TESTED_BY if not any(f == entry or f.startswith(entry) for f in needed)] == []
