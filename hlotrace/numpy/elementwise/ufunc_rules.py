"""Unary and Binary: elementwise functions as rows, a rule for each kind of dtype.

Operands that need no change go to the primitive at once; others are promoted and broadcast, in one compiled
program when called eagerly.
"""
import functools
from inspect import Parameter, Signature

from ...api.composite import composite
from ...api.external.noted_errors import noting_floats
from ...api.jit import jit
from ...core import dtypes
from ...core.array import Array
from ...core.avals import aval_of
from ...core.config import state
from ...core.dtypes import SUPPORTED, python_scalars
from ...core.pytrees import pytree
from ...core.surface.boundary import HoldsArray, arrays_of, reraise_for_user
from ...core.trace import EVAL
from ...primitives.arrays.elementwise import convert
from ...primitives.arrays.elementwise_rules import accepted
from ...primitives.arrays.shape import full, in_memory_of
from ...primitives.common import Primitive, kind_of, np, scalar
from ..util import check_arraylike, dtype_of, promote_args, promote_args_inexact, shape, split_alike
from .ufunc import ufunc

_WORDS = {"f": "floating point", "c": "complex", "i": "signed integer", "u": "unsigned integer",
          "b": "boolean"}
_KINDS = {kind: [d for d in SUPPORTED if kind_of(d) == kind] for kind in "bufic"}
ALWAYS, SCALARS, FIRST, NEVER = "always", "scalars", "first", "never"
_ORDER = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}      # kinds of dtype in the order of python_scalars


def numeric(name, *args):
    """Promoted arguments, where booleans count as integers."""
    args = promote_args(name, *args)
    if dtypes.is_bool(dtype_of(args[0])):
        return [convert(x, dtypes.canonicalize(np.int64)) for x in args]
    return args


def checked(name, x):
    check_arraylike(name, x)
    return [x]


@functools.cache
def beside(kind, aval, x64):
    """What makes a Python number of type `kind` an operand beside an array; None if the array must change."""
    rank = _ORDER.get(kind_of(aval.dtype), -1)
    if python_scalars.index(kind) > rank or kind is bool and rank:     # a bool is not weak: strict refuses it
        return None
    same = python_scalars[rank]
    if dtypes.canonicalize(same) == aval.dtype:
        return same
    if aval.weak_type or dtypes.canonicalize(aval.dtype) != aval.dtype:
        return None         # made while `jax_enable_x64` was another
    return lambda value: scalar(value, aval.dtype)


# As JAX's functions are called: ufuncs take `out` and `where`, if only to refuse them; of the others most
# take no keywords.
_UFUNCS = frozenset(("add", "bitwise_and", "bitwise_or", "bitwise_xor", "logaddexp", "logaddexp2",
                     "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
                     "subtract"))
_OUT = Parameter("out", Parameter.POSITIONAL_OR_KEYWORD, default=None)
_OF_UFUNCS = Signature([Parameter("args", Parameter.VAR_POSITIONAL), *(
    Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in ("out", "where"))])
_XY = ("equal", "float_power", "greater", "greater_equal", "left_shift", "less", "less_equal", "nextafter",
       "not_equal")
_OPERANDS = {"real": ("val",), "imag": ("val",), **dict.fromkeys(_XY, ("x", "y"))}
_KEYWORDS = frozenset(("fmax", "fmin", "gcd", "i0", "iscomplex", "isreal", "lcm", "trunc"))
# whose results are looked at for NaN, and whose divisors for 0, where `state.noting` says so
_DIVIDING = frozenset(("divide", "floor_divide", "remainder"))
_NOTING = _DIVIDING | frozenset((
    "add", "arccos", "arccosh", "arcsin", "arctanh", "cos", "float_power", "fmod", "hypot", "log", "log10",
    "log1p", "log2", "power", "sin", "sqrt", "subtract", "tan"))
_WITH_OUT = frozenset(("isneginf", "isposinf", "modf"))


@functools.cache
def _signature(operands, kind, *more):
    return Signature([*(Parameter(name, kind) for name in operands), *more])


