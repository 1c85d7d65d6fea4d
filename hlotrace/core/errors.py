"""Exception classes under JAX's names, and the words that go with the most common mistakes."""
from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    class TracerLike(Protocol):
        """What messages say of a Tracer (core/trace.py)."""
        aval: Any

        def under(self) -> str: ...

        def origin(self) -> str: ...

        def depends_on(self) -> list[str]: ...

        def traced_for(self) -> str: ...


__all__ = ["ConcretizationTypeError", "DuplicateSpecError", "HoldsArrayError",
           "InconclusiveDimensionOperation", "IndivisibleError", "JAXIndexError", "JaxprTypeError",
           "JAXTypeError", "KeyReuseError", "NonConcreteBooleanIndexError", "ShapeError",
           "ShardingTypeError", "TracerArrayConversionError", "TracerBoolConversionError",
           "TracerIntegerConversionError", "TypePromotionError", "UnexpectedTracerError"]


class JAXTypeError(TypeError):
    """What the TypeErrors of this module have in common."""


class JAXIndexError(IndexError):
    """What the IndexErrors of this module have in common."""


class JaxprTypeError(TypeError):
    """A program does not have the types that its equations say."""


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where a concrete Python value is needed."""


class TracerBoolConversionError(ConcretizationTypeError):
    """`bool()` of a traced value, most often through `if`, `while`, `and`, `or` or `assert`."""


class TracerIntegerConversionError(JAXTypeError):
    """A traced value was used where Python needs an `int` (an index of a list, `range`, a shape)."""


class TracerArrayConversionError(JAXTypeError):
    """A traced value was handed to NumPy."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """An array was indexed with a traced boolean mask, so the shape of the result is unknown."""


class UnexpectedTracerError(JAXTypeError):
    """A tracer was used after the transformation that made it had ended."""


class TypePromotionError(ValueError):
    """The dtypes of the operands have no common dtype under the promotion rules in force."""


class KeyPromotionError(TypePromotionError, TypeError):
    """A PRNG key beside a number."""


class ShapeError(TypeError, ValueError):
    """Shapes that do not fit each other, for which JAX raises TypeError or ValueError, NumPy ValueError."""


class HoldsArrayError(TypeError, ValueError):
    """No array, but an object with `__jax_array__`: JAX raises ValueError there, TypeError for others."""


class ComplexError(TypeError, ValueError):
    """Complex numbers for a function of real ones: JAX raises ValueError in some, TypeError in others."""


class InconclusiveDimensionOperation(Exception):
    """A comparison of symbolic sizes holds for some of their values and not for others."""


class ShardingTypeError(TypeError, ValueError):
    """Shardings over Explicit mesh axes that do not fit each other, or leave that of a result open."""


class IndivisibleError(ValueError):
    """A dimension does not divide by the number of parts that a sharding cuts it into."""


class DuplicateSpecError(ValueError):
    """A PartitionSpec splits two dimensions over one mesh axis."""


class KeyReuseError(JAXTypeError):
    """A PRNG key was consumed more than once (see `debug_key_reuse`)."""


# The page of docs/errors/ about a class and what derives from it, the first that fits; where none does, that
# whose words an error has.
_PAGES = {KeyReuseError: "keys", KeyPromotionError: "keys", TypePromotionError: "dtypes",
          HoldsArrayError: "dtypes",
          ShardingTypeError: "devices", IndivisibleError: "devices", DuplicateSpecError: "devices",
          ShapeError: "shapes", InconclusiveDimensionOperation: "shapes",
          JaxprTypeError: "running", JAXTypeError: "tracers", JAXIndexError: "tracers", IndexError: "indices",
          OverflowError: "dtypes", FloatingPointError: "running", NotImplementedError: "running"}
_RUNNING = "JaxRuntimeError"     # jaxlib's and checkify's
_WORDS = {"loops": r"\b(scan|cond|switch|while_loop|fori_loop)\b",
          "devices": r"\b(mesh|[Ss]hard\w*|\w*Sharding|PartitionSpec|pmap|devices?|donat\w+|deleted)\b",
          "keys": r"\bPRNG keys?\b",
          "indices": r"\b([Ii]ndexer|indexing|indices|[Ss]lice (entries|step))\b",
          "dtypes": r"\bdtypes?\b|not a valid JAX type|requires ndarray",
          "shapes": r"\b(shapes?|ax[ie]s|sizes?|broadcast\w*)\b"}


def page_of(error: BaseException, base: str) -> str | None:
    """Where the documentation is about an error; None where no page is about its kind.

    Args:
        base: where the pages are, with `{page}` in the place of the name of one: "docs/errors/{page}.md",
            "https://host/errors/{page}.html"; the name is put behind one without it.
    """
    page = next((page for kind, page in _PAGES.items() if isinstance(error, kind)), None)
    if page is None and type(error).__name__ == _RUNNING:
        page = "running"
    page = page or next((page for page, words in _WORDS.items() if re.search(words, str(error))), None)
    if page is None:
        return None
    return base.replace("{page}", page) if "{page}" in base else f"{base.rstrip('/')}/{page}"


for _class in list(vars().values()):
    if isinstance(_class, type) and _class.__module__ == __name__:      # not what it imports
        _class.__module__ = "hlotrace.errors"       # where users find it, and what a traceback prints


def _made_at(tracer: TracerLike) -> str:
    where, names = tracer.origin(), tracer.depends_on()
    if not names:
        return f"\nThe value {where}." if where else ""
    values = "value of the argument" if len(names) == 1 else "values of the arguments"
    computed = f"; it {where}" if where.startswith("was") else ""
    return ("\nThis concrete value was not available in Python because it depends on the "
            f"{values} {listed(names, ', ' if len(names) > 2 else ' ')}{computed}.")


def bool_conversion(tracer: TracerLike) -> TracerBoolConversionError:
    return TracerBoolConversionError(
        f"Attempted boolean conversion of traced array with shape {tracer.aval.str_short()}. Its value is "
        f"not known while {tracer.under()} is tracing.{_made_at(tracer)}\n"
        "Python's `if`, `while`, `and`, `or`, `not` and `assert` need a concrete value. Use jnp.where or "
        "lax.cond for a choice, lax.while_loop for a loop, `&`, `|`, `~` for logic on arrays, or "
        f"{_made_known(tracer)}.")


def _made_known(tracer: TracerLike) -> str:
    """How a value that Python needs could be known."""
    under = tracer.under()
    if under.startswith("vmap"):
        return "give what is the same for the whole batch with in_axes=None, which leaves it as it is"
    if under.startswith(("lax.scan", "lax.while_loop", "lax.fori_loop", "lax.map")):
        return "write a Python loop, which knows its values (and is unrolled)"
    return "mark the argument that decides it with static_argnums/static_argnames"


def integer_conversion(tracer: TracerLike) -> TracerIntegerConversionError:
    return TracerIntegerConversionError(
        f"The __index__() method was called on traced array with shape {tracer.aval.str_short()}: Python "
        f"needs an integer, while {tracer.under()} is tracing.{_made_at(tracer)}\nShapes, axes, `range` and "
        f"list indices must be known when tracing: {_made_known(tracer)}. To index with a traced value, "
        "index a jnp array rather than a list or NumPy array; for a loop use lax.fori_loop.")


_INSTEAD = {
    "item": ("Keep the value as an array: an array of one element does what a number does, x.reshape(()) has "
             "rank 0"),
    "tolist": ("Keep the value as an array: index it, or unpack it where its length is known, as in "
               "`a, b = x`"),
    "pickle": "Return the value from the traced function, and pickle the result",
}


_ABSTRACT = "Abstract tracer value encountered where concrete value is expected: traced array with shape"


def scalar_conversion(tracer: TracerLike, name: str) -> ConcretizationTypeError:
    instead = _INSTEAD.get(name, f"Keep the value as an array (x.astype({name})), with jnp.sqrt and kin for "
                           "math.sqrt")
    return ConcretizationTypeError(
        f"{_ABSTRACT} {tracer.aval.str_short()}\nThe problem arose with the `{name}` function while "
        f"{tracer.under()} is tracing.{_made_at(tracer)}\n{instead}; to see it when it is computed, use "
        f"hlotrace.debug.print; or {_made_known(tracer)}.")


def format_conversion(tracer: TracerLike, spec: str) -> ConcretizationTypeError:
    return ConcretizationTypeError(
        f"{_ABSTRACT} {tracer.aval.str_short()}\nThe problem arose with format {spec!r} while "
        f"{tracer.under()} is tracing.{_made_at(tracer)}\nTo print the value when it is computed, use "
        f"hlotrace.debug.print('{{x:{spec}}}', x=x); without a format, f\"{{x}}\" shows its type.")


def concrete_needed(tracer: TracerLike, what: str = "", advice: str = "") -> ConcretizationTypeError:
    return ConcretizationTypeError(
        f"{_ABSTRACT} {tracer.aval.str_short()}\n{what or 'It is needed'} while {tracer.under()} is "
        f"tracing.{_made_at(tracer)}\n"
        f"{advice or f'Shapes, axes and sizes must be known when tracing: {_made_known(tracer)}'}, or "
        "compute it outside of the transformation.")


def sized_by_values(tracer: TracerLike, given: str = "size=") -> ConcretizationTypeError:
    """For functions whose results have as many elements as the values say."""
    return concrete_needed(
        tracer, "the values decide how many elements the result has, so they must be known",
        f"Give the number of elements with {given}, which pads or cuts the result")


def not_a_key(value: Any, aval: Any, words: Sequence[int]) -> TypeError:
    got = f"{value!r:.60} of type {type(value).__name__}"
    if aval is not None and type(value) is not float:
        got = aval.str_short()
    if aval is not None and aval.dtype.name == "uint32" and aval.shape:
        got += f" (the data of keys has shape (..., {words[0]}))"
    elif aval is not None and aval.dtype.name == "uint32":
        got += " (half of a key of random.PRNGKey? To map over keys, make an array of them with random.split)"
    wrong = "expected key_data.dtype = uint32"
    if aval is None or type(value) in (int, float):
        wrong = "expected key_data to have ndim, shape, and dtype attributes"
    elif aval.shape[-1:] != tuple(words):
        wrong = f"expected key_data.shape to end with {tuple(words)}"
    return TypeError(f"JAX encountered invalid PRNG key data: {wrong}; got {got}: make a key with "
                     f"random.key({value if type(value) is int else 0}), and give it to random functions as "
                     "their first argument, as in random.normal(key, (3,))")


def array_conversion(tracer: TracerLike) -> TracerArrayConversionError:
    return TracerArrayConversionError(
        "The numpy.ndarray conversion method __array__() was called on traced array with shape "
        f"{tracer.aval.str_short()} while {tracer.under()} is tracing.{_made_at(tracer)}\n"
        "Use the function of the same name from hlotrace.numpy; to run NumPy code on the value, use "
        "hlotrace.pure_callback.")


def leaked_tracer(tracer: TracerLike) -> UnexpectedTracerError:
    traced, where = tracer.traced_for(), tracer.origin()
    made = f"\nThe function being traced when the value leaked was {traced}." if traced else ""
    if where:
        made += f"\nThe value {where}."
    return UnexpectedTracerError(
        "Encountered an unexpected tracer. A function transformed by JAX had a side effect, allowing for a "
        f"reference to an intermediate value with type {tracer.aval.str_short()} wrapped in a "
        f"{type(tracer).__name__} to escape the scope of the transformation: {tracer.under()} has ended, or "
        f"the value belongs to another trace.{made}\nA value leaves a transformed function only "
        "as its return value: not through a global, an attribute, a closure list or a cache. Return it "
        "instead; to look at it, use hlotrace.debug.print.")


# --- shapes

def listed(things: Iterable[object], before: str = " ") -> str:
    """`a`, `a and b`, `a, b and c`; with a comma `before` the last one, `a, b, and c`."""
    *first, last = map(str, things)
    return f"{', '.join(first)}{before}and {last}" if first else last


def fits(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Do two shapes broadcast together?"""
    return all(m == n or m == 1 or n == 1 for m, n in zip(reversed(a), reversed(b)))


