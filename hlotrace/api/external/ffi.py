"""ffi_call: calls of compiled kernels of the user's, from inside programs."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.avals import ShapedArray, aval_of, is_arraylike, not_an_array
from ...core.effects import ORDERED_TOKEN
from ...core.surface.boundary import filtered
from ...lowering.custom_calls import Attribute, attribute
from ...primitives.programs.ffi import VMAP_METHODS, ffi_call_p

abstract_token = ORDERED_TOKEN.aval


def _declared(spec: Any, i: int) -> Any:
    if spec is abstract_token:
        return spec
    if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
        raise ValueError("All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes. Got "
                         f"{spec!r:.60} at position {i}: give one such as jax.ShapeDtypeStruct((3,), "
                         "jnp.float32)")
    return ShapedArray(tuple(spec.shape), dtypes.as_dtype(spec.dtype))


def _orders(name: str, layouts: Any, avals: Sequence[ShapedArray]) -> tuple[Any, ...]:
    """For each value its axes minor first, from JAX's, which are major first, or None."""
    layouts = [None] * len(avals) if layouts is None else list(layouts)
    if len(layouts) != len(avals):
        what = "input arguments" if name == "input_layouts" else "results"
        raise ValueError(f"The number of {what} ({len(avals)}) must equal the number of "
                         f"{name[:-1].replace('_', ' ')}s ({len(layouts)}).")
    orders = []
    for i, (layout, aval) in enumerate(zip(layouts, avals)):
        layout = getattr(layout, "major_to_minor", layout)
        if layout is not None and sorted(layout) != list(range(aval.ndim)):
            raise ValueError(f"{name}[{i}] = {tuple(layout)} is not an order of the {aval.ndim} axes of "
                             f"{aval.str_short()}")
        orders.append(None if layout is None else tuple(int(axis) for axis in reversed(layout)))
    return tuple(orders)


def _aliases(given: Mapping[int, int], avals: Sequence[ShapedArray],
             out_avals: Sequence[ShapedArray]) -> tuple[tuple[int, int], ...]:
    for operand, result in given.items():
        for what, at, among in ("input", operand, avals), ("output", result, out_avals):
            if not 0 <= at < len(among):
                raise ValueError(f"input_output_aliases contains the mapping '{operand}:{result}' with "
                                 f"{what} index {at} outside the range [0, {len(among)}).")
        one, other = (a.str_short() for a in (avals[operand], out_avals[result]))
        if one != other:
            raise ValueError(f"input_output_aliases contains the mapping '{operand}:{result}' referring to "
                             f"an input of type {one} and an output of type {other}: they must be the same "
                             "to share memory")
    return tuple(given.items())


def _is_layout(layouts: Any) -> bool:
    """Is it one layout, where there may be a sequence of them?"""
    if hasattr(layouts, "major_to_minor"):
        return True
    return bool(layouts) and all(isinstance(a, (int, np.integer)) for a in layouts)


def ffi_call(target_name: str, result_shape_dtypes: Any, *, has_side_effect: bool = False,
             vmap_method: str | None = None, input_layouts: Any = None, output_layouts: Any = None,
             input_output_aliases: Mapping[int, int] | None = None, custom_call_api_version: int = 4,
             legacy_backend_config: str | None = None) -> Callable[..., Any]:
    """A function that calls the kernel registered as `target_name`: of arrays, and of attributes by keyword.

    Attributes are what the kernel declares: NumPy scalars and arrays of its types; Python's bool, int and
    float are `bool`, `int64_t` and `double`; strings, and mappings and sequences of such values.

    Args:
        result_shape_dtypes: an object with shape and dtype, or a list or tuple of them where there are
            several results, which then come as one; `ffi.abstract_token` for a token.
        has_side_effect: the kernel is called even where nothing uses its results.
        vmap_method: "sequential" (one call for each mapped element, in a loop), "sequential_unrolled"
            (without one), "expand_dims" (one call, all operands with a leading axis, which is of size 1 in
            those that are not mapped), "broadcast_all" (one call, a leading axis of full size),
            "legacy_vectorized" (one call, a leading axis in those that are mapped).  None: vmap raises
            NotImplementedError.
        input_layouts: for each array None (the last axis is that of neighbours in memory), or its axes, from
            the slowest to the fastest: (1, 0) is a matrix by columns; or a `Layout`.
        output_layouts: the same of the results.
        input_output_aliases: {operand: result} of those that are one buffer.
        custom_call_api_version: 4 for kernels of XLA's typed FFI.
        legacy_backend_config: a string for kernels of older versions, in place of attributes.
    Raises:
        ValueError: for layouts or aliases that do not fit, and under grad: the function that calls it needs a
            custom_jvp or custom_vjp.
        TypeError: for an attribute of another type.

    >>> result = jax.ShapeDtypeStruct((3,), "float32")
    >>> call = jax.ffi.ffi_call("my_kernel", result, vmap_method="broadcast_all")
    >>> "@my_kernel" in jax.jit(lambda x: call(x, eps=np.float32(0.1))).lower(jnp.ones(3)).as_text()
    True
    """
    if not isinstance(target_name, str):
        raise TypeError(f"ffi_call: the name of the target must be a str, got {target_name!r:.60}")
    if vmap_method not in VMAP_METHODS:
        raise ValueError(f"vmap_method must be on of the allowed methods {VMAP_METHODS}, but got: "
                         f"{vmap_method!r}")
    typed = custom_call_api_version >= 4
    if typed and legacy_backend_config is not None:
        raise ValueError("The use of the legacy_backend_config parameter requires custom_call_api_version < "
                         f"4; got {custom_call_api_version}: give attributes by keyword where the kernel is "
                         "called.")
    several = isinstance(result_shape_dtypes, (list, tuple))
    specs = result_shape_dtypes if several else [result_shape_dtypes]
    out_avals = tuple(_declared(spec, i) for i, spec in enumerate(specs))
    if not several and output_layouts is not None and (out_avals[0].ndim == 0 or _is_layout(output_layouts)):
        output_layouts = [output_layouts]
    output_orders = _orders("output_layouts", output_layouts, out_avals)

    @filtered
    def call(*args: Any, **attributes: Any) -> Any:
        if attributes and not typed:
            raise ValueError(f"The use of ffi_call attributes ({', '.join(attributes)}) requires a custom "
                             f"call API version of at least 4; got api_version={custom_call_api_version}: "
                             "it takes legacy_backend_config=.")
        for i, x in enumerate(args):
            if not is_arraylike(x):
                raise TypeError(f"The FFI call to `{target_name}`: "
                                f"{not_an_array(x, f'args[{i}]', 'Attributes are given by keyword.')}")
        avals = [aval_of(x) for x in args]
        config = {}
        for name, value in attributes.items():
            try:
                config[name] = Attribute(attribute(value))
            except TypeError as error:
                raise TypeError(f"The FFI call to `{target_name}`: attribute {name}: {error}") from None
        outs = ffi_call_p.bind(
            *args, target_name=target_name, result_avals=out_avals, has_side_effect=bool(has_side_effect),
            vmap_method=vmap_method, input_layouts=_orders("input_layouts", input_layouts, avals),
            output_layouts=output_orders,
            input_output_aliases=_aliases(input_output_aliases or {}, avals, out_avals),
            custom_call_api_version=custom_call_api_version, leading=0,
            config=Attribute(attribute(config)) if typed else legacy_backend_config or "")
        if not several:
            return outs[0]
        return tuple(outs) if isinstance(result_shape_dtypes, tuple) else outs
    return call
