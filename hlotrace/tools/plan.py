"""`hlotrace plan`: what a function needs of chips that need not be here, and how fast it can be at best.

    hlotrace plan FUNCTION TYPE... --on CHIPS [--mesh MESH] [--in_spec SPEC]... [--out_spec SPEC]...
                  [--batch ARGUMENT:DIMENSION] [--quick] [--jobs N] [--json] [--html FILE] [--grad] [--vmap]

FUNCTION, TYPEs, --args_from and SPECs are those of `hlotrace dump`. CHIPS are topologies by name with
commas, `v5e:4x4,8xv5e:16x16,h100:8`, or `cpu:8`. A MESH is `auto`, every factorization of the mesh axes
that the SPECs name; `data,model`, every one of these; or sizes, `data=4,model=2`; several with semicolons.
For each, the program is compiled, once: what is known of it is kept on disk.  The table says whether it
fits, what memory it takes, what it computes, moves and sends, the time of each part of the chip at its peak
rate, and what binds it; the best mesh comes first.  --batch 3:0 counts examples, the size of dimension 0 of
argument 3; 3:0,1 tokens.  --quick does not compile.  Where the first program takes longer than five
seconds, --jobs processes compile the others.

    hlotrace plan train.py:layer f32[64,256] f32[256,512] --in_spec 'data;-,model' --on cpu:8
    hlotrace plan train.py:step --args_from train.py:types --in_spec train.py:specs --on v5e:4x4,h100:8
    --batch 1:0
"""
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from absl import flags

import hlotrace
from hlotrace.api.parallel.plan import cases
from hlotrace.runtime.status_line import StatusLine
from hlotrace.tools import command_line as cli

LONG = 5        # seconds that the first program may take before other processes compile the others


def planned(positional, options):
    """The Plan that the command line asks for."""
    if not options.on:
        raise cli.UsageError("on which chips? say --on v5e:4x4 or --on cpu:8")
    if count := _cpu_devices(options.on):
        cli.make_cpu_devices(count)
    fun = cli.load(positional[0])
    args = cli.arguments(fun, positional[1:], options.args_from)
    in_specs = cli.parse_specs(options.in_spec, "--in_spec")
    if in_specs and len(in_specs) != len(args):
        raise cli.UsageError(f"--in_spec gives {len(in_specs)} SPECs for {len(args)} arguments; `?` leaves "
                             "one whole")
    out_specs = tuple(cli.parse_specs(options.out_spec, "--out_spec"))
    out_specs = (out_specs[0] if len(out_specs) == 1 else out_specs) or None
    line = StatusLine()
    meshes, in_specs = options.mesh.split(";"), tuple(in_specs) or None
    with cli.prints_to_stderr():
        try:
            fun = cli.transformed(fun, options)
            helpers = Helpers(positional, options, line,
                              cases(fun, args, options.on, meshes, in_specs, out_specs))
            return hlotrace.plan(
                fun, *args, on=options.on, mesh=meshes, in_specs=in_specs, out_specs=out_specs,
                batch=options.batch, quick=options.quick, progress=helpers.next_one)
        except (ValueError, RuntimeError) as error:
            raise cli.UsageError(str(error)) from error
        except Exception as error:
            raise cli.in_users_code(error) from error
        finally:
            line.clear()


class Helpers:
    """Other processes that compile, where compiling takes long: what they find out is kept on disk, where
    this one reads it."""

    def __init__(self, positional, options, line, cases):
        self.line, self.cases, self.done, self.start = line, cases, 0, time.monotonic()
        self.command = [sys.executable, "-m", "hlotrace", "plan", *positional,
                        *filter(None, options.flags_into_string().splitlines()), "--html=", "--json",
                        "--jobs=1"]
        kept = hlotrace.config.jax_enable_compilation_cache and not options.quick
        self.jobs = (options.jobs or os.cpu_count() or 1) if kept else 1

    def next_one(self, text):
        """To be called before each program is compiled."""
        self.line.write(f"hlotrace plan: {text}")
        if self.jobs > 1 and time.monotonic() - self.start > LONG:
            left, jobs, self.jobs = list(self.cases)[self.done:], self.jobs, 1
            if len(left) > 1:
                with ThreadPoolExecutor(jobs) as pool:
                    for n, _ in enumerate(pool.map(self.compile, left), 1):
                        self.line.write(f"hlotrace plan: {n} of {len(left)} that were left are compiled")
        self.done += 1

    def compile(self, case):
        """Let another process compile for a (target, mesh); its errors are this one's, too."""
        target, mesh = case
        sizes = ",".join(f"{axis}={n}" for axis, n in mesh.items()) or "auto"
        # libtpu lets one process in at a time, for the sake of a TPU, which compiling does not touch
        subprocess.run([*self.command, f"--on={target}", f"--mesh={sizes}"], check=False,
                       env=os.environ | {"ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _cpu_devices(targets):
    """The most that --on names."""
    counts = [int(count) for name, _, count in (t.partition(":") for t in targets)
              if name == "cpu" and count.isdigit()]
    return max(counts, default=0)


def define_flags(options):
    own = {"flag_values": options}
    flags.DEFINE_list("on", [], "Topologies by name, v5e:4x4,h100:8, or cpu:8.", **own)
    flags.DEFINE_string("mesh", "auto", "auto, names of axes, or sizes, data=4,model=2; more with ;.", **own)
    flags.DEFINE_multi_string("out_spec", [], "SPECs of the results.", **own)
    flags.DEFINE_string("batch", None, "What a run takes, ARGUMENT:DIMENSION, 3:0; 3:0,1 are tokens.", **own)
    flags.DEFINE_bool("quick", False, "Do not compile: look into the traced program alone.", **own)
    flags.DEFINE_integer("jobs", 0, "Compile in so many processes; as many as there are processors.", **own)
    flags.DEFINE_bool("json", False, "Print JSON.", **own)
    flags.DEFINE_string("html", None, "Write one page with plots into this file, and print its path.", **own)


def show(positional, options):
    """Print or write the Plan."""
    found = planned(positional, options)
    cli.write_found(options, found, found.to_html, found.to_json)


def main(given=None):
    """The command.  Returns its exit status; 2 for a mistake in the command line or in the function."""
    return cli.run_command("hlotrace plan", __doc__, define_flags, show, given)


if __name__ == "__main__":
    sys.exit(main())
