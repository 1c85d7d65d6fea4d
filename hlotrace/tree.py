"""Pytree functions under short names: `tree.map`, `tree.flatten`, `tree.leaves`, ..."""
from .core.public import offer as _offer
from .core.tree import static as static
from .core.tree import tree_all as all
from .core.tree import tree_broadcast as broadcast
from .core.tree import tree_flatten as flatten
from .core.tree import tree_flatten_with_path as flatten_with_path
from .core.tree import tree_leaves as leaves
from .core.tree import tree_leaves_with_path as leaves_with_path
from .core.tree import tree_map as map
from .core.tree import tree_map_with_path as map_with_path
from .core.tree import tree_reduce as reduce
from .core.tree import tree_reduce_associative as reduce_associative
from .core.tree import tree_structure as structure
from .core.tree import tree_transpose as transpose
from .core.tree import tree_unflatten as unflatten

__all__ = ["all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
           "map_with_path", "reduce", "reduce_associative", "static", "structure", "transpose", "unflatten"]

_offer(globals())
