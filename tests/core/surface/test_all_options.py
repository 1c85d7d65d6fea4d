"""Each of JAX's options does what it says (a test shows it), is taken since here it means nothing, or is refused by name."""
import logging
import os
import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
from mesh8 import auto_mesh
from option_changes import CHANGES, X
from places import TOOLS, names_of_tests

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core import config as options
from hlotrace.core.config import override
from hlotrace.core.surface.other_options import MEANS_NOTHING, NOT_DONE
from hlotrace.runtime import binding
from hlotrace.runtime.devices import client, plugins, transfer_guards
from hlotrace.runtime.executables import compilation, disk_cache
from hlotrace.sharding import NamedSharding, P

THEIRS = (TOOLS / "jax_options.txt").read_text("utf-8").split()


# --- one test each -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", CHANGES)
def test_an_option_that_changes_programs(name):
    value, check = CHANGES[name]
    before = jax.config.read(name)
    with override(name, value):
        check(name)
    assert jax.config.read(name) == before
    assert name in options.TRACING


def test_threads_are_guarded():
    """A program over several devices stands in for one over several processes: only those ask."""
    mesh = auto_mesh((2,), ("i",))
    x = jax.device_put(np.ones(2, np.float32), NamedSharding(mesh, P("i")))
    call = jax.jit(lambda x: x + 11.5)
    call(x)
    executable, = [c.executable for c in call._known.calls.values() if hasattr(c, "executable")][:1]
    executable.company = types.SimpleNamespace(start=lambda _: None)
    said = []

    def elsewhere():
        try:
            call(x)
        except RuntimeError as error:
            said.append(str(error))
    with jax.thread_guard(True):
        call(x)
        for work in (elsewhere, lambda: said.append(float((X + 1)[0]))):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    assert len(said) == 2 and "called in a thread other than the one that set jax_thread_guard" in said[0] and said[1] == 1
    elsewhere()
    assert len(said) == 2 and transfer_guards._guardian is None and not jax.config.jax_thread_guard


def test_arrays_that_the_garbage_collector_frees(capfd):
    import gc

    class Node:
        pass

    def cycle():
        node = Node()
        node.me, node.x = node, X + 17
        del node
        gc.collect()
    with jax.array_garbage_collection_guard("log"):
        cycle()
    assert "was deleted by the Python garbage collector" in capfd.readouterr().err
    cycle()
    assert capfd.readouterr().err == ""
    with pytest.raises(ValueError, match="'log', 'fatal'"):
        jax.array_garbage_collection_guard("lg")


def test_large_constants_are_told():
    c = jnp.ones(5000)
    with override("jax_captured_constants_warn_bytes", 20_000), override("jax_captured_constants_report_frames", 1):
        with pytest.warns(UserWarning, match=r"captured 1 constant of 20000 bytes in all(.|\n)*float32\[5000\]: used at "
                                             r".*test_all_options\.py:\d+") as caught:
            jax.jit(lambda x: x + c)(1.)
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.jit(lambda x: x * c)(1.)


def test_the_cpu_client_is_made_as_said(monkeypatch):
    made = []
    monkeypatch.setattr(binding._jax, "get_tfrt_cpu_client", lambda **said: made.append(said))
    client._make_cpu()
    with (override("jax_cpu_enable_async_dispatch", False), override("jax_cpu_get_global_topology_timeout_minutes", 9),
          override("jax_cpu_get_local_topology_timeout_minutes", 4)):
        client._make_cpu()
    assert [(m["asynchronous"], m["get_local_topology_timeout_minutes"], m["get_global_topology_timeout_minutes"])
            for m in made] == [(True, 2, 5), (False, 4, 9)]


