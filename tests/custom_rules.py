"""Functions with derivatives of their own, as tests of many transformations hold them."""
import hlotrace as jax


def custom_jvp(f, tangent=None):
    """`f` with the rule that its tangent is `tangent` (or `f`) of those of its arguments."""
    function = jax.custom_jvp(f)
    function.defjvp(lambda primals, tangents: (f(*primals), (tangent or f)(*tangents)))
    return function


def custom_vjp(f):
    """`f` of one argument, whose cotangent is that of its result."""
    function = jax.custom_vjp(f)
    function.defvjp(lambda x: (f(x), None), lambda _, ct: (ct,))
    return function