def incompatible_shapes(shapes: Iterable[Iterable[Any]], axis: int) -> ShapeError:
    """For shapes that do not broadcast, since their sizes differ along `axis`, counted from the end."""
    ranked = [tuple(s) for s in shapes]
    sizes = dict.fromkeys(s[axis] for s in ranked if len(s) >= -axis and s[axis] != 1)
    return ShapeError(f"Incompatible shapes for broadcasting: {listed(ranked)}: axis {axis} has sizes "
                      f"{listed(sizes)}, which must be equal, or one of them 1; {_mending(ranked)}")


def _mending(shapes: Sequence[tuple[Any, ...]]) -> str:
    """What would make two shapes fit."""
    if len(shapes) == 2:
        for i in (1, 0):
            which, shape, other = ("the second", "the first")[1 - i], shapes[i], shapes[1 - i]
            if len(shape) + 1 == len(other) and fits((*shape, 1), other):
                return f"{which} fits with a new last axis: x[..., None], of shape {(*shape, 1)}"
            if len(shape) > 1 and fits(shape[::-1], other):
                return f"{which} fits transposed: x.T, of shape {shape[::-1]}"
    return "reshape, slice or pad one of them"


def too_many_elements(shape: tuple[Any, ...], dtype: Any, limit: int) -> ValueError:
    zeros = " (zeros left out)" if 0 in shape else ""
    return ValueError(
        f"an array of shape {shape} and dtype {dtype.name} would have {math.prod(filter(None, shape))} "
        f"elements{zeros}: the sizes of a shape multiply to less than {limit} "
        f"(2**{limit.bit_length() - 1}), of which jaxlib can count the bytes.")


