"""A mapping from primitives to rules that reads and writes a slot of the primitives themselves."""
from collections.abc import MutableMapping
from functools import partial

from ..core.caches import clear_caches
from ..core.primitive import Primitive, everywhere


class Registry(MutableMapping):
    """Rules of one kind in JAX's signature, by primitive.

    `from_jax(primitive, rule, ...)` calls a rule in JAX's signature as ours is called; `to_jax(primitive,
    rule, ...)` calls one of ours in JAX's.  What was set is read back as the same object.
    """

    def __init__(self, name, slot, from_jax, to_jax):
        self._name, self._slot, self._from_jax, self._to_jax = name, slot, from_jax, to_jax

    def __getitem__(self, primitive):
        rule = self._rule(primitive)
        if rule is None:
            raise KeyError(primitive)
        mine = isinstance(rule, partial) and rule.func is self._from_jax
        return rule.args[1] if mine else partial(self._to_jax, primitive, rule)

    def __setitem__(self, primitive, rule):
        if not isinstance(primitive, Primitive):
            raise TypeError(f"{self._name}[...] = rule: the key must be a Primitive, not {primitive!r:.80}")
        self._put(primitive, partial(self._from_jax, primitive, rule))

    def __delitem__(self, primitive):
        if primitive not in self:
            raise KeyError(primitive)
        self._put(primitive, None)

    def _put(self, primitive, rule):
        known = primitive in self
        setattr(primitive, self._slot, rule)
        if known:
            clear_caches()      # programs that the old rule made

    def _rule(self, primitive):
        return getattr(primitive, self._slot, None)

    def __iter__(self):
        return (p for p in list(everywhere) if p in self)

    def __len__(self):
        return sum(1 for _ in self)

    def __contains__(self, primitive):
        return self._rule(primitive) is not None

    def __repr__(self):
        return f"<{self._name}: {len(self)} rules>"


def for_each(marks, values):
    """A list with a bool for each of `values`, where one may be given for all."""
    return [marks] * len(values) if isinstance(marks, bool) else list(marks)
