"""Effects: names of what an equation does besides computing.

"debug" and "io" happen in any order; "ordered debug" and "ordered io" happen in program order, which a token
threaded through the program keeps.
"""

INSPECTION = "inspect sharding"      # of compiling a program, not of running it
TOKEN = "!stablehlo.token"


def is_ordered(effects):
    """Do these effects need a token?"""
    return any(e.startswith("ordered") for e in effects)
