"""`hlotrace dump`: print what becomes of a function on its way to the machine.

    hlotrace dump FUNCTION TYPE... [--stage STAGE] [--grad] [--vmap] [--out DIR]
                  [--mesh AXIS=SIZE,...] [--in_spec SPEC]... [--out_spec SPEC]... [--platform PLATFORM]
                  [--html FILE] [--diff FUNCTION | --diff git:REVISION]

FUNCTION is `module:function` or `path/file.py:function`.  A TYPE, one an argument, is `f32[8,128]`, `bf16[]`,
`i32[3]` or `f32`; --args_from takes pytrees and values from Python instead. STAGE is one of jaxpr, outlined,
stablehlo, sharded, sharding, hlo, optimized, collectives, cost, memory, ptx; several with commas or repeated;
or `all`. `outlined` shows which stretches of equations repeat and become one function each.  `ptx`, of NVIDIA
GPUs, is the kernels: registers, bytes spilled, of shared memory and of code, and their text.

With --mesh the program is for several devices.  `sharded` is then its text after Shardy's propagation, with
the mesh axes that split each value, and `sharding` says for each operation, with your line, how its values
are split and what will be communicated for it; they need no compile.  `collectives` lists what the compiled
program communicates: kind, mesh axes, bytes, and your line.  `cost` and `memory` are those of one device. A
SPEC says for each dimension which mesh axis splits it, with commas: `data,-` splits dimension 0 over data;
`-` is whole, `data+model` are two axes for one dimension, and missing dimensions are whole.  `?` leaves an
argument to the compiler.  Say --in_spec once for each argument, or once with semicolons: `data;-,model`.  A
SPEC holds for every leaf of a pytree; for more, `--in_spec path/file.py:function` names a function that
returns a tuple of PartitionSpecs and pytrees of them, one for each argument.  Several --out_spec are the
entries of a tuple of results. PLATFORM is `cpu` (as many devices as the mesh has are made up); a topology of
chips that need not be here, `v5e:2x4` (needs libtpu) or `h100:8`, `h100:2x8` (GPUs, hosts x GPUs: needs the
CUDA plugin and ptxas); or `gpu`, `cuda`, `rocm`, `tpu`: their text (jaxpr, outlined, stablehlo, sharded,
sharding, hlo) needs neither the device nor its plugin; the other stages compile, and need both. What your own
code prints goes to stderr.

--html writes a page for a browser, which needs no network: all stages side by side, where a click on an
operation or on a line of yours lights what came of it in the others, with costs, memory and collectives, and
of NVIDIA GPUs the kernels.  It compiles, but not for --platform gpu, cuda, rocm and tpu.

--diff prints the jaxprs of two functions as one: a line of both begins with a space, one of the first alone
with `-`, of the second with `+`, and in colours on a terminal.  Operations are matched by what they are made
of, not by their order, and called functions are written out.  `git:REVISION` is the same function as it was
in that revision of the repository that its file is in, with all that it imports from there;
`git:REVISION:path/file.py:function` another. With --html it is a page of two columns.

    hlotrace dump hlotrace.numpy:tanh f32[8,128] --stage jaxpr,stablehlo
    hlotrace dump train.py:loss --args_from train.py:example_args --grad --stage all --out /tmp/loss
    hlotrace dump train.py:layer f32[64,256] f32[256,512] --mesh data=4,model=2 --in_spec 'data;-,model'
    --stage sharded
    hlotrace dump train.py:loss --args_from train.py:example_args --grad --html loss.html
"""
import contextlib
import functools
import math
import sys
import tempfile
import textwrap
from pathlib import Path

from absl import flags

import hlotrace
from hlotrace.api.flat import abstract
from hlotrace.api.parallel.explain_sharding import plan_of
from hlotrace.api.shape_dtype_struct import struct_of
from hlotrace.core.errors import did_you_mean
from hlotrace.core.platforms import PLATFORMS, platform_named
from hlotrace.core.pytrees import pytree
from hlotrace.core.source_info import describe
from hlotrace.inspection import gpu_kernels, propagated_text
from hlotrace.inspection.communication import collectives, table
from hlotrace.inspection.matching import changes
from hlotrace.inspection.pages.diff_page import diff_page
from hlotrace.inspection.pages.document import Stage
from hlotrace.inspection.pages.ptx_rows import ptx_rows
from hlotrace.lowering.outline import LEAST_SAVED
from hlotrace.runtime.devices import chips, gpu_targets, plugins
from hlotrace.runtime.executables.blocks import blocks_of
from hlotrace.sharding import NamedSharding, SingleDeviceSharding
from hlotrace.tools import command_line as cli, revisions

