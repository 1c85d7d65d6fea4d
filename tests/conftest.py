"""What every run of the tests has: eight CPU devices, compiled programs kept on disk, and who does without these.

Programs are kept in .pytest_cache/programs, or where HLOTRACE_TEST_PROGRAMS says ("": nowhere): what an earlier run, or
another worker of this run, compiled from the same text, options and jaxlib on the same CPU is not compiled again.  The
library's own cache does it, so what is kept cannot hide a change: a program whose text differs is another program.
"""

import importlib.metadata
import os
import pathlib
import sys
import tempfile

import pytest

TESTS = pathlib.Path(__file__).resolve().parent

# Tests that count what is compiled, or look at what compiling it says: nothing is read from disk for them.
# file -> names without parameters, or None for all; tests/house/test_runs.py asks whether they are there.
COMPILE_EACH_TIME: dict[str, set[str] | None] = {
    "core/surface/test_all_options.py": {"test_log_compiles_tells_the_times", "test_the_loggers_levels"},
    "runtime/executables/test_disk_cache.py": None,
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
# optimization; HLOTRACE_TEST_XLA=full is for a run with what users have.
QUICK = ["--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"]
if importlib.metadata.version("jaxlib").startswith("0.10."):  # later ones know no other way to compile fusions
    QUICK += ["--xla_cpu_use_fusion_emitters=false"]
if "HLOTRACE_TEST_FLAGS" not in os.environ:  # a worker has those of the process that started it
    os.environ["HLOTRACE_TEST_FLAGS"] = " ".join([
        os.environ.get("XLA_FLAGS", ""),
        "--xla_force_host_platform_device_count=8",
        *(QUICK if os.environ.get("HLOTRACE_TEST_XLA") != "full" else ()),
    ]).strip()
os.environ["XLA_FLAGS"] = os.environ["HLOTRACE_TEST_FLAGS"]

# More than a hundred processes import the library: they read its bytecode, also where Python is told to leave none.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_report_header() -> list[str]:
    return [
        f"jaxlib: {importlib.metadata.version('jaxlib')}",
        f"compiled programs: {PROGRAMS or 'not kept'}",
    ]


def _compiles_each_time(item: pytest.Item) -> bool:
    if not item.path.is_relative_to(TESTS):
        return False
    names = COMPILE_EACH_TIME.get(item.path.relative_to(TESTS).as_posix(), ())
    return names is None or getattr(item, "originalname", item.name) in names


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None):
    if not PROGRAMS or not _compiles_each_time(item):
        return (yield)
    from hlotrace.core.config import override

    with pytest.MonkeyPatch.context() as patch, override("jax_enable_compilation_cache", False):
        patch.setenv("JAX_ENABLE_COMPILATION_CACHE", "0")
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
