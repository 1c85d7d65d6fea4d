"""`hlotrace profile`: where the time of a function goes, by line, named scope and operation.

    hlotrace profile FUNCTION TYPE... [--runs N] [--html FILE] [--json] [--mesh AXIS=SIZE,...]
                     [--in_spec SPEC]... [--grad] [--vmap]

FUNCTION, TYPEs, --args_from, --mesh and SPECs are those of `hlotrace dump`.  The function is compiled for the
devices of this machine and run --runs times under the profiler; the times are those of the fastest run.
What is given as a type is made up: numbers between 0 and 1, integers 0 and 1; --args_from may
return arrays instead, for programs whose time depends on values.  --html writes the program's page with the
times in it.

    hlotrace profile train.py:layer f32[64,256] f32[256,512] --grad
    hlotrace profile train.py:step --args_from train.py:example_args --html step.html
"""
import json
import math
import sys

import numpy as np
from absl import flags

import hlotrace
from hlotrace.core import dtypes
from hlotrace.tools import command_line as cli
from hlotrace.tools.dump_hlo import Place, placed


def profiled(positional, options):
    """The Profile that the command line asks for."""
    if options.runs < 1:
        raise cli.UsageError(f"--runs {options.runs}: it is to run at least once")
    if options.mesh:
        cli.make_cpu_devices(math.prod(cli.parse_mesh(options.mesh).values()))
    place = Place(options.mesh, hlotrace.default_backend() if options.mesh else None)
    fun = cli.transformed(cli.load(positional[0]), options)
    args = cli.arguments(fun, positional[1:], options.args_from)
    specs = cli.parse_specs(options.in_spec, "--in_spec")
    shardings = [getattr(x, "sharding", None) for x in hlotrace.tree.leaves(placed(args, specs, place))]
    leaves, structure = hlotrace.tree.flatten(args)
    random = np.random.default_rng(0)
    with place.entered(), cli.prints_to_stderr():
        try:
            given = structure.unflatten([made_up(x, s, random) for x, s in zip(leaves, shardings)])
            return hlotrace.profile(fun, runs=options.runs)(*given)
        except Exception as error:
            raise cli.in_users_code(error) from error


def made_up(x, sharding, random):
    """An array of a type, over the devices of `sharding`; an array as it is, over them."""
    if isinstance(x, hlotrace.ShapeDtypeStruct):
        if dtypes.is_extended(x.dtype):
            x = hlotrace.random.split(hlotrace.random.key(0), x.shape)
        elif dtypes.issubdtype(x.dtype, np.inexact):
            x = random.random(x.shape, "float32").astype(x.dtype)
        else:
            x = random.integers(0, 2, x.shape).astype(x.dtype)
    elif sharding is None:
        return x
    return hlotrace.device_put(x, sharding)


def define_flags(options):
    own = {"flag_values": options}
    flags.DEFINE_string("mesh", None, "The axes of a mesh of devices, data=4,model=2.", **own)
    flags.DEFINE_integer("runs", 5, "How often the function runs; the times are of the fastest.", **own)
    flags.DEFINE_bool("json", False, "Print JSON.", **own)
    flags.DEFINE_string("html", None, "Write the program's page with the times into this file.", **own)


def show(positional, options):
    """Print or write the Profile."""
    found = profiled(positional, options)
    cli.write_found(options, found, lambda: found.view().html, lambda: json.dumps(found.as_dict(), indent=2))


def main(given=None):
    """The command.  Returns its exit status; 2 for a mistake in the command line or in the function."""
    return cli.run_command("hlotrace profile", __doc__, define_flags, show, given)


if __name__ == "__main__":
    sys.exit(main())
