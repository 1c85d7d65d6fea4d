"""Containers that tests of pytrees share."""
import collections

from hlotrace import tree, tree_util

Point = collections.namedtuple("Point", "x y")
OD, DD = collections.OrderedDict, collections.defaultdict
is_none = lambda x: x is None
S = tree.structure


@tree_util.register_pytree_node_class
class Fussy:
    """Breaks the rule that any object may be a child."""

    def __init__(self, x):
        self.x = float(x)

    def tree_flatten(self):
        return (self.x,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)
