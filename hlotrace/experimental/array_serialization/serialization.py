"""The interface of what writes arrays to storage while a program goes on.

hlotrace has none of its own: Orbax writes checkpoints, and asks whether an object is one of these.
"""
import abc

from ...core.public import offer

__all__ = ["GlobalAsyncCheckpointManagerBase"]


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """To be derived from: one that writes arrays of several processes in the background, one checkpoint at a time."""

    @abc.abstractmethod
    def check_for_errors(self):
        """Raise what went wrong in the background, if something has."""

    @abc.abstractmethod
    def wait_until_finished(self):
        """Return when everything is written; raise what went wrong."""

    @abc.abstractmethod
    def serialize(self, arrays, tensorstore_specs, *, on_commit_callback):
        """Begin to write arrays, each as its spec says; the callback is called when all are."""

    @abc.abstractmethod
    def deserialize(self, shardings, tensorstore_specs, global_shapes=None, dtypes=None):
        """The arrays that were written, under these shardings."""


offer(globals())
