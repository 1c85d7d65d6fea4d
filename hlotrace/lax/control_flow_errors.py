"""Errors of loops and branches: functions that do not fit, carries and branches of other types."""
import operator

from ..api.signatures import name_of, signature_of
from ..core import dtypes, errors
from ..core.avals import aval_of, is_arraylike
from ..core.debug_info import code_of, located
from ..core.pytrees import pytree
from ..core.symbolic.dimension import as_size

_CALLED_WITH = {"lax.scan": ("carry", "x"), "lax.map": ("x",), "lax.fori_loop": ("i", "val"),
                "lax.while_loop": ("val",)}
_TAKES = {
    "lax.scan": "Give the function two parameters, and return a pair (carry, y)",
    "lax.map": "It gets one slice of xs; where xs is a tuple, take it apart inside: lambda ab: ab[0] + ab[1]",
    "lax.fori_loop": "Give the function two parameters, the index and the value: lambda i, val: ...",
    "lax.while_loop": "Give both functions one parameter; several values are one tuple: lambda val: val[0] < "
    "3",
}
_TAKE_OPERANDS = "Give each branch one parameter for each operand that follows the branches"


def check_parameters(flat, fun, error):
    """A TypeError for a user's `fun` that cannot take its arguments; `error` is what a call raised."""
    given = _CALLED_WITH.get(flat.what) or [f"operand{i}" for i in range(len(flat.arg_tree.children()))]
    try:
        (signature_of(fun) or signature_of(lambda *_: 0)).bind(*given)
    except TypeError:
        function, n = name_of(fun), len(given)
        raise TypeError(f"{flat.what} calls {function} with {n} argument{'s' * (n != 1)}, as "
                        f"{function}({', '.join(given)}): {str(error).rpartition('<locals>.')[2]}. "
                        f"{_TAKES.get(flat.what, _TAKE_OPERANDS)}") from None


def shown(x):
    """Something that a function was expected in the place of."""
    if is_arraylike(x):
        return repr(x) if type(x) in (int, float, bool, complex) else aval_of(x).str_short()
    return f"the function {name_of(x)}" if callable(x) else f"{x!r:.60}"


def no_return(out_tree):
    return " (does it lack a `return`?)" if out_tree == pytree.tree_structure(None) else ""


def check_carry(what, fun, init, in_tree, in_avals, traced, out_tree):
    """TypeError unless a body gives back a carry of the type it got; `init` is the name of where it starts.

    The carry of the user's function `fun` is the last part of what a wrapper carries.
    """
    out_avals = traced.closed.out_avals
    pairs = zip(in_avals, out_avals)
    if in_tree == out_tree and not any(_different(i, o) for i, o in pairs):
        return
    skip = 0
    if what == "lax.fori_loop":
        in_tree, out_tree = in_tree.children()[-1], out_tree.children()[-1]
        skip = len(in_avals) - in_tree.num_leaves
    where = pytree.arg_names(fun, 2 if what == "lax.fori_loop" else 1)[0][-1]
    loop = "while_loop" if what == "lax.while_loop" else "scan"
    head = f"{what} of {name_of(fun)}: {loop} body function carry input and carry output must have"
    if in_tree != out_tree:
        if out_tree == pytree.tree_structure(None):
            advice = f"Does {name_of(fun)} lack a `return`?"
        elif what == "lax.fori_loop" and pytree.described(out_tree) == "a tuple of length 2":
            advice = ("lax.fori_loop's function returns the new value alone; it is lax.scan's that returns a "
                      "pair (carry, y).")
        else:
            advice = f"Return a carry of the structure that {init} has."
        lines = pytree.structure_differences(
            f"he input carry {where}{{path}} is {{a}} but the corresponding component of the carry output is "
            "{b}, so {why}.", in_tree, out_tree)
        raise TypeError(f"{head} the same pytree structure, but they differ:\n\n{_several(lines)}\n\n"
                        f"{advice}")
    wrong, grows = [], False
    for path, i, o in zip(pytree.leaf_paths(in_tree), in_avals[skip:], out_avals[skip:]):
        if i.shape != o.shape:
            spread = (i.dtype == o.dtype and not dtypes.is_extended(i.dtype) and i.size < o.size
                      and errors.fits(i.shape, o.shape))
            grows = grows or not spread
            start = f": start with {init}{path} of shape {o.shape}, if each step gives it"
            advice = "the shapes do not match" + start * spread
        elif i.dtype != o.dtype:
            advice = (f"the dtypes do not match: cast the output with .astype({i.dtype.name}), or start with "
                      f"{init}{path} of dtype {o.dtype.name}")
        elif i.explicit != o.explicit:
            advice = f"the shardings do not match: start with jax.reshard({init}{path}, {o.sharding.spec})"
        elif i.memory is not o.memory:
            advice = ("the memory spaces do not match: move the output with jax.device_put(x, "
                      f"jax.memory.Space.{i.memory_space.name})")
        else:
            continue
        wrong.append(f"he input carry{' component' * bool(path)} {where}{path} has type {i.str_short()} but "
                     f"the corresponding output carry component has type {o.str_short()}, so {advice}")
    advice = ("\nA carry keeps its shape: write what grows into an array of its final size with "
              ".at[i].set(...)" + (", or return it as y." if what == "lax.scan" else ".")) * grows
    raise TypeError(f"{head} equal types, but they differ:\n\n{_several(wrong)}{advice}")


