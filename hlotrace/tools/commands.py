"""`python -m hlotrace`: list the commands, a line each."""
import argparse
import importlib
import pkgutil

import hlotrace
from hlotrace import tools


def commands():
    """(what to type, what it is for) of each command: the first line of its module in tools/, "`command`:
    purpose"."""
    found = pkgutil.iter_modules(tools.__path__, tools.__name__ + ".")
    heads = [importlib.import_module(module.name).__doc__.partition("\n")[0] for module in found]
    return sorted((command.strip("`"), purpose) for command, _,
                  purpose in (head.partition(": ") for head in heads))


def main():
    """Print them."""
    argparse.ArgumentParser(prog="python -m hlotrace",
                            description="List the commands, a line each.").parse_args()
    print(f"hlotrace {hlotrace.__version__}\n")
    for command, purpose in commands():
        print(f"  {command:<28}{purpose}")
    print("\n--help after a command tells more.")
