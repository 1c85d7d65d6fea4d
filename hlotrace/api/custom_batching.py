"""custom_vmap: functions whose batching the user gives; sequential_vmap: those mapped element by element."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ..core import errors, programs
from ..core.avals import ShapedArray, aval_of
from ..core.jaxpr import Jaxpr, dce, eval_jaxpr
from ..core.pytrees import pytree
from ..core.surface.boundary import boundaries
from ..core.symbolic_zeros import MappedAxis, fill_zeros
from ..primitives.arrays.shape import broadcast_axis, instantiate
from ..primitives.programs.custom_batching import custom_vmap_call_p
from ..primitives.programs.scan import scan_p
from ..transforms.jvp import jvp_flat
from .custom_derivatives import Positional
from .flat import FlatFunction, TracedProgram
from .signatures import name_of


class _Rule:
    """How a program is mapped, on flat lists: a call gives (outs, marks of those that are mapped)."""
    # what is shown of it in a program
    __name__ = property(lambda self: type(self).__name__.strip("_").lower())

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[Any],
                 consts: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        raise NotImplementedError

    def jvp(self, marks: tuple[bool, ...], out_nonzero: tuple[bool, ...]) -> _Rule:
        return _Jvp(self, marks, out_nonzero)

    def saving(self, program: Jaxpr) -> _Rule:
        return _Saving(self, program)


@dataclasses.dataclass(frozen=True)
class _Users(_Rule):
    """The rule that the user gave for `fun`."""
    rule: Callable[..., Any]
    fun: Callable[..., Any]
    in_tree: pytree.PyTreeDef
    out_tree: pytree.PyTreeDef
    out_avals: tuple[ShapedArray, ...]

    __name__ = property(lambda self: name_of(self.rule))

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[Any],
                 _: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        who = f"custom_vmap rule {name_of(self.rule)} of {name_of(self.fun)}"
        result = self.rule(size, list(self.in_tree.unflatten(batched)), *self.in_tree.unflatten(args))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TypeError(f"{who} must return a pair (output, which of its leaves are mapped), got "
                            f"{result!r:.80}: return out, True where out is one array")
        outs, found = pytree.tree_flatten(result[0])
        if found != self.out_tree:
            raise ValueError(pytree.structure_mismatch(
                f"structure of output returned by {who} does not match that of original custom-vmapped "
                "function", self.out_tree, found, (name_of(self.fun), "the rule"), root="output"))
        try:
            marks = [bool(b) for b in pytree.broadcast_prefix(result[1], result[0])]
        except ValueError as error:
            raise ValueError(f"structure of output value and output batching specification returned by {who} "
                             f"do not match: {error}") from None
        for path, x, mapped, want in zip(pytree.leaf_paths(found), outs, marks, self.out_avals):
            shape = (size, *want.shape) if mapped else want.shape
            got = aval_of(x)
            if (got.shape, got.dtype) != (shape, want.dtype):
                raise errors.ShapeError(f"{who}: output{path} is {got.str_short()}, and must be "
                                        f"{want.update(shape=shape).str_short()}, since {name_of(self.fun)} "
                                        f"gives {want.str_short()} and out_batched is {mapped} here, with "
                                        f"an axis size of {size}")
        return outs, marks


@dataclasses.dataclass(frozen=True)
class _Sequential(_Rule):
    """One element after another."""
    jaxpr: Jaxpr

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[Any],
                 consts: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        n = len(consts)
        order = [*range(n), *(i + n for i, b in enumerate(batched) if not b),
                 *(i + n for i, b in enumerate(batched) if b)]
        operands = [*consts, *args]
        program = self.jaxpr.replace(invars=[self.jaxpr.invars[i] for i in order], arg_names=None)
        outs = scan_p.bind(*[operands[i] for i in order], jaxpr=program, length=size, reverse=False, unroll=1,
                           num_consts=len(order) - sum(batched), num_carry=0)
        return outs, [True] * len(outs)


@dataclasses.dataclass(frozen=True)
class _Jvp(_Rule):
    """The derivative of a rule, of [*args, *tangents of marked ones] -> [*outs, *tangents of marked outs]."""
    rule: _Rule
    marks: tuple
    out_nonzero: tuple

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[Any],
                 consts: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        n = len(self.marks)
        found: list[bool] = []
        moving = fill_zeros(batched[n:], self.marks)
        # a value and its tangent are mapped together
        both = tuple([b or bool(m) for b, m in zip(batched, moving)])

        def filled(values: Sequence[Any], have: Sequence[bool]) -> list[Any]:
            return [x if x is None or h or not b else broadcast_axis(x, size, 0)
                    for x, h, b in zip(values, have, both)]

        def fun(*primals: Any) -> list[Any]:
            outs, found[:] = self.rule(size, both, list(primals), consts)
            return outs
        outs, tangents = jvp_flat(fun, filled(args[:n], batched),
                                  filled(fill_zeros(args[n:], self.marks), moving))
        tangents = [instantiate(t, aval_of(x).tangent())
                    for t, x, nz in zip(tangents, outs, self.out_nonzero) if nz]
        return [*outs, *tangents], [*found, *[b for b, nz in zip(found, self.out_nonzero) if nz]]


@dataclasses.dataclass(frozen=True)
class _Saving(_Rule):
    """A rule, and beside it what a program gives after the same outputs, mapped as any program is."""
    rule: _Rule
    program: Jaxpr

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[Any],
                 consts: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        outs, marks = self.rule(size, batched, args, consts)
        n = len(outs)
        rest, _ = dce(self.program, [False] * n + [True] * (len(self.program.outvars) - n))
        mapped, rest_marks = programs.batch(rest, MappedAxis(size), (*[False] * len(consts), *batched))
        return [*outs, *eval_jaxpr(mapped, (), *consts, *args)], [*marks, *rest_marks]


@boundaries
class custom_vmap(Positional):
    """A function that `vmap` maps by a rule, which `def_vmap` sets.

        @custom_vmap
        def f(x, y): ...
        @f.def_vmap
        def f_vmap(axis_size, in_batched, x, y): ... return out, out_batched

    `in_batched` has a bool for each argument, or a pytree of them: whether it has a leading axis of size
    `axis_size`; `out_batched` says the same of the output.  Mapped twice, the rule's own operations are
    mapped. Derivatives of the mapped function are those of the rule; a mapped derivative is that of the
    function, and in forward mode that of the rule.

    >>> @jax.custom_batching.custom_vmap
    ... def solve(a, b):
    ...     return b / a
    >>> @solve.def_vmap
    ... def rule(axis_size, in_batched, a, b):
    ...     print(axis_size, in_batched)
    ...     return b / a, True
    >>> jax.vmap(solve, (None, 0))(2., jnp.array([2., 4.]))
    2 [False, True]
    Array([1., 2.], dtype=float32)
    """
    rule: Any = None

    def __init__(self, fun: Callable[..., Any]) -> None:
        if not callable(fun):
            raise TypeError(f"custom_vmap: expected a function, got {fun!r:.80}")
        super().__init__(fun)

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule: (axis_size, in_batched, *args) -> (out, out_batched).  Returns it."""
        self.rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.rule is None:
            raise AttributeError(f"No batching rule defined for custom_vmap function {name_of(self.fun)} "
                                 "using def_vmap.")
        flat = FlatFunction(self.fun, *pytree.tree_flatten((self._positional(args, kwargs), {})),
                            "custom_vmap")
        return _bound(flat, lambda traced: _Users(self.rule, self.fun, flat.arg_tree, traced.out_tree,
                                                  tuple(traced.closed.out_avals)))


def sequential_vmap(f: Callable[..., Any]) -> Sequential:
    """`f`, which `vmap` maps one element after another, as `lax.map` does.

    Slower, and it takes the memory of one element at a time.  A decorator; derivatives are those of `f`.

    >>> total = jax.custom_batching.sequential_vmap(lambda x: jnp.sum(jnp.sin(x)))
    >>> jax.vmap(total)(jnp.zeros((3, 4)))
    Array([0., 0., 0.], dtype=float32)
    """
    return Sequential(f)


@boundaries(called="sequential_vmap")
class Sequential(Positional):
    """What `sequential_vmap` gives."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        flat = FlatFunction(self.fun, *pytree.tree_flatten((self._positional(args, kwargs), {})),
                            "sequential_vmap")
        return _bound(flat, lambda traced: _Sequential(traced.closed))


def _bound(flat: FlatFunction, rule: Callable[[TracedProgram], _Rule]) -> Any:
    traced = flat.kept(flat.fun, flat.what, flat.avals())
    outs = custom_vmap_call_p.bind(*traced.consts, *flat.leaves, jaxpr=traced.closed, rule=rule(traced),
                                   num_consts=len(traced.consts))
    return traced.out_tree.unflatten(outs)
