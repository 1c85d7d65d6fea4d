"""Prints what becomes of a function on its way to the machine.

    hlotrace-dump FUNCTION TYPE... [--stage STAGE] [--grad] [--vmap] [--out DIR]

FUNCTION is `module:function` or `path/file.py:function`.  A TYPE, one an argument, is `f32[8,128]`, `bf16[]`, `i32[3]`
or `f32`; --args_from takes pytrees and values from Python instead.
STAGE is one of jaxpr, outlined, stablehlo, hlo, optimized, cost, memory; several with commas or repeated; or `all`.
`outlined` tells which stretches of equations repeat and become one function each.

    hlotrace-dump hlotrace.numpy:tanh f32[8,128] --stage jaxpr,stablehlo
    hlotrace-dump train.py:loss --args_from train.py:example_args --grad --stage all --out /tmp/loss
"""
import functools
import importlib
import importlib.util
import os
import re
import sys
import traceback
from pathlib import Path

import hlotrace
from hlotrace.core import dtypes
from hlotrace.runtime.pieces import pieces_of

SUFFIXES = {"jaxpr": "txt", "outlined": "txt", "stablehlo": "mlir", "hlo": "txt", "optimized": "txt", "cost": "txt",
            "memory": "txt"}
DTYPES = {"pred": dtypes.bool_} | {name: d for d in dtypes.SUPPORTED for name in (d.name, dtypes.short_name(d))}
_OURS = str(Path(hlotrace.__file__).parent)


class UsageError(Exception):
    """What is told in one line on stderr, with exit status 2."""


def _in_users_code(error):
    """A UsageError for an exception that came out of the user's code: its class, words and line."""
    where = [f"{f.filename}:{f.lineno}: " for f in traceback.extract_tb(error.__traceback__)
             if not f.filename.startswith((_OURS, "<frozen"))][-1:]
    return UsageError("".join(where) + f"{type(error).__name__}: {error}")


def load(reference, flag="FUNCTION"):
    """The object that `module:name` or `path/file.py:name` stands for; the name may have dots."""
    module_name, colon, name = reference.rpartition(":")
    if not (module_name and name):
        raise UsageError(f"{flag} {reference!r} is neither module:function nor path/file.py:function")
    is_file = module_name.endswith(".py")
    if is_file and not Path(module_name).is_file():
        raise UsageError(f"{flag} {reference!r}: there is no file {module_name}")
    sys.path.insert(0, str(Path(module_name).parent.resolve()) if is_file else os.getcwd())
    try:
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
        raise UsageError(f"{flag} {reference!r}: {module_name} has no {name}") from error
    if not callable(found):
        raise UsageError(f"{flag} {reference!r}: {name} is of type {type(found).__name__}, not a function")
    return found


def parse_type(text):
    """`f32[8,128]` as a ShapeDtypeStruct; without brackets, a scalar."""
    match = re.fullmatch(r"(\w+)(?:\[((?:\d+(?:,\d+)*,?)?)\])?", text.replace(" ", ""))
    if not match:
        raise UsageError(f"TYPE {text!r} is not of the form f32[8,128]")
    dtype = DTYPES.get(match[1])
    if dtype is None:
        raise UsageError(f"TYPE {text!r}: there is no dtype {match[1]!r}; known are {', '.join(sorted(DTYPES))}")
    if dtypes.canonicalize(dtype) != dtype:
        raise UsageError(f"TYPE {text!r}: {match[1]} needs --x64")
    return hlotrace.ShapeDtypeStruct([int(n) for n in re.findall(r"\d+", match[2] or "")], dtype)


def parse_stages(values):
    """The stages named in the values of --stage, each once, in the order given."""
    names = [name.strip() for value in values for name in value.split(",")]
    for name in names:
        if name not in SUFFIXES and name != "all":
            raise UsageError(f"there is no stage {name!r}; known are {', '.join(SUFFIXES)}, all")
    return list(SUFFIXES if "all" in names else dict.fromkeys(names))


