"""PRNG keys that are used twice (`jax_debug_key_reuse`): in a program, by a pass over its equations, and from
call to call.

Each key array has a mask of the keys in it that are used up.  What an operation does to those that it takes
is in RULES; one that is not listed uses up all and makes new ones, as `random_split` does.
"""
from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core import source_info
from ..core.avals import ShapedArray
from ..core.dtypes import is_extended, is_integer
from ..core.errors import KeyReuseError
from ..core.jaxpr import Eqn, Jaxpr, Literal, Var, sub_jaxprs
from ..core.primitive import PassRules, Primitive
from ..core.trace import EVAL, entering
from ..primitives.arrays.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from ..primitives.arrays.elementwise import convert_element_type_p, eq_p, ne_p, select_n_p, stop_gradient_p
from ..primitives.arrays.gather import gather_p, scatter_apply_p, scatter_p
from ..primitives.arrays.random import (
    random_bits_p, random_clone_p, random_fold_in_p, random_split_p, random_unwrap_p, random_wrap_p)
from ..primitives.arrays.shape import broadcast_in_dim_p, reshape_p, squeeze_p, transpose_p
from ..primitives.arrays.slicing import (
    concatenate_p, copy_p, interleave_p, optimization_barrier_p, pad_p, rev_p, slice_p)
from ..primitives.parallel.collectives import pvary_p
from ..primitives.parallel.sharding import device_put_p, sharding_constraint_p
from ..primitives.programs.cond_while import cond_p, while_p
from ..primitives.programs.remat import name_p
from ..primitives.programs.scan import scan_p

_SMALL = 20     # equations in a program, elements in an index, that are worked out for the places they name


class _Keys:
    """The keys of one array: which of them are used up, by what and at which line."""
    __slots__ = ("mask", "first")

    def __init__(self, mask: np.ndarray, first: list[str]) -> None:
        self.mask, self.first = mask, first

    def reshaped(self, shape: tuple[int, ...]) -> _Keys:
        """The same keys in another shape; those of a broadcast array are as they were."""
        return self if math.prod(shape) != self.mask.size else _Keys(self.mask.reshape(shape), self.first)

    def use(self, mask: Any, what: str, line: str, said: str) -> None:
        """Use up those of `mask`; `said` begins the error.  KeyReuseError if one of them is used up."""
        if np.any(self.mask & mask):
            raise KeyReuseError(
                f"{said}: a PRNG key{'' if self.mask.ndim == 0 else ' of an array'} that was used by "
                f"{self.first[0]}{_at(self.first[1])} is used again by {what}{_at(line)}: the numbers "
                "would be the same. Make two of it first, as in key, other = random.split(key), or "
                "random.fold_in(key, i); random.clone(key) says that it is meant.")
        self.mask |= mask       # in place: a reshaped array has the same
        self.first[:] = what, line


Keys = Sequence[_Keys | None]       # of operands or results, None for what is no key
# Masks of the inputs' keys that a program uses up, or None; which input each result is, or None.
Signature = tuple[list[Any], list[int | None]]


def _at(line: str) -> str:
    return f" at {line}" if line else ""


def is_watched(avals: Iterable[ShapedArray]) -> bool:
    """Are there keys among these?"""
    return any(is_extended(a.dtype) and hasattr(a.dtype, "impl") for a in avals)


def _new(aval: ShapedArray) -> _Keys | None:
    return _Keys(np.zeros(aval.shape, bool), ["", ""]) if is_watched((aval,)) else None


# --- a program ------------------------------------------------------------------------------------

