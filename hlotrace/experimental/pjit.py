"""`pjit`, the former name of `jit` for arrays over several devices."""
from ..api.jit import jit
from ..core.surface.public import export_names

__all__ = ["pjit"]


def pjit(fun, in_shardings=None, out_shardings=None, static_argnums=None, static_argnames=None,
         donate_argnums=None, donate_argnames=None, keep_unused=False, device=None, backend=None,
         inline=False, compiler_options=None):
    """`jit`, with arguments that may be given by position.

    >>> from hlotrace.experimental.pjit import pjit
    >>> mesh = jax.make_mesh((2,), ("x",))
    >>> double = pjit(lambda x: x * 2, None, jax.NamedSharding(mesh, jax.P("x")))
    >>> double(jnp.arange(4)).sharding.spec
    P('x',)
    """
    return jit(fun, in_shardings=in_shardings, out_shardings=out_shardings, static_argnums=static_argnums,
               static_argnames=static_argnames, donate_argnums=donate_argnums,
               donate_argnames=donate_argnames, keep_unused=keep_unused, device=device, backend=backend,
               inline=inline, compiler_options=compiler_options)


export_names(globals())
