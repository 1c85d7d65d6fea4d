"""`hlotrace`: list the commands, a line each; `hlotrace VERB` runs one."""
import argparse
import importlib
import sys

import hlotrace
from hlotrace import tools
from hlotrace.core.errors import did_you_mean

# verb -> its module in tools/, whose first line is "`hlotrace VERB`: purpose"
VERBS = {"cache": "cache", "doctor": "doctor", "dump": "dump_hlo", "plan": "plan", "profile": "profile"}


def _module(name):
    return importlib.import_module(f"{tools.__name__}.{name}")


def commands():
    """(what to type, what it is for) of each command."""
    heads = [_module(name).__doc__.partition("\n")[0] for name in ("commands", *VERBS.values())]
    return sorted((command.strip("`"), purpose)
                  for command, _, purpose in (head.partition(": ") for head in heads))


def main(arguments=None):
    """Run the command that the first argument names; without one, list them.  Returns the exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given and given[0] in VERBS:
        return _module(VERBS[given[0]]).main(given[1:])
    lines = [f"  {command:<20}{purpose}" for command, purpose in commands()]
    listing = "\n".join([*lines, "", "--help after a command tells more."])
    version = f"hlotrace {hlotrace.__version__}"
    parser = argparse.ArgumentParser(
        prog="hlotrace", description="List the commands, a line each; with a verb, run that command with the "
        "arguments behind it.", epilog=listing, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", nargs="?", metavar="|".join(VERBS))
    parser.add_argument("--version", action="version", version=version)
    if verb := parser.parse_args(given[:1]).verb:
        parser.error(f"invalid choice: {verb!r}; verbs are {', '.join(VERBS)}{did_you_mean(verb, VERBS)}")
    print(version, "", listing, sep="\n")
    return 0
