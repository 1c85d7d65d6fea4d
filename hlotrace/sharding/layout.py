"""Layout: the order of an array's elements in the memory of a device.  Format: a layout with a sharding."""
from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..core.surface.boundary import boundaries
from .abstract import Sharding


@boundaries
class Layout:
    """The axes from the slowest to the fastest, and the tiles, if any, in which the memory is filled.

    `Layout(major_to_minor=(1, 0))` is a matrix in column-major order.  `Layout.AUTO` leaves it to the
    compiler.

    >>> from hlotrace.experimental.layout import Layout
    >>> Layout((1, 0))
    Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)
    """
    __slots__ = ("major_to_minor", "tiling", "sub_byte_element_size_in_bits", "default")
    AUTO: Layout

    def __init__(self, major_to_minor: Iterable[int], tiling: Iterable[Iterable[int]] | None = None,
                 sub_byte_element_size_in_bits: int = 0, *, default: bool = False) -> None:
        self.major_to_minor = tuple(int(axis) for axis in major_to_minor)
        self.tiling = None if tiling is None else tuple(map(tuple, tiling))
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits
        self.default = default      # is it that of arrays of this type on the device that it was read from?

    @staticmethod
    def parse(text: str, default: bool = False) -> Layout:
        """The layout that jaxlib writes as `{1,0:T(8,128)E(4)}`."""
        axes, _, rest = text.strip("{}").partition(":")
        tiles = [tuple(int(n) if n.strip() != "*" else -1 for n in tile.split(",")) for tile in re.findall(
            r"\(([\d,* ]+)\)", "".join(re.findall(r"T((?:\([\d,* ]+\))+)", rest)))]
        bits = re.search(r"E\((\d+)\)", rest)
        return Layout(reversed([int(a) for a in axes.split(",") if a]), tiles, int(bits[1]) if bits else 0,
                      default=default)

    @property
    def text(self) -> str:
        """As jaxlib writes it, `{1,0:T(8,128)}`: the fastest axis first."""
        tiles = "".join("(" + ",".join("*" if n == -1 else str(n) for n in tile) + ")" for tile in
                        self.tiling or ())
        bits = self.sub_byte_element_size_in_bits
        rest = (tiles and f"T{tiles}") + (f"E({bits})" if bits else "")
        return "{" + ",".join(map(str, reversed(self.major_to_minor))) + (rest and f":{rest}") + "}"

    def is_met_by(self, found: Layout) -> bool:
        """Is `found`, read from a device, this layout?  What this one leaves open may be anything."""
        bits = self.sub_byte_element_size_in_bits
        return (self.major_to_minor == found.major_to_minor and self.tiling in (None, found.tiling)
                and bits in (0, found.sub_byte_element_size_in_bits))

    def check_rank(self, what: str, shape: Sequence[int]) -> None:
        """Does it order the axes of a shape?

        Raises:
            ValueError: if it does not.
        """
        if self is not Layout.AUTO and sorted(self.major_to_minor) != list(range(len(shape))):
            problem = "Length of major_to_minor and the rank of the value should match. Got"
            if len(self.major_to_minor) == len(shape):
                problem = f"it orders the axes of an array of shape {tuple(shape)}: each of them once, not"
            raise ValueError(f"{what} is incompatible with its layout annotation {self}: {problem} "
                             f"major_to_minor={self.major_to_minor} and shape={tuple(shape)}")

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Does it order the axes of arrays of a shape?

        Raises:
            ValueError: if it does not.
        """
        self.check_rank("A value", aval_shape)

    def _key(self) -> tuple[Any, ...]:
        return self.major_to_minor, self.tiling or None, self.sub_byte_element_size_in_bits

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
                f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})")


class _Auto(Layout):
    __slots__ = ()

    def __new__(cls) -> _Auto:
        return vars(Layout).get("AUTO") or super().__new__(cls)     # the one there is

    def __init__(self) -> None:
        super().__init__(())

    @property
    def text(self) -> str:
        return "auto"

    def __repr__(self) -> str:
        return "AUTO"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return _auto, ()


Layout.AUTO = _Auto()


def _auto() -> Layout:
    return Layout.AUTO


@dataclasses.dataclass(frozen=True)
class Anywhere:
    """In place of a sharding: that which an argument has or the compiler chooses, in a layout or a memory.

    It is false, as None is.
    """
    _layout: Any = Layout.AUTO
    _kind: str | None = None

    def __bool__(self) -> bool:
        return False


@boundaries
class Format:
    """A Layout in each device's memory, and a Sharding over devices; None leaves either open.

    >>> from hlotrace.experimental.layout import Format, Layout
    >>> rows, columns = (Format(Layout(order), jnp.ones(1).sharding) for order in ((0, 1), (1, 0)))
    >>> jax.device_put(jnp.ones((2, 3)), columns).format == columns, jnp.ones((2, 3)).format == rows
    (True, True)
    """
    __slots__ = ("layout", "sharding")

    def __init__(self, layout: Layout | None = None, sharding: Sharding | None = None) -> None:
        if layout is not None and not isinstance(layout, Layout):
            raise TypeError("Invalid value received for the layout argument. Expected values are `None`, "
                            f"`Layout.AUTO` or an instance of `Layout`. Got {layout!s:.60} of type "
                            f"{type(layout)}")
        if sharding is not None and not isinstance(sharding, Sharding):
            raise TypeError("Invalid value received for the sharding argument. Expected values are `None` "
                            f"or an instance of `jax.Sharding`. Got {sharding!s:.60} of type "
                            f"{type(sharding)}")
        if layout is not None and layout is not Layout.AUTO and sharding is None:
            raise ValueError(f"Sharding has to be concrete when layout is of type {type(layout)}. Please "
                             "pass a `jax.sharding.NamedSharding` or `jax.sharding.SingleDeviceSharding` "
                             f"to the sharding argument. Got sharding {sharding}")
        self.layout, self.sharding = layout, sharding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and (self.layout, self.sharding) == (other.layout, other.sharding)

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"
