"""Parts of JAX's machinery that have no counterpart here: they can be imported, and raise when used."""
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

# the modules of jax.experimental.pallas: kernels that a library has for an accelerator, and imports anywhere
_PALLAS = frozenset("""
    pallas pallas.fuser pallas.mosaic_gpu pallas.tpu pallas.triton pallas.ops
    pallas.ops.gpu pallas.ops.gpu.attention pallas.ops.gpu.decode_attention pallas.ops.gpu.layer_norm
    pallas.ops.gpu.rms_norm pallas.ops.gpu.softmax pallas.ops.tpu pallas.ops.tpu.flash_attention
    pallas.ops.tpu.megablox pallas.ops.tpu.paged_attention pallas.ops.tpu.ragged_paged_attention
    pallas.ops.tpu.splash_attention pallas.ops.tpu.splash_attention.splash_attention_kernel
    pallas.ops.tpu.splash_attention.splash_attention_mask
""".split())


class Nothing:
    """A function of JAX's inside that hlotrace lacks, known by its name."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = self._name = name

    def __call__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{self._name}: this part of JAX's machinery has no counterpart in "
                                  "hlotrace; give a primitive its rules by jax.interpreters, or use public "
                                  "functions")

    def __repr__(self) -> str:
        return f"<{self._name}, which hlotrace does not have>"


class Pallas(ModuleType):
    """A module of jax.experimental.pallas: all of its names are there, functions and classes that raise."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "Pallas kernels, which hlotrace does not have.")
        self.__path__: list[str] = []

    @staticmethod
    def has(module: str) -> bool:
        """Is there a module of this name, such as "jax.experimental.pallas.tpu"?"""
        return module.partition(".experimental.")[2] in _PALLAS

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"hlotrace does not have {self.__name__}.{name}", name=name)
        whole = f"{self.__name__}.{name}"
        if self.has(whole):
            return import_module(whole)
        value: Any = NoKernel(whole)
        if name[0].isupper():
            value = type(name, (), {"__new__": lambda _, *args, **kwargs: NoKernel(whole)(),
                                    "__module__": self.__name__})
        setattr(self, name, value)
        return value


class NoKernel(Nothing):
    """A function of Pallas."""

    def __call__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{self._name}: hlotrace has no Pallas kernels; write it in jax.numpy and "
                                  "jax.lax, or call a kernel of your own by jax.ffi")


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
