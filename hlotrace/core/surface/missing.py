"""What is said of a name that is missing: JAX has it, or it is misspelled.

The words are made when an error is shown and not when it is raised, as most such errors never are: `hasattr`
makes them.
"""
from importlib import import_module
from types import ModuleType
from typing import Any

from ..errors import nearest


class NoSuchName(AttributeError):
    """`owner`, a module or an array, has no attribute `name`."""
    name: str
    annotated = True        # its words are complete: the boundary adds none

    def __init__(self, owner: Any, name: str) -> None:
        super().__init__(name=name)     # without an `obj`, Python adds no suggestion of its own
        self.owner = owner

    def __str__(self) -> str:
        return words(self.owner, self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeError, (str(self),)


NoSuchName.__name__ = NoSuchName.__qualname__ = "AttributeError"       # as tracebacks show it
NoSuchName.__module__ = "builtins"


class Absent:
    """A descriptor for an attribute that the objects of a class lack: it raises an error that says why."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: Any, kind: type) -> Any:
        raise NoSuchName(kind if owner is None else owner, self.name)


class Concrete(Absent):
    """A descriptor, in the class of all arrays, for an attribute that concrete ones alone have."""

    def __get__(self, owner: Any, kind: type) -> Any:
        return self if owner is None else super().__get__(owner, kind)


def words(owner: Any, name: str) -> str:
    """What to say where `owner`, a module of this package or an array, does not have `name`."""
    of_module = isinstance(owner, ModuleType)
    place = owner.__name__.partition(".")[2] if of_module else "Array"
    full = f"{place}.{name}".lstrip(".")
    lacking = _lacking(place)
    if name in lacking:
        return f"hlotrace does not have jax.{full} (yet); {_instead(place, name)}"
    if not of_module:
        text = f"{type(owner).__name__!r} object has no attribute {name!r}: concrete arrays have it"
        under = f", and this one is traced by {owner.under()}" if hasattr(owner, "under") else ""
        return f"{text}{under} ({type(owner).__name__} has no attribute {name})"      # JAX's words
    text = f"module {owner.__name__!r} has no attribute {name!r}"
    if place == "random" and name in _OF_NUMPYS_RANDOM:
        return (f"{text}, which is NumPy's: use random.{_OF_NUMPYS_RANDOM[name]}; keys come from "
                "random.key(seed), and from random.split(key)")
    if elsewhere := _elsewhere(name):
        return f"{text}; use {elsewhere}"
    there = [n for n in dir(owner) if not n.startswith("_")]
    near = nearest(name, [*there, *lacking], 0.7)
    if near in lacking and near not in there:
        return f"{text}; did you mean {near!r}, which JAX has and hlotrace does not (yet)?"
    return text if near is None else f"{text}; did you mean {near!r}?"


def _elsewhere(name: str) -> str | None:
    """What has this name in another module, or has PyTorch's name for it."""
    if name in _OF_PYTORCH:
        return _OF_PYTORCH[name]
    for module in "", "numpy", "nn", "random", "lax", "scipy.special", "tree_util":
        found = import_module(f"{_PACKAGE}.{module}".rstrip("."))
        if name in found.__all__:
            return f"jax.{module}.{name}".replace("..", ".")
    return None


_PACKAGE = __name__.partition(".")[0]
_OF_PYTORCH = {
    "cat": "jnp.concatenate", "unsqueeze": "jnp.expand_dims", "tensor": "jnp.array", "Tensor": "jax.Array",
    "clamp": "jnp.clip", "mm": "jnp.matmul", "bmm": "jnp.matmul", "no_grad": "lax.stop_gradient",
    "randn": "jax.random.normal(key, shape)", "rand": "jax.random.uniform(key, shape)"}


# where NumPy draws from a hidden state
_OF_NUMPYS_RANDOM = {
    "rand": "uniform(key, shape)", "random": "uniform(key, shape)", "random_sample": "uniform(key, shape)",
    "randn": "normal(key, shape)", "standard_normal": "normal(key, shape)", "shuffle": "permutation(key, x)",
    "seed": "key(0)", "default_rng": "key(0)", "RandomState": "key(0)", "Generator": "key(0)",
    "random_integers": "randint(key, shape, minval, maxval)",
    "integers": "randint(key, shape, minval, maxval)"}


def _lacking(place: str) -> set[str]:
    """The names of JAX's that a module, such as "numpy", or "Array" lacks."""
    from .missing_names import NAMES
    below = place and place + "."
    modules = {other.removeprefix(below).partition(".")[0] for other in NAMES
               if other.startswith(below)} - {"Array"}
    return modules.union(NAMES.get(place, "").split())


def _instead(place: str, name: str) -> str:
    theirs = {"numpy": "np", "scipy": "scipy"}.get(place.partition(".")[0])
    if theirs and not name[0].isupper():
        return f"{'.'.join([theirs, *place.split('.')[1:], name])} can be called with hlotrace.pure_callback"
    return f"dir({'x' if place == 'Array' else f'hlotrace.{place}'.rstrip('.')}) lists what there is"