def signature(jaxpr: Jaxpr, known: Mapping[Var, np.ndarray] | tuple[()] = ()) -> Signature:
    """What a program does to the keys that it takes.

    Args:
        known: numbers given for inputs, {variable: array}, for the places that indices name.
    Returns:
        For each input the mask of its keys that are used up, or None; for each result which input it is.
    Raises:
        KeyReuseError: if the program uses a key twice.
    """
    if not known and "key_reuse" in jaxpr.facts:
        return jaxpr.facts["key_reuse"]
    given = [_new(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)]
    env = {v: k for v, k in zip((*jaxpr.constvars, *jaxpr.invars), given) if k is not None}
    values = dict(known) if len(jaxpr.eqns) <= _SMALL else {}
    for eqn in jaxpr.eqns:
        _apply(eqn, env, values)
    of = {id(k.first): i for i, k in enumerate(given) if k is not None}
    found = ([k.mask if k is not None and k.mask.any() else None for k in given],
             [of.get(id(env[v].first)) if v in env else None for v in jaxpr.outvars])
    return jaxpr.facts.setdefault("key_reuse", found) if not known else found


def _apply(eqn: Eqn, env: dict[Var, _Keys], values: dict[Var, Any]) -> None:
    """What one equation does: `env` has the keys of variables, `values` small numbers that are known."""
    keys = [env.get(v) if type(v) is Var else None for v in eqn.invars]
    if not any(k is not None for k in keys):
        operands = [v.val if type(v) is Literal else values.get(v) for v in eqn.invars]
        if values and operands and all(x is not None for x in operands) and not any(sub_jaxprs(eqn.params)):
            with entering(EVAL):
                out = eqn.primitive.bind(*operands, **eqn.params)
            outs = out if eqn.primitive.multiple_results else (out,)
            values.update(zip(eqn.outvars, map(np.asarray, outs)))
        given = None
    else:
        line = source_info.describe(eqn.source)
        given = RULES.of(eqn.primitive)(eqn, keys, line, values)
    for v, k in zip(eqn.outvars, given or [None] * len(eqn.outvars)):
        if (k := k or _new(v.aval)) is not None:
            env[v] = k


def _use_up(eqn: Eqn, keys: Keys, line: str, _: object) -> Keys | None:
    _use(keys, [np.True_] * len(keys), f"`{eqn.primitive}`", line, eqn.primitive)
    return None


def _read(eqn: Eqn, keys: Keys, line: str, _: object) -> None:
    """Keys are as good as before, and what is made of them is new."""


def _pass(eqn: Eqn, keys: Keys, line: str, _: object) -> Keys:
    """The results are the operands in their order."""
    return keys


def _reshape(eqn: Eqn, keys: Keys, line: str, _: object) -> Keys:
    return [keys[0] and keys[0].reshaped(eqn.outvars[0].aval.shape)]


def _slice(eqn: Eqn, keys: Keys, line: str, values: dict[Var, Any]) -> Keys | None:
    params = eqn.params
    return _part(eqn, keys, line, values, params["start_indices"], params["limit_indices"], params["strides"])


def _dynamic_slice(eqn: Eqn, keys: Keys, line: str, values: dict[Var, Any]) -> Keys | None:
    at: list[Any] = [v.val if type(v) is Literal else values.get(v) for v in eqn.invars[1:]]
    if any(x is None for x in at):
        return _use_up(eqn, keys, line, values)
    shape, sizes = eqn.invars[0].aval.shape, eqn.params["slice_sizes"]
    starts = [min(max(int(x), 0), n - size) for x, n, size in zip(at, shape, sizes)]
    return _part(eqn, keys, line, values, starts, [start + size for start, size in zip(starts, sizes)], None)


def _part(eqn: Eqn, keys: Keys, line: str, values: dict[Var, Any], starts: Sequence[int],
          limits: Sequence[int], strides: Sequence[int] | None) -> Keys | None:
    """Use up the keys of the first operand that are in a part of it."""
    k = keys[0]
    if k is None or k.mask.shape != eqn.invars[0].aval.shape:
        return _use_up(eqn, keys, line, values)
    mask = np.zeros_like(k.mask)
    mask[tuple(slice(*along) for along in zip(starts, limits, strides or [1] * len(starts)))] = True
    k.use(mask, "an index", line, _consumed(eqn.primitive, 0))
    return None


def _consumed(primitive: Any, i: int) -> str:
    return f"In {primitive}, argument {i} is already consumed"


