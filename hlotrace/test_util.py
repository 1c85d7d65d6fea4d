"""hlotrace.test_util: derivatives held against differences."""
from .api.external.gradient_checks import check_grads, check_jvp, check_vjp
from .core.surface.public import export_names as _offer

_offer(globals())
