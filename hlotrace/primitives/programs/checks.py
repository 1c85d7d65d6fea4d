"""Checks: equations that fail for some values, and the states that remember the first that did.

Nothing can be raised while a program runs, so a failure is a value: a code, 0 while all is well, and what
its message is to show.  `transforms/discharge.py` makes them states of a program with checks.  What requested
the checks reads them afterwards: `checkify` gives them to the user, `runtime/evaluate.py` raises.
"""
from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...core import programs, source_info as source
from ...core.effects import Check, State
from ...core.jaxpr import Jaxpr, sub_jaxprs
from ..arrays.dynamic_slice import dynamic_slice_p
from ..arrays.elementwise import add, and_p, convert, eq, gt, lt, mul, ne, or_p, rem_p, select, sub
from ..arrays.reduce import argmax_p, reduce_or_p
from ..arrays.shape import broadcast_in_dim, front, reshape, zeros_of
from ..arrays.slicing import concatenate_p, rev_p
from ..common import Primitive, ShapedArray, aval_of, dtype_of, dtypes, np, prod, scalar, shape_of
from ..parallel.collectives import vary

if TYPE_CHECKING:
    from ...core.effects import Effect
    from ...core.jaxpr import Eqn
    from ...core.symbolic_zeros import MappedAxis


class JaxException(Exception):
    """The base of what a check finds; its subclasses are the categories that `checkify(errors=)` takes."""


class FailedCheckError(JaxException):
    """A `check` of the user's."""


class NaNError(JaxException):
    """An operation gave a NaN."""


class DivisionByZeroError(JaxException):
    """A divisor was zero."""


class OOBError(JaxException):
    """An index was out of bounds."""


class KernelError(JaxException):
    """A Pallas kernel, run as a loop, did what would not end on a device, or failed a check of its own."""


class JaxRuntimeError(ValueError):
    """A failed check, raised."""


for _class in (JaxException, FailedCheckError, NaNError, DivisionByZeroError, OOBError, KernelError,
               JaxRuntimeError):
    _class.__module__ = "hlotrace.experimental.checkify"


_CODE = ShapedArray((), dtypes.int32)


@dataclasses.dataclass(frozen=True)
class Failure:
    """What a check says where it fails: `text`, a format string, for a pytree `tree` of values of `avals`.

    `kind` is a JaxException.  `source` is known once the program that the check is in is.  One that is
    `debug` says nothing outside of `checkify`.  One that is the `users` is of a `check` or a `check_error`: a
    program with it is for `checkify` alone.  One of the devices of a mesh of shape `mesh` has in its values,
    for each of these, the states of `each`, the failures that there may be on a device.
    """
    kind: type
    text: str
    avals: tuple = ()
    tree: Any = None
    debug: bool = False
    source: tuple | None = None
    users: bool = False
    each: Failures | None = None
    mesh: tuple[int, ...] = ()

    def on_devices(self, each: Failures, mesh: tuple[int, ...]) -> Failure:
        """It, among the failures `each` of the devices of a mesh of that shape."""
        avals = tuple([a.update(shape=(prod(mesh), *a.shape)) for a in each.avals])
        return dataclasses.replace(self, avals=avals, each=each, mesh=mesh)

    def by_device(self, leaves: Sequence[Any]) -> list[tuple[tuple, Failure, Sequence[Any]]]:
        """[(place of a device, what failed on it, its values)], or itself at ()."""
        if self.each is None:
            return [((), self, leaves)]
        found = [(np.unravel_index(i, self.mesh), self.each.failed([x[i] for x in leaves]))
                 for i in range(prod(self.mesh))]
        return [((*map(int, device), *place), one, its) for device, failed in found if failed
                for place, one, its in failed[0].by_device(failed[1])]

    @property
    def line(self) -> str:
        return source.describe(self.source)

    def words(self, leaves: Sequence[Any]) -> str:
        if self.each is not None:
            return lines(self.by_device(leaves))
        args, kwargs = (leaves, {}) if self.tree is None else self.tree.unflatten(leaves)
        try:
            return self.text.format(*args, **kwargs)
        # that it failed is what matters
        except (LookupError, AttributeError, TypeError, ValueError) as error:
            values = [*args, *kwargs.items()]
            return f"{self.text} (values {values}, which do not go into this text: {error!r})"


