"""Devices: how many, on which platform, from which plugin. What depends on the environment runs in a process of its own."""

import contextlib
import os
import sys
import textwrap
from pathlib import Path

import forked
import pytest

import hlotrace as jax
from hlotrace.runtime.devices import client, plugins


def run(program: str, **environment: str) -> str:
    """What a program prints; its standard error stands in front where it fails."""
    clean = {k: v for k, v in forked.of_one_job().items() if not k.startswith(("XLA_", "TPU_"))}
    with forked.Process(textwrap.dedent(program), env=clean | environment) as process:
        out, err = process.communicate(60)
    return out.strip() if process.returncode == 0 else err + out


COUNTS = "print(jax.device_count(), jax.local_device_count(), len(jax.devices()), len(jax.local_devices()))"


@pytest.mark.parametrize(("first", "environment", "count"),
                         [("", {}, 1),
                          ("", {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}, 8),
                          ("", {"JAX_NUM_CPU_DEVICES": "2"}, 2),
                          ("jax.config.update('jax_num_cpu_devices', 8)", {}, 8),
                          ("jax.config.update('jax_num_cpu_devices', 3)",
                           {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}, 3)])
def test_cpu_devices_are_counted(first, environment, count):
    program = f"import hlotrace as jax\n{first}\n{COUNTS}\nprint(jax.process_index(), jax.process_count())"
    assert run(program, **environment) == f"{count} {count} {count} {count}\n0 1"


def test_the_number_of_devices_is_fixed_by_their_first_use():
    said = run("""
        import hlotrace as jax, hlotrace.numpy as jnp
        def train():
            return jnp.ones(3) + 1
        jax.config.update("jax_num_cpu_devices", 2)
        train()
        jax.config.update("jax_num_cpu_devices", 2)  # as it is
        try:
            jax.config.update("jax_num_cpu_devices", 8)
        except RuntimeError as error:
            print(error)
        print(jax.config.jax_num_cpu_devices)
    """)
    assert "the cpu client with 2 devices was made by <string>:4 (train)" in said, said
    assert said.endswith("\n2")


def test_devices_of_a_process_that_is_not_there():
    said = run("""
        import hlotrace as jax
        print(jax.local_devices(process_index=0) == jax.local_devices())
        for wrong in (lambda: jax.local_devices(process_index=3), lambda: jax.devices("nothing"),
                      lambda: jax.config.update("jax_num_cpu_devices", 0)):
            try: wrong()
            except (ValueError, RuntimeError) as error: print(type(error).__name__, error)
    """)
    lines = said.splitlines()
    assert lines[0] == "True"
    assert lines[1].startswith("ValueError ") and "Unknown process_index 3" in lines[1]
    assert "Unknown backend nothing" in lines[2] and "HLOTRACE_PJRT_PLUGIN=nothing:" in lines[2]
    assert "config option jax_num_cpu_devices: 0 is not a number of devices" in lines[3]


@pytest.mark.quick
def test_devices_of_each_process():
    count = jax.process_count()
    assert [d for i in range(count) for d in jax.local_devices(process_index=i)] == jax.devices()
    for index in (count, -1):
        with pytest.raises(ValueError, match=f"Unknown process_index {index}: there are {count} processes"):
            jax.local_devices(process_index=index)
    assert jax.local_devices(host_id=jax.process_index()) == jax.local_devices() and jax.process_indices() == [*range(count)]


@pytest.mark.quick
def test_names_of_platforms_in_an_option():
    assert client._names("cpu") == ["cpu"] and client._names(" tpu, cpu ,cuda") == ["tpu", "cpu", "cuda"]
    assert client._names("gpu,") == client._names("gpu") and client._names("") == client._names(None) == []


def installed(root: Path, *files: str, text: str = "not a library") -> str:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    return str(root)


