"""`python -m hlotrace.doctor`, on machines made up of folders."""

import importlib.metadata
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from places import ROOT

from hlotrace.runtime.devices import plugins
from hlotrace.tools import doctor

CUDA = "jax_plugins/xla_cuda13/xla_cuda_plugin.so"
JAXLIB = importlib.metadata.version("jaxlib")


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine without accelerators and variables; called with wheels {name: (version, file)}, it installs them."""
    for name in doctor.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(plugins, "tpu_chips", list)
    monkeypatch.setattr(doctor, "hardware",
                        lambda: {"gpus": [], "nvidia_driver": None, "tpu_chips": [], "variables": {}})

    def install(wheels):
        for name, (version, file) in wheels.items():
            info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            (tmp_path / file).parent.mkdir(parents=True)
            (tmp_path / file).write_text("not a library")
        monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])

    return install


@pytest.mark.quick
def test_a_machine_with_all_it_needs(machine):
    report = doctor.examine()
    assert report["problems"] == [] and report["installed"]["jaxlib"] == JAXLIB


@pytest.mark.quick
def test_an_installed_plugin_is_listed_with_its_version(machine):
    machine({"jax-cuda13-pjrt": (JAXLIB, CUDA)})
    report = doctor.examine()
    assert [(p["platform"], p["package"], p["version"]) for p in report["plugins"]][-1:] == [
        ("cuda", "jax-cuda13-pjrt", JAXLIB)
    ]
    assert report["optional"]["jax-cuda13-pjrt"] == JAXLIB and report["problems"] == []


@pytest.mark.quick
def test_a_plugin_of_another_version_than_jaxlib(machine):
    machine({"jax-cuda13-pjrt": ("0.1.2", CUDA)})
    (problem,) = doctor.examine()["problems"]
    assert "jax-cuda13-pjrt 0.1.2 is not of jaxlib's version" in problem["what"]
    assert problem["type"] == f'pip install "jax-cuda13-plugin[with-cuda]=={JAXLIB}"'


@pytest.mark.quick
@pytest.mark.parametrize(("found", "words", "line"),
                         [({"gpus": ["/dev/nvidia0"]}, "an NVIDIA GPU is here (/dev/nvidia0)",
                           "jax-cuda13-plugin[with-cuda]=="),
                          ({"tpu_chips": ["/dev/accel0"]}, "a TPU is here (/dev/accel0)", "libtpu==0.0.")])
def test_hardware_without_its_plugin(found, words, line, machine, monkeypatch):
    bare = doctor.hardware()
    monkeypatch.setattr(doctor, "hardware", lambda: bare | found)
    monkeypatch.setattr(plugins, "WHEELS", {})
    (problem,) = doctor.examine()["problems"]
    assert words in problem["what"] and line in problem["type"]


@pytest.mark.quick
def test_variables_that_ask_for_what_is_not_there(machine, monkeypatch):
    monkeypatch.setattr(plugins, "WHEELS", {})
    monkeypatch.setenv("JAX_PLATFORMS", "gpu,cpu")
    monkeypatch.setenv(plugins.VARIABLE, "mine:/nowhere.so")
    said = [problem["what"] for problem in doctor.examine()["problems"]]
    assert said == [
        "the mine plugin /nowhere.so is not a file",
        "JAX_PLATFORMS asks for cuda, and there is no plugin for it",
    ]
    monkeypatch.setenv(plugins.VARIABLE, "nonsense")
    assert "want name:/path/to/plugin.so" in doctor.examine()["problems"][0]["what"]


@pytest.mark.quick
@pytest.mark.parametrize(("versions", "line"),
                         [({"jaxlib": None}, 'pip install "jaxlib>=0.10,<0.13"'),
                          ({"jaxlib": "0.9.1"}, 'pip install "jaxlib>=0.10,<0.13"'),
                          ({"jaxlib": "0.13.0"}, 'pip install "jaxlib>=0.10,<0.13"'),
                          ({"numpy": "1.26.4"}, 'pip install "numpy>=2"')])
def test_a_package_that_is_missing_or_of_a_wrong_version(versions, line, machine, monkeypatch):
    monkeypatch.setattr(plugins, "WHEELS", {})
    real = doctor.version
    monkeypatch.setattr(doctor, "version", lambda name: versions[name] if name in versions else real(name))
    assert [problem["type"] for problem in doctor.examine()["problems"]] == [line]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"jax/readme.txt": ""}, None),  # Python imports a folder without code too
        ({"jax.py": "no = 1"}, None),  # somebody's file, and no package
        ({"jax-0.9.dist-info/METADATA": "Metadata-Version: 2.1\nName: jax\nVersion: 0.9\n"}, None),  # its files are gone
        (
            {
                "jax-0.9.dist-info/METADATA": "Metadata-Version: 2.1\nName: jax\nVersion: 0.9\n",
                "jax/__init__.py": "raise SystemExit('imported')",
            },
            "0.9",
        ),
    ],
)
def test_a_folder_named_jax_is_not_jax(files, said, machine, monkeypatch, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    bare = [folder for folder in sys.path if folder and not (Path(folder) / "jax").is_dir()]
    monkeypatch.setattr(sys, "path", [str(tmp_path), *bare])
    assert doctor.examine()["jax_beside"] == said


@pytest.mark.quick
def test_a_folder_named_as_a_package_is_no_plugin_and_no_version(machine, monkeypatch, tmp_path):
    for folder in ("plugin_of_tests", "jax_plugins/xla_cuda13", "numpy", "numpy-1.0.dist-info", "jaxlib"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "numpy-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.0\n")
    monkeypatch.setattr(plugins, "WHEELS", {"tpu": (("plugin_of_tests/lib.so", "plugin_of_tests"),)})
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    report = doctor.examine()
    assert (report["plugins"], report["problems"]) == ([], [])
    assert report["installed"]["numpy"] == np.__version__


@pytest.mark.quick
def test_a_device_given_to_a_guest_is_no_tpu(monkeypatch, tmp_path):
    monkeypatch.setattr(plugins, "_PCI", str(tmp_path))
    monkeypatch.setattr(plugins.glob, "glob", lambda pattern: {"/dev/vfio/[0-9]*": ["/dev/vfio/12"]}.get(
        pattern, [str(p) for p in tmp_path.iterdir()] if pattern.startswith(str(tmp_path)) else []))
    for name, vendor, kind, chips in [
        ("gpu", "0x10de", "0x030000", []), ("disk", "0x1ae0", "0x010802", []), ("network", "0x1ae0", "0x020000", []),
        ("tpu", "0x1ae0", "0x120000", ["/dev/vfio/12"])]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(vendor + "\n")
        (tmp_path / name / "class").write_text(kind + "\n")
        assert plugins.tpu_chips() == chips, name


@pytest.mark.quick
def test_platforms_are_read_as_the_library_reads_them(machine, monkeypatch):
    monkeypatch.setattr(plugins, "WHEELS", {})
    monkeypatch.setenv("JAX_PLATFORMS", " cpu , gpu ,")
    (problem,) = doctor.examine()["problems"]
    assert problem["what"] == "JAX_PLATFORMS asks for cuda, and there is no plugin for it"


def test_a_client_that_never_comes_is_ended(machine, monkeypatch):
    monkeypatch.setattr(doctor, "_TRIAL", "import time; time.sleep(100)")
    began = time.monotonic()
    assert doctor.try_client("cpu", 0.5) == {"ok": False, "says": "no answer within 0.5 s; it was killed"}
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(("trial", "says"),
                         [("import os; os.abort()", "died of SIGABRT"),
                          ("raise RuntimeError('no such thing')", "RuntimeError: no such thing")])
def test_a_client_that_fails_says_how(trial, says, machine, monkeypatch):
    monkeypatch.setattr(doctor, "_TRIAL", trial)
    assert doctor.try_client("cpu", 30)["says"].startswith(says)


@pytest.mark.quick
def test_a_failure_counts_where_the_platform_ought_to_work(machine, monkeypatch):
    machine({"jax-cuda13-pjrt": (JAXLIB, CUDA)})
    monkeypatch.setenv(plugins.VARIABLE, f"mine:{__file__}")
    monkeypatch.setattr(doctor, "try_client", lambda name, seconds: {"ok": name == "cpu", "says": ""})
    report = doctor.examine()
    counts = {name: result["counts"] for name, result in doctor.try_all(report, 1).items()}
    assert (counts["cpu"], counts["mine"], counts["cuda"]) == (True, True, False)
    report["hardware"]["gpus"] = ["/dev/nvidia0"]
    assert doctor.try_all(report, 1)["cuda"]["counts"]


@pytest.mark.parametrize(("environment", "status", "words"),
                         [({"JAX_PLATFORMS": "cpu"}, 0, "tried      cpu works: 2 x cpu"),
                          ({"HLOTRACE_PJRT_PLUGIN": f"mine:{__file__}"}, 1,
                           "tried      mine fails: RuntimeError: Unable to initialize")])
def test_the_command(environment, status, words):
    clean = {k: v for k, v in os.environ.items() if k not in doctor.VARIABLES}
    command = [sys.executable, "-m", "hlotrace.doctor", "--try"]
    env = clean | {"JAX_NUM_CPU_DEVICES": "2"} | environment
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == status and words in done.stdout, done.stdout + done.stderr
    assert f"({ROOT / 'hlotrace'})" in done.stdout
    done = subprocess.run([*command[:-1], "--json"], cwd=ROOT, env=clean, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["installed"]["jaxlib"] == JAXLIB


@pytest.mark.parametrize(("found", "ptxas", "gpus", "tpus"), [
    ((), None, "pip install --no-deps \"jax-cuda", "pip install \"libtpu=="),
    (("cuda",), None, "pip install --no-deps nvidia-cuda-nvcc", "pip install \"libtpu=="),
    (("cuda", "tpu"), "/usr/bin/ptxas", None, None)])
def test_it_says_for_which_chips_programs_can_be_compiled_without_one(found, ptxas, gpus, tpus, monkeypatch):
    monkeypatch.setattr(doctor.gpu_targets, "ptxas", lambda: ptxas)
    plugins = {name: doctor.plugins.Plugin(name, f"/{name}.so", "jax-cuda12-plugin" if name == "cuda" else "libtpu")
               for name in found}
    for line, begins in zip(doctor.compiles_for(plugins).values(), (gpus, tpus), strict=True):
        assert line is begins is None or line.startswith(begins)