SUFFIXES = {"jaxpr": "txt", "outlined": "txt", "stablehlo": "mlir", "sharded": "mlir", "sharding": "txt",
            "hlo": "txt", "optimized": "txt", "collectives": "txt", "cost": "txt", "memory": "txt",
            "ptx": "ptx"}
OVER_A_MESH = ("sharded", "sharding", "collectives")
COMPILED = ("optimized", "collectives", "cost", "memory", "ptx")


def parse_stages(values, mesh, platform=None):
    """The stages named in the values of --stage, each once, in the order given; `mesh`: is there one?"""
    names = [name.strip() for value in values for name in value.split(",")]
    for name in names:
        if name not in SUFFIXES and name != "all":
            raise cli.UsageError(f"there is no stage {name!r}; known are {', '.join(SUFFIXES)}, all")
    chip = chips.find((platform or "").removeprefix("cuda:").removeprefix("gpu:").partition(":")[0])
    every = [name for name in SUFFIXES if (mesh or name not in OVER_A_MESH)
             and (chip and chip.cuda or name != "ptx")]
    return every if "all" in names else list(dict.fromkeys(names))


class Place:
    """Where --mesh and --platform put the program: a mesh, one device, or with neither the default.

    The devices are looked up when the user's module has been loaded, as that may say how many there are.  For
    text alone those of the CPU are used in place of a platform's: `lowered_for` is then the platform,
    otherwise None.
    """

    def __init__(self, mesh, platform, compiles=True):
        self.sizes = cli.parse_mesh(mesh) if mesh else {}
        self.platform, _, self.topology = (platform or "cpu").partition(":")
        known = {name: None for p in PLATFORMS for name in (*p.aliases, p)} | _plugins()
        if chip := chips.find(self.platform):
            self.platform, self.topology = chip.platform, platform
        elif self.platform not in known or self.topology and self.platform not in ("tpu", "cuda", "gpu"):
            raise cli.UsageError(f"--platform {platform!r}: want {', '.join(known)} or the name of a "
                                 "topology, such as h100:8 or v5e:2x4"
                                 f"{did_you_mean(self.platform, chips.CHIPS)}")
        self.requested = bool(mesh or platform)
        self.lowered_for = self.platform if platform and not (compiles or self.topology) else None
        self.here = "cpu" if self.lowered_for else self.platform
        if self.here == "cpu" and self.sizes:
            cli.make_cpu_devices(math.prod(self.sizes.values()))

    def devices(self):
        if self.topology:
            return hlotrace.topologies.get_topology_desc(self.topology, self.platform).devices
        return hlotrace.devices(self.here)

    @functools.cached_property
    def mesh(self):
        """The Mesh of --mesh, or None."""
        try:
            if self.sizes:
                auto = (hlotrace.sharding.AxisType.Auto,) * len(self.sizes)
                return hlotrace.make_mesh(self.sizes.values(), self.sizes, auto, devices=self.devices())
            return None
        except (ValueError, RuntimeError) as error:
            raise cli.UsageError(f"--mesh: {error}") from error

    @functools.cached_property
    def default(self):
        """The sharding of arguments that have no SPEC, or None."""
        try:
            return SingleDeviceSharding(self.devices()[0]) if self.requested and not self.sizes else None
        except (ValueError, RuntimeError) as error:
            raise cli.UsageError(f"--platform: {error}") from error

    def sharding(self, spec):
        """The NamedSharding of a PartitionSpec; None for None."""
        try:
            return spec if spec is None else NamedSharding(self.mesh, spec)
        except (TypeError, ValueError) as error:
            raise cli.UsageError(str(error)) from error

    def entered(self):
        return hlotrace.set_mesh(self.mesh) if self.sizes else contextlib.nullcontext()


def _plugins():
    try:
        return plugins.named()
    except ValueError as error:
        raise cli.UsageError(str(error)) from error


def placed(args, specs, place):
    """The arguments, their arrays replaced by ShapeDtypeStructs with their shardings."""
    if specs and not place.sizes:
        raise cli.UsageError("--in_spec and --out_spec name axes of a --mesh; give one")
    if specs and len(specs) != len(args):
        raise cli.UsageError(f"--in_spec gives {len(specs)} SPECs for {len(args)} arguments; `?` leaves one "
                             "to the compiler")
    if not place.requested:
        return args
    leaves, structure = hlotrace.tree.flatten(args)
    try:
        flat = pytree.flatten_axes("--in_spec", structure, tuple(specs)) if specs else [None] * len(leaves)
    except ValueError as error:
        raise cli.UsageError(str(error)) from error
    return structure.unflatten([with_sharding(x, place.sharding(spec) or place.default)
                                for x, spec in zip(leaves, flat)])


