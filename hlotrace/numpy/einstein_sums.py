"""einsum: sums of products of any number of operands, whose axes are named by letters."""
import functools

from ..api.composite import composite
from ..core import dtypes
from ..core.avals import aval_of
from ..core.symbolic.dimension import is_symbolic_dim
from ..placement.out_sharding import over_auto_axes, unreduced_axes, with_out_sharding
from ..primitives.arrays.contract import contract, dot_general_p, natural_labels, reduce_axes, unreduced_dot
from ..primitives.arrays.elementwise import convert
from ..primitives.arrays.precision import canonical_precision
from ..primitives.arrays.shape import transpose
from ..primitives.common import np
from .contraction import LETTERS, drop_singletons, merged_diagonal
from .util import check_arraylike, no_out, promote_dtypes, result_type, shape as shape_of

__all__ = ["einsum", "einsum_path"]


def _interleaved(args):
    """(subscripts, operands) of einsum(x, [0, 1], y, [1, 2], [0, 2])."""
    lists = [*args[1::2], *([args[-1]] if len(args) % 2 else [])]
    try:
        labels = sorted({c for sub in lists for c in sub if c is not Ellipsis})
    except TypeError:
        raise TypeError("einsum: the first argument must be a string of subscripts, as in "
                        "einsum('ij,jk->ik', a, b); or each operand is followed by a list of ints and "
                        "Ellipsis") from None
    names = {Ellipsis: "...", **{c: chr(ord("a") + i if i < 26 else ord("A") - 26 + i)
                                 for i, c in enumerate(labels)}}
    texts = ["".join(names[c] for c in sub) for sub in lists]
    count = len(args) // 2
    return ",".join(texts[:count]) + ("->" + texts[count] if len(args) % 2 else ""), args[:2 * count:2]


@functools.lru_cache(maxsize=1024)
def _parse(subscripts, shapes):
    """Letters of each operand and of the result, every ellipsis spelled out.  ValueError if ill-formed."""
    text = subscripts.replace(" ", "")
    inputs_text, arrow, out = text.partition("->")
    inputs = inputs_text.split(",")
    if set("->") & {*inputs_text, *out}:
        raise ValueError("einsum subscripts have one arrow '->', between the operands and the result, got "
                         f"{subscripts!r}")
    if len(inputs) != len(shapes):
        raise ValueError(f"Number of einsum subscripts, {len(inputs)}, must be equal to the number of "
                         f"operands, {len(shapes)}: commas in {inputs_text!r} separate those of each "
                         "operand.")
    for term in (*inputs, out):
        if "." in term.replace("...", "", 1):
            raise ValueError(f"Invalid Ellipses: '{term}' in einsum('{subscripts}') may hold '...' once.")
    ranks = [len(s) - len(t.replace("...", "")) for t, s in zip(inputs, shapes)]
    for i, (term, rank) in enumerate(zip(inputs, ranks)):
        if rank < 0 or rank and "..." not in term:
            raise ValueError(f"Einstein sum subscript '{term}' does not contain the correct number of "
                             f"indices for operand {i} of shape {shapes[i]}: write one letter for each "
                             "axis, or ... for those in front")
    longest = max((r for r, t in zip(ranks, inputs) if "..." in t), default=0)
    ellipsis = "".join(chr(0x3b1 + i) for i in range(longest))
    inputs = tuple(t.replace("...", ellipsis[longest - r:]) for t, r in zip(inputs, ranks))
    used = "".join(inputs)
    if arrow:
        out = out.replace("...", ellipsis)
    else:
        out = ellipsis + "".join(c for c in sorted(set(used) - set(ellipsis)) if used.count(c) == 1)
    for c in out:
        if c not in used:
            raise ValueError(f"Output character {c!r} did not appear in the input of einsum('{subscripts}'): "
                             f"a result has axes of its operands, {', '.join(sorted(map(repr, set(used))))}")
        if out.count(c) > 1:
            raise ValueError(f"Output character {c!r} appeared more than once in the output of "
                             f"einsum('{subscripts}'); name each axis of the result once. jnp.diag puts a "
                             "vector on a diagonal.")
    _check_sizes(subscripts, inputs, shapes)
    return inputs, out