def test_a_plugin_is_made_as_said():
    with (override("jax_cuda_visible_devices", "1,3"),
          override("jax_pjrt_client_create_options", "a:3;b:yes;c:true")):
        assert plugins.gpu_options()["visible_devices"] == [1, 3]
        assert plugins.said_options() == {"a": 3, "b": "yes", "c": True}
    assert "visible_devices" not in plugins.gpu_options() and plugins.said_options() == {}
    with override("jax_pjrt_client_create_options", "a"), pytest.raises(ValueError, match="'a' is not name:value"):
        plugins.said_options()


def test_the_disk_cache_raises_where_it_is_told_to(tmp_path):
    device, text = jax.devices()[0], 'module { } loc("f")\n'
    made = binding.compile_options([device])
    entry = disk_cache.Entry(str(tmp_path), "0" * 64, [device], made)
    Path(entry.path).write_bytes(b"damaged")
    with override("jax_raise_persistent_cache_errors", True):
        with pytest.raises(RuntimeError, match="cannot be used"):
            entry.load()
        with pytest.raises(RuntimeError, match="cannot be read from"):
            entry._unusable("read from", OSError("gone"))
    keys = [disk_cache.key_of(t, device, made) for t in (text, text.replace("f", "g"))]
    with override("jax_compilation_cache_include_metadata_in_key", True):
        told = [disk_cache.key_of(t, device, made) for t in (text, text.replace("f", "g"))]
    assert keys[0] == keys[1] != told[0] != told[1]


def test_log_compiles_tells_the_times(caplog):
    def timed_here(x):
        return jnp.cos(x) - 0.4375
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        jax.jit(timed_here)(X)
    said = [r.getMessage() for r in caplog.records]
    assert [s.rsplit(" in ", 1)[0] for s in said] == [
        "Finished tracing timed_here for jit", "Finished jaxpr to MLIR module conversion jit(timed_here)",
        "Finished XLA compilation of jit(timed_here)"]
    assert all(float(s.split()[-2]) >= 0 for s in said)


def test_the_loggers_levels():
    """In a process of its own: what is set stays."""
    done = subprocess.run([sys.executable, "-c", """
import logging, hlotrace as jax
f = jax.jit(lambda x: x + 1)
jax.config.update("jax_logging_level", "ERROR")
with jax.log_compiles():
    f(1)
print(logging.getLogger("hlotrace").level)
jax.config.update("jax_debug_log_modules", "jax._src.dispatch")
f(1.)
"""], capture_output=True, text=True, env={
    **os.environ, "JAX_LOGGING_LEVEL": "INFO", "JAX_REMAT3": "1", "JAX_PROCESS_ID": "0"})
    assert done.stdout == "40\n", done.stderr
    assert [line.split()[3] for line in done.stderr.splitlines()] == ["tracing", "jaxpr", "XLA"], done.stderr


# --- the whole table -----------------------------------------------------------------------------------------------