def with_sharding(x, sharding):
    """The type of an array, with a sharding; what is none, or has no sharding, as it is."""
    try:
        aval = abstract(x)
    except TypeError:       # a static argument, or a mistake that tracing tells
        return x
    try:
        return x if sharding is None else struct_of(aval, sharding)
    except ValueError as error:
        raise cli.UsageError(f"--in_spec of an argument {aval.str_short()}: {error}") from error


class Program:
    """A function traced for some arguments; each stage is a method that gives its text."""

    def __init__(self, fun, args, locations=False, place=None, out_shardings=None):
        self.locations = locations
        self.place = place or Place(None, None)
        if out_shardings is not None or not hasattr(fun, "trace"):
            fun = hlotrace.jit(fun, out_shardings=out_shardings)
        with self.place.entered(), cli.prints_to_stderr():
            try:
                self.traced = fun.trace(*args)
            except Exception as error:
                raise cli.in_users_code(error) from error

    @functools.cached_property
    def lowered(self):
        with self.place.entered():
            try:
                return self.traced.lower(platform=self.place.lowered_for)
            except (ValueError, RuntimeError) as error:
                raise cli.in_users_code(error) from error

    @functools.cached_property
    def compiled(self):
        return self.compile()

    def compile(self, options=None):
        try:
            return self.lowered.compile(compiler_options=options)
        except (ValueError, RuntimeError) as error:      # for one, a chip with too little memory
            raise cli.UsageError(str(error)) from error

    @functools.cached_property
    def mesh(self):
        if self.lowered._mesh is None:
            raise cli.UsageError(f"the stages {', '.join(OVER_A_MESH)} are those of a program over a mesh; "
                                 "give --mesh")
        return self.lowered._mesh

    def jaxpr(self):
        return str(self.traced.jaxpr)

    def outlined(self):
        program = self.lowered._lowered(self.locations)
        jaxpr, found = program.outlined()
        if not found:
            return (f"nothing repeats that is worth a function: it would have to save {LEAST_SAVED} equations"
                    if hlotrace.config.hlotrace_outline else "nothing is looked for: hlotrace_outline is off")
        blocks = {b.jaxpr: b.jaxpr.name for b in found}
        after = sum(len(part.eqns) for part in (jaxpr, *blocks))
        where = "the CPU" if program.platform == "cpu" else program.platform
        _, pieces = blocks_of(program) or (None, [])
        apart = dict.fromkeys(blocks[p.program] for p in pieces if p.program in blocks)
        texts = [str(part.replace(eqns=[     # calls by name: each block is printed once
            e.replace(params=e.params | {"jaxpr": blocks[e.params["jaxpr"]]})
            if e.params.get("jaxpr") in blocks else e
            for e in part.eqns])) for part in (jaxpr, *blocks)]
        return "\n".join([
            *map(str, found),
            f"equations: {after + sum(b.saved - b.calls for b in found)} -> {after}",
            f"on {where}: {len(pieces)} pieces, {len({p.program for p in pieces})} compiled; blocks that "
            "are pieces: "
            + ", ".join(apart) if pieces else f"on {where}: one executable",
            *(f"\n{name} = {text}" for name, text in zip([jaxpr.name, *blocks.values()], texts))])

    def stablehlo(self):
        return self.lowered.as_text(debug_info=self.locations)

    def sharded(self):
        return self.mesh and propagated_text.propagated(self.lowered.as_text(debug_info=True))

    def sharding(self):
        return self.mesh and str(plan_of(self.lowered))

    def collectives(self):
        return table(collectives(self.compiled.as_text(), self.mesh))

    def hlo(self):
        return self.lowered.as_text("hlo")

    def optimized(self):
        return self.compiled.as_text()

    def cost(self):
        return "\n".join(f"{name}: {value:.15g}"
                         for name, value in sorted(self.compiled.cost_analysis().items()))

    def view(self):
        """The page of --html."""
        if self.place.lowered_for:
            return self.lowered.view()
        if platform_named(self.place.platform or "cpu") != "cuda" or not gpu_targets.ptxas():
            return self.compiled.view()
        compiled, texts, found = self.kernels()
        page = compiled.view()
        page.document.stages.append(Stage("PTX", ptx_rows(texts, found, compiled.as_text())))
        return page

    def memory(self):
        stats = self.compiled.memory_analysis()
        return "\n".join(f"{name}: {getattr(stats, name)}" for name in dir(stats)
                         if name.endswith("_in_bytes"))

    def ptx(self):
        """What each kernel takes, as comments, and their PTX."""
        if platform_named(self.place.platform) != "cuda":
            raise cli.UsageError(f"--stage ptx is of NVIDIA GPUs, not of {self.place.platform}: say "
                                 "--platform h100")
        if gpu_targets.ptxas() is None:
            raise cli.UsageError("--stage ptx needs NVIDIA's ptxas: "
                                 f"{gpu_targets.install_line(plugins.find().get('cuda'))}")
        _, texts, found = self.kernels()
        return "\n\n".join([textwrap.indent(gpu_kernels.table(found), "// "), *texts])

    def kernels(self):
        """(the compiled program, its texts of PTX, the Kernels in them)."""
        with tempfile.TemporaryDirectory() as folder:
            compiled = self.compile(gpu_kernels.options_for(folder))
            texts = gpu_kernels.dumped(folder)
        return compiled, texts, gpu_kernels.kernels(texts, gpu_targets.ptxas(), compiled.as_text())


