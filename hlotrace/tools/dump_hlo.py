"""`hlotrace-dump`: print what becomes of a function on its way to the machine.

    hlotrace-dump FUNCTION TYPE... [--stage STAGE] [--grad] [--vmap] [--out DIR]
                  [--mesh AXIS=SIZE,...] [--in_spec SPEC]... [--out_spec SPEC]... [--platform PLATFORM]
                  [--html FILE] [--diff FUNCTION]

FUNCTION is `module:function` or `path/file.py:function`.  A TYPE, one an argument, is `f32[8,128]`, `bf16[]`,
`i32[3]` or `f32`; --args_from takes pytrees and values from Python instead. STAGE is one of jaxpr, outlined,
stablehlo, sharded, sharding, hlo, optimized, collectives, cost, memory; several with commas or repeated; or
`all`. `outlined` shows which stretches of equations repeat and become one function each.

With --mesh the program is for several devices.  `sharded` is then its text after Shardy's propagation, with
the mesh axes that split each value, and `sharding` says for each operation, with your line, how its values
are split and what will be communicated for it; they need no compile.  `collectives` lists what the compiled
program communicates: kind, mesh axes, bytes, and your line.  `cost` and `memory` are those of one device. A
SPEC says for each dimension which mesh axis splits it, with commas: `data,-` splits dimension 0 over data;
`-` is whole, `data+model` are two axes for one dimension, and missing dimensions are whole.  `?` leaves an
argument to the compiler.  Say --in_spec once for each argument, or once with semicolons: `data;-,model`.  A
SPEC holds for every leaf of a pytree; for more, `--in_spec path/file.py:function` names a function that
returns a tuple of PartitionSpecs and pytrees of them, one for each argument.  Several --out_spec are the
entries of a tuple of results. PLATFORM is `cpu` (as many devices as the mesh has are made up), `tpu:v5e:2x4`
(any topology, no TPU needed, but libtpu), or `gpu`, `cuda`, `rocm`, `tpu`: their text (jaxpr, outlined,
stablehlo, sharded, sharding, hlo) needs neither the device nor its plugin; the other stages compile, and need
both. What your own code prints goes to stderr.

--html writes a page for a browser, which needs no network: all stages side by side, where a click on an
operation or on a line of yours lights what came of it in the others, with costs, memory and collectives.  It
compiles, but not for --platform gpu, cuda, rocm and tpu.

--diff prints the jaxprs of two functions as one: a line of both begins with a space, one of the first alone
with `-`, of the second with `+`, and in colours on a terminal.  Operations are matched by what they are made
of, not by their order, and called functions are written out.

    hlotrace-dump hlotrace.numpy:tanh f32[8,128] --stage jaxpr,stablehlo
    hlotrace-dump train.py:loss --args_from train.py:example_args --grad --stage all --out /tmp/loss
    hlotrace-dump train.py:layer f32[64,256] f32[256,512] --mesh data=4,model=2 --in_spec 'data;-,model'
    --stage sharded
    hlotrace-dump train.py:loss --args_from train.py:example_args --grad --html loss.html
"""
import contextlib
import functools
import importlib
import importlib.util
import math
import os
import re
import sys
import traceback
from pathlib import Path

from absl import flags

import hlotrace
from hlotrace.api.parallel.explain_sharding import plan_of
from hlotrace.api.stages import abstract, struct_of
from hlotrace.core import dtypes
from hlotrace.core.errors import did_you_mean
from hlotrace.core.platforms import PLATFORMS
from hlotrace.core.pytrees import pytree
from hlotrace.core.source_info import describe
from hlotrace.inspection import shardy
from hlotrace.inspection.communication import collectives, table
from hlotrace.inspection.matching import changes
from hlotrace.lowering.outline import LEAST_SAVED
from hlotrace.runtime.devices import plugins
from hlotrace.runtime.executables.blocks import blocks_of
from hlotrace.sharding import NamedSharding, P, SingleDeviceSharding

SUFFIXES = {"jaxpr": "txt", "outlined": "txt", "stablehlo": "mlir", "sharded": "mlir", "sharding": "txt",
            "hlo": "txt", "optimized": "txt", "collectives": "txt", "cost": "txt", "memory": "txt"}
OVER_A_MESH = ("sharded", "sharding", "collectives")
COMPILED = ("optimized", "collectives", "cost", "memory")
DTYPES = {"pred": dtypes.bool_} | {name: d for d in dtypes.SUPPORTED
                                   for name in (d.name, dtypes.short_name(d))}
