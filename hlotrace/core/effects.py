"""Effects: names of what an equation does besides computing.

"debug" and "io" happen in any order; "ordered debug" and "ordered io" happen in program order, which a token
threaded through the program keeps.
"""
from .jaxpr import sub_jaxprs

INSPECTION = "inspect sharding"      # of compiling a program, not of running it
TOKEN = "!stablehlo.token"


def is_ordered(effects):
    """Do these effects need a token?"""
    return any(e.startswith("ordered") for e in effects)


def of_programs(params):
    """The effects of all programs among an equation's parameters."""
    return tuple(dict.fromkeys(e for jaxpr in sub_jaxprs(params) for e in jaxpr.effects))
