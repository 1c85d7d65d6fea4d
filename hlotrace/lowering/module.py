"""Programs to StableHLO text: the module, its functions, and the context in which a primitive's rule writes.

Values are numbered in the order in which they are printed, functions are named in the order of their first
use, so the same program gives the same bytes in any process.
"""
from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ..core import source_info as provenance
from ..core.avals import ShapedArray, physical
from ..core.config import config, state
from ..core.dtypes import float0, is_extended
from ..core.effects import ORDERED_TOKEN
from ..core.jaxpr import Eqn, Jaxpr, Literal, sub_jaxprs
from ..core.jaxpr_trace import trace_to_jaxpr
from ..core.platforms import rule_for
from ..core.primitive import Primitive, missing
from ..core.programs import embed_constants
from ..core.symbolic_zeros import MappedAxis
from ..core.trace import EVAL, entering
from ..primitives.arrays.shape import reshape, transpose
from ..sharding.partition import Partition
from . import custom_calls
from .constants import dense

# Writes a block: from the names of its arguments, the names of its results and their types.
Body = Callable[[list[str]], tuple[Sequence[str], Sequence[str]]]


class Locations:
    """MLIR locations, each written once as an alias."""

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}       # text -> its name
        self.positions: dict[Any, str] = {}

    def alias(self, text: str) -> str:
        return self.aliases.setdefault(text, f"#loc{len(self.aliases) + 1}")

    def of(self, source: Any, path: str) -> str:
        """The ` loc(...)` suffix of an operation."""
        key = (source, path)
        if key not in self.positions:
            inner = "unknown"
            if source is not None:
                filename, line, column, function = provenance.position(source)
                if config.jax_hlo_source_file_canonicalization_regex:
                    filename = re.sub(config.jax_hlo_source_file_canonicalization_regex, "", filename)
                inner = self.alias(f'loc({custom_calls.quoted(filename)}:{line}:{column})')
                inner = self.alias(f'loc({custom_calls.quoted(function)}({inner}))')
            named = self.alias(f'loc({custom_calls.quoted(path)}({inner}))')
            self.positions[key] = f" loc({named})"
        return self.positions[key]

    def text(self) -> str:
        return "".join(f"{name} = {text}\n" for text, name in self.aliases.items())


