"""Platforms: what is known of each kind of device and of XLA's compiler for it.

No other file compares names of platforms: each asks a Platform what it can do.  A new kind of device is one
entry here.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Platform(str):
    """A platform's name that knows what can be done there; made of a name alone, it can do nothing."""
    aliases = ()            # other names of it, the first being the one that `default_backend` gives
    callback = None         # the custom-call target that calls a Python function of this process
    buffer_callback = None  # the same, of one that writes its results into memory of the device
    recorded = ""           # what ends the name of such a target whose work may be recorded and played again
    # targets that its compiler knows; others are registered by runtime/executables/kernels.py
    built_in = ("InspectSharding", "LayoutConstraint")
    # a call marked so stays one, its function compiled once; elsewhere fusions would be lost
    keeps_calls = False
    # {StableHLO operation: kinds of dtype} by which its devices reduce together; None: by all
    all_reduces = None
    in_pieces = False       # starting a program costs so little that one may run as several
    quick = None            # compiler options under which a program compiles faster and runs slower
    instant = 0             # bytes of text below which no program takes a second to compile
    on_host = False         # the memory of its devices is that of this process
    whole_words = False     # must sizes of products of bytes be multiples of 4?
    # the number of elements from which on its compiler may leave NaN out of the largest of floats
    extremes_lose_nan = None
    joins_apart = False     # are concatenations loops of their own, fused with nothing?
    dlpack = None           # the number of its devices in DLPack

    def __new__(cls, name: str, **facts: Any) -> Platform:
        self = super().__new__(cls, name)
        for fact, value in facts.items():
            setattr(self, fact, value)
        return self

    def all_reduced(self, mnemonic: str | None, kind: str) -> bool:
        """Can its devices reduce a kind of dtype by a StableHLO operation (None: by a program)?"""
        return self.all_reduces is None or kind in self.all_reduces.get(mnemonic, "")


_GPU: dict[str, Any] = {
    "callback": "xla_ffi_python_gpu_callback", "buffer_callback": "xla_buffer_python_gpu_callback",
    "recorded": "_cmd_buffer", "joins_apart": True}
PLATFORMS = (
    Platform("cpu", callback="xla_ffi_python_cpu_callback", buffer_callback="xla_buffer_python_cpu_callback",
             built_in=(*Platform.built_in, "xla_ffi_python_cpu_callback", "xla_buffer_python_cpu_callback"),
             keeps_calls=True, in_pieces=True, quick={"xla_backend_optimization_level": 0}, instant=4096,
             on_host=True, dlpack=1, extremes_lose_nan=4096,     # by the library of reductions in jaxlib
             all_reduces={
                 "stablehlo.add": "fciub", "stablehlo.multiply": "fciub", "stablehlo.maximum": "fiub",
                 "stablehlo.minimum": "fiub", "stablehlo.and": "b", "stablehlo.or": "b"}),
    Platform("cuda", aliases=("gpu",), whole_words=True, dlpack=2, **_GPU),
    Platform("rocm", dlpack=10, **_GPU),
    Platform("tpu"),
)
_BY_NAME: dict[str, Platform] = {
    name: platform for platform in PLATFORMS for name in (platform, *platform.aliases)}


def platform_named(name: str) -> Platform:
    """The Platform of a name or an alias."""
    return _BY_NAME.get(name) or Platform(name)


def by_platform(what: str, rules: Mapping[str | None, Any]) -> dict[Platform | None, Any]:
    """A table {platform or None: rule} by the platforms' own names.  TypeError for a platform that is not
    known; `what` is what the rules are for, as its message says."""
    for name in rules:
        if name is not None and name not in _BY_NAME:
            raise TypeError(f"{what} is given for platform {name!r}; known are {', '.join(_BY_NAME)}, and "
                            "None for every other")
    return {name if name is None else _BY_NAME[name]: rule for name, rule in rules.items()}


def rule_for(platform: str, rules: Any) -> Any:
    """The rule of a platform in a table of `by_platform`, or the one rule of all; None without any."""
    if type(rules) is not dict:
        return rules
    return rules[platform] if platform in rules else rules.get(None)
