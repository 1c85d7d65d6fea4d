"""Compiled programs on disk: found by the next process, never trusted unchecked, never in the way."""
import gc
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import forked
import numpy as np
import pytest
from places import ROOT

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.config import override
from hlotrace.runtime import binding
from hlotrace.runtime.executables import compilation, disk_cache
from hlotrace.tools import cache

X = np.arange(6, dtype=np.float32).reshape(2, 3)

PROGRAM = """
import json, sys
import hlotrace as jax
from hlotrace.runtime.executables import compilation as whole
import numpy as np
import hlotrace.numpy as jnp

def step(w, x):
    def body(carry, _):
        carry = jnp.tanh(carry @ w) + jnp.sin(carry)
        return carry, carry.sum()
    last, sums = jax.lax.scan(body, x, None, length=5)
    return last, {"sums": sums, "sorted": jnp.sort(x, axis=0)}

w, x = jax.device_put((np.eye(8, dtype=np.float32) / 2, np.arange(32, dtype=np.float32).reshape(4, 8)))
compiled = jax.jit(step, donate_argnums=1).lower(w, x).compile()
before = whole.compile_count, whole.disk_hits
results = compiled(w, x)
stats = compiled.memory_analysis()
print(json.dumps({
    "compiled": before[0], "hits": before[1], "from_disk": compiled._executable.from_disk,
    "results": [r.tolist() for r in jax.tree.leaves(results)], "donated": x.is_deleted(),
    "cost": compiled.cost_analysis()["flops"], "aliased": stats.alias_size_in_bytes, "temporary": stats.temp_size_in_bytes,
    "text": compiled.as_text().split("HloModule")[1].split("\\n")[0], "twice": jnp.tanh(results[0] * 2).tolist()}))
"""


def environment(where, seconds="0", **more):
    return {**os.environ, "PYTHONPATH": str(ROOT), "JAX_COMPILATION_CACHE_DIR": str(where),
            "JAX_ENABLE_COMPILATION_CACHE": "1", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": seconds,
            **more}


def start(program, where, *arguments, **options):
    return subprocess.Popen([sys.executable, "-W", "error", program, *arguments],
                            env=environment(where, **options),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    with process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out)


@pytest.fixture
def kept(tmp_path):
    """A directory of its own, where everything that is compiled is kept."""
    where = tmp_path / "programs"
    disk_cache._warned.clear()
    with (override("jax_enable_compilation_cache", True), override("jax_compilation_cache_dir", where),
          override("jax_persistent_cache_min_compile_time_secs", 0)):
        yield where


def compiled(scale=1.0, options=None, function=None):
    """A program, compiled as if by a new process."""
    compilation._loaded.clear()
    function = function or (lambda x: jnp.sin(x) * scale)
    return jax.jit(function).lower(jax.ShapeDtypeStruct((2, 3), "float32")).compile(options)


def from_disk(*args, **kwargs):
    program = compiled(*args, **kwargs)
    scale = args[0] if args else 1.0
    np.testing.assert_allclose(program(jnp.array(X)), np.sin(X) * scale, rtol=1e-6)
    return program._executable.from_disk


def only_file(where):
    found = list(where.iterdir())
    assert len(found) == 1 and re.fullmatch(r"jit_\w+-[0-9a-f]{64}-cache", found[0].name)
    return found[0]


def test_the_next_process_compiles_nothing_even_from_another_file_and_line(tmp_path):
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text(PROGRAM)
    second.write_text("# a line more\n\n" + PROGRAM)
    where = tmp_path / "programs"
    cold, warm = (finish(start(path, where)) for path in (first, second))
    assert (cold.pop("compiled"), cold.pop("hits"), cold.pop("from_disk")) == (1, 0, False)
    assert (warm.pop("compiled"), warm.pop("hits"), warm.pop("from_disk")) == (0, 1, True)
    assert warm == cold and warm["donated"] and warm["aliased"] == 128


def test_processes_that_start_together_all_succeed(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"import warnings; warnings.simplefilter('error')\n{PROGRAM}")
    where = tmp_path / "programs"
    started = [forked.Process(forked.file(program), env=environment(where)) for _ in range(4)]
    results = [finish(process)["results"] for process in started]
    assert all(r == results[0] for r in results)
    assert all(path.name.endswith("-cache") for path in where.iterdir())
    assert cache.verify(str(where)) == 0