def lines(found: Iterable[tuple[tuple, Failure, Sequence[Any]]]) -> str:
    """What is said of failures at places of a mapped axis or of devices."""
    return "\n".join([f"at mapped index {', '.join(map(str, place))}: {failure.words(values)}" if place
                      else failure.words(values) for place, failure, values in found])


@dataclasses.dataclass(frozen=True, repr=False)
class Failures:
    """The failures that a code tells apart: that of code k is number k - 1.  Their values have slots, shared
    by type."""
    all: tuple

    def __call__(self, effect: Effect) -> bool:
        """Are these the states that an effect changes?"""
        return type(effect) is Check and effect.failure in self.codes

    @functools.cached_property
    def _hash(self) -> int:
        return hash(self.all)

    def __hash__(self) -> int:
        return self._hash

    @functools.cached_property
    def codes(self) -> dict[Failure, int]:
        return {f: i for i, f in enumerate(self.all, 1)}

    @functools.cached_property
    def slots(self) -> dict[tuple[ShapedArray, ...], int]:
        """{types of the values of a failure: position of the first among the states}."""
        found, at = {}, 1
        for f in self.all:
            if f.avals not in found:
                found[f.avals] = at
                at += len(f.avals)
        return found

    @functools.cached_property
    def avals(self) -> tuple[ShapedArray, ...]:
        return (_CODE, *[a for avals in self.slots for a in avals])

    def states(self, vma: frozenset[str] = frozenset()) -> tuple[State, ...]:
        """The code and the slots, as values that vary over the manual axes `vma`."""
        return tuple([State(a.update(vma=vma), self) for a in self.avals])

    def start(self, vma: frozenset[str] = frozenset()) -> list[Any]:
        """Their values while nothing has failed."""
        return [vary(zeros_of(a), tuple(sorted(vma))) for a in self.avals]

    def failed(self, values: Sequence[Any]) -> tuple[Failure, Sequence[Any]] | None:
        """(the Failure, its values) of concrete states, or None."""
        code = int(values[0])
        if not code:
            return None
        failure = self.all[code - 1]
        at = self.slots[failure.avals]
        return failure, values[at:at + len(failure.avals)]

    def joined(self, values: Sequence[Any], reported: Failures, news: Sequence[Any]) -> list[Any]:
        """The states after others gave `news` for the Failures `reported`: what failed first stays."""
        code = _looked_up(news[0], [0, *[self.codes.get(f, 0) for f in reported.all]])
        well = eq(values[0], 0)
        after = [select(well, code, values[0]), *values[1:]]
        fresh = and_p.bind(well, ne(code, 0)) if len(values) > 1 else None
        for avals, there in reported.slots.items():
            here = self.slots.get(avals, 0)
            for k in range(len(avals) if here else 0):
                after[here + k] = select(fresh, news[there + k], values[here + k])
        return after

    def __repr__(self) -> str:
        return str([f.text for f in self.all])


def type_of(value: Any) -> ShapedArray:
    """The type under which a value to be shown is a state."""
    return aval_of(value).update(weak_type=False, vma=frozenset())


def of_users(failures: Failures) -> Failures:
    """The same failures, reported by a `check_error`."""
    return Failures(tuple([dataclasses.replace(f, users=True) for f in failures.all]))


def failures_of(effects: Iterable[Effect]) -> Failures | None:
    """The Failures among effects, or None."""
    found = tuple([e.failure for e in effects if type(e) is Check])
    return Failures(found) if found else None


def _looked_up(index: Any, table: list[int]) -> Any:
    """table[index] of a scalar in a program."""
    if table == list(range(len(table))):
        return index
    if len(table) == 2 and not table[0]:
        return mul(index, scalar(table[1], dtypes.int32))
    return reshape(dynamic_slice_p.bind(np.array(table, np.int32), index, slice_sizes=(1,)), ())


