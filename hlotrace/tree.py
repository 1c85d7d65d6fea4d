"""Pytree functions under short names: `tree.map`, `tree.flatten`, `tree.leaves`, ..."""
from .core.pytrees.pytree import static
from .core.pytrees.pytree import tree_all as all
from .core.pytrees.pytree import tree_broadcast as broadcast
from .core.pytrees.pytree import tree_flatten as flatten
from .core.pytrees.pytree import tree_flatten_with_path as flatten_with_path
from .core.pytrees.pytree import tree_leaves as leaves
from .core.pytrees.pytree import tree_leaves_with_path as leaves_with_path
from .core.pytrees.pytree import tree_map as map
from .core.pytrees.pytree import tree_map_with_path as map_with_path
from .core.pytrees.pytree import tree_reduce as reduce
from .core.pytrees.pytree import tree_reduce_associative as reduce_associative
from .core.pytrees.pytree import tree_structure as structure
from .core.pytrees.pytree import tree_transpose as transpose
from .core.pytrees.pytree import tree_unflatten as unflatten
from .core.surface.public import export_names as _offer

__all__ = ["all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
           "map_with_path", "reduce", "reduce_associative", "static", "structure", "transpose", "unflatten"]

_offer(globals())
