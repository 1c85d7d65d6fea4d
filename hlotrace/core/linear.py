"""What rules of linear primitives see in place of an operand whose value is unknown."""
from .avals import register_aval


class Linear:
    """An unknown operand in a transpose rule; its cotangent is what the rule computes."""
    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)


def _not_linear(_):
    raise TypeError("the function is not linear in its arguments, so it has no transpose: an operation combines two values "
                    "that depend on them")


register_aval(Linear, _not_linear)


def is_linear(x):
    return type(x) is Linear


class Axis:
    """The axis that a vmap adds: its size, and its name for collectives (or None)."""
    __slots__ = ("size", "name", "spmd_name")

    def __init__(self, size, name=None, spmd_name=None):
        self.size, self.name, self.spmd_name = size, name, spmd_name

    def __eq__(self, other):
        return (self.size, self.name, self.spmd_name) == (other.size, other.name, other.spmd_name)

    def __hash__(self):
        return hash((self.size, self.name, self.spmd_name))
