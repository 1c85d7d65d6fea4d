"""What every run of the tests has: eight CPU devices, compiled programs kept on disk, and who does without these.

Programs are kept in .pytest_cache/programs, or where HLOTRACE_TEST_PROGRAMS says ("": nowhere): what an earlier run, or
another worker of this run, compiled from the same text, options and jaxlib on the same CPU is not compiled again.  The
library's own cache does it, so what is kept cannot hide a change: a program whose text differs is another program.
"""

import contextlib
import functools
import gc
import importlib.metadata
import os
import pathlib
import sys
import tempfile
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from xdist.scheduler import LoadFileScheduling

TESTS = pathlib.Path(__file__).resolve().parent

# Tests that count what is compiled, or look at what compiling it says: nothing is read from disk for them.
# file -> names with or without parameters, or None for all; tests/house/test_runs.py asks whether they are there.
COMPILE_EACH_TIME: dict[str, set[str] | None] = {
    "as_jax/test_inside.py": {"test_faces_of_the_inside"},
    "core/surface/test_all_options.py": {"test_log_compiles_tells_the_times", "test_the_loggers_levels"},
    "api/test_stages.py": {
        "test_a_call_after_compiling_ahead_of_time_compiles_nothing_and_the_reverse",
        "test_what_was_compiled_otherwise_is_not_shared",
    },
    "house/test_differences.py": {"test_a_jit_of_an_equal_function_does_not_compile_again"},
    "inspection/test_retraces.py": {
        "test_a_weak_scalar_that_comes_back_strong_compiles_nothing_again",
    },
    "runtime/executables/test_monitors.py": {"test_each_stage_is_heard_once"},
    "runtime/executables/test_progress.py": {"test_a_terminal_shows_a_line"},
    "runtime/executables/test_tiers.py": None,
    "runtime/executables/test_disk_cache.py": None,
}


# Tests of what is computed where XLA optimizes as it does for users: the quick way rounds otherwise, or cannot.
AS_USERS_COMPILE: dict[str, set[str] | None] = {
    "core/test_leaks.py": {"test_a_network_with_library_functions_does_not_leak"},
    "nn/test_scaled.py": {"test_rounded_products_are_those_of_jax"},
}


def _programs() -> str:
    """The directory of compiled programs; another one, which ends with the run, where that cannot be written."""
    chosen = os.environ.get("HLOTRACE_TEST_PROGRAMS")
    if chosen is not None:
        return chosen and os.path.abspath(chosen)
    folder = TESTS.parent / ".pytest_cache" / "programs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except OSError:
        _programs.temporary = tempfile.TemporaryDirectory(prefix="hlotrace-tests-")  # type: ignore[attr-defined]
        return _programs.temporary.name  # type: ignore[attr-defined]


PROGRAMS = os.environ["HLOTRACE_TEST_PROGRAMS"] = _programs()  # workers find it there
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "1" if PROGRAMS else "0"
os.environ["JAX_COMPILATION_CACHE_DIR"] = PROGRAMS
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "0"

# Eight CPU devices: arrays and programs may be on several of them.  XLA compiles in half the time with little
# optimization, and in less where a program's code is not split for threads; HLOTRACE_TEST_XLA=full is for a run with
# what users have.
# flag: (the quick value, the usual one)
QUICK = {
    "xla_backend_optimization_level": (0, 3),
    "xla_llvm_disable_expensive_passes": (True, False),
    "xla_cpu_parallel_codegen_split_count": (1, 32),
}
if importlib.metadata.version("jaxlib").startswith("0.10."):  # later ones know no other way to compile fusions
    QUICK["xla_cpu_use_fusion_emitters"] = (False, True)
IS_QUICK = os.environ.get("HLOTRACE_TEST_XLA") != "full"
if "HLOTRACE_TEST_FLAGS" not in os.environ:  # a worker has those of the process that started it
    os.environ["HLOTRACE_TEST_FLAGS"] = " ".join([
        os.environ.get("XLA_FLAGS", ""),
        "--xla_force_host_platform_device_count=8",
        *[f"--{flag}={str(value).lower()}" for flag, (value, _) in QUICK.items() if IS_QUICK],
    ]).strip()
os.environ["XLA_FLAGS"] = os.environ["HLOTRACE_TEST_FLAGS"]

# Where matplotlib cannot write at home it says so on stderr, where an example that plots says nothing.
if "MPLCONFIGDIR" not in os.environ and not os.access(os.path.expanduser("~"), os.W_OK):
    MATPLOTLIB = tempfile.TemporaryDirectory(prefix="hlotrace-matplotlib-")
    os.environ["MPLCONFIGDIR"] = MATPLOTLIB.name  # workers find it there

# More than a hundred processes import the library: they read its bytecode, also where Python is told to leave none.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


# What is read of the report of a test that passed.
REPORTED = "nodeid", "location", "when", "sections", "duration", "start", "stop", "user_properties"
SHORT = 0.005       # seconds from which `--durations` lists a report


def pytest_report_header() -> list[str]:
    return [
        f"jaxlib: {importlib.metadata.version('jaxlib')}",
        f"compiled programs: {PROGRAMS or 'not kept'}",
    ]


