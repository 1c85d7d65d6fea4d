"""Passes over programs in XLA's compiler, written in Python."""
import enum

from ..core.surface.public import export_names
from ..runtime import binding

__all__ = ["PipelineStage", "clear_hlo_module_transformation", "register_hlo_module_transformation"]


class PipelineStage(enum.Enum):
    """When the compiler runs a pass: before it orders the operations, or after."""
    PRE_SCHEDULER = 0
    POST_SCHEDULER = 1


def _check(name, stage, platforms):
    if not isinstance(stage, PipelineStage):
        raise TypeError(f"the stage of the compiler pass {name!r} must be a PipelineStage, got {stage!r}")
    others = {*([platforms] if isinstance(platforms, str) else platforms or ())} - {"cpu"}
    if others:
        raise NotImplementedError(f"compiler passes for {', '.join(sorted(others))}: they are here for the "
                                  "CPU only")


def register_hlo_module_transformation(callback, *, name, stage=PipelineStage.PRE_SCHEDULER, platforms=None):
    """Have the CPU's compiler call a function with each program that it compiles from here on.

    Programs that were compiled before, or are found on disk, do not meet it.

    Args:
        callback: (the bytes of an `HloModuleProto`) -> those of another program, or None to leave it.
        name: what `clear_hlo_module_transformation` calls it.
        stage: when it is called; of those of one stage, the first that was registered goes first.
        platforms: "cpu", or a list of it.

    >>> from hlotrace.extend import xla
    >>> sizes = []
    >>> xla.register_hlo_module_transformation(lambda module: sizes.append(len(module)), name="sizes")
    >>> jax.jit(lambda x: x + 12345)(1)
    Array(12346, dtype=int32, weak_type=True)
    >>> len(sizes), xla.clear_hlo_module_transformation("sizes")
    (1, True)
    """
    _check(name, stage, platforms)
    binding.xla_transforms().register_xla_transform(name, stage.value, callback)


def clear_hlo_module_transformation(name, stage=PipelineStage.PRE_SCHEDULER, platforms=None):
    """No longer call the passes of this name; was there one?"""
    _check(name, stage, platforms)
    return binding.xla_transforms().clear_xla_transform(name, stage.value)


export_names(globals())