_OURS = str(Path(hlotrace.__file__).parent)


class UsageError(Exception):
    """An error of usage, printed as one line on stderr, with exit status 2."""


def _in_users_code(error):
    """A UsageError for an exception that came out of the user's code: its class, words and line."""
    where = [f"{f.filename}:{f.lineno}: " for f in traceback.extract_tb(error.__traceback__)
             if not f.filename.startswith((_OURS, "<frozen"))][-1:]
    return UsageError("".join(where) + f"{type(error).__name__}: {error}")


def _prints_to_stderr():
    """For the user's code: stdout is for what the command prints."""
    return contextlib.redirect_stdout(sys.stderr)


def load(reference, flag="FUNCTION"):
    """The object that `module:name` or `path/file.py:name` names; the name may have dots."""
    module_name, colon, name = reference.rpartition(":")
    if not (module_name and name):
        if reference.endswith(".py"):
            instead = f"{reference}:NAME, with the name of a function in it"
        elif "." in reference:
            instead = ":".join(reference.rsplit(".", 1))
        else:
            instead = f"FILE.py:{reference.strip(':')}"
        raise UsageError(f"{flag} {reference!r} is neither module:function nor path/file.py:function; say "
                         f"{instead}")
    is_file = module_name.endswith(".py")
    if is_file and not Path(module_name).is_file():
        raise UsageError(f"{flag} {reference!r}: there is no file {module_name}")
    sys.path.insert(0, str(Path(module_name).parent.resolve()) if is_file else os.getcwd())
    try:
        with _prints_to_stderr():
            if is_file:
                spec = importlib.util.spec_from_file_location("dumped_module", module_name)
                module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
            else:
                module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if not is_file and (module_name + ".").startswith(f"{error.name}."):
            raise UsageError(f"{flag} {reference!r}: there is no module {error.name}") from error
        raise _in_users_code(error) from error
    except Exception as error:
        raise _in_users_code(error) from error
    try:
        found = functools.reduce(getattr, name.split("."), module)
    except AttributeError as error:
        functions = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
        raise UsageError(f"{flag} {reference!r}: {module_name} has no {name}"
                         f"{did_you_mean(name, functions)}") from error
    if not callable(found):
        raise UsageError(f"{flag} {reference!r}: {name} is of type {type(found).__name__}, not a function")
    return found


def parse_type(text):
    """`f32[8,128]` as a ShapeDtypeStruct; without brackets, a scalar."""
    match = re.fullmatch(r"(\w+)(?:\[((?:\d+(?:,\d+)*,?)?)\])?", text.replace(" ", ""))
    if not match:
        raise UsageError(f"TYPE {text!r} is not of the form f32[8,128]: a dtype, then the sizes in brackets, "
                         "none for a scalar")
    dtype = DTYPES.get(match[1])
    if dtype is None:
        raise UsageError(f"TYPE {text!r}: there is no dtype {match[1]!r}; known are "
                         f"{', '.join(sorted(DTYPES))}")
    if dtypes.canonicalize(dtype) != dtype:
        raise UsageError(f"TYPE {text!r}: {match[1]} needs --x64")
    return hlotrace.ShapeDtypeStruct([int(n) for n in re.findall(r"\d+", match[2] or "")], dtype)


def parse_stages(values, mesh):
    """The stages named in the values of --stage, each once, in the order given; `mesh`: is there one?"""
    names = [name.strip() for value in values for name in value.split(",")]
    for name in names:
        if name not in SUFFIXES and name != "all":
            raise UsageError(f"there is no stage {name!r}; known are {', '.join(SUFFIXES)}, all")
    every = [name for name in SUFFIXES if mesh or name not in OVER_A_MESH]
    return every if "all" in names else list(dict.fromkeys(names))