def _several(lines):
    """One sentence, or a list of the first; each lacks its first letter, a t."""
    if len(lines) == 1:
        return f"T{lines[0]}"
    return "\n".join([f"  * t{line}" for line in lines[:3]] + [f"  and {len(lines) - 3} more"] * (len(lines) > 3))


def _different(a, b):
    """In what two types differ, as errors call it, or None."""
    pairs = {"shapes": (a.shape, b.shape), "dtypes": (a.dtype, b.dtype),
             "shardings": (a.explicit, b.explicit), "memory spaces": (a.memory, b.memory)}
    return next((word for word, (one, other) in pairs.items() if one != other), None)


def check_predicate(condition, cond_fun):
    if condition.out_tree != pytree.tree_structure(0):
        raise TypeError(f"lax.while_loop: cond_fun must return a boolean scalar, but got pytree "
                        f"{condition.out_tree}. Return one comparison from {name_of(cond_fun)}, such as "
                        f"val[0] < 3{no_return(condition.out_tree)}")
    aval = condition.closed.out_avals[0]
    if aval.shape or not dtypes.is_bool(aval.dtype):
        raise TypeError("lax.while_loop: cond_fun must return a boolean scalar, but got output type(s) "
                        f"[{aval!r}]. In {name_of(cond_fun)} compare the value (x > 0), or reduce it with "
                        ".any() or .all()")


