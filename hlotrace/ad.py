"""hlotrace.ad: what becomes of each cotangent of `vjp(...)[1].with_refs(...)`."""
from .api.refs import DidntWant, DontWant, GradRef, GradValue
from .core.surface.public import export_names as _offer

_offer(globals())
