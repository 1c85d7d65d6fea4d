"""hlotrace.custom_derivatives: functions whose derivatives the user gives."""
from .api.custom import closure_convert, custom_gradient, custom_jvp, custom_vjp
