"""Functions that also return what went wrong in them, since no error can be raised while a program runs.

What is done is in `transforms/checks.py`, what a check is in `primitives/programs/checks.py`; here are the
functions that users call.
"""
import itertools

import numpy as np

from ..api.adapters import flatten
from ..api.flat import FlatFunction
from ..api.signatures import wraps
from ..core.array import Array
from ..core.avals import aval_of, is_arraylike
from ..core.config import state
from ..core.errors import check_callable
from ..core.jaxpr import eval_jaxpr
from ..core.pytrees import pytree
from ..core.surface.boundary import boundaries, filtered
from ..core.surface.public import export_names
from ..core.trace import EVAL
from ..primitives.arrays.elementwise import ne, not_p
from ..primitives.arrays.random import random_unwrap_p
from ..primitives.arrays.shape import reshape
from ..primitives.common import dtypes
from ..primitives.programs import checks
from ..primitives.programs.calls import jit_bind
from ..primitives.programs.checks import JaxRuntimeError
from ..transforms.checks import functional

__all__ = ["Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check",
           "check_error", "checkify", "debug_check", "div_checks", "float_checks", "index_checks",
           "init_error", "nan_checks", "user_checks"]

ErrorCategory = type[checks.JaxException]
user_checks = frozenset({checks.FailedCheckError})
nan_checks = frozenset({checks.NaNError})
index_checks = frozenset({checks.OOBError})
div_checks = frozenset({checks.DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


@boundaries(called="Error", tell_self=True)
class Error:
    """What went wrong first, if anything did.

    It is a pytree, so functions may return it; under vmap there is one for each element.

    >>> positive = checkify.checkify(lambda x: checkify.check(x > 0, "got {x}", x=x))
    >>> error, _ = jax.vmap(positive)(jnp.array([1, -2, -3]))
    >>> print(error.get())
    at mapped index 1: got -2 (`check` failed)
    at mapped index 2: got -3 (`check` failed)
    """

    def __init__(self, values=(), failures=None):
        self._values, self._failures = values, failures

    def get(self):
        """The message, or None; of a mapped function a line for each element that failed.  Values must be
        known."""
        return checks.lines(self._found()) or None

    def get_exception(self):
        """An exception of the category of what failed (first), or None."""
        message = self.get()
        if message is None:
            return None
        (_, failure, _), *_ = self._found()
        error = failure.kind(message)
        if failure.line:
            error.add_note(f"It was found at {failure.line}.")
        return error

    def throw(self):
        """Fail with a JaxRuntimeError, a ValueError, if something failed; see `check_error`.

        Of a mapped function the words are those of the last that failed, and a note has all.
        """
        check_error(self)

    def _found(self):
        """[(index of a mapped element, Failure, its values)] of all that failed."""
        if not self._values or not bool(checks.any_of(ne(self._values[0], 0))):
            return []
        codes = np.asarray(self._values[0])
        found = [(i, self._failures.failed([codes[i], *(x[i] if i else x for x in self._values[1:])]))
                 for i in itertools.product(*map(range, codes.shape)) if codes[i]]
        return [((*i, *place), one, its) for i, (failure, values) in found
                for place, one, its in failure.by_device(values)]

    def __repr__(self):
        return f"Error({self.get() if self._values and isinstance(self._values[0], Array) else None})"


pytree.register_pytree_node(Error, lambda e: (e._values, e._failures),
                            lambda failures, values: Error(tuple(values), failures))
init_error = Error()


def check(pred, msg, *fmt_args, debug=False, **fmt_kwargs):
    """Fail with `msg` unless the boolean scalar `pred` holds.

    Args:
        pred: a bool, or a boolean array of shape (), which may be traced.
        msg: a format string, as in `check(x > 0, "x must be positive, got {x}", x=x)`.
        fmt_args: pytrees of arrays for `msg`, which may be traced.
        debug: outside of `checkify`, do nothing.
        fmt_kwargs: pytrees of arrays for `msg`, which may be traced.
    Raises:
        JaxRuntimeError: at once, outside of every program.
        ValueError: in a program, when it is compiled: give it to `checkify` first.
        TypeError: for another `pred`, or values that are not arrays.

    >>> def f(x):
    ...     checkify.check(x > 0, "x must be positive, got {x}", x=x)
    ...     return jnp.log(x)
    >>> error, y = jax.jit(checkify.checkify(f))(-2.)
    >>> error.get()
    'x must be positive, got -2.0 (`check` failed)'
    >>> f(-2.)
    Traceback (most recent call last):
        ...
    hlotrace.experimental.checkify.JaxRuntimeError: x must be positive, got -2.0 (`check` failed)
    """
    if not isinstance(msg, str):
        raise TypeError(f"check takes a format string as its message, got {msg!r:.80} of type "
                        f"{type(msg).__name__}: write check(pred, \"x must be positive\")")
    if not is_arraylike(pred) or aval_of(pred).shape != () or not dtypes.is_bool(aval_of(pred).dtype):
        kind = aval_of(pred).str_short() if is_arraylike(pred) else type(pred).__name__
        raise TypeError(f"check takes a scalar pred as argument, got {pred!r:.200} of type {kind}: it must "
                        "be a bool, or a boolean array of shape (); jnp.all or jnp.any make one of an array")
    leaves, structure = pytree.tree_flatten((fmt_args, fmt_kwargs))
    for x in leaves:
        if not is_arraylike(x):
            raise TypeError("Formatting arguments to checkify.check need to be PyTrees of arrays, but got "
                            f"{x!r:.80} of type {type(x)}: write it into the message, as f\"...\"")
    values = [random_unwrap_p.bind(x) if dtypes.is_extended(aval_of(x).dtype) else x for x in leaves]
    kinds = tuple(map(checks.type_of, values))
    checks.report(not_p.bind(pred), checks.Failure(checks.FailedCheckError, msg + " (`check` failed)", kinds,
                                                   structure, bool(debug), users=True), values)


def debug_check(pred, msg, *fmt_args, **fmt_kwargs):
    """`check` inside of `checkify` alone; elsewhere nothing is done.

    >>> def f(x):
    ...     checkify.debug_check(x > 0, "not positive")
    ...     return x
    >>> f(-2.), checkify.checkify(f)(-2.)[0].get()
    (-2.0, 'not positive (`check` failed)')
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error):
    """Fail with what an Error says, if it says something: the inverse of `checkify`, which can take it again.

    Raises:
        JaxRuntimeError: as `check` does.
        ValueError: as `check` does.
        TypeError: for another argument.

    >>> error, _ = checkify.checkify(lambda x: checkify.check(x > 0, "not positive"))(-2.)
    >>> checkify.check_error(error)
    Traceback (most recent call last):
        ...
    hlotrace.experimental.checkify.JaxRuntimeError: not positive (`check` failed)
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got type {type(error)} instead: a function "
                        "of checkify gives a pair, error, result = f(...)")
    values = list(error._values)
    if not values:
        return
    if state.trace is EVAL:
        _throw(error)
        return
    ndim, size = values[0].ndim, values[0].size
    if ndim:
        if not size:
            return
        values = checks.last([reshape(x, (size, *x.shape[ndim:])) for x in values])
    checks.check_p.bind(*values, failures=checks.of_users(error._failures))


def _throw(error):
    for index, failure, values in error._found()[-1:]:
        raised = JaxRuntimeError(failure.words(values))
        raised.annotated = True       # the words are the user's own
        if index:
            raised.add_note(error.get())
        raise raised


def checkify(f, errors=user_checks):
    """`f` as a function that gives (Error, result): what failed first, and what `f` gives all the same.

    Args:
        f: a function of pytrees, which may have `check`s; what is no array, and Python's numbers, it gets as
            they are.
        errors: a set of categories: `user_checks` are those in `f`; the others are added to what can go
            wrong: `nan_checks` to operations that give a NaN, `div_checks` to divisions, `index_checks` to
            indices, whatever their `mode`; `float_checks`, `automatic_checks` and `all_checks` are unions.
    Returns:
        A pure function, which can be compiled, mapped and differentiated.
    Raises:
        TypeError: for what is no function, or no set of categories.

    >>> f = jax.jit(checkify.checkify(lambda x, i: 1 / x[i], errors=checkify.automatic_checks))
    >>> error, y = f(jnp.array([2., 0.]), 0)
    >>> error.get(), y
    (None, Array(0.5, dtype=float32))
    >>> f(jnp.array([2., 0.]), 1)[0].get()
    'division by zero'
    >>> f(jnp.array([2., 0.]), 5)[0].get()
    'out-of-bounds indexing for array of shape (2,): index 5 is out of bounds for axis 0 with size 2.'
    """
    check_callable(f)
    if not isinstance(errors, (set, frozenset)) or not all_checks.issuperset(errors):
        raise TypeError("checkify: errors must be a set such as checkify.user_checks | checkify.nan_checks, "
                        f"got {errors!r:.200}")
    reported = frozenset(errors)

    @filtered
    @wraps(f)
    def checked(*args, **kwargs):
        flat = _of_arrays(f, *flatten((args, kwargs)))
        traced = flat.kept(f, "checkify", flat.avals())
        program, known = functional(traced.closed, reported, reported)
        start = known.start() if known else []
        operands = [*start, *traced.consts, *flat.leaves]
        results = jit_bind(program, operands) if state.trace is EVAL else eval_jaxpr(program, (), *operands)
        error = Error(tuple(results[:len(start)]), known) if known else init_error
        return error, traced.out_tree.unflatten(results[len(start):])
    return checked


def _of_arrays(f, leaves, tree):
    """A FlatFunction of the leaves that are arrays; the others `f` gets as they are."""
    fixed = tuple([None if is_arraylike(x) and type(x) not in dtypes.python_scalars else (x,)
                   for x in leaves])
    if not any(fixed):
        return FlatFunction(f, leaves, tree, "checkify")

    @wraps(f)
    def call(known, *arrays):
        rest = iter(arrays)
        args, kwargs = tree.unflatten([next(rest) if x is None else x[0] for x in known[1]])
        return f(*args, **kwargs)
    arrays = tuple([x for x, known in zip(leaves, fixed) if known is None])
    return FlatFunction(call, *flatten((arrays, {})), "checkify", statics=((0, (tree, fixed)),))


export_names(globals())
