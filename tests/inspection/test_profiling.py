"""hlotrace.profiler: what is written opens in xprof and Perfetto, and names the user's line."""
import gzip
import json
import os
import socket
import threading
import time
import urllib.request
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import profiler
from hlotrace.inspection import profiling

X = jnp.ones((200, 200))


@jax.jit
def profiled(x):
    with jax.named_scope("layer"):
        y = jnp.tanh(x @ x)
    return jnp.sin(y).sum()


def files(folder):
    return {name: os.path.join(at, name) for at, _, names in os.walk(folder) for name in names}


def names(data):
    assert isinstance(data, profiler.ProfileData)
    for plane in data.planes:
        assert isinstance(plane, profiler.ProfilePlane)
        for line in plane.lines:
            assert isinstance(line, profiler.ProfileLine)
            for event in line.events:
                assert isinstance(event, profiler.ProfileEvent)
                if event.name in ("renamed", "train", "inner") or "load" in event.name:
                    with warnings.catch_warnings():     # of jaxlib's, which ends the process where it is an error
                        warnings.simplefilter("ignore", DeprecationWarning)
                        stats = dict(event.stats)
                    yield event.name, stats


def test_a_trace_names_steps_functions_and_lines(tmp_path):
    profiled(X).block_until_ready()
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    session = profiler.start_trace(tmp_path, create_perfetto_trace=True, profiler_options=options)
    assert session.is_running and session.profile_data is None
    with pytest.raises(RuntimeError, match="Only one profile may be run at a time"):
        profiler.start_trace(tmp_path)
    with pytest.raises(RuntimeError, match=r"call stop\(\) first"):
        session.export_profile_data(tmp_path)

    @profiler.annotate_function
    def load():
        return profiled(X).block_until_ready()
    load()
    profiler.annotate_function(load, name="renamed", part=3)()
    with profiler.StepTraceAnnotation("train", step_num=7), profiler.TraceAnnotation("inner", batch=5):
        load()
    data = profiler.stop_trace()
    assert data is session.profile_data and not session.is_running
    seen = {}
    for name, stats in names(data):
        seen.setdefault(name, stats)
    assert any("load" in name for name in seen)
    assert seen["renamed"]["part"] == 3 and seen["train"]["step_num"] == 7 and seen["inner"]["batch"] == 5
    written = files(tmp_path)
    assert sorted(name.split(".", 1)[1] for name in written) == ["json.gz", "trace.json.gz", "xplane.pb"]
    xplane = Path(next(path for name, path in written.items() if name.endswith("xplane.pb"))).read_bytes()
    assert Path(__file__).name.encode() in xplane        # the program, from which xprof takes lines
    for name in written:
        if name.endswith("json.gz"):
            events = json.loads(gzip.decompress(Path(written[name]).read_bytes()))["traceEvents"]
            told = {(e["args"].get("source"), e["args"].get("op_name")) for e in events if "hlo_op" in e.get("args", ())}
            line = profiled.__wrapped__.__code__.co_firstlineno + 3
            known = {(f"test_profiling.py:{line}", "jit(profiled)/layer/dot_general"),
                     (f"test_profiling.py:{line + 1}", "jit(profiled)/reduce_sum")}     # XLA may have made one of all
            assert known & told, told
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()
    with pytest.raises(RuntimeError, match="this session is not running"):
        session.stop()


def test_a_profile_without_files_can_be_written_later(tmp_path):
    with profiler.trace() as session:
        profiled(X).block_until_ready()
    assert isinstance(session, profiler.ProfileSession) and not session.is_running
    profiler.export_profile_data(session, tmp_path, session_id="mine")
    assert os.listdir(tmp_path / "plugins" / "profile") == ["mine"]
    if hasattr(profiling._profiler, "export_to_xprof"):
        profiler.export_profile_data(session.profile_data, tmp_path / "again")
        assert any(name.endswith("xplane.pb") for name in files(tmp_path / "again"))
    else:
        with pytest.raises(NotImplementedError, match="give the ProfileSession"):
            profiler.export_profile_data(session.profile_data, tmp_path / "again")
    with pytest.raises(KeyError), profiler.trace():
        raise KeyError
    profiler.ProfileSession().start()       # the failed one has ended
    profiler.stop_trace()


def test_a_link_to_perfetto(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(profiling, "LINK_PORT", 0)
    fetched = []

    def follow():
        said = ""
        while "url=" not in said:
            time.sleep(0.02)
            said += capsys.readouterr().out
        reply = urllib.request.urlopen(said.split("url=")[1].strip(), timeout=20)
        fetched.append((reply.headers["Access-Control-Allow-Origin"], gzip.decompress(reply.read())))
    thread = threading.Thread(target=follow)
    thread.start()
    with profiler.trace(tmp_path, create_perfetto_link=True):
        profiled(X).block_until_ready()
    thread.join(20)
    (origin, text), = fetched
    assert origin == "https://ui.perfetto.dev" and "traceEvents" in json.loads(text)


def test_memory_profiles(tmp_path):
    kept = jnp.ones(1000) * 3
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    raw = gzip.decompress((tmp_path / "memory.prof").read_bytes())
    assert Path(__file__).name.encode() in raw and kept[0] == 3
    assert gzip.decompress(profiler.device_memory_profile())
    with pytest.raises(RuntimeError, match="foo"):
        profiler.device_memory_profile("foo")


def test_one_server_at_a_time():
    with pytest.raises(ValueError, match="No active profiler server"):
        profiler.stop_server()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    profiler.start_server(port)
    with pytest.raises(ValueError, match="Only one profiler server"):
        profiler.start_server(port + 1)
    found = []
    with pytest.MonkeyPatch.context() as patch:     # it waits half a minute for a server that is not there
        patch.setattr(profiling, "_profiler", SimpleNamespace(register_subprocess=lambda *where: found.append(where)))
        profiler.register_subprocess(12, 34)
    assert found == [(12, 34)]
    profiler.stop_server()
