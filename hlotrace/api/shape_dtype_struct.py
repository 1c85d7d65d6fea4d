"""ShapeDtypeStruct, the type of an array without its data; eval_shape, which gives those of results."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

from ..core import dtypes
from ..core.avals import ShapedArray
from ..core.config import state
from ..core.errors import check_callable
from ..core.refs import AbstractRef
from ..core.surface.boundary import boundaries
from ..placement.jit_placement import Placement
from ..primitives.common import canonical_shape, np
from ..runtime import evaluate
from . import adapters, refs
from .flat import FlatFunction, StatefulFunction, TracedProgram, abstract


@boundaries
class ShapeDtypeStruct:
    """The type of an array without its data: an argument of `lower`, `eval_shape` and their like.

    Args:
        shape: a sequence of ints.
        sharding: a Sharding, a Format, a Device, or a PartitionSpec of the current mesh.
        weak_type: does the dtype give way to others?
        vma: names of manual axes of a `shard_map` along which it differs between devices.
        manual_axis_type: the same, as a ManualAxisType.
        is_ref: it is the type of a Ref.
    Raises:
        ValueError: without a dtype, and for a sharding of more dimensions.
        TypeError: for a shape that is no sequence.

    >>> spec = jax.ShapeDtypeStruct((2, 3), "bfloat16")
    >>> jax.eval_shape(jnp.sum, spec), jax.jit(jnp.sum).lower(spec).out_info
    (ShapeDtypeStruct(shape=(), dtype=bfloat16), ShapeDtypeStruct(shape=(), dtype=bfloat16))
    """
    __slots__ = ("shape", "dtype", "sharding", "weak_type", "vma", "placed", "layout", "_complete")
    is_ref = False

    def __new__(cls, *args: Any, is_ref: bool = False, **kwargs: Any) -> ShapeDtypeStruct:
        return object.__new__(_RefStruct if is_ref else cls)

    def __init__(self, shape: Any, dtype: Any, *, sharding: Any = None, weak_type: bool = False,
                 vma: Any = None, manual_axis_type: Any = None, is_ref: bool = False) -> None:
        vma = manual_axis_type.varying if manual_axis_type is not None else vma
        if dtype is None:
            raise ValueError(f"ShapeDtypeStruct: dtype must be specified, got None beside shape {shape}: "
                             "give one such as jnp.float32")
        if isinstance(shape, str) or not hasattr(shape, "__iter__"):
            raise TypeError(f"ShapeDtypeStruct: shape must be a sequence of ints, got {shape!r:.60}: write "
                            "jax.ShapeDtypeStruct((3,), jnp.float32)")
        # SCICO has shapes within one, of arrays in blocks, Qwix its own symbols: not the type of an array
        shape = tuple(shape)
        of_no_array = any(isinstance(size, str) or not hasattr(size, "__index__") and size is not None
                          and not isinstance(size, Number) for size in shape)
        self.shape = shape if of_no_array else canonical_shape(shape, "ShapeDtypeStruct: shape",
                                                               undecided=True)
        # of 64 bits where it says so, as host arrays are; programs take what arrays have
        self.dtype = np.dtype(dtype) if dtype in (int, float, complex) else dtypes.as_dtype(dtype)
        given = sharding
        if sharding is not None:
            # programs that name no sharding need none of those modules
            from ..placement.shardings import as_sharding
            sharding = as_sharding(sharding, "ShapeDtypeStruct: sharding", laid_out=True, error=ValueError,
                                   no_mesh=TypeError)
            if hasattr(sharding, "check_rank"):
                sharding.check_rank(len(self.shape))
        # in the layout of a Format
        self.placed = sharding
        self.layout = getattr(given, "layout", getattr(sharding, "_layout", None))      # of a Format
        if sharding is not None and sharding._layout is not None:
            if getattr(self.layout, "text", None) == "auto":
                raise TypeError("`Layout.AUTO` cannot be used in place of a device-local layout in a "
                                f"`ShapeDtypeStruct`. Got {given}")
            sharding = sharding.in_layout(None) if sharding else None
        self.sharding = sharding
        self.weak_type = weak_type
        self.vma = frozenset(vma or ())
        # or an error: too many elements, or a dtype that arrays do not have
        aval = None if of_no_array else abstract(self)
        if aval is not None and sharding is not self.placed and sharding is not None:
            from ..runtime.devices import layouts  # few are in a layout of their own
            self.placed = layouts.settled(self.placed, aval, "ShapeDtypeStruct: sharding")
        self._complete = True

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, "_complete"):
            raise RuntimeError(f"Cannot reassign attributes ({name}) of immutable ShapeDtypeStruct objects: "
                               f"update({name}=...) makes another one")
        object.__setattr__(self, name, value)

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The type of an array, a NumPy array or a Python number; with its sharding if it is committed.

        Raises:
            TypeError: for something else.
        """
        return struct_of(abstract(x), evaluate.committed_sharding(x))

    @property
    def format(self) -> Any:
        """The Format: the layout, None where it is open, and the sharding."""
        from ..sharding.layout import Format  # few ask
        return Format(self.layout, self.sharding)

    @property
    def manual_axis_type(self) -> Any:
        """The ManualAxisType of a value that differs along manual axes, otherwise None."""
        from ..sharding.spec import ManualAxisType  # few ask
        return ManualAxisType(varying=self.vma) if self.vma else None

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: abstract(self).size)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with some attributes changed."""
        fields = {name: getattr(self, name) for name in ShapeDtypeStruct.__slots__[:5]}
        if self.layout is not None:
            fields["sharding"] = self.format
        fields.update({"is_ref": self.is_ref, **changes})
        return ShapeDtypeStruct(fields.pop("shape"), fields.pop("dtype"), **fields)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        vma = f", vma={sorted(self.vma)}" if self.vma else ""
        sharding = f", sharding={self.sharding}" if self.sharding is not None else ""
        sharding += f", format={self.layout}" if self.layout is not None else ""
        ref = ", is_ref=True" * self.is_ref
        more = f"{sharding}{weak}{vma}{ref}"
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{more})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self.is_ref == other.is_ref and all(
            getattr(self, name) == getattr(other, name) for name in ShapeDtypeStruct.__slots__)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))


class _RefStruct(ShapeDtypeStruct):
    """The type of a Ref: among arguments, its adapter is that of Refs."""
    __slots__ = ()
    is_ref = True
    kind = None

    def of_value(self) -> ShapeDtypeStruct:
        """The type of the array in it."""
        return self.update(is_ref=False)

    @property
    def aval(self) -> AbstractRef:
        """The AbstractRef."""
        return AbstractRef(abstract(self))


_RefStruct.__name__ = _RefStruct.__qualname__ = "ShapeDtypeStruct"
refs.stands_for_a_ref(_RefStruct)


def struct_of(aval: Any, sharding: Any = None) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type,
                            sharding=sharding or aval.explicit, vma=aval.vma)


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The structure, shapes and dtypes of `fun(*args, **kwargs)`, as ShapeDtypeStructs, without computing it.

    What is passed may be ShapeDtypeStructs, or anything with a shape and a dtype: no memory is needed for it.

    >>> x = jax.ShapeDtypeStruct((10**6, 10**6), "bfloat16")
    >>> jax.eval_shape(lambda x: (jnp.sum(x**2), x[:5]), x)
    (ShapeDtypeStruct(shape=(), dtype=bfloat16), ShapeDtypeStruct(shape=(5, 1000000), dtype=bfloat16))
    """
    check_callable(fun, "and its arguments behind it")
    placement = getattr(fun, "_placement", None)
    if type(placement) is Placement and placement.outs is not None:
        return fun.eval_shape(*args, **kwargs)      # type: ignore[attr-defined]
    leaves, structure, taken = adapters.flatten_by_value((args, kwargs))
    flat = (StatefulFunction if taken else FlatFunction)(fun, leaves, structure, "eval_shape")
    adapters.refuse_twice(flat, taken)
    with adapters.lending(taken):
        # found again by jit(fun)
        traced = flat.kept(fun, "jit", flat.avals(abstract), arg_names=flat.paths())
    return structs(traced)


def structs(traced: TracedProgram, shardings: Sequence[Any] | None = None) -> Any:
    """The types of what a traced function returned, in its structure; with `shardings` where known."""
    avals = traced.closed.out_avals[:traced.result_tree.num_leaves]
    structs = [struct_of(a, s or _whole(a)) for a, s in zip(avals, shardings or [None] * len(avals))]
    return adapters.raised(traced.result_tree.unflatten(structs), of_types=True)


def _whole(aval: ShapedArray) -> Any:
    """The sharding of what no Explicit axis splits, where there are no others in the mesh in use."""
    if aval.explicit is not None or not state.meshes:
        return None
    found = aval.sharding
    return found if found.mesh.axis_names and found.mesh.explicit_axes == found.mesh.axis_names else None