class Place:
    """Where --mesh and --platform put the program: on a mesh, on one device, or with neither where it is by
    default.

    The devices are looked up when the user's module has been loaded, as that may say how many there are.  For
    text alone those of the CPU are used in place of a platform's: `lowered_for` is then the platform,
    otherwise None.
    """

    def __init__(self, mesh, platform, compiles=True):
        self.sizes = parse_mesh(mesh) if mesh else {}
        self.platform, _, self.topology = (platform or "cpu").partition(":")
        known = {name: None for p in PLATFORMS for name in (*p.aliases, p)} | _plugins()
        if self.platform not in known or self.topology and self.platform != "tpu":
            raise UsageError(f"--platform {platform!r}: want {', '.join(known)} or the name of a topology, "
                             "such as tpu:v5e:2x4")
        self.requested = bool(mesh or platform)
        self.lowered_for = self.platform if platform and not (compiles or self.topology) else None
        self.here = "cpu" if self.lowered_for else self.platform
        if self.here == "cpu" and self.sizes and hlotrace.config.jax_num_cpu_devices == -1 and (
                "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", "")):
            hlotrace.config.update("jax_num_cpu_devices", math.prod(self.sizes.values()))

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
            raise UsageError(f"--mesh: {error}") from error

    @functools.cached_property
    def default(self):
        """The sharding of arguments that have no SPEC, or None."""
        try:
            return SingleDeviceSharding(self.devices()[0]) if self.requested and not self.sizes else None
        except (ValueError, RuntimeError) as error:
            raise UsageError(f"--platform: {error}") from error

    def sharding(self, spec):
        """The NamedSharding of a PartitionSpec; None for None."""
        try:
            return spec if spec is None else NamedSharding(self.mesh, spec)
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from error

    def entered(self):
        return hlotrace.set_mesh(self.mesh) if self.sizes else contextlib.nullcontext()


def _plugins():
    try:
        return plugins.named()
    except ValueError as error:
        raise UsageError(str(error)) from error


def parse_mesh(text):
    """`data=4,model=2` as {"data": 4, "model": 2}."""
    found = [re.fullmatch(r"\s*([A-Za-z_]\w*)=([1-9]\d*)\s*", entry) for entry in text.split(",")]
    sizes = {entry[1]: int(entry[2]) for entry in found if entry}
    if len(sizes) < len(found):
        raise UsageError(f"--mesh {text!r} is not of the form data=4,model=2, or names an axis twice")
    return sizes


def parse_specs(values, flag):
    """The values of --in_spec or --out_spec as a list of PartitionSpecs, None for `?`, and pytrees of them.
    """
    if len(values) == 1 and ":" in values[0]:
        return list(called(values[0], flag, "a tuple of PartitionSpecs"))
    return [parse_spec(text, flag) for value in values for text in value.split(";")]


def parse_spec(text, flag):
    """`data,-` as P("data"), `?` as None."""
    if text.strip() == "?":
        return None
    entries = []
    for entry in text.split(",") if text.strip() else ():
        axes = tuple(name.strip() for name in entry.split("+"))
        if not all(re.fullmatch(r"[A-Za-z_]\w*", name) for name in axes) and axes != ("-",):
            raise UsageError(f"{flag} {text!r}: {entry!r} is neither - nor a mesh axis nor several with +")
        if axes == ("-",):
            entries.append(None)
        else:
            entries.append(axes if len(axes) > 1 else axes[0])
    while entries and entries[-1] is None:
        entries.pop()
    return P(*entries)


def is_spec(x):
    return x is None or isinstance(x, P)


def placed(args, specs, place):
    """The arguments, their arrays replaced by ShapeDtypeStructs with their shardings."""
    if specs and not place.sizes:
        raise UsageError("--in_spec and --out_spec name axes of a --mesh; give one")
    if specs and len(specs) != len(args):
        raise UsageError(f"--in_spec gives {len(specs)} SPECs for {len(args)} arguments; `?` leaves one to "
                         "the compiler")
    if not place.requested:
        return args
    leaves, structure = hlotrace.tree.flatten(args)
    try:
        flat = pytree.flatten_axes("--in_spec", structure, tuple(specs)) if specs else [None] * len(leaves)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return structure.unflatten([lying(x, place.sharding(spec) or place.default) for x,
                                spec in zip(leaves, flat)])


def lying(x, sharding):
    """The type of an array, with a sharding; what is none, or has no sharding, as it is."""
    try:
        aval = abstract(x)
    except TypeError:       # a static argument, or a mistake that tracing tells
        return x
    return x if sharding is None else struct_of(aval, sharding)


