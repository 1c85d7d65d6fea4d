"""composite: an operation that a compiler may know by its name; for any other it is its program."""
from ...core.refs import Holder
from .calls import AS_JIT


def _lower(ctx, eqn, *names):
    p = eqn.params
    parts = [f"composite_attributes = {p['attributes']}"] if p["attributes"] != "{}" else []
    parts.append(f"decomposition = @{ctx.module.function(p['jaxpr'])}")
    if p["version"]:
        parts.append(f"version = {p['version']} : i32")
    types, out_types = ([v.aval.mlir for v in atoms] for atoms in (eqn.invars, eqn.outvars))
    return ctx.emit(f'stablehlo.composite "{p["name"]}" {", ".join(names)} {{{", ".join(parts)}}} : '
                    f'({", ".join(types)}) -> '
                    f'{out_types[0] if len(out_types) == 1 else "(" + ", ".join(out_types) + ")"}',
                    len(out_types))


# attributes: the text of an MLIR dictionary
composite_p = Holder("composite", **AS_JIT, lower=_lower)
