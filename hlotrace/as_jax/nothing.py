"""Parts of JAX's machinery that have no counterpart here: they can be imported, and raise when used."""
from collections.abc import Mapping
from typing import Any, NoReturn

# by the module: what there is instead
_INSTEAD = {
    "jax.experimental.array_serialization": "there is serialization.GlobalAsyncCheckpointManager",
    "jax.experimental.colocated_python": "functions run in this process, and nothing of them is sent",
    "jax.experimental.sparse": "sparse arrays are made of dense operations, and sparsify() of a function "
                               "computes with them",
    "jax.interpreters.ad": "there is jax.linearize, and ad.jvp of flat lists",
    "jax.interpreters.batching": "values of hijax types (jax.experimental.hijax) can be mapped"}
_RULES = "give a primitive its rules by jax.interpreters, or use public functions"


class Nothing:
    """A function of JAX's that hlotrace lacks, known by its name."""

    def __init__(self, name: str) -> None:
        self.__module__, _, self.__name__ = name.rpartition(".")
        self.__qualname__, self._name = self.__name__, name

    def __call__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        instead = [words for prefix, words in _INSTEAD.items() if self._name.startswith(prefix)]
        raise NotImplementedError(f"{self._name}: this part of JAX's machinery has no counterpart in "
                                  f"hlotrace; {(*instead, _RULES)[0]}")

    def __reduce__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return f"<{self._name}, which hlotrace does not have>"


class NoRules(dict):
    """A table of JAX's in which hlotrace looks up nothing: it is empty, and takes nothing."""

    def __init__(self, name: str, instead: str) -> None:
        self._name, self._instead = name, instead

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise NotImplementedError(f"{self._name}[{key}] = ...: hlotrace does not look there; {self._instead}")

    def update(self, *given: Mapping[Any, Any], **named: Any) -> None:  # type: ignore[override]
        for key, value in dict(*given, **named).items():
            self[key] = value

    def setdefault(self, key: Any, default: Any = None) -> NoReturn:
        self[key] = default
        raise AssertionError