class Program:
    """A function traced for some arguments; each stage is a method that gives its text."""

    def __init__(self, fun, args, locations=False, place=None, out_shardings=None):
        self.locations = locations
        self.place = place or Place(None, None)
        if out_shardings is not None or not hasattr(fun, "trace"):
            fun = hlotrace.jit(fun, out_shardings=out_shardings)
        with self.place.entered(), _prints_to_stderr():
            try:
                self.traced = fun.trace(*args)
            except Exception as error:
                raise _in_users_code(error) from error

    @functools.cached_property
    def lowered(self):
        with self.place.entered():
            try:
                return self.traced.lower(platform=self.place.lowered_for)
            except (ValueError, RuntimeError) as error:
                raise _in_users_code(error) from error

    @functools.cached_property
    def compiled(self):
        try:
            return self.lowered.compile()
        except (ValueError, RuntimeError) as error:      # for one, a chip with too little memory
            raise UsageError(str(error)) from error

    @functools.cached_property
    def mesh(self):
        if self.lowered._mesh is None:
            raise UsageError(f"the stages {', '.join(OVER_A_MESH)} are those of a program over a mesh; "
                             "give --mesh")
        return self.lowered._mesh

    def jaxpr(self):
        return str(self.traced.jaxpr)

    def outlined(self):
        program = self.lowered._lowered(self.locations)
        if not program.blocks:
            return (f"nothing repeats that is worth a function: it would have to save {LEAST_SAVED} equations"
                    if hlotrace.config.hlotrace_outline else "nothing is looked for: hlotrace_outline is off")
        blocks = {b.jaxpr: b.jaxpr.name for b in program.blocks}
        after = sum(len(jaxpr.eqns) for jaxpr in (program.jaxpr, *blocks))
        where = "the CPU" if program.platform == "cpu" else program.platform
        _, pieces = program.platform.in_pieces and not program.partition and blocks_of(program) or (None, [])
        apart = dict.fromkeys(blocks[p.program] for p in pieces if p.program in blocks)
        texts = [str(jaxpr.replace(eqns=[     # calls by name: each block is printed once
            e.replace(params=e.params | {"jaxpr": blocks[e.params["jaxpr"]]})
            if e.params.get("jaxpr") in blocks else e
            for e in jaxpr.eqns])) for jaxpr in (program.jaxpr, *blocks)]
        return "\n".join([
            *map(str, program.blocks),
            f"equations: {after + sum(b.saved - b.calls for b in program.blocks)} -> {after}",
            f"on {where}: {len(pieces)} pieces, {len({p.program for p in pieces})} compiled; blocks that "
            "are pieces: "
            + ", ".join(apart) if pieces else f"on {where}: one executable",
            *(f"\n{name} = {text}" for name, text in zip([program.jaxpr.name, *blocks.values()], texts))])

    def stablehlo(self):
        return self.lowered.as_text(debug_info=self.locations)

    def sharded(self):
        return self.mesh and shardy.propagated(self.lowered.as_text(debug_info=True))

    def sharding(self):
        return self.mesh and str(plan_of(self.lowered))

    def collectives(self):
        return table(collectives(self.compiled.as_text(), self.mesh))

    def hlo(self):
        return self.lowered.as_text("hlo")

    def optimized(self):
        return self.compiled.as_text()

    def cost(self):
        return "\n".join(f"{name}: {value:.15g}" for name,
                         value in sorted(self.compiled.cost_analysis().items()))

    def view(self, path):
        """Writes the page of --html."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        (self.lowered if self.place.lowered_for else self.compiled).view(path)

    def memory(self):
        stats = self.compiled.memory_analysis()
        return "\n".join(f"{name}: {getattr(stats, name)}" for name in dir(stats)
                         if name.endswith("_in_bytes"))


def difference(first, second):
    """The jaxprs of two Programs as one text, with colours for a terminal."""
    color = {"-": "\x1b[31m", "+": "\x1b[32m"} if sys.stdout.isatty() else {}
    lines = []
    for change in changes(first.traced.jaxpr, second.traced.jaxpr):
        paint = color.get(change.mark, "")
        place = f"    # {describe(change.source)}" if change.mark != " " and change.source else ""
        lines.append(f"{paint}{change.mark} {change.text}{place}" + "\x1b[0m" * bool(paint))
    return "\n".join(lines)


def transformed(fun, options):
    """`fun` under --grad, then under --vmap."""
    if options.grad:
        if not all(re.fullmatch(r"-?\d+", n) for n in options.argnums):
            raise UsageError(f"--argnums={','.join(options.argnums)}: argument numbers are integers")
        numbers = tuple(map(int, options.argnums))
        fun = hlotrace.grad(fun, numbers if len(numbers) > 1 else numbers[0])
    return hlotrace.vmap(fun) if options.vmap else fun


def arguments(types, args_from):
    """The arguments to trace with, from TYPEs or from --args_from."""
    if not args_from:
        return tuple(map(parse_type, types))
    if types:
        raise UsageError("give TYPEs or --args_from, not both")
    return called(args_from, "--args_from", "a tuple of arguments")


def called(reference, flag, what):
    """The tuple that the user's function returns."""
    make = load(reference, flag)
    try:
        with _prints_to_stderr():
            result = make()
    except Exception as error:
        raise _in_users_code(error) from error
    if not isinstance(result, tuple):
        raise UsageError(f"{flag} {reference!r} must return {what}, not a {type(result).__name__}")
    return result