def test_small_programs_do_not_look_and_quick_ones_are_not_kept(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import json, sys
import hlotrace as jax, hlotrace.numpy as jnp
def long(x):
    for i in range(40):
        x = x @ x
    return x
jax.jit(lambda x: jnp.sin(x) + 1)(1.0)
small = "hlotrace.runtime.executables.disk_cache" in sys.modules
jax.jit(long).lower(jax.ShapeDtypeStruct((3, 3), "float32")).compile()
print(json.dumps([small, "hlotrace.runtime.executables.disk_cache" in sys.modules]))
""")
    assert finish(start(program, tmp_path / "programs", seconds="100")) == [False, True]
    assert not (tmp_path / "programs").exists()


def test_program_options_jaxlib_and_device_are_part_of_the_key(kept, monkeypatch):
    assert not from_disk() and from_disk()
    assert not from_disk(2.0) and from_disk(2.0)
    options = {"xla_backend_optimization_level": 0}
    assert not from_disk(options=options) and from_disk(options=options)
    assert len(list(kept.iterdir())) == 3
    monkeypatch.setattr(binding, "jaxlib_version", "0.0.1")
    assert not from_disk()
    monkeypatch.undo()
    monkeypatch.setattr(disk_cache, "_machine", lambda: b"another CPU")
    assert not from_disk()


def test_names_of_lines_arguments_and_results_are_not_part_of_the_key(kept):
    def with_text(names, debug_info):
        lowered = jax.jit(lambda x: {names: jnp.sort(jnp.tanh(x))}).lower(
            jax.ShapeDtypeStruct((3,), "float32"))
        return lowered.as_text(debug_info=debug_info)

    texts = [with_text("a", False), with_text("a", True), with_text("loc(#loc1)", True)]
    assert len(set(texts)) == 3
    device, options = jax.devices()[0], binding.compile_options(jax.devices()[:1])
    assert len({disk_cache.key_of(text, device, options) for text in texts}) == 1
    named = 'func @f(%arg0: tensor<f32> loc("x")) {\n  custom_call @g() {config = " loc(#loc1)"}\n'
    assert disk_cache._NAMES.sub("", named) == named.replace(' loc("x")', "")


def test_who_reads_lines_reads_those_of_the_source_as_it_is_now(kept, tmp_path):
    source = "def moved(x):\n    return jnp.sin(x @ x)\n"

    def at(first):
        """The program with its first line there, compiled as if by a new process."""
        jax.clear_caches()
        gc.collect()            # of the program's name, this one alone is alive
        space = {"jnp": jnp}
        exec(compile("\n" * (first - 1) + source, str(tmp_path / "moved.py"), "exec"), space)
        return jax.jit(space["moved"]).lower(jnp.ones((64, 64))).compile()

    def lines(program):
        return {int(line) for line in re.findall(r"^\d+ \{file_name_id=\d+ .*?\bline=(\d+)",
                                                 program.as_text(), re.M)}

    def traced(program, folder):
        with jax.profiler.trace(tmp_path / folder):
            program(jnp.ones((64, 64))).block_until_ready()
        with gzip.open(next((tmp_path / folder).rglob("*.trace.json.gz"))) as file:
            found = [e.get("args", {}) for e in json.load(file)["traceEvents"]]
        return {args.get("source") for args in found if args.get("hlo_module") == "jit_moved"}

    assert lines(at(1)) == {2}
    later = at(11)
    assert later._executable.from_disk and traced(later, "later") == {None}
    assert lines(later) == {12}
    before = compilation.compile_count
    again = at(11)
    assert lines(again) == {12} and compilation.compile_count == before
    first = at(1)
    assert first._executable.from_disk and traced(first, "first") == {"moved.py:2"}


def test_lower_and_compile_prepares_the_plain_call(kept):
    f = jax.jit(lambda x: {"y": jnp.cos(x) * 3})
    f.lower(jax.ShapeDtypeStruct((2, 3), "float32")).compile()
    hits = compilation.disk_hits
    compilation._loaded.clear()
    f.clear_cache()         # as in another process
    f(X)
    assert compilation.disk_hits == hits + 1


@pytest.mark.parametrize("position", [3, 30, 100, 150, 1000, -1])
def test_a_flipped_byte_is_found_and_the_program_compiled_again(kept, position):
    assert not from_disk()
    path = only_file(kept)
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    with pytest.warns(RuntimeWarning, match=rf"{path.name} cannot be used .* compiled again"):
        assert not from_disk()
    assert from_disk()


@pytest.mark.parametrize(
    "content", [b"", b"hlotrace executable 1\n", b"PK\x03\x04 something else" * 99, "half"])
def test_truncated_and_foreign_files_are_replaced(kept, content):
    assert not from_disk()
    path = only_file(kept)
    path.write_bytes(path.read_bytes()[:-5000] if content == "half" else content)
    with pytest.warns(RuntimeWarning, match="compiled again"):
        assert not from_disk()
    assert from_disk()


def test_the_file_of_another_program_is_not_used(kept):
    assert not from_disk()
    other = only_file(kept)
    assert not from_disk(2.0)
    path = next(p for p in kept.iterdir() if p != other)
    shutil.copy(other, path)
    with pytest.warns(RuntimeWarning, match="holds another program"):
        assert not from_disk(2.0)


def test_bytes_that_jaxlib_refuses_are_compiled_again(kept, monkeypatch):
    assert not from_disk()
    path = only_file(kept)
    about = json.dumps({"key": path.stem}).encode()
    body = about + b"\nnot an executable"
    path.write_bytes(disk_cache._FORMAT + disk_cache.hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    with pytest.warns(RuntimeWarning, match="compiled again"):
        assert not from_disk()


def test_what_was_used_longest_ago_is_evicted(kept):
    for scale in (1.0, 2.0, 3.0):
        assert not from_disk(scale)
        for path in kept.iterdir():      # an hour passes
            status = path.stat()
            os.utime(path, (status.st_mtime - 3600,) * 2)
    foreign, abandoned = kept / "notes.txt", kept / f"{'0' * 64}.1-1.tmp"
    foreign.write_text("not ours")
    abandoned.write_bytes(b"a process died while it wrote this")
    os.utime(foreign, (0, 0))
    os.utime(abandoned, (0, 0))
    size = sum(path.stat().st_size for path in kept.glob("*-cache"))
    assert from_disk(1.0)                # so 2.0 is the one used longest ago
    with override("jax_compilation_cache_max_size", size + 500):
        assert not from_disk(4.0)
    assert not abandoned.exists() and foreign.read_text() == "not ours"
    with override("jax_compilation_cache_max_size", -1):
        assert [from_disk(scale) for scale in (1.0, 3.0, 4.0, 2.0)] == [True, True, True, False]


def test_sizes_that_are_not_kept(kept):
    for option, value in (("jax_compilation_cache_max_size", 100),
                          ("jax_persistent_cache_min_entry_size_bytes", 10**9)):
        with override(option, value):
            assert not from_disk() and not from_disk()


@pytest.mark.parametrize("broken", ["below a file", "full", "null"])
def test_a_directory_that_cannot_be_used_is_one_warning(kept, tmp_path, monkeypatch, broken):
    where = kept
    if broken == "full":
        def replace(*_):
            raise OSError(28, "No space left on device")
        monkeypatch.setattr(os, "replace", replace)
    elif broken == "null":
        where = f"{kept}\0"
    else:
        (tmp_path / "file").touch()
        where = tmp_path / "file" / "programs"
    with override("jax_compilation_cache_dir", where), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert not from_disk() and not from_disk(2.0)
    assert len(caught) == 1 and issubclass(caught[0].category, RuntimeWarning)
    assert "jax_compilation_cache_dir" in str(caught[0].message)
    assert not kept.exists() or not list(kept.iterdir())


def test_programs_with_callbacks_are_not_kept(kept):
    def f(x):
        return jax.pure_callback(lambda v: np.asarray(v) + 1, jax.ShapeDtypeStruct((2, 3), "float32"), x)
    for _ in range(2):
        program = compiled(function=f)
        np.testing.assert_array_equal(program(jnp.array(X)), X + 1)
        assert not program._executable.from_disk


def test_log_compiles_says_where_a_program_came_from(kept, caplog):
    assert not from_disk()
    with override("jax_log_compiles", True):
        compiled()
    assert f"from {only_file(kept)}" in caplog.text


def test_where_programs_are_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    with override("jax_enable_compilation_cache", True), override("jax_compilation_cache_dir", None):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert disk_cache.directory() == str(tmp_path / "hlotrace")
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setenv("HOME", "/home/someone")
        assert disk_cache.directory() == "/home/someone/.cache/hlotrace"
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)      # nobody knows the home directory
        assert disk_cache.directory() is None
        with override("jax_compilation_cache_dir", ""):
            assert disk_cache.directory() is None
        with override("jax_compilation_cache_dir", Path("there")):
            assert disk_cache.directory() == os.path.abspath("there")
        with override("jax_enable_compilation_cache", False), override("jax_compilation_cache_dir", "there"):
            assert disk_cache.directory() is None


def test_command_line_lists_verifies_and_clears(kept, capsys):
    def run(command):
        return cache.main([command]), capsys.readouterr().out

    assert run("list") == (0, f"{kept}: 0 programs, 0 B of 2.15 GB\n")
    compiled()
    def wave(x):
        return jnp.sin(x)
    compiled(function=wave)
    status, text = run("list")
    assert status == 0 and f"{kept}: 2 programs" in text and "wave" in text and binding.jaxlib_version in text
    assert run("verify") == (0, f"{kept}: 2 of 2 programs are as they were written\n")
    path = next(iter(kept.iterdir()))
    path.write_bytes(b"x" * 99)
    (kept / "notes.txt").touch()
    status, text = run("verify")
    assert status == 1 and f"damaged: {path}: it was not written by" in text and "1 of 2" in text
    assert "(cannot be read)" in run("list")[1]
    status, text = run("clear")
    assert status == 0 and text.startswith(f"{kept}: removed 2 programs, ") and text.count("\n") == 1
    assert [p.name for p in kept.iterdir()] == ["notes.txt"]
    with override("jax_enable_compilation_cache", False):
        assert "not kept" in run("list")[1]
    with pytest.raises(SystemExit):
        cache.main(["burn"])


def test_command_line_of_a_process(tmp_path):
    done = subprocess.run([sys.executable, "-m", "hlotrace.cache", "list"], env=environment(tmp_path),
                          cwd=ROOT,
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}: 0 programs, 0 B of 2.15 GB\n"), done.stderr


def test_a_right_checksum_over_foreign_contents_is_a_warning(kept):
    compiled(function=lambda x: (x, jnp.cos(x)))
    two_results = disk_cache.read(only_file(kept))[1]
    disk_cache.clear(kept)
    assert not from_disk()
    path = only_file(kept)
    metadata, code = disk_cache.read(path)
    described = json.dumps(metadata).encode() + b"\n"
    for body in (b"", b"no line", b"no json\n" + code, b"[]\n" + code, b"{}\n" + code, b'"key"\n' + code,
                 described,
                 described + code[:len(code) // 2], described + two_results):
        path.write_bytes(disk_cache._FORMAT + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        with pytest.warns(RuntimeWarning, match="cannot be used .*compiled again"):
            assert not from_disk()
        assert disk_cache.read(path)[0]["key"] == metadata["key"] and from_disk()


def test_programs_without_arguments_or_results_are_found_again(kept):
    for function, args in ((lambda: jnp.ones(3) * 2, ()), (lambda x: (), (1.0,)),
                           (lambda x: (x, x, None, 3), (1.0,))):
        jax.jit(function).lower(*args).compile()
        jax.clear_caches()
        assert jax.jit(function).lower(*args).compile()._executable.from_disk
        disk_cache.clear(kept)


@pytest.mark.parametrize("seconds, pieces, stored",
                         [(0.6, 1, False), (0.6, 2, True), (0.1, 10, True), (0.1, 9, False), (1.0, 1, True)])
def test_one_of_several_pieces_is_stored_where_all_of_them_took_long(tmp_path, seconds, pieces, stored):
    device, = devices = jax.devices()[:1]
    options = binding.compile_options(devices, {})
    text = "module @m {func.func public @main(%0: tensor<f32>) -> tensor<f32> {return %0 : tensor<f32>}}"
    loaded = device.client.compile_and_load(text, binding.DeviceList(tuple(devices)), options)
    entry = disk_cache.Entry(str(tmp_path), disk_cache.key_of(text, device, options), tuple(devices), options)
    with override("jax_persistent_cache_min_compile_time_secs", 1.0):
        entry.store(loaded, "m", seconds, pieces)
    assert os.path.exists(entry.path) is stored
