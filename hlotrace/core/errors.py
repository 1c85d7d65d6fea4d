"""Exception classes under JAX's names, and the words that go with the most common mistakes."""


class ConcretizationTypeError(TypeError):
    """A traced value was used where a concrete Python value is needed."""


class TracerBoolConversionError(ConcretizationTypeError):
    """`bool()` of a traced value, most often through `if`, `while`, `and`, `or` or `assert`."""


class TracerIntegerConversionError(TypeError):
    """A traced value was used where Python needs an `int` (an index of a list, `range`, a shape)."""


class TracerArrayConversionError(TypeError):
    """A traced value was handed to NumPy."""


class NonConcreteBooleanIndexError(IndexError):
    """An array was indexed with a traced boolean mask, so the shape of the result is unknown."""


class UnexpectedTracerError(Exception):
    """A tracer was used after the transformation that made it had ended."""


class TypePromotionError(ValueError):
    """The dtypes of the operands have no common dtype under the promotion rules in force."""


class KeyReuseError(TypeError):
    """A PRNG key was consumed more than once (see `debug_key_reuse`)."""


def _made_at(tracer):
    where = tracer.origin()
    return f"\nThe value {where}." if where else ""


def bool_conversion(tracer):
    return TracerBoolConversionError(
        f"Attempted boolean conversion of traced array with shape {tracer.aval.str_short()}: its value is not "
        f"known while {tracer.under()} is tracing.{_made_at(tracer)}\n"
        "Python's `if`, `while`, `and`, `or`, `not` and `assert` need a concrete value. Use jnp.where or lax.cond "
        "for a choice, lax.while_loop for a loop, `&`, `|`, `~` for logic on arrays, or mark the argument that "
        "decides it with static_argnums/static_argnames.")


def integer_conversion(tracer):
    return TracerIntegerConversionError(
        f"A traced value of type {tracer.aval.str_short()} was used where Python needs an integer, while "
        f"{tracer.under()} is tracing.{_made_at(tracer)}\n"
        "Shapes, axes, `range` and list indices must be known when tracing: mark the argument with "
        "static_argnums/static_argnames; to index with a traced value, index a jnp array rather than a list or "
        "NumPy array; for a loop use lax.fori_loop.")


def scalar_conversion(tracer, name):
    return ConcretizationTypeError(
        f"{name}() needs a concrete value, but got a traced array of type {tracer.aval.str_short()} while "
        f"{tracer.under()} is tracing.{_made_at(tracer)}\n"
        f"Keep the value as an array (x.astype({name})), or mark the argument with static_argnums/static_argnames.")


def array_conversion(tracer):
    return TracerArrayConversionError(
        f"A traced array of type {tracer.aval.str_short()} was handed to NumPy (its __array__ was called) while "
        f"{tracer.under()} is tracing.{_made_at(tracer)}\n"
        "Use the function of the same name from hlotrace.numpy; to run NumPy code on the value, use "
        "hlotrace.pure_callback.")


def leaked_tracer(tracer):
    return UnexpectedTracerError(
        f"A tracer of type {tracer.aval.str_short()} is used outside the transformation that made it: "
        f"{tracer.under()} has ended, or the value belongs to another trace.{_made_at(tracer)}\n"
        "A value leaves a transformed function only as its return value: not through a global, an attribute, a "
        "closure list or a cache. Return it instead; to look at it, use hlotrace.debug.print.")
