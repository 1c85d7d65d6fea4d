"""custom_partitioning: a function of which the user says what each device does; shard_alike."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ...core.avals import ShapedArray
from ...core.jaxpr import close
from ...core.pytrees import pytree
from ...core.surface.boundary import boundaries
from ...core.trace import Tracer
from ...lowering.custom_calls import sharding_rule as rule_text
from ...primitives.parallel.custom_partitioning import custom_partitioning_p, shard_alike_p
from ...sharding.abstract import Sharding
from ...sharding.mesh import AbstractMesh, Mesh
from ...sharding.rules import BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule, parsed
from ..flat import FlatFunction
from ..signatures import name_of
from ..stages import struct_of

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning",
           "shard_alike"]


@boundaries
class custom_partitioning:
    """Decorator of a function that a program over devices computes as `def_partition` says.

    Elsewhere, and on one device, it is the function itself.  `static_argnums` are positions of Python values,
    which are given to the functions of `def_partition` in front.  It has no derivative and cannot be mapped:
    put it in a custom_vjp, or a custom_vmap.

    >>> from hlotrace.experimental.custom_partitioning import custom_partitioning
    >>> @custom_partitioning
    ... def normalized(x):
    ...     return x / jnp.linalg.norm(x, axis=-1, keepdims=True)
    >>> def partition(mesh, arguments, result):     # rows stay whole
    ...     sharding = jax.NamedSharding(mesh, jax.P(*arguments[0].sharding.spec[:1], None))
    ...     return mesh, normalized.fun, sharding, (sharding,)
    >>> _ = normalized.def_partition(partition, sharding_rule="n i -> n i")
    >>> normalized(jnp.array([[3., 4.]]))
    Array([[0.6, 0.8]], dtype=float32)
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: int | Sequence[int] = ()) -> None:
        self.fun = fun
        self.static_argnums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        self.partition: Any = None
        self.__name__ = name_of(fun)

    def def_partition(self, partition: Callable[..., Any], infer_sharding_from_operands: Any = None,
                      propagate_user_sharding: Any = None, decode_shardings: bool = True,
                      sharding_rule: Any = None, *, reduction_factors: Sequence[str] = (),
                      need_replication_factors: Sequence[str] = (), permutation_factors: Sequence[str] = (),
                      **factor_sizes: int) -> Callable[..., Any]:
        """Say how devices compute the function.

        Args:
            partition: `partition(mesh, arg_shapes, result_shape)` is given the structures of arguments and
                result, of ShapeDtypeStructs with the shardings that the compiler suggests.  It returns
                `(mesh, function, result_shardings, arg_shardings)`: the shardings that are wanted, and what
                each device does with its parts; collectives may name the axes of the mesh.
            infer_sharding_from_operands: of JAX's older partitioner, as are `propagate_user_sharding` and
                `decode_shardings`, and not used: Shardy takes the rule.
            sharding_rule: how shardings go through the function: a string such as "... i k, k j -> ... i j",
                in which dimensions of one name are cut alike, a SdyShardingRule, or `rule(mesh, arg_shapes,
                result_shape)` that gives either.  Without one nothing is cut.
            reduction_factors: names of factors of a string that are summed over.
            need_replication_factors: those that must not be cut.
            permutation_factors: those that would be permuted.
        Returns:
            `partition`.
        Raises:
            TypeError: for a `sharding_rule` of another kind.
            ValueError: for factors without a string.
        """
        kinds = {"reduction_factors": reduction_factors, "need_replication_factors": need_replication_factors,
                 "permutation_factors": permutation_factors}
        if isinstance(sharding_rule, str):
            sharding_rule = parsed(sharding_rule, **kinds, **factor_sizes)
        elif any(kinds.values()) or factor_sizes:
            raise ValueError("def_partition: factors and their sizes go with a string as sharding_rule; a "
                             "SdyShardingRule says them itself")
        elif not isinstance(sharding_rule, (SdyShardingRule, type(None))) and not callable(sharding_rule):
            raise TypeError("def_partition: sharding_rule must be a string, a SdyShardingRule or a function "
                            f"that gives one, got {sharding_rule!r:.60}")
        self.partition, self.sharding_rule = partition, sharding_rule
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.partition is None:
            raise AttributeError(f"No partition defined for custom_partitioning function {self.__name__}: "
                                 "call its def_partition")
        if kwargs:
            args = inspect.signature(self.fun).bind(*args, **kwargs).args
        statics = [args[i] for i in self.static_argnums]
        dynamic = tuple(a for i, a in enumerate(args) if i not in self.static_argnums)

        def fun(*given: Any) -> Any:
            dynamic, fixed = iter(given), dict(zip(self.static_argnums, statics))
            return self.fun(*(fixed[i] if i in fixed else next(dynamic) for i in range(len(args))))
        flat = FlatFunction(fun, *pytree.tree_flatten((dynamic, {})), "custom_partitioning")
        traced = flat.trace(flat.avals())
        closed, consts = close(traced.jaxpr)
        if consts:
            what = "traced values" if any(isinstance(c, Tracer) for c in consts) else "large arrays"
            raise ValueError(f"custom_partitioning of {self.__name__}: it closes over {what}, of which "
                             "nothing says how they are cut: make them arguments")
        partitioner = _Partitioner(self, statics, pytree.tree_structure(dynamic), traced.out_tree)
        outs = custom_partitioning_p.bind(*flat.leaves, jaxpr=closed, partitioner=partitioner)
        return traced.out_tree.unflatten(outs)


