"""JAX's `extend.source_info_util`: where in the user's program an operation was made."""
from contextlib import contextmanager

from ..api.contexts import named_scope as extend_name_stack
from ..core import source_info as provenance
from ..core.config import scoped, state
from ..core.source_info import NameStack, SourceInfo, exclude as register_exclusion
from ..core.surface.public import install_getattr as _explain

__all__ = ["NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack",
           "new_name_stack", "new_source_info", "register_exclusion", "reset_name_stack", "set_name_stack",
           "summarize", "transform_name_stack", "user_context"]


def current():
    """Where the user's program is, and in which scopes."""
    return SourceInfo(state.source or provenance.user_frame(), current_name_stack())


def new_source_info():
    """No place, no scopes."""
    return SourceInfo(None, NameStack())


def summarize(source_info):
    """`train.py:12:4 (loss_fn)`, or an empty string."""
    return provenance.describe(source_info.source, with_column=True)


def current_name_stack():
    return NameStack(state.name_stack)


def new_name_stack(name=""):
    return NameStack(name)


def set_name_stack(name_stack):
    """Context manager in which operations are in the scopes `name_stack`."""
    return scoped(getattr(name_stack, "path", name_stack))


def reset_name_stack():
    """Context manager in which operations are in no scope."""
    return set_name_stack(NameStack())


def transform_name_stack(name):
    """Context manager in which operations are in the scope `name()`, as those that a transformation makes."""
    return extend_name_stack(f"{name}()")


@contextmanager
def user_context(source, *, name_stack=None):
    """Context manager in which operations have these scopes and the line `source`, a `current().source`."""
    saved = state.source
    state.source = source or saved
    try:
        with set_name_stack(state.name_stack if name_stack is None else name_stack):
            yield
    finally:
        state.source = saved

_explain(globals())
