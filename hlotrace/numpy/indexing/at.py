"""`x.at[idx].set(...)` and its kin: copies of an array with elements replaced, added to, multiplied."""
from ...core.surface.boundary import boundaries
from ...placement.out_sharding import over_auto_axes, with_out_sharding
from ...primitives.arrays.shape import full
from ..arrays.creation import asarray
from ..util import unsigned
from .indexing import apply, get, update


def _ones_like(x):
    return full(x.shape, 1, x.dtype)


def _method(operation, effect):
    def method(self, values, *, indices_are_sorted=False, unique_indices=False, mode=None, out_sharding=None,
               wrap_negative_indices=True):
        flags = dict(indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
                     wrap=wrap_negative_indices)
        x, index = self.array, self.index
        values = asarray(values) if isinstance(values, (list, tuple)) else unsigned(values, x.dtype)
        if out_sharding is not None:
            x, values = over_auto_axes(x, values)
        if operation == "subtract":
            result = update(x, index, -values, "add", **flags)
        elif operation == "divide":
            result = x / update(_ones_like(x), index, values, "multiply", **flags)
        elif operation == "power":
            result = x ** update(_ones_like(x), index, values, "multiply", **flags)
        else:
            result = update(x, index, values, operation, **flags)
        return with_out_sharding(result, out_sharding, f"x.at[].{operation}")
    method.__name__ = operation
    method.__doc__ = f"""A copy of the array in which the addressed elements are {effect}.

        What indices address out of bounds is dropped, as with mode="drop"; mode="clip" writes the nearest
        element instead; the option `jax_check_static_indices` makes an int out of bounds an IndexError unless
        there is a `mode`.  The dtype stays that of the array.  `unique_indices` and `indices_are_sorted` are
        promises that may make it faster.
        """
    return method


@boundaries(called="x.at[]", tell_self=True)
class _IndexUpdateRef:
    """`x.at[index]`: the methods give updated copies of the array, or read with options."""
    __slots__ = ("array", "index")

    def __init__(self, array, index):
        self.array = array
        self.index = index

    def __repr__(self):
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    set = _method("set", "replaced by `values`")
    add = _method("add", "increased by `values`; repeated indices add repeatedly")
    subtract = _method("subtract", "decreased by `values`; repeated indices subtract repeatedly")
    multiply = mul = _method("multiply", "multiplied by `values`; repeated indices multiply repeatedly")
    divide = _method("divide", "divided by `values`; integers become floats")
    power = _method("power", "raised to the power `values`")
    min = _method("min", "replaced by the lesser of themselves and `values`")
    max = _method("max", "replaced by the greater of themselves and `values`")

    def apply(self, func, *, indices_are_sorted=False, unique_indices=False, mode=None,
              wrap_negative_indices=True):
        """A copy in which the elementwise `func` is applied to the addressed elements."""
        return apply(self.array, self.index, func, indices_are_sorted=indices_are_sorted,
                     unique_indices=unique_indices, mode=mode, wrap=wrap_negative_indices)

    def get(self, *, indices_are_sorted=False, unique_indices=False, mode=None, fill_value=None,
            out_sharding=None, wrap_negative_indices=True):
        """`x[index]` with a choice for indices out of bounds.

        By default the nearest element is read, as for mode="clip"; the option `jax_check_static_indices`
        makes an int out of bounds an IndexError.

        Args:
            indices_are_sorted: a promise that may make it faster.
            unique_indices: a promise that may make it faster.
            mode: "clip", "fill" or "promise_in_bounds".
            fill_value: what mode="fill" reads out of bounds; nan, the least signed or greatest unsigned
                integer, or True by default.
            out_sharding: the sharding of the result.
            wrap_negative_indices: negative indices count from the end.
        """
        array, index = self.array, self.index
        if out_sharding is not None:
            array, *parts = over_auto_axes(array, *(index if type(index) is tuple else (index,)))
            index = tuple(parts) if type(index) is tuple else parts[0]
        result = get(array, index, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                     mode=mode, fill_value=fill_value, wrap=wrap_negative_indices)
        return with_out_sharding(result, out_sharding, "x.at[].get")


class _IndexUpdateHelper:
    """`x.at`; index it to name the elements to update."""
    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array

    __iter__ = None     # else Python would count up without an end

    def __getitem__(self, index):
        return _IndexUpdateRef(self.array, index)

    def __repr__(self):
        return f"_IndexUpdateHelper({self.array!r})"
