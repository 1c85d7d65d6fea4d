"""`jax._src.jaxpr_util`: what is in a program, counted."""
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..core import source_info
from ..core.jaxpr import Eqn, Jaxpr, Var, sub_jaxprs
from ..runtime.executables.dumps import pprof, sources

MaybeEqn = Eqn | None


def _programs(jaxpr: Jaxpr, again: bool = True) -> list[Jaxpr]:
    """A program and those in it, level by level; one that is there often only once unless `again`."""
    found, level = [jaxpr], [jaxpr]
    while level:
        level = [sub for each in level for eqn in each.eqns for sub in sub_jaxprs(eqn.params)]
        found += level
    return found if again else list({id(each): each for each in found}.values())


def all_eqns(jaxpr: Jaxpr, revisit_inner_jaxprs: bool = True) -> Iterator[tuple[Jaxpr, Eqn]]:
    """(program, equation) for each equation of a program and of those in it."""
    return ((each, eqn) for each in _programs(jaxpr, revisit_inner_jaxprs) for eqn in each.eqns)


def count_eqns(jaxpr: Jaxpr, revisit_inner_jaxprs: bool = True) -> int:
    """How many equations there are."""
    return sum(1 for _ in all_eqns(jaxpr, revisit_inner_jaxprs))


def collect_eqns(jaxpr: Jaxpr, key: Callable[[Eqn], Any]) -> dict[Any, list[Eqn]]:
    """The equations by their `key`."""
    found = defaultdict(list)
    for _, eqn in all_eqns(jaxpr):
        found[key(eqn)].append(eqn)
    return dict(found)


def histogram(jaxpr: Jaxpr, key: Callable[[Eqn], Any],
              key_fmt: Callable[[Any], Any] = lambda k: k) -> dict[Any, int]:
    """How many equations have each `key`."""
    return {key_fmt(k): len(eqns) for k, eqns in collect_eqns(jaxpr, key).items()}


def _source(eqn: Eqn) -> str:
    return source_info.describe(eqn.source, with_column=True)


def primitives(jaxpr: Jaxpr) -> dict[str, int]:
    """How often each primitive is there."""
    return histogram(jaxpr, lambda eqn: eqn.primitive.name)


def primitives_by_source(jaxpr: Jaxpr) -> dict[str, int]:
    """How often each primitive comes from each of the user's lines."""
    return histogram(jaxpr, lambda eqn: f"{eqn.primitive.name} @ {_source(eqn)}")


def primitives_by_shape(jaxpr: Jaxpr) -> dict[str, int]:
    """How often each primitive is there with results of each shape and dtype."""
    return histogram(jaxpr, lambda eqn: f"{eqn.primitive.name} :: " + " ".join(
        v.aval.str_short() for v in eqn.outvars))


def source_locations(jaxpr: Jaxpr) -> dict[str, int]:
    """How many equations come from each of the user's lines."""
    return histogram(jaxpr, _source)


def eqns_using_var_with_invar_index(jaxpr: Jaxpr, invar: Var) -> Iterator[tuple[Eqn, int]]:
    """(equation, which operand) for each use of a variable."""
    return ((eqn, i) for eqn in jaxpr.eqns for i, x in enumerate(eqn.invars) if x is invar)


def eqns_using_var(jaxpr: Jaxpr, invar: Var) -> Iterator[Eqn]:
    """The equations that use a variable."""
    return (eqn for eqn, _ in eqns_using_var_with_invar_index(jaxpr, invar))


def var_defs_and_refs(jaxpr: Jaxpr) -> Iterable[tuple[Jaxpr, list[tuple[Var, MaybeEqn, list[MaybeEqn]]]]]:
    """For each program its variables with the equation that makes it, and those that use it.

    None is the program itself: what makes its inputs, and uses its results.
    """
    for each in _programs(jaxpr):
        made: dict[Var, MaybeEqn] = dict.fromkeys((*each.constvars, *each.invars))
        made.update((v, eqn) for eqn in each.eqns for v in eqn.outvars)
        used: dict[Var, list[MaybeEqn]] = {v: [] for v in made}
        for reader, names in [*((eqn, eqn.invars) for eqn in each.eqns), (None, each.outvars)]:
            for v in {id(x): x for x in names if x in used}.values():
                used[v].append(reader)
        yield each, [(v, eqn, used[v]) for v, eqn in made.items()]


def pprof_equation_profile(jaxpr: Jaxpr, *, workspace_root: str | None = None) -> bytes:
    """How many equations come from each line, as a gzipped profile for pprof; files from a root on."""
    root = workspace_root or ""
    return pprof(Counter((file.removeprefix(root), *place) for file, *place in sources(jaxpr)))