def _check_sizes(subscripts, inputs, shapes):
    """ValueError where a letter is for axes of different sizes; size 1 goes with any."""
    sizes = {}
    for i, (term, shape) in enumerate(zip(inputs, shapes)):
        for c, n in zip(term, shape):
            if sizes.setdefault(c, n) in (1, n):
                sizes[c] = n
            elif n != 1:
                raise ValueError(f"Size of label {c!r} for operand {i} ({n}) does not match previous terms "
                                 f"({sizes[c]}). einsum('{subscripts}') got operands of shapes "
                                 f"{', '.join(map(str, shapes))}.")


@functools.lru_cache(maxsize=1024)
def _path(inputs, out, shapes, optimize):
    """The order of contraction: tuples of positions; results go to the end of the list."""
    count = len(inputs)
    if isinstance(optimize, tuple):
        return tuple(p for p in optimize if p != "einsum_path")
    if optimize not in ("auto", "greedy", "optimal", True, False, None):
        raise NotImplementedError(f"einsum: optimize={optimize!r} is not supported: 'auto', 'optimal', "
                                  "'greedy', a path, True and False are")
    names = dict(zip(dict.fromkeys("".join(inputs)), LETTERS))
    if count <= 2 or not optimize or len(names) < len(set("".join(inputs))):
        return (tuple(range(count)),)
    if any(is_symbolic_dim(n) for shape in shapes for n in shape):
        return ((0, 1),) * (count - 1)
    text = ",".join("".join(names[c] for c in t) for t in inputs) + "->" + "".join(names[c] for c in out)
    if optimize in ("auto", True):
        kind = "optimal" if count <= 4 else "greedy"
    else:
        kind = optimize
    return tuple(np.einsum_path(text, *map(_hollow, shapes), optimize=kind)[0][1:])


def _hollow(shape):
    """A NumPy array of this shape that takes no memory."""
    return np.broadcast_to(np.zeros(()), shape)


def _distinct(x, labels):
    """`x` with diagonals taken until no letter appears twice."""
    for j, c in enumerate(labels):
        i = labels.index(c)
        if i != j:
            return _distinct(merged_diagonal(x, i, j), labels[:i] + labels[i + 1:j] + labels[j + 1:] + c)
    return x, labels


@composite(static=("inputs", "out", "path", "precision", "preferred"))
def _einsum(operands, inputs, out, path, precision, preferred, dot=None):
    operands = promote_dtypes(*operands)
    sizes = {}
    for x, labels in zip(operands, inputs):
        sizes.update((c, n) for c, n in zip(labels, shape_of(x)) if n != 1 or c not in sizes)
    terms = [drop_singletons(*_distinct(x, labels), sizes) for x, labels in zip(operands, inputs)]
    for positions in path:
        chosen = [terms.pop(i) for i in sorted(positions, reverse=True)][::-1]
        while len(chosen) > 1:
            (x, x_labels), (y, y_labels), *chosen = chosen
            others = [labels for _, labels in (*chosen, *terms)]
            needed = "".join(dict.fromkeys(out + "".join(others)))
            kept = natural_labels(x_labels, y_labels, needed) if others else out
            if dot is not None and natural_labels(x_labels, y_labels, needed) != kept:
                # a function of the user's may not take both alike: JAX makes these the first and the second
                x, x_labels, y, y_labels = y, y_labels, x, x_labels
            product = contract(x, x_labels, y, y_labels, kept, precision, preferred or aval_of(x).dtype, dot)
            chosen.insert(0, (product, kept))
        terms += chosen
    (x, labels), = terms
    x = reduce_axes(x, tuple(i for i, c in enumerate(labels) if c not in out))
    labels = "".join(c for c in labels if c in out)
    x = transpose(x, [labels.index(c) for c in out])
    return x if preferred is None else convert(x, preferred)


def _arguments(name, subscripts, operands):
    if not isinstance(subscripts, str):
        subscripts, operands = _interleaved((subscripts, *operands))
    check_arraylike(name, *operands)
    return subscripts, operands, tuple(map(shape_of, operands))


