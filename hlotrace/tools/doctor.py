"""`hlotrace doctor`: what is installed, what hardware is there, what is missing, how to get it.

Looks at files and variables only; `--try` makes each client, in a process of its own that has so many
seconds. The exit status is 1 when something is missing or a client that ought to work does not.
"""
import argparse
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile

from ..core.platforms import platform_named
from ..runtime.devices import gpu_targets, plugins

# package -> (what it must satisfy: the first version, the first that is too new; what to install)
REQUIRED = {"jaxlib": ((0, 10), (0, 13), "jaxlib>=0.10,<0.13"), "numpy": ((2,), None, "numpy>=2"),
            "ml_dtypes": ((0,), None, "ml_dtypes")}
PACKAGES = ("libtpu", "jax-cuda13-pjrt", "jax-cuda13-plugin", "jax-cuda12-pjrt", "jax-cuda12-plugin")
VARIABLES = ("JAX_PLATFORMS", "JAX_PLATFORM_NAME", "JAX_NUM_CPU_DEVICES", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES",
             "TPU_LIBRARY_PATH", "TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES", "TPU_ACCELERATOR_TYPE", "TPU_NAME",
             "TPU_VISIBLE_CHIPS", "TPU_SKIP_MDS_QUERY", "XLA_PYTHON_CLIENT_MEM_FRACTION",
             "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_ALLOCATOR", plugins.VARIABLE)


