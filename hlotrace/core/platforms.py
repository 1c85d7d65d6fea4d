"""Platforms: what is known of each kind of device and of XLA's compiler for it.

Whoever would ask which platform this is asks its Platform what it can do; a new kind of device is one entry here.
"""
from collections.abc import Mapping


class Platform(str):
    """A platform's name that knows what can be done there; one that is made of a name alone claims nothing.

    aliases: other names of it, the first being the one that `default_backend` gives
    callback: the custom-call target that calls a Python function of this process, None where there is none
    built_in: custom-call targets that its compiler knows without being told; others are registered by runtime/kernels.py
    keeps_calls: a call that is marked so stays one, and its function is compiled once; elsewhere fusions would be lost
    all_reduces: {elementwise primitive: kinds of dtype} by which its devices can reduce together; None: by all
    in_pieces: starting a program costs so little that one may run as several
    quick: compiler options under which a program compiles faster and runs slower, None where there are none
    instant: bytes of text below which no program takes a second to compile
    dlpack: the number of its devices in DLPack
    """
    __slots__ = ("aliases", "callback", "built_in", "keeps_calls", "all_reduces", "in_pieces", "quick", "instant", "dlpack")

    def __new__(cls, name, *, aliases=(), callback=None, built_in=("InspectSharding",), keeps_calls=False, all_reduces=None,
                in_pieces=False, quick=None, instant=0, dlpack=None):
        self = super().__new__(cls, name)
        self.aliases, self.callback, self.built_in, self.keeps_calls = aliases, callback, built_in, keeps_calls
        self.all_reduces, self.in_pieces, self.quick = all_reduces, in_pieces, quick
        self.instant, self.dlpack = instant, dlpack
        return self

    def all_reduced(self, name, kind):
        """Can its devices reduce values of such a dtype together by the elementwise primitive `name`, or by "reduce"?"""
        return self.all_reduces is None or kind in self.all_reduces.get(name, "")


PLATFORMS = (
    Platform("cpu", callback="xla_ffi_python_cpu_callback", built_in=("InspectSharding", "xla_ffi_python_cpu_callback"),
             keeps_calls=True, in_pieces=True, quick={"xla_backend_optimization_level": 0}, instant=4096, dlpack=1,
             all_reduces={"add": "fciub", "mul": "fciub", "max": "fiub", "min": "fiub", "and": "b", "or": "b"}),
    Platform("cuda", aliases=("gpu",), callback="xla_ffi_python_gpu_callback", dlpack=2),
    Platform("rocm", callback="xla_ffi_python_gpu_callback", dlpack=10),
    Platform("tpu"),
)
_BY_NAME = {name: platform for platform in PLATFORMS for name in (platform, *platform.aliases)}


def platform_named(name):
    """The Platform of a name or an alias."""
    return _BY_NAME.get(name) or Platform(name)


def by_platform(what, rules):
    """A table {platform or None: rule} by the platforms' own names.  TypeError for a platform that is not known."""
    for name in rules:
        if name is not None and name not in _BY_NAME:
            raise TypeError(f"{what} is given for platform {name!r}; known are {', '.join(_BY_NAME)}, and None for every "
                            "other")
    return {name if name is None else _BY_NAME[name]: rule for name, rule in rules.items()}


def rule_for(platform, rules):
    """The rule of a platform in a table as `by_platform` makes it, or the one rule of all; None where there is none."""
    if not isinstance(rules, Mapping):
        return rules
    return rules[platform] if platform in rules else rules.get(None)