def einsum(subscripts, /, *operands, out=None, optimize="auto", precision=None, preferred_element_type=None,
           out_sharding=None, _dot_general=None):
    """Einstein summation: einsum('bij,bjk->bik', x, y), or einsum(x, [0, 1], y, [1, 2]).

    Without '->' the result has the ellipsis axes and then, sorted, the letters that appear once.  A letter
    twice in one operand takes its diagonal; axes of size 1 broadcast.

    Args:
        subscripts: a letter for each axis.
        out: not supported; None.
        optimize: 'auto', a name that np.einsum_path knows, a path, or False (left to right).
        precision: what `lax.dot_general` takes.
        preferred_element_type: the dtype to add up in and to give; else the promoted one.
        _dot_general: does the products of two operands, called as `lax.dot_general` is.

    >>> a, b = jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1])
    >>> jnp.einsum("ij,j->i", a, b)
    Array([12, 34], dtype=int32)
    >>> jnp.einsum("ii", a)
    Array(5, dtype=int32)
    >>> jnp.einsum("ij->ji", a)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    >>> jnp.einsum("i,i,ij", b, b, a)
    Array([103, 204], dtype=int32)
    >>> jnp.einsum("...ij,...jk", jnp.ones((7, 2, 3)), jnp.ones((3, 4))).shape
    (7, 2, 4)
    """
    no_out("einsum", out)
    subscripts, operands, shapes = _arguments("einsum", subscripts, operands)
    inputs, out = _parse(subscripts, shapes)
    path = _path(inputs, out, shapes, tuple(optimize) if isinstance(optimize, list) else optimize)
    if preferred_element_type is not None:
        preferred_element_type = dtypes.check_user_dtype(preferred_element_type, "einsum")
    unreduced = unreduced_axes(out_sharding, "jnp.einsum", *operands)
    if unreduced:
        if _dot_general is not None:
            raise NotImplementedError(f"einsum: out_sharding={out_sharding} is unreduced, and that is "
                                      "without _dot_general")
        _dot_general = functools.partial(unreduced_dot if len(operands) < 3 else _dot_on_a_path, unreduced)
        preferred_element_type = preferred_element_type or result_type(*operands)
    elif out_sharding is not None:
        operands = over_auto_axes(*operands)
    # what the user's function does is not cached: it may close over anything
    if _dot_general is not None:
        if not callable(_dot_general):
            raise TypeError("einsum: _dot_general is a function that is called as lax.dot_general is, got "
                            f"{_dot_general!r}")
        if preferred_element_type is None:      # what it computes in may be narrower
            preferred_element_type = result_type(*operands)
        result = _einsum.__wrapped__(operands, inputs, out, path, precision, preferred_element_type,
                                     _dot_general)
    else:
        result = _einsum(tuple(operands), inputs, out, path, canonical_precision(precision),
                         preferred_element_type)
    return with_out_sharding(result, out_sharding, "jnp.einsum")


def _dot_on_a_path(unreduced, x, y, dimension_numbers, precision=None, preferred_element_type=None):
    """One product of several: unreduced over those of the mesh axes that split what it contracts."""
    axes = [{name for dim in dims for name in aval_of(v).splits[dim]}
            for v, dims in zip((x, y), dimension_numbers[0])]
    here = unreduced & axes[0] & axes[1]
    if here:
        return unreduced_dot(here, x, y, dimension_numbers, precision, preferred_element_type)
    return dot_general_p.bind(x, y, dimension_numbers=dimension_numbers, precision=precision,
                              preferred_element_type=preferred_element_type)


def einsum_path(subscripts, /, *operands, optimize="auto"):
    """(path, description) of the order in which einsum would contract; the path can be given as `optimize`.

    >>> x, y = jnp.ones((10, 1000)), jnp.ones((1000, 2))
    >>> jnp.einsum_path("ij,jk,kl", x, y, jnp.ones((2, 3)))[0]
    [(0, 1), (0, 1)]
    """
    subscripts, operands, shapes = _arguments("einsum_path", subscripts, operands)
    kind = "optimal" if optimize == "auto" else optimize
    path, info = np.einsum_path(subscripts, *map(_hollow, shapes), optimize=kind)
    return path[1:], info
