"""What commands read from their arguments: functions by name, types, meshes, specs; errors of usage."""
import contextlib
import functools
import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from pathlib import Path

from absl import flags

import hlotrace
from hlotrace.core import dtypes
from hlotrace.core.errors import did_you_mean
from hlotrace.sharding import P

DTYPES = {"pred": dtypes.bool_} | {name: d for d in dtypes.SUPPORTED
                                   for name in (d.name, dtypes.short_name(d))}
_OURS = str(Path(hlotrace.__file__).parent)


class UsageError(Exception):
    """An error of usage, printed as one line on stderr, with exit status 2."""


def in_users_code(error):
    """A UsageError for an exception that came out of the user's code: its class, words and line."""
    where = [f"{f.filename}:{f.lineno}: " for f in traceback.extract_tb(error.__traceback__)
             if not f.filename.startswith((_OURS, "<frozen"))][-1:]
    return UsageError("".join(where) + f"{type(error).__name__}: {error}")


def prints_to_stderr():
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
        with prints_to_stderr():
            if is_file:
                spec = importlib.util.spec_from_file_location("dumped_module", module_name)
                module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
            else:
                module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if not is_file and (module_name + ".").startswith(f"{error.name}."):
            raise UsageError(f"{flag} {reference!r}: there is no module {error.name}") from error
        raise in_users_code(error) from error
    except Exception as error:
        raise in_users_code(error) from error
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


def parse_mesh(text):
    """`data=4,model=2` as {"data": 4, "model": 2}."""
    found = [re.fullmatch(r"\s*([A-Za-z_]\w*)=([1-9]\d*)\s*", entry) for entry in text.split(",")]
    sizes = {entry[1]: int(entry[2]) for entry in found if entry}
    if len(sizes) < len(found):
        raise UsageError(f"--mesh {text!r} is not of the form data=4,model=2, or names an axis twice")
    return sizes


def parse_specs(values, flag):
    """The values of --in_spec or --out_spec: a list of PartitionSpecs, None for `?`, and pytrees of them."""
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


def transformed(fun, options):
    """`fun` under --grad, then under --vmap."""
    if options.grad:
        if not all(re.fullmatch(r"-?\d+", n) for n in options.argnums):
            raise UsageError(f"--argnums={','.join(options.argnums)}: argument numbers are integers")
        numbers = tuple(map(int, options.argnums))
        fun = hlotrace.grad(fun, numbers if len(numbers) > 1 else numbers[0])
    return hlotrace.vmap(fun) if options.vmap else fun


def arguments(fun, types, args_from):
    """The arguments to trace `fun` with, from TYPEs or from --args_from."""
    if types and args_from:
        raise UsageError("give TYPEs or --args_from, not both")
    args = called(args_from, "--args_from", "a tuple of arguments") if args_from else (
        tuple(map(parse_type, types)))
    with contextlib.suppress(ValueError):       # a builtin has no signature
        signature = inspect.signature(fun)
        try:
            signature.bind(*args)
        except TypeError as error:
            mend = f"{args_from} returns them" if args_from else (
                "write a TYPE, as f32[8,128], for each behind it")
            raise UsageError(
                f"FUNCTION takes {signature}, and {len(args)} are given: {error}; {mend}") from error
    return args


def called(reference, flag, what):
    """The tuple that the user's function returns."""
    make = load(reference, flag)
    try:
        with prints_to_stderr():
            result = make()
    except Exception as error:
        raise in_users_code(error) from error
    if not isinstance(result, tuple):
        raise UsageError(f"{flag} {reference!r} must return {what}, not a {type(result).__name__}")
    return result


def make_cpu_devices(count):
    """As many devices of the CPU, where nothing else has said how many."""
    if hlotrace.config.jax_num_cpu_devices == -1 and (
            "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", "")):
        hlotrace.config.update("jax_num_cpu_devices", count)


def run_command(name, doc, define_flags, act, given=None):
    """A command that takes a function: read its flags, and act.

    Args:
        name: what one types.
        doc: what --help prints before the flags.
        define_flags: defines the command's own flags in absl's `options`.
        act: called with the arguments that are no flags and with `options`.
        given: the command line behind the name; that of the process by default.
    Returns:
        The exit status; 2 for a mistake in the command line or in the user's function.
    """
    options = flags.FlagValues()  # our own: the user's module may define absl flags too
    define_function_flags(options)
    define_flags(options)
    flags.DEFINE_bool("help", False, "Print this help.", short_name="h", flag_values=options)
    options.set_gnu_getopt(True)  # flags may follow the types
    try:
        positional = options([name, *(sys.argv[1:] if given is None else given)])[1:]
        if options.help:
            print(doc, options.get_help(), sep="\n")
            return 0
        if not positional:
            raise UsageError(f"which function? say {name} FUNCTION TYPE... (--help tells more)")
        if options.x64:
            hlotrace.config.update("jax_enable_x64", True)
        act(positional, options)
    except (UsageError, flags.Error) as error:
        words = " ".join(str(error).split())
        print(f"{name}:", words.removeprefix(f"{name.split()[-1]}: "), file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader has seen enough; nothing may be flushed to it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def write_page(path, text):
    """Writes the page of --html, and prints its path."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"--html {path}: {error}") from error
    print(path)


def write_found(options, found, html, as_json):
    """Print what was found, or its page or JSON for --html and --json: `html()` and `as_json()` make it."""
    if options.html:
        write_page(options.html, html())
    if options.json:
        print(as_json())
    elif not options.html:
        print(found)


def define_function_flags(options):
    """The flags that say what is traced, in absl's `options`."""
    own = {"flag_values": options}
    flags.DEFINE_bool("grad", False, "Differentiate the function first.", **own)
    flags.DEFINE_list("argnums", ["0"], "With --grad: the arguments to differentiate by.", **own)
    flags.DEFINE_bool("vmap", False, "Map over axis 0 of every argument, after --grad.", **own)
    flags.DEFINE_string("args_from", None, "A module:callable that returns the tuple of arguments.", **own)
    flags.DEFINE_bool("x64", False, "Switch 64-bit types on.", **own)
    flags.DEFINE_multi_string("in_spec", [], "SPECs of the arguments, each once or with semicolons.", **own)
