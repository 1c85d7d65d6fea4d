"""`jax._src.pretty_printer`: documents of text with breaks, as jaxlib lays them out."""
import functools
import sys
from collections.abc import Sequence
from typing import Any

from ..runtime import binding

_jaxlib: Any = binding.pretty_printer
Color, Doc, Intensity, OutputFormat, brk, color, concat, group, nest, nil, source_map, text = (
    getattr(_jaxlib, name) for name in (
        "Color", "Doc", "Intensity", "OutputFormat", "brk", "color", "concat", "group", "nest", "nil",
        "source_map", "text"))
CAN_USE_COLOR = sys.stdout is not None and sys.stdout.isatty()


def _format(self: Any, width: int = 80, *, use_color: bool | None = None, annotation_prefix: str = " # ",
            source_map: list[Any] | None = None) -> str:
    """The text of a document, in lines of up to `width` where its breaks allow."""
    return self._format(width, use_color=CAN_USE_COLOR if use_color is None else use_color,
                        output_format=OutputFormat.TEXT, separable_lines=True,
                        annotation_prefix=annotation_prefix, source_map=source_map)


def join(sep: Any, docs: Sequence[Any]) -> Any:
    """The documents with `sep` between them."""
    return concat([part for doc in docs for part in (sep, doc)][1:])


Doc.format = _format
Doc.__str__ = lambda self: self.format()
keyword = functools.partial(color, foreground=Color.BLUE, intensity=Intensity.BRIGHT)
type_annotation = functools.partial(color, foreground=Color.MAGENTA)
