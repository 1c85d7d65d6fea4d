"""PartitionSpec: for each dimension of an array, the mesh axes that split it."""


class _Unconstrained:
    def __repr__(self):
        return "UNCONSTRAINED"

    def __reduce__(self):
        return "_UNCONSTRAINED"      # the one there is

_UNCONSTRAINED = _Unconstrained()


def _entry(position, entry):
    """An entry in its one form: None, a name, a tuple of two or more names, or UNCONSTRAINED."""
    if entry is None or entry is _UNCONSTRAINED or isinstance(entry, str):
        return entry
    if isinstance(entry, (tuple, list)) and all(isinstance(name, str) for name in entry):
        return tuple(entry) if len(entry) > 1 else entry[0] if entry else None
    raise TypeError(f"PartitionSpec: entry {position} is {entry!r}; an entry is None, the name of a mesh axis, a tuple "
                    "of names, or PartitionSpec.UNCONSTRAINED")


class PartitionSpec:
    """`P("data", None, ("x", "y"))`: dimension 0 is split over mesh axis "data", 1 is not split, 2 over "x" and "y".

    Dimensions beyond the last entry are not split.  Reads like a tuple, but is a leaf of a pytree.
    """
    __slots__ = ("partitions",)
    UNCONSTRAINED = _UNCONSTRAINED      # the compiler may choose

    def __init__(self, *partitions):
        self.partitions = tuple(_entry(i, entry) for i, entry in enumerate(partitions))

    def axes(self, dim):
        """The names of the mesh axes that split dimension `dim`, as a tuple, major first."""
        entry = self.partitions[dim] if dim < len(self.partitions) else None
        return () if entry is None or entry is _UNCONSTRAINED else (entry,) if isinstance(entry, str) else entry

    def __len__(self):
        return len(self.partitions)

    def __iter__(self):
        return iter(self.partitions)

    def __getitem__(self, index):
        return self.partitions[index]

    def __add__(self, other):
        return PartitionSpec(*self, *other) if isinstance(other, (tuple, PartitionSpec)) else NotImplemented

    def __radd__(self, other):
        return PartitionSpec(*other, *self) if isinstance(other, tuple) else NotImplemented

    def index(self, *args):
        return self.partitions.index(*args)

    def count(self, value):
        return self.partitions.count(value)

    def __eq__(self, other):
        return isinstance(other, PartitionSpec) and self.partitions == other.partitions

    def __hash__(self):
        return hash((PartitionSpec, self.partitions))

    def __reduce__(self):
        return PartitionSpec, self.partitions

    def __repr__(self):
        return f"P{self.partitions!r}"


P = PartitionSpec
