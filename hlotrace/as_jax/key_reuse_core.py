"""`jax.experimental.key_reuse._core`: what a function does to the keys that it takes, as values."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..api.jit import make_jaxpr
from ..core.dtypes import is_extended
from ..core.errors import KeyReuseError
from ..core.jaxpr import Eqn, Jaxpr, Var
from ..core.primitive import Primitive
from ..core.trace import is_concrete
from ..transforms import key_reuse as checks

__all__ = ["Forward", "KeyReuseError", "KeyReuseSignature", "Sink", "Source", "assert_consumed",
           "assert_consumed_value_p", "assert_unconsumed", "check_key_reuse", "check_key_reuse_jaxpr",
           "consume", "consume_p", "function_type_signature", "jaxpr_type_signature",
           "key_reuse_signature_from_eqn", "key_reuse_signature_from_primitive"]


class _Part:
    """The keys of one argument or result: all, or those of a mask."""

    def __init__(self, idx: int, mask: Any = True) -> None:
        mask = np.asarray(mask)
        whole = mask.size and np.all(mask == mask.flat[0])
        self.idx, self.mask = idx, np.bool_(mask.flat[0]) if whole else mask

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.idx}{'' if self.mask is np.True_ else f', {self.mask}'})"


class Sink(_Part):
    """An argument whose keys are used up."""


class Source(_Part):
    """A result with new keys."""


class Forward(NamedTuple):
    """An argument that is a result."""
    in_idx: int
    out_idx: int

    def __repr__(self) -> str:
        return f"Forward({self.in_idx}, {self.out_idx})"


class KeyReuseSignature:
    """What a function does to keys: its Sinks, Sources and Forwards, in any order."""

    def __init__(self, *args: Sink | Source | Forward) -> None:
        self.sinks, self.sources, self.forwards = (
            frozenset(a for a in args if isinstance(a, kind)) for kind in (Sink, Source, Forward))
        self._args = args

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyReuseSignature) and set(self._args) == set(other._args)

    def __hash__(self) -> int:
        return hash(frozenset(self._args))

    def __repr__(self) -> str:
        return f"KeyReuseSignature{self._args}"


# --- keys that are said to be used up ---------------------------------------------------------------

def _consume_rule(eqn: Eqn, keys: Any, line: str, values: Any) -> Any:
    checks.RULES.default(eqn, keys, line, values)
    return keys


def _assert_rule(eqn: Eqn, keys: Any, _line: str, _: object) -> Any:
    wanted = eqn.params["value"].val
    if not np.all(keys[0].mask == wanted):
        raise AssertionError(f"Expected key to {'' if np.all(wanted) else 'not '}be consumed in {eqn}")
    return keys


def _marker(name: str, rule: Callable[..., Any]) -> Primitive:
    def not_compiled(_ctx: Any, eqn: Eqn, *_: Any) -> Any:
        raise ValueError(f"{eqn.primitive}: programs that are checked for key reuse may have it, and not "
                         "those that are compiled")
    marker = Primitive(name, abstract_eval=lambda x, **_: x, lower=not_compiled, impl_rule=lambda x, **_: x)
    checks.RULES.given[marker] = rule
    return marker


consume_p = _marker("consume", _consume_rule)
assert_consumed_value_p = _marker("assert_consumed_value", _assert_rule)


@dataclasses.dataclass(frozen=True)
class HashableArray:
    """A mask as a parameter."""
    val: Any

    def __hash__(self) -> int:
        return hash(np.asarray(self.val).tobytes())

    def __repr__(self) -> str:
        return f"HashableArray({self.val})"


def consume(key: Any) -> Any:
    """The same key, which is used up by this."""
    return consume_p.bind(key)


def assert_consumed(key: Any, value: Any = True) -> None:
    """Have `check_key_reuse` raise AssertionError unless just the keys of this mask are used up here."""
    if not is_concrete(key):
        assert_consumed_value_p.bind(key, value=HashableArray(value))


def assert_unconsumed(key: Any) -> None:
    """Have `check_key_reuse` raise AssertionError if the key is used up here."""
    assert_consumed(key, False)


# --- signatures -------------------------------------------------------------------------------------

def jaxpr_type_signature(jaxpr: Jaxpr) -> KeyReuseSignature:
    """What a program does to keys."""
    masks, outs = checks.signature(getattr(jaxpr, "jaxpr", jaxpr))
    first = len(jaxpr.constvars)
    of_keys = [i for i, v in enumerate(jaxpr.outvars) if is_extended(v.aval.dtype)]
    return KeyReuseSignature(
        *(Sink(i, mask) for i, mask in enumerate(masks[first:]) if mask is not None),
        *(Source(i) for i in of_keys if outs[i] is None),
        *(Forward(outs[i] - first, i) for i in of_keys if outs[i] is not None and outs[i] >= first))


def function_type_signature(fun: Callable[..., Any], *args: Any) -> KeyReuseSignature:
    """What a function of these arguments does to keys."""
    return jaxpr_type_signature(make_jaxpr(fun)(*args))


def key_reuse_signature_from_eqn(eqn: Eqn) -> KeyReuseSignature:
    """What an equation does to keys."""
    ins, outs = [Var(v.aval) for v in eqn.invars], [Var(v.aval) for v in eqn.outvars]
    alone = Eqn(eqn.primitive, ins, outs, eqn.params, (), eqn.source)
    return jaxpr_type_signature(Jaxpr((), (), ins, [alone], outs))


def key_reuse_signature_from_primitive(prim: Primitive, *args: Any, **params: Any) -> KeyReuseSignature:
    """What an operation does to keys."""
    return function_type_signature(lambda *xs: prim.bind(*xs, **params), *args)


def check_key_reuse_jaxpr(jaxpr: Jaxpr) -> None:
    """Raise KeyReuseError if a program uses a key twice."""
    jaxpr_type_signature(jaxpr)


def check_key_reuse(fun: Callable[..., Any], /, *args: Any) -> None:
    """Raise KeyReuseError if a function of these arguments uses a key twice."""
    function_type_signature(fun, *args)
