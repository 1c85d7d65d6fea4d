"""Pytree functions under short names: `tree.map`, `tree.flatten`, `tree.leaves`, ..."""
from .core.pytrees import pytree as _pytree
from .core.pytrees.pytree import static
from .core.surface.public import export_names as _offer, renamed as _renamed

__all__ = ["all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
           "map_with_path", "reduce", "reduce_associative", "static", "structure", "transpose", "unflatten"]

all = _renamed(_pytree.tree_all, "all")
broadcast = _renamed(_pytree.tree_broadcast, "broadcast")
flatten = _renamed(_pytree.tree_flatten, "flatten")
flatten_with_path = _renamed(_pytree.tree_flatten_with_path, "flatten_with_path")
leaves = _renamed(_pytree.tree_leaves, "leaves")
leaves_with_path = _renamed(_pytree.tree_leaves_with_path, "leaves_with_path")
map = _renamed(_pytree.tree_map, "map")
map_with_path = _renamed(_pytree.tree_map_with_path, "map_with_path")
reduce = _renamed(_pytree.tree_reduce, "reduce")
reduce_associative = _renamed(_pytree.tree_reduce_associative, "reduce_associative")
structure = _renamed(_pytree.tree_structure, "structure")
transpose = _renamed(_pytree.tree_transpose, "transpose")
unflatten = _renamed(_pytree.tree_unflatten, "unflatten")

_offer(globals())
