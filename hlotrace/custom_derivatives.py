"""hlotrace.custom_derivatives: functions whose derivatives the user gives."""
from .api.custom_derivatives import (
    CustomVJPPrimal, SymbolicZero, closure_convert, custom_gradient, custom_jvp, custom_vjp,
    custom_vjp_primal_tree_values, linear_call, zero_from_primal)
from .core.surface.public import export_names as _offer
from .primitives.programs.calls import custom_jvp_call_p, custom_vjp_call_p, remat_opt_p

_offer(globals())