class Program:
    """A function traced for some arguments; each stage is a method that gives its text."""

    def __init__(self, fun, args, locations=False):
        self.locations = locations
        jitted = fun if hasattr(fun, "trace") else hlotrace.jit(fun)
        try:
            self.traced = jitted.trace(*args)
        except Exception as error:
            raise _in_users_code(error) from error

    @functools.cached_property
    def lowered(self):
        return self.traced.lower()

    @functools.cached_property
    def compiled(self):
        return self.lowered.compile()

    def jaxpr(self):
        return str(self.traced.jaxpr)

    def outlined(self):
        program = self.lowered._lowered(self.locations)
        if not program.blocks:
            return "nothing repeats"
        blocks = {b.jaxpr: b.jaxpr.name for b in program.blocks}
        after = sum(len(jaxpr.eqns) for jaxpr in (program.jaxpr, *blocks))
        _, pieces = pieces_of(program) or (None, [])
        apart = dict.fromkeys(blocks[p.program] for p in pieces if p.program in blocks)
        texts = [str(jaxpr.replace(eqns=[     # calls by name: each block is printed once
            e.replace(params=e.params | {"jaxpr": blocks[e.params["jaxpr"]]}) if e.params.get("jaxpr") in blocks else e
            for e in jaxpr.eqns])) for jaxpr in (program.jaxpr, *blocks)]
        return "\n".join([
            *map(str, program.blocks),
            f"equations: {after + sum(b.saved - b.calls for b in program.blocks)} -> {after}",
            f"on the CPU: {len(pieces)} pieces, {len({p.program for p in pieces})} compiled; blocks that are pieces: "
            + ", ".join(apart) if pieces else "on the CPU: one executable",
            *(f"\n{name} = {text}" for name, text in zip([program.jaxpr.name, *blocks.values()], texts))])

    def stablehlo(self):
        return self.lowered.as_text(debug_info=self.locations)

    def hlo(self):
        return self.lowered.as_text("hlo")

    def optimized(self):
        return self.compiled.as_text()

    def cost(self):
        return "\n".join(f"{name}: {value:.15g}" for name, value in sorted(self.compiled.cost_analysis().items()))

    def memory(self):
        stats = self.compiled.memory_analysis()
        return "\n".join(f"{name}: {getattr(stats, name)}" for name in dir(stats) if name.endswith("_in_bytes"))


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
    make = load(args_from, "--args_from")
    try:
        args = make()
    except Exception as error:
        raise _in_users_code(error) from error
    if not isinstance(args, tuple):
        raise UsageError(f"--args_from {args_from!r} must return a tuple of arguments, not a {type(args).__name__}")
    return args


def dump(positional, options):
    """Print or write every stage that the command line asks for."""
    stages = parse_stages(options.stage)
    if not positional:
        raise UsageError("which function? say hlotrace-dump FUNCTION TYPE... (--help tells more)")
    if options.x64:
        hlotrace.config.update("jax_enable_x64", True)
    fun = load(positional[0])
    args = arguments(positional[1:], options.args_from)
    program = Program(transformed(fun, options), args, options.locations)
    stem = "_".join(["vmap"] * options.vmap + ["grad"] * options.grad + [positional[0].rpartition(":")[2]])
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


def define_flags(flags):
    options = flags.FlagValues()  # our own: the user's module may define absl flags too
    own = {"flag_values": options}
    flags.DEFINE_multi_string("stage", ["stablehlo"], f"Stages to print: {', '.join(SUFFIXES)}, all.", **own)
    flags.DEFINE_bool("grad", False, "Differentiate the function first.", **own)
    flags.DEFINE_list("argnums", ["0"], "With --grad: the arguments to differentiate by.", **own)
    flags.DEFINE_bool("vmap", False, "Map over axis 0 of every argument, after --grad.", **own)
    flags.DEFINE_string("args_from", None, "A module:callable that returns the tuple of arguments.", **own)
    flags.DEFINE_bool("locations", False, "Print StableHLO with the lines of Python it came from.", **own)
    flags.DEFINE_bool("x64", False, "Switch 64-bit types on.", **own)
    flags.DEFINE_string("out", None, "Write a file for each stage into this folder, and print the paths.", **own)
    flags.DEFINE_bool("help", False, "Print this help.", short_name="h", **own)
    options.set_gnu_getopt(True)  # flags may follow the types
    return options


def main():
    """The command.  Returns its exit status; 2 for a mistake in the command line or in the function."""
    try:
        from absl import flags
    except ImportError:
        print("hlotrace-dump: absl-py is missing: pip install absl-py", file=sys.stderr)
        return 2
    options = define_flags(flags)
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