def diff(program, options, args, function):
    """Print how a Program and that of --diff differ, or write the page of it."""
    if options.diff.startswith(revisions.PREFIX):
        other = revisions.function_at(options.diff, function)
    else:
        other = contextlib.nullcontext((cli.load(options.diff, "--diff"), lambda place: place))
    with other as (fun, rename):
        second = Program(cli.transformed(fun, options), args, options.locations, program.place)
    found = changes(program.traced.jaxpr, second.traced.jaxpr)
    if options.html:
        cli.write_page(options.html, diff_page((function, options.diff), found, rename))
    else:
        print(difference(found, rename))


def difference(found, rename):
    """Changes as one text, with colours for a terminal."""
    color = {"-": "\x1b[31m", "+": "\x1b[32m"} if sys.stdout.isatty() else {}
    lines = []
    for change in found:
        paint = color.get(change.mark, "")
        place = f"    # {rename(describe(change.source))}" if change.mark != " " and change.source else ""
        lines.append(f"{paint}{change.mark} {change.text}{place}" + "\x1b[0m" * bool(paint))
    return "\n".join(lines)


def out_shardings(values, place):
    """What --out_spec gives jit, or None."""
    specs = cli.parse_specs(values, "--out_spec")
    if specs and not place.sizes:
        raise cli.UsageError("--in_spec and --out_spec name axes of a --mesh; give one")
    shardings = hlotrace.tree.map(place.sharding, tuple(specs), is_leaf=cli.is_spec)
    return shardings[0] if len(shardings) == 1 else shardings or None


def dump(positional, options):
    """Print or write every stage that the command line asks for."""
    stages = parse_stages(options.stage, options.mesh, options.platform)
    if (options.html or options.diff) and not options["stage"].present:
        stages = []
    compiles = not {*COMPILED}.isdisjoint(stages) or options.html and options.platform == "cpu"
    place = Place(options.mesh, options.platform, compiles)
    fun = cli.load(positional[0])
    args = placed(cli.arguments(fun, positional[1:], options.args_from),
                  cli.parse_specs(options.in_spec, "--in_spec"), place)
    program = Program(cli.transformed(fun, options), args, options.locations, place,
                      out_shardings(options.out_spec, place))
    stem = "_".join(["vmap"] * options.vmap + ["grad"] * options.grad + [positional[0].rpartition(":")[2]])
    if options.diff:
        diff(program, options, args, positional[0])
    elif options.html:
        cli.write_page(options.html, program.view().html)
    for stage in stages:
        text = getattr(program, stage)().rstrip() + "\n"
        if options.out:
            path = Path(options.out, f"{stem}.{stage}.{SUFFIXES[stage]}")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
            except OSError as error:
                raise cli.UsageError(f"--out {options.out}: {error}") from error
            print(path)
        else:
            print(f"==== {stage} ====\n{text}" if len(stages) > 1 else text, end="", flush=True)


def define_flags(options):
    own = {"flag_values": options}
    flags.DEFINE_multi_string("stage", ["stablehlo"], f"Stages to print: {', '.join(SUFFIXES)}, all.", **own)
    flags.DEFINE_bool("locations", False, "Print StableHLO with the lines of Python it came from.", **own)
    flags.DEFINE_string("mesh", None, "The axes of a mesh of devices, data=4,model=2.", **own)
    flags.DEFINE_multi_string("out_spec", [], "SPECs of the results.", **own)
    flags.DEFINE_string("platform", None, "cpu, gpu, cuda, rocm, tpu or a topology, h100:8 or v5e:2x4.",
                        **own)
    flags.DEFINE_string("out", None, "Write a file for each stage into this folder, and print the paths.",
                        **own)
    flags.DEFINE_string("html", None, "Write a page with all stages into this file.", **own)
    flags.DEFINE_string("diff", None, "Another function, or git:REVISION: print how it differs.", **own)


def main(arguments=None):
    """The command.  Returns its exit status; 2 for a mistake in the command line or in the function."""
    return cli.run_command("hlotrace dump", __doc__, define_flags, dump, arguments)


if __name__ == "__main__":
    sys.exit(main())