class Module:
    """A module under construction: its functions in order of first use, meshes, host callbacks, locations."""

    context: Callable[[Module, str], Context]

    def __init__(self, name: str, platform: Any, debug_info: bool, noinline: Collection[Jaxpr] = (),
                 partition: Partition | None = None) -> None:
        self.name = name
        self.platform = platform     # a core.platforms.Platform
        self.partition = partition
        self.meshes: dict[Any, str] = {}        # Mesh -> its name
        # the mesh of the `shard_map` that is being written, and its manual axes
        self.manual: tuple[Any, tuple[str, ...]] = None, ()
        self.noinline = noinline                # programs whose functions XLA is asked not to inline
        self.functions: dict[Any, str] = {}     # (program, the manual axes where it is called) -> its name
        self.names = {"main"}
        self.texts: list[Any] = []
        self.callbacks: list[Any] = []          # Python functions that custom calls refer to by position
        self.targets: dict[str, None] = {}      # of custom calls, in order of first use
        self.input_shardings: dict[Any, Any] = {}       # an input of the program -> its sharding, where known
        self.leaves_device = any(getattr(s, "_kind", None) for s in partition.ins) if partition else False
        self.groups = 0          # of values with the same sharding
        # (function, aval): called with a value's sharding when the program is compiled
        self.inspections: list[Any] = []
        self.locations: Any = Locations() if debug_info else None

    def unique(self, name: str) -> str:
        name = re.sub(r"[^A-Za-z0-9_]", "_", name) or "fn"
        candidate, n = name, 0
        while candidate in self.names:
            candidate, n = f"{name}_{n}", n + 1
        self.names.add(candidate)
        return candidate

    def mesh(self, mesh: Any) -> str:
        """The name of a mesh, declared on first use."""
        known = self.partition and self.partition.mesh
        if known is not None and mesh.shape_tuple == known.shape_tuple and (
                not hasattr(mesh, "devices") or mesh._devices == getattr(known, "_devices", None)):
            mesh = known        # the types of its axes are not in the text
        return self.meshes.setdefault(mesh, f"mesh_{len(self.meshes)}" if self.meshes else "mesh")

    def sharding(self, sharding: Any, aval: ShapedArray, open: bool = False) -> str:
        """The text of a sharding of values of `aval`, `<@mesh, [{"data"}, {}]>`."""
        from ..sharding.named import as_named
        from ..sharding.text import sharding_text
        named = as_named(sharding, aval.ndim)
        return sharding_text(named, physical(aval).ndim, self.mesh(named.mesh), open=open)

    def type_sharding(self, sharding: Any, aval: ShapedArray) -> str:
        """The text of the sharding of values of `aval`, over `sharding`'s mesh if their type has none."""
        from ..sharding.spec import PartitionSpec
        from ..sharding.text import type_text
        stated = aval.explicit or sharding.with_spec(PartitionSpec())
        return type_text(stated, physical(aval).ndim, self.mesh(stated.mesh), self.manual[1])

    def attributes(self, shardings: Sequence[Any], avals: Sequence[ShapedArray]) -> list[str]:
        """For each value of a signature its `sdy.sharding = ...`, or an empty string."""
        return [f"sdy.sharding = #sdy.sharding{self.sharding(s, a)}" if s is not None else ""
                for s, a in zip(shardings, avals, strict=True)]

    def result_attributes(self, shardings: Sequence[Any], jaxpr: Jaxpr) -> list[str]:
        """As `attributes`, for results: Explicit axes beside Auto ones split those of a program over a mesh
        as their types say."""
        written = self.attributes(shardings, jaxpr.out_avals)
        mesh = self.partition and self.partition.mesh
        if not mesh or not (mesh.explicit_axes and mesh.auto_axes) or not (
                state.mesh_to_run_on or any(a.mesh for a in jaxpr.in_avals)):
            return written
        from ..sharding.named import NamedSharding
        from ..sharding.spec import PartitionSpec
        whole = NamedSharding(mesh, PartitionSpec())
        return [text or f"sdy.sharding = #sdy.sharding{self.type_sharding(whole, a)}"
                for text, a in zip(written, jaxpr.out_avals)]

    @staticmethod
    def memory_kinds(shardings: Sequence[Any]) -> list[str]:
        """For each value of a signature its `mhlo.memory_kind = ...`, or an empty string."""
        return [f'mhlo.memory_kind = "{s._kind}"' if s is not None and s._kind else "" for s in shardings]

    @staticmethod
    def layouts(shardings: Sequence[Any]) -> list[str]:
        """For each value of a signature its `mhlo.layout_mode = ...`, or an empty string."""
        return [f'mhlo.layout_mode = "{s._layout.text}"' if s is not None and s._layout is not None else ""
                for s in shardings]

    @property
    def divided_by_compiler(self) -> bool:
        """Is the program for several devices, and no mesh axis manual here?"""
        return not self.manual[1] and self.partition is not None and len(self.partition.devices) > 1

    def maximal_sharding(self, results: int) -> str:
        """The attribute of an operation that one device does, on whole operands; in `shard_map` each does its
        own."""
        if not self.divided_by_compiler:
            return ""
        self.meshes[None] = "first_device"
        listed = ", ".join(["<@first_device, []>"] * max(results, 1))
        return f", sdy.sharding = #sdy.sharding_per_value<[{listed}]>"

    def replicated(self, aval: ShapedArray) -> str:
        """The text of a sharding by which all devices hold a whole value of `aval`."""
        declared = next((name for mesh, name in self.meshes.items() if mesh is not None), None)
        name = declared or self.mesh(self.partition and self.partition.mesh)
        return f"<@{name}, [{', '.join(['{}'] * physical(aval).ndim)}]>"

    def function(self, jaxpr: Jaxpr) -> str:
        """The name of the private function for a program, written on first use."""
        key = jaxpr, self.manual
        name = self.functions.get(key)
        if name is None:
            name = self.functions[key] = self.unique(jaxpr.name)
            self.write(name, jaxpr, "private")
        return name

    def write(self, name: str, jaxpr: Jaxpr, visibility: str, arg_attrs: Sequence[str] = (),
              result_attrs: Sequence[str] = (), stack: str = "") -> None:
        slot = len(self.texts)
        self.texts.append(None)     # callees come after their caller
        ctx = self.context(self, stack)
        names, params = [], []
        for i, v in enumerate(jaxpr.invars):
            names.append(f"%arg{i}")
            attrs = f" {{{arg_attrs[i]}}}" if arg_attrs and arg_attrs[i] else ""
            arg = jaxpr.arg_names[i] if self.locations and jaxpr.arg_names else None
            loc = f' loc("{arg}")' if arg is not None and plain(arg) else ""
            params.append(f"%arg{i}: {v.aval.mlir}{attrs}{loc}")
        types = [v.aval.mlir for v in jaxpr.outvars]
        ctx.begin(jaxpr, names, visibility)
        results = ctx.inline(jaxpr, names)
        if visibility == "public" and self.partition:
            put = put_in_memory(jaxpr)
            results = [ctx.in_memory(r, v.aval, s._kind) if getattr(s, "_kind", None) and v not in put else r
                       for r, v, s in zip(results, jaxpr.outvars, self.partition.outs)]
        listed = [t + (f" {{{a}}}" if a else "") for t, a in zip(types, result_attrs or [""] * len(types))]
        signature = f" -> ({', '.join(listed)})" if listed else ""
        returned = f"return {', '.join(results)} : {', '.join(types)}" if results else "return"
        body = "\n".join(ctx.lines)
        if body:
            body += "\n"
        self.texts[slot] = (f"  func.func {visibility} @{name}({', '.join(params)}){signature} {{\n{body}"
                            f"    {returned}\n  }}\n")

    def text(self) -> str:
        devices = self.partition.devices if self.partition else (None,)
        counts = f"attributes {{mhlo.num_partitions = {len(devices)} : i32, mhlo.num_replicas = 1 : i32}}"
        meshes = ""
        if self.meshes:
            from ..sharding.text import mesh_text  # most programs need none
            for mesh, name in self.meshes.items():
                line = mesh_text(mesh, name, devices) if mesh else f"sdy.mesh @{name} = <[], device_ids=[0]>"
                meshes += f"  {line}\n"
        name = f'"{self.name}"' if "-" in self.name else self.name
        return self.settle_sizes(f"module @{name} {counts} {{\n{meshes}{''.join(self.texts)}}}\n"
                                 + (self.locations.text() if self.locations else ""))

    def settle_sizes(self, text: str) -> str:
        """The text of the module; there are no symbolic sizes in it, as none is in the types of arguments."""
        if found := SYMBOLIC_SIZE.search(text):
            raise unknown_variable(self.name, found[1])
        return text


