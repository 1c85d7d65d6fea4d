"""Partition: how a program lies over devices."""
from typing import NamedTuple


class Partition(NamedTuple):
    """The devices in the order in which the program numbers them, and how each input and output lies over
    them.

    None in place of a sharding leaves it to the compiler, whose choice is told in the axes of `mesh`.
    """
    devices: tuple
    ins: tuple
    outs: tuple
    mesh: object = None

    @property
    def without_devices(self):
        """Do numbers stand for devices, as all that is known is an AbstractMesh?"""
        return type(self.devices[0]) is int
