"""For tests of programs compiled for NVIDIA GPUs that are not here."""
import pytest

from hlotrace.runtime.devices import gpu_targets, plugins


def lacks():
    """Which wheels are missing, in the words of pip, or None."""
    plugin = plugins.find().get("cuda")
    if plugin is None or gpu_targets.compiler_folder(plugin) is None:
        return f"`make gpu` installs what is missing: {gpu_targets.install_line(plugin)}"
    return None


needs_wheels = pytest.mark.skipif(bool(lacks()), reason=str(lacks()))
