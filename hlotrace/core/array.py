"""Array: what traced and concrete arrays have in common.

The operators and methods (`+`, `x.sum()`, `x.at[...]`) are NumPy-level functions; the public library
installs them here (`hlotrace/numpy/arrays/array_methods.py`), since this layer may not know them.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .avals import ShapedArray, register_aval
from .surface.missing import Absent


class Array:
    """An immutable n-dimensional array; `isinstance(x, Array)` is true for concrete and for traced arrays.

    NumPy's operators and methods are there, and `x.at[i].set(y)`, `.add(y)`, ..., which give a changed copy.

    >>> x = jnp.arange(4.)
    >>> isinstance(x, jax.Array), x[1:].sum(), x.at[0].set(9).at[jnp.array([1, 1])].add(5)
    (True, Array(6., dtype=float32), Array([ 9., 11.,  2.,  3.], dtype=float32))
    """
    __slots__ = ("__weakref__",)
    __array_priority__ = 100     # NumPy's operators give way to ours
    if TYPE_CHECKING:
        aval: ShapedArray

        def __getattr__(self, name: str) -> Any: ...    # what the public library installs

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> Any:
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    @property
    def itemsize(self) -> int:
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        return self.aval.size * self.aval.dtype.itemsize

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object: the array has no axes")
        return self.aval.shape[0]

    __hash__: Any = None  # not a method that raises: libraries ask isinstance(x, collections.abc.Hashable)


# JAX's, and not here yet.  A `__getattr__` would tell of every name, but NumPy asks each array for names that
# it lacks.
for _name in ("device_buffer", "device_buffers", "unsafe_raw_buffer"):
    setattr(Array, _name, Absent(_name))


register_aval(Array, lambda value: value.aval)