def _use(keys: Keys, masks: Iterable[Any], what: str, line: str, primitive: Any, first: int = 0) -> None:
    """Use up what a program does, which an equation gives these keys, its operands from `first` on."""
    for i, (k, mask) in enumerate(zip(keys, masks), first):
        if k is not None and mask is not None:
            k.use(mask if mask.shape == k.mask.shape else True, what, line, _consumed(primitive, i))


def _called(eqn: Eqn, keys: Keys, line: str, values: dict[Var, Any], jaxprs: Iterable[Jaxpr] | None = None,
            skip: int = 0) -> Keys | None:
    """Programs of which one runs, on the operands after `skip`."""
    found = [signature(j) for j in jaxprs or sub_jaxprs(eqn.params)]
    found = [f for f in found if len(f[0]) == len(keys) - skip]
    if not found:
        return _use_up(eqn, keys, line, values)
    what = f"`{eqn.params.get('name') or eqn.primitive}`"
    masks = [next((m for m in column if m is not None), None)
             for column in zip(*[masks for masks, _ in found])]
    _use(keys[skip:], masks, what, line, eqn.primitive, skip)
    same = [set(column) for column in zip(*[outs for _, outs in found])]
    return [keys[skip + i] if len(column) == 1 and (i := next(iter(column))) is not None else None
            for column in same]


def _cond(eqn: Eqn, keys: Keys, line: str, values: dict[Var, Any]) -> Keys | None:
    return _called(eqn, keys, line, values, eqn.params["branches"], 1)


def _repeated(what: str, eqn: Eqn, jaxpr: Jaxpr, constants: int, carry: int, line: str) -> Signature:
    """The signature of a body that runs again and again.  KeyReuseError where the next round finds a key used
    up."""
    masks, outs = signature(jaxpr)
    for i, mask in enumerate(masks[:constants + carry]):
        if mask is not None and (i < constants or i in outs[:carry]):
            raise KeyReuseError(
                f"{what} body function leads to key reuse when repeatedly executed"
                + ", because key constants are repeatedly consumed" * (what == "scan")
                + f": the body{_at(line)} uses the same PRNG key in each round: "
                + ("it closes over it" if i < constants else "it hands it on as it was")
                + ". Split the key in the body and carry on one half, or take each round's key from "
                "random.split(key, n).")
    return masks, outs


def _scan(eqn: Eqn, keys: Keys, line: str, _: object) -> Keys:
    params = eqn.params
    first = params["num_consts"] + params["num_carry"]
    masks, outs = _repeated("scan", eqn, params["jaxpr"], params["num_consts"], params["num_carry"], line)
    spread = [m if k is None or m is None else np.broadcast_to(m, k.mask.shape)
              for k, m in zip(keys[first:], masks[first:])]
    _use(keys, [*masks[:first], *spread], "`scan`", line, "scan")
    carried = outs[:params["num_carry"]]
    return [keys[i] if i is not None and i < first else None for i in carried] + [None] * (
        len(outs) - len(carried))


def _while(eqn: Eqn, keys: Keys, line: str, _: object) -> Keys:
    params = eqn.params
    tests, constants = params["cond_nconsts"], params["body_nconsts"]
    carry = len(keys) - tests - constants
    masks, outs = _repeated("while_loop", eqn, params["body_jaxpr"], constants, carry, line)
    tested, _ = signature(params["cond_jaxpr"])
    for i, mask in enumerate(tested):
        if mask is None:
            continue
        place = constants + i - tests       # among the operands of the body
        if i < tests or outs[i - tests] == place or masks[place] is not None:
            raise KeyReuseError(
                "while_loop cond function leads to key reuse when repeatedly executed: the condition"
                f"{_at(line)} uses a PRNG key that it has used in the round "
                "before, or that the body uses: carry a key for it and split that in the body.")
    _use(keys[:tests], tested[:tests], "`while_loop`", line, "while")
    _use(keys[tests:], masks, "`while_loop`", line, "while", tests)
    return [keys[tests + i] if i is not None else None for i in outs]