def version(package):
    """The version of a package as it says it itself, if it is imported, or as its metadata does, or None."""
    if found := getattr(sys.modules.get(package), "__version__", None):
        return found
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def importable(name):
    """The file that `import name` would run, or None: also for a folder without code, which is no package."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return spec.origin if spec and spec.has_location else None


def _numbers(text):
    return tuple(int("".join(filter(str.isdigit, part)) or 0) for part in text.split(".")[:3])


def hardware():
    """Device files, the NVIDIA driver's version and variables; nothing is opened but a text file."""
    return {"gpus": plugins.nvidia_gpus(), "nvidia_driver": plugins.nvidia_driver(),
            "tpu_chips": plugins.tpu_chips(),
            "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ}}


def _asked():
    """The platforms that JAX_PLATFORMS names, as hlotrace reads it."""
    return [platform_named(name) for name in map(str.strip, os.environ.get("JAX_PLATFORMS", "").split(","))
            if name]


def examine():
    """All that is found without making a client, as a dict; "problems" are (what is wrong, what to type)."""
    problems = []
    installed = {name: version(name) for name in REQUIRED}
    for name, (least, beyond, requirement) in REQUIRED.items():
        found = installed[name]
        if found is None or _numbers(found) < least or (beyond and _numbers(found) >= beyond):
            what = f"{name} {found or 'is not installed'}: {requirement} is needed"
            problems.append((what, f'pip install "{requirement}"'))
    try:
        found = list(plugins.find().values())
    except ValueError as error:
        found = []
        problems.append((str(error), f"unset {plugins.VARIABLE}"))
    there = hardware()
    for plugin in found:
        if not os.path.isfile(plugin.path):
            what = f"the {plugin.platform} plugin {plugin.path} is not a file"
            problems.append((what, plugins.install_line(plugin.platform)))
        elif plugin.package and plugin.platform == "cuda" and version(plugin.package) != installed["jaxlib"]:
            has = version(plugin.package) or "of no known version"
            problems.append((f"{plugin.package} {has} is not of jaxlib's version, {installed['jaxlib']}",
                             plugins.install_line("cuda")))
    names = [plugin.platform for plugin in found]
    for wanted, what, files in (("cuda", "an NVIDIA GPU", there["gpus"]),
                                ("tpu", "a TPU", there["tpu_chips"])):
        if files and wanted not in names:
            problems.append((f"{what} is here ({files[0]}) and no plugin for it",
                             plugins.install_line(wanted)))
    for wanted in _asked():
        if wanted not in (*names, "cpu"):
            what = f"JAX_PLATFORMS asks for {wanted}, and there is no plugin for it"
            problems.append((what, plugins.install_line(wanted)))
    return {
        "python": platform.python_version(), "executable": sys.executable, "machine": platform.platform(),
        "hlotrace": version("hlotrace"), "installed": installed,
        "optional": {name: here for name in PACKAGES if (here := version(name))},
        "from": os.path.dirname(importable("hlotrace")), "jax_beside": importable("jax") and version("jax"),
        "compiles_for": compiles_for({plugin.platform: plugin for plugin in found}),
        "plugins": [{"platform": p.platform, "path": p.path, "package": p.package,
                     "version": version(p.package) if p.package else None} for p in found],
        "hardware": there, "problems": [{"what": what, "type": line} for what, line in problems]}


def compiles_for(found):
    """{kind of chips: None where programs can be compiled for them without one, else what to type for it}.

    Args:
        found: {platform: its Plugin}.
    """
    cuda, tpu = found.get("cuda"), found.get("tpu")
    return {"NVIDIA GPUs": None if cuda and gpu_targets.ptxas() else gpu_targets.install_line(cuda),
            "TPUs": None if tpu else plugins.install_line("tpu")}


_TRIAL = """
import json, sys
import hlotrace
from hlotrace.runtime.devices import client
hlotrace.config.update("jax_platforms", sys.argv[1])
found = client.devices(sys.argv[1])
first = found[0]
print("\\n" + json.dumps([len(found), first.device_kind, first.client.platform_version.splitlines()[0]]))
"""


def try_client(name, seconds):
    """Make a platform's client in a process of its own: {"ok": bool, "says": text}.

    It never takes much longer than `seconds`.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                                "TF_CPP_MIN_LOG_LEVEL": "3"}
    with tempfile.TemporaryFile("w+") as said:      # no pipe: a child's child could hold it open
        child = subprocess.Popen([sys.executable, "-c", _TRIAL, name], env=environment,
                                 stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)
        try:
            status = child.wait(seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(5)       # a process that waits in a driver cannot be killed
            return {"ok": False, "says": f"no answer within {seconds:g} s; it was killed"}
        said.seek(0)
        lines = said.read().strip().splitlines() or [""]
    if status == 0:
        count, kind, runtime = json.loads(lines[-1])
        return {"ok": True, "says": f"{count} x {kind} ({runtime})"}
    return {"ok": False, "says": lines[-1] if status > 0
            else f"died of {signal.Signals(-status).name}: {lines[-1]}"}


def try_all(report, seconds):
    """Try the CPU and each plugin; {platform: result}, where "counts" says whether a failure is a fault."""
    tried = {"cpu": {**try_client("cpu", seconds), "counts": True}}
    there = {"cuda": report["hardware"]["gpus"], "tpu": report["hardware"]["tpu_chips"]}
    requested = _asked()
    for plugin in report["plugins"]:
        name = plugin["platform"]
        counts = plugin["package"] is None or name in requested or bool(there.get(name))
        tried[name] = {**try_client(name, seconds), "counts": counts}
    return tried


def _print(report):
    print(f"python     {report['python']} ({report['executable']})\nmachine    {report['machine']}")
    packages = {"hlotrace": f"{report['hlotrace'] or 'not installed'} ({report['from']})",
                **report["installed"], **report["optional"]}
    for name, found in packages.items():
        print(f"{name:<10} {found or 'not installed'}")
    if report["jax_beside"]:
        print(f"jax        {report['jax_beside']} is installed too; hlotrace does not use it")
    for plugin in report["plugins"]:
        print(f"plugin     {plugin['platform']}: {plugin['path']}"
              + (f" ({plugin['package']} {plugin['version'] or 'of no known version'})" if plugin["package"]
                 else ""))
    there = report["hardware"]
    print("gpu        " + "; ".join(filter(None, [", ".join(there["gpus"]) or "none found",
                                                  there["nvidia_driver"]])))
    print(f"tpu        {', '.join(there['tpu_chips']) or 'none found'}")
    for chips, line in report["compiles_for"].items():
        words = "yes" if line is None else f"no; to have it: {line}"
        print(f"compiling  for {chips} that are not here: {words}")
    for name, value in there["variables"].items():
        print(f"{name}={value}")
    for name, result in report.get("tried", {}).items():
        if result["ok"]:
            word = "works"
        elif result["counts"]:
            word = "fails"
        else:
            word = "has no device here"
        print(f"tried      {name} {word}: {result['says']}")
    for problem in report["problems"]:
        print(f"MISSING    {problem['what']}\n           {problem['type']}")
    print("All is well." if report["ok"] else "Something is amiss.")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="hlotrace doctor",
                                     description=__doc__.partition("\n\n")[2])
    parser.add_argument("--try", dest="trial", action="store_true",
                        help="make each client, in a process of its own")
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS", help="for each client (60)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    report = examine()
    if options.trial:
        report["tried"] = try_all(report, options.timeout)
    report["ok"] = not report["problems"] and all(r["ok"] or not r["counts"]
                                                  for r in report.get("tried", {}).values())
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        _print(report)
    return 0 if report["ok"] else 1