def _signature_of(name, nin):
    if name in _UFUNCS:
        return _OF_UFUNCS
    operands = _OPERANDS.get(name, ("x1", "x2") if nin == 2 else ("x",))
    kind = Parameter.POSITIONAL_OR_KEYWORD if name in _KEYWORDS else Parameter.POSITIONAL_ONLY
    return _signature(operands, kind, *([_OUT] if name in _WITH_OUT else []))


def _refusal_of(name):
    return NotImplementedError if name in _UFUNCS or name in _WITH_OUT else TypeError


def _table(rules):
    """Rules by dtype, and those that are a primitive."""
    table = {d: rule for kinds, rule in rules.items() for kind in kinds for d in _KINDS[kind]}
    return table, {d: rule for d, rule in table.items() if isinstance(rule, Primitive)}


# what becomes of the operands x, or x1 and x2, by how they are promoted
_PROMOTED = {checked: "x: {}.", promote_args: "x1, x2: {}; they broadcast and are promoted to one dtype.",
             numeric: "x1, x2: {}; they broadcast and are promoted to one dtype, booleans count as integers.",
             promote_args_inexact: "{}: {}; integers and booleans become the default float."}


def _documented(doc, promote, rules, nin):
    """`doc` with a paragraph before its examples that says which operands the function takes.

    `python -OO` has no docstrings, and no such paragraphs.
    """
    taken = ", ".join(_WORDS[kind] for kinds in rules for kind in kinds)
    sentence = _PROMOTED.get(promote)
    if not doc or sentence is None:
        return doc
    if "{}:" not in sentence:
        operands = [taken]
    else:
        operands = ["x" if nin == 1 else "x1, x2, which broadcast", taken]
    head, _, rest = doc.partition("\n\n")
    return f"{head}\n\n{' ' * (len(rest) - len(rest.lstrip(' ')))}{sentence.format(*operands)}\n\n{rest}"


def _general(name, doc, promote, rules, table, weak, nin):
    """The function for all operands: promote them and apply the rule for their dtype."""
    fallback = next(iter(rules.values()))

    def function(*args):
        given, args = args, promote(name, *args)
        dtype = dtype_of(args[0])
        rule = table.get(dtype, fallback)
        if isinstance(rule, Primitive):
            return rule.bind(*args)       # a dtype without a rule is an error of the primitive, or else here
        if dtype not in table:
            raise TypeError(f"{name} does not accept dtype {dtype.name}. Accepted dtypes are subtypes of "
                            f"{accepted(''.join(rules))}")
        args = split_alike(*args)
        if not all([aval_of(x).weak_type for x in args]):
            return rule(*args)
        kept = weak.get(kind_of(dtype), NEVER) if isinstance(weak, dict) else weak
        return _weakened(rule(*args), kept, given, dtypes.is_bool(dtype))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _documented(doc, promote, rules, nin)
    return function


def weakened(out, *args, kept=ALWAYS):
    """The results of a function of Python numbers, of weak type unless its constants prevent that."""
    return _weakened(out, kept, args) if all([aval_of(x).weak_type for x in args]) else out


def _weakened(out, kept, args, strong=False):
    """The results, of weak type if `kept` says so of the arguments before promotion."""
    hindering = {ALWAYS: (), SCALARS: args, FIRST: args[:1], NEVER: None}[kept]
    weak = not strong and hindering is not None and not any(map(shape, hindering))
    return pytree.tree_map(lambda x: convert(x, dtype_of(x), weak), out)