def row(x: Any, at: Any) -> Any:
    """x[at], for a scalar in a program."""
    if shape_of(x)[0] == 1:
        return reshape(x, shape_of(x)[1:])
    shape, zero = shape_of(x), scalar(0, dtype_of(at))
    return reshape(dynamic_slice_p.bind(x, at, *[zero] * (len(shape) - 1), slice_sizes=(1, *shape[1:])),
                   shape[1:])


def _first_failing(codes: Any) -> Any:
    failed = codes if dtypes.is_bool(dtype_of(codes)) else ne(codes, 0)
    return argmax_p.bind(failed, axes=(0,), index_dtype=dtypes.int32)


def first_code(codes: Any) -> Any:
    """Of stacked codes that of the first that failed."""
    return row(codes, _first_failing(codes))


def last(values: Sequence[Any]) -> list[Any]:
    """Of states that are stacked along a leading axis, those of the last that failed, as JAX has it."""
    n = shape_of(values[0])[0]
    at = sub(scalar(n - 1, dtypes.int32), _first_failing(rev_p.bind(values[0], dimensions=(0,))))
    return [row(x, at) for x in values]


def any_of(mask: Any) -> Any:
    return reduce_or_p.bind(mask, axes=tuple(range(len(shape_of(mask)))))


def report(failed: Any, failure: Failure, values: Sequence[Any] = ()) -> None:
    """Write a check that fails where the boolean scalar `failed` holds."""
    check_p.bind(convert(failed, dtypes.int32), *values, failures=Failures((failure,)))


def report_all(found: Iterable[tuple[Any, Failure, Sequence[Any]]]) -> None:
    """`report` for all of [(failed, failure, values)], in order; those without values are one check."""
    for alone, group in itertools.groupby(found, lambda entry: len(entry[2]) > 0):
        flags, failures, values = zip(*group)
        if alone or len(flags) == 1:
            for entry in zip(flags, failures, values):
                report(*entry)
        else:
            flags = concatenate_p.bind(*[reshape(f, (1,)) for f in flags], dimension=0)
            code = mul(convert(any_of(flags), dtypes.int32),
                       add(_first_failing(flags), scalar(1, dtypes.int32)))
            check_p.bind(code, failures=Failures(failures))


# --- indices --------------------------------------------------------------------------------------

def outside(shape: Sequence[Any], axes: Sequence[int], indices: Any, lasts: Any, firsts: Any = 0,
            window: Sequence[Any] = (), source: Any = None) -> list[tuple[Any, Failure, Sequence[Any]]]:
    """What `report` takes, in a list: is an entry of index vectors not between those of `firsts` and `lasts`?

    The vectors are along the last axis of `indices`; their entries count along `axes` of an array of `shape`,
    and say where a `window` begins.
    """
    where = shape_of(indices)
    if not prod(where):
        return []
    dtype, count = dtype_of(indices), len(axes)
    limits = dtypes.iinfo(dtype)

    def bound(values: Any) -> Any:
        values = np.clip(np.broadcast_to(np.asarray(values, object), count), limits.min,
                         limits.max).astype(dtype)
        return broadcast_in_dim(values, where, (len(where) - 1,))
    failed = reshape(or_p.bind(lt(indices, bound(firsts)), gt(indices, bound(lasts))), (prod(where),))
    indices = reshape(convert(indices, dtypes.canonicalize(dtypes.int64)), (prod(where),))
    at = scalar(0, dtypes.int32)
    if prod(where) > 1:
        at = argmax_p.bind(failed, axes=(0,), index_dtype=dtypes.int32)
    values = [row(indices, at)]
    found: tuple[Any, Any] = axes[0], shape[axes[0]]
    if count > 1:
        column = rem_p.bind(at, scalar(count, dtypes.int32))
        values += [_looked_up(column, list(axes)), _looked_up(column, [shape[a] for a in axes])]
        found = "{}", "{}"
    windows = f" The window has shape {tuple(window)}." if any(window[a] != 1 for a in axes if window) else ""
    text = (f"out-of-bounds indexing for array of shape {tuple(shape)}: index {{}} is out of bounds for axis "
            f"{found[0]} with size {found[1]}.{windows}")
    return [(any_of(failed), Failure(OOBError, text, tuple(map(type_of, values)), source=source), values)]


