"""Functions mapped over axes: `vectorize` over leading ones, `apply_along_axis` over all others."""
import re

from ..api.signatures import wraps
from ..api.vmap import vmap
from ..core.surface.boundary import filtered
from ..primitives.arrays.shape import reshape
from ..primitives.arrays.slicing import as_array
from ..primitives.common import canonical_axis
from .arrays.creation import asarray
from .arrays.shaping import expand_dims
from .util import check_arraylike, check_ranks, joint_shape, ndim, shape

__all__ = ["apply_along_axis", "apply_over_axes", "vectorize"]

_ARGUMENT = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = re.compile(rf"^{_ARGUMENT}(?:,{_ARGUMENT})*->{_ARGUMENT}(?:,{_ARGUMENT})*$")


def parse_signature(signature):
    """(the names of the core axes of each argument, those of each result)."""
    compact = "".join(signature.split())
    if not _SIGNATURE.match(compact):
        raise ValueError(f"not a valid gufunc signature: {signature!r}; it looks like '(n,k),(k)->(n)'")
    return tuple([tuple(filter(None, group[1:-1].split(","))) for group in re.findall(_ARGUMENT, side)]
                 for side in compact.split("->"))


def vectorize(pyfunc, *, excluded=frozenset(), signature=None):
    """Make a function of scalars, or of arrays with core axes, one that broadcasts over leading axes.

    All axes in front of the core axes are mapped with `vmap`; NumPy calls `pyfunc` once for each element.

    Args:
        excluded: positions and names of arguments that are passed as they are.
        signature: core axes, such as "(n,k),(k)->(n)"; None means that all arguments and results are scalars.
    Raises:
        ValueError: where core sizes disagree.
        TypeError: for a wrong number of arguments.

    >>> clamp = jnp.vectorize(lambda x, low: jnp.where(x < low, low, x))
    >>> clamp(jnp.array([1, 5]), jnp.array([[0], [3]]))
    Array([[1, 5],
           [3, 5]], dtype=int32)
    >>> norm = jnp.linalg.norm
    >>> cosine = jnp.vectorize(lambda a, b: a @ b / norm(a) / norm(b), signature="(n),(n)->()")
    >>> cosine(jnp.array([[1., 0.], [3., 4.]]), jnp.array([0., 2.]))
    Array([0. , 0.8], dtype=float32)
    """
    if any(not isinstance(e, (str, int)) for e in excluded):
        raise TypeError("vectorize can only exclude integer or string arguments, but "
                        f"excluded={set(excluded)}")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"excluded={set(excluded)!r} contains negative numbers")
    parsed = None if signature is None else parse_signature(signature)

    @filtered
    @wraps(pyfunc)
    def wrapped(*args, **kwargs):
        where = f"on vectorized function with excluded={set(excluded) or '{}'} and signature={signature!r}"
        mapped = [i for i, a in enumerate(args) if i not in excluded and a is not None]
        check_arraylike("vectorize", *[args[i] for i in mapped])
        operands = [as_array(args[i]) for i in mapped]
        core, results = parsed or ([()] * len(mapped), None)
        loops, sizes = bind_operands(operands, core, where)

        def inner(*values):
            full = list(args)
            for i, value in zip(mapped, values):
                full[i] = value
            found = pyfunc(*full, **kwargs)
            check_results(found, results, sizes, where)
            return found
        check_ranks(loops)
        return _map_levels(inner, operands, loops, joint_shape(*loops))
    return wrapped


def bind_operands(operands, core, where):
    """(the leading axes of each operand, the sizes of core axes by name)."""
    if len(core) != len(operands):
        raise TypeError(f"wrong number of positional arguments: expected {len(core)}, got {len(operands)} "
                        f"{where}")
    loops, sizes = [], {}
    for x, names in zip(operands, core):
        if ndim(x) < len(names):
            raise ValueError(f"input with shape {shape(x)} does not have enough dimensions for all core "
                             f"dimensions {names} {where}")
        loops.append(shape(x)[:ndim(x) - len(names)])
        _bind_sizes(sizes, names, shape(x)[ndim(x) - len(names):], where)
    return loops, sizes


def _bind_sizes(sizes, names, dims, where):
    for name, size in zip(names, dims):
        if sizes.setdefault(name, size) != size:
            raise ValueError(f"inconsistent size for core dimension {name!r}: {size} vs {sizes[name]} "
                             f"{where}; axes of one name must be equal")


def check_results(found, results, sizes, where):
    """ValueError or TypeError unless results have the core axes that they should; `results` may be None."""
    if results is None:
        results = [()] * (len(found) if isinstance(found, tuple) else 1)
    values = found if isinstance(found, tuple) else (found,)
    if len(values) != len(results):
        raise TypeError(f"wrong number of output arguments: expected {len(results)}, got {len(values)} "
                        f"{where}")
    sizes = dict(sizes)
    for value, names in zip(values, results):
        if ndim(value) != len(names):
            raise ValueError(f"output shape {shape(value)} does not match core dimensions {names} {where}")
        _bind_sizes(sizes, names, shape(value), where)


def _map_levels(fun, operands, loops, target):
    """`fun` mapped over the axes of `target`, outermost first; an axis of size 1 is repeated uncopied."""
    levels = []
    for d, size in enumerate(target):
        offsets = [d - len(target) + len(loop) for loop in loops]
        levels.append(tuple(0 if o >= 0 and loop[o] == size else None for o, loop in zip(offsets, loops)))
    squeezed = []
    for i, (x, loop) in enumerate(zip(operands, loops)):
        kept = [loop[d - len(target)] for d, axes in enumerate(levels) if axes[i] == 0]
        squeezed.append(x if len(kept) == len(loop) else reshape(x, (*kept, *shape(x)[len(loop):])))
    for axes in reversed(levels):
        fun = vmap(fun, in_axes=axes)
    return fun(*squeezed)


# --- mapping over axes ----------------------------------------------------------------------------

def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """`func1d` of each vector along `axis`; its result takes the place of that axis.

    Args:
        func1d: a function of a vector, which is traced once.

    >>> jnp.apply_along_axis(lambda v, by: v[::-1] * by, 1, jnp.array([[1, 2], [3, 4]]), 10)
    Array([[20, 10],
           [40, 30]], dtype=int32)
    """
    check_arraylike("apply_along_axis", arr)
    arr = asarray(arr)
    axis = canonical_axis(axis, arr.ndim)

    def mapped(vector):
        return func1d(vector, *args, **kwargs)
    for _ in range(axis + 1, arr.ndim):
        mapped = vmap(mapped, in_axes=1, out_axes=-1)
    for _ in range(axis):
        mapped = vmap(mapped)
    return mapped(arr)


def apply_over_axes(func, a, axes):
    """`func(a, axis)` for one axis after another; axes that it removes are put back with size 1.

    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3, 4)), (0, 2)).shape
    (1, 3, 1)
    """
    a = asarray(a)
    for axis in axes:
        result = func(a, axis)
        if result.ndim == a.ndim - 1:
            result = expand_dims(result, canonical_axis(axis, a.ndim))
        if result.ndim != a.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        a = result
    return a