def check_branches(what, traced, names, branches):
    """Check that all branches of `what`, as "cond", give one structure and equal types.  TypeError otherwise.
    """
    first = traced[0]
    for t, name, fun in zip(traced[1:], names[1:], branches[1:]):
        same = t.out_tree == first.out_tree
        if same and not any(map(_different, first.closed.out_avals, t.closed.out_avals)):
            continue
        both = [n if name_of(f) == "<lambda>" else f"{n} ({name_of(f)})"
                for n, f in ((names[0], branches[0]), (name, fun))]
        which = "\n".join(f"{n} is {located(name_of(f), code_of(f)[0])}"
                          for n, f in ((names[0], branches[0]), (name, fun)))
        if not same:
            lacks = [label for label, x in zip(both, (first, t)) if x.out_tree == pytree.tree_structure(None)]
            lines = pytree.structure_differences(
                f"{names[0]} output{{path}} is {{a}} but {name} output{{path}} is {{b}}, so {{why}}.",
                first.out_tree, t.out_tree)
            advice = "Return the same structure from both, with zeros where a branch has nothing to give."
            raise TypeError(f"{what} branch outputs must have the same pytree structure, but they differ:"
                            f"\n\n{which}\n\n" + "\n".join(lines[:3]) + "\n\n" +
                            (f"Does {lacks[0]} lack a `return`?" if lacks else advice))
        wrong = [f"The output of {both[0]}{f' at path {path}' if path else ''} has type {a.str_short()} but "
                 f"the corresponding output of {both[1]} has type {b.str_short()}, so the {_different(a, b)} "
                 "do not match."
                 for path, a, b in zip(pytree.leaf_paths(first.out_tree), first.closed.out_avals,
                                       t.closed.out_avals)
                 if _different(a, b)]
        raise TypeError(f"{what} branches must have equal output types but they differ.\n\n{which}\n\n" +
                        "\n".join(wrong[:3] + [f"  and {len(wrong) - 3} more"] * (len(wrong) > 3)) +
                        "\nCast the outputs of one branch with .astype(...), or reshape, broadcast or "
                        "reshard them.")


def scan_length(what, x_avals, xs, length):
    sizes = {a.shape[0] for a in x_avals if a.ndim}
    paths = [f"xs{path}" for path in pytree.leaf_paths(xs)] if len(sizes) != 1 or length is not None or any(
        not a.ndim for a in x_avals) else []
    for path, x, a in zip(paths, pytree.tree_leaves(xs), x_avals):
        if not a.ndim:
            n = x if type(x) is int else "n"
            times = f"; to repeat {n} times: lax.scan(f, init, length={n})" if what == "lax.scan" else ""
            raise ValueError(f"{what}: {what.removeprefix('lax.')} got value with no leading axis to scan "
                             f"over: {path} has shape (): give it one with jnp.arange({n}) or "
                             f"{path}[None]{times}")
    if length is not None:
        try:
            length = as_size(length)
        except TypeError as error:
            if isinstance(error, (errors.ConcretizationTypeError, errors.TracerIntegerConversionError)):
                raise errors.ConcretizationTypeError("The `length` argument to `scan` expects a concrete "
                                                     f"`int` value. {error}") from None
            raise TypeError(f"The `length` argument to `scan` expects an int, got {length!r} of type "
                            f"{type(length).__name__}: write length=int(...), or leave it out where xs has "
                            "a leading axis") from None
        if length < 0:
            raise ValueError(f"scan length must be non-negative, got {length}")
        if sizes - {length}:
            listed = ", ".join(f"{p}: {a.shape[0]}" for p, a in zip(paths, x_avals) if a.shape[0] != length)
            raise ValueError(f"scan got `length` argument of {length} which disagrees with leading axis "
                             f"sizes ({listed}): leave length out, or slice: xs[:{length}]")
        return length
    if len(sizes) > 1:
        listed = ", ".join(f"{p}: {a.shape[0]}" for p, a in zip(paths, x_avals))
        raise ValueError(f"{what}: {what.removeprefix('lax.')} got values with different leading axis sizes: "
                         f"{listed}: all must be equal; slice the longer one to {min(sizes)}, or let the "
                         "function close over what is the same in each step")
    if not sizes:
        raise ValueError(f"{what.removeprefix('lax.')} got no values to scan over and `length` not provided: "
                         "give xs, or length=n to repeat n times")
    return sizes.pop()


def check_steps(what, max_steps):
    """`max_steps` as an int, or None."""
    if max_steps is None:
        return None
    try:
        steps = operator.index(max_steps)
    except TypeError:
        raise TypeError(f"{what}: max_steps must be a Python int, got {shown(max_steps)}: room for what the "
                        "derivative needs is made when the program is traced") from None
    if not 0 <= steps < 2**31:
        raise ValueError(f"{what}: max_steps must be from 0 to 2**31 - 1, got {steps}")
    return steps