# --- the primitive --------------------------------------------------------------------------------
#
# Operands: the code and the slots of the Failures that are its parameter.

def _evaluate(code: Any, *values: Any, failures: Failures) -> list[Any]:
    found = failures.failed([code, *values])
    if found and not found[0].debug:
        raise error_of(*found)
    return []


def error_of(failure: Failure, values: Sequence[Any]) -> Exception:
    """The exception for a failure that `checkify` does not give as a value."""
    if failure.kind is OOBError and not failure.users:
        where = failure.line and f" It is read or written at {failure.line}."
        return IndexError(f"{failure.words(values)}{where} Where that is meant, say what to do with mode=, "
                          "as in " 'x.at[i].get(mode="fill") or x.at[i].set(y, mode="drop").')
    error: Any = JaxRuntimeError(failure.words(values))
    error.annotated = True       # the words are the user's own
    return error


def _lower(ctx: Any, eqn: Eqn, *names: str) -> list[str]:
    """Checks that are left here have no effect."""
    if any(f.users and not f.debug for f in eqn.params["failures"].all):
        raise ValueError("Cannot abstractly evaluate a checkify.check which was not functionalized. This "
                         "probably means you tried to stage (jit/scan/pmap/...) a `check` without "
                         "functionalizing it through `checkify.checkify`: write jit(checkify(f)), and look "
                         "at the error that it gives.")
    return []


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    return check_p.bind(*primals, **params), []


def _batching(axis: MappedAxis, args: Sequence[Any], dims: Sequence[Any],
              **params: Any) -> tuple[list[Any], list[Any]]:
    """The last element that fails is what is said."""
    if axis.size:
        args = [broadcast_in_dim(x, (axis.size, *shape_of(x)), range(1, len(shape_of(x)) + 1)) if d is None
                else x for x, d in zip(front(args, dims), dims)]
        check_p.bind(*last(args), **params)
    return [], []


def _discharge(states: Sequence[State], values: Sequence[Any], args: Sequence[Any], *,
               failures: Failures) -> tuple[list[Any], list[Any]]:
    known: Any = states[0].handles
    rest = [f for f in failures.all if f not in known.codes]
    if rest:        # others ask for these
        left = Failures(tuple(rest))
        check_p.bind(*left.joined(left.start(), failures, args), failures=left)
    return known.joined(values, failures, args), []


check_p = Primitive("check", multiple_results=True, says_sharding=True,
                    abstract_eval=lambda *avals, failures: [], lower=_lower, jvp=_jvp, batching=_batching,
                    discharge=_discharge, impl_rule=_evaluate,
                    effects=lambda params: tuple([Check(failure=f) for f in params["failures"].all]))


# --- checks in what runs for some elements, or on several devices ---------------------------------

def batched(thread: Callable[..., Any], axis: MappedAxis, args: Sequence[Any], dims: Sequence[Any],
            **params: Any) -> tuple[list[Any], list[int]] | None:
    """The result of a batching rule if `params` have checks that not all elements come to, else None.

    `discharge` is the rule that threads states through the primitive; each element has its own.
    """
    if not any(type(e) is Check for jaxpr in sub_jaxprs(params) for e in jaxpr.effects):
        return None
    params = {k: _located(v) for k, v in params.items()}
    known: Any = failures_of(dict.fromkeys([e for jaxpr in sub_jaxprs(params) for e in jaxpr.effects]))
    vma = frozenset().union(*[aval_of(a).vma for a in args])

    def run(*xs: Any) -> list[Any]:
        values, outs = thread(known.states(vma), known.start(vma), list(xs), **params)
        return [*values, *outs]
    results, n = programs.map_flat(run, axis, args, dims), len(known.avals)
    check_p.batching(axis, results[:n], [0] * n, failures=known)
    return results[n:], [0] * (len(results) - n)


def _located(value: Any) -> Any:
    if type(value) is tuple:
        return tuple(map(_located, value))
    return programs.instrument(value, ()) if type(value) is Jaxpr else value
