"""hlotrace.experimental: names that JAX keeps here."""
from ..api.callbacks import io_callback
from ..api.misc import enable_x64
