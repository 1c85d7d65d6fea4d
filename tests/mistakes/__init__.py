"""A corpus of mistakes: small programs that are wrong, and what the error must say.

A row is a function that makes one mistake, on the line that ends with `# <-`.  `mistake` says of the error that must come
from there: its class, and texts that it holds: the operation as the user wrote it, the sizes or dtypes that do not go
together, the operand or its path, and the advice.  One file a family; `tests/house/test_mistakes.py` runs them all.
"""
from typing import NamedTuple


class Mistake(NamedTuple):
    """A program and what its error must be."""
    run: object
    kind: type
    says: tuple     # texts
    options: dict   # which are set while it runs

    def __repr__(self):
        return self.run.__name__


def mistake(kind, operation, *things, advice, **options):
    """Decorator of a row: the class of the error and what it says.

    operation: the name under which the user called it.
    things: the sizes, dtypes, operands and paths that it must name, all of them.
    advice: a part of what it says to do.
    options: those of the library that are set.
    """
    def row(run):
        run.__globals__.setdefault("MISTAKES", []).append(Mistake(run, kind, (operation, *things, advice), options))
        return run
    return row


CHECKED = {"jax_check_static_indices": True}