def _any(eqn: Eqn, keys: Keys, line: str, values: dict[Var, Any]) -> Keys | None:
    return (_called if any(sub_jaxprs(eqn.params)) else _use_up)(eqn, keys, line, values)


# What computes with numbers sees no keys; what moves values says what it does to them.
RULES = PassRules("key reuse", _any, lambda p: not p.structural, {
    # the barrier is in front of what `checkpoint` computes again
    _read: (random_fold_in_p, random_unwrap_p, random_clone_p, random_wrap_p, eq_p, ne_p,
            optimization_barrier_p),
    # vmap broadcasts keys that are not mapped
    _pass: (broadcast_in_dim_p, convert_element_type_p, copy_p, device_put_p, name_p, pvary_p,
            sharding_constraint_p, stop_gradient_p),
    _reshape: (reshape_p, squeeze_p),
    # where a key is afterwards is not followed
    _use_up: (transpose_p, select_n_p, rev_p, pad_p, concatenate_p, interleave_p, gather_p, scatter_p,
              scatter_apply_p, dynamic_update_slice_p, random_split_p, random_bits_p),
    _slice: (slice_p,), _dynamic_slice: (dynamic_slice_p,),
    _cond: (cond_p,), _scan: (scan_p,), _while: (while_p,)})


# --- from call to call ----------------------------------------------------------------------------

_used: dict = {}        # id of a key array -> (a weak reference to it, its _Keys)


def _keys_of(x: Any, aval: ShapedArray) -> _Keys | None:
    found = _used.get(id(x)) if is_watched((aval,)) else None
    if found is not None and found[0]() is x:
        return found[1]
    keys = _new(aval)
    return keys and _remember(x, keys)


def _remember(x: Any, keys: _Keys) -> _Keys:
    at = id(x)
    _used[at] = weakref.ref(x, lambda gone: _used.pop(at) if _used.get(at, (None,))[0] is gone
                            else None), keys
    return keys


def use(jaxpr: Jaxpr, operands: Sequence[Any], what: str, kind: str = "jit-compiled function",
        num_consts: int = 0) -> Callable[[Sequence[Any]], None]:
    """Note what a program without constvars that is about to run on these arrays does to keys.

    Args:
        kind: what it is.
        num_consts: so many of the operands, the first, are no arguments.
    Returns:
        A function to be called with the results.
    Raises:
        KeyReuseError: where a key is used up already.
    """
    keys: list[Any] = [_keys_of(x, v.aval) for x, v in zip(operands, jaxpr.invars)]
    known = {}
    if len(jaxpr.eqns) <= _SMALL and any(k is not None for k in keys):
        known = {v: np.asarray(x) for x, v in zip(operands, jaxpr.invars)
                 if not is_extended(v.aval.dtype) and is_integer(v.aval.dtype) and v.aval.size <= _SMALL}
    masks, outs = signature(jaxpr, known)
    line = source_info.describe(source_info.user_frame())
    for i, (k, mask) in enumerate(zip(keys, masks)):
        if k is not None and mask is not None:
            at = (i - num_consts) % len(keys)
            k.use(mask if mask.shape == k.mask.shape else True, what, line,
                  f"Previously-consumed key passed to {kind} at index {at}")

    def passed(results: Sequence[Any]) -> None:
        for x, i in zip(results, outs):
            if i is not None and x is not operands[i]:
                _remember(x, keys[i].reshaped(x.shape))
    return passed


def use_by(primitive: Primitive, operands: Sequence[Any], avals: Iterable[ShapedArray],
           params: dict[str, Any]) -> Callable[[Sequence[Any]], None]:
    """`use` of one operation, which is not part of a program."""
    ins, outs = [Var(a) for a in avals], [Var(a) for a in primitive.typecheck(avals, params)]
    eqn = Eqn(primitive, ins, outs, params, (), source_info.user_frame())
    return use(Jaxpr((), (), ins, [eqn], outs), operands, f"`{primitive}`", str(primitive))
