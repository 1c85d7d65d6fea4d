"""hlotrace.custom_derivatives: functions whose derivatives the user gives."""
from .api.custom import (
    CustomVJPPrimal,
    SymbolicZero,
    closure_convert,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    custom_vjp_primal_tree_values,
)
