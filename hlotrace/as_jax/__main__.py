"""`python -m hlotrace.as_jax script.py args...`: run a program with `import jax` meaning hlotrace."""
import argparse
import os
import runpy
import sys

import hlotrace.as_jax  # noqa: F401 - from here on jax is hlotrace
from hlotrace.core.config import config
from hlotrace.core.surface.boundary import filter_traceback


def show(kind, error, tb):
    """The `sys.excepthook` of the program: without what ran it, nor frames of libraries that are excluded."""
    if config.jax_traceback_filtering != "off":
        filter_traceback(error)
        tb = error.__traceback__
        while tb.tb_next is not None and tb.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>"):
            tb = tb.tb_next
    sys.__excepthook__(kind, error.with_traceback(tb), tb)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m hlotrace.as_jax",
                                     usage="%(prog)s (script.py | -m module) [args ...]",
                                     description="Run a program that imports jax on hlotrace, be jax "
                                     "installed or not.")
    parser.add_argument("-m", dest="module", action="store_true",
                        help="what follows is a module's name, not a file's")
    parser.add_argument("program", nargs="?")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="for the program")
    requested = parser.parse_args()
    if requested.program is None:
        parser.error("which program?  Give a script.py, or -m and a module")
    sys.excepthook = show
    sys.argv[:] = [requested.program, *requested.args]
    if requested.module:
        runpy.run_module(requested.program, run_name="__main__", alter_sys=True)
        return
    if not os.path.exists(requested.program):
        parser.error(f"no file {requested.program!r}; a module is run with -m")
    sys.path[0] = os.path.dirname(os.path.abspath(requested.program))
    runpy.run_path(requested.program, run_name="__main__")


if __name__ == "__main__":
    main()
