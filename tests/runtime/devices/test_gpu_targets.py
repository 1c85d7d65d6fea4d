"""What XLA is told of GPUs that are not here, and what a person is told who lacks its compiler."""
import os
import re

import pytest

from hlotrace.runtime import binding
from hlotrace.runtime.devices import chips, gpu_targets, plugins

pytestmark = pytest.mark.quick
PLUGIN = plugins.Plugin("cuda", "/plugin.so", "jax-cuda12-pjrt")
PLUGIN_13 = PLUGIN._replace(package="jax-cuda13-pjrt")


@pytest.mark.parametrize("name, topology", [("h100", "1x1x1"), ("h100:8", "1x1x8"), ("h100:2x8", "1x2x8")])
def test_a_topology_by_name(name, topology):
    assert gpu_targets.topology_options(name, chips.CHIPS["h100"], PLUGIN)["topology"] == topology


@pytest.mark.parametrize("name", ["h100:", "h100:0", "h100:1x2x8", "h100:-1", "h100:x8", "h100:8:8"])
def test_what_is_no_topology(name):
    with pytest.raises(ValueError, match=f'{name!r} is no topology of h100: say "h100:8" for eight GPUs'):
        gpu_targets.topology_options(name, chips.CHIPS["h100"], PLUGIN)


@pytest.mark.parametrize("chip, capability, feature", [
    ("v100", "major: 7 minor: 0", "NONE"), ("l4", "major: 8 minor: 9", "NONE"),
    ("h200", "major: 9 minor: 0", "ACCELERATED_FEATURES"), ("b200", "major: 10 minor: 0", "ACCELERATED_FEATURES")])
def test_a_target_config_has_the_figures_of_the_chip(chip, capability, feature):
    chip = chips.CHIPS[chip]
    text = gpu_targets.target_config(chip, "12.9.0")
    assert f"cuda_compute_capability: {{ {capability} feature_extension: {feature} }}" in text
    assert f"core_count: {chip.cores} " in text and f'device_description_str: "{chip.kind}"' in text
    assert gpu_targets.memory_of(text) == chip.memory
    assert re.search(r"memory_bandwidth: \d+ ", text), "XLA reads an integer"
    assert gpu_targets.memory_of("core_count: 3") is None


def test_versions_of_cuda_follow_the_plugin():
    texts = [gpu_targets.topology_options("l4", chips.CHIPS["l4"], plugin)["target_config"]
             for plugin in (PLUGIN, PLUGIN_13)]
    assert ['runtime_version: "12.9.0"' in text for text in texts] == [True, False]


@pytest.mark.parametrize("plugin, line", [
    (None, f'"jax-cuda12-pjrt=={binding.jaxlib_version}" "jax-cuda12-plugin=={binding.jaxlib_version}" '
           "nvidia-cuda-nvcc-cu12"),
    (PLUGIN, "nvidia-cuda-nvcc-cu12"), (PLUGIN_13, "nvidia-cuda-nvcc nvidia-nvvm")])
def test_what_to_install(plugin, line):
    assert gpu_targets.install_line(plugin) == f"pip install --no-deps {line}"


@pytest.mark.parametrize("message, words", [
    ("UNAVAILABLE: No PTX compilation provider is available. Neither", "ptxas, which makes machine code"),
    ("UNIMPLEMENTED: /usr/bin/ptxas ptxas too old. Falling back", "a ptxas for this GPU"),
    ("INTERNAL: libdevice not found at ./libdevice.10.bc", "libdevice, NVIDIA's mathematical functions"),
    ("INTERNAL: libdevice is required by this HLO module but was not found at x", "libdevice, NVIDIA's")])
def test_what_is_missing_is_said(message, words):
    said = gpu_targets.missing(message, PLUGIN)
    assert said.startswith(words) and said.endswith("without it: pip install --no-deps nvidia-cuda-nvcc-cu12")
    assert gpu_targets.missing("INTERNAL: something else", PLUGIN) is None


def test_the_compiler_of_the_wheels_is_used(tmp_path, monkeypatch):
    folder = tmp_path / "nvidia" / "cuda_nvcc"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "ptxas").touch()
    monkeypatch.setattr("sys.path", [str(tmp_path)])

    def used(overrides=None, plugin=PLUGIN):
        options = binding.new_compile_options(1, 1, None, overrides)
        gpu_targets.use_compiler(options, plugin)
        return dict(options.env_option_overrides)
    assert used({"xla_gpu_autotune_level": 0}) == {
        "xla_gpu_autotune_level": 0, "xla_gpu_cuda_data_dir": str(folder)}
    assert used(plugin=PLUGIN_13) == {}
    assert used({"xla_gpu_cuda_data_dir": "/mine"}) == {"xla_gpu_cuda_data_dir": "/mine"}
    monkeypatch.setenv("XLA_FLAGS", f"{os.environ.get('XLA_FLAGS', '')} --xla_gpu_cuda_data_dir=/mine")
    assert used() == {}


@pytest.mark.parametrize("package, files, tried", [
    ("jax-cuda12-pjrt", [], False), ("jax-cuda12-pjrt", ["/dev/nvidia0"], True), (None, [], True)])
def test_the_plugin_of_pip_is_tried_where_there_is_a_gpu(monkeypatch, package, files, tried):
    monkeypatch.setattr(plugins, "nvidia_gpus", lambda: files)
    assert plugins.has_default(PLUGIN._replace(package=package)) == tried


@pytest.mark.parametrize("files, driver, found", [
    ({"/dev/nvidia[0-9]*": ["/dev/nvidia1", "/dev/nvidia0"]}, None, ["/dev/nvidia0", "/dev/nvidia1"]),
    ({"/dev/dxg": ["/dev/dxg"]}, "NVRM version", ["/dev/dxg"]), ({"/dev/dxg": ["/dev/dxg"]}, None, []),
    ({"/dev/nvgpu": ["/dev/nvgpu"]}, None, ["/dev/nvgpu"]), ({}, None, [])])
def test_gpus_are_found_by_their_device_files(monkeypatch, files, driver, found):
    monkeypatch.setattr(plugins.glob, "glob", lambda pattern: list(files.get(pattern, [])))
    monkeypatch.setattr(plugins, "nvidia_driver", lambda: driver)
    assert plugins.nvidia_gpus() == found


@pytest.mark.parametrize("gpus, said", [([], "kept\n"), (["/dev/nvidia0"], "Could not find cuda drivers\nkept\n")])
def test_only_what_says_that_there_is_no_driver_is_left_out(capfd, monkeypatch, gpus, said):
    monkeypatch.setattr(plugins, "nvidia_gpus", lambda: gpus)
    with plugins.without_driver():
        os.write(2, b"Could not find cuda drivers\nkept\n")
    assert capfd.readouterr().err == said