class _Partitioner:
    """What one call needs of the user's functions."""

    def __init__(self, of: custom_partitioning, statics: Sequence[Any], in_tree: pytree.PyTreeDef,
                 out_tree: pytree.PyTreeDef) -> None:
        self.of, self.statics, self.in_tree, self.out_tree = of, statics, in_tree, out_tree

    def rule(self, mesh: Mesh | AbstractMesh, avals: Sequence[ShapedArray],
             out_avals: Sequence[ShapedArray]) -> str:
        """The Shardy rule as text; an empty one where the user gave none: the compiler cuts nothing then."""
        rule = self.of.sharding_rule
        if rule is not None and not isinstance(rule, SdyShardingRule):
            rule = rule(*self.statics, mesh, self.in_tree.unflatten(map(struct_of, avals)),
                        self.out_tree.unflatten(map(struct_of, out_avals)))
            rule = parsed(rule) if isinstance(rule, str) else rule
        if rule is None:
            return ""
        operands, results, sizes, kinds = rule.resolved([a.shape for a in avals],
                                                        [a.shape for a in out_avals])
        return rule_text(operands, results, sizes, **kinds)

    def partition(self, mesh: Mesh | AbstractMesh, args: Sequence[tuple[ShapedArray, Any]],
                  results: Sequence[tuple[ShapedArray, Any]]) -> tuple[Any, ...]:
        """(mesh, function of flat lists, shardings of the results, of the arguments), from pairs of avals and
        shardings.
        """
        given = [tree_.unflatten([struct_of(a, s) for a, s in pairs]) for tree_, pairs in (
            (self.in_tree, args), (self.out_tree, results))]
        found = self.of.partition(*self.statics, mesh, *given)
        if not isinstance(found, tuple) or len(found) != 4:
            raise TypeError(f"custom_partitioning of {self.of.__name__}: partition must give (mesh, "
                            f"function, result_shardings, arg_shardings), got {found!r:.80}")
        mesh, function, out_shardings, arg_shardings = found

        def flat(*leaves: Any) -> list[Any]:
            outs, out_tree = pytree.tree_flatten(function(*self.in_tree.unflatten(leaves)))
            if out_tree != self.out_tree:
                raise ValueError(pytree.structure_mismatch(
                    f"custom_partitioning of {self.of.__name__}: what a device does gives another structure",
                    self.out_tree, out_tree, ("the function", "the part"), root="result"))
            return outs
        return (mesh, flat, self._flat("result_shardings", self.out_tree, out_shardings),
                self._flat("arg_shardings", self.in_tree, arg_shardings))

    def _flat(self, what: str, treedef: pytree.PyTreeDef, shardings: Any) -> list[Any]:
        leaves = pytree.flatten_axes(f"custom_partitioning {what}", treedef,
                                     tuple(shardings) if type(shardings) is list else shardings)
        for s in leaves:
            if not isinstance(s, Sharding):
                raise TypeError(f"custom_partitioning of {self.of.__name__}: {what} must be Shardings, got "
                                f"{s!r:.60}")
        return leaves

    def check(self, wanted: Sequence[ShapedArray], avals: Sequence[ShapedArray]) -> None:
        """TypeError where what a device computes is not its part of the results."""
        for i, (want, got) in enumerate(zip(wanted, avals)):
            if (want.shape, want.dtype) != (got.shape, got.dtype):
                raise TypeError(f"custom_partitioning of {self.of.__name__}: the part of result {i} on a "
                                f"device is {want.str_short()} as result_shardings cut it, and the function "
                                f"that partition gave makes {got.str_short()}")


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """`x` and `y`, which have one sharding: what the compiler finds for one holds for the other.

    They may be pytrees of the same structure.

    Raises:
        ValueError: where structures or shapes differ.

    >>> from hlotrace.experimental.shard_alike import shard_alike
    >>> mesh = jax.make_mesh((2,), ("x",))
    >>> x = jax.device_put(jnp.arange(4), jax.NamedSharding(mesh, jax.P("x")))
    >>> jax.jit(lambda x: shard_alike(x, jnp.zeros(4))[1])(x).sharding.spec
    P('x',)
    """
    xs, treedef = pytree.tree_flatten(x)
    ys, other = pytree.tree_flatten(y)
    if treedef != other:
        raise ValueError(pytree.structure_mismatch(f"Trees should be equal. Got x_tree: {treedef}, y_tree: "
                                                   f"{other}", treedef, other, ("x", "y"), root=""))
    pairs = [shard_alike_p.bind(a, b) for a, b in zip(xs, ys)]
    return treedef.unflatten([a for a, _ in pairs]), treedef.unflatten([b for _, b in pairs])
