"""`python -m hlotrace`: list the commands, a line each; `hlotrace VERB` runs one."""
import argparse
import importlib
import sys

import hlotrace
from hlotrace import tools

# verb -> its module in tools/, whose first line is "`what to type by itself`: purpose"
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
    parser = argparse.ArgumentParser(prog="hlotrace", description="List the commands, a line each; with a "
                                     "verb, run that command with the arguments behind it.")
    parser.add_argument("verb", nargs="?", choices=VERBS)
    parser.parse_args(given)
    print(f"hlotrace {hlotrace.__version__}\n")
    for command, purpose in commands():
        print(f"  {command:<28}{purpose}")
    print(f"\nAs verbs: hlotrace {'|'.join(VERBS)}. --help after a command tells more.")
    return 0