@pytest.hookimpl(tryfirst=True)
def pytest_report_to_serializable(report: pytest.TestReport | pytest.CollectReport) -> dict[str, Any] | None:
    """Three reports of each test go from a worker to xdist: of what passed, only what is read, at a third of the time."""
    if isinstance(report, pytest.TestReport) and report.passed:
        return {"passed": {name: getattr(report, name) for name in REPORTED}}
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_report_from_serializable(data: dict[str, Any]) -> pytest.TestReport | None:
    if passed := data.pop("passed", None):
        return pytest.TestReport(**passed, **data, keywords={}, outcome="passed", longrepr=None)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A worker says of a test that passed that it did, in place of five messages: a third of what running an empty test takes."""
    if not hasattr(item.config, "workerinput"):
        return None
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    passed = all(report.passed for report in reports)
    for report in reports:
        if not passed or report.when == "call" or report.duration >= SHORT:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


class Files(LoadFileScheduling):
    """A file is one worker's; what is done is not counted again, nor a test looked for among all, after each test."""

    def add_node_collection(self, node: Any, collection: Any) -> None:
        super().add_node_collection(node, collection)
        self.registered_collections[node] = Names(collection)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        file = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][file].values()):
            del self.assigned_work[node][file]


class Names(list):
    """Names of tests that know where in the list they are."""

    @functools.cached_property
    def places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self)}

    def index(self, name: str) -> int:
        return self.places[name]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    return Files(config, log)


def _wants_quick(config: pytest.Config) -> bool:
    """Is this `make quick`?"""
    return config.option.markexpr.startswith("quick")


def pytest_configure(config: pytest.Config) -> None:
    """Programs and syntax trees are many objects and few cycles: looking for some at every 700 takes a twentieth of the time."""
    gc.set_threshold(*((100_000, 50, 50) if _wants_quick(config) else (50_000, 20, 20)))


def pytest_collection_finish() -> None:
    """Looking for cycles goes over what a file of tests makes, not over all modules of tests and the library."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, specname="pytest_runtest_protocol")
def pytest_freezing_after_each_file(item: pytest.Item, nextitem: pytest.Item | None):
    result = yield
    if nextitem is None or nextitem.path != item.path:
        gc.freeze()
    return result


def pytest_sessionfinish() -> None:
    """pytest looks for cycles five times when it ends: not in the syntax trees of all the files."""
    if syntax := sys.modules.get("syntax"):
        syntax.forget()


def pytest_ignore_collect(collection_path: pathlib.Path, config: pytest.Config) -> bool | None:
    """Quick tests are in files that name the mark: the others are not imported to find that they have none."""
    if _wants_quick(config) and collection_path.suffix == ".py" and "mark.quick" not in collection_path.read_text("utf-8"):
        return True
    return None


@functools.cache
def _place(path: pathlib.Path) -> str:
    return path.relative_to(TESTS).as_posix() if path.is_relative_to(TESTS) else ""


def _listed(item: pytest.Item, table: dict[str, set[str] | None]) -> bool:
    names = table.get(_place(item.path), set())
    return names is None or bool(names & {item.name, getattr(item, "originalname", item.name)})


def _forget(stack: contextlib.ExitStack) -> None:
    """Nothing compiled before serves a test, or what it compiled those after it."""
    from hlotrace import clear_caches
    from hlotrace.runtime.executables import compilation

    for forget in (compilation._loaded.clear, clear_caches):
        forget()
        stack.callback(forget)


@pytest.hookimpl(wrapper=True, specname="pytest_runtest_protocol")
def pytest_compiling_as_listed(item: pytest.Item, nextitem: pytest.Item | None):
    each_time, as_users = _listed(item, COMPILE_EACH_TIME), _listed(item, AS_USERS_COMPILE)
    with contextlib.ExitStack() as stack:
        if each_time and PROGRAMS:
            from hlotrace.core.config import override

            stack.enter_context(override("jax_enable_compilation_cache", False))
            stack.enter_context(pytest.MonkeyPatch.context()).setenv("JAX_ENABLE_COMPILATION_CACHE", "0")
            _forget(stack)
        if as_users and IS_QUICK:
            from hlotrace.runtime import binding

            make, usual = binding.compile_options, {flag: value for flag, (_, value) in QUICK.items()}
            stack.enter_context(pytest.MonkeyPatch.context()).setattr(
                binding,
                "compile_options",
                lambda devices, options=None, *rest: make(devices, usual | (options or {}), *rest),
            )
            _forget(stack)
        return (yield)


def _compiled() -> int:
    """How many programs this process compiled, or found compiled on disk."""
    compilation = sys.modules.get("hlotrace.runtime.executables.compilation")
    return compilation.compile_count + compilation.disk_hits if compilation else 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """A test marked quick compiles nothing."""
    before = _compiled()
    result = yield
    quick = item.get_closest_marker("quick") and not item.get_closest_marker("compiles")
    if quick and _compiled() != before:
        pytest.fail(f"it is marked quick and compiles {_compiled() - before} program(s)", pytrace=False)
    return result
