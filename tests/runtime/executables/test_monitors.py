"""hlotrace.monitoring: listeners hear of each stage under JAX's names, and nothing is recorded while nobody listens."""
import time

import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import monitoring
from hlotrace.core.config import override
from hlotrace.runtime.executables import progress

COMPILE = "/jax/core/compile/"
STAGES = [("jaxpr_trace_duration", "heard"), ("jaxpr_to_mlir_module_duration", "jit(heard)"),
          ("backend_compile_duration", "jit(heard)")]


@pytest.fixture
def heard():
    found = []
    monitoring.register_event_listener(lambda e, **k: found.append(("event", e, (), k)))
    monitoring.register_event_duration_secs_listener(lambda e, d, **k: found.append(("duration", e, (d,), k)))
    monitoring.register_event_time_span_listener(lambda e, a, b, **k: found.append(("span", e, (a, b), k)))
    monitoring.register_scalar_listener(lambda e, v, **k: found.append(("scalar", e, (v,), k)))
    yield found
    monitoring.clear_event_listeners()


def test_each_stage_is_heard_once(heard):
    x, before = jnp.ones(4), time.time()
    heard.clear()

    @jax.jit
    def heard_once(x):
        return jnp.cos(x) * 2.375
    for _ in range(3):
        heard_once(x)
    for kind in ("scalar", "duration", "span"):
        assert [(e, k["fun_name"]) for found, e, _, k in heard if found == kind] == [
            (COMPILE + event, name.replace("heard", "heard_once")) for event, name in STAGES]
    for kind, _, values, _ in heard:
        assert (0 <= values[0] < 100) if kind == "duration" else all(before <= v <= time.time() for v in values)


def test_the_disk_cache_is_heard(heard, tmp_path):
    with (override("jax_enable_compilation_cache", True), override("jax_compilation_cache_dir", str(tmp_path)),
          override("jax_persistent_cache_min_compile_time_secs", 0)):
        for _ in range(2):
            jax.clear_caches()
            jax.jit(lambda x: jnp.sin(x) @ x - 0.8125)(jnp.ones((4, 4)))
    cache = "/jax/compilation_cache/"
    said = [(kind, e.removeprefix(cache)) for kind, e, *_ in heard if e.startswith(cache)]
    asked = ("event", "compile_requests_use_cache")
    assert [s for s in said if s == asked] and said.index(("event", "cache_misses")) < said.index(("event", "cache_hits"))
    assert ("duration", "cache_retrieval_time_sec") in said and ("duration", "compile_time_saved_sec") in said


def test_what_is_recorded_and_who_hears(heard):
    monitoring.record_event("/a", n=1)
    monitoring.record_event_duration_secs("/b", 0.5, n=2)
    monitoring.record_event_time_span("/c", 1.0, 2.0)
    monitoring.record_scalar("/d", 7)
    assert heard == [("event", "/a", (), {"n": 1}), ("duration", "/b", (0.5,), {"n": 2}), ("span", "/c", (1.0, 2.0), {}),
                     ("scalar", "/d", (7,), {})]
    del heard[:]
    monitoring.clear_event_listeners()
    for on, off in ((monitoring.register_event_listener, monitoring.unregister_event_listener),
                    (monitoring.register_event_duration_secs_listener, monitoring.unregister_event_duration_listener),
                    (monitoring.register_event_time_span_listener, monitoring.unregister_event_time_span_listener),
                    (monitoring.register_scalar_listener, monitoring.unregister_scalar_listener)):
        def listener(*_, **__):
            raise KeyError("mine")
        on(listener)
        assert progress.monitors is not None
        if on is monitoring.register_event_listener:
            with pytest.raises(KeyError, match="mine"):
                monitoring.record_event("/a")
        off(listener)
        with pytest.raises(ValueError, match="was not registered"):
            off(listener)
        assert progress.monitors is None
    jax.jit(lambda x: x * 5.8125)(1.)
    assert heard == []


KINDS = {"event": (), "event_duration_secs": (0.5,), "event_time_span": (1.0, 2.0), "scalar": (7,)}


@pytest.mark.parametrize("gone", KINDS)
def test_a_listener_goes_alone(gone):
    """Those of its kind and of others hear on, also what hlotrace itself records."""
    said = []
    listeners = {(kind, i): lambda *_, me=(kind, i): said.append(me) for kind in KINDS for i in range(2)}
    for (kind, _), listener in listeners.items():
        getattr(monitoring, f"register_{kind}_listener")(listener)
    off = getattr(monitoring, f"unregister_{gone.replace('_secs', '')}_listener")
    for i in range(2):
        off(listeners.pop((gone, i)))
        del said[:]
        for kind, values in KINDS.items():
            progress.tell(kind, "/e", *values)
        assert said == [*listeners]
    monitoring.clear_event_listeners()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_function_does_not_listen(kind):
    with pytest.raises(TypeError, match=f"register_{kind}_listener: expected a function"):
        getattr(monitoring, f"register_{kind}_listener")(1.5)
    assert progress.monitors is None