SHOWN = {       # the other options that do what they say -> the test that shows it, in any file
    **dict.fromkeys(CHANGES, "test_an_option_that_changes_programs"),
    "jax_no_tracing": "test_no_tracing",
    "jax_export_calling_convention_version": "test_the_calling_convention_is_an_option",
    "jax_disallow_mesh_context_manager": "test_a_bare_mesh_as_a_context_is_refused",
    "jax_thread_guard": "test_threads_are_guarded",
    "jax_array_garbage_collection_guard": "test_arrays_that_the_garbage_collector_frees",
    **dict.fromkeys(("jax_captured_constants_warn_bytes", "jax_captured_constants_report_frames"),
                    "test_large_constants_are_told"),
    **dict.fromkeys(("jax_cpu_enable_async_dispatch", "jax_cpu_get_global_topology_timeout_minutes",
                     "jax_cpu_get_local_topology_timeout_minutes"), "test_the_cpu_client_is_made_as_said"),
    **dict.fromkeys(("jax_cuda_visible_devices", "jax_pjrt_client_create_options"), "test_a_plugin_is_made_as_said"),
    **dict.fromkeys(("jax_raise_persistent_cache_errors", "jax_compilation_cache_include_metadata_in_key"),
                    "test_the_disk_cache_raises_where_it_is_told_to"),
    **dict.fromkeys(("jax_dump_ir_to", "jax_dump_ir_modes", "jax_include_debug_info_in_dumps"), "test_programs_are_dumped"),
    "jax_log_compiles": "test_log_compiles_tells_the_times",
    **dict.fromkeys(("jax_logging_level", "jax_debug_log_modules"), "test_the_loggers_levels"),
    "jax_check_static_indices": "test_the_option_makes_it_an_error",
    "jax_check_tracer_leaks": "test_a_leak_is_reported",
    "jax_compilation_cache_dir": "test_where_programs_are_kept",
    "jax_compilation_cache_max_size": "test_what_was_used_longest_ago_is_evicted",
    **dict.fromkeys(("jax_debug_nans", "jax_debug_infs"), "test_options_are_read_by_each_call"),
    **dict.fromkeys([f"jax_error_checking_behavior_{kind}" for kind in ("nan", "divide", "oob")],
                    "test_numpy_functions_note_what_the_options_ask_for"),
    "jax_debug_key_reuse": "test_a_key_used_twice",
    "jax_default_device": "test_default_device_is_for_what_nothing_else_places",
    "jax_default_matmul_precision": "test_a_retrace_names_the_option_or_the_axis_that_changed",
    **dict.fromkeys(("jax_default_prng_impl", "jax_threefry_partitionable"),
                    "test_default_prng_impl_and_threefry_partitionable"),
    "jax_disable_jit": "test_disable_jit_runs_python",
    "jax_enable_compilation_cache": "test_where_programs_are_kept",
    "jax_enable_custom_prng": "test_enable_custom_prng",
    "jax_enable_x64": "test_a_changed_option_is_seen_by_the_next_call",
    "jax_explain_cache_misses": "test_the_option_says_from_when",
    "jax_legacy_prng_key": "test_legacy_prng_key",
    "jax_num_cpu_devices": "test_cpu_devices_are_counted",
    "jax_numpy_dtype_promotion": "test_promotion",
    "jax_numpy_rank_promotion": "test_rank_promotion",
    "jax_persistent_cache_min_compile_time_secs": "test_small_programs_do_not_look_and_quick_ones_are_not_kept",
    "jax_persistent_cache_min_entry_size_bytes": "test_sizes_that_are_not_kept",
    "jax_platform_name": "test_the_platform_is_chosen_and_a_plugin_that_fails_is_named",
    "jax_platforms": "test_platforms_are_only_those_that_were_asked_for",
    "jax_softmax_custom_jvp": "test_softmax_custom_jvp",
    "jax_traceback_filtering": "test_modes",
    "jax_transfer_guard": "test_a_context_is_for_its_thread_and_an_option_for_all",
    "jax_transfer_guard_host_to_device": "test_implicit_transfers_from_the_host_are_refused",
    "jax_transfer_guard_device_to_device": "test_transfers_between_devices",
    "jax_transfer_guard_device_to_host": "test_fetching_is_guarded_by_its_own_context",
}


@pytest.mark.quick
def test_each_option_is_of_one_kind():
    kinds = [{name for name in options._OPTIONS if name in THEIRS}, {*MEANS_NOTHING}, {*NOT_DONE}]
    assert set().union(*kinds) == set(THEIRS) and sum(map(len, kinds)) == len(set(THEIRS)) == 144
    assert set(SHOWN) == kinds[0]
    there = names_of_tests()
    assert not {*SHOWN.values()} - there


def test_the_environment_is_printed(capsys):
    jax.print_environment_info()
    said = capsys.readouterr().out
    assert said == jax.print_environment_info(return_string=True) + "\n"
    assert [line.split(":")[0] for line in said.splitlines()][:3] == ["hlotrace", "jaxlib", "numpy"]
    assert jax.__version__ in said and "8 local devices" in said and compilation.binding.jaxlib_version in said