CUDA13, CUDA12, TPU = ("jax_plugins/xla_cuda13/xla_cuda_plugin.so",
                       "jax_plugins/xla_cuda12/xla_cuda_plugin.so",
                       "libtpu/libtpu.so")


@pytest.fixture
def bare(monkeypatch):
    """No plugin but those that the test makes."""
    for name in (plugins.VARIABLE, "TPU_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "path", [])
    return monkeypatch


@pytest.mark.quick
@pytest.mark.parametrize(("files", "found"),
                         [((), []),
                          ((CUDA12,), [("cuda", "jax-cuda12-pjrt")]),
                          ((CUDA12, CUDA13), [("cuda", "jax-cuda13-pjrt")]),
                          ((TPU, CUDA13), [("tpu", "libtpu"), ("cuda", "jax-cuda13-pjrt")])])
def test_plugin_wheels_are_found_by_path(files, found, bare, tmp_path):
    bare.setattr(sys, "path", ["/nowhere", installed(tmp_path, *files)])
    assert [(p.platform, p.package) for p in plugins.find().values()] == found
    assert all(os.path.isfile(p.path) for p in plugins.find().values())


@pytest.mark.quick
def test_plugins_named_by_the_user_come_first(bare, tmp_path):
    bare.setattr(sys, "path", [installed(tmp_path, CUDA13)])
    bare.setenv(plugins.VARIABLE, "mine:/a/b.so,cuda:/c.so")
    bare.setenv("TPU_LIBRARY_PATH", "/tpu.so")
    assert [p[:2] for p in plugins.find().values()] == [
        ("mine", "/a/b.so"),
        ("cuda", "/c.so"),
        ("tpu", "/tpu.so"),
    ]


@pytest.mark.quick
@pytest.mark.parametrize("text", ["/a/b.so", "mine:", ":/a.so", "cpu:/a.so", "gpu:/a.so", "my plugin:/a.so"])
def test_a_plugin_named_wrongly(text, bare):
    bare.setenv(plugins.VARIABLE, text)
    with pytest.raises(ValueError, match="want name:/path/to/plugin.so"):
        plugins.find()


@pytest.mark.quick
@pytest.mark.parametrize(("environment", "options"),
                         [({}, {"allocator": "default", "preallocate": False}),
                          ({"XLA_PYTHON_CLIENT_PREALLOCATE": "true"},
                           {"allocator": "default", "preallocate": True}),
                          ({"XLA_PYTHON_CLIENT_MEM_FRACTION": ".5",
                            "XLA_PYTHON_CLIENT_ALLOCATOR": "platform"},
                           {"allocator": "platform", "preallocate": False, "memory_fraction": 0.5})])
def test_gpu_memory_is_taken_as_it_is_needed(environment, options, monkeypatch):
    for name in ("PREALLOCATE", "MEM_FRACTION", "ALLOCATOR"):
        monkeypatch.delenv(f"XLA_PYTHON_CLIENT_{name}", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert plugins.gpu_options() == options


@pytest.mark.quick
@pytest.mark.parametrize(
    ("name", "value"),
    [("MEM_FRACTION", "half"), ("MEM_FRACTION", "1.5"), ("PREALLOCATE", "maybe"), ("ALLOCATOR", "best")],
)
def test_a_wrong_setting_of_gpu_memory_is_named(name, value, monkeypatch):
    monkeypatch.setenv(f"XLA_PYTHON_CLIENT_{name}", value)
    with pytest.raises(ValueError, match=f"XLA_PYTHON_CLIENT_{name}="):
        plugins.gpu_options()


@pytest.mark.quick
def test_libtpu_is_no_default_where_there_is_no_tpu(bare, tmp_path):
    bare.setattr(sys, "path", [installed(tmp_path, TPU)])
    bare.setattr(plugins, "tpu_chips", list)
    assert not plugins.has_default(plugins.find()["tpu"])
    bare.setattr(plugins, "tpu_chips", lambda: ["/dev/accel0"])
    assert plugins.has_default(plugins.find()["tpu"])


def fails():
    raise RuntimeError("it has no device")


@pytest.mark.quick
@pytest.mark.parametrize("given, chosen", [
    ({}, "cpu"), ({"mine": (1, True)}, "mine"), ({"mine": (0, True)}, "cpu"), ({"mine": (-1, True)}, "cpu"),
    ({"low": (100, True), "high": (300, True), "between": (200, True)}, "high"),
    ({"low": (100, True), "fails": (300, True)}, "low"), ({"fails": (300, True)}, "cpu"),
    ({"low": (100, True), "fails": (300, False)}, RuntimeError), ({"low": (300, True), "fails": (100, False)}, "low")])
def test_the_registered_platform_of_the_greatest_priority_is_the_default(given, chosen, bare):
    """Of those that work; what fails is silent only if it is to be."""
    bare.setattr(client, "factories", {name: (*rest, None) for name, rest in given.items()})
    bare.setattr(client, "client", lambda name: fails() if name == "fails" else name)
    bare.setattr(plugins, "find", dict)
    with pytest.raises(chosen) if chosen is RuntimeError else contextlib.nullcontext():
        assert client._default.__wrapped__() == chosen


DEVICES = "import hlotrace as jax; print(jax.devices())"


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"HLOTRACE_PJRT_PLUGIN": "mine:/nowhere/x.so"}, ["backend 'mine'", "/nowhere/x.so is not a file"]),
        ({"HLOTRACE_PJRT_PLUGIN": f"mine:{__file__}"}, ["Unable to initialize backend 'mine'", __file__]),
        ({"HLOTRACE_PJRT_PLUGIN": "nonsense"}, ["ValueError: ", "HLOTRACE_PJRT_PLUGIN='nonsense'"]),
        ({"JAX_PLATFORMS": "rocm"}, ["Unknown backend rocm", "Available backends are "]),
        ({"JAX_PLATFORMS": "cuda,cpu", "HLOTRACE_PJRT_PLUGIN": "cuda:/nowhere/x.so"}, ["backend 'cuda'"]),
        ({"JAX_PLATFORMS": "cpu", "HLOTRACE_PJRT_PLUGIN": "mine:/nowhere/x.so"}, ["[CpuDevice(id=0)]"]),
        ({"JAX_PLATFORM_NAME": "cpu", "HLOTRACE_PJRT_PLUGIN": "mine:/nowhere/x.so"}, ["[CpuDevice(id=0)]"]),
    ],
)
def test_the_platform_is_chosen_and_a_plugin_that_fails_is_named(environment, words):
    said = run(DEVICES, **environment)
    assert all(word in said for word in words), said


def test_platforms_are_only_those_that_were_asked_for():
    said = run("import hlotrace as jax; jax.devices(); jax.devices('cuda')", JAX_PLATFORMS="cpu")
    assert "RuntimeError: devices: Unknown backend cuda. Available backends are ['cpu']: jax_platforms is 'cpu'" in said


@pytest.mark.parametrize("gpus, warnings", [
    (["/dev/nvidia0"], "the cuda plugin is installed but no device of it can be used; using the CPU."), ([], "")])
def test_an_installed_plugin_gives_way_to_the_cpu(gpus, warnings, tmp_path):
    """Where it fails, with a warning; where there is no GPU, it is not tried."""
    program = f"""
        import sys, warnings
        sys.path.append({installed(tmp_path, CUDA13)!r})
        import hlotrace as jax
        from hlotrace.runtime.devices import plugins
        plugins.nvidia_gpus = lambda: {gpus}
        with warnings.catch_warnings(record=True) as caught:
            print(jax.devices())
        print("warned:", *(warned.message for warned in caught))
    """
    lines = run(program).splitlines()
    assert lines[0] == "[CpuDevice(id=0)]"
    assert lines[1].startswith(f"warned: {warnings}".strip()) and bool(lines[1][7:]) == bool(warnings)