def index_out_of_bounds(index: object, axis: int, size: object, low: object, high: object,
                        advice: str) -> IndexError:
    return IndexError(f"{_outside(index, axis, size, low, high)}. {advice}.")


def index_passes(index: object, axis: int, size: object, low: object, high: object, where: str) -> str:
    """What is logged of a static index out of bounds where nothing is raised."""
    return (f"{where}{': ' if where else ''}{_outside(index, axis, size, low, high)}; reads take the nearest "
            "element or a fill value, writes are dropped or clipped. jax_check_static_indices makes it an "
            "IndexError.")


def _outside(index: object, axis: int, size: object, low: object, high: object) -> str:
    return (f"index {index} is out of bounds for axis {axis} with size {size}: ints from {low} to {high} are "
            "inside")


def traced_slice(item: slice, position: int) -> IndexError:
    """For a slice at a position of an index, with parts that are traced."""
    parts = {name: part for name in ("start", "stop", "step")
             if hasattr(part := getattr(item, name), "concrete") and part.concrete() is None}
    said = listed(f"its {name} is a traced {part.aval.str_short()}" for name, part in parts.items())
    return IndexError(
        f"Slice entries must be static integers, but of the slice at position {position} {said}: the size of "
        "the result would not be known when tracing. Where the size is known, use "
        "lax.dynamic_slice_in_dim(x, start, size), else a mask: jnp.where(jnp.arange(n) < stop, x, 0)." +
        "".join(dict.fromkeys(map(_made_at, parts.values()))))


