"""What XLA reads of an earlier profile, to schedule a program better."""
import os

from ...core.surface.public import export_names
from ...runtime import binding

__all__ = ["get_profiled_instructions_proto"]


def get_profiled_instructions_proto(tensorboard_dir):
    """The times of instructions in a profile, as the bytes of XLA's `ProfiledInstructionsProto`.

    They are empty but for profiles of NVIDIA's GPUs.

    Args:
        tensorboard_dir: the folder of one run, `<log_dir>/plugins/profile/<run>`.

    >>> from hlotrace.experimental.profiler import get_profiled_instructions_proto
    >>> times = get_profiled_instructions_proto("logs/plugins/profile/a_run")   # doctest: +SKIP
    """
    return binding.profiler()[0].get_profiled_instructions_proto(os.fspath(tensorboard_dir))


export_names(globals())
