# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Callable, Mapping
from hlotrace._types import Argnums, Names, Place
from typing import Any

__all__ = ['pjit']

def pjit(
    fun: Callable[..., Any], in_shardings: Place | None = None, out_shardings: Place | None = None,
    static_argnums: Argnums | None = None, static_argnames: Names | None = None, donate_argnums: Argnums | None = None,
    donate_argnames: Names | None = None, keep_unused: bool = False, device: Place | None = None, backend: str | None = None,
    inline: bool = False, compiler_options: Mapping[str, Any] | None = None,
) -> Any: ...