def empty_axis(index: object, axis: int) -> IndexError:
    return IndexError(f"index {index} is out of bounds for axis {axis} with size 0: an empty axis has no "
                      "element to read or to replace")


def wrong_unpacking(aval: Any, wanted: int) -> ValueError:
    size = aval.shape[0]
    several = " To take another axis apart, transpose the array first." if aval.ndim > 1 else ""
    wrong = "not enough" if wanted > size else "too many"
    return ValueError(f"{wrong} values to unpack (expected {wanted}, got {size}): an array of type "
                      f"{aval.str_short()} is unpacked along axis 0, which has size {size}.{several}")


# --- arguments


def not_one_of(parameter: str, got: object, choices: Iterable[object],
               kind: type[Exception] = ValueError) -> Exception:
    """For an argument that must be one of a few texts."""
    *first, last = map(repr, choices)
    return kind(f"{parameter} must be {', '.join(first)} or {last}, got {got!r}{did_you_mean(got, choices)}")


def check_choice(parameter: str, got: object, choices: Collection[object],
                 kind: type[Exception] = ValueError) -> None:
    """An error for an argument that is none of `choices`."""
    if got not in choices:
        raise not_one_of(parameter, got, choices, kind)


def check_callable(got: object, instead: str = "not what it returns") -> None:
    """TypeError for a transformation that is not given a function, most often what the function returns."""
    if not callable(got):
        raise TypeError(f"Expected a callable value, got {got!r:.80} of type {type(got).__name__}: pass the "
                        f"function itself, {instead}")
    if getattr(getattr(got, "__code__", None), "co_flags", 0) & inspect.CO_GENERATOR:
        raise TypeError(f"Expected a function, got a generator function: {got!r}: return its values "
                        "in a list instead of yielding them")