def out_shardings(values, place):
    """What --out_spec gives jit, or None."""
    specs = parse_specs(values, "--out_spec")
    if specs and not place.sizes:
        raise UsageError("--in_spec and --out_spec name axes of a --mesh; give one")
    shardings = hlotrace.tree.map(place.sharding, tuple(specs), is_leaf=is_spec)
    return shardings[0] if len(shardings) == 1 else shardings or None


def dump(positional, options):
    """Print or write every stage that the command line asks for."""
    stages = parse_stages(options.stage, options.mesh)
    if (options.html or options.diff) and not options["stage"].present:
        stages = []
    if not positional:
        raise UsageError("which function? say hlotrace-dump FUNCTION TYPE... (--help tells more)")
    if options.x64:
        hlotrace.config.update("jax_enable_x64", True)
    compiles = not {*COMPILED}.isdisjoint(stages) or options.html and options.platform == "cpu"
    place = Place(options.mesh, options.platform, compiles)
    fun = load(positional[0])
    args = placed(arguments(positional[1:], options.args_from), parse_specs(options.in_spec, "--in_spec"),
                  place)
    program = Program(transformed(fun, options), args, options.locations, place,
                      out_shardings(options.out_spec, place))
    stem = "_".join(["vmap"] * options.vmap + ["grad"] * options.grad + [positional[0].rpartition(":")[2]])
    if options.diff:
        other = transformed(load(options.diff, "--diff"), options)
        print(difference(program, Program(other, args, options.locations, place)))
    if options.html:
        try:
            program.view(options.html)
        except OSError as error:
            raise UsageError(f"--html {options.html}: {error}") from error
        print(options.html)
    for stage in stages:
        text = getattr(program, stage)().rstrip() + "\n"
        if options.out:
            path = Path(options.out, f"{stem}.{stage}.{SUFFIXES[stage]}")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
            except OSError as error:
                raise UsageError(f"--out {options.out}: {error}") from error
            print(path)
        else:
            print(f"==== {stage} ====\n{text}" if len(stages) > 1 else text, end="", flush=True)


def define_flags():
    options = flags.FlagValues()  # our own: the user's module may define absl flags too
    own = {"flag_values": options}
    flags.DEFINE_multi_string("stage", ["stablehlo"], f"Stages to print: {', '.join(SUFFIXES)}, all.", **own)
    flags.DEFINE_bool("grad", False, "Differentiate the function first.", **own)
    flags.DEFINE_list("argnums", ["0"], "With --grad: the arguments to differentiate by.", **own)
    flags.DEFINE_bool("vmap", False, "Map over axis 0 of every argument, after --grad.", **own)
    flags.DEFINE_string("args_from", None, "A module:callable that returns the tuple of arguments.", **own)
    flags.DEFINE_bool("locations", False, "Print StableHLO with the lines of Python it came from.", **own)
    flags.DEFINE_bool("x64", False, "Switch 64-bit types on.", **own)
    flags.DEFINE_string("mesh", None, "The axes of a mesh of devices, data=4,model=2.", **own)
    flags.DEFINE_multi_string("in_spec", [], "SPECs of the arguments, each once or with semicolons.", **own)
    flags.DEFINE_multi_string("out_spec", [], "SPECs of the results.", **own)
    flags.DEFINE_string("platform", None, "cpu, gpu, cuda, rocm, tpu or a topology, tpu:v5e:2x4.", **own)
    flags.DEFINE_string("out", None, "Write a file for each stage into this folder, and print the paths.",
                        **own)
    flags.DEFINE_string("html", None, "Write a page with all stages into this file.", **own)
    flags.DEFINE_string("diff", None, "Another function: print how its jaxpr differs.", **own)
    flags.DEFINE_bool("help", False, "Print this help.", short_name="h", **own)
    options.set_gnu_getopt(True)  # flags may follow the types
    return options


def main():
    """The command.  Returns its exit status; 2 for a mistake in the command line or in the function."""
    options = define_flags()
    try:
        positional = options(sys.argv)[1:]
        if options.help:
            print(__doc__, options.get_help(), sep="\n")
        else:
            dump(positional, options)
    except (UsageError, flags.Error) as error:
        print("hlotrace-dump:", " ".join(str(error).split()), file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader has seen enough; nothing may be flushed to it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