class Unary(ufunc):
    """An elementwise function of one array.

    Args:
        promote: function of the name and the operand, gives the operand in a dtype for which there is a rule.
        weak: which results of weak operands are weak, where a rule is no primitive: ALWAYS, those of SCALARS,
            where the FIRST is a scalar, or NEVER; or a dict of these by kind of dtype.
        rules: for kinds of dtype, such as `fc`, the primitive or function that does it.
    """

    def __init__(self, name, doc, promote, nout=1, weak=ALWAYS, **rules):
        table, self.direct = _table(rules)
        self.general = composite(_general(name, doc, promote, rules, table, weak, 1))
        super().__init__(self.general, 1, nout, name=name, module="hlotrace.numpy")
        self.__signature__, self._refusal = _signature_of(name, 1), _refusal_of(name)

    def __call__(self, x, *, out=None, where=None):
        try:
            if out is not None or where is not None:
                self._refuse(out, where)
            if state.noting and self.__name__ in _NOTING:
                return noting_floats(self.general, False, (x,))
            if isinstance(x, Array):
                primitive = self.direct.get(x.aval.dtype)
                if primitive is not None:
                    return state.trace.process(primitive, (x,), {})     # as `bind` does
            return self.general(x)
        except HoldsArray:
            return self(arrays_of(x))
        except Exception as error:
            reraise_for_user(error, f"jnp.{self.__name__}", (x,))
            raise

    def trace(self, *args, **kwargs):
        """As of the function that `jit` makes of this one."""
        return jit(self).trace(*args, **kwargs)

    def lower(self, *args, **kwargs):
        """As of the function that `jit` makes of this one."""
        return jit(self).lower(*args, **kwargs)


class Binary(ufunc):
    """An elementwise function of two arrays; see Unary.  `beside` makes Python numbers operands."""

    def __init__(self, name, doc, promote, identity=None, beside=beside, weak=ALWAYS, **rules):
        table, self.direct = _table(rules)
        self.beside = beside
        self.general = composite(_general(name, doc, promote, rules, table, weak, 2))
        super().__init__(self.general, 2, name=name, identity=identity, module="hlotrace.numpy")
        self.__signature__, self._refusal = _signature_of(name, 2), _refusal_of(name)

    def __call__(self, x1, x2, *, out=None, where=None):
        try:
            if out is not None or where is not None:
                self._refuse(out, where)
            if state.noting and self.__name__ in _NOTING:
                return noting_floats(self.general, self.__name__ in _DIVIDING, (x1, x2))
            if isinstance(x1, Array):
                aval = x1.aval
                primitive = self.direct.get(aval.dtype)
                if primitive is not None:
                    if isinstance(x2, Array):
                        if x2.aval is aval:
                            return state.trace.process(primitive, (x1, x2), {})
                    elif type(x2) in python_scalars:
                        make = self.beside(type(x2), aval, state.x64)
                        if make is not None and (operand := make(x2)) is not None:
                            return state.trace.process(primitive, (x1, operand), {})
                    elif type(x2) is np.ndarray and state.trace is EVAL and x2.shape == aval.shape and (
                            x2.dtype == aval.dtype and not (aval.weak_type or aval.marked)):
                        # the program for arrays is ready, as a rule
                        return state.trace.process(primitive, (x1, x2), {})
            elif isinstance(x2, Array) and type(x1) in python_scalars:
                aval = x2.aval
                primitive = self.direct.get(aval.dtype)
                if primitive is not None:
                    make = self.beside(type(x1), aval, state.x64)
                    if make is not None and (operand := make(x1)) is not None:
                        return state.trace.process(primitive, (operand, x2), {})
            return self.general(x1, x2)
        except HoldsArray:
            return self(*arrays_of((x1, x2)))
        except Exception as error:
            reraise_for_user(error, f"jnp.{self.__name__}", (x1, x2))
            raise


def unary(promote, kinds="fciub", nout=1, weak=ALWAYS):
    """Decorator: a ufunc of one array out of a function of an array already promoted."""
    return lambda f: Unary(f.__name__, f.__doc__, promote, nout, weak, **{kinds: f})


def binary(promote, kinds="fciub", weak=ALWAYS, identity=None):
    """Decorator: a ufunc of two arrays out of a function of arrays already promoted and broadcast."""
    return lambda f: Binary(f.__name__, f.__doc__, promote, identity, weak=weak, **{kinds: f})


def as_is(x):
    aval = aval_of(x)
    return convert(x, aval.dtype, aval.weak_type)


def like(x, value):
    return in_memory_of(aval_of(x), full(shape(x), value, dtype_of(x)))