def not_an_int(parameter: str, got: object, advice: str = "") -> TypeError:
    aval = getattr(got, "aval", None)
    return TypeError(f"{parameter} must be an int, got "
                     f"{repr(got)[:60] if aval is None else aval.str_short()}{advice}")


# --- dtypes

_TEXTS = "Number the texts first, as names.index(text) or np.unique(texts, return_inverse=True) do"
_TIMES = "subtract a start and take .astype('int64') of the difference, in NumPy, before"
_OF_KIND = {"U": _TEXTS, "S": _TEXTS, "T": _TEXTS, "m": _TIMES, "M": _TIMES,
            "V": "make an array of each field, as in x['name']"}


def no_numbers(value: object, array: Any) -> TypeError:
    """For what jnp.array cannot hold; `array` is what NumPy makes of it."""
    kind = array.dtype.kind
    if kind in _OF_KIND:
        mend = _OF_KIND[kind]
    elif isinstance(value, dict):
        mend = "jax.tree.map(jnp.asarray, x) makes an array of each of its values"
    elif hasattr(value, "__iter__") and array is not value:
        mend = "jnp.array(list(x)) makes an array of its elements"
    else:
        mend = "give numbers, or lists of them; NumPy's .astype(float) makes numbers of objects that are some"
    of = f" of dtype {array.dtype}" if kind != "O" or hasattr(value, "dtype") else ""
    return TypeError(f"Value {value!r:.60}{of}, from {type(value).__name__}, is not a valid JAX array type. "
                     f"Only arrays of numeric types are supported: {mend}.")


# --- names

def did_you_mean(name: object, known: Iterable[object]) -> str:
    """`; did you mean 'x'?`, or an empty string where none of the names known is near."""
    near = nearest(name, known)
    return "" if near is None else f"; did you mean {near!r}?"


def name_of(fun: Callable[..., Any]) -> str:
    """The name of anything callable, for messages and programs; that of its class where it has none."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    try:
        name = fun.__name__
    except Exception:       # whatever a class makes of it
        name = None
    return name if isinstance(name, str) and name else type(fun).__name__


def nearest(name: object, known: Iterable[object], likeness: float = 0.6) -> str | None:
    """The one of the names known that is spelt most alike; None where none is alike enough."""
    import difflib
    names = [k for k in known if isinstance(k, str)]
    return next(iter(difflib.get_close_matches(str(name), names, 1, likeness)), None)
