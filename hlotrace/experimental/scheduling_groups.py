"""Groups of operations that XLA schedules together, under the name that JAX has for them."""
from ..api.frontend_attributes import xla_metadata_call
from ..core.surface.public import export_names

__all__ = ["scheduling_group"]


def scheduling_group(name):
    """Decorator of a function whose operations XLA schedules together, as the group `name`, where it can.

    >>> from hlotrace.experimental.scheduling_groups import scheduling_group
    >>> f = jax.jit(scheduling_group("first")(jnp.sin))
    >>> 'scheduling_group = "first"' in f.lower(1.).as_text()
    True
    """
    return xla_metadata_call(scheduling_group=name)


export_names(globals())