SYMBOLIC_SIZE = re.compile(r"\{(?<=[<x]\{)([^{}]*)\}x")      # in a type, see avals.mlir_type


def unknown_variable(name: str, size: str, known: Sequence[str] = ()) -> ValueError:
    """What is said of a size that the shapes of arguments leave open."""
    return ValueError(f"{name}: Encountered dimension variable in '{size}' that is not appearing in the "
                      f"shapes of the function arguments: these have {list(known)}. Its value is found in "
                      "the shapes of arguments alone: give an array that has it as a size")


def plain(text: str) -> bool:
    return '"' not in text and "\\" not in text and "\n" not in text


class Context:
    """Where a lowering rule writes: one function body, or a region in it."""
    __slots__ = ("module", "lines", "count", "constants", "loc", "indent", "source", "base", "scope", "tags")

    def __init__(self, module: Module, stack: str) -> None:
        self.module = module
        self.lines: list[str] = []
        self.count = 0
        self.constants: dict[Any, str] = {}
        self.loc: Any = ""      # text, or the source and path that it is made of when it is used
        self.indent = "    "
        # of the equation that is written now: its line, the scopes of what holds it, its own
        self.source: Any = None
        self.base = f"{stack}/" if stack else ""
        self.scope = ""
        # pairs of strings: attributes of operations that are written now
        self.tags: tuple[tuple[str, str], ...] = ()

    @property
    def platform(self) -> Any:
        return self.module.platform

    def begin(self, jaxpr: Jaxpr, names: Sequence[str], visibility: str) -> None:
        """What is written in front of the equations of a function: nothing, where sizes are known."""

    def emit(self, text: str, n: int | None = None) -> Any:
        """Append an operation; returns the name of its result, or the list of names if `n` is given."""
        loc = self.loc if type(self.loc) is str else self.location()
        if self.tags:
            text = custom_calls.tagged(text, self.tags)
        if n == 0:
            self.lines.append(f"{self.indent}{text}{loc}")
            return []
        name = f"%{self.count}"
        self.count += 1
        if n is None:
            self.lines.append(f"{self.indent}{name} = {text}{loc}")
            return name
        self.lines.append(f"{self.indent}{name}{f':{n}' if n > 1 else ''} = {text}{loc}")
        return [name] if n == 1 else [f"{name}#{i}" for i in range(n)]

    def location(self) -> str:
        """The ` loc(...)` of operations that are written now, or an empty string."""
        # now that it is used: what writes no operation must not change the text
        if type(self.loc) is tuple:
            self.loc = self.module.locations.of(*self.loc)
        return self.loc

    def custom_call(self, target: str, names: Sequence[str], avals: Sequence[Any], out_avals: Sequence[Any],
                    **options: Any) -> list[str]:
        """A call of the kernel `target` on values of `avals` (or type strings): the names of its results.

        The options are those of `custom_calls.text`; `once` makes one device of several do it, on whole
        operands; `rule` is a Shardy rule as `custom_calls.sharding_rule` writes it; `leading` axes of all
        values are those of a batch, along which a kernel that is registered so is called on parts.  With
        `batch` in its place, what has two more axes is matrices in column-major order.
        """
        self.module.targets.setdefault(target)
        once = self.module.maximal_sharding(len(out_avals)) if options.pop("once", False) else ""
        batch, rule = options.pop("batch", None), options.pop("rule", "")
        axes = options.pop("leading", batch or 0)
        if self.module.partition is None or not custom_calls.cut_by_batch(target):
            axes = 0
        if batch is not None:
            for key, listed in (("layouts", avals), ("result_layouts", out_avals)):
                options[key] = [custom_calls.column_major(a.ndim) if a.ndim == batch + 2 else None
                                for a in listed]
        cut = custom_calls.cut_in_front(axes, avals, out_avals) if axes else ""
        options["attributes"] = options.get("attributes") or once or rule or cut
        results = self.emit(custom_calls.text(target, names, avals, out_avals, **options), len(out_avals))
        if not once:
            return results
        # other devices' memory holds nothing until they get the value
        return [name if aval is ORDERED_TOKEN.aval else self.emit(
            f"sdy.sharding_constraint {name} {self.module.replicated(aval)} : {aval.mlir}")
            for name, aval in zip(results, out_avals)]

    def constant(self, value: Any, dtype: Any = None) -> str:
        """The name of a constant, written once in each region."""
        value = np.asarray(value, dtype)
        if value.dtype == float0:
            value = np.zeros(value.shape, bool)
        aval = ShapedArray(value.shape, value.dtype)
        key = (aval, value.tobytes())
        name = self.constants.get(key)
        if name is None:
            saved, self.loc = self.loc, ""
            name = self.constants[key] = self.emit(f"stablehlo.constant {dense(value)} : {aval.mlir}")
            self.loc = saved
        return name

    def manual_computation(self, names: Sequence[str], in_types: Sequence[tuple[str, str]],
                           in_shardings: Sequence[str], out_shardings: Sequence[str],
                           out_types: Sequence[str], mesh: Any, axes: Sequence[str], body: Body) -> list[str]:
        """An `sdy.manual_computation` over mesh `axes`; `body` as for `region`.  Returns the names of its
        results."""
        module, listed = self.module, ", ".join
        saved, module.manual = module.manual, (mesh, (*module.manual[1], *axes))
        args, lines = self.block([t for t, _ in in_types], body, "sdy.return")
        module.manual = saved
        quoted = listed(f'"{axis}"' for axis in axes)
        return self.emit(
            f"sdy.manual_computation({listed(names)}) in_shardings=[{listed(in_shardings)}] "
            f"out_shardings=[{listed(out_shardings)}] manual_axes={{{quoted}}} ({args}) "
            f"{{\n{lines}\n{self.indent}}} : ({listed(t for _, t in in_types)}) -> ({listed(out_types)})",
            len(out_types))

    def single_device_region(self, mesh: Any, axes: Sequence[str], body: Callable[[], Any]) -> Any:
        """What `body()` writes with these axes of a mesh of one device manual."""
        module = self.module
        saved, module.manual = module.manual, (mesh, (*module.manual[1], *axes))
        results = body()
        module.manual = saved
        return results

    def in_memory(self, name: str, aval: ShapedArray, kind: str | None) -> str:
        """A value in a kind of the devices' memory; None is the default, to which it returns if anything left
        it."""
        if kind is None and not self.module.leaves_device:
            return name
        self.module.leaves_device = True
        attributes = f', mhlo.frontend_attributes = {{_xla_buffer_placement = "{kind or "device"}"}}'
        return self.emit(custom_calls.text("annotate_device_placement", [name], [aval], [aval], api_version=1,
                                           effect=True, attributes=attributes))

    def on_every_device(self, names: Sequence[str], avals: Sequence[Any], out_avals: Sequence[Any],
                        body: Callable[[Sequence[str]], list[str]]) -> list[str]:
        """`body(names)` written where every mesh axis is manual, if any is: every device does it with whole
        values."""
        mesh, manual = self.module.manual
        rest = [a for a in mesh.axis_names if a not in manual] if mesh else ()
        if not rest:
            return body(names)
        name = self.module.mesh(mesh)

        def whole(aval: ShapedArray) -> str:
            return f"<@{name}, [{', '.join(['{}'] * physical(aval).ndim)}]>"
        out_types = [a.mlir for a in out_avals]
        return self.manual_computation(
            names, [(a.mlir, a.mlir) for a in avals], list(map(whole, avals)), list(map(whole, out_avals)),
            out_types, mesh, rest, lambda args: (body(args), out_types))

    def region(self, avals: Sequence[Any], body: Body, isolated: bool = True, scope: str = "") -> str:
        """The text of a region whose block takes arguments of `avals`; `body(names) -> names` writes it.

        An entry of `avals` may be a type string.  `isolated=False` lets the body use values from outside.
        `scope` is put around the names of its operations.
        """
        outer = self.loc, self.base, self.scope
        if scope and self.module.locations is not None:
            self.base, self.scope = f"{self.base}{provenance.scope_text(self.scope)}{scope}/", ""
            self.loc = self.source, self.base[:-1]
        args, lines = self.block([a if isinstance(a, str) else a.mlir for a in avals], body,
                                 "stablehlo.return", isolated)
        self.loc, self.base, self.scope = outer
        head = f"{self.indent}^bb0({args}):\n" if args else ""
        return f"({{\n{head}{lines}\n{self.indent}}})"

    def block(self, types: Sequence[str], body: Body, terminator: str,
              isolated: bool = True) -> tuple[str, str]:
        """(the arguments, the lines) of a block that `body` writes, one level further in."""
        outer_lines, outer_constants, outer_loc = self.lines, self.constants, self.loc
        self.lines, self.constants = [], {} if isolated else dict(self.constants)
        self.indent += "  "
        args = []
        for _ in types:
            args.append(f"%{self.count}")
            self.count += 1
        results, result_types = body(args)
        returned = f"{terminator} {', '.join(results)} : {', '.join(result_types)}" if results else terminator
        inner = "\n".join([*self.lines, f"{self.indent}{returned}"])
        self.indent = self.indent[:-2]
        self.lines, self.constants, self.loc = outer_lines, outer_constants, outer_loc
        return ", ".join(f"{a}: {t}" for a, t in zip(args, types)), inner

    def jaxpr_region(self, jaxpr: Jaxpr) -> str:
        """A region that runs a program."""
        return self.region(jaxpr.in_avals, lambda names: (self.inline(jaxpr, names),
                                                          [a.mlir for a in jaxpr.out_avals]))

    def locate(self, name: str) -> None:
        """Give the operations that are written now this name behind the scopes of the equation."""
        if self.module.locations is not None:
            self.loc = self.source, f"{self.base}{provenance.scope_text(self.scope)}{name}"

    def inline(self, jaxpr: Jaxpr, names: Sequence[str]) -> list[str]:
        """Write a program's equations here, its inputs being `names`; returns the names of its outputs."""
        env = dict(zip(jaxpr.invars, names, strict=True))
        locations, base = self.module.locations, f"{self.base}{provenance.scope_text(self.scope)}"
        saved = self.loc, self.source, self.base, self.scope
        partitioned = self.module.partition is not None
        if partitioned:
            env = {v: self.terms(name, v.aval) for v, name in env.items()}
        for eqn in jaxpr.eqns:
            if locations is not None:
                self.source, self.base, self.scope = eqn.source, base, eqn.name_stack
                self.locate(eqn.primitive.name)
            operands = [self.terms(self.constant(v.val, v.aval.dtype), v.aval, True) if type(v) is Literal
                        else env[v] for v in eqn.invars]
            primitive = eqn.primitive
            rule = rule_for(self.platform, primitive.lower)
            if rule is None:
                raise no_lowering(primitive, self.platform)
            if primitive.structural and any(is_extended(v.aval.dtype) and v.aval.dtype.physical_shape
                                            for v in eqn.invars):
                results = self.lower_extended(eqn, operands)
            else:
                results = rule(self, eqn, *operands)
            if partitioned:
                results = self.as_typed(eqn, results)
            if primitive.multiple_results:
                env.update(zip(eqn.outvars, results, strict=True))
            else:
                env[eqn.outvars[0]] = results
        self.loc, self.source, self.base, self.scope = saved
        return [self.constant(v.val, v.aval.dtype) if type(v) is Literal else env[v] for v in jaxpr.outvars]

    def as_typed(self, eqn: Eqn, results: Any) -> Any:
        """The results with the shardings of their types, if an operand or a result is over Explicit axes."""
        sharding = next((v.aval.explicit for v in (*eqn.outvars, *eqn.invars) if v.aval.explicit), None)
        if sharding is None or eqn.primitive.says_sharding:
            return results
        listed = results if eqn.primitive.multiple_results else [results]
        rule = eqn.primitive.sharding or eqn.primitive.axes
        if rule is None and any(True for _ in sub_jaxprs(eqn.params)):
            names = [self.terms(name, v.aval) for name, v in zip(listed, eqn.outvars)]
        else:
            names = [self.emit(f"sdy.sharding_constraint {name} {self.module.type_sharding(sharding, v.aval)}"
                               f" : {v.aval.mlir}") for name, v in zip(listed, eqn.outvars)]
        return names if eqn.primitive.multiple_results else names[0]

    def terms(self, name: str, aval: ShapedArray, whole: bool = False) -> str:
        """The value, unreduced if its type says so, which XLA does not see through loops and branches.

        One that is `whole` becomes terms, all but one of them zero.
        """
        if aval.explicit is None or not aval.explicit._terms or self.module.partition is None:
            return name
        stated = aval.explicit.with_spec(aval.explicit.spec.update(unreduced=frozenset()))
        for sharding in (stated, aval.explicit) if whole else (aval.explicit,):
            text = self.module.type_sharding(sharding, aval.update(sharding=sharding))
            name = self.emit(f"sdy.sharding_constraint {name} {text} : {aval.mlir}")
        return name

    def lower_fun(self, fun: Callable[..., Any], eqn: Eqn, *names: str,
                  avals: Sequence[ShapedArray] | None = None) -> Any:
        """Lower an equation as what a Python function over primitives does with `names`: its operands, or of
        `avals`."""
        # in which memory they are is known of the operands and results of the equation
        plain = [a.update(memory_space=None) if a.memory else a for a in avals or [
            physical(v.aval.update(sharding=None)) for v in eqn.invars]]
        with entering(EVAL):
            jaxpr = trace_to_jaxpr(lambda *xs: _listed(fun(*xs)), plain, source=eqn.source)
        results = self.inline(embed_constants(jaxpr), names)
        return results if eqn.primitive.multiple_results else results[0]

    def lower_extended(self, eqn: Eqn, names: Sequence[str]) -> Any:
        """A structural operation on PRNG keys: the batching rule over their words, as one axis, says what to
        do."""
        def fun(*values: Any) -> Any:
            words = next(v.aval for v in eqn.invars if is_extended(v.aval.dtype)).dtype.physical_shape
            axis = MappedAxis(math.prod(words))
            dims = [v.aval.ndim if is_extended(v.aval.dtype) else None for v in eqn.invars]
            flat = [x if dim is None else reshape(x, (*x.shape[:dim], axis.size))
                    for x, dim in zip(values, dims)]
            out, dim = eqn.primitive.batching(axis, flat, dims, **eqn.params)
            out = transpose(out, [i for i in range(out.ndim) if i != dim] + [dim])
            return reshape(out, (*out.shape[:-1], *words))
        return self.lower_fun(fun, eqn, *names)

    def replicate(self, name: str, aval: ShapedArray, axes: Sequence[int]) -> str:
        """The value, whole along `axes` on every device, for what XLA's partitioner cannot split."""
        partition, manual = self.module.partition, self.module.manual[1]
        mesh = partition and (partition.mesh or next(iter(self.module.meshes), None))
        if not axes or not mesh or mesh.size == 1:
            return name
        if set(manual) >= set(mesh.axis_names):
            return name
        from ..sharding.named import NamedSharding
        from ..sharding.spec import PartitionSpec
        others = [PartitionSpec.UNCONSTRAINED] * aval.ndim if mesh.auto_axes else aval.splits
        spec = PartitionSpec(*[None if i in axes else entry for i, entry in enumerate(others)])
        text = self.module.sharding(NamedSharding(mesh, spec), aval)
        return self.emit(f"sdy.sharding_constraint {name} {text} : {aval.mlir}")

    def call(self, jaxpr: Jaxpr, names: Sequence[str], attributes: Sequence[tuple[str, str]] = (),
             scope: str = "") -> list[str]:
        """Call the function of a program; `attributes` are pairs of strings that XLA gives on to its
        operations, and it puts `scope`, by default jit(name), in front of their names."""
        if self.tags and not attributes:
            return self.inline(jaxpr, names)    # each operation carries them
        name = self.module.function(jaxpr)
        if self.module.locations is not None:
            called = f"{self.scope}/{scope or f'jit({jaxpr.name})'}".lstrip("/")
            self.loc = self.source, f"{self.base}{provenance.scope_text(called)}"[:-1]
        types = [a.mlir for a in jaxpr.in_avals]
        out_types = [a.mlir for a in jaxpr.out_avals]
        if self.platform.keeps_calls and jaxpr in self.module.noinline:
            attributes = (*attributes, ("inlineable", "false"))
        marks = ""
        if attributes:
            marks = f" {{mhlo.frontend_attributes = {custom_calls.attribute(dict(attributes))}}}"
        # within Shardy's operations its dialect is the default
        call = "func.call" if self.module.manual[1] else "call"
        return self.emit(f"{call} @{name}({', '.join(names)}){marks} : ({', '.join(types)}) -> "
                         f"({', '.join(out_types)})", len(out_types))


Module.context = Context


def no_lowering(primitive: Primitive, platform: Any) -> NotImplementedError:
    """The error for a primitive that has no rule for a platform."""
    known = ", ".join(name or "every other" for name, rule in (primitive.lower or {}).items() if rule)
    also = f"; it has one for {known}" if known else ""
    return missing(primitive, "lower", f" for platform {platform}{also}")


def put_in_memory(jaxpr: Jaxpr) -> dict[Any, Any]:
    """{variable: sharding} of what a program puts into another kind of memory than the default."""
    found = [eqn for eqn in jaxpr.eqns if eqn.params and getattr(eqn.params.get("sharding"), "_kind", None)]
    if not found:
        return {}
    from ..primitives.parallel.sharding import device_put_p  # programs in one memory need none of it
    return {eqn.outvars[0]: eqn.params["sharding"] for eqn in found if eqn.primitive is device_put_p}


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
