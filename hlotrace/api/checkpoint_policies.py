"""Policies: of which primitives `checkpoint` keeps the results for the backward pass.

A policy is called for each operation of a differentiated function, as `policy(prim, *avals, **params)`: with
a primitive, the types of its operands and its parameters.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.avals import ShapedArray
from ..core.primitive import Primitive
from ..primitives.arrays.contract import dot_general_p
from ..primitives.arrays.conv import conv_general_dilated_p
from ..primitives.programs.remat import Offloadable, decide, name_p, nothing_saveable

__all__ = ["everything_saveable", "nothing_saveable", "dots_saveable", "checkpoint_dots",
           "dots_with_no_batch_dims_saveable", "checkpoint_dots_with_no_batch_dims",
           "offload_dot_with_no_batch_dims", "save_anything_except_these_names", "save_any_names_but_these",
           "save_only_these_names", "save_from_both_policies", "save_and_offload_only_these_names"]


def everything_saveable(*_: Any, **__: Any) -> bool:
    """A policy: keep all residuals, as without checkpoint.

    >>> f = jax.checkpoint(lambda x: jnp.sin(jnp.exp(x)), policy=jax.checkpoint_policies.everything_saveable)
    >>> [where.partition(" from ")[0] for _, where in jax.ad_checkpoint.saved_residuals(f, 1.)][1:]
    ['output of exp', 'output of cos']
    """
    return True


def dots_saveable(prim: Primitive, *_: Any, **__: Any) -> bool:
    """A policy: keep the products of matrices (`dot_general`) and the convolutions, which cost much.

    >>> f = jax.checkpoint(lambda x, w: jnp.sin(x @ w), policy=jax.checkpoint_policies.dots_saveable)
    >>> residuals = jax.ad_checkpoint.saved_residuals(f, jnp.ones((5, 3)), jnp.ones((3, 2)))
    >>> [aval.str_short() for aval, _ in residuals]
    ['float32[5,3]', 'float32[3,2]', 'float32[5,2]']
    """
    return prim is dot_general_p or prim is conv_general_dilated_p


def dots_with_no_batch_dims_saveable(prim: Primitive, *_: Any, **params: Any) -> bool:
    """A policy: keep the products of matrices that have no batch dimensions, as those with weights.

    >>> policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
    >>> f = jax.checkpoint(lambda x, w: jnp.sin(x @ w), policy=policy)
    >>> residuals = jax.ad_checkpoint.saved_residuals
    >>> [aval.str_short() for aval, _ in residuals(f, jnp.ones((5, 3)), jnp.ones((3, 2)))]
    ['float32[5,3]', 'float32[3,2]', 'float32[5,2]']
    >>> x, w = jnp.ones((4, 5, 3)), jnp.ones((4, 3, 2))
    >>> [aval.str_short() for aval, _ in residuals(jax.vmap(f), x, w)]
    ['float32[4,5,3]', 'float32[4,3,2]']
    """
    return prim is dot_general_p and not any(params["dimension_numbers"][1])


checkpoint_dots, checkpoint_dots_with_no_batch_dims = dots_saveable, dots_with_no_batch_dims_saveable


@dataclasses.dataclass(frozen=True)
class _Policy:
    """`_RULES[name](prim, avals, params, *given)`; equal ones find the same cached programs."""
    name: str
    given: tuple

    def __call__(self, prim: Primitive, *avals: Any, **params: Any) -> Any:
        return _RULES[self.name](prim, avals, params, *self.given)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.given))})"


def _either(prim: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], *policies: Any) -> Any:
    for policy in policies:
        choice = decide(policy, prim, avals, params)
        if choice:
            return choice
    return False


def _save_and_offload(prim: Primitive, _: Sequence[ShapedArray], params: dict[str, Any],
                      saved: frozenset[str], offloaded: frozenset[str], *memory: str) -> Any:
    if prim is not name_p:
        return False
    return Offloadable(*memory) if params["name"] in offloaded else params["name"] in saved


_RULES: dict[str, Callable[..., Any]] = {
    "save_only_these_names": lambda prim, _, params, names: prim is name_p and params["name"] in names,
    "save_any_names_but_these": lambda prim, _, params, names: prim is name_p and params["name"] not in names,
    "save_anything_except_these_names": lambda prim, _, params, names: (
        prim is not name_p or params["name"] not in names),
    "save_from_both_policies": _either,
    "offload_dot_with_no_batch_dims": lambda prim, _, params, *memory: (
        Offloadable(*memory) if dots_with_no_batch_dims_saveable(prim, **params) else False),
    "save_and_offload_only_these_names": _save_and_offload,
}


def _names(what: str, names: Iterable[str]) -> frozenset[str]:
    for name in names:
        if not isinstance(name, str):
            hint = f": write {what}(*names)" if isinstance(name, (list, tuple, set)) else ""
            raise TypeError(f"checkpoint_policies.{what}: names are strings, as given to checkpoint_name; "
                            f"got {name!r:.80}{hint}")
    return frozenset(names)


def _of_names(what: str, names: Iterable[str]) -> _Policy:
    return _Policy(what, (_names(what, names),))


def save_only_these_names(*names_which_can_be_saved: str) -> Callable[..., Any]:
    """A policy: keep what `checkpoint_name` gave one of these names.

    >>> from hlotrace.ad_checkpoint import checkpoint_name, saved_residuals
    >>> def f(x):
    ...     a = checkpoint_name(jnp.sin(x), "a")
    ...     return jnp.sin(checkpoint_name(jnp.exp(a), "b"))
    >>> f = jax.checkpoint(f, policy=jax.checkpoint_policies.save_only_these_names("b"))
    >>> [where.partition(" from ")[0] for _, where in saved_residuals(f, 1.)][1:]
    ["named 'b'"]
    """
    return _of_names("save_only_these_names", names_which_can_be_saved)


def save_any_names_but_these(*names_not_to_save: str) -> Callable[..., Any]:
    """A policy: keep what has a name by `checkpoint_name`, but not these.

    >>> from hlotrace.ad_checkpoint import checkpoint_name, saved_residuals
    >>> def f(x):
    ...     a = checkpoint_name(jnp.sin(x), "a")
    ...     return jnp.sin(checkpoint_name(jnp.exp(a), "b"))
    >>> f = jax.checkpoint(f, policy=jax.checkpoint_policies.save_any_names_but_these("a"))
    >>> [where.partition(" from ")[0] for _, where in saved_residuals(f, 1.)][1:]
    ["named 'b'"]
    """
    return _of_names("save_any_names_but_these", names_not_to_save)


def save_anything_except_these_names(*names_not_to_save: str) -> Callable[..., Any]:
    """A policy: keep all residuals, named or not, but for what has one of these names.

    A value that is named is the result of two operations; keep what goes into `checkpoint_name` from being
    saved too by giving it no other use than that.

    >>> from hlotrace.ad_checkpoint import checkpoint_name, saved_residuals
    >>> f = lambda x: checkpoint_name(x + 1, "large") * jnp.exp(x)
    >>> [where.partition(" from ")[0] for _, where in saved_residuals(f, 1.)]
    ["named 'large'", 'output of exp']
    >>> f = jax.checkpoint(f, policy=jax.checkpoint_policies.save_anything_except_these_names("large"))
    >>> [where.partition(" from ")[0] for _, where in saved_residuals(f, 1.)][1:]
    ['output of add', 'output of exp']
    """
    return _of_names("save_anything_except_these_names", names_not_to_save)


def save_from_both_policies(policy_1: Callable[..., Any], policy_2: Callable[..., Any]) -> Callable[..., Any]:
    """A policy: keep what either of two policies keeps; the first is called first.

    >>> from hlotrace.ad_checkpoint import checkpoint_name, saved_residuals
    >>> policies = jax.checkpoint_policies
    >>> named = policies.save_only_these_names("hidden")
    >>> both = policies.save_from_both_policies(policies.dots_saveable, named)
    >>> f = jax.checkpoint(lambda x, w: jnp.sin(checkpoint_name(jnp.tanh(x @ w), "hidden")), policy=both)
    >>> [aval.str_short() for aval, _ in saved_residuals(f, jnp.ones((5, 3)), jnp.ones((3, 2)))]
    ['float32[5,3]', 'float32[3,2]', 'float32[5,2]', 'float32[5,2]']
    """
    return _Policy("save_from_both_policies", (policy_1, policy_2))


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Callable[..., Any]:
    """A policy: move products of matrices without batch dimensions to another memory and back.

    Args:
        offload_src: the kind of memory that they are in, as devices name them: "device".
        offload_dst: the kind of memory that they are moved to: "pinned_host".

    >>> policy = jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    >>> f = jax.checkpoint(lambda x, w: jnp.sin(x @ w).sum(), policy=policy)
    >>> "pinned_host" in str(jax.make_jaxpr(jax.grad(f))(jnp.ones((5, 3)), jnp.ones((3, 2))))
    True
    """
    return _Policy("offload_dot_with_no_batch_dims", (offload_src, offload_dst))


def save_and_offload_only_these_names(*, names_which_can_be_saved: Iterable[str],
                                      names_which_can_be_offloaded: Iterable[str], offload_src: str,
                                      offload_dst: str) -> Callable[..., Any]:
    """A policy: keep what has one of some names, and move what has one of others to another memory and back.

    Args:
        offload_src: the kind of memory that these are in.
        offload_dst: the kind of memory that they are moved to.
    Raises:
        ValueError: for a name that is in both.

    >>> policy = jax.checkpoint_policies.save_and_offload_only_these_names(
    ...     names_which_can_be_saved=["small"], names_which_can_be_offloaded=["large"],
    ...     offload_src="device", offload_dst="pinned_host")
    >>> named = jax.ad_checkpoint.checkpoint_name
    >>> f = jax.checkpoint(lambda x: jnp.sin(named(jnp.exp(x), "large")).sum(), policy=policy)
    >>> "pinned_host" in str(jax.make_jaxpr(jax.grad(f))(jnp.ones(3)))
    True
    """
    saved, offloaded = (_names("save_and_offload_only_these_names", names) for names in (
        names_which_can_be_saved, names_which_can_be_offloaded))
    if saved & offloaded:
        raise ValueError("The names should be exclusive and should not intersect in "
                         "`names_which_can_be_saved` and `names_which_can_be_offloaded`. Got "
                         f"{sorted(saved & offloaded)} in both")
    return _Policy("save_and_offload_only_these_names", (saved, offloaded, offload_src, offload_dst))
